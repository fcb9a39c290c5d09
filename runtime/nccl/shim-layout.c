/* shim-layout.c: places in a topology file, so that NCCL's paths are as the chain wants them
 * (steer.c).
 */
#include "nccl/shim-nccl.h"

enum {
    MOST_ELEMENTS = 256, /* that NCCL reads, with what it finds by itself: */
    OF_GPU = 1,          /* a rank's own GPU, … */
    OF_NIC = 8,          /* and each NIC with its switches */
    OF_WAY = 3,
};

/* GPU i, counted from the first. */
static int position(const struct shim_layout *layout, int i)
{
    return (layout->first + i) % layout->n;
}

const struct shim_pci_device *shim_layout_gpu(const struct shim_layout *layout, int i)
{
    tccl_bus bus = layout->chain->rings.chains[0].gpus[position(layout, i)];
    return &layout->pci->devices[shim_pci_find(layout->pci, bus)];
}

/* The NUMA node that most GPUs of an island are at; of equals the first. */
static int16_t node_of(const struct shim_layout *layout, int begin, int end)
{
    int16_t best = -1;
    int most = 0;
    for (int i = begin; i < end; i++) {
        int count = 0;
        for (int other = begin; other < end; other++)
            count += shim_layout_gpu(layout, i)->node == shim_layout_gpu(layout, other)->node;
        if (count > most) {
            most = count;
            best = shim_layout_gpu(layout, i)->node;
        }
    }
    return best;
}

bool shim_layout_wants_p2p(const struct shim_layout *layout, int i, int j)
{
    const struct tccl_named_chain *path = &layout->chain->rings.chains[0];
    bool next = j == i + 1, around = path->closed && i == 0 && j == layout->n - 1;
    if (next || around)
        return path->edges[position(layout, next ? i : j)].kind != TCCL_BOUNCE;
    return layout->facts->far_p2p ||
           shim_pci_distance(shim_layout_gpu(layout, i), shim_layout_gpu(layout, j)) <= SHIM_PXB;
}

int shim_layout_count_ways(const struct shim_layout *layout, int island)
{
    int wanted = 0, all = 0;
    for (int i = layout->begins[island]; i < layout->begins[island + 1]; i++)
        for (int j = i + 1; j < layout->begins[island + 1]; j++) {
            wanted += shim_layout_wants_p2p(layout, i, j);
            all++;
        }
    return wanted < all ? wanted : 0;
}

/* Of several NICs NCCL would find another one shorter for the other GPUs of the NIC's island. */
bool shim_layout_can_have_ways(const struct shim_layout *layout, int island)
{
    bool several = island == 0 && layout->home == 0 && layout->islands > 1;
    return layout->facts->ways && !layout->crowded &&
           (layout->facts->given || !several || layout->facts->nics <= 1);
}

bool shim_layout_needs_ways(const struct shim_layout *layout, int island)
{
    return shim_layout_can_have_ways(layout, island) && shim_layout_count_ways(layout, island) > 0;
}

int shim_layout(const struct shim_chain *chain, const struct shim_pci *pci,
                const struct shim_steer *facts, struct shim_layout *layout, struct tccl_error *why)
{
    const struct tccl_named_chain *path = &chain->rings.chains[0];
    *layout = (struct shim_layout){.chain = chain, .pci = pci, .facts = facts, .n = path->n_gpus};
    for (int i = 0; i < layout->n; i++)
        if (shim_pci_find(layout->pci, path->gpus[i]) < 0)
            return tccl_fail(why, "a GPU's place is not known");
    /* A ring may begin anywhere: behind a bounce, so that no island is cut in two. */
    for (int i = 0; path->closed && i < path->n_gpus; i++)
        if (path->edges[i].kind == TCCL_BOUNCE)
            layout->first = (i + 1) % path->n_gpus;
    for (int i = 0; i < layout->n; i++) {
        bool bounce = i > 0 && layout->chain->rings.chains[0].edges[position(layout, i - 1)].kind ==
                                   TCCL_BOUNCE;
        if (i == 0 || bounce)
            layout->begins[layout->islands++] = i;
    }
    layout->begins[layout->islands] = layout->n;
    for (int i = 0; i < layout->islands; i++)
        layout->node[i] = node_of(layout, layout->begins[i], layout->begins[i + 1]);
    /* Through Intel's CPUs NCCL takes no P2P. */
    layout->intel = layout->pci->intel || (facts->far_p2p && layout->islands > 1);
    layout->home = path->closed        ? -1
                   : facts->near_entry ? 0
                   : facts->near_exit  ? layout->islands - 1
                                       : -1;
    /* Each GPU and the NIC have a bridge, each island may have a CPU and a bridge. */
    int elements =
        1 + 2 * layout->n + 2 * (layout->islands + 1) + OF_GPU + OF_NIC * (layout->facts->nics + 1);
    for (int node = -1; layout->facts->all_cpus && node < SHIM_PCI_NODES; node++)
        elements += shim_pci_has_node(layout->pci, node);
    for (int i = 0; i < layout->islands; i++)
        elements += OF_WAY * shim_layout_count_ways(layout, i);
    layout->crowded = elements > MOST_ELEMENTS;
    return 0;
}
