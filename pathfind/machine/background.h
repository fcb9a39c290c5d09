/* background.h: what jobs keep running beside their rings, as transfers: a neighbour that begins
 * with the job and ends with it. */
#ifndef TCCL_MACHINE_BACKGROUND_H
#define TCCL_MACHINE_BACKGROUND_H

#include "base/source.h"
#include "machine/side.h"

/* Adds to the side what the background of some GPUs (a mask) runs. Nothing where that is none. An
 * empty side has room for all GPUs. */
void tccl_background_add(const struct tccl_machine *machine, enum tccl_background background,
                         uint32_t gpus, struct tccl_side *side);

/* Bandwidth of a set while the background of those GPUs runs, GB/s: that of its own slowest member.
 * Adding a transfer may make it larger (it may slow the background down, from which others gain).
 * Returns as tccl_model_measure. */
int tccl_model_beside(const struct tccl_model *model, enum tccl_background background,
                      uint32_t gpus, const struct tccl_set *set, double *gbps,
                      struct tccl_error *err);

#endif
