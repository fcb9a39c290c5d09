/* reach.h: what an all-reduce of large size reaches over rings, of what their transfers have while
 * all of them run.
 *
 * NCCL's block on a GPU does one thing after the other. Of each round, which takes a chunk of each
 * of n ranks around, a rank does (src/device/all_reduce.h, runRing): send; (n - 2) times
 * recvReduceSend; recvReduceCopySend; (n - 2) times recvCopySend; recv. So it sends only, once; it
 * receives and sends at once, 2n - 3 times; it receives only, once. With T(S) the time that a chunk
 * takes while the transfers S run, a round takes
 *
 *     T(what is sent) + (2n - 3) T(all) + T(what is received)
 *
 * for 2n - 2 chunks. A GPU sends by writing, to the next GPU, or to the host memory of a bounce or
 * of its way to a NIC; it receives by reading. What the other end does, or a NIC, takes none of its
 * time: with P2P writes nothing is received, and nothing is lost. So each GPU of each ring has a
 * time of its own, and the slowest one counts; NICs have all of the round. */
#pragma once

#include "machine/model.h"
#include "machine/sides.h"
#include "ring/table.h"

/* The ends of a round, T(what is sent) + T(what is received), in hundredths of T(all):
 * TCCL_ENDS_LEAST (nothing is lost) to TCCL_ENDS_MOST; 0: not known. By a model, of n rings of a
 * node that run at once; of open ones as part of two such nodes, which is at most a hundredth off
 * for more. 0: the model can't say. */
uint8_t tccl_ends(const struct tccl_model *model, const struct tccl_chain *rings, int n);

/* By what all transfers of rings over so many ranks have while they run together, GB/s, and what an
 * all-reduce reaches (machine/rounds.c). */
uint8_t tccl_ends_reached(int ranks, double all, double reached);

/* The same by whoever knows what each of some transfers has while they run, GB/s. rates returns 0,
 * or -1: it can't say. */
uint8_t tccl_ends_by(int (*rates)(const void *context, const tccl_transfer *transfers, int count,
                                  double *gbps),
                     const void *context, const struct tccl_chain *rings, int n);

/* Without a model, at most: where a GPU both sends and receives as much as all the rest, 200. */
uint8_t tccl_ends_most(const struct tccl_chain *rings, int n);

/* By measurements: what GPUs send, and what they receive (both empty at first); and the ends by
 * what all transfers reach while they run together, and these two sets, GB/s per ring. Of rings
 * whose GPUs differ, or that a NIC limits, more than by a model: the slowest GPU of each set
 * counts. */
void tccl_ends_sides(const struct tccl_chain *rings, int n, struct tccl_side *sent,
                     struct tccl_side *received);
uint8_t tccl_ends_measured(double all, double sent, double received);

/* Of an entry of a table, or a baseline: what it says, or else at most. */
uint8_t tccl_result_ends(const struct tccl_result *result);
uint8_t tccl_baseline_ends(const struct tccl_baseline *baseline);

/* What an all-reduce reaches of gbps, the bandwidth of all transfers, as a part. gpus: of all
 * nodes; ends 0: all of it. */
double tccl_reach(uint8_t ends, int gpus);

/* Says it of all that the table has, baselines included, by the model of its machine. */
void tccl_table_ends(struct tccl_table *table, const struct tccl_model *model);
