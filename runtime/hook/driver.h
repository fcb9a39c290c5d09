/* driver.h: where NCCL's bounce buffers lie, with CUDA's own host memory (NCCL from 2.24 on,
 * drivers from CUDA 12.6 on). NCCL asks the driver which NUMA node a GPU is at, and has them there:
 * no memory policy changes that. The CUDA runtime gets the driver's functions by dlsym of
 * cuGetProcAddress, and NCCL has cuDeviceGetAttribute from it. So dlsym hands NCCL and the runtime
 * a wrapper. It changes one answer: in a thread that works for a communicator with a ring, the node
 * is that of the memory policy which the shim has set for it (nccl/memory.h). */
#ifndef SHIM_DRIVER_H
#define SHIM_DRIVER_H

#include <stdbool.h>

#include "base/resolve.h"

/* What our dlsym answers to that name instead; NULL: what it is without us. */
void *shim_driver_lookup(void *handle, const char *name, const void *caller);

/* Does that NCCL ask the driver through us? Known once it has made a communicator's first steps. */
bool shim_driver_reached(const struct shim_nccl *nccl);
/* Has the driver no virtual memory management (cuMem)? False, too, if nobody has asked. */
bool shim_driver_lacks_cumem(void);

#endif
