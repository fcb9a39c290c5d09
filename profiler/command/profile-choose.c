/* profile-choose.c: finds the profile that the operand names, and prints answers. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fields.h"
#include "command/profile-command.h"

struct candidates {
    const char *cache;
    const char *text; /* beginning of an id, or name of a machine; NULL: any */
    char id[TCCL_HASH_HEX];
    int count;
};

int profile_complain(const struct tccl_error *err)
{
    fprintf(stderr, "tccl: %s\n", err->text);
    return 1;
}

int profile_print(json_t *json)
{
    if (!json)
        return profile_complain(&(struct tccl_error){"out of memory"});
    int rc = json_dumpf(json, stdout, JSON_INDENT(1) | TCCL_JSON_DIGITS);
    json_decref(json);
    return rc == 0 && putchar('\n') != EOF && fflush(stdout) == 0 ? 0 : 1;
}

static bool has_name(const char *cache, const char *id, const char *name)
{
    struct tccl_error ignored = {0};
    struct tccl_profile *profile;
    if (tccl_profile_open(cache, id, &profile, &ignored) != 0)
        return false;
    bool same = strcmp(tccl_profile_machine(profile)->name, name) == 0;
    tccl_profile_close(profile);
    return same;
}

static int consider(void *context, const char *id)
{
    struct candidates *candidates = context;
    const char *text = candidates->text;
    if (text && strncmp(id, text, strlen(text)) != 0 && !has_name(candidates->cache, id, text))
        return 0;
    memcpy(candidates->id, id, TCCL_HASH_HEX);
    candidates->count++;
    return 0;
}

/* The only profile in the cache that fits. */
static int choose_from_cache(const char *cache, const char *text, struct tccl_profile **profile,
                             struct tccl_error *err)
{
    struct candidates candidates = {.cache = cache, .text = text};
    if (tccl_cache_list(cache, consider, &candidates, err) < 0)
        return -1;
    if (candidates.count == 1)
        return tccl_profile_open(cache, candidates.id, profile, err);
    if (candidates.count == 0 && text)
        return tccl_fail(err, "no profile \"%.64s\" in %s: see tccl-profile list", text, cache);
    if (candidates.count == 0)
        return tccl_fail(err, "no profiles in %s: make one with tccl-profile run", cache);
    return tccl_fail(err, "%d profiles in %s fit: name one (see tccl-profile list)",
                     candidates.count, cache);
}

/* A path, or the name of a folder here that holds a profile. */
static bool is_folder(const char *text)
{
    char path[PATH_MAX];
    if (strchr(text, '/'))
        return true;
    return snprintf(path, sizeof(path), "%s/machine.json", text) < PATH_MAX &&
           access(path, F_OK) == 0;
}

int profile_choose(const struct profile_options *options, struct tccl_profile **profile,
                   struct tccl_error *err)
{
    struct tccl_error ignored = {0};
    struct tccl_machine machine;
    char id[TCCL_HASH_HEX];
    *profile = NULL;
    if (options->profile && is_folder(options->profile))
        return tccl_profile_open_folder(options->profile, profile, err);
    if (options->profile)
        return choose_from_cache(options->cache, options->profile, profile, err);
    if (tccl_machine_read(options->node, &machine, &ignored) == 0) {
        tccl_machine_id(&machine, id);
        return tccl_profile_open(options->cache, id, profile, err);
    }
    return choose_from_cache(options->cache, NULL, profile, err);
}

int profile_with(const struct profile_options *options, profile_act *act, struct tccl_error *err)
{
    struct tccl_profile *profile;
    if (profile_choose(options, &profile, err) != 0)
        return -1;
    int rc = act(options, profile, err);
    tccl_profile_close(profile);
    return rc;
}

/* ---- its logs ---- */

void profile_say_torn(const struct tccl_profile *profile, const char *log)
{
    fprintf(stderr, "tccl: %s/%s.jsonl: the last line is incomplete: it is left out\n",
            tccl_profile_folder(profile), log);
}

static int pass_set(void *context UNUSED, const struct tccl_set *set UNUSED,
                    const struct tccl_measurement *measured UNUSED)
{
    return 0;
}

static int pass_joint(void *context UNUSED, const struct tccl_joint *joint UNUSED)
{
    return 0;
}

long profile_count(const struct tccl_profile *profile, bool together, bool quiet,
                   struct tccl_error *err)
{
    int dropped = 0;
    long count = together ? tccl_profile_joints(profile, pass_joint, NULL, &dropped, err)
                          : tccl_profile_sets(profile, pass_set, NULL, &dropped, err);
    if (dropped && !quiet)
        profile_say_torn(profile, together ? "together" : "sets");
    return count;
}
