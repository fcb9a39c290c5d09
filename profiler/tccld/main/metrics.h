/* metrics.h: what this tccld has done since its start, in numbers, as OpenMetrics text
 * (https://openmetrics.io) that older readers of Prometheus' text format take as well. */
#ifndef TCCL_METRICS_H
#define TCCL_METRICS_H

#include <time.h>

#include "client/client.h"

enum { METRICS_NAME = 64 };

/* What is known of this node's profile. */
struct metrics_profile {
    bool there;
    char machine[METRICS_NAME]; /* id */
    char source[METRICS_NAME];  /* model, host, cuda */
    time_t measured;            /* when a set was last measured; 0: never */
    time_t searched;            /* when the oldest chain table was written; 0: there is none */
    long sets, noisy, failed;   /* measured sets; those that stayed noisy; those that failed */
    int tables;                 /* GPU sets with chains */
};

struct metrics;

/* All zero; the same numbers again. NULL without memory; the caller frees. */
struct metrics *metrics_new(void);
struct metrics *metrics_copy(const struct metrics *metrics);
void metrics_free(struct metrics *metrics); /* NULL is fine */

/* A JOIN came from this node. */
void metrics_join(struct metrics *metrics, enum tccl_mode mode);

/* It was answered: reason counts in a fallback, with a ring ratio (the ring's bandwidth over NCCL's
 * own choice; 0: not known) and rings (how many run at once). waited_us: since the JOIN,
 * microseconds; not counted where the state is off. */
void metrics_answer(struct metrics *metrics, enum tccl_state state, enum tccl_reason reason,
                    double ratio, int64_t rings, int64_t waited_us);

/* What tccld can be without for a while: does it work? squeue is not shown before it was asked. */
enum metrics_part { METRICS_TCP, METRICS_STORE, METRICS_SQUEUE, METRICS_PARTS };
void metrics_works(struct metrics *metrics, enum metrics_part part, bool works);

/* Records of this node that are lost, by its ledger, and that are on no disk yet. */
void metrics_records(struct metrics *metrics, long long lost, long long pending);

/* The text, "# EOF" at its end; allocated, the caller frees. NULL without memory. started: unix
 * time. */
char *metrics_text(const struct metrics *metrics, const struct metrics_profile *profile,
                   time_t started, time_t now);

#endif
