/* profile-verify.c: tccl-profile verify: reads every file of a profile. */

#include "base/cleanup.h"
#include "command/profile-command.h"

struct verified {
    const struct profile_options *options;
    json_t *profiles; /* list of results, for --json */
    json_t *bad;      /* of the profile at work */
    int n_profiles, n_files, n_bad;
};

static void good(struct verified *all)
{
    all->n_files++;
}

static void bad(struct verified *all, const struct tccl_error *err)
{
    all->n_files++;
    all->n_bad++;
    json_array_append_new(all->bad, json_string(err->text));
    if (!all->options->json)
        profile_complain(err);
}

static void verify_open(struct verified *all, struct tccl_profile *profile)
{
    struct tccl_error err = {0}, no_tables = {0};
    cleanup_free uint32_t *masks = NULL;
    all->n_files += 2; /* profile.json and machine.json */
    if (tccl_profile_model(profile, &err))
        good(all);
    else if (err.text[0])
        bad(all, &err);
    /* What was measured; together, too, if anything was. */
    for (int together = 0; together < 2; together++) {
        struct tccl_error why = {0};
        long n_sets = profile_count(profile, together, all->options->json, &why);
        if (n_sets < 0)
            bad(all, &why);
        else if (!together || n_sets > 0)
            good(all);
    }
    int count = tccl_profile_tables(profile, &masks, &no_tables);
    if (count < 0)
        bad(all, &no_tables);
    for (int i = 0; i < count; i++) {
        struct tccl_error why = {0};
        if (tccl_profile_table(profile, masks[i], &why))
            good(all);
        else
            bad(all, &why);
    }
    tccl_profile_close(profile);
}

/* opened: as tccl_profile_open says. */
static void verify(struct verified *all, const char *name, int opened, struct tccl_profile *profile,
                   const struct tccl_error *err)
{
    all->n_profiles++;
    all->bad = json_array();
    if (opened < 0)
        bad(all, err);
    else
        verify_open(all, profile);
    json_array_append_new(all->profiles,
                          json_pack("{s:s, s:b, s:o}", "profile", name, "good",
                                    json_array_size(all->bad) == 0, "bad", all->bad));
}

static int verify_id(void *context, const char *id)
{
    struct verified *all = context;
    struct tccl_profile *profile;
    struct tccl_error err = {0};
    int opened = tccl_profile_open(all->options->cache, id, &profile, &err);
    verify(all, id, opened, profile, &err);
    return 0;
}

/* Its files, then what it says: does it hold here? */
static int verify_quick(const struct profile_options *options, struct tccl_error *err)
{
    struct profile_options silent = *options;
    struct verified all = {.options = &silent, .profiles = json_array()};
    struct tccl_profile *profile;
    silent.json = false;
    int opened = profile_choose(options, &profile, err);
    verify(&all, options->profile ? options->profile : "", opened, profile, err);
    json_decref(all.profiles);
    return all.n_bad > 0 ? 1 : profile_with(options, profile_check, err);
}

int profile_verify(const struct profile_options *options, struct tccl_error *err)
{
    struct tccl_profile *profile;
    if (options->quick)
        return verify_quick(options, err);
    struct verified all = {.options = options, .profiles = json_array()};
    if (options->profile) {
        int opened = profile_choose(options, &profile, err);
        verify(&all, options->profile, opened, profile, err);
    } else if (tccl_cache_list(options->cache, verify_id, &all, err) < 0) {
        bad(&all, err);
    }
    if (options->json)
        profile_print(json_pack("{s:i, s:i, s:o}", "files", all.n_files, "bad", all.n_bad,
                                "profiles", all.profiles));
    else
        json_decref(all.profiles);
    if (!options->json && !options->quiet)
        printf("%d profile%s, %d file%s, %d bad\n", all.n_profiles, all.n_profiles == 1 ? "" : "s",
               all.n_files, all.n_files == 1 ? "" : "s", all.n_bad);
    return all.n_bad > 0 ? 1 : 0;
}
