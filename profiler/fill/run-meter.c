#include "fill/run-meter.h"

#include <string.h>

enum { TRIES = 3, SYNC_SECONDS = 2 };

/* What became of a set that failed. */
enum lost { FOUND, LOST_BEFORE, LOST_NOW };

static int set_value(struct tccl_setmap *map, const struct tccl_set *set, double value)
{
    if (tccl_setmap_add(map, set, value) < 0)
        return -1;
    tccl_setmap_find(map, set)->gbps = value;
    return 0;
}

static int note(struct tccl_run_meter *meter, const struct tccl_set *set,
                const struct tccl_measurement *measured, enum lost lost)
{
    if (measured->failed)
        return set_value(&meter->lost, set, lost);
    struct tccl_setmap_entry *entry = tccl_setmap_find(&meter->lost, set);
    if (entry)
        entry->gbps = FOUND;
    entry = tccl_setmap_find(&meter->known, set);
    if (!entry)
        return set_value(&meter->known, set, measured->gbps);
    if (measured->gbps > entry->gbps)
        entry->gbps = measured->gbps;
    return set_value(&meter->twice, set, 0);
}

/* A line of the log. Sets measured under marks say nothing about those without, nor the other way
 * round. */
static int know(void *context, const struct tccl_set *set, const struct tccl_measurement *measured)
{
    struct tccl_run_meter *meter = context;

    if (measured->marks != tccl_backend_marks(meter->backend))
        return 0;
    meter->before += !measured->failed;
    return note(meter, set, measured, LOST_BEFORE);
}

int tccl_run_meter_open(struct tccl_run_meter *meter, struct tccl_backend *backend,
                        struct tccl_profile *profile, struct tccl_error *err)
{
    *meter = (struct tccl_run_meter){.backend = backend, .profile = profile};
    return tccl_profile_sets(profile, know, meter, NULL, err) < 0 ? -1 : 0;
}

void tccl_run_meter_clear(struct tccl_run_meter *meter)
{
    tccl_setmap_clear(&meter->known);
    tccl_setmap_clear(&meter->twice);
    tccl_setmap_clear(&meter->lost);
}

bool tccl_run_meter_knows(const struct tccl_run_meter *meter, const struct tccl_set *set)
{
    return tccl_setmap_find(&meter->known, set) != NULL;
}

static uint32_t gpu_bit(struct tccl_device device)
{
    return device.kind == TCCL_GPU ? UINT32_C(1) << device.index : 0;
}

static uint32_t gpus_of(const struct tccl_set *set)
{
    uint32_t gpus = 0;

    for (int i = 0; i < set->count; i++)
        gpus |= gpu_bit(tccl_transfer_initiator(set->transfers[i])) |
                gpu_bit(tccl_transfer_target(set->transfers[i]));
    return gpus;
}

/* The first set among these GPUs of which this became, from least to most; NULL: none. */
static const struct tccl_setmap_entry *find_lost(const struct tccl_run_meter *meter, uint32_t gpus,
                                                 enum lost least, enum lost most)
{
    for (size_t i = 0; i < meter->lost.count; i++) {
        const struct tccl_setmap_entry *entry = &meter->lost.entries[i];

        if (!(gpus_of(&entry->set) & ~gpus) && entry->gbps >= least && entry->gbps <= most)
            return entry;
    }
    return NULL;
}

bool tccl_run_meter_lost(const struct tccl_run_meter *meter, uint32_t gpus, bool now)
{
    return find_lost(meter, gpus, LOST_BEFORE, now ? LOST_NOW : LOST_BEFORE) != NULL;
}

bool tccl_run_meter_doubts(const struct tccl_run_meter *meter, uint32_t gpus)
{
    return find_lost(meter, gpus, FOUND, LOST_NOW) != NULL;
}

int tccl_run_meter_retry(struct tccl_run_meter *meter, uint32_t gpus, struct tccl_error *err)
{
    const struct tccl_setmap_entry *entry = find_lost(meter, gpus, LOST_BEFORE, LOST_BEFORE);
    struct tccl_measurement out;

    if (!entry)
        return 1;
    struct tccl_set set = entry->set;
    return tccl_run_meter_measure(meter, &set, &out, err);
}

