/* steered.h: communicators that were given a ring, until it is known what NCCL built. With cuMem
 * (drivers from CUDA 12 on, NCCL from 2.22 on) nothing is connected at the end of the init: the
 * verdict is taken after the collective that connects the ring, at the latest when the communicator
 * or the process ends. */
#ifndef SHIM_STEERED_H
#define SHIM_STEERED_H

#include "hook/shim-process.h"

enum { SHIM_STEERED = 64 };

/* One rank's. */
struct shim_steered {
    const void *handle; /* NULL: not known */
    struct shim_entry *entry;
    uint64_t key;
    tccl_bus gpu;
    int rank, ranks;          /* -1: not known */
    struct tccl_error memory; /* its buffers are not on the chain's memory; "": they are */
};

/* How many await their verdict. While there are none wrappers of collectives do nothing. */
extern int shim_steered_count;

/* NCCL is done with its init: the verdict is taken now, or later. */
void shim_steered_begin(const struct shim_steered *steered);

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

#endif
