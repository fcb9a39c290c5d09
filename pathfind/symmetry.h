/* symmetry.h: like parts of a machine, so that symmetric transfer sets share one measurement. */
#ifndef TCCL_SYMMETRY_H
#define TCCL_SYMMETRY_H

#include "model.h"

/* The machine as a tree (NUMA node, switches, devices); brothers with the same class may be
 * exchanged, with all that is below them, without changing any bandwidth. */
struct tccl_symmetry;

/* From the description alone: like devices at like places. Right for measured machines, within the
 * noise. NULL only without memory. */
struct tccl_symmetry *tccl_symmetry_of_machine(const struct tccl_machine *machine);
/* Only those exchanges that leave the model's numbers exactly as they are. */
struct tccl_symmetry *tccl_symmetry_of_model(const struct tccl_model *model);
void tccl_symmetry_free(struct tccl_symmetry *symmetry);

/* The device that stands for each device when devices are first met in the given order: map the
 * transfers of a set, in the order of a walk along its chain, and equal results mean equal sets.
 * out[i] is the image of walk[i]. */
void tccl_symmetry_relabel(const struct tccl_symmetry *symmetry, const tccl_transfer *walk,
                           int count, tccl_transfer *out);

#endif
