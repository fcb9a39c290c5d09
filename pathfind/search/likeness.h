/* likeness.h: whether a machine can be told from its image when some of its devices are exchanged.
 */
#pragma once

#include "machine/machine.h"
#include "machine/meter.h"

/* Does the description stay as it is: GPU models, P2P, GPUDirect, paths, NIC rates? Without nics
 * only GPUs and memories count. */
bool tccl_likeness_described(const struct tccl_machine *machine,
                             const struct tccl_exchange *exchange, bool nics);

/* Does NCCL build over the images of GPUs what it builds over them, moved, where they stand in the
 * same order (tccl_exchange_in_order)? So it does where each NIC stays where it is, and the
 * description as it is, the rates of slots included. */
bool tccl_likeness_to_nccl(const struct tccl_machine *machine, const struct tccl_exchange *move);

/* What was measured to tell likenesses; each set once. */
struct tccl_likeness;

/* All are borrowed. NULL only without memory. */
struct tccl_likeness *tccl_likeness_new(const struct tccl_machine *machine,
                                        const struct tccl_meter *meter, double noise);
void tccl_likeness_free(struct tccl_likeness *likeness); /* NULL is fine */

/* Sets that look alike need not all be asked: gives out[i] for walk[i], equal for such. */
struct tccl_likeness_view {
    void (*relabel)(const void *context, const tccl_transfer *walk, int count, tccl_transfer *out);
    const void *context;
};

/* Do measurements agree that the exchange changes nothing? Returns 1 if so, 0, or -1 with err if
 * the meter can't go on or without memory. */
int tccl_likeness_measured(struct tccl_likeness *likeness, const struct tccl_exchange *exchange,
                           bool nics, struct tccl_likeness_view view, struct tccl_error *err);
