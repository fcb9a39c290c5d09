/* announce.h: what prologs say of their jobs' GPUs on this node before a step starts. It is a hint
 * for a step that has begun on other nodes and not yet here: what this node will most probably join
 * with. Whether it does is seen when the JOIN comes. */
#ifndef TCCL_ANNOUNCE_H
#define TCCL_ANNOUNCE_H

#include "client/key.h"
#include "client/step-fields.h"

enum {
    ANNOUNCES_MOST = 64 /* jobs with GPUs of this node; then the oldest goes */
};

struct announces;

struct announces *announces_new(void);            /* NULL without memory */
void announces_free(struct announces *announces); /* NULL is fine */

/* Takes an ANNOUNCE in, in place of what its job announced before; *key is then its key. Returns 0,
 * or -1 with err. */
int announces_put(struct announces *announces, const json_t *message, struct tccl_step_key *key,
                  struct tccl_error *err);
/* The job has ended on this node. key: of any step of it. */
void announces_end(struct announces *announces, const struct tccl_step_key *key);

/* Has a step, on this node, just the nodes and the GPUs that its job has announced? Then its terms:
 * what the JOINs of all its nodes have in common, as MERGE and CALL carry it (a new reference).
 * Else NULL. */
json_t *announces_terms(const struct announces *announces, const struct tccl_step *message);

/* The JOIN that this node, node of n_nodes, would send for a step with these terms, by what the job
 * has announced here. NULL: nothing announced, or something else. */
struct tccl_step *announces_join(const struct announces *announces, const struct tccl_step_key *key,
                                 int node, int n_nodes, int timeout_ms, const json_t *terms);

/* Has the job announced something else than a JOIN of it says? The announcement comes from slurmd,
 * what the JOIN says of partition and account from the step's environment, which is the user's.
 * They are then as announced, and a join that claims others has a reason. Nothing announced:
 * nothing changes. */
void announces_correct(const struct announces *announces, struct tccl_step *join);

/* Is a JOIN what stood in for it? Returns NULL, or how it differs. */
const char *announce_differs(const struct tccl_step *announced, const struct tccl_step *join);

#endif
