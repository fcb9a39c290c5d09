/* expressible.c: what a stock NCCL can be made to build. */
#include "chain/chain.h"

#include <string.h>

enum { AMPERE = 80 /* from this compute capability on GPUs send by GPUDirect */ };

/* What NCCL decides once for a process or a pair of GPUs, over all chains. */
struct decided {
    const struct tccl_machine *machine;
    int8_t reads;                    /* P2P edges read, 1, or write, 0; -1: there is none yet */
    uint32_t islands[TCCL_MAX_GPUS]; /* of each GPU: those in its island, itself included */
    int8_t memories[TCCL_MAX_GPUS];  /* of its buffers, -1: none yet */
    int8_t direct[TCCL_MAX_GPUS];    /* GPUDirect: 0, 1; -1: it meets no NIC */
    uint32_t near[TCCL_MAX_NICS];    /* the GPUs that have GPUDirect to the NIC */
};

/* Joins the islands of two GPUs. */
static void join(struct decided *decided, int a, int b)
{
    uint32_t both = decided->islands[a] | decided->islands[b];
    for (uint32_t left = both; left; left &= left - 1)
        decided->islands[__builtin_ctz(left)] = both;
}

static int use_memory(struct decided *decided, int gpu, int memory, struct tccl_error *err)
{
    if (decided->memories[gpu] >= 0 && decided->memories[gpu] != memory)
        return tccl_fail(err, "GPU %d can't have buffers in memory %d and in memory %d", gpu,
                         decided->memories[gpu], memory);
    decided->memories[gpu] = (int8_t)memory;
    return 0;
}

static int use_port(struct decided *decided, struct tccl_port port, int gpu, struct tccl_error *err)
{
    int direct = port.via.kind == TCCL_GPU;
    if (decided->direct[gpu] >= 0 && decided->direct[gpu] != direct)
        return tccl_fail(err, "GPU %d can't have GPUDirect in one ring only", gpu);
    decided->direct[gpu] = (int8_t)direct;
    if (!direct)
        return use_memory(decided, gpu, port.via.index, err);
    uint32_t near = decided->near[port.nic];
    if (near)
        join(decided, gpu, __builtin_ctz(near));
    decided->near[port.nic] |= UINT32_C(1) << gpu;
    return 0;
}

/* May the last GPU send by GPUDirect, and does it where it can? */
static bool may_send(const struct decided *decided, const struct tccl_chain *chain)
{
    int sm = decided->machine ? decided->machine->gpus[chain->gpus[chain->n_gpus - 1]].sm : 0;
    return sm == 0 || sm >= AMPERE || chain->n_gpus == 1;
}

static int use_ports(struct decided *decided, const struct tccl_chain *chain,
                     struct tccl_error *err)
{
    int tail = chain->gpus[chain->n_gpus - 1];
    if (chain->n_gpus == 1 && chain->entry.nic != chain->exit.nic)
        return tccl_fail(err, "a chain of one GPU can't enter and leave by different NICs");
    if (chain->exit.via.kind == TCCL_GPU && !may_send(decided, chain))
        return tccl_fail(err, "GPU %d can't send by GPUDirect: its compute capability is below 8.0",
                         tail);
    return use_port(decided, chain->entry, chain->gpus[0], err) != 0
               ? -1
               : use_port(decided, chain->exit, tail, err);
}

static int use_chain(struct decided *decided, const struct tccl_chain *chain,
                     struct tccl_error *err)
{
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        int to = chain->gpus[(i + 1) % chain->n_gpus];
        bool reads = chain->edges[i].kind == TCCL_P2P_READ;
        if (chain->edges[i].kind == TCCL_BY_NICS)
            return tccl_fail(err,
                             "an edge by NICs leads from GPU %d to GPU %d, which only NCCL's own "
                             "rings have",
                             chain->gpus[i], to);
        if (chain->edges[i].kind == TCCL_BOUNCE) {
            if (use_memory(decided, to, chain->edges[i].memory, err) != 0)
                return -1;
            continue;
        }
        if (decided->reads == !reads)
            return tccl_fail(
                err,
                "some P2P edges read and others write, but NCCL has one setting for all of them");
        decided->reads = reads;
        join(decided, chain->gpus[i], to);
    }
    return chain->closed || chain->n_gpus == 0 ? 0 : use_ports(decided, chain, err);
}

static int check_bounces(const struct decided *decided, const struct tccl_chain *chain,
                         struct tccl_error *err)
{
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        int from = chain->gpus[i], to = chain->gpus[(i + 1) % chain->n_gpus];
        if (chain->edges[i].kind == TCCL_BOUNCE && decided->islands[from] >> to & 1)
            return tccl_fail(err,
                             "the edge from GPU %d to GPU %d goes through memory, but NCCL uses "
                             "P2P there: P2P edges or GPUDirect to one NIC join the two",
                             from, to);
    }
    return 0;
}

/* A NIC is near all GPUs of an island or none. */
static int check_port(const struct decided *decided, struct tccl_port port, int gpu,
                      struct tccl_error *err)
{
    if (port.via.kind == TCCL_GPU || !(decided->near[port.nic] & decided->islands[gpu]))
        return 0;
    return tccl_fail(err,
                     "GPU %d can't use a NIC through memory: a GPU that P2P edges join it with has "
                     "GPUDirect to this NIC",
                     gpu);
}

static int check_ports(const struct decided *decided, const struct tccl_chain *chain,
                       struct tccl_error *err)
{
    if (chain->closed || chain->n_gpus == 0)
        return 0;
    if (check_port(decided, chain->entry, chain->gpus[0], err) != 0)
        return -1;
    return decided->machine && may_send(decided, chain)
               ? check_port(decided, chain->exit, chain->gpus[chain->n_gpus - 1], err)
               : 0;
}

int tccl_expressible(const struct tccl_machine *machine, const struct tccl_chain *chains, int n,
                     struct tccl_error *err)
{
    struct decided decided;
    decided.machine = machine;
    decided.reads = -1;
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        decided.islands[i] = UINT32_C(1) << i;
    memset(decided.memories, -1, sizeof(decided.memories));
    memset(decided.direct, -1, sizeof(decided.direct));
    memset(decided.near, 0, sizeof(decided.near));
    for (int i = 0; i < n; i++)
        if (use_chain(&decided, &chains[i], err) != 0)
            return -1;
    for (int i = 0; i < n; i++)
        if (check_bounces(&decided, &chains[i], err) != 0 ||
            check_ports(&decided, &chains[i], err) != 0)
            return -1;
    return 0;
}
