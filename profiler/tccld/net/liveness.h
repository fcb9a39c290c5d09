/* liveness.h: the steps that have a plan on this node, also one for groups alone, for those who ask
 * about one over the unix socket. What is not in memory (tccld was started again) is read from the
 * plan file. */
#ifndef TCCL_ALIVE_H
#define TCCL_ALIVE_H

#include "client/client.h"
#include "client/hostlist.h"
#include "client/outcome.h"
#include "machine/machine.h"
#include "tccld/main/daemon.h"
#include "tccld/net/connection.h"

enum {
    ALIVE_MOST = 1024,      /* kept in memory */
    ALIVE_QUESTIONS = 1024, /* of one step, answered within a second */
    ALIVE_NODES = 1024
};

struct alive {
    struct tccl_step_key key;
    uid_t uid;
    int index; /* of this node */
    int64_t start;
    int n_nodes;
    char parent[TCCL_HOST_NAME + 1]; /* in the tree; "" of node 0 */
    char nodes[ALIVE_NODES];         /* all names, in bracket form; "" if that is longer */
    bool ring;                       /* for all of its GPUs; else for groups of them alone */
    bool partial;                    /* node 0 has heard that a node is without its plan */
    bool hidden;                     /* its tasks here see only their own GPUs */
    int n_gpus;
    tccl_bus gpus[TCCL_MAX_GPUS];
    int n_baselines;
    struct tccl_outcome_baseline baselines[TCCL_OUTCOME_BASELINES]; /* as in PLAN */
};

struct alives;

struct alives *alives_new(void);        /* NULL without memory */
void alives_free(struct alives *alive); /* NULL is fine */

/* The step of that key; borrowed until the next call. NULL: it has no plan here. */
struct alive *alives_find(struct daemon *daemon, const struct tccl_step_key *key);
/* Its plan has been written anew, or is about to go. */
void alives_forget(struct daemon *daemon, const struct tccl_step_key *key);

/* The step that a question's key names, if the other side may ask about it and has not asked too
 * often. NULL with err. */
struct alive *alives_asked(struct daemon *daemon, const struct connection *connection,
                           const struct tccl_lines *question, struct tccl_error *err);

#endif
