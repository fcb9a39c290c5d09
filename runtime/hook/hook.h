/* hook.h: the files of this folder, one after the other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loaded.h"
#include "nccl/shim-nccl.h"
#include "plan/plan.h"
#include "verify/verify.h"

/* ---- shim-process ---- */

/* What this process knows once it has called NCCL in a step with a ring. */

struct shim_process {
    struct shim_plan plan;
    struct shim_registry *registry;
    uint64_t host;    /* member.host */
    uint32_t version; /* of the NCCL that was called first */
};

/* A wrapper of an NCCL of that version was called. Returns the process, or NULL: it has no plan
 * that fits, which was logged at the first time. A child of fork begins anew. */
const struct shim_process *shim_process_arm(uint32_t version);
/* What shim_process_arm returned before, in this very process; NULL if it was not called. No lock.
 */
const struct shim_process *shim_process_armed(void);

/* NCCL asks: does P2P read in this process, unless the user says otherwise? By the step's plan,
 * where all of its processes here can be told (shim_registry_reads). False before arm. */
bool shim_process_reads(void);

/* What the user has set; read at the first question for it. */
uint32_t shim_process_user(void);
/* A communicator is made and no wrapper has been called in this program: the log says so, once. */
void shim_process_bypassed(void);

/* ---- ask ---- */

/* This node's tccld, over its unix socket (profiler/client/shim.md: CHAIN, CONFIRM, ACHIEVED,
 * AGREE). Never waits beyond a deadline. */

enum { SHIM_CONFIRM_US = 20000 }; /* what telling may take at the most */

/* The best chain of a subset of the step's GPUs on this node. Returns 0; 1 with why: NCCL's own
 * choice is as good; -1 with why: tccld has none, can't be asked, or did not answer in time. */
int shim_ask_chain(const struct shim_plan *plan, const tccl_bus *gpus, int n, bool closed,
                   int64_t deadline_us, struct shim_chain *chain, struct tccl_error *why);

/* Tells what became of a communicator. Does not wait for the answer longer than to deadline.
 * nccl: its version, 0: not known; ranks: of the communicator, gpus: those of them on this node,
 * lowest: of these, -1 unknown; whole: it holds all GPUs of the step. Returns 0, or -1 with why. */
int shim_ask_confirm(const struct shim_plan *plan, enum shim_verdict verdict, const char *text,
                     uint32_t nccl, int ranks, bool whole, int gpus, int lowest,
                     int64_t deadline_us, struct tccl_error *why);

/* Tells what a rank has measured in collectives over all of the step's GPUs; steered: with the
 * plan's rings. Returns 0, or -1 with why. */
struct shim_figures;
int shim_ask_achieved(const struct shim_plan *plan, const struct shim_figures *figures, int ranks,
                      int rank, bool steered, uint32_t nccl, int64_t deadline_us,
                      struct tccl_error *why);

/* Tells whether this node builds all of the plan's rings in a communicator, and learns whether all
 * nodes do. comm: its key, which all nodes have. Returns 1; 0 with why: one does not; -1 with why:
 * one has not said so in time, or tccld can't be asked, or did not answer before deadline. */
int shim_ask_agree(const struct shim_plan *plan, uint64_t comm, bool will, int64_t deadline_us,
                   struct tccl_error *why);

/* ---- parent-comms ---- */

/* Communicators of this process that children can be made of. */

enum { SHIM_PARENTS = 1024 };

/* Of one rank's handle. */
struct shim_parent {
    const void *handle;
    uint64_t key;
    struct shim_entry *entry;
    struct shim_entry *roll; /* of a split: where ranks of all colors are. Like entry it is held by
                                this rank until the communicator is gone (plan.h) */
    int ranks, rank;         /* -1: unknown */
    tccl_bus gpu;
    unsigned splits, shrinks;       /* children so far */
    bool split_share, shrink_share; /* its children use its buffers */
};

/* Takes note of a communicator. One with the same handle is gone: it is copied to gone. Returns 0;
 * 1: there is one in gone; or -1: there is no room. */
