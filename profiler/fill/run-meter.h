/* run-meter.h: the meter of a run: what the profile's log knows is not measured again; all else is
 * asked of the back end (retry.h) and written down before the next set is measured. */
#pragma once

#include "fill/fill.h"
#include "search/setmap.h"

/* How often a set is tried:
 *
 * - A measurement is several runs, and several rounds of them where these disagree
 *   (measure/pool/repeat.h).
 * - A set that gives no bandwidth is tried TCCL_TRIES times, then given up for this run. The next
 *   run tries it again.
 * - After TCCL_FAILURES given up in a row the run ends: the fault is not in the sets.
 * - A set on which much depends is measured TCCL_MEASURED_MOST times at most, in all runs together;
 * what is chosen in the end, and NCCL's own, TCCL_VALUES times (search/setmap.h). The search says
 * which (search/search-meter.h, search/settle.c).
 * - A set that seems to have drifted is measured TCCL_TRIES times before that is believed. */
enum { TCCL_TRIES = 3, TCCL_FAILURES = 10, TCCL_MEASURED_MOST = 2 };

/* Asks the back end, at most tries times, until it gives a bandwidth. Returns 0 with *out, which
 * carries the back end's marks (failed: no bandwidth, *why says why not); -1 with err if the back
 * end can't go on. */
int tccl_retry(struct tccl_backend *backend, const struct tccl_set *set, int tries,
               struct tccl_measurement *out, struct tccl_error *why, struct tccl_error *err);

/* Counts what was measured. A failure is said in the end, so what works after it doesn't take its
 * place: "SET HOW: why". */
void tccl_retry_count(struct tccl_fill_progress *progress, const struct tccl_set *set,
                      const char *how, const struct tccl_measurement *out,
                      const struct tccl_error *why);

/* Syncs what was written to the profile, once in two seconds. synced: when it was, 0 at first
 * (tccl_now_ms). Returns 0, or -1 with err. */
int tccl_retry_sync(struct tccl_profile *profile, int64_t *synced, struct tccl_error *err);

struct tccl_run_meter {
    struct tccl_backend *backend;
    struct tccl_profile *profile;
    struct tccl_fill_progress *progress; /* what is measured is counted here */
    struct tccl_setmap sets;             /* measured, or tried */
    int in_a_row;                        /* failed, with none good in between */
    int64_t synced;                      /* milliseconds, tccl_now_ms */
};

/* Reads the log of the profile (opened with create). All are borrowed. Returns 0, or -1 with err;
 * clear is right after either. */
int tccl_run_meter_open(struct tccl_run_meter *meter, struct tccl_backend *backend,
                        struct tccl_profile *profile, struct tccl_fill_progress *progress,
                        struct tccl_error *err);
void tccl_run_meter_clear(struct tccl_run_meter *meter);

/* The same as a meter for a search. It remembers what it measures,
 * and lives as long as the meter. */
struct tccl_meter tccl_run_meter_meter(struct tccl_run_meter *meter);

/* Measures a set, or says what is known of it. A set that was given up is given as failed; so is
 * one that the back end can't measure, without a try. Returns 0; -1 with err: the back end can't go
 * on, the log can't be written, or too many sets failed in a row. */
int tccl_run_meter_measure(struct tccl_run_meter *meter, const struct tccl_set *set,
                           struct tccl_measurement *out, struct tccl_error *err);

/* Measures a known set anew, unless it was measured so often: then what is known is given.
 * Returns as measure; out->failed: nothing new. */
int tccl_run_meter_again(struct tccl_run_meter *meter, const struct tccl_set *set, int most,
                         struct tccl_measurement *out, struct tccl_error *err);

/* Has a set among these GPUs (a mask) failed, and has not been measured since? now: also if it was
 * this run that tried. */
bool tccl_run_meter_failed(const struct tccl_run_meter *meter, uint32_t gpus, bool now);

/* Has one ever failed, also if it was measured since? What was made before then was made without
 * it. */
bool tccl_run_meter_ever_failed(const struct tccl_run_meter *meter, uint32_t gpus);

/* Tries one of those sets that failed in an earlier run. Returns 0; 1 if there is none; -1 with
 * err, as measure. */
int tccl_run_meter_retry(struct tccl_run_meter *meter, uint32_t gpus, struct tccl_error *err);
