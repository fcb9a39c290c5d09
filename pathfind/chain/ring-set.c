/* ring-set.c: several rings that run at once over the same GPUs of a node. */
#include "chain/ring-set.h"

#include <stdlib.h>
#include <string.h>

static uint32_t gpus_of(const struct tccl_chain *chain)
{
    uint32_t gpus = 0;
    for (int i = 0; i < chain->n_gpus; i++)
        gpus |= UINT32_C(1) << chain->gpus[i];
    return gpus;
}

int tccl_ring_set_check(const struct tccl_ring_set *set, const struct tccl_machine *machine,
                        struct tccl_error *err)
{
    if (set->n < 1 || set->n > TCCL_CHAIN_RINGS)
        return tccl_fail(err, "a set has 1 to %d rings", TCCL_CHAIN_RINGS);
    for (int i = 0; i < set->n; i++) {
        if (tccl_chain_check(&set->rings[i], machine, err) != 0)
            return set->n > 1 ? tccl_fail_in(err, "ring %d of the set", i + 1) : -1;
        if (set->rings[i].closed != set->rings[0].closed ||
            gpus_of(&set->rings[i]) != gpus_of(&set->rings[0]))
            return tccl_fail(err, "ring %d of the set has other GPUs than the first one", i + 1);
    }
    return 0;
}

int tccl_side_add_chain(struct tccl_side *side, const struct tccl_chain *chain)
{
    struct tccl_set set;
    tccl_chain_set(chain, &set);
    return tccl_side_add(side, &set);
}

void tccl_ring_set_side(const struct tccl_ring_set *set, struct tccl_side *side)
{
    side->rings = side->count = 0;
    for (int i = 0; i < set->n; i++)
        tccl_side_add_chain(side, &set->rings[i]); /* there is room for all */
}

static int compare_transfers(const void *a, const void *b)
{
    const tccl_transfer *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

bool tccl_ring_set_alike(const struct tccl_ring_set *a, const struct tccl_ring_set *b)
{
    struct tccl_side x, y;
    tccl_ring_set_side(a, &x);
    tccl_ring_set_side(b, &y);
    qsort(x.transfers, x.count, sizeof(*x.transfers), compare_transfers);
    qsort(y.transfers, y.count, sizeof(*y.transfers), compare_transfers);
    return a->n == b->n && x.count == y.count &&
           memcmp(x.transfers, y.transfers, x.count * sizeof(*x.transfers)) == 0;
}

/* What NCCL decides once for a process or a pair of GPUs, over all rings. */
struct decided {
    uint32_t islands[TCCL_MAX_GPUS]; /* of each GPU: those in its island, itself included */
    int memories[TCCL_MAX_GPUS];     /* of its buffers, -1: none yet */
    int direct[TCCL_MAX_GPUS];       /* GPUDirect: 0, 1; -1: it meets no NIC */
    uint32_t near[TCCL_MAX_NICS];    /* the GPUs that have GPUDirect to the NIC */
};

/* Joins the islands of two GPUs. */
static void join(struct decided *decided, int a, int b)
{
    uint32_t both = decided->islands[a] | decided->islands[b];
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (both >> i & 1)
            decided->islands[i] = both;
}

static int use_memory(struct decided *decided, int gpu, int memory, struct tccl_error *err)
{
    if (decided->memories[gpu] >= 0 && decided->memories[gpu] != memory)
        return tccl_fail(err, "GPU %d can't have buffers in memory %d and in memory %d", gpu,
                         decided->memories[gpu], memory);
    decided->memories[gpu] = memory;
    return 0;
}

static int use_port(struct decided *decided, struct tccl_port port, int gpu, struct tccl_error *err)
{
    int direct = port.via.kind == TCCL_GPU;
    if (decided->direct[gpu] >= 0 && decided->direct[gpu] != direct)
        return tccl_fail(err, "GPU %d can't have GPUDirect in one ring only", gpu);
    decided->direct[gpu] = direct;
    if (!direct)
        return use_memory(decided, gpu, port.via.index, err);
    uint32_t near = decided->near[port.nic];
    if (near)
        join(decided, gpu, __builtin_ctz(near));
    decided->near[port.nic] |= UINT32_C(1) << gpu;
    return 0;
}

static int use_chain(struct decided *decided, const struct tccl_chain *chain,
                     struct tccl_error *err)
{
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        int to = chain->gpus[(i + 1) % chain->n_gpus];
        if (chain->edges[i].kind != TCCL_BOUNCE)
            join(decided, chain->gpus[i], to);
        else if (use_memory(decided, to, chain->edges[i].memory, err) != 0)
            return -1;
    }
    if (chain->closed || chain->n_gpus == 0)
        return 0;
    return use_port(decided, chain->entry, chain->gpus[0], err) != 0
               ? -1
               : use_port(decided, chain->exit, chain->gpus[chain->n_gpus - 1], err);
}

