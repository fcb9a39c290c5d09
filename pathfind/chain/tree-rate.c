/* tree-rate.c: a tree's nominal rate, and the links by which a topology file gives it. */
#include "chain/tree-rate.h"

/* Of an open chain, the first link carries what comes back from older GPUs, too, an eighth; and a
 * balanced tree uses the NIC from its first two GPUs, at half of its rate each, which counts for a
 * fifth more through an Intel CPU. So it is the second one that limits a tree. */
static const double ring_share[] = {1.125, 1}, tree_share[] = {1.75, 1.5};

static const double lane_gbps = 0.1875, most_gbps = 1e5;

int tccl_link_lanes(double gbps)
{
    return (int)((gbps < most_gbps ? gbps : most_gbps) / lane_gbps + 0.999);
}

double tccl_tree_rate(double ring, double tree, double ring_gbps, double tree_gbps)
{
    double most = ring_gbps > 0 ? ring * 2 * tree_gbps / ring_gbps : tree;
    return most < tree ? most : tree;
}

int tccl_tree_lanes(int i, int n, double ring, double tree)
{
    double for_ring = ring * ring_share[i], for_tree = tree * tree_share[i];
    return tccl_link_lanes(n > 2 && for_tree > for_ring ? for_tree : for_ring);
}

bool tccl_tree_is_one_channel(int channels, double gbps)
{
    const double doubled = 25;
    return channels == 1 || (channels == 2 && gbps >= doubled);
}
