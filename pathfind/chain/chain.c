/* chain.c: a path over GPUs of one node: open with an entry and an exit port, or a closed ring. */
#include "chain/chain.h"

static struct tccl_device gpu(int index)
{
    return (struct tccl_device){.kind = TCCL_GPU, .index = (uint8_t)index};
}

static struct tccl_device memory(int index)
{
    return (struct tccl_device){.kind = TCCL_MEMORY, .index = (uint8_t)index};
}

static struct tccl_device nic(int index)
{
    return (struct tccl_device){.kind = TCCL_NIC, .index = (uint8_t)index};
}

int tccl_chain_edges(const struct tccl_chain *chain)
{
    if (chain->n_gpus < 2)
        return 0;
    return chain->closed ? chain->n_gpus : chain->n_gpus - 1;
}

int tccl_edge_transfers(struct tccl_edge edge, int from, int to, tccl_transfer out[static 2])
{
    switch (edge.kind) {
    case TCCL_P2P_WRITE:
        out[0] = tccl_transfer_make(gpu(from), false, gpu(to));
        return 1;
    case TCCL_P2P_READ:
        out[0] = tccl_transfer_make(gpu(to), true, gpu(from));
        return 1;
    default:
        out[0] = tccl_transfer_make(gpu(from), false, memory(edge.memory));
        out[1] = tccl_transfer_make(gpu(to), true, memory(edge.memory));
        return 2;
    }
}

int tccl_entry_transfers(struct tccl_port entry, int head, tccl_transfer out[static 2])
{
    out[0] = tccl_transfer_make(nic(entry.nic), false, entry.via);
    if (entry.via.kind == TCCL_GPU)
        return 1;
    out[1] = tccl_transfer_make(gpu(head), true, entry.via);
    return 2;
}

int tccl_exit_transfers(struct tccl_port exit, int tail, tccl_transfer out[static 2])
{
    out[0] = tccl_transfer_make(nic(exit.nic), true, exit.via);
    if (exit.via.kind == TCCL_GPU)
        return 1;
    out[1] = tccl_transfer_make(gpu(tail), false, exit.via);
    return 2;
}

static void add_all(struct tccl_set *set, const tccl_transfer *transfers, int count)
{
    for (int i = 0; i < count; i++)
        tccl_set_add(set, transfers[i]);
}

void tccl_chain_set(const struct tccl_chain *chain, struct tccl_set *set)
{
    int edges = tccl_chain_edges(chain);
    tccl_transfer transfers[2];

    set->count = 0;
    for (int i = 0; i < edges; i++) {
        int to = chain->gpus[(i + 1) % chain->n_gpus];
        add_all(set, transfers,
                tccl_edge_transfers(chain->edges[i], chain->gpus[i], to, transfers));
    }
    if (chain->closed || chain->n_gpus == 0)
        return;
    int tail = chain->gpus[chain->n_gpus - 1];
    add_all(set, transfers, tccl_entry_transfers(chain->entry, chain->gpus[0], transfers));
    add_all(set, transfers, tccl_exit_transfers(chain->exit, tail, transfers));
}

static int check_gpus(const struct tccl_chain *chain, const struct tccl_machine *machine,
                      struct tccl_error *err)
{
    uint32_t seen = 0;

    if (chain->n_gpus == 0 || chain->n_gpus > TCCL_MAX_GPUS)
        return tccl_fail(err, "the chain has no GPU, or more than %d", TCCL_MAX_GPUS);
    if (chain->closed && chain->n_gpus < 2)
        return tccl_fail(err, "a ring needs at least two GPUs");
    for (int i = 0; i < chain->n_gpus; i++) {
        int index = chain->gpus[i];
        if (index >= machine->n_gpus)
            return tccl_fail(err, "GPU %d does not exist: the machine has %d", index,
                             machine->n_gpus);
        if (seen & UINT32_C(1) << index)
            return tccl_fail(err, "GPU %d stands in the chain twice", index);
        seen |= UINT32_C(1) << index;
    }
    return 0;
}

