/* nodestats.h: compares nodes by the bandwidth of their steps. */
#ifndef TCCL_NODESTATS_H
#define TCCL_NODESTATS_H

#include <jansson.h>

#include "records/facts.h"

struct tccl_nodestats;

struct tccl_nodestats *tccl_nodestats_new(void); /* NULL if out of memory */
void tccl_nodestats_free(struct tccl_nodestats *stats);

/* A step with a ring of gbps > 0. Returns 0, or -1 if out of memory. */
int tccl_nodestats_ring(struct tccl_nodestats *stats, const struct tccl_facts *facts);

/* A step that fell back: counts for those of its nodes that its reason names ("n2: …"). Returns 0,
 * or -1 if out of memory. */
int tccl_nodestats_fallback(struct tccl_nodestats *stats, const struct tccl_facts *facts);

/* [{"node", "steps", "share", "failed"}], at most that many, the slowest first; then nodes with
 * fallbacks only (share null), most first; ties by name. steps: those with a ring;
 * share: the mean over these of their bandwidth over the best of steps with as many nodes and GPUs,
 * both alone: that others ran beside a step is no matter of its nodes. Can be called once. NULL if
 * out of memory. */
json_t *tccl_nodestats_json(struct tccl_nodestats *stats, int most);

#endif
