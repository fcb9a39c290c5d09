/* workspace.h: what the worker processes of a pool share: the machine, memory on every NUMA node,
 * what each GPU lends to the others, and where to run. Made once, before the first worker is
 * forked. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "client/users.h"
#include "discover/discover.h"

/* Places for the members of the largest set, and for what runs beside it. */
enum { TCCL_WORKSPACE_PLACES = TCCL_MAX_SET + 2 * TCCL_MAX_GPUS, TCCL_LOAN_BYTES = 64 };

/* How transfers are made; what a back end and its movers need to know. */
struct tccl_workspace_settings {
    size_t region;  /* bytes of each place's region in each memory (and of each GPU) */
    bool bind;      /* host memory is bound to its NUMA node, and where it lies is checked */
    bool engine;    /* GPUs copy by their copy engines, not by kernels */
    char peer[256]; /* "HOST:PORT" of a tccl-profile peer; "": loopback, or no NICs */
    struct tccl_trust trust; /* who may run the peer */
};

/* What the keeper of a GPU lends: memory that workers map (a CUDA IPC handle). */
struct tccl_loan {
    _Atomic uint32_t turn; /* 0: nothing yet; grows with each new loan (a keeper was replaced) */
    unsigned char handle[TCCL_LOAN_BYTES];
    uint64_t bytes;
};

struct tccl_workspace {
    struct tccl_site site;
    struct tccl_workspace_settings settings;
    struct tccl_board *board; /* what all processes see of it */
    unsigned char *memory;    /* regions of the memories, then those of the GPUs, each by place */
    size_t bytes;
};

/* Maps the memory; nothing is touched yet. site and settings are copied. Returns NULL with err. */
struct tccl_workspace *tccl_workspace_new(const struct tccl_site *site,
                                          const struct tccl_workspace_settings *settings,
                                          struct tccl_error *err);
void tccl_workspace_free(struct tccl_workspace *workspace); /* NULL is fine */

/* A region that belongs to one place (0 to TCCL_WORKSPACE_PLACES - 1) of a memory, or on the NUMA
 * node of a GPU, in the place of that GPU's own memory; at the same address in all workers,
 * settings.region bytes, page-aligned, all its pages there when this returns (bound to the memory's
 * NUMA node). The first call of a place touches it: some milliseconds. Returns NULL with err: the
 * node has no memory, is full, or memory can't be bound. */
void *tccl_workspace_region(struct tccl_workspace *workspace, struct tccl_device where, int place,
                            struct tccl_error *err);

/* What that GPU's keeper lends. In shared memory. */
struct tccl_loan *tccl_workspace_loan(struct tccl_workspace *workspace, int gpu);
