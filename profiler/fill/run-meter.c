/* run-meter.c: the meter of a run, over a back end and the log of a profile. */
#include "fill/run-meter.h"

#include "base/clock.h"

enum { SYNC_MS = 2000 };

int tccl_retry(struct tccl_backend *backend, const struct tccl_set *set, int tries,
               struct tccl_measurement *out, struct tccl_error *why, struct tccl_error *err)
{
    *out = (struct tccl_measurement){.failed = true};
    for (int i = 0; i < tries && out->failed; i++) {
        *out = (struct tccl_measurement){0};
        *why = (struct tccl_error){0};
        int rc = tccl_backend_measure(backend, set, out, why);
        if (rc < 0)
            return tccl_fail(err, "%s", why->text);
        if (rc == 0 && out->marks != backend->marks)
            tccl_fail(why, "others used the GPUs meanwhile");
        if (rc > 0 || out->failed || out->marks != backend->marks)
            *out = (struct tccl_measurement){.failed = true, .marks = backend->marks};
    }
    return 0;
}

void tccl_retry_count(struct tccl_fill_progress *progress, const struct tccl_set *set,
                      const char *how, const struct tccl_measurement *out,
                      const struct tccl_error *why)
{
    char text[TCCL_SET_TEXT];
    progress->measured++;
    progress->failed += out->failed;
    progress->noisy += out->noisy;
    if (!out->failed)
        return;
    tccl_set_format(set, text);
    progress->why = (struct tccl_error){0};
    tccl_fail(&progress->why, "\"%.80s\"%s: %s", text, how,
              why->text[0] ? why->text : "no reason given");
}

int tccl_retry_sync(struct tccl_profile *profile, int64_t *synced, struct tccl_error *err)
{
    int64_t now = tccl_now_ms();
    if (now - *synced < SYNC_MS)
        return 0;
    *synced = now;
    return tccl_profile_sync(profile, err);
}

/* A line of the log. Sets measured under marks say nothing about those without, nor the other way
 * round. */
static int know(void *context, const struct tccl_set *set, const struct tccl_measurement *measured)
{
    struct tccl_run_meter *meter = context;
    if (measured->marks != meter->backend->marks)
        return 0;
    struct tccl_setmap_entry *entry = tccl_setmap_note(&meter->sets, set, measured);
    if (!entry)
        return -1;
    entry->given_up = false; /* this run tries again */
    meter->progress->known += !measured->failed;
    return 0;
}

int tccl_run_meter_open(struct tccl_run_meter *meter, struct tccl_backend *backend,
                        struct tccl_profile *profile, struct tccl_fill_progress *progress,
                        struct tccl_error *err)
{
    *meter = (struct tccl_run_meter){.backend = backend, .profile = profile, .progress = progress};
    return tccl_profile_sets(profile, know, meter, NULL, err) < 0 ? -1 : 0;
}

void tccl_run_meter_clear(struct tccl_run_meter *meter)
{
    tccl_setmap_clear(&meter->sets);
}

/* The first set among these GPUs that has failed; NULL: none. ever: also if it was measured since;
 * now: also if this run has given it up. */
static const struct tccl_setmap_entry *find_failed(const struct tccl_run_meter *meter,
                                                   uint32_t gpus, bool ever, bool now)
{
    for (size_t i = 0; i < meter->sets.count; i++) {
        const struct tccl_setmap_entry *entry = &meter->sets.entries[i];
        bool counts = ever || (entry->measured == 0 && (now || !entry->given_up));
        if (entry->failed && counts && !(tccl_set_gpus(&entry->set) & ~gpus))
            return entry;
    }
    return NULL;
}

bool tccl_run_meter_failed(const struct tccl_run_meter *meter, uint32_t gpus, bool now)
{
    return find_failed(meter, gpus, false, now) != NULL;
}

bool tccl_run_meter_ever_failed(const struct tccl_run_meter *meter, uint32_t gpus)
{
    return find_failed(meter, gpus, true, false) != NULL;
}

int tccl_run_meter_retry(struct tccl_run_meter *meter, uint32_t gpus, struct tccl_error *err)
{
    const struct tccl_setmap_entry *entry = find_failed(meter, gpus, false, false);
    struct tccl_measurement out;
    if (!entry)
        return 1;
    struct tccl_set set = entry->set;
    return tccl_run_meter_measure(meter, &set, &out, err);
}

/* known: a failure changes nothing, and isn't written down. */
static int measure(struct tccl_run_meter *meter, const struct tccl_set *set, bool known,
                   struct tccl_measurement *out, struct tccl_error *err)
{
    /* Where nothing works any more, the end should come soon. */
    int tries = meter->in_a_row < TCCL_TRIES ? TCCL_TRIES : 1;
    struct tccl_error why, ended = {0};
    if (tccl_retry(meter->backend, set, tries, out, &why, &ended) != 0)
        return tccl_fail(err, "%s: what was measured is kept", ended.text);
    if (!(known && out->failed)) { /* in the log first */
        if (tccl_profile_append(meter->profile, set, out, err) != 0)
            return -1;
        if (!tccl_setmap_note(&meter->sets, set, out))
            return tccl_fail(err, "out of memory");
    }
    tccl_retry_count(meter->progress, set, "", out, &why);
    meter->in_a_row = out->failed ? meter->in_a_row + 1 : 0;
    if (meter->in_a_row >= TCCL_FAILURES)
        return tccl_fail(err, "%d loads failed in a row, the last %s: what was measured is kept",
                         meter->in_a_row, meter->progress->why.text);
    return tccl_retry_sync(meter->profile, &meter->synced, err);
}

int tccl_run_meter_measure(struct tccl_run_meter *meter, const struct tccl_set *set,
                           struct tccl_measurement *out, struct tccl_error *err)
{
    struct tccl_setmap_entry *entry = tccl_setmap_find(&meter->sets, set);
    *out = entry ? entry->best : (struct tccl_measurement){.failed = true};
    if (entry && (entry->measured > 0 || entry->given_up))
        return 0;
    if (tccl_backend_can(meter->backend, set, NULL) != 0) {
        if (entry)
            entry->given_up = true;
        return 0;
    }
    return measure(meter, set, false, out, err);
}

int tccl_run_meter_again(struct tccl_run_meter *meter, const struct tccl_set *set, int most,
                         struct tccl_measurement *out, struct tccl_error *err)
{
    const struct tccl_setmap_entry *entry = tccl_setmap_find(&meter->sets, set);
    if (!entry || entry->measured == 0 || entry->measured >= most)
        return tccl_run_meter_measure(meter, set, out, err);
    return measure(meter, set, true, out, err);
}

static int measure_for_search(void *context, const struct tccl_set *set,
                              struct tccl_measurement *out, struct tccl_error *err)
{
    return tccl_run_meter_measure(context, set, out, err);
}

static int again_for_search(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                            struct tccl_error *err)
{
    return tccl_run_meter_again(context, set, TCCL_MEASURED_MOST, out, err);
}

static int settle_for_search(void *context, const struct tccl_set *set,
                             struct tccl_measurement *out, struct tccl_error *err)
{
    return tccl_run_meter_again(context, set, TCCL_VALUES, out, err);
}

struct tccl_meter tccl_run_meter_meter(struct tccl_run_meter *meter)
{
    return (struct tccl_meter){.measure = measure_for_search,
                               .again = again_for_search,
                               .settle = settle_for_search,
                               .context = meter,
                               .sets = &meter->sets};
}
