/* gpusets.h: which GPU sets to profile, and in which order. */
#ifndef TCCL_GPUSETS_H
#define TCCL_GPUSETS_H

#include <stdint.h>

#include "base/error.h"

/* All sets of a machine's GPUs that get chains: first the whole node, then its aligned halves and
 * quarters (what Slurm mostly allocates), then all the others, small ones first. Machines with more
 * than 10 GPUs: aligned blocks only. Returns how many and *sets (the caller's), or -1 with err. */
int tccl_gpusets_all(int n_gpus, uint32_t **sets, struct tccl_error *err);

/* Reads "0-3 4-7" (sets separated by spaces or ';'), or "all". Returns how many and *sets, or -1
 * with err that names the set. */
int tccl_gpusets_parse(const char *text, int n_gpus, uint32_t **sets, struct tccl_error *err);

#endif
