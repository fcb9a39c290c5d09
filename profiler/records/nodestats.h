/* nodestats.h: compares nodes by the bandwidth of their steps. */
#pragma once

#include <jansson.h>

#include "records/facts.h"

struct tccl_nodestats;

struct tccl_nodestats *tccl_nodestats_new(void); /* NULL if out of memory */
void tccl_nodestats_free(struct tccl_nodestats *stats);

/* A step with a ring of gbps > 0. Returns 0, or -1 if out of memory. */
int tccl_nodestats_ring(struct tccl_nodestats *stats, const struct tccl_facts *facts);

/* A step whose ring failed: counts for those of its nodes that its reason names ("n2: …"). Returns
 * 0, or -1 if out of memory. */
int tccl_nodestats_failed(struct tccl_nodestats *stats, const struct tccl_facts *facts);

/* [{"node", "steps", "share", "failed", "stands_out"}], at most that many: first those that stand
 * out, then the slowest; then nodes without a ring (share null), most failures first; ties by name.
 * steps: those with a ring; share: the mean over these of their bandwidth over the best of steps
 * with as many nodes and GPUs of the same kind, both alone: that others ran beside a step is no
 * matter of its nodes. stands_out: "slow": none of 5 steps or more had 0.95 of that best;
 * "failures": it is named by 3 steps or more, and in more than twice as large a part of its steps
 * than the other nodes are in theirs; "": neither. Can be called once. NULL if out of memory. */
json_t *tccl_nodestats_json(struct tccl_nodestats *stats, int most);
