/* shim-achieved.h: what large collectives over all of the step's GPUs reach, with the ring and
 * without it. A few of them stand between two of CUDA's events on the caller's stream; nobody waits
 * for these. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/registry.h"

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
