/* symmetry.h: like parts of a machine, so that symmetric transfer sets share one measurement. */
#pragma once

#include "machine/model.h"
#include "search/alike.h"

/* The machine as a tree (groups of NUMA nodes, NUMA nodes, switches, devices); siblings that are
 * alike may be exchanged, with all that is below them. Exactly alike: no bandwidth changes. Nearly:
 * capacities differ a little, and bandwidths by no more than a known factor. Sets without NICs have
 * more symmetries, since nothing tells places with and without a NIC apart. */
struct tccl_symmetry;

/* The symmetries of a model's numbers. NULL only without memory. */
struct tccl_symmetry *tccl_symmetry_of_model(const struct tccl_model *model);

/* The symmetries of a machine that is measured: siblings that its description can't tell apart (GPU
 * model, P2P, GPUDirect, paths, NIC rates), and that measurements can't, either. meter NULL: by the
 * description alone. Asked are telling sets and their images, each set once, those that differ most
 * likely first: all that a moved device does alone, then pairs, then some larger sets. An exchange
 * is kept if no two differ by more than 2 * noise (each of the two may be off by the noise, to
 * either side), where noisy ones may be off by half their spread as well; two that do are measured
 * again first. Sets that nobody measured may still differ: see tccl_symmetry_assumed. There are no
 * near exchanges. NULL with err: the meter can't go on, or no memory. */
struct tccl_symmetry *tccl_symmetry_of_machine(const struct tccl_machine *machine,
                                               const struct tccl_meter *meter, double noise,
                                               struct tccl_error *err);
/* The same by what a store has: noise, or TCCL_ALIKE times what its measurements of one set differ
 * by (deviation), if that is more. */
#define TCCL_ALIKE 2.5 /* deviations that sets that are alike may be off by, each */
struct tccl_symmetry *tccl_symmetry_of_sets(const struct tccl_machine *machine,
                                            const struct tccl_setmap *sets, double noise,
                                            double deviation, struct tccl_error *err);
/* Is it found by samples, and not proven? */
bool tccl_symmetry_assumed(const struct tccl_symmetry *symmetry);
void tccl_symmetry_free(struct tccl_symmetry *symmetry); /* NULL is fine */

/* The device that stands for each device when devices are first met in the order of a walk (the
 * transfers of a set in the order of the chain): equal results mean exactly symmetric sets. out[i]
 * is the image of walk[i]. */
void tccl_symmetry_relabel(const struct tccl_symmetry *symmetry, const tccl_transfer *walk,
                           int count, tccl_transfer *out);

/* Exchanges of two siblings, exactly or nearly alike; together they make all symmetries for sets
 * such as this one. 0 where symmetry is NULL. */
int tccl_symmetry_exchanges(const struct tccl_symmetry *symmetry, const struct tccl_set *set,
                            bool near);
void tccl_symmetry_exchange(const struct tccl_symmetry *symmetry, const struct tccl_set *set,
                            bool near, int exchange, struct tccl_set *image);
/* Calls visit for each GPU set that is exactly like this one without NICs, beginning with the set
 * itself: image, and a move that leads there. visit returns false for an image that it has had
 * before, or that it doesn't want to go on from. symmetry NULL: for the set alone. */
void tccl_symmetry_images(const struct tccl_symmetry *symmetry, uint32_t gpus,
                          bool (*visit)(void *context, uint32_t image,
                                        const struct tccl_exchange *move),
                          void *context);

/* The exchanges that keep what NCCL builds, too, with all NICs where they are. symmetry NULL: none.
 */
void tccl_symmetry_alike(const struct tccl_symmetry *symmetry, const struct tccl_machine *machine,
                         struct tccl_alike *alike);

/* Whatever near exchanges are applied to the set, its bandwidth grows at most by this factor, >= 1.
 */
double tccl_symmetry_factor(const struct tccl_symmetry *symmetry, const struct tccl_set *set);
