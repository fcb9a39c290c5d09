/* plan.h: this node's part of the step's ring, as tccld wrote it (profiler/client/shim.md, "The
 * plan file"). */
#pragma once

#include "base/base.h"
#include "base/lines.h"
#include "chain/chain-text.h"

/* What NCCL's search says of its own rings or trees (struct ncclTopoGraph), before channels are
 * doubled for the communicator. */
struct shim_nominal {
    uint8_t pattern;                   /* NCCL's number: 4 ring; 1, 2, 3 trees */
    uint8_t channels;                  /* 0: unknown */
    double speed_intra, speed_inter;   /* GB/s of each channel */
    char type_intra[4], type_inter[4]; /* NCCL's words: LOC, PIX, PXB, PHB, SYS, NET, … */
};

/* What NCCL builds on its own, from one of its versions on: bandwidth over all nodes of the chain's
 * ring, and what its search says on this node. */
struct shim_baseline {
    int first;   /* the first such version, as ncclGetVersion counts */
    bool better; /* the chain is not to be used with it */
    double gbps; /* measured, GB/s; 0: unknown */
    struct shim_nominal ring, tree;
};
enum { SHIM_BASELINES = 16 };

/* The chain that trees take beside the ring, used both ways at once. */
struct shim_tree {
    double gbps;  /* GB/s each way; 0: none is planned */
    double along; /* the same of the first ring's own chain */
    char nic[TCCL_CHAIN_NIC];
    uint8_t order[SHIM_GPUS]; /* places in the first ring; the first two have the NIC */
};

/* A ring set: 1 to TCCL_CHAIN_RINGS chains by bus ids, over the same GPUs, all open or all closed,
 * that run at once. GPUs have their places in the first one's order. A memory is told by the
 * kernel's number of its NUMA node, not as in the text. */
struct shim_chain {
    struct tccl_named_rings rings;
    tccl_bus entry[TCCL_CHAIN_RINGS], exit[TCCL_CHAIN_RINGS]; /* of their NICs, when open */
    double gbps;                                              /* of all rings together, GB/s */
    char source[SHIM_NAME];                                   /* model host cuda */
    struct shim_tree tree;                                    /* when open */
    int n_baselines;
    struct shim_baseline baselines[SHIM_BASELINES]; /* ascending */
};

struct shim_plan {
    char folder[17]; /* 16 hex digits, the end of the name of the plan's folder: the step's own */
    char cluster[SHIM_NAME];
    TCCL_KEY_NUMBERS(TCCL_NUMBER_MEMBER_32)
    int64_t run;
    bool batch;       /* the step of a job script itself */
    bool of_launcher; /* found by shim_plan_of_launcher */
    char socket[108]; /* of tccld */
    /* Of the job's user, this node's place, the nodes, and the GPUs of the whole step (0: unknown)
     */
    TCCL_PLAN_NUMBERS(TCCL_NUMBER_MEMBER_32)
    uint8_t n_gpus;
    tccl_bus gpus[SHIM_GPUS]; /* the step's GPUs on this node, rising */
    bool agreed;              /* it is built by all nodes, or by none */
    bool untouched;           /* all is left to NCCL, groups, too: it is there to measure */
    bool unmeasured;          /* what collectives reach is not wanted */
    bool reads;               /* its rings read by P2P: so does all that the step's processes do */
    struct shim_chain chain;  /* rings.n 0: the plan is for groups of the GPUs alone */
};

enum { SHIM_PLAN_SIZE = TCCL_LINES_SIZE }; /* a plan is at most so long; its file may go on */

/* Reads and checks the plan at the beginning of a file; its folder's name must be that of the step
 * it is for. parse: without the folder, which is "" then. Returns 0, or -1 with why. */
int shim_plan_read(const char *path, struct shim_plan *plan, struct tccl_error *why);
int shim_plan_parse(const char *text, size_t size, struct shim_plan *plan, struct tccl_error *why);

/* Ranks that mpirun starts may have the environment of the job script, and TCCL_PLAN with it, while
 * the plan is that of the step in which mpirun has started its daemons. Its path, where path is
 * that of a job script's own plan (which need not be there) and the job has such a step on this
 * node. */
bool shim_plan_of_launcher(const char *path, char *found, size_t size);

/* Is it the plan of the step that this process is in? Compares the uids, and of
 * SLURM_JOB_ID, SLURM_STEP_ID and SLURM_RESTART_COUNT those that are set. Returns 0, or -1 with
 * why.
 */
int shim_plan_fits(const struct shim_plan *plan, struct tccl_error *why);
/* Does a communicator of so many ranks hold all GPUs of the step? */
bool shim_plan_whole(const struct shim_plan *plan, int ranks);

/* Reads a chain out of tccld's answer to CHAIN. Returns 0; 1 with why where NCCL's own choice is as
 * good as any; or -1 with why. gpus: those asked for, which it must hold exactly. */
int shim_chain_parse(const char *text, size_t size, const tccl_bus *gpus, int n, bool closed,
                     struct shim_chain *chain, struct tccl_error *why);

