/* baseline.h: the baseline: the rings that a stock NCCL builds on a node by itself, all of which
 * run at the same time. Its search takes from a millisecond to some tenths of a second, so what it
 * finds is kept in chain tables (ring/table.h), and nothing that a job waits for calls this.
 *
 * It is that of NCCL 2.29.7, without settings of the user's, with a process for each GPU in rising
 * order, over InfiniBand or RoCE, without NVLink, all nodes alike. NCCL knows the real rates of
 * slots; a machine here does not have them, and nominal ones are taken (16 lanes; PCIe 3 below
 * sm_80, 5 from sm_90, else 4; NICs by their rate). As far as it matters here, versions differ so:
 *  - up to 2.22 P2P is taken at any distance, except with CPUs of Intel, ARM or Zhaoxin; since then
 *    below a common switch only, except between the only two GPUs with CPUs of AMD;
 *  - 2.18 has no rate for the way between CPUs of AMD; up to 2.25 newer ones of Intel are as
 *    Skylake;
 *  - in 2.18 devices below a switch stand in the order in which they are met, since then in that of
 *    bus ids; since 2.22 each process adds its own GPU after all NICs, which changes what is first;
 *  - up to 2.22 single channels cross NICs, since then pairs do; up to 2.24 there are at most 16
 *    channels, not 32; up to 2.26 one begins at any of the GPUs nearest to the NIC;
 *  - up to 2.28 NICs stand in the order of ibv_get_device_list, since then in that of bus ids. */
#ifndef TCCL_BASELINE_H
#define TCCL_BASELINE_H

#include "ring/table.h"

/* The baseline of the GPUs of mask: its distinct chains; channels that repeat one are left out, and
 * the bandwidth is 0. closed: rings of a single node, each from its lowest GPU on; else the node is
 * one of several, and each chain has ports. by_network: TCCL_MAX_CHANNELS entries, or NULL; of each
 * chain it gets the edges (bit i: edges[i]) that NCCL takes through NICs, though both GPUs are on
 * this node. No chain can say that: such an edge stands there as a bounce. Returns 0, or -1 with
 * err (no GPU, no NIC for several nodes, one GPU for a ring). */
int tccl_baseline_find(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                       struct tccl_baseline *baseline, uint32_t *by_network,
                       struct tccl_error *err);

/* All transfers of all chains. Returns 0, or -1 with err if there are more than TCCL_MAX_SET. */
int tccl_baseline_set(const struct tccl_baseline *baseline, struct tccl_set *set,
                      struct tccl_error *err);

/* The bandwidth of all chains together, where the slowest transfer of the set above has gbps
 * (GB/s): each chain carries an equal part of the data, so the slowest counts for all. NCCL may be
 * a little faster where its chains are unequal, since the slow one has more room when the others
 * are done; and slower where two chains make the same transfer, which stands in the set only once.
 */
double tccl_baseline_gbps(const struct tccl_baseline *baseline, double gbps);

#endif
