/* symmetry.h: like parts of a machine, so that symmetric transfer sets share one measurement. */
#ifndef TCCL_SYMMETRY_H
#define TCCL_SYMMETRY_H

#include "model.h"

/* The machine as a tree (groups of NUMA nodes, NUMA nodes, switches, devices); brothers of one class
 * may be exchanged, with all that is below them, without changing any bandwidth. */
struct tccl_symmetry;

/* Those exchanges that leave the model's numbers exactly as they are. NULL only without memory. */
struct tccl_symmetry *tccl_symmetry_of_model(const struct tccl_model *model);
void tccl_symmetry_free(struct tccl_symmetry *symmetry); /* NULL is fine */

/* The device that stands for each device when devices are first met in the order of a walk (the
 * transfers of a set in the order of the chain): equal results mean symmetric sets. out[i] is the
 * image of walk[i]. */
void tccl_symmetry_relabel(const struct tccl_symmetry *symmetry, const tccl_transfer *walk,
                           int count, tccl_transfer *out);

/* Exchanges of two neighbouring brothers; together they make all symmetries. */
int tccl_symmetry_exchanges(const struct tccl_symmetry *symmetry);
tccl_transfer tccl_symmetry_exchange(const struct tccl_symmetry *symmetry, int exchange,
                                     tccl_transfer transfer);

#endif
