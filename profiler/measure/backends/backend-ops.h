/* backend-ops.h: what a back end implements. */
#pragma once

#include "discover/discover.h"
#include "measure/backends/backend.h"
#include "measure/pool/workers.h"

/* Contracts as in backend.h. state is what open made; close gets it also when it is the last. */
struct tccl_backend_ops {
    const char *name;
    double noise;
    /* Fills in state, machine, and what else there is to say. Returns 0, or -1 with err. */
    int (*open)(const struct tccl_backend_options *options, struct tccl_backend *backend,
                struct tccl_error *err);
    /* Can it measure the transfer at all? 0, or -1 with err. NULL: all that the machine allows. */
    int (*can)(const void *state, tccl_transfer transfer, struct tccl_error *err);
    /* What others run from now on (a side without transfers: nothing). */
    void (*others)(void *state, const struct tccl_side *others);
    int (*measure)(void *state, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *err);
    void (*close)(void *state);
};

/* Opens a back end that need not be built in (tests have theirs). As tccl_backend_open. */
int tccl_backend_open_as(const struct tccl_backend_ops *ops,
                         const struct tccl_backend_options *options, struct tccl_backend **backend,
                         struct tccl_error *err);

extern const struct tccl_backend_ops tccl_backend_of_model;
extern const struct tccl_backend_ops tccl_backend_of_noisy;
extern const struct tccl_backend_ops tccl_backend_of_host;
extern const struct tccl_backend_ops tccl_backend_of_cuda; /* in builds with CUDA */

/* ---- pooled: what back ends have in common that measure with a worker pool. Their state is this.
 */

struct tccl_pooled {
    struct tccl_found found;
    struct tccl_workspace *workspace;
    struct tccl_workers *workers;
    struct tccl_repeat_options repeat;
    size_t region; /* bytes, see tccl_workspace_settings */
    unsigned marks;
    bool peer; /* there is one */
    char conditions[128];
};

/* How a back end differs from the others. look sets found, marks, conditions and region: 0, or -1
 * with err. */
struct tccl_pooled_way {
    int (*look)(struct tccl_pooled *pooled, const struct tccl_backend_options *options,
                struct tccl_error *err);
    bool bind; /* memory to its NUMA node, also where there is only one */
    const struct tccl_mover *gpu, *nic, *nic_alone; /* the last: without a peer; NULL: none */
    double prepare_limit;
};

/* Makes the state and starts the pool. A peer that can't be reached is an error: better known
 * before an hour of measuring. Returns 0, or -1 with err. */
int tccl_pooled_open(const struct tccl_pooled_way *way, const struct tccl_backend_options *options,
                     struct tccl_backend *backend, struct tccl_error *err);

/* Members of tccl_backend_ops. */
void tccl_pooled_others(void *state, const struct tccl_side *others);
int tccl_pooled_measure(void *state, const struct tccl_set *set, struct tccl_measurement *out,
                        struct tccl_error *err);
void tccl_pooled_close(void *state);
