/* kernels.h: NCCL's kernels as host threads (kernels.cc), between the stand-in driver, which knows
 * nothing of NCCL, and a library built with the headers of the NCCL that launches them. */
#pragma once

#include "pace.h"

enum { RIG_BLOCKS = 64 }; /* of a launch, at most: NCCL's channels */

/* Memory of a GPU ('g') or of a NUMA node ('m'), by its number on the machine. */
struct rig_place {
    char kind;
    int number;
};

/* What a block reads, or writes. */
struct rig_copy {
    const void *address;
    bool reads;
};

/* Returns once a GPU's copies of so many bytes, all at once, are done on the machine that is paced;
 * gone as for pace_copy. */
typedef void rig_copies(int gpu, struct pace_stream *stream, const struct rig_copy *copies, int n,
                        size_t bytes, bool (*gone)(void *data), void *data);

/* The library's symbol rig_kernels. */
struct rig_kernels {
    int version; /* of NCCL, as ncclGetVersion has it */
    /* What a launch with these arguments asks for that can't be run, or NULL. */
    const char *(*refused)(const void *arguments);
    /* Runs one block of a GPU's (its number on the machine) until it is done, or the communicator
     * was aborted. copies: NULL, as fast as it can. */
    void (*run)(const void *arguments, unsigned block, int gpu, rig_copies *copies);
};
