/* limit.c: what limits chains that run at once, by what a profile knows. */
#include "report/limit.h"

#include <math.h>

#include "chain/memory-load.h"
#include "report/congestion.h"

/* A transfer that several of them make runs as often. */
static void set_of(const struct tccl_chain *chains, int n, struct tccl_set *set)
{
    *set = (struct tccl_set){.count = 0};
    for (int i = 0; i < n; i++) {
        struct tccl_set one;
        tccl_chain_set(&chains[i], &one);
        for (int k = 0; k < one.count; k++)
            tccl_set_add_again(set, one.transfers[k]);
    }
}

/* What a copy reaches alone, GB/s; 0: not known. */
static double alone(const struct tccl_measured *measured, tccl_transfer transfer)
{
    const struct tccl_set set = {.count = 1, .transfers = {transfer}};
    struct tccl_measurement value;
    return tccl_measured_ask(measured, &set, &value) == TCCL_NO_ANSWER || value.failed ? 0
                                                                                       : value.gbps;
}

static void rate(const struct tccl_measured *measured, struct tccl_limit *limit)
{
    struct tccl_rated *rated = &limit->rated;
    double gbps;
    limit->together = measured->model && tccl_model_measure(measured->model, &rated->set, &gbps,
                                                            rated->gbps, NULL, NULL) == 0;
    for (int i = 0; !limit->together && i < rated->set.count; i++)
        rated->gbps[i] = alone(measured, rated->set.transfers[i]);
}

/* The smallest of the measured sets within the set that are as slow; the set itself where there is
 * none. Measured values scatter: within 1 % counts as equal. */
static struct tccl_set slow_part(const struct tccl_measured *measured, const struct tccl_set *set,
                                 double gbps)
{
    struct tccl_set part = *set;
    const struct tccl_setmap *sets = &measured->sets;
    if (measured->model)
        tccl_congestion_reduce(measured->model, &part, gbps);
    for (size_t i = 0; i < sets->count && !measured->model; i++) {
        const struct tccl_set *other = &sets->entries[i].set;
        const struct tccl_measurement *value = &sets->entries[i].best;
        if (!value->failed && other->count > 0 && other->count < part.count &&
            value->gbps <= gbps * 1.01 && tccl_set_contains(set, other))
            part = *other;
    }
    return part;
}

/* Is one copy alone as slow? Then none is held back by others. */
static bool alone_as_slow(const struct tccl_measured *measured, const struct tccl_set *set,
                          double gbps)
{
    for (int i = 0; i < set->count; i++) {
        double reaches = alone(measured, set->transfers[i]);
        if (reaches > 0 && reaches <= gbps * 1.01)
            return true;
    }
    return false;
}

void tccl_limit_find(const struct tccl_measured *measured, const struct tccl_chain *chains, int n,
                     double gbps, struct tccl_limit *limit)
{
    *limit = (struct tccl_limit){.together = false};
    set_of(chains, n, &limit->rated.set);
    rate(measured, limit);
    if (!(gbps > 0) || alone_as_slow(measured, &limit->rated.set, gbps))
        return;
    limit->part = slow_part(measured, &limit->rated.set, gbps);
    if (limit->together)
        tccl_rated_slow(&limit->rated, &limit->part, gbps);
    else if (limit->part.count < limit->rated.set.count)
        limit->rated.slow = limit->part;
}

/* The memory to and from which most of its members copy, two of three at least: of a measured
 * machine the smallest set that is known to be as slow may hold one that is innocent. -1: none. */
static int memory_of(const struct tccl_set *set)
{
    int copies[TCCL_MAX_MEMORIES] = {0};
    for (int i = 0; i < set->count; i++) {
        struct tccl_device target = tccl_transfer_target(set->transfers[i]);
        if (target.kind == TCCL_MEMORY)
            copies[target.index]++;
    }
    for (int i = 0; i < TCCL_MAX_MEMORIES; i++)
        if (copies[i] > 1 && 3 * copies[i] >= 2 * set->count)
            return i;
    return -1;
}

void tccl_limit_say(const struct tccl_limit *limit, const struct tccl_measured *measured,
                    const struct tccl_chain *chains, int n, double gbps,
                    const struct tccl_machine *machine, char text[static TCCL_LIMIT_TEXT])
{
    const struct tccl_set *slow = &limit->part;
    struct tccl_named_chain named[TCCL_CHAIN_RINGS];
    text[0] = '\0';
    if (slow->count < 2)
        return;
    for (int i = 0; i < n && i < TCCL_CHAIN_RINGS; i++)
        tccl_chain_name(&chains[i], machine, true, &named[i]);
    int memory = memory_of(slow);
    if (memory >= 0) {
        struct tccl_memory_load load = tccl_memory_load(named, n, memory);
        tccl_memory_load_say(&load, "NCCL", text);
        return;
    }
    double least = INFINITY;
    for (int i = 0; i < slow->count; i++) {
        double reaches = alone(measured, slow->transfers[i]);
        least = fmin(least, reaches > 0 ? reaches : gbps);
    }
    snprintf(text, TCCL_LIMIT_TEXT, "with NCCL %d copies at once reach %.2f GB/s each, %.2f alone",
             slow->count, gbps, least);
}
