/* pending.h: the inits of this process that are under way, and which of them a thread works for. */
#ifndef SHIM_PENDING_H
#define SHIM_PENDING_H

#include "hook/decide.h"
#include "nccl/memory.h"

enum { SHIM_INITS = 64 };
#define SHIM_GRAPH_NAME "tccl-graph"
#define SHIM_TOPO_NAME "tccl-topology"

/* ENDING: one thread is about to forget it, and nobody else will. */
enum shim_state { SHIM_FREE, SHIM_WAITING, SHIM_CLAIMED, SHIM_ENDING };

/* One rank's init. From shim_pending_add until shim_pending_forget. */
struct shim_init {
    int state; /* enum shim_state */
    struct shim_comm comm;
    struct shim_entry *entry;
    tccl_bus gpu;
    int rank, place;    /* rank -1: unknown; place in the entry */
    const void *handle; /* of the communicator, NULL: not known */
    int added_by;       /* thread */
    bool called;        /* the wrapper has not returned */

    /* By the thread that works for it. */
    int claimed_by;
    enum shim_decision decision;
    int graphs;            /* questions for the graph file */
    int graph_fd, topo_fd; /* memory files of the names above, made ahead; 0: none */
    char graph_path[40], topo_path[40];
    struct shim_policy policy;
    struct tccl_error memory; /* its buffers are not on the chain's memory; "": they are */
};

/* How many there are. While there are none wrappers of collectives do nothing. */
extern int shim_pending_count;

/* Takes note of an init whose entry was joined; copies what it is given. If another one on that GPU
 * has not been claimed, both become ASIDE: a thread's device would not tell them apart. Returns
 * NULL if there is no room. */
struct shim_init *shim_pending_add(const struct shim_init *init);

/* While a wrapper runs, what its thread asks is for this init; NULL: from now on for none. */
void shim_pending_here(struct shim_init *init);

/* The init that the calling thread has claimed; NULL: none. */
const struct shim_init *shim_pending_claimed(void);

/* The init that the calling thread works for, now claimed; NULL: none, or it can't be told. fresh:
 * NCCL has begun with a communicator, what the thread did before is over. */
struct shim_init *shim_pending_claim(bool fresh);

/* It is over; closes its files. */
void shim_pending_forget(struct shim_init *init);
/* Its communicator is about to be destroyed: once that is done the caller forgets it. NULL: there
 * is none. */
struct shim_init *shim_pending_take(const void *handle);

/* Forgets those that were put aside before their questions, in a group, and that NCCL's log says
 * are complete. */
void shim_pending_sweep(void);

/* The next one after another (NULL: the first) that is under way. Others may be at it. */
struct shim_init *shim_pending_next(struct shim_init *after);

/* The next one after another (NULL: the first) that was claimed, has no wrapper above it, and whose
 * thread has ended or is this one: NCCL is done with it. Each is returned once in all threads: the
 * caller forgets it. */
struct shim_init *shim_pending_over(struct shim_init *after);

#endif
