/* plan.h: this node's part of the step's ring, as tccld wrote it (profiler/client/shim.md, "The
 * plan file"). */
#pragma once

#include "base/base.h"
#include "base/lines.h"
#include "base/plan-lines.h"
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
