/* achieved.h: what steps have achieved, by the figures on record: rings beside NCCL's own, and
 * where communication is a small part of the time. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "records/facts.h"

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
