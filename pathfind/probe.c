/* probe.c: measuring for the search, and explaining what was measured. */
#include "probe.h"

static bool used_up(const struct tccl_probe *probe, bool archived)
{
    return (probe->limit > 0 && probe->asked >= probe->limit) ||
           (!archived && probe->budget > 0 && probe->measured >= probe->budget);
}

int tccl_probe_measure(struct tccl_probe *probe, const struct tccl_walk *walk, double *gbps,
                       struct tccl_error *err)
{
    struct tccl_measurement measurement;
    struct tccl_set set = {0};
    bool symmetric;
    if (tccl_knowledge_find(probe->knowledge, walk, gbps, &symmetric)) {
        probe->shared += symmetric;
        return 0;
    }
    for (int i = 0; i < walk->count; i++)
        tccl_set_add(&set, walk->transfers[i]);
    const struct tccl_setmap_entry *archived = tccl_setmap_find(&probe->archive, &set);
    if (used_up(probe, archived))
        return 1;
    if (archived)
        measurement.gbps = archived->gbps;
    else if (probe->meter.measure(probe->meter.context, &set, &measurement, err) < 0)
        return -1;
    probe->measured += !archived;
    probe->asked++;
    *gbps = measurement.gbps;
    if (tccl_knowledge_add(probe->knowledge, walk, *gbps) < 0)
        return tccl_fail(err, "no memory for the measured sets");
    return 0;
}

/* The search for a smallest explanation; subsets of the walk are bit masks. */
struct explain {
    struct tccl_probe *probe;
    const struct tccl_walk *walk;
    double most;
    struct tccl_error *err;
    int status; /* 0, or why it had to stop */
};

static struct tccl_walk part_of(const struct tccl_walk *walk, uint64_t mask)
{
    struct tccl_walk part = {.count = 0};
    for (int i = 0; i < walk->count; i++)
        if (mask >> i & 1)
            part.transfers[part.count++] = walk->transfers[i];
    return part;
}

/* Does this part reach no more than most? */
static bool is_slow(struct explain *explain, uint64_t mask)
{
    struct tccl_walk part = part_of(explain->walk, mask);
    double gbps;
    if (explain->status != 0 || mask == 0)
        return false;
    if (!tccl_knowledge_find(explain->probe->knowledge, &part, &gbps, NULL) &&
        tccl_knowledge_floor(explain->probe->knowledge, &part) > explain->most)
        return false;
    explain->status = tccl_probe_measure(explain->probe, &part, &gbps, explain->err);
    return explain->status == 0 && gbps <= explain->most;
}

/* The smallest part of candidates that is slow together with base. added: base has grown since it
 * was last looked at. */
static uint64_t shrink(struct explain *explain, uint64_t base, bool added, uint64_t candidates)
{
    if (explain->status != 0 || (added && is_slow(explain, base)))
        return 0;
    int count = __builtin_popcountll(candidates);
    if (count <= 1)
        return candidates;
    uint64_t left = 0, rest = candidates;
    for (int i = 0; i < count / 2; i++) {
        left |= rest & -rest;
        rest &= rest - 1;
    }
    uint64_t from_rest = shrink(explain, base | left, true, rest);
    uint64_t from_left = shrink(explain, base | from_rest, from_rest != 0, left);
    return from_left | from_rest;
}

int tccl_probe_explain(struct tccl_probe *probe, const struct tccl_walk *walk, double most,
                       struct tccl_error *err)
{
    struct explain explain = {probe, walk, most, err, 0};
    uint64_t all = walk->count == 64 ? ~0ULL : (1ULL << walk->count) - 1, inside = 0;
    for (int i = 0; i < walk->count; i++)
        if (tccl_transfer_initiator(walk->transfers[i]).kind != TCCL_NIC)
            inside |= 1ULL << i;
    /* What lies inside the node says more: it bounds chains between any ports. */
    bool is_inside = inside != all && is_slow(&explain, inside);
    uint64_t mask = shrink(&explain, 0, false, is_inside ? inside : all);
    if (explain.status != 0)
        return explain.status;
    struct tccl_walk part = part_of(walk, mask);
    double gbps;
    int status = tccl_probe_measure(probe, &part, &gbps, err);
    if (status == 0 && gbps > most) { /* noise: the whole must do */
        part = *walk;
        status = tccl_probe_measure(probe, &part, &gbps, err);
    }
    if (status == 0 && tccl_knowledge_limit(probe->knowledge, &part, gbps) < 0)
        return tccl_fail(err, "no memory for the limits");
    return status;
}
