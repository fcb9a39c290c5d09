/* tree-rate.h: the nominal rates of a tree beside a planned ring. NCCL compares the rates of ring
 * and tree to pick one of them for an all-reduce, and knows nothing of what was measured. So the
 * runtime shim gives it a tree that is no faster, beside the ring, than it was measured. libc
 * only. All rates are GB/s, those of NCCL of all channels together. */
#pragma once

#include <stdbool.h>

/* What NCCL is to take for the tree's rate, where it takes ring and tree for its own. ring_gbps and
 * tree_gbps were measured, the latter each way: an all-reduce takes such a tree half the time of a
 * ring of the same bandwidth. ring_gbps 0: NCCL's own. */
double tccl_tree_rate(double ring, double tree, double ring_gbps, double tree_gbps);

/* In a topology file each GPU has a link of so many lanes of 2.5 GT/s; in that of an open chain the
 * links of the first two GPUs (i = 0 and 1, of n), which share the NIC in a tree, say so: they are
 * as fast as the ring needs them, or more where that is the tree. */
int tccl_link_lanes(double gbps);
int tccl_tree_lanes(int i, int n, double ring, double tree);

/* Under such a file NCCL finds one channel, of which it makes two where it is fast. Are so many,
 * with gbps of all together, that one? */
bool tccl_tree_is_one_channel(int channels, double gbps);