int shim_parent_add(const struct shim_parent *parent, struct shim_parent *gone);
/* Copies it and counts one more child of that kind. Returns 0, or -1: not known. */
enum shim_kind { SHIM_SPLIT, SHIM_SHRINK };
int shim_parent_child(const void *handle, enum shim_kind kind, struct shim_parent *parent);
/* Copies what was known of it to gone. Returns 0, or -1: nothing. */
int shim_parent_forget(const void *handle, struct shim_parent *gone);

/* ---- decide ---- */

/* What all ranks of a communicator on this node are to be given: decide.c, which has one of them
 * settled for all (shim-settle.c) within what the node has left (budget.c). */

/* What the asking rank knows of its communicator. */
struct shim_comm {
    uint64_t key; /* in the registry */
    int ranks;    /* -1: unknown (a split of a parent over several nodes) */
    int color;    /* of a split */
    int expected; /* local members that must have joined; -1: unknown, to be proven otherwise */
    struct shim_entry *roll;     /* of a split: all local ranks of the parent; else NULL */
    int roll_locals, roll_ranks; /* how many the parent has on this node, and in all */
    struct shim_nccl nccl;
};

/* Is the set of members complete and consistent, which chain, which files? Fills answer, and apart
 * with the graph file where not all nodes build several rings. Returns 0, or -1 with why. members:
 * those of this communicator. */
int shim_decide(const struct shim_plan *plan, struct shim_registry *registry,
                const struct shim_comm *comm, const struct shim_member *members, int n,
                struct shim_answer *answer, struct shim_text *apart, struct tccl_error *why);

/* Decides for the entry, if nobody has; waits for who does. Returns SHIM_USE (the answer is in the
 * entry) or SHIM_ASIDE; why it is ASIDE is logged once. */
enum shim_decision shim_settle(const struct shim_plan *plan, struct shim_registry *registry,
                               struct shim_entry *entry, const struct shim_comm *comm);
/* Makes the entry ASIDE, which is logged once; too late if it is SHIM_USE. Returns what stands. */
enum shim_decision shim_settle_aside(struct shim_entry *entry, const struct shim_comm *comm,
                                     const struct tccl_error *why);

/* Do the limits of the processes leave room for a graph file, for which NCCL takes memory for a
 * moment? Ranks of one process may read theirs at the same time. Returns 0, or -1 with why. */
int shim_budget_limits(const struct shim_member *members, int n, struct tccl_error *why);
/* Takes answer->memory for each of the n ranks of a communicator, also beside others that are about
 * to read their file and have not touched it yet (shim_registry_release gives it back); and room
 * for buffers that are files in /dev/shm. Returns 0, or -1 with why: it is left alone. */
int shim_budget_take(struct shim_registry *registry, struct shim_entry *entry,
                     const struct shim_answer *answer, const struct shim_member *members, int n,
                     struct tccl_error *why);

/* ---- members ---- */

/* The ranks of a communicator on this node, in the order of their GPUs. Are they as a chain needs
 * them? */

/* Are these all of its ranks on this node, and alike? Returns 0, or -1 with why. */
int shim_members_check(const struct shim_plan *plan, const struct shim_registry *registry,
                       const struct shim_comm *comm, const struct shim_member *members, int n,
                       struct tccl_error *why);

/* Are there GPUs of the communicator that some of its ranks don't see, as NVML hides those of other
 * tasks? They may then have equal numbers. All GPUs are of the plan. */
bool shim_members_hidden(const struct shim_plan *plan, const struct shim_member *members, int n);

/* Does NCCL take P2P up to PXB in all processes? */
bool shim_members_pxb(const struct shim_member *members, int n);

/* Does NCCL by itself send directly from a ring's last GPU to a NIC that is near? linked: NVLink
 * between the members. */
bool shim_members_send_directly(const struct tccl_named_chain *path,
                                const struct shim_member *members, int n,
                                bool linked[SHIM_GPUS][SHIM_GPUS]);

