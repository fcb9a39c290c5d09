/* baseline.h: the baseline: what a stock NCCL builds on a node on its own, several rings that run
 * at the same time. The search takes from a millisecond to some tenths of a second. Its result is
 * therefore kept in chain tables (ring/table.h); nothing that a job waits for may call this.
 *
 * It is that of NCCL without user settings, with one process per GPU in ascending order, over
 * InfiniBand or RoCE, without NVLink, on equal nodes. Where a machine does
 * not say the rates of slots, nominal ones are used (16 lanes; PCIe 3 below sm_80, 5 from sm_90 on,
 * else 4; NICs by their rate). The generations (chain/nccl-version.h) differ in these points:
 *  - 2.22: each process adds its own GPU, the first one before all NICs, the others after them;
 *  - 2.23: P2P only below a common switch, except with exactly two GPUs and AMD CPUs; before, at
 * any distance, except with Intel, ARM or Zhaoxin CPUs. Channels of trees cross NICs freely;
 *  - 2.25: up to four ports of a NIC are one, not two; at most 32 channels, not 16; only distances
 * that the machine has; rates for sm_100, others from 2.27 and from 2.29.7 on (2.29.2 is taken for
 * that);
 *  - 2.26: newer Intel CPUs are not treated as Skylake;
 *  - 2.27: a channel begins at the GPU that prefers the NIC, then at others near to it;
 *  - 2.28: NICs count on a single node, too;
 *  - 2.29: NICs are in the order of bus ids, not of ibv_get_device_list (here: of the machine);
 * NICs at any distance below sm_90;
 *  - 2.30: GPUs that share NICs are counted from 0; one rate more for sm_100; through host memory
 * between the parts of a machine that is treated as several nodes, all others by NICs;
 *  - 2.31: between AMD's CPUs 24 GB/s from Zen 3 and 32 from Zen 5 on, before 16 for all
 * (NVIDIA/nccl pull request 2036 and issue 2441).
 * From 2.30.7 on, NCCL takes a GPU's rate from NVML as it is at the time, which is less while the
 * GPU is at rest; here it is that of the slot. What NCCL builds and says of it was compared with
 * 2.21.5, 2.23.4, 2.27.7, 2.29.7 and 2.30.7 (testsuite/nccl/README.md); the others are read
 * from its source. */
#pragma once

#include "ring/table.h"

/* The distinct chains of the baseline of a GPU set with this generation of NCCL (an index of
 * tccl_generations), and what its search says of ring and tree; its bandwidth is set to 0 (not
 * measured). Where NCCL treats the machine as several nodes, that is the least of all of them.
 * closed: rings of a single node, each beginning at its lowest GPU; otherwise the node is one of
 * several, and each chain has ports. Edges are by NICs where these are faster than the way between
 * two GPUs (ncclTopoCheckNet), and between what NCCL treats as several nodes (not 2.30). Returns 0,
 * or -1 with err (no GPU, no NIC for several nodes, one GPU for a ring). */
int tccl_baseline_find(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                       int generation, struct tccl_baseline *baseline, struct tccl_error *err);
/* The same for all generations, where each differs from the one before. */
int tccl_baseline_find_all(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                           struct tccl_baseline baselines[static TCCL_GENERATIONS],
                           struct tccl_error *err);

/* Its edges by NICs become bounces, through the memories of the receivers. */
void tccl_baseline_leave_nics(const struct tccl_machine *machine, struct tccl_baseline *baseline);

/* All transfers of all chains, one that several make as often. Each chain carries an equal part of
 * the data, so the slowest transfer determines the time, and all of them together have its rate as
 * often as there are chains. NCCL may be slightly faster if its chains are unequal, because the
 * slow one speeds up when the others have finished. Returns 0, or -1 with err if there are more
 * than TCCL_MAX_SET. */
int tccl_baseline_set(const struct tccl_baseline *baseline, struct tccl_set *set,
                      struct tccl_error *err);