/* The place of a GPU in a ring of the chain, -1: it is not there. */
int shim_ring_find(const struct tccl_named_chain *ring, tccl_bus gpu);

/* Memories that a ring wants for buffers of a GPU's process (NUMA nodes); -1: none. */
struct shim_memories {
    int in, out; /* where it receives; where it sends to the network from */
};
struct shim_memories shim_ring_memories(const struct tccl_named_chain *ring, tccl_bus gpu);

/* What an NCCL of this version would build on its own; of an older one than all of them the first.
 * Where the plan says nothing of it, one with nothing known, never NULL. */
const struct shim_baseline *shim_chain_baseline(const struct shim_chain *chain, int version);

/* The step's key, to be sent back. */
void shim_plan_put_key(const struct shim_plan *plan, struct tccl_line_writer *writer);

/* ---- registry: shared memory of the step's processes on this node: who is in which communicator,
 * and what was decided for it. /dev/shm/tccl-<uid>-<folder>.<index> (several nodes can be on one
 * machine), mode 0600, sparse. Of the locks only that of
 * the table of entries is held by one process at a time; a process that is killed at any moment
 * leaves nothing that stops others. */

enum {
    SHIM_ENTRIES = 1024,
    SHIM_GRAPH_SIZE = 16384, /* longest graph file */
    SHIM_TOPO_SIZE = 16384   /* longest topology file */
};

/* What a rank tells of itself before it enters NCCL. */
struct shim_member {
    tccl_bus gpu;  /* SHIM_NO_BUS: could not be found out */
    int32_t rank;  /* in the communicator; -1 unknown (split) */
    int32_t color; /* of a split; 0 otherwise */
    int32_t nvml;  /* NVML's index of the GPU in this process, -1 unknown */
    uint32_t sees; /* which of plan->gpus NVML tells this process of, bit by bit */
    bool linked;   /* it does not see all of them, and its GPU has NVLink, or that is not known */
    uint32_t version; /* NCCL's, as ncclGetVersion tells it */
    uint64_t host;    /* hash of what NCCL takes for the host: NCCL_HOSTID or host name and boot id;
                         and /dev/shm's device */
    uint32_t user;    /* SHIM_USER_…: what the user has set */
    uint64_t nics;    /* shim_nics_settings */
    int32_t sm;       /* the GPU's compute capability (80: 8.0), -1 unknown */
    int32_t pid;
    uint64_t room;  /* bytes that its own limits leave to the process */
    uint64_t table; /* bytes that its NCCL takes for a moment to read a graph file */
    /* Known once NCCL asks. */
    int32_t buffers; /* enum shim_buffers */
    int32_t net;     /* enum shim_net */
};

/* NCCL_NET_DISABLE_INTRA in a process (net-intra). */
enum shim_net {
    SHIM_NET_OPEN, /* NCCL has not asked */
    SHIM_NET_OFF,  /* it is 1 */
    SHIM_NET_LEFT  /* NCCL has its own default */
};

/* Where a process' NCCL has its buffers in host memory, between processes. */
enum shim_buffers {
    SHIM_BUFFERS_FILES, /* in /dev/shm: they obey a memory policy */
    SHIM_BUFFERS_CUMEM, /* CUDA's, where NCCL is told (hook/shim-driver) */
    SHIM_BUFFERS_FIXED  /* CUDA's, where the driver says */
};

enum shim_decision { SHIM_UNDECIDED, SHIM_DECIDING, SHIM_USE, SHIM_ASIDE };

/* What was decided, written by the one who decides and read by all. */
struct shim_answer {
    struct shim_chain chain;
    int32_t ranks;                   /* of the communicator, -1 unknown */
    int32_t entry[TCCL_CHAIN_RINGS]; /* NCCL's numbers of the rings' NICs, -1: none */
    int32_t exit[TCCL_CHAIN_RINGS];
    int32_t locals;                 /* how many of them are proven to be all on this node, or 0 */
    bool whole;                     /* it holds all GPUs of the step */
    bool tree;                      /* the graph file has one */
    bool no_net;                    /* NCCL may not take NICs in place of host memory */
    bool moves;                     /* its buffers are not where NCCL has them by itself */
    bool no_gain;                   /* NCCL's own choice is as good as any chain */
    uint64_t memory;                /* bytes that NCCL takes in each rank to read the graph file */
    uint32_t graph_size, topo_size; /* 0: no such file */
    char graph[SHIM_GRAPH_SIZE], topo[SHIM_TOPO_SIZE];
};

struct shim_registry;
struct shim_entry;

/* Opens it, or makes it. One mapping for the process; NULL with why. */
struct shim_registry *shim_registry_open(const struct shim_plan *plan, struct tccl_error *why);

/* The entry with that key (not 0), for one more rank; made if it is not there. expected: so many
 * ranks will come for it in any case, 0: unknown. NULL: there is no room, which is from then on so
 * for all new ones. */
struct shim_entry *shim_registry_entry(struct shim_registry *registry, uint64_t key, int expected);
/* That rank is done with it: its communicator is gone on this rank. What no rank has any more
 * makes room for others. entry may be NULL. */
