/* profile-check.c: tccl-profile run --check: does the profile still hold? */
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "command/profile-command.h"
#include "fill/fill.h"
#include "profile/verdict.h"

enum {
    EXIT_DRIFTED = 1,
    EXIT_UNCLEAR = 3,
    EXIT_INTERRUPTED = 130,
    SAMPLE = 20,
    QUICK = 40, /* sets of verify --quick, at most, */
    QUICK_SECONDS = 45,
    NAMED = 5
};

static const char *const verdicts[] = {[TCCL_DRIFT_HOLDS] = "holds",
                                       [TCCL_DRIFT_DRIFTED] = "drifted",
                                       [TCCL_DRIFT_UNCLEAR] = "unclear"};

static int follow(void *context UNUSED, int done UNUSED, int count UNUSED)
{
    return profile_interrupted();
}

/* ---- what is printed ---- */

static double change(const struct tccl_drift_set *one)
{
    return one->then > 0 ? one->now / one->then - 1 : 0;
}

static json_t *drift_to_json(const struct tccl_profile *profile, const struct tccl_drift *drift,
                             unsigned seed)
{
    json_t *sets = json_array();
    for (int i = 0; i < drift->count; i++) {
        const struct tccl_drift_set *one = &drift->sets[i];
        char text[TCCL_SET_TEXT];
        tccl_set_format(&one->set, text);
        json_array_append_new(sets,
                              json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:b, s:b, s:b}",
                                        "load", text, "what", one->what, "gbps_then", one->then,
                                        "gbps", one->now, "spread_then", one->spread_then, "spread",
                                        one->spread, "limit", one->limit, "drifted", one->drifted,
                                        "noisy", one->noisy, "failed", one->failed));
    }
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:I, s:o}", "id",
                     tccl_profile_id(profile), "folder", tccl_profile_folder(profile), "verdict",
                     verdicts[drift->verdict], "checked", drift->count, "drifted", drift->drifted,
                     "noisy", drift->noisy, "failed", drift->failed, "median_ratio", drift->median,
                     "limit", drift->limit, "seed", (json_int_t)seed, "loads", sets);
}

static int by_change(const void *a, const void *b)
{
    const struct tccl_drift_set *x = *(const struct tccl_drift_set *const *)a;
    const struct tccl_drift_set *y = *(const struct tccl_drift_set *const *)b;
    double p = change(x) < 0 ? -change(x) : change(x), q = change(y) < 0 ? -change(y) : change(y);
    return (p < q) - (p > q);
}

static void print_verdict(const struct tccl_profile *profile, const struct tccl_drift *drift,
                          unsigned seed)
{
    const char *folder = tccl_profile_folder(profile);
    /* The drifted sets, worst first. */
    const struct tccl_drift_set *drifted[TCCL_DRIFT_SETS];
    size_t count = 0;
    for (int i = 0; i < drift->count; i++)
        if (drift->sets[i].drifted)
            drifted[count++] = &drift->sets[i];
    qsort(drifted, count, sizeof(*drifted), by_change);
    for (size_t i = 0; i < count && i < NAMED; i++) {
        char text[TCCL_SET_TEXT];
        tccl_set_format(&drifted[i]->set, text);
        printf("%8.2f -> %8.2f GB/s %+6.1f %%  %s (%s)\n", drifted[i]->then, drifted[i]->now,
               change(drifted[i]) * 100, text, drifted[i]->what);
    }
    if (count > NAMED)
        printf("and %zu more\n", count - NAMED);
    printf("%d loads measured again (seed %u)", drift->count, seed);
    if (drift->worst >= 0)
        printf(": median %+.1f %%, largest change %+.1f %%", (drift->median - 1) * 100,
               change(&drift->sets[drift->worst]) * 100);
    if (drift->noisy + drift->failed > 0)
        printf("; %d too noisy, %d failed", drift->noisy, drift->failed);
    if (drift->limit > 0.01)
        printf("; changes of one load below %.0f %% are not seen", drift->limit * 100);
    if (drift->verdict == TCCL_DRIFT_HOLDS)
        printf("\nthe profile holds\n");
    else if (drift->verdict == TCCL_DRIFT_UNCLEAR)
        printf("\ncan't tell whether the profile holds: try again when the node is idle\n");
    else
        printf("\nthe profile has drifted: measure anew: mv %s %s.old, then tccl-profile run\n",
               folder, folder);
}

