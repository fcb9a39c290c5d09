/* retry.h: how often a set is tried, in one place.
 *
 * - A measurement is several runs, and several rounds of them where these disagree
 *   (measure/pool/repeat.h).
 * - A set that gives no bandwidth is tried TCCL_TRIES times, then given up for this run. The next
 *   run tries it again.
 * - After TCCL_FAILURES given up in a row the run ends: the fault is not in the sets.
 * - A set on which much depends is measured TCCL_MEASURED times at most, in all runs together; what
 *   is chosen in the end, and NCCL's own, TCCL_VALUES times (search/setmap.h). The search says
 * which (search/search-meter.h, search/settle.c).
 * - A set that seems to have drifted is measured TCCL_TRIES times before that is believed. */
#ifndef TCCL_RETRY_H
#define TCCL_RETRY_H

#include "measure/backends/backend.h"
#include "profile/cache.h"

enum { TCCL_TRIES = 3, TCCL_FAILURES = 10, TCCL_MEASURED = 2 };

/* Does this measurement do? */
typedef bool tccl_accept(void *context, const struct tccl_measurement *measurement);

/* Asks the back end, at most tries times, until it has an answer that will do (accept NULL: any
 * bandwidth); the last answer counts. Returns 0 with *out, which carries the back end's marks
 * (failed: no bandwidth, *why says why not); -1 with err if the back end can't go on. */
int tccl_retry(struct tccl_backend *backend, const struct tccl_set *set, int tries,
               tccl_accept *accept, void *context, struct tccl_measurement *out,
               struct tccl_error *why, struct tccl_error *err);

/* Syncs what was written to the profile, once in two seconds. synced: when it was, 0 at first
 * (tccl_now_ms). Returns 0, or -1 with err. */
int tccl_retry_sync(struct tccl_profile *profile, int64_t *synced, struct tccl_error *err);

#endif