/* Are all of them possible on the machine? */
static int check_transfers(const tccl_transfer *transfers, int count,
                           const struct tccl_machine *machine, struct tccl_error *err)
{
    for (int i = 0; i < count; i++)
        if (tccl_machine_allows(machine, transfers[i], err) < 0)
            return -1;
    return 0;
}

static int check_port(struct tccl_port port, int end, const char *what, struct tccl_error *err)
{
    if (port.via.kind == TCCL_NIC)
        return tccl_fail(err, "the %s goes through a NIC in place of a GPU or a memory", what);
    if (port.via.kind == TCCL_GPU && port.via.index != end)
        return tccl_fail(err, "the %s is at GPU %d, but the chain's end there is GPU %d", what,
                         port.via.index, end);
    return 0;
}

static int check_ports(const struct tccl_chain *chain, const struct tccl_machine *machine,
                       struct tccl_error *err)
{
    int head = chain->gpus[0], tail = chain->gpus[chain->n_gpus - 1];
    tccl_transfer transfers[2];

    if (check_port(chain->entry, head, "entry", err) < 0 ||
        check_port(chain->exit, tail, "exit", err) < 0)
        return -1;
    int count = tccl_entry_transfers(chain->entry, head, transfers);
    if (check_transfers(transfers, count, machine, err) < 0)
        return -1;
    count = tccl_exit_transfers(chain->exit, tail, transfers);
    return check_transfers(transfers, count, machine, err);
}

int tccl_chain_check(const struct tccl_chain *chain, const struct tccl_machine *machine,
                     struct tccl_error *err)
{
    if (check_gpus(chain, machine, err) < 0)
        return -1;
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        int to = chain->gpus[(i + 1) % chain->n_gpus];
        tccl_transfer transfers[2];
        if (chain->edges[i].kind > TCCL_BOUNCE)
            return tccl_fail(err, "the edge from GPU %d to GPU %d is of no known kind",
                             chain->gpus[i], to);
        int count = tccl_edge_transfers(chain->edges[i], chain->gpus[i], to, transfers);
        if (check_transfers(transfers, count, machine, err) < 0)
            return -1;
    }
    return chain->closed ? 0 : check_ports(chain, machine, err);
}

/* All buffers of a GPU are in one memory: where it receives, and on its way to the network. */
static int check_exit_memory(const struct tccl_chain *chain, struct tccl_error *err)
{
    if (chain->closed || chain->exit.via.kind != TCCL_MEMORY || chain->n_gpus == 0)
        return 0;
    struct tccl_edge edge = {TCCL_BOUNCE, chain->entry.via.index};
    if (chain->n_gpus > 1)
        edge = chain->edges[chain->n_gpus - 2];
    else if (chain->entry.via.kind != TCCL_MEMORY)
        return 0;
    if (edge.kind != TCCL_BOUNCE || edge.memory == chain->exit.via.index)
        return 0;
    return tccl_fail(err, "the last GPU can't receive in memory %d and send from memory %d",
                     edge.memory, chain->exit.via.index);
}

int tccl_chain_expressible(const struct tccl_chain *chain, struct tccl_error *err)
{
    int counts[TCCL_BOUNCE + 1] = {0};

    for (int i = 0; i < tccl_chain_edges(chain); i++)
        counts[chain->edges[i].kind % (TCCL_BOUNCE + 1)]++;
    if (counts[TCCL_P2P_WRITE] && counts[TCCL_P2P_READ])
        return tccl_fail(err, "P2P edges both write and read, but a node has one choice for all");
    if (chain->closed && counts[TCCL_BOUNCE] == 1 && chain->n_gpus > 1)
        return tccl_fail(err, "a single-node ring can't have exactly one edge through memory");
    if (!chain->closed && chain->n_gpus == 1 && chain->entry.nic != chain->exit.nic)
        return tccl_fail(err, "a chain of one GPU can't enter and leave by different NICs");
    return check_exit_memory(chain, err);
}
