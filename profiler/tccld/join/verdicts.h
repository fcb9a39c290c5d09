/* verdicts.h: what all nodes of a step say that NCCL built, one message per level of the tree: each
 * node adds its own word to those of the nodes below it, and node 0 puts the whole on record. */
#ifndef TCCL_VERDICTS_H
#define TCCL_VERDICTS_H

#include "tccld/net/connection.h"
#include "tccld/net/liveness.h"

enum {
    VERDICTS_MOST = 1024,     /* steps that are remembered */
    VERDICTS_LEVEL_MS = 3000, /* after the step's end here, or "differs": for each level below, */
    VERDICTS_PATIENCE_MS = 60000, /* for the others, after the first word of all, */
    VERDICTS_UPDATE_MS = 1000,    /* for another word to follow soon on one that was sent, */
    VERDICTS_RETRY_MS = 5000,     /* until the parent is tried again, */
    VERDICTS_ANSWER_MS = 20000,   /* for it to answer, */
    VERDICTS_KEEP_MS = 600000     /* for nodes on which the step ends later */
};

struct verdicts;

struct verdicts *verdicts_new(struct daemon *daemon); /* NULL without memory */
void verdicts_free(struct verdicts *verdicts);        /* NULL is fine */

/* A process of this node says so. TCCL_BUILT_NOTHING: a communicator was given the ring, the
 * verdict follows. lowest: rank in NCCL of those on this node, -1: not known; nccl: the version
 * that ran there, 0: not known. Of several words the highest counts. */
void verdicts_hear(struct daemon *daemon, const struct alive *alive, int rank, const char *text,
                   int lowest, int nccl);

/* The step has ended on this node; its plan file is still there. */
void verdicts_end(struct daemon *daemon, const struct tccl_step_key *key);
/* The same, but nobody has said that it has: a node that had not said what was built stays silent.
 */
void verdicts_gone(struct daemon *daemon, const struct tccl_step_key *key);

/* Handler of BUILT, of a node right below this one. */
request_handler verdicts_receive;

#endif
