/* device.h: GPUs by the numbers of CUDA and NVML. Of CUDA only what the process has loaded; NVML is
 * loaded and started if NCCL has not done so yet, and left so. */
#pragma once

#include "base/base.h"

/* The bus id of the calling thread's current CUDA device, or of CUDA's device number ordinal.
 * Returns 0, or -1 with why (no CUDA, no device chosen so far, a MIG instance). */
int shim_device_current(tccl_bus *bus, struct tccl_error *why);
int shim_device_bus(int ordinal, tccl_bus *bus, struct tccl_error *why);

/* The version of CUDA that the driver is for (12060: 12.6); 0: not known. */
int shim_device_driver(void);

/* NVML's index of a GPU, which is NCCL's dev in a graph file. Returns 0, or -1 with why. */
int shim_device_nvml(tccl_bus bus, int *index, struct tccl_error *why);

/* Does NVML tell this process of the GPU? With ConstrainDevices, only of those of its own task. */
bool shim_device_seen(tccl_bus bus);

/* Its compute capability as one number (80: 8.0); -1: not known. */
int shim_device_sm(tccl_bus bus);

/* Has the GPU NVLink, to whatever? Also true if that can't be known. */
bool shim_device_has_nvlink(tccl_bus bus);
/* Are all pairs of these GPUs joined by NVLink, directly or by switches (SHIM_NVLINK_ALL), some of
 * them (SHIM_NVLINK_SOME), or none? -1 with why: can't be known. linked: for each pair, may be
 * NULL. */
enum shim_nvlink { SHIM_NVLINK_NONE, SHIM_NVLINK_SOME, SHIM_NVLINK_ALL };
int shim_device_nvlink(const tccl_bus *gpus, int n, bool linked[SHIM_GPUS][SHIM_GPUS],
                       struct tccl_error *why);
