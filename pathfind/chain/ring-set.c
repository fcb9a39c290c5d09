/* ring-set.c: several rings that run at once over the same GPUs of a node. */
#include "chain/ring-set.h"

#include <math.h>
#include <string.h>

int tccl_ring_set_check(const struct tccl_ring_set *set, const struct tccl_machine *machine,
                        struct tccl_error *err)
{
    if (set->n < 1 || set->n > TCCL_CHAIN_RINGS)
        return tccl_fail(err, "1 to %d rings can run at once", TCCL_CHAIN_RINGS);
    for (int i = 0; i < set->n; i++) {
        if (tccl_chain_check(&set->rings[i], machine, err) != 0)
            return set->n > 1 ? tccl_fail_in(err, "ring %d", i + 1) : -1;
        if (set->rings[i].closed != set->rings[0].closed ||
            tccl_chain_gpus(&set->rings[i]) != tccl_chain_gpus(&set->rings[0]))
            return tccl_fail(err, "ring %d has other GPUs than the first one", i + 1);
    }
    return 0;
}

int tccl_side_add_chain(struct tccl_side *side, const struct tccl_chain *chain)
{
    struct tccl_set set;
    tccl_chain_set(chain, &set);
    side->ranks = chain->n_gpus * (chain->closed ? 1 : 2);
    return tccl_side_add(side, &set);
}

int tccl_rings_side(const struct tccl_chain *rings, int n, struct tccl_side *side)
{
    side->rings = side->count = side->ranks = 0;
    for (int i = 0; i < n; i++)
        if (tccl_side_add_chain(side, &rings[i]) != 0) {
            side->rings = side->count = side->ranks = 0;
            return -1;
        }
    return 0;
}

double tccl_ring_set_line(const struct tccl_ring_set *set, const struct tccl_machine *machine)
{
    int counts[TCCL_MAX_NICS][2] = {{0}};
    double rate = INFINITY;
    for (int i = 0; i < set->n && !set->rings[0].closed; i++) {
        counts[set->rings[i].entry.nic][0]++;
        counts[set->rings[i].exit.nic][1]++;
    }
    for (int i = 0; i < machine->n_nics; i++)
        for (int k = 0; k < 2; k++)
            if (counts[i][k])
                rate = fmin(rate, machine->nics[i].gbps / counts[i][k]);
    return rate;
}

bool tccl_ring_set_equal(const struct tccl_ring_set *a, const struct tccl_ring_set *b)
{
    bool equal = a->n == b->n;
    for (int i = 0; i < a->n && equal; i++)
        equal = tccl_chain_equal(&a->rings[i], &b->rings[i]);
    return equal;
}

bool tccl_ring_set_alike(const struct tccl_ring_set *a, const struct tccl_ring_set *b)
{
    struct tccl_side x, y;
    tccl_ring_set_side(a, &x);
    tccl_ring_set_side(b, &y);
    return a->n == b->n && tccl_side_equal(&x, &y);
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

bool tccl_ring_set_reads(const struct tccl_ring_set *set)
{
    bool reads = false;
    for (int i = 0; i < set->n; i++)
        reads = reads || tccl_chain_reads(&set->rings[i]);
    return reads;
}

void tccl_ring_set_turn(struct tccl_ring_set *set, bool reads)
{
    for (int i = 0; i < set->n; i++)
        for (int k = 0; k < tccl_chain_edges(&set->rings[i]); k++)
            if (set->rings[i].edges[k].kind < TCCL_BOUNCE)
                set->rings[i].edges[k].kind = reads ? TCCL_P2P_READ : TCCL_P2P_WRITE;
}
