/* room.c: what rings on a part of a node leave to others. */
#include "ring/neighbours.h"

#include "machine/links.h"

/* Is the memory next to none of these GPUs? */
static bool is_far(uint32_t near, struct tccl_device at)
{
    return at.kind == TCCL_MEMORY && !(near >> at.index & 1);
}

int tccl_chain_far(const struct tccl_machine *machine, const struct tccl_chain *chain)
{
    uint32_t near = 0;
    int far = 0;
    for (int i = 0; i < chain->n_gpus; i++)
        near |= UINT32_C(1) << machine->gpus[chain->gpus[i]].numa;
    for (int i = 0; i < tccl_chain_edges(chain); i++)
        far += chain->edges[i].kind == TCCL_BOUNCE && !(near >> chain->edges[i].memory & 1);
    if (!chain->closed)
        far += is_far(near, chain->entry.via) + is_far(near, chain->exit.via);
    return far;
}

static uint32_t gpus_below(const struct tccl_machine *machine, int above)
{
    uint32_t gpus = 0;
    for (int i = 0; i < machine->n_gpus; i++)
        for (int k = machine->gpus[i].parent; k >= 0; k = machine->switches[k].parent)
            if (k == above)
                gpus |= UINT32_C(1) << i;
    return gpus;
}

static uint32_t gpus_next_to(const struct tccl_machine *machine, int memory)
{
    uint32_t gpus = 0;
    for (int i = 0; i < machine->n_gpus; i++)
        if (machine->gpus[i].numa == memory)
            gpus |= UINT32_C(1) << i;
    return gpus;
}

/* Several rings one way over the link, and more than the single one? */
static bool is_crowded(const int *users, const int *single, int link)
{
    return (users[link] > 1 && users[link] > single[link]) ||
           (users[link + 1] > 1 && users[link + 1] > single[link + 1]);
}

/* Over a NIC that is next to others, too, or the link of a switch that others are below. */
static bool crowds(const struct tccl_machine *machine, uint32_t gpus, const int *users,
                   const int *single)
{
    for (int i = 0; i < machine->n_nics; i++)
        if (is_crowded(users, single, TCCL_LINK_NICS + 2 * i) &&
            (gpus_next_to(machine, machine->nics[i].numa) & ~gpus) != 0)
            return true;
    for (int i = 0; i < machine->n_switches; i++)
        if (is_crowded(users, single, TCCL_LINK_SWITCHES + 2 * i) &&
            (gpus_below(machine, i) & ~gpus) != 0)
            return true;
    return false;
}

static int count_nics(const struct tccl_machine *machine, const int *users)
{
    int n = 0;
    for (int i = 0; i < machine->n_nics; i++)
        n += users[TCCL_LINK_NICS + 2 * i] || users[TCCL_LINK_NICS + 2 * i + 1];
    return n;
}

bool tccl_set_takes_room(const struct tccl_machine *machine, const struct tccl_ring_set *set,
                         const struct tccl_chain *single)
{
    int users[TCCL_LINKS], own[TCCL_LINKS] = {0};
    struct tccl_side all, one = {0};
    int n_gpus = set->rings[0].n_gpus, far = tccl_chain_far(machine, single);
    if (n_gpus == machine->n_gpus)
        return false;
    for (int i = 0; i < set->n; i++)
        if (set->rings[i].closed && tccl_chain_far(machine, &set->rings[i]) > far)
            return true;
    tccl_ring_set_side(set, &all);
    tccl_links_users(machine, NULL, all.transfers, all.count, users);
    if (single->n_gpus && tccl_rings_side(single, 1, &one) == 0)
        tccl_links_users(machine, NULL, one.transfers, one.count, own);
    int nics = count_nics(machine, users), part = machine->n_nics * n_gpus / machine->n_gpus;
    return (nics > 1 && nics > part && nics > count_nics(machine, own)) ||
           crowds(machine, tccl_chain_gpus(&set->rings[0]), users, own);
}
