/* gpusets.h: which GPU sets to profile, and in which order; and which of them jobs of a site have
 * side by side (splits.c). */
#ifndef TCCL_GPUSETS_H
#define TCCL_GPUSETS_H

#include <stdint.h>

#include "base/error.h"
#include "machine/sides.h"

/* All sets of a machine's GPUs that get chains: first the whole node, then its aligned halves and
 * quarters (what Slurm mostly allocates), then all the others, small ones first. Machines with more
 * than 10 GPUs: aligned blocks only. Returns how many and *sets (the caller's), or -1 with err. */
int tccl_gpusets_all(int n_gpus, uint32_t **sets, struct tccl_error *err);

/* Reads "0-3 4-7" (sets separated by spaces or ';'), or "all". Returns how many and *sets, or -1
 * with err that names the set. */
int tccl_gpusets_parse(const char *text, int n_gpus, uint32_t **sets, struct tccl_error *err);

/* Sets of GPUs, as masks, that have none in common. */
struct tccl_split {
    int n; /* 2 to TCCL_MAX_SIDES */
    uint32_t parts[TCCL_MAX_SIDES];
};

/* Reads "0-1/2-3,0-3/4-7" (splits separated by ',', ';' or spaces, their sets by '/'; a set with
 * several ranges has '+' between them: "0+3/1-2"). NULL: the aligned halves and quarters of the
 * machine, as they come: two halves, a half and the quarters of the other, all quarters, and each
 * two of these. Returns how many and *splits (the caller's), or -1 with err that names the split.
 */
int tccl_splits_parse(const char *text, int n_gpus, struct tccl_split **splits,
                      struct tccl_error *err);

/* The sets that occur, each once, in *sets (the caller's). Returns how many, or -1 without memory.
 */
int tccl_splits_sets(const struct tccl_split *splits, int n_splits, uint32_t **sets);

#endif