/* Can all members' processes have what the answer's chain needs beside its files? Once all have
 * asked. Returns 0, or -1 with why. */
int shim_members_can(const struct shim_answer *answer, const struct shim_member *members, int n,
                     struct tccl_error *why);

/* ---- pending ---- */

/* The inits of this process that are under way, and which of them a thread works for. */

enum { SHIM_INITS = 64 };
#define SHIM_GRAPH_NAME "tccl-graph"
#define SHIM_TOPO_NAME "tccl-topology"

/* ENDING: one thread is about to forget it, and nobody else will. */
enum shim_state { SHIM_FREE, SHIM_WAITING, SHIM_CLAIMED, SHIM_ENDING };

/* One rank's init. From shim_pending_add until shim_pending_forget. */
struct shim_init {
    int state; /* enum shim_state */
    struct shim_comm comm;
    struct shim_entry *entry; /* NULL: it is given nothing, whatever its thread asks */
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

/* Takes note of an init (its entry was joined); copies what it is given. If another one on that GPU
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

/* ---- net-intra ---- */

/* NCCL_NET_DISABLE_INTRA=1. A chain between nodes that goes through host memory between two GPUs
 * which both have a NIC needs it: NCCL would take the network there. NCCL asks for it when it
 * computes the paths of a process' first communicator, and keeps the answer for all others. So it
 * is given only to a communicator that needs it, of all of the step's GPUs (ends of which one has
 * it and one has not never meet), if it is the first one, and others of its processes that come
 * later notice it; where NCCL has gone without it such chains are left alone. */

/* What NCCL has in this process, as this init finds it at its first question. */
enum shim_net shim_net_intra(const struct shim_init *init, uint32_t user);

/* The answer to the question of the NCCL that begins at start. init: for which it asks; NULL: for
 * none that is known. */
const char *shim_net_intra_answer(const struct shim_init *init, uintptr_t start);

/* NCCL has asked before the shim knew of it. */
void shim_net_intra_early(void);

/* ---- driver ---- */

/* Where NCCL's bounce buffers lie, with CUDA's own host memory (NCCL from 2.24 on, drivers from
 * CUDA 12.6 on). NCCL asks the driver which NUMA node a GPU is at, and has them there: no memory
 * policy changes that. The CUDA runtime gets the driver's functions by dlsym of cuGetProcAddress,
 * and NCCL has cuDeviceGetAttribute from it. So dlsym hands NCCL and the runtime a wrapper. It
 * changes one answer: in a thread that works for a communicator with a ring, the node is that of
 * the memory policy which the shim has set for it (nccl/memory). */

/* What our dlsym answers to that name instead; NULL: what it is without us. */
void *shim_driver_lookup(void *handle, const char *name, const void *caller);

/* Does that NCCL ask the driver through us? Known once it has made a communicator's first steps. */
bool shim_driver_reached(const struct shim_nccl *nccl);
/* Has the driver no virtual memory management (cuMem)? False, too, if nobody has asked. */
bool shim_driver_lacks_cumem(void);

/* ---- question ---- */

/* What NCCL is answered when it asks for its environment. */

/* The wrapper of ncclGroupEnd runs in this thread: it calls shim_question_finish_over at the end.
 */
extern __thread int shim_in_group_end;
extern __thread int shim_group_depth; /* of this thread's groups */

/* getenv as asked from caller (its return address). errno stays. */
char *shim_question(const char *name, const void *caller);

/* NCCL is done with an init that was claimed: forgets it, and looks after its communicator
 * (steered). */
void shim_question_finish(struct shim_init *init);
/* The same of all that are over. */
void shim_question_finish_over(void);

/* ---- steered ---- */

/* Communicators that were given a ring, until it is known what NCCL built. With cuMem (drivers from
 * CUDA 12 on, NCCL from 2.22 on) nothing is connected at the end of the init: the verdict is taken
 * after the collective that connects the ring, at the latest when the communicator or the process
 * ends. */

enum { SHIM_STEERED = 64 };

/* How many await their verdict. While there are none wrappers of collectives do nothing. */
extern int shim_steered_count;

/* NCCL is done with its init: the verdict is taken now, or later. */
void shim_steered_begin(const struct shim_init *init);

/* This thread begins a collective. all_reduce: its bytes; 0: another one. */
void shim_steered_collective(const void *handle, size_t all_reduce);
/* The call that starts those that it has begun has returned: the collective's own, or the end of
 * its group. UNDER_WAY: NCCL goes on by itself. FAILED: none of them was run. */
enum shim_started { SHIM_STARTED, SHIM_UNDER_WAY, SHIM_FAILED };
void shim_steered_collectives_done(enum shim_started started);

/* Looks after all of them. */
void shim_steered_look(void);
/* It is about to be destroyed; NULL: all are, with the process. */
void shim_steered_end(const void *handle);

/* ---- shim-achieved: what large collectives over all of the step's GPUs reach, with the ring and
 * without it. A few of them stand between two of CUDA's events on the caller's stream; nobody waits
 * for these. */

enum {
    SHIM_MEASURED = 8,      /* communicators of a process, at most */
    SHIM_SIZES = 3,         /* from 4 MiB, 16 MiB, 64 MiB on */
    SHIM_FEW = 8,           /* samples of a size, for it to be told before a smaller one */
    SHIM_SAMPLES = 128,     /* of a size, the last ones */
    SHIM_SAMPLED_FIRST = 32 /* then at most one a second */
};

/* What one rank has measured of large collectives. Bandwidths are of the bus, as nccl-tests have
 * it, GB/s. */
struct shim_figures {
    uint64_t from;    /* of those of so many bytes and more: 4, 16, 64 MiB; the largest with FEW */
    unsigned samples; /* of these, so far */
    double best, median; /* what the best tenth of the last ones reaches, and half of them */
    uint64_t bytes; /* of all its collectives, of any size, as nccl-tests count them; not of those
                       in CUDA graphs, whose launches nobody sees */
    unsigned captured; /* collectives in graphs */
    double share; /* of the time since the end of its first large one that they took; -1: not known,
                     as where some are in graphs */
    const char *algorithm; /* by which these samples went: ring, tree, either; NULL: not known */
};

/* Is a communicator measured? While none is the wrappers of collectives do nothing for it. */
extern int shim_achieved_count;

/* A communicator over all GPUs of the step is there. Not measured where the user has a profiler, or
 * set TCCL_ACHIEVED=0. rank: -1 where it is not known. gpu: its own. entry: its place in the
 * registry, which says whether it was steered, held until it has ended; NULL: it was not. nccl: its
 * version. */
void shim_achieved_begin(const void *handle, int ranks, int rank, tccl_bus gpu,
                         const struct shim_entry *entry, uint32_t nccl);
/* It is about to be destroyed, or one with its handle has been made; NULL: all are, with the
 * process. Tells tccld. by_cuda: CUDA may be called. */
void shim_achieved_end(const void *handle, bool by_cuda);

/* A collective of bytes of one rank, as the caller counts them. start: before NCCL is called;
 * returns what stop is given after it, NULL: it is not sampled. OTHER: counted only. */
enum shim_collective { SHIM_ALL_REDUCE, SHIM_GATHER /* or reduce-scatter */, SHIM_OTHER };
struct shim_sample *shim_achieved_start(const void *handle, enum shim_collective kind, size_t bytes,
                                        void *stream);
/* One within this thread's group; and before its end is called, which launches all of it: as start,
 * with the stream for stop. A group is one sample, of the size of its largest collective, if all of
 * it are all-reduces, gathers and reduce-scatters of one communicator on one stream. */
void shim_achieved_add(const void *handle, enum shim_collective kind, size_t bytes, void *stream);
struct shim_sample *shim_achieved_start_group(void **stream);
/* good: NCCL has launched it. */
void shim_achieved_stop(struct shim_sample *sample, void *stream, bool good);
