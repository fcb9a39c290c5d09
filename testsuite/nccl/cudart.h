/* cudart.h: what the parts of the stand-in CUDA runtime share. Its public functions are those of
 * cuda_runtime_api.h. */
#ifndef TCCL_RIG_CUDART_H
#define TCCL_RIG_CUDART_H

#include "devices.h"

#include <cuda_runtime_api.h>

/* Keeps the error for cudaGetLastError, and returns it. */
cudaError_t rig_error(cudaError_t error);

/* GPUs that the process may see (CUDA_VISIBLE_DEVICES), and which one a CUDA ordinal means: an
 * index into rig_devices(), or -1. */
int rig_visible(void);
int rig_ordinal(int ordinal);

/* The calling thread's device: an ordinal. */
int rig_current(void);

/* The base and size of the allocation that holds the address. False: there is none. */
bool rig_allocation(const void *address, void **base, size_t *size);

/* Virtual memory management: is it offered; the driver's function of that name, or NULL; the
 * mapping that holds an address; zeros a part of one without taking memory (false: it is none). */
bool rig_has_virtual(void);
void *rig_virtual_function(const char *name);
bool rig_virtual_allocation(const void *address, void **base, size_t *size, int *device,
                            bool *host);
bool rig_virtual_zero(char *start, char *end);

#endif
