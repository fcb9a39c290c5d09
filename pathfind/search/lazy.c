/* lazy.c: lazy best-first search, one measured set a step. */
#include "search/lazy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEDGER_ROOM = 2048 };

/* A set that begins a chain, and how many sets extend it by one transfer. */
struct entry {
    struct tccl_set set;
    double gbps;
    int extensions;
};

struct tccl_ledger {
    int count, first_steps;
    struct entry entries[LEDGER_ROOM];
};

struct tccl_ledger *tccl_ledger_new(void)
{
    return calloc(1, sizeof(struct tccl_ledger));
}

void tccl_ledger_free(struct tccl_ledger *ledger)
{
    free(ledger);
}

long tccl_ledger_plain(const struct tccl_ledger *ledger, double bound)
{
    long sets = ledger->first_steps;
    for (int i = 0; i < ledger->count; i++)
        if (ledger->entries[i].gbps > bound)
            sets += ledger->entries[i].extensions;
    return sets;
}

/* Where a walk along a ring stands after some of its transfers. */
struct place {
    int visited; /* GPUs */
    int at;      /* the GPU that has the data, or that wrote them to a memory */
    int mode;    /* kind of the p2p edges so far, -1: none */
    bool pending;
};

static struct place place_after(const struct tccl_chain *chain, int transfers)
{
    struct place place = {1, chain->gpus[0], -1, false};
    for (int i = 0; transfers > 0; i++) {
        bool bounce = chain->edges[i].kind == TCCL_BOUNCE;
        place.pending = bounce && transfers == 1;
        transfers -= bounce ? 2 : 1;
        if (!bounce)
            place.mode = chain->edges[i].kind;
        if (!place.pending) {
            place.visited++;
            place.at = chain->gpus[(i + 1) % chain->n_gpus];
        }
    }
    return place;
}

static uint32_t visited_gpus(const struct tccl_chain *chain, int count)
{
    uint32_t mask = 0;
    for (int i = 0; i < count && i < chain->n_gpus; i++)
        mask |= 1u << chain->gpus[i];
    return mask;
}

/* Transfers that the plain search tries next. */
static int count_extensions(const struct tccl_route *route, const struct tccl_chain *chain,
                            int transfers)
{
    struct place place = place_after(chain, transfers);
    uint32_t next = route->gpus & ~visited_gpus(chain, place.visited);
    if (place.visited > chain->n_gpus)
        return 0;
    if (next == 0)
        next = 1u << chain->gpus[0];
    if (place.pending)
        return __builtin_popcount(next);
    int count = route->machine->n_memories;
    for (int to = 0; to < TCCL_MAX_GPUS; to++)
        if ((next >> to & 1) && to != place.at && route->machine->p2p[place.at][to])
            count += place.mode < 0 || route->any ? 2 : 1;
    return count;
}

static void enter(struct tccl_ledger *ledger, const struct tccl_route *route,
                  const struct tccl_chain *chain, const struct tccl_walk *begin, double gbps)
{
    struct tccl_set set = {0};
    if (ledger->count == LEDGER_ROOM)
        return;
    for (int i = 0; i < begin->count; i++)
        tccl_set_add(&set, begin->transfers[i]);
    for (int i = 0; i < ledger->count; i++)
        if (tccl_set_equal(&ledger->entries[i].set, &set))
            return;
    ledger->entries[ledger->count++] =
        (struct entry){set, gbps, count_extensions(route, chain, begin->count)};
}

/* The chain with the highest bound, and that bound: by halving the list of known limits. Returns as
 * tccl_route_find. */
static int most_promising(struct tccl_route *route, struct tccl_chain *chain, double *bound)
{
    const double *limits;
    size_t low = 0, high = tccl_knowledge_values(route->knowledge, &limits);
    int found;
    *bound = INFINITY;
    route->above = high > 0 ? limits[high - 1] : 0;
    if ((found = tccl_route_find(route, chain)) != 0)
        return found;
    /* No chain above limits[high - 1]; one above limits[low - 1], or above nothing. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        route->above = middle > 0 ? limits[middle - 1] : 0;
        found = tccl_route_find(route, chain);
        if (found < 0)
            return found;
        if (found > 0 && middle == low)
            break;
        if (found > 0)
            low = middle;
        else
            high = middle;
    }
    *bound = high > 0 ? limits[high - 1] : 0;
    route->above = low > 0 ? limits[low - 1] : 0;
    return tccl_route_find(route, chain);
}

/* Makes a measured beginning limit the chains that begin like it. Returns as tccl_probe_measure;
 * *limited: that brings it below the bound. */
static int limit_begin(struct tccl_probe *probe, const struct tccl_walk *begin, bool whole,
                       double bound, bool *limited, struct tccl_error *err)
{
    struct tccl_knowledge *knowledge = probe->knowledge;
    struct tccl_known known = {0};
    tccl_knowledge_find(knowledge, begin, &known);
    double gbps = whole ? known.gbps : known.upper;
    *limited = known.failed || gbps < bound || isinf(bound);
    if (known.failed)
        return tccl_probe_explain(probe, begin, 0, err);
    if (!whole && tccl_knowledge_floor(knowledge, begin) > gbps * (1 + 1e-9))
        *limited = false; /* measured wrong */
    if (*limited && tccl_knowledge_limit(knowledge, begin, gbps) < 0)
        return tccl_fail(err, "no memory for the limits");
    return 0;
}

/* Measures beginnings of the chain, the shortest first, until one is new or too slow. */
static enum tccl_lazy_step follow(struct tccl_probe *probe, const struct tccl_route *route,
                                  struct tccl_ledger *ledger, const struct tccl_chain *chain,
                                  double *gbps, double bound, struct tccl_error *err)
{
    struct tccl_walk walk, begin = {.count = 0};
    tccl_route_walk(chain, &walk);
    for (int i = 0; i < walk.count; i++) {
        long before = probe->measured;
        bool whole = i + 1 == walk.count;
        begin.transfers[begin.count++] = walk.transfers[i];
        int status = tccl_probe_measure(probe, &begin, gbps, err);
        if (status != 0)
            return status < 0 ? TCCL_LAZY_ERROR : TCCL_LAZY_BUDGET;
        enter(ledger, route, chain, &begin, *gbps);
        bool limited;
        status = limit_begin(probe, &begin, whole, bound, &limited, err);
        if (status != 0)
            return status < 0 ? TCCL_LAZY_ERROR : TCCL_LAZY_BUDGET;
        if (limited)
            return whole ? TCCL_LAZY_CHAIN : TCCL_LAZY_MEASURED;
        if (probe->measured > before && !whole)
            return TCCL_LAZY_MEASURED;
    }
    return TCCL_LAZY_BEST;
}

enum tccl_lazy_step tccl_lazy_step(struct tccl_probe *probe, struct tccl_route *route,
                                   struct tccl_ledger *ledger, struct tccl_chain *chain,
                                   double *gbps, double *bound, struct tccl_error *err)
{
    int found = most_promising(route, chain, bound);
    if (found <= 0)
        return found < 0 ? TCCL_LAZY_GAVE_UP : TCCL_LAZY_NONE;
    if (ledger->first_steps == 0) {
        struct tccl_chain start = {.n_gpus = chain->n_gpus, .closed = true};
        memcpy(start.gpus, chain->gpus, sizeof(start.gpus));
        ledger->first_steps = count_extensions(route, &start, 0);
    }
    return follow(probe, route, ledger, chain, gbps, *bound, err);
}