static int say(const struct profile_options *options, const struct tccl_profile *profile,
               const struct tccl_drift *drift, unsigned seed)
{
    int status = drift->verdict == TCCL_DRIFT_HOLDS     ? 0
                 : drift->verdict == TCCL_DRIFT_DRIFTED ? EXIT_DRIFTED
                                                        : EXIT_UNCLEAR;
    if (options->json)
        return profile_print(drift_to_json(profile, drift, seed)) != 0 ? 1 : status;
    if (!options->quiet)
        print_verdict(profile, drift, seed);
    return status;
}

/* ---- what is checked ---- */

void profile_note_verdict(const struct profile_options *options, const struct tccl_profile *profile,
                          const char *found, double worst)
{
    struct tccl_verdict verdict = {.worst = worst, .when = time(NULL)};
    struct tccl_error err = {0};
    snprintf(verdict.profile, sizeof(verdict.profile), "%s", tccl_profile_id(profile));
    snprintf(verdict.found, sizeof(verdict.found), "%s", found);
    if (tccl_verdict_write(options->cache, options->node_name, &verdict, &err) != 0)
        fprintf(stderr, "tccl: note: tccld won't know of this: %s\n", err.text);
}

/* A run at the same time would be in the way, and we in its. The descriptor holds the lock. */
static int lock(const struct tccl_profile *profile, struct tccl_error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/sets.jsonl", tccl_profile_folder(profile));
    int fd = tccl_open_regular(path, err);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0)
        return fd;
    tccl_fail(err, "%s: another process is measuring into it; wait for it", path);
    close(fd);
    return -1;
}

/* Is what the back end would measure what the profile is about? */
static int fits(const struct tccl_profile *profile, const struct tccl_backend *backend,
                struct tccl_error *err)
{
    char id[TCCL_HASH_HEX];
    tccl_machine_id(backend->machine, id);
    if (strcmp(id, tccl_profile_id(profile)) != 0)
        return tccl_fail(err, "%s: is of another machine: this is %s", tccl_profile_folder(profile),
                         id);
    if (strcmp(tccl_profile_source(profile), backend->name) != 0)
        return tccl_fail(err, "%s: comes from \"%s\", which \"%s\" can't check",
                         tccl_profile_folder(profile), tccl_profile_source(profile), backend->name);
    if (!tccl_conditions_agree(tccl_profile_conditions(profile), backend->conditions))
        return tccl_fail(
            err, "%s: was measured under \"%s\", and this is \"%s\": check it as it was",
            tccl_profile_folder(profile), tccl_profile_conditions(profile), backend->conditions);
    return 0;
}

/* By the back end that made it, as it was then, where nothing else is said. */
int profile_check(const struct profile_options *options, struct tccl_profile *profile,
                  struct tccl_error *err)
{
    struct profile_options like = *options;
    struct tccl_backend *backend;
    const char *source = tccl_profile_source(profile), *seed = getenv("TCCL_SEED");
    char model[PATH_MAX];
    cleanup_close int fd = lock(profile, err);
    if (fd < 0)
        return -1;
    snprintf(model, sizeof(model), "%s/model.json", tccl_profile_folder(profile));
    if (!options->model && strcmp(source, "model") == 0)
        like.model = model;
    if (options->devices == 0 && strcmp(source, "host") == 0)
        like.devices = tccl_profile_machine(profile)->n_gpus;
    if (profile_open_backend(&like, source, &backend, err) != 0)
        return -1;
    struct tccl_drift_options what = {
        .sets = options->budget > 0
                    ? (int)(options->budget < TCCL_DRIFT_SETS ? options->budget : TCCL_DRIFT_SETS)
                : options->quick ? QUICK
                                 : SAMPLE,
        .seconds = options->quick ? QUICK_SECONDS : options->seconds,
        .seed = seed ? (unsigned)strtoul(seed, NULL, 0) : (unsigned)time(NULL) ^ (unsigned)getpid(),
        .progress = follow};
    struct tccl_drift drift = {0};
    int rc = fits(profile, backend, err);
    if (rc == 0)
        rc = tccl_drift_check(backend, profile, &what, &drift, err);
    /* What the best rings and chains have now of what they had, the worst of them. */
    double worst = 1;
    for (int i = 0; i < drift.count; i++)
        if (drift.sets[i].drifted && strncmp(drift.sets[i].what, "best", 4) == 0)
            worst = fmin(worst, drift.sets[i].now / drift.sets[i].then);
    if (rc == 0 && options->quick)
        profile_note_verdict(options, profile, verdicts[drift.verdict], worst);
    if (rc == 0)
        rc = say(options, profile, &drift, what.seed);
    else if (rc > 0)
        rc = EXIT_INTERRUPTED;
    tccl_drift_clear(&drift);
    tccl_backend_close(backend);
    return rc;
}
