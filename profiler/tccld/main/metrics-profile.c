/* Counts what the profile holds, and what is found on the machine. The log of sets may be long: it
 * is read only when one of the files has changed. */
#include "tccld/main/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "profile/cache.h"
#include "profile/measured.h"

static struct tccl_stamp stamp_below(const char *folder, const char *name)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return tccl_stamp_take(path);
}

static void count_tables(struct tccl_profile *profile, struct metrics_profile *counted)
{
    cleanup_free uint32_t *masks = NULL;
    int n = tccl_profile_tables(profile, &masks, NULL);
    counted->tables = n > 0 ? n : 0;
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof(name), "chains/%08x.chains", masks[i]);
        struct tccl_stamp stamp = stamp_below(tccl_profile_folder(profile), name);
        if (tccl_stamp_exists(&stamp) &&
            (!counted->searched || stamp.modified.tv_sec < counted->searched))
            counted->searched = stamp.modified.tv_sec;
    }
}

static struct tccl_profile *open_profile(const char *machine, const char *cache_dir)
{
    struct tccl_machine description;
    struct tccl_profile *profile = NULL;
    char id[TCCL_HASH_HEX];
    if (tccl_machine_read(machine, &description, NULL) != 0)
        return NULL;
    tccl_machine_id(&description, id);
    return tccl_profile_open(cache_dir, id, &profile, NULL) == 0 ? profile : NULL;
}

void metrics_count_profile(struct metrics_count *count, const char *machine, const char *cache_dir)
{
    struct tccl_profile *profile = open_profile(machine, cache_dir);
    if (!profile) {
        count->profile = (struct metrics_profile){0};
        return;
    }
    const char *folder = tccl_profile_folder(profile);
    struct tccl_stamp described = tccl_stamp_take(machine);
    struct tccl_stamp sets = stamp_below(folder, "sets.jsonl");
    struct tccl_stamp chains = stamp_below(folder, "chains");
    if (!count->profile.there || !tccl_stamp_equal(&described, &count->described) ||
        !tccl_stamp_equal(&sets, &count->sets) || !tccl_stamp_equal(&chains, &count->chains)) {
        struct metrics_profile *counted = &count->profile;
        *counted = (struct metrics_profile){.there = true, .measured = tccl_profile_time(profile)};
        snprintf(counted->machine, sizeof(counted->machine), "%s", tccl_profile_id(profile));
        snprintf(counted->source, sizeof(counted->source), "%s", tccl_profile_source(profile));
        struct tccl_measured measured = {0};
        if (tccl_measured_load(profile, &measured, NULL) == 0)
            for (size_t i = 0; i < measured.sets.count; i++) {
                counted->sets++;
                counted->noisy += measured.sets.entries[i].best.noisy;
                counted->failed += measured.sets.entries[i].best.failed;
            }
        tccl_measured_clear(&measured);
        count_tables(profile, counted);
        count->described = described;
        count->sets = sets;
        count->chains = chains;
    }
    tccl_profile_close(profile);
}

void metrics_look_at_machine(struct metrics_count *count, time_t now)
{
    enum { AGAIN = 60 };
    struct {
        struct tccl_doctor_facts facts;
        struct tccl_doctor_findings findings;
    } *seen = NULL;
    if (count->looked && now >= count->looked && now - count->looked < AGAIN)
        return;
    seen = malloc(sizeof(*seen));
    if (!seen)
        return;
    tccl_doctor_read(NULL, NULL, NULL, &seen->facts);
    seen->facts.memlock_gb = -1; /* this tccld's own says nothing of jobs */
    tccl_doctor_examine(&seen->facts, &seen->findings);
    count->machine_found = (struct metrics_machine){{0}};
    for (int i = 0; i < seen->findings.count; i++)
        count->machine_found.findings[seen->findings.list[i].level]++;
    count->looked = now;
    free(seen);
}
