/* tree.c: the transfers of a tree beside a ring. */
#include "chain/tree.h"

#include <math.h>
#include <string.h>

/* The place of a GPU in the chain. */
static int place_of(const struct tccl_chain *chain, int gpu)
{
    for (int i = 0; i < chain->n_gpus; i++)
        if (chain->gpus[i] == gpu)
            return i;
    return -1;
}

/* Where the ring has the GPU receive, NCCL allocates all that the process receives. */
static int memory_of(const struct tccl_machine *machine, const struct tccl_chain *chain, int at)
{
    const struct tccl_edge *in = at > 0 ? &chain->edges[at - 1] : NULL;
    if (in && in->kind == TCCL_BOUNCE)
        return in->memory;
    if (!in && chain->entry.via.kind == TCCL_MEMORY)
        return chain->entry.via.index;
    if (at == chain->n_gpus - 1 && chain->exit.via.kind == TCCL_MEMORY)
        return chain->exit.via.index;
    return machine->gpus[chain->gpus[at]].numa;
}

static bool below_one_switch(const struct tccl_machine *machine, struct tccl_device a,
                             struct tccl_device b)
{
    return tccl_machine_path(machine, a, b) == TCCL_PATH_SWITCH;
}

/* GPUs at places a < b of the chain: all edges between them are P2P, and they are neighbours, or
 * near. */
static bool is_direct(const struct tccl_machine *machine, const struct tccl_chain *chain, int a,
                      int b)
{
    struct tccl_device one = {TCCL_GPU, chain->gpus[a]}, other = {TCCL_GPU, chain->gpus[b]};
    for (int i = a; i < b; i++)
        if (chain->edges[i].kind == TCCL_BOUNCE)
            return false;
    return machine->p2p[one.index][other.index] && machine->p2p[other.index][one.index] &&
           (b == a + 1 || below_one_switch(machine, one, other));
}

void tccl_tree_ways(const struct tccl_machine *machine, const struct tccl_chain *chain,
                    struct tccl_tree_ways *ways)
{
    memset(ways, 0, sizeof(*ways));
    ways->machine = machine;
    ways->chain = chain;
    ways->reads = tccl_chain_reads(chain);
    for (int a = 0; a < chain->n_gpus; a++) {
        ways->memory[chain->gpus[a]] = (uint8_t)memory_of(machine, chain, a);
        for (int b = a + 1; b < chain->n_gpus; b++)
            if (is_direct(machine, chain, a, b)) {
                ways->direct[chain->gpus[a]] |= UINT32_C(1) << chain->gpus[b];
                ways->direct[chain->gpus[b]] |= UINT32_C(1) << chain->gpus[a];
            }
    }
}

int tccl_tree_edge(const struct tccl_tree_ways *ways, int a, int b, tccl_transfer out[static 4])
{
    bool direct = ways->direct[a] >> b & 1;
    struct tccl_edge to_a = {ways->reads ? TCCL_P2P_READ : TCCL_P2P_WRITE, 0}, to_b = to_a;
    if (!direct) {
        to_a = (struct tccl_edge){TCCL_BOUNCE, ways->memory[a]};
        to_b = (struct tccl_edge){TCCL_BOUNCE, ways->memory[b]};
    }
    int count = tccl_edge_transfers(to_b, a, b, out);
    return count + tccl_edge_transfers(to_a, b, a, out + count);
}

/* Does NCCL use GPUDirect between them? The ends of the ring say so for their NIC. */
static bool is_near(const struct tccl_tree_ways *ways, int nic, int gpu)
{
    const struct tccl_chain *chain = ways->chain;
    struct tccl_device itself = {TCCL_GPU, (uint8_t)gpu}, other = {TCCL_NIC, (uint8_t)nic};
    int at = place_of(chain, gpu);
    if (at == 0 && nic == chain->entry.nic)
        return chain->entry.via.kind == TCCL_GPU;
    if (at == chain->n_gpus - 1 && nic == chain->exit.nic)
        return chain->exit.via.kind == TCCL_GPU;
    return ways->machine->gpudirect[nic][gpu] && below_one_switch(ways->machine, itself, other);
}

int tccl_tree_end(const struct tccl_tree_ways *ways, int nic, int gpu, tccl_transfer out[static 4])
{
    struct tccl_port port = {.nic = (uint8_t)nic, .via = {TCCL_MEMORY, ways->memory[gpu]}};
    if (is_near(ways, nic, gpu))
        port.via = (struct tccl_device){TCCL_GPU, (uint8_t)gpu};
    int count = tccl_entry_transfers(port, gpu, out);
    return count + tccl_exit_transfers(port, gpu, out + count);
}

void tccl_tree_along(const struct tccl_chain *chain, struct tccl_tree *tree)
{
    memset(tree, 0, sizeof(*tree));
    tree->nic = chain->entry.nic;
    memcpy(tree->gpus, chain->gpus, chain->n_gpus);
}

bool tccl_tree_fits(const struct tccl_tree *tree, const struct tccl_chain *chain, int n_nics)
{
    uint32_t seen = 0;
    if (tree->gbps == 0 && tree->along == 0)
        return true;
    for (int i = 0; i < chain->n_gpus; i++) {
        if (tree->gpus[i] >= TCCL_MAX_GPUS || place_of(chain, tree->gpus[i]) < 0 ||
            (seen >> tree->gpus[i] & 1))
            return false;
        seen |= UINT32_C(1) << tree->gpus[i];
    }
    return chain->n_gpus > 1 && !chain->closed && tree->nic < n_nics && isfinite(tree->gbps) &&
           tree->along >= 0 && tree->gbps >= tree->along;
}
