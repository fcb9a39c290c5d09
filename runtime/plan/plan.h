/* plan.h: this node's part of the step's ring, as tccld wrote it (profiler/client/README.md, "The
 * plan file"). */
#ifndef SHIM_PLAN_H
#define SHIM_PLAN_H

#include "base/base.h"
#include "base/lines.h"
#include "chain/chain-text.h"

/* A chain by bus ids. A memory is told by the kernel's number of its NUMA node, not as in the text.
 */
struct shim_chain {
    struct tccl_named_chain path;
    shim_bus entry, exit;       /* of its NICs, when open */
    double gbps, baseline_gbps; /* GB/s; NCCL's own choice, 0: unknown */
    char source[SHIM_NAME];     /* model host cuda */
};

struct shim_plan {
    char folder[17]; /* 16 hex digits, the end of the name of the plan's folder: the step's own */
    char cluster[SHIM_NAME];
    uint32_t job, het_job, het_offset, step, restart;
    int64_t run;
    bool batch;       /* the step of a job script itself */
    char socket[108]; /* of tccld */
    uint32_t uid;
    uint8_t n_gpus;
    shim_bus gpus[SHIM_GPUS]; /* the step's GPUs on this node, rising */
    uint32_t step_gpus;       /* in the whole step; 0: unknown */
    uint32_t index, n_nodes;  /* this node's place */
    bool one_fabric;
    struct shim_chain chain;
};

enum { SHIM_PLAN_SIZE = TCCL_LINES_SIZE }; /* a plan file is at most so long */

/* Reads and checks a plan file; its folder's name must be that of the step it is for. parse:
 * without the folder, which is "" then. Returns 0, or -1 with why. */
int shim_plan_read(const char *path, struct shim_plan *plan, struct shim_why *why);
int shim_plan_parse(const char *text, size_t size, struct shim_plan *plan, struct shim_why *why);

/* Is it the plan of the step that this process is in? Compares the uids, and of
 * SLURM_JOB_ID, SLURM_STEP_ID and SLURM_RESTART_COUNT those that are set. Returns 0, or -1 with
 * why.
 */
int shim_plan_fits(const struct shim_plan *plan, struct shim_why *why);
/* Does a communicator of so many ranks hold all GPUs of the step? */
bool shim_plan_whole(const struct shim_plan *plan, int ranks);

/* Reads a chain out of tccld's answer to CHAIN. Returns 0; 1 with why where NCCL's own choice is as
 * good as any; or -1 with why. gpus: those asked for, which it must hold exactly. */
int shim_chain_parse(const char *text, size_t size, const shim_bus *gpus, int n, bool closed,
                     struct shim_chain *chain, struct shim_why *why);

/* The step's key, to be sent back. */
void shim_plan_put_key(const struct shim_plan *plan, struct tccl_line_writer *writer);

#endif
