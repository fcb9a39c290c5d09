/* plan.h: this node's part of the step's ring, as tccld wrote it (profiler/client/README.md, "The
 * plan file"). */
#ifndef SHIM_PLAN_H
#define SHIM_PLAN_H

#include "base/base.h"

enum shim_edge_kind { SHIM_P2P_WRITE, SHIM_P2P_READ, SHIM_BOUNCE };

struct shim_edge {
    uint8_t kind; /* enum shim_edge_kind */
    int16_t node; /* NUMA node (the kernel's number) of a bounce's memory, else -1 */
};

/* Where an open chain meets the network. */
struct shim_end {
    char nic[SHIM_NAME]; /* "mlx5_0" */
    shim_bus bus;
    bool gpudirect;
    int16_t node; /* of the memory used; -1 with GPUDirect */
};

/* As in pathfind/chain/chain.h, by bus ids. Closed: edges[n - 1] leads back to gpus[0], no ends. */
struct shim_chain {
    uint8_t n;
    bool closed;
    shim_bus gpus[SHIM_GPUS];
    struct shim_edge edges[SHIM_GPUS];
    struct shim_end entry, exit;
    double gbps, baseline_gbps; /* GB/s; NCCL's own choice, 0: unknown */
    char source[SHIM_NAME];     /* model host cuda */
};

struct shim_plan {
    char key[1024];  /* the step's key as JSON, to be sent back as it is */
    char folder[17]; /* 16 hex digits, the end of the name of the plan's folder: the step's own */
    uint32_t job, het_job, step, restart;
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

enum { SHIM_PLAN_SIZE = 256 * 1024 }; /* a plan file is at most so long */

/* Reads and checks a plan file; its folder's name must be that of the step it is for. parse:
 * without the folder, which is "" then. Returns 0, or -1 with why. */
int shim_plan_read(const char *path, struct shim_plan *plan, struct shim_why *why);
int shim_plan_parse(const char *text, size_t size, struct shim_plan *plan, struct shim_why *why);

/* Is it the plan of the step that this process is in? Compares the uids, and of
 * SLURM_JOB_ID, SLURM_STEP_ID and SLURM_RESTART_COUNT those that are set. Returns 0, or -1 with
 * why.
 */
int shim_plan_fits(const struct shim_plan *plan, struct shim_why *why);

/* Reads a chain out of tccld's answer to CHAIN. Returns 0; 1 with why where NCCL's own choice is as
 * good as any; or -1 with why. gpus: those asked for, which it must hold exactly. */
int shim_chain_parse(const char *text, size_t size, const shim_bus *gpus, int n, bool closed,
                     struct shim_chain *chain, struct shim_why *why);

/* How many edges a chain has: n - 1 when open, n when closed. */
int shim_chain_edges(const struct shim_chain *chain);

/* One line, "01 -w> 41 -m0> 01", as in pathfind/chain/chain-text.h, with NUMA nodes. Bus ids are
 * shortened to what tells them apart. */
void shim_chain_format(const struct shim_chain *chain, struct shim_text *text);

#endif