void shim_registry_drop(struct shim_registry *registry, struct shim_entry *entry);
/* Has a rank found no room? Then who has an entry are not all that there are. */
bool shim_registry_closed(const struct shim_registry *registry);

/* Adds a member. Returns its place, or -1: there are too many, or it was decided without it. */
int shim_entry_join(struct shim_entry *entry, const struct shim_member *member);
/* The rank of the member at that place, which is known only now. */
void shim_entry_set_rank(struct shim_entry *entry, int place, int rank);
/* Copies the members, at most SHIM_GPUS * 2, in the order of their GPUs. Returns how many. */
int shim_entry_members(const struct shim_entry *entry,
                       struct shim_member members[static SHIM_GPUS * 2]);

/* NCCL has asked for the rank at that place, and the answer will reach it. */
void shim_entry_asked(struct shim_entry *entry, int place, enum shim_buffers buffers,
                      enum shim_net net);
/* Waits until that is so for n ranks. Returns 0, or -1: not before deadline_us (shim_now_us), or
 * the entry is ASIDE meanwhile. */
int shim_entry_await(const struct shim_entry *entry, int n, int64_t deadline_us);

/* True for exactly one caller of all processes: it decides, and must call shim_entry_decide. */
bool shim_entry_begin(struct shim_entry *entry);
/* Where it is put: written only. */
struct shim_answer *shim_entry_answer(struct shim_entry *entry);
/* A copy of it. False: it is not what a decision leaves, somebody has written to the file. */
bool shim_entry_read(const struct shim_entry *entry, struct shim_answer *answer);
/* SHIM_USE or SHIM_ASIDE. Returns what stands: ASIDE if others have given up waiting. why: of
 * ASIDE, or that not all nodes build all rings; else NULL. It is kept for the log. */
enum shim_decision shim_entry_decide(struct shim_entry *entry, enum shim_decision decision,
                                     const struct tccl_error *why);
/* Whoever finds it undecided can make it ASIDE, before or in place of a decision; too late if it is
 * SHIM_USE. Returns what stands. */
enum shim_decision shim_entry_aside(struct shim_entry *entry, const struct tccl_error *why);
enum shim_decision shim_entry_stands(const struct shim_entry *entry);
/* What stands; waits for one that decides until deadline (shim_now_us), then makes it ASIDE. */
enum shim_decision shim_entry_wait(struct shim_entry *entry, int64_t deadline_us);
void shim_entry_why(const struct shim_entry *entry, struct tccl_error *why);
/* So many local members are proven to be all of this communicator's on this node; 0: not proven.
 * Children rely on it, whatever was decided. */
void shim_entry_prove(struct shim_entry *entry, int locals);
int shim_entry_proven(const struct shim_entry *entry);

/* A process that has the shim and works on that GPU of the step. Is there a living one for each of
 * them? */
void shim_registry_claim_gpu(struct shim_registry *registry, tccl_bus gpu);
bool shim_registry_all_claimed(const struct shim_registry *registry, const tccl_bus *gpus, int n);

/* Do all of the step's processes here read by P2P? Two ends of which one reads and one writes lose
 * data. Settled once, for as long as the file is there: yes if each of those GPUs is claimed. Until
 * then false; with now (NCCL asks) it is settled as no. */
bool shim_registry_reads(struct shim_registry *registry, const tccl_bus *gpus, int n, bool now);
/* A process will not: no, unless it is settled. */
void shim_registry_keep_writing(struct shim_registry *registry);

/* A node of the step was not heard when all had to say whether they build all of its rings: no
 * communicator waits for that again. */
void shim_registry_set_unheard(struct shim_registry *registry);
bool shim_registry_unheard(const struct shim_registry *registry);
/* Has this node's tccld left the last question for a group's chain without an answer in time? */
void shim_registry_set_silent(struct shim_registry *registry, bool silent);
bool shim_registry_silent(const struct shim_registry *registry);

/* NCCL's buffers that are files in /dev/shm: data loaders live there, too, so rings may take a
 * quarter of what was free when the step began; who comes first says how much that is. */
void shim_registry_begin(struct shim_registry *registry, uint64_t free);
/* So many bytes for the entry, until all of its ranks have dropped it, or are gone. Returns 0, or
 * -1 with why: there is no room for them. */
int shim_registry_charge(struct shim_registry *registry, struct shim_entry *entry, uint64_t bytes,
                         struct tccl_error *why);

/* Memory that ranks take for a moment, in all communicators that start at the same time: bytes
 * more, if the total is at most left. Returns whether they were added. */
bool shim_registry_reserve(struct shim_registry *registry, uint64_t bytes, uint64_t left);
/* Some of those are no longer needed. What killed processes had reserved stays so. */
void shim_registry_release(struct shim_registry *registry, uint64_t bytes);

/* Counts those that are done with their verdict. verdict: enum shim_verdict. The last of the
 * entry's members gets true, and *worst the worst of all with its text: the first one's, or of
 * those that begin with a digit ("2 of 3 rings") the largest one's. */
bool shim_entry_done(struct shim_entry *entry, int members, int verdict, const char *text,
                     int *worst, char worst_text[static 256]);