static int check_bounces(const struct decided *decided, const struct tccl_chain *chain,
                         struct tccl_error *err)
{
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        int from = chain->gpus[i], to = chain->gpus[(i + 1) % chain->n_gpus];
        if (chain->edges[i].kind == TCCL_BOUNCE && decided->islands[from] >> to & 1)
            return tccl_fail(err,
                             "an edge through memory leads from GPU %d to GPU %d, which P2P edges "
                             "or GPUDirect to one NIC join",
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
                     "GPU %d can't use a NIC through memory to which a GPU has GPUDirect that P2P "
                     "edges join it with",
                     gpu);
}

static int check_ports(const struct decided *decided, const struct tccl_chain *chain, bool alone,
                       struct tccl_error *err)
{
    if (chain->closed || chain->n_gpus == 0)
        return 0;
    if (check_port(decided, chain->entry, chain->gpus[0], err) != 0)
        return -1;
    return alone ? 0 : check_port(decided, chain->exit, chain->gpus[chain->n_gpus - 1], err);
}

int tccl_ring_set_expressible(const struct tccl_ring_set *set, struct tccl_error *err)
{
    struct decided decided = {.near = {0}};

    for (int i = 0; i < TCCL_MAX_GPUS; i++) {
        decided.islands[i] = UINT32_C(1) << i;
        decided.memories[i] = decided.direct[i] = -1;
    }
    for (int i = 0; i < set->n; i++) {
        if (tccl_chain_expressible(&set->rings[i], err) != 0)
            return set->n > 1 ? tccl_fail_in(err, "ring %d of the set", i + 1) : -1;
        if (use_chain(&decided, &set->rings[i], err) != 0)
            return -1;
    }
    for (int i = 0; i < set->n; i++)
        if (check_bounces(&decided, &set->rings[i], err) != 0 ||
            check_ports(&decided, &set->rings[i], set->n == 1, err) != 0)
            return -1;
    return 0;
}

void tccl_ring_set_format(const struct tccl_ring_set *set, const struct tccl_machine *machine,
                          char text[static TCCL_RINGS_TEXT])
{
    struct tccl_named_rings named = {.n = set->n};
    for (int i = 0; i < set->n; i++)
        tccl_chain_name(&set->rings[i], machine, true, &named.chains[i]);
    tccl_named_rings_format(&named, text);
}

int tccl_ring_set_parse(const char *text, const struct tccl_machine *machine,
                        struct tccl_ring_set *set, struct tccl_error *err)
{
    struct tccl_named_rings named;
    memset(set, 0, sizeof(*set));
    if (tccl_named_rings_parse(text, &named, err) != 0)
        return -1;
    set->n = named.n;
    for (int i = 0; i < named.n; i++)
        if (tccl_chain_resolve(&named.chains[i], machine, &set->rings[i], err) != 0)
            return -1;
    return tccl_ring_set_check(set, machine, err);
}
