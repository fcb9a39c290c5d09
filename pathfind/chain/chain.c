/* chain.c: a path over GPUs of one node: open with an entry and an exit port, or a closed ring. */
#include "chain/chain.h"

#include <string.h>

_Static_assert((int)TCCL_CHAIN_GPUS == (int)TCCL_MAX_GPUS && (int)TCCL_CHAIN_NIC == (int)TCCL_NAME,
               "a text can name what a machine has");

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

uint32_t tccl_chain_gpus(const struct tccl_chain *chain)
{
    uint32_t gpus = 0;
    for (int i = 0; i < chain->n_gpus; i++)
        gpus |= UINT32_C(1) << chain->gpus[i];
    return gpus;
}

int tccl_edge_transfers(struct tccl_edge edge, int from, int to, tccl_transfer *out)
{
    int sent;
    switch (edge.kind) {
    case TCCL_P2P_WRITE:
        out[0] = tccl_transfer_make(gpu(from), false, gpu(to));
        return 1;
    case TCCL_P2P_READ:
        out[0] = tccl_transfer_make(gpu(to), true, gpu(from));
        return 1;
    case TCCL_BY_NICS:
        sent = tccl_exit_transfers(edge.from, from, out);
        return sent + tccl_entry_transfers(edge.to, to, out + sent);
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

void tccl_chain_walk(const struct tccl_chain *chain, struct tccl_set *walk)
{
    int n = chain->n_gpus;
    bool ports = !chain->closed && n > 0;
    walk->count = 0;
    if (ports)
        walk->count += tccl_entry_transfers(chain->entry, chain->gpus[0], walk->transfers);
    for (int i = 0; i < tccl_chain_edges(chain); i++)
        walk->count += tccl_edge_transfers(chain->edges[i], chain->gpus[i],
                                           chain->gpus[(i + 1) % n], walk->transfers + walk->count);
    if (ports)
        walk->count +=
            tccl_exit_transfers(chain->exit, chain->gpus[n - 1], walk->transfers + walk->count);
}

void tccl_chain_set(const struct tccl_chain *chain, struct tccl_set *set)
{
    struct tccl_set walk;
    tccl_chain_walk(chain, &walk);
    *set = tccl_set_sorted(walk.transfers, walk.count);
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

static bool has_port(const struct tccl_machine *machine, struct tccl_port port)
{
    return port.nic < machine->n_nics &&
           (port.via.kind == TCCL_GPU ? machine->gpudirect[port.nic][port.via.index]
                                      : port.via.index < machine->n_memories);
}

static bool has_edge(const struct tccl_machine *machine, struct tccl_edge edge, int from, int to)
{
    switch (edge.kind) {
    case TCCL_P2P_WRITE:
        return machine->p2p[from][to];
    case TCCL_P2P_READ:
        return machine->p2p[to][from];
    case TCCL_BY_NICS:
        return has_port(machine, edge.from) && has_port(machine, edge.to);
    default:
        return edge.memory < machine->n_memories;
    }
}

int tccl_chain_check(const struct tccl_chain *chain, const struct tccl_machine *machine,
                     struct tccl_error *err)
{
    struct tccl_set walk;
    uint32_t seen = 0;
    bool there = true;
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
            return tccl_fail(err, "GPU %d is in the chain twice", index);
        seen |= UINT32_C(1) << index;
    }
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        int from = chain->gpus[i], to = chain->gpus[(i + 1) % chain->n_gpus];
        if (chain->edges[i].kind > TCCL_BY_NICS)
            return tccl_fail(err, "the edge from GPU %d to GPU %d is of an unknown kind", from, to);
        if (chain->edges[i].kind == TCCL_BY_NICS &&
            (check_port(chain->edges[i].from, from, "way to a NIC", err) != 0 ||
             check_port(chain->edges[i].to, to, "way from a NIC", err) != 0))
            return -1;
        there = there && has_edge(machine, chain->edges[i], from, to);
    }
    if (!chain->closed &&
        (check_port(chain->entry, chain->gpus[0], "entry", err) != 0 ||
         check_port(chain->exit, chain->gpus[chain->n_gpus - 1], "exit", err) != 0))
        return -1;
    /* Transfers are named only where something is missing: a table has thousands of chains. */
    if (there &&
        (chain->closed || (has_port(machine, chain->entry) && has_port(machine, chain->exit))))
        return 0;
    tccl_chain_walk(chain, &walk);
    for (int i = 0; i < walk.count; i++)
        if (tccl_machine_allows(machine, walk.transfers[i], err) != 0)
            return -1;
    return 0;
}

bool tccl_port_equal(struct tccl_port a, struct tccl_port b)
{
    return a.nic == b.nic && tccl_device_equal(a.via, b.via);
}

static bool edge_equal(struct tccl_edge a, struct tccl_edge b)
{
    return a.kind == b.kind && a.memory == b.memory && tccl_port_equal(a.from, b.from) &&
           tccl_port_equal(a.to, b.to);
}

/* An edge of a kind from first to last. */
static bool has(const struct tccl_chain *chain, int first, int last)
{
    for (int i = 0; i < tccl_chain_edges(chain); i++)
        if (chain->edges[i].kind >= first && chain->edges[i].kind <= last)
            return true;
    return false;
}

bool tccl_chain_has_p2p(const struct tccl_chain *chain)
{
    return has(chain, TCCL_P2P_WRITE, TCCL_P2P_READ);
}

bool tccl_chain_reads(const struct tccl_chain *chain)
{
    return has(chain, TCCL_P2P_READ, TCCL_P2P_READ);
}

bool tccl_chain_by_nics(const struct tccl_chain *chain)
{
    return has(chain, TCCL_BY_NICS, TCCL_BY_NICS);
}

bool tccl_chain_equal(const struct tccl_chain *a, const struct tccl_chain *b)
{
    if (a->n_gpus != b->n_gpus || a->closed != b->closed ||
        memcmp(a->gpus, b->gpus, a->n_gpus) != 0)
        return false;
    for (int i = 0; i < tccl_chain_edges(a); i++)
        if (!edge_equal(a->edges[i], b->edges[i]))
            return false;
    return a->n_gpus == 0 || a->closed ||
           (tccl_port_equal(a->entry, b->entry) && tccl_port_equal(a->exit, b->exit));
}

/* Names */

/* Of a port: the memory, or -1 with GPUDirect. */
static int16_t memory_of(struct tccl_port port)
{
    return port.via.kind == TCCL_GPU ? -1 : port.via.index;
}

static void name_port(struct tccl_port port, const char *nic, struct tccl_named_port *named)
{
    named->memory = memory_of(port);
    named->gpudirect = named->memory < 0;
    strncpy(named->nic, nic, sizeof(named->nic) - 1);
}

static struct tccl_named_edge name_edge(struct tccl_edge edge)
{
    if (edge.kind != TCCL_BY_NICS)
        return (struct tccl_named_edge){.kind = edge.kind,
                                        .memory = edge.kind == TCCL_BOUNCE ? edge.memory : -1};
    return (struct tccl_named_edge){TCCL_BY_NICS, memory_of(edge.from), memory_of(edge.to),
                                    edge.from.nic, edge.to.nic};
}

void tccl_chain_name_nics(const struct tccl_chain *chain, const char *entry, const char *exit,
                          struct tccl_named_chain *named)
{
    *named = (struct tccl_named_chain){
        .closed = chain->closed, .numbers = true, .n_gpus = chain->n_gpus};
    for (int i = 0; i < chain->n_gpus; i++)
        named->gpus[i] = chain->gpus[i];
    for (int i = 0; i < tccl_chain_edges(chain); i++)
        named->edges[i] = name_edge(chain->edges[i]);
    if (chain->closed || chain->n_gpus == 0)
        return;
    name_port(chain->entry, entry, &named->entry);
    name_port(chain->exit, exit, &named->exit);
}

void tccl_chain_name(const struct tccl_chain *chain, const struct tccl_machine *machine,
                     bool numbers, struct tccl_named_chain *named)
{
    bool ports = !chain->closed && chain->n_gpus > 0;
    tccl_chain_name_nics(chain, ports ? machine->nics[chain->entry.nic].name : "",
                         ports ? machine->nics[chain->exit.nic].name : "", named);
    named->numbers = numbers;
    for (int i = 0; i < chain->n_gpus && !numbers; i++)
        tccl_bus_parse(machine->gpus[chain->gpus[i]].busid, &named->gpus[i]);
}

/* through: a memory, or -1. */
static struct tccl_port resolve_port(int through, int nic, int end)
{
    return (struct tccl_port){.nic = (uint8_t)nic, .via = through < 0 ? gpu(end) : memory(through)};
}

static struct tccl_edge resolve_edge(const struct tccl_named_edge *named, int from, int to)
{
    struct tccl_edge edge = {.kind = named->kind};
    if (named->kind == TCCL_BOUNCE)
        edge.memory = (uint8_t)named->memory;
    if (named->kind == TCCL_BY_NICS) {
        edge.from = resolve_port(named->memory, named->from_nic, from);
        edge.to = resolve_port(named->to_memory, named->to_nic, to);
    }
    return edge;
}

/* Numbers that fit into a chain; the machine may have fewer devices. */
static int check_numbers(const struct tccl_named_chain *named, struct tccl_error *err)
{
    for (int i = 0; i < named->n_gpus; i++)
        if (!named->numbers || named->gpus[i] >= TCCL_MAX_GPUS)
            return tccl_fail(err, "GPU %llu is out of range: 0 to %d",
                             (unsigned long long)named->gpus[i], TCCL_MAX_GPUS - 1);
    for (int i = 0; i < named->n_gpus + !named->closed; i++) {
        struct tccl_text_arrow arrow = tccl_named_arrow(named, i);
        int memory = arrow.memory > arrow.to_memory ? arrow.memory : arrow.to_memory,
            nic = arrow.from_nic > arrow.to_nic ? arrow.from_nic : arrow.to_nic;
        if (memory >= TCCL_MAX_MEMORIES)
            return tccl_fail(err, "memory %d is out of range: 0 to %d", memory,
                             TCCL_MAX_MEMORIES - 1);
        if (nic >= TCCL_MAX_NICS)
            return tccl_fail(err, "NIC %d is out of range: 0 to %d", nic, TCCL_MAX_NICS - 1);
    }
    return 0;
}

int tccl_chain_resolve_nics(const struct tccl_named_chain *named, int entry, int exit,
                            struct tccl_chain *chain, struct tccl_error *err)
{
    *chain = (struct tccl_chain){.closed = named->closed, .n_gpus = named->n_gpus};
    if (check_numbers(named, err) != 0)
        return -1;
    for (int i = 0; i < named->n_gpus && i < TCCL_MAX_GPUS; i++)
        chain->gpus[i] = (uint8_t)named->gpus[i];
    for (int i = 0; i < tccl_named_edges(named); i++)
        chain->edges[i] =
            resolve_edge(&named->edges[i], chain->gpus[i], chain->gpus[(i + 1) % chain->n_gpus]);
    if (named->closed)
        return 0;
    chain->entry = resolve_port(named->entry.memory, entry, chain->gpus[0]);
    chain->exit = resolve_port(named->exit.memory, exit, chain->gpus[chain->n_gpus - 1]);
    return 0;
}

static int find_nic(const struct tccl_machine *machine, const char *name, struct tccl_error *err)
{
    int nic = tccl_machine_find_nic(machine, name);
    return nic >= 0 ? nic : tccl_fail(err, "this machine has no NIC %s", name);
}

/* The GPUs' numbers on the machine. */
static int number_gpus(const struct tccl_named_chain *named, const struct tccl_machine *machine,
                       struct tccl_named_chain *numbered, struct tccl_error *err)
{
    char bus[TCCL_BUS_TEXT];
    *numbered = *named;
    numbered->numbers = true;
    for (int i = 0; i < named->n_gpus && !named->numbers; i++) {
        tccl_bus_format(named->gpus[i], bus);
        int found = tccl_machine_find_gpu(machine, bus);
        if (found < 0)
            return tccl_fail(err, "this machine has no GPU %s", bus);
        numbered->gpus[i] = (tccl_bus)found;
    }
    return 0;
}

int tccl_chain_resolve(const struct tccl_named_chain *named, const struct tccl_machine *machine,
                       struct tccl_chain *chain, struct tccl_error *err)
{
    struct tccl_named_chain numbered;
    int entry = named->closed ? 0 : find_nic(machine, named->entry.nic, err);
    int exit = named->closed ? 0 : find_nic(machine, named->exit.nic, err);
    if (entry < 0 || exit < 0 || number_gpus(named, machine, &numbered, err) != 0)
        return -1;
    return tccl_chain_resolve_nics(&numbered, entry, exit, chain, err);
}

void tccl_chain_format(const struct tccl_chain *chain, const struct tccl_machine *machine,
                       char text[static TCCL_CHAIN_TEXT])
{
    struct tccl_named_chain named;
    tccl_chain_name(chain, machine, true, &named);
    tccl_named_format(&named, text);
}

int tccl_chain_parse(const char *text, const struct tccl_machine *machine, struct tccl_chain *chain,
                     struct tccl_error *err)
{
    struct tccl_named_chain named;
    memset(chain, 0, sizeof(*chain));
    if (tccl_named_parse(text, &named, err) != 0 ||
        tccl_chain_resolve(&named, machine, chain, err) != 0)
        return -1;
    return tccl_chain_check(chain, machine, err);
}
