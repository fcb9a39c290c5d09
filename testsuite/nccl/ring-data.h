/* ring-data.h: what the ranks of a collective send, and what each of them must receive. */
#pragma once

#include "ring-collective.h"

#include <stdint.h>

/* Elements of a rank's buffers. */
size_t ring_data_sent(const struct ring_collective *collective, int ranks);
size_t ring_data_received(const struct ring_collective *collective, int rank, int ranks);

/* Fills the buffer that a rank sends. */
void ring_data_fill(const struct ring_collective *collective, int rank, int ranks, void *send);

/* How many elements of a rank's result are wrong: of all, or of large ones of every 101st. Integers
 * must be exact. A float may be off by what rounding each step of a reduction to its type can
 * bring, in whatever order that was done. */
size_t ring_data_wrong(const struct ring_collective *collective, int rank, int ranks,
                       const void *received);

/* Of all bytes of a rank's result. */
uint64_t ring_data_digest(const struct ring_collective *collective, int rank, int ranks,
                          const void *received);
