/* summary.h: what a summary of records is made of. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "records/store.h"

/* ---- series: a series of numbers, and its percentiles. */

struct tccl_series {
    double *values;
    size_t count, room;
    double sum;
};

/* All zeros is an empty one; tccl_series_clear frees. Returns 0, or -1 if out of memory. */
int tccl_series_add(struct tccl_series *series, double value);
void tccl_series_clear(struct tccl_series *series);

/* The smallest value that at least that fraction (0 to 1) of all do not exceed. Reorders the
 * series, which must not be empty. */
double tccl_series_rank(struct tccl_series *series, double part);
/* The median; for an even count the mean of the middle two. */
double tccl_series_median(struct tccl_series *series);

/* ---- texts: interned texts, numbered from 0 in order of appearance, all in one allocation. */

struct tccl_texts {
    size_t *entries; /* where in bytes each begins */
    int count;
    size_t room;
    size_t *slots; /* the same + 1, below bits of its hash, 0: empty; n_slots is a power of two */
    size_t n_slots;
    char *bytes;
    size_t used, bytes_room;
};

/* The number of a text of that size under a tag; a new text gets the next number. -1 if out of
 * memory. All zeros is an empty set; tccl_texts_clear frees. */
int tccl_texts_number(struct tccl_texts *texts, const char *text, size_t size, uint64_t tag);
/* A text by its number, terminated by NUL; valid until the next one is added. */
const char *tccl_texts_get(const struct tccl_texts *texts, int number);
void tccl_texts_clear(struct tccl_texts *texts);

/* ---- welch: the difference of two means, with its interval of confidence, of few values each. */

/* All zeros is one without values. */
struct tccl_sample {
    int64_t count;
    double mean, squares; /* squares: the sum of squared deviations from the mean */
};

/* Welford, Technometrics 4 (1962): no difference of large sums. */
void tccl_sample_add(struct tccl_sample *sample, double value);

/* Half the width of the interval of 95 % about the difference of the means, by Welch's t
 * (Biometrika 34, 1947: the two need not vary equally much), with Satterthwaite's degrees of
 * freedom rounded down, which makes it wider. Infinite where one of them has less than two values.
 */
double tccl_welch(const struct tccl_sample *a, const struct tccl_sample *b);

/* The t that 95 % of Student's distribution are within, both ways; freedom: 1 and more. */
double tccl_student(int freedom);

/* ---- nodestats: compares nodes by the bandwidth of their steps. */

struct tccl_nodestats;

struct tccl_nodestats *tccl_nodestats_new(void); /* NULL if out of memory */
void tccl_nodestats_free(struct tccl_nodestats *stats);

/* A step with a ring of gbps > 0. Returns 0, or -1 if out of memory. */
int tccl_nodestats_ring(struct tccl_nodestats *stats, const struct tccl_facts *facts);

/* A step whose ring failed: counts for the node on which it did, if one is known. Returns 0, or -1
 * if out of memory. */
int tccl_nodestats_failed(struct tccl_nodestats *stats, const struct tccl_facts *facts);

/* [{"node", "steps", "share", "failed", "stands_out"}], at most that many: first those that stand
 * out, then the slowest; then nodes without a ring (share null), most failures first; ties by name.
 * steps: those with a ring; share: the mean over these of their bandwidth over the best of steps
 * with as many nodes and GPUs of the same kind, both alone: that others ran beside a step is no
 * matter of its nodes. stands_out: "slow": none of 5 steps or more had 0.95 of that best;
 * "failures": it is named by 3 steps or more, and in more than twice as large a part of its steps
 * than the other nodes are in theirs; "": neither. Can be called once. NULL if out of memory. */
json_t *tccl_nodestats_json(struct tccl_nodestats *stats, int most);

/* ---- achieved: what steps have achieved, by the figures on record: rings beside NCCL's own, and
 * where communication is a small part of the time. */

struct tccl_achieved;

struct tccl_achieved *tccl_achieved_new(void); /* NULL if out of memory */
void tccl_achieved_free(struct tccl_achieved *achieved);

/* Which facts of a row are looked at. */
#define TCCL_ACHIEVED_LOOKS                                                                        \
    (TCCL_LOOK_SHOWN | TCCL_LOOK(n_nodes) | TCCL_LOOK(gpus) | TCCL_LOOK(neighbours) |              \
     TCCL_LOOK(later) | TCCL_LOOK(gbps) | TCCL_LOOK(baseline_gbps) | TCCL_LOOK(uid) |              \
     TCCL_LOOK(nodes) | TCCL_LOOK(job) | TCCL_LOOK(account) | TCCL_LOOK(node_class) |              \
     TCCL_LOOK(achieved_with) | TCCL_LOOK(achieved_from) | TCCL_LOOK(achieved_gbps) |              \
     TCCL_LOOK(nccl_gbps) | TCCL_LOOK(sent_bytes) | TCCL_LOOK(sent_share))

/* A step that was measured: of a ring that NCCL built, or of NCCL's own where no ring was given, by
 * a trial, say. Where the user has set up NCCL, or figures can't be true (tccl_achieved_share), it
 * does not count. Returns 0, or -1 with err: out of memory. */
int tccl_achieved_count(struct tccl_achieved *achieved, const struct tccl_facts *facts,
                        struct tccl_error *err);

/* "achieved" of profiler/client/README.md, SUMMARY. Can be called once. NULL if out of memory. */
json_t *tccl_achieved_json(struct tccl_achieved *achieved);