static int sync_sometimes(struct tccl_run_meter *meter, struct tccl_error *err)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec - meter->synced < SYNC_SECONDS)
        return 0;
    meter->synced = now.tv_sec;
    return tccl_profile_sync(meter->profile, err);
}

/* Asks the back end until it has an answer, or has had its tries. Returns 0 (out->failed: given
 * up, with why), or -1 with err. */
static int try(struct tccl_run_meter *meter, const struct tccl_set *set,
               struct tccl_measurement *out, struct tccl_error *why, struct tccl_error *err)
{
    /* Where nothing works any more, the end should come soon. */
    int tries = meter->in_a_row < TRIES ? TRIES : 1;

    for (int i = 0; i < tries; i++) {
        *out = (struct tccl_measurement){0};
        *why = (struct tccl_error){0};
        int rc = tccl_backend_measure(meter->backend, set, out, why);
        if (rc < 0)
            return tccl_fail(err, "%s: what was measured is kept", why->text);
        if (rc == 0 && !out->failed && out->marks == tccl_backend_marks(meter->backend))
            return 0;
        if (rc == 0 && out->marks != tccl_backend_marks(meter->backend))
            tccl_fail(why, "others used the GPUs meanwhile");
    }
    *out = (struct tccl_measurement){.failed = true, .marks = tccl_backend_marks(meter->backend)};
    return 0;
}

/* Returns 0, or -1 with err if it makes no sense to go on. */
static int count(struct tccl_run_meter *meter, const struct tccl_set *set,
                 const struct tccl_measurement *out, const struct tccl_error *why,
                 struct tccl_error *err)
{
    meter->measured++;
    meter->failed += out->failed;
    meter->noisy += out->noisy;
    meter->in_a_row = out->failed ? meter->in_a_row + 1 : 0;
    if (!out->failed)
        return 0;
    char text[TCCL_SET_TEXT];
    tccl_set_format(set, text);
    meter->why = (struct tccl_error){0};
    tccl_fail(&meter->why, "\"%.80s\": %s", text, why->text[0] ? why->text : "no reason given");
    if (meter->in_a_row < TCCL_RUN_METER_FAILURES)
        return 0;
    return tccl_fail(err, "%d sets failed in a row, the last %s: what was measured is kept",
                     meter->in_a_row, meter->why.text);
}

int tccl_run_meter_measure(struct tccl_run_meter *meter, const struct tccl_set *set,
                           struct tccl_measurement *out, struct tccl_error *err)
{
    const struct tccl_setmap_entry *known = tccl_setmap_find(&meter->known, set);
    const struct tccl_setmap_entry *lost = tccl_setmap_find(&meter->lost, set);
    struct tccl_error why;

    *out = (struct tccl_measurement){.gbps = known ? known->gbps : 0};
    if (known)
        return 0;
    out->failed =
        (lost && lost->gbps == LOST_NOW) || tccl_backend_can(meter->backend, set, NULL) < 0;
    if (out->failed)
        return lost ? note(meter, set, out, LOST_NOW) : 0;
    if (try(meter, set, out, &why, err) < 0 ||
        tccl_profile_append(meter->profile, set, out, err) < 0)
        return -1;
    if (note(meter, set, out, LOST_NOW) < 0)
        return tccl_fail(err, "out of memory");
    if (count(meter, set, out, &why, err) < 0)
        return -1;
    return sync_sometimes(meter, err);
}

int tccl_run_meter_again(struct tccl_run_meter *meter, const struct tccl_set *set,
                         struct tccl_measurement *out, struct tccl_error *err)
{
    struct tccl_error why;

    if (tccl_setmap_find(&meter->twice, set) || !tccl_run_meter_knows(meter, set))
        return tccl_run_meter_measure(meter, set, out, err);
    if (try(meter, set, out, &why, err) < 0)
        return -1;
    if (out->failed) /* what is known stays */
        return count(meter, set, out, &why, err);
    if (tccl_profile_append(meter->profile, set, out, err) < 0)
        return -1;
    if (note(meter, set, out, LOST_NOW) < 0)
        return tccl_fail(err, "out of memory");
    return count(meter, set, out, &why, err) < 0 ? -1 : sync_sometimes(meter, err);
}
