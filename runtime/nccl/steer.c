/* steer.c: a topology file under which NCCL's own search finds the chain.
 *
 * NCCL first tries its GPUs in the order in which the topology has them, and keeps the first chain
 * that no other one beats: by nominal bandwidth, then by the number of links. So the file has the
 * GPUs in the order of the chain, and P2P neighbours below a bridge of their own: any other order
 * takes more links. Each GPU's own link is as fast as all of NCCL's own channels together, and no
 * other link is slower, so one channel along the chain uses all that there is. Ring and tree then
 * have the nominal speeds that NCCL would give them by itself.
 *
 * Below one bridge each GPU is direct to each other one: A to C, too, where the chain has A to B
 * and B to C. NCCL uses the ring for no send and receive, so what it would copy through host memory
 * between A and C stays there. Then the island has no bridge of its own, and each pair that is
 * direct has a way for itself: a link, such as NCCL knows between PCI switches, from a bridge below
 * that of the first GPU to that of the other one. NCCL takes paths with the fewest links. Through
 * the CPU these are four, along a pair's own way four, too (NCCL looks at a bridge's own links
 * before the one up to the CPU, and keeps what it found), along the ways of two pairs six. From
 * 2.30.7 on it takes switches before the CPU, whatever their number: there are no ways then.
 *
 * testsuite/unit/test-shim-steer compares these files with NCCL's search as pathfind foretells it.
 */
#include "nccl/shim-nccl.h"

#include "chain/tree-rate.h"

enum {
    AMD_ACROSS_GBPS = 16, /* nominal, between two NUMA nodes */
    INTEL_ACROSS_GBPS = 40,
};

static int check_speed(const struct shim_layout *layout, struct tccl_error *why)
{
    const struct shim_steer *facts = layout->facts;
    double all = facts->channels * facts->gbps;
    if (facts->channels < 1 || facts->gbps <= 0)
        return tccl_fail(why, "the channels of NCCL's own search are not known");
    if (!tccl_tree_is_one_channel(facts->channels, all))
        return tccl_fail(why, "NCCL's own search finds %d channels", facts->channels);
    if (layout->islands > 1 && all > (layout->intel ? INTEL_ACROSS_GBPS : AMD_ACROSS_GBPS))
        return tccl_fail(why, "NUMA nodes are too far from each other for %g GB/s", all);
    return 0;
}

static int check(const struct shim_layout *layout, bool linked[SHIM_GPUS][SHIM_GPUS],
                 struct tccl_error *why)
{
    if (layout->chain->rings.n > 1)
        return tccl_fail(why, "the plan has %d rings", layout->chain->rings.n);
    for (int i = 0; i < layout->n; i++)
        for (int j = 0; j < layout->n; j++)
            if (linked[i][j])
                return tccl_fail(why, "GPUs are joined by NVLink");
    if (layout->n < 2)
        return tccl_fail(why, "there is one GPU");
    if (!layout->pci->amd && !layout->pci->intel)
        return tccl_fail(why, "the CPU is neither AMD's nor Intel's");
    if (!layout->facts->given && check_speed(layout, why) != 0)
        return -1;
    /* NCCL begins with the NIC that is nearest to the first GPU. */
    const struct shim_steer *facts = layout->facts;
    if (layout->chain->rings.chains[0].closed)
        return 0;
    if (layout->chain->entry[0] != layout->chain->exit[0])
        return tccl_fail(why, "the chain has two NICs");
    if (facts->near_entry && facts->near_exit && layout->islands > 1)
        return tccl_fail(why, "the NIC is near both ends");
    if (facts->nics == 1)
        return 0;
    if (!facts->given && !facts->near_entry && (facts->near_exit || layout->islands == 1))
        return tccl_fail(why, "other NICs are as near to the first GPU");
    for (int i = 0; i < layout->n; i++)
        if (shim_layout_gpu(layout, i)->depth > 0)
            return tccl_fail(why, "other NICs may be at the PCI switches of GPUs");
    return 0;
}

int shim_steer(const struct shim_chain *chain, const struct shim_pci *pci,
               bool linked[SHIM_GPUS][SHIM_GPUS], const struct shim_steer *facts,
               struct shim_text *text, struct tccl_error *why)
{
    struct shim_layout layout;
    if (shim_layout(chain, pci, facts, &layout, why) != 0 || check(&layout, linked, why) != 0)
        return 0;
    return shim_topo_layout(&layout, text, why);
}
