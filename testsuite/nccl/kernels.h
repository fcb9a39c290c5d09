/* kernels.h: NCCL's kernels as host threads (kernels.cc), between the stand-in driver, which knows
 * nothing of NCCL, and a library built with the headers of the NCCL that launches them. */
#ifndef TCCL_RIG_KERNELS_H
#define TCCL_RIG_KERNELS_H

enum { RIG_BLOCKS = 64 }; /* of a launch, at most: NCCL's channels */

/* The library's symbol rig_kernels. */
struct rig_kernels {
    int version; /* of NCCL, as ncclGetVersion has it */
    /* What a launch with these arguments asks for that can't be run, or NULL. */
    const char *(*refused)(const void *arguments);
    /* Runs one block until it is done, or the communicator was aborted. */
    void (*run)(const void *arguments, unsigned block);
};

#endif
