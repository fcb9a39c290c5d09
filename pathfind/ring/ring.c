/* ring.c: the ring over the nodes of a job step. */
#include "ring/ring.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "machine/meter.h"
#include "ring/latency.h"
#include "ring/reach.h"
#include "ring/segment.h"

double tccl_hop(const struct tccl_node_class *from, int exit_nic, const struct tccl_node_class *to,
                int entry_nic)
{
    if (strcmp(from->nics[exit_nic].fabric, to->nics[entry_nic].fabric) != 0)
        return 0;
    double out = from->nics[exit_nic].gbps, in = to->nics[entry_nic].gbps;
    return out < in ? out : in;
}

void tccl_ring_clear(struct tccl_ring *ring)
{
    free(ring->choices);
    *ring = (struct tccl_ring){0};
}

/* How many of all chains share the NIC of chain i. A node with fewer chains (count) uses each for
 * several. */
static int sharers(const uint8_t *nics, int count, int chains, int i)
{
    int sharing = 0;
    for (int j = 0; j < chains; j++)
        sharing += nics[j % count] == nics[i % count];
    return sharing;
}

double tccl_baseline_hop(const struct tccl_node_class *from, const struct tccl_node_class *to,
                         int generation)
{
    const struct tccl_class_baseline *source = &from->baselines[generation];
    const struct tccl_class_baseline *target = &to->baselines[generation];
    int chains = source->n_chains > target->n_chains ? source->n_chains : target->n_chains;
    double least = 0;
    for (int i = 0; i < chains; i++) {
        int out = source->exit_nics[i % source->n_chains];
        int in = target->entry_nics[i % target->n_chains];
        double sent =
            from->nics[out].gbps / sharers(source->exit_nics, source->n_chains, chains, i);
        double taken = to->nics[in].gbps / sharers(target->entry_nics, target->n_chains, chains, i);
        double rate = tccl_hop(from, out, to, in) > 0 ? fmin(sent, taken) : 0;
        least = i == 0 ? rate : fmin(least, rate);
    }
    return chains * least;
}

/* What NCCL's own have on a node, GB/s; reached by an all-reduce over so many GPUs, as it is told
 * or as it decides, or, with 1, all of it. */
static double node_baseline(const struct tccl_class_baseline *own, bool closed, int gpus, bool told)
{
    return own->gbps[closed] * tccl_reach(tccl_class_baseline_ends(own, closed, told), gpus);
}

/* Bandwidth of the baseline: that of its slowest node or hop; 0 if unknown. gpus, told: as
 * node_baseline. */
static double baseline(const struct tccl_run *runs, int n_runs, int generation, int gpus, bool told)
{
    double least = INFINITY;
    if (n_runs == 1 && runs[0].count == 1)
        return node_baseline(&runs[0].class->baselines[generation], true, gpus, told);
    for (int i = 0; i < n_runs; i++)
        if (runs[i].class->baselines[generation].gbps[0] <= 0)
            return 0;
    for (int i = 0; i < n_runs; i++) {
        const struct tccl_node_class *own = runs[i].class, *next = runs[(i + 1) % n_runs].class;
        least = fmin(least, fmin(node_baseline(&own->baselines[generation], false, gpus, told),
                                 tccl_baseline_hop(own, next, generation)));
        if (runs[i].count > 1)
            least = fmin(least, tccl_baseline_hop(own, own, generation));
    }
    return least;
}

/* What the baseline leaves to those that run beside it, on the node where that is least. */
static double baseline_share(const struct tccl_run *runs, int n_runs, int generation)
{
    bool alone = n_runs == 1 && runs[0].count == 1;
    double share = 1;
    for (int i = 0; i < n_runs; i++) {
        const struct tccl_class_baseline *own = &runs[i].class->baselines[generation];
        share = fmin(share, own->share[alone]);
    }
    return share;
}

static int baseline_bounces(const struct tccl_run *runs, int n_runs, int generation)
{
    bool alone = n_runs == 1 && runs[0].count == 1;
    int bounces = 0;
    for (int i = 0; i < n_runs; i++) {
        const struct tccl_class_baseline *own = &runs[i].class->baselines[generation];
        bounces += runs[i].count * own->bounces[alone];
    }
    return bounces;
}

static double baseline_lost(const struct tccl_run *runs, int n_runs, int generation, int gpus,
                            bool told)
{
    double reached = baseline(runs, n_runs, generation, gpus, told);
    return reached > 0 ? 1 - reached / baseline(runs, n_runs, generation, 1, false) : 0;
}

double tccl_ring_reach(const struct tccl_ring *ring)
{
    return ring->gbps * (1 - ring->told_lost);
}

double tccl_ring_reach_alone(const struct tccl_ring *ring)
{
    return ring->alone * (1 - ring->lost);
}

double tccl_ring_baseline_reach(const struct tccl_ring *ring, int generation)
{
    return ring->baseline_gbps[generation] * (1 - ring->baseline_told_lost[generation]);
}

struct tccl_decision_case tccl_ring_case(const struct tccl_ring *ring, int generation,
                                         double min_gain)
{
    const double nccl = ring->baseline_gbps[generation] * (1 - ring->baseline_lost[generation]);
    return (struct tccl_decision_case){.ours = {.gbps = ring->gbps * (1 - ring->lost),
                                                .told = tccl_ring_reach(ring),
                                                .share = ring->share,
                                                .harms = ring->harms,
                                                .rings = ring->rings,
                                                .bounces = ring->bounces},
                                       .nccl = {.gbps = nccl,
                                                .told = tccl_ring_baseline_reach(ring, generation),
                                                .share = ring->baseline_share[generation],
                                                .bounces = ring->baseline_bounces[generation]},
                                       .nodes = ring->n_nodes,
                                       .gpus = ring->gpus,
                                       .alone = tccl_ring_reach_alone(ring),
                                       .noise = ring->noise,
                                       .measured = ring->measured,
                                       .min_gain = min_gain};
}

struct tccl_decision tccl_ring_decide(const struct tccl_ring *ring, int generation, double min_gain)
{
    const struct tccl_decision_case asked = tccl_ring_case(ring, generation, min_gain);
    return tccl_decide(&asked);
}

bool tccl_ring_gains(const struct tccl_ring *ring, int generation)
{
    return tccl_ring_decide(ring, generation, 0).decided == TCCL_TAKE;
}

/* The nodes in the form of segment.h, for so many rings at once. Nodes of one class are of one
 * kind. */
struct lists {
    int n_kinds, n_runs, n_fabrics;
    const struct tccl_node_class **classes; /* of each kind */
    const char **fabrics;
    struct tccl_ways *kinds, *bounds;
    struct tccl_ways_run *runs;
};

static void ways_clear(struct tccl_ways *kinds, int n)
{
    for (int i = 0; kinds && i < n; i++)
        free((void *)kinds[i].ways);
    free(kinds);
}

static void lists_clear(struct lists *lists)
{
    ways_clear(lists->kinds, lists->n_kinds);
    ways_clear(lists->bounds, lists->n_kinds);
    free(lists->classes);
    free(lists->fabrics);
    free(lists->runs);
}

static float rounded_up(double gbps)
{
    float nearest = (float)gbps;
    return nearest < gbps ? __builtin_nextafterf(nearest, __builtin_inff()) : nearest;
}

static uint32_t fabric_of(struct lists *lists, const char *name)
{
    int at = 0;
    while (at < lists->n_fabrics && strcmp(lists->fabrics[at], name) != 0)
        at++;
    if (at == lists->n_fabrics)
        lists->fabrics[lists->n_fabrics++] = name;
    return (uint32_t)at;
}

/* What runs so many rings between NICs: a way's index is that of what is seen. All else, and what
 * leaves less than that share, has no bandwidth; of single chains, with a share below 0 also those
 * that harm, and their bounds in place of what they reach, if so wanted. */
static void add_ways(struct lists *lists, const struct tccl_node_class *class, int rings,
                     double share, bool bound, struct tccl_ways *ways)
{
    struct tccl_way *list = (struct tccl_way *)ways->ways;
    int pairs = tccl_class_pairs(class);
    for (int i = 0; i < class->n_seen; i++) {
        const struct tccl_seen *seen = &class->seen[i];
        int in[TCCL_CHAIN_RINGS] = {i / class->n_nics}, out[TCCL_CHAIN_RINGS] = {i % class->n_nics};
        bool single = i < pairs,
             fits = single ? rings == 1
                           : seen->set.n == rings && rings > 1 && !seen->set.rings[0].closed;
        bool left_out = (seen->harms && share >= 0) || seen->share < share;
        list[ways->n] = (struct tccl_way){.gbps = 0};
        if (!single)
            tccl_set_nics(&seen->set, in, out);
        for (int r = 0; r < rings && fits; r++) {
            list[ways->n].in[r] = fabric_of(lists, class->nics[in[r]].fabric);
            list[ways->n].out[r] = fabric_of(lists, class->nics[out[r]].fabric);
        }
        if (fits && (bound || !left_out)) {
            double hops = tccl_class_hops(class, in, out, rings);
            list[ways->n].gbps =
                bound ? rounded_up(fmin(seen->bound, hops)) : (float)fmin(seen->gbps, hops);
        }
        ways->n++;
    }
}

static int make_ways(struct lists *lists, int rings, double share, bool bound,
                     struct tccl_ways *kinds)
{
    for (int i = 0; i < lists->n_kinds; i++) {
        const struct tccl_node_class *class = lists->classes[i];
        kinds[i].ways = calloc((size_t) class->n_seen, sizeof(*kinds[i].ways));
        if (!kinds[i].ways)
            return -1;
        add_ways(lists, class, rings, share, bound, &kinds[i]);
    }
    return 0;
}

static int compare_classes(const void *a, const void *b)
{
    const struct tccl_node_class *x = *(const struct tccl_node_class *const *)a;
    const struct tccl_node_class *y = *(const struct tccl_node_class *const *)b;
    return ((uintptr_t)x > (uintptr_t)y) - ((uintptr_t)x < (uintptr_t)y);
}

/* Which classes there are, and of which one each run is. */
static int make_kinds(struct lists *lists, const struct tccl_run *runs, int n_runs)
{
    lists->classes = calloc(n_runs, sizeof(*lists->classes));
    lists->runs = calloc(n_runs, sizeof(*lists->runs));
    if (!lists->classes || !lists->runs)
        return -1;
    for (int i = 0; i < n_runs; i++)
        lists->classes[i] = runs[i].class;
    qsort(lists->classes, n_runs, sizeof(*lists->classes), compare_classes);
    for (int i = 0; i < n_runs; i++)
        if (i == 0 || lists->classes[i] != lists->classes[lists->n_kinds - 1])
            lists->classes[lists->n_kinds++] = lists->classes[i];
    lists->n_runs = n_runs;
    for (int i = 0; i < n_runs; i++) {
        const struct tccl_node_class **own = bsearch(&runs[i].class, lists->classes, lists->n_kinds,
                                                     sizeof(*lists->classes), compare_classes);
        lists->runs[i] = (struct tccl_ways_run){(int)(own - lists->classes), runs[i].count};
    }
    lists->fabrics = calloc((size_t)lists->n_kinds * TCCL_MAX_NICS + 1, sizeof(*lists->fabrics));
    return lists->fabrics ? 0 : -1;
}

static int make_lists(struct lists *lists, const struct tccl_run *runs, int n_runs, int rings,
                      double share)
{
    if (make_kinds(lists, runs, n_runs) != 0)
        return -1;
    lists->kinds = calloc(lists->n_kinds, sizeof(*lists->kinds));
    lists->bounds = calloc(lists->n_kinds, sizeof(*lists->bounds));
    if (!lists->kinds || !lists->bounds || make_ways(lists, rings, share, false, lists->kinds) != 0)
        return -1;
    return rings == 1 ? make_ways(lists, rings, share, true, lists->bounds) : 0;
}

/* What no set of so many chains exceeds on a node of the class; 0: it has none. */
static double set_bound(const struct tccl_node_class *class, int rings)
{
    double bound = 0;
    for (int i = tccl_class_first_set(class); i < class->n_seen; i++)
        if (class->seen[i].set.n == rings && !class->seen[i].set.rings[0].closed)
            bound = bound > 0 ? fmin(bound, class->seen[i].bound) : class->seen[i].bound;
    return bound;
}

/* What no such rings exceed: of one ring the best way by the bounds of the cells, of several what
 * the weakest class leaves to all sets. Returns 0, or -1 if out of memory. */
static int find_bound(const struct lists *lists, const struct tccl_nodes *nodes, double *bound)
{
    struct tccl_nodes high = *nodes;
    float gbps;
    high.kinds = lists->bounds;
    *bound = INFINITY;
    for (int i = 0; i < lists->n_kinds && nodes->rings > 1; i++)
        *bound = fmin(*bound, set_bound(lists->classes[i], nodes->rings));
    if (nodes->rings > 1)
        return 0;
    int status = tccl_nodes_ring(&high, &gbps, NULL);
    if (status == 0)
        *bound = gbps;
    return status < 0 ? -1 : 0;
}

/* The least share that these ways leave. */
static double share_of(const struct lists *lists, const struct tccl_node_way *ways)
{
    double share = 1;
    for (int run = 0, node = 0; run < lists->n_runs; run++)
        for (int i = 0; i < lists->runs[run].count; i++, node++)
            share = fmin(share, lists->classes[lists->runs[run].kind]->seen[ways[node].way].share);
    return share;
}

/* Which rings are looked for: this many at once, which leave that share to those that run beside
 * them. */
struct wanted {
    int least, most;
    double share;
};

static const struct wanted any = {1, TCCL_CHAIN_RINGS, 0};

static bool is_wanted(const struct wanted *wanted, int rings)
{
    return rings >= wanted->least && rings <= wanted->most;
}

/* So many rings at once, of ways that leave that share each; they are taken if they are better than
 * those so far, and leave the share that is wanted. Returns 1 if they are better; 0, or -1 if out
 * of memory. */
static int try_rings(const struct tccl_run *runs, int n_runs, int rings, double share,
                     const struct wanted *wanted, struct tccl_ring *ring)
{
    __attribute__((cleanup(lists_clear))) struct lists lists = {0};
    cleanup_free struct tccl_node_way *ways = calloc(ring->n_nodes, sizeof(*ways));
    double bound;
    float gbps;
    if (!ways || make_lists(&lists, runs, n_runs, rings, share) != 0)
        return -1;
    struct tccl_nodes nodes = {rings, lists.n_kinds, lists.kinds, lists.n_runs, lists.runs};
    if (tccl_nodes_ring(&nodes, &gbps, ways) < 0 || find_bound(&lists, &nodes, &bound) != 0)
        return -1;
    ring->bound = fmax(ring->bound, bound);
    if (gbps > 0)
        ring->closes |= UINT32_C(1) << rings;
    if (gbps <= ring->gbps * (1 + 1e-6))
        return 0;
    if (rings == 1 || share_of(&lists, ways) >= wanted->share) {
        ring->gbps = gbps;
        ring->rings = rings;
        for (int node = 0; node < ring->n_nodes; node++) {
            ring->choices[node].seen = ways[node].way;
            memcpy(ring->choices[node].order, ways[node].order, sizeof(ways[node].order));
        }
    }
    return 1;
}

/* So many rings at once; they are taken if they are better than those so far, and wanted. Returns
 * 0, or -1 if out of memory. */
static int solve_rings(const struct tccl_run *runs, int n_runs, int rings,
                       const struct wanted *wanted, struct tccl_ring *ring)
{
    double before = ring->gbps;
    int status = try_rings(runs, n_runs, rings, 0, wanted, ring);
    if (status == 1 && ring->gbps <= before) /* too little is left beside them: with others? */
        status = try_rings(runs, n_runs, rings, wanted->share, wanted, ring);
    return status < 0 ? -1 : 0;
}

void tccl_ring_set_of(const struct tccl_ring *ring, const struct tccl_node_class *class, int node,
                      struct tccl_ring_set *set)
{
    const struct tccl_ring_choice *choice = &ring->choices[node];
    const struct tccl_ring_set *own = &class->seen[choice->seen].set;
    set->n = own->n;
    for (int r = 0; r < own->n; r++)
        set->rings[r] = own->rings[choice->order[r]];
}

/* What one node says of a choice, and what its NICs leave to it. reached: the least so far, as it
 * decides and as it is told. Returns whether that is known beside the steps that run there. */
static bool take_least(const struct tccl_node_class *class, struct tccl_ring_choice choice,
                       struct tccl_ring *ring, double reached[static 2])
{
    const struct tccl_seen *seen = &class->seen[choice.seen];
    int in[TCCL_CHAIN_RINGS] = {0}, out[TCCL_CHAIN_RINGS] = {0};
    tccl_set_nics(&seen->set, in, out);
    double hops = in[0] < 0 ? INFINITY : tccl_class_hops(class, in, out, ring->rings);
    ring->gbps = fmin(ring->gbps, fmin(seen->gbps, hops));
    uint8_t ends[] = {seen->ends, seen->told_ends ? seen->told_ends : seen->ends};
    for (int i = 0; i < 2; i++)
        reached[i] = fmin(reached[i], fmin(seen->gbps * tccl_reach(ends[i], ring->gpus), hops));
    ring->alone = fmin(ring->alone, fmin(seen->alone, hops));
    ring->share = fmin(ring->share, seen->share);
    ring->harms |= seen->harms;
    ring->basis = seen->basis > ring->basis ? seen->basis : ring->basis;
    ring->bounces += tccl_bounces(seen->set.rings, seen->set.n);
    return class->neighbours == 0 || seen->told_ends;
}

/* The products are in single precision: computes the rings' bandwidth again from what was chosen in
 * double precision, and what it would be alone. Where a node's ends are not known beside others,
 * people are told of the ring, and of the baselines, as these decide. */
static void rate_exactly(const struct tccl_run *runs, int n_runs, struct tccl_ring *ring)
{
    double reached[] = {INFINITY, INFINITY};
    bool told = true;
    ring->gbps = ring->alone = INFINITY;
    ring->share = 1;
    ring->harms = false;
    ring->bounces = 0;
    for (int run = 0, node = 0; run < n_runs; run++)
        for (int i = 0; i < runs[run].count; i++, node++)
            told = take_least(runs[run].class, ring->choices[node], ring, reached) && told;
    ring->lost = ring->gbps > 0 ? 1 - reached[0] / ring->gbps : 0;
    ring->told_lost = ring->gbps > 0 ? 1 - reached[told] / ring->gbps : 0;
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        ring->baseline_told_lost[i] = baseline_lost(runs, n_runs, i, ring->gpus, told);
}

/* Is it of the node alone, and of a number of rings that is looked for? */
static bool is_closed(const struct tccl_seen *seen, const struct wanted *wanted)
{
    return seen->set.n > 0 && seen->set.rings[0].closed && is_wanted(wanted, seen->set.n);
}

/* The best of its rings and sets of rings: beside other steps that with the largest least share
 * (neighbours.h). Of those as fast the one of which an all-reduce reaches more. */
static int single_node(const struct tccl_run *run, const struct wanted *wanted,
                       struct tccl_ring *ring, struct tccl_error *err)
{
    const struct tccl_node_class *class = run->class;
    double alone = 0, least = 0, reach = 0;
    for (int i = tccl_class_pairs(class); i < class->n_seen; i++)
        if (is_closed(&class->seen[i], wanted))
            alone = fmax(alone, class->seen[i].alone);
    if (is_wanted(wanted, 1))
        ring->bound = tccl_class_ring(class)->bound;
    for (int i = tccl_class_pairs(class); i < class->n_seen; i++) {
        const struct tccl_seen *seen = &class->seen[i];
        if (!is_closed(seen, wanted))
            continue;
        ring->bound = fmax(ring->bound, seen->bound);
        ring->closes |= UINT32_C(1) << seen->set.n;
        double share = seen->harms ? 0 : fmin(seen->gbps / alone, seen->share);
        if (seen->share < wanted->share || share < least * (1 - 1e-6) ||
            (share <= least * (1 + 1e-6) &&
             (seen->gbps < ring->gbps * (1 - 1e-6) ||
              (seen->gbps <= ring->gbps * (1 + 1e-6) &&
               tccl_reach(seen->ends, class->n_gpus) <= reach * (1 + 1e-6)))))
            continue;
        least = share;
        reach = tccl_reach(seen->ends, class->n_gpus);
        ring->gbps = seen->gbps;
        ring->rings = seen->set.n;
        ring->choices[0].seen = i;
        for (int r = 0; r < seen->set.n; r++)
            ring->choices[0].order[r] = (uint8_t)r;
    }
    if (ring->gbps <= 0)
        return tccl_fail_as(err, TCCL_REASON_NO_PROFILE,
                            "the profile has no ring over these %d GPUs", class->n_gpus);
    rate_exactly(run, 1, ring);
    return 0;
}

/* Can a node of this class be part of a ring over several nodes? */
static int check_class(const struct tccl_node_class *class, struct tccl_error *err)
{
    if (class->n_nics == 0)
        return tccl_fail(err, "a node of machine %.8s has no NIC in its profile", class->machine);
    int i = 0;
    while (i < tccl_class_pairs(class) && !(class->seen[i].gbps > 0))
        i++;
    if (i == tccl_class_pairs(class))
        return tccl_fail_as(
            err, TCCL_REASON_NO_PROFILE,
            "the profile of machine %.8s has no chain between NICs for these %d GPUs: "
            "measure them with tccl-profile run --peer",
            class->machine, class->n_gpus);
    return 0;
}

static int several_nodes(const struct tccl_run *runs, int n_runs, const struct wanted *wanted,
                         struct tccl_ring *ring, struct tccl_error *err)
{
    for (int i = 0; i < n_runs; i++)
        if (check_class(runs[i].class, err) != 0)
            return -1;
    for (int rings = wanted->least; rings <= wanted->most; rings++) {
        bool all = true; /* classes have sets of so many */
        for (int i = 0; i < n_runs && rings > 1; i++)
            all = all && set_bound(runs[i].class, rings) > 0;
        if (all && solve_rings(runs, n_runs, rings, wanted, ring) != 0)
            return tccl_fail_as(err, TCCL_REASON_OVERLOAD, "out of memory for a ring over %d nodes",
                                ring->n_nodes);
    }
    if (ring->gbps <= 0 && is_wanted(wanted, 1) && /* nor one that harms nobody */
        try_rings(runs, n_runs, 1, -1, wanted, ring) < 0)
        return tccl_fail_as(err, TCCL_REASON_OVERLOAD, "out of memory for a ring over %d nodes",
                            ring->n_nodes);
    if (ring->gbps <= 0)
        return tccl_fail(err,
                         "no ring can be closed over these %d nodes: a chain is missing, or their "
                         "NICs share no fabric",
                         ring->n_nodes);
    rate_exactly(runs, n_runs, ring);
    if (ring->bound < ring->gbps)
        ring->bound = ring->gbps;
    return 0;
}

/* What doesn't depend on the number of rings. Returns 0, or -1 with err. */
static int begin(const struct tccl_run *runs, int n_runs, struct tccl_ring *ring,
                 struct tccl_error *err)
{
    *ring = (struct tccl_ring){.rings = 1, .measured = true};
    for (int i = 0; i < n_runs; i++) {
        const struct tccl_node_class *class = runs[i].class;
        ring->n_nodes += runs[i].count;
        ring->gpus += runs[i].count * class->n_gpus;
        ring->noise = fmax(ring->noise, class->noise);
        ring->measured = ring->measured && tccl_meter_measured(class->source);
    }
    if (ring->n_nodes < 1 || ring->gpus < 1)
        return tccl_fail_as(err, TCCL_REASON_NO_GPU, "a ring needs a GPU");
    ring->choices = calloc(ring->n_nodes, sizeof(*ring->choices));
    if (!ring->choices)
        return tccl_fail_as(err, TCCL_REASON_OVERLOAD, "out of memory for a ring over %d nodes",
                            ring->n_nodes);
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        ring->baseline_gbps[i] = baseline(runs, n_runs, i, 1, false);
        ring->baseline_lost[i] = baseline_lost(runs, n_runs, i, ring->gpus, false);
        ring->baseline_told_lost[i] = baseline_lost(runs, n_runs, i, ring->gpus, true);
        ring->baseline_share[i] = baseline_share(runs, n_runs, i);
        ring->baseline_bounces[i] = baseline_bounces(runs, n_runs, i);
    }
    return 0;
}

static int solve(const struct tccl_run *runs, int n_runs, const struct wanted *wanted,
                 struct tccl_ring *ring, struct tccl_error *err)
{
    return ring->n_nodes == 1 ? single_node(runs, wanted, ring, err)
                              : several_nodes(runs, n_runs, wanted, ring, err);
}

int tccl_ring_solve(const struct tccl_run *runs, int n_runs, int rings, struct tccl_ring *ring,
                    struct tccl_error *err)
{
    const struct wanted some = {rings, rings, 0};
    if (begin(runs, n_runs, ring, err) != 0)
        return -1;
    return ring->gpus == 1 ? 1 : solve(runs, n_runs, rings ? &some : &any, ring, err);
}

/* The best of two rings and more, up to most, beside which the least share of all, its own
 * included, is no less than with the single ring. Returns 0; else there is none. */
static int find_several(const struct tccl_run *runs, int n_runs, int most,
                        const struct tccl_ring *single, struct tccl_ring *several)
{
    const double least = single->harms ? 0 : fmin(single->gbps / single->alone, single->share);
    const struct wanted wanted = {2, most, least * (1 - 1e-6)};
    *several = *single;
    several->gbps = several->bound = 0;
    several->choices = calloc(several->n_nodes, sizeof(*several->choices));
    return several->choices ? solve(runs, n_runs, &wanted, several, NULL) : -1;
}

int tccl_ring_choose(const struct tccl_run *runs, int n_runs, int most, struct tccl_ring *ring,
                     int *rings_of_best, struct tccl_error *err)
{
    struct tccl_ring several;
    int status = tccl_ring_solve(runs, n_runs, 1, ring, err);
    *rings_of_best = 1;
    if (status != 0 || most < 2)
        return status;
    if (find_several(runs, n_runs, most, ring, &several) != 0)
        several.gbps = 0;
    if (several.gbps > ring->gbps * (1 + 1e-6))
        *rings_of_best = several.rings;
    ring->closes = several.closes;
    ring->bound = several.bound = fmax(ring->bound, several.bound);
    const struct tccl_decision_case one = tccl_ring_case(ring, TCCL_NEWEST, 0);
    const struct tccl_decision_case more = tccl_ring_case(&several, TCCL_NEWEST, 0);
    if (tccl_decide_several(&more, &one)) {
        struct tccl_ring single = *ring;
        *ring = several;
        several = single;
    }
    tccl_ring_clear(&several);
    return 0;
}

/* Which chains nodes have: the first node of each kind. */
struct written {
    const struct tccl_node_class *class;
    int node;
};

/* The first node with these chains, itself if there is none before it. */
static int first_alike(const struct tccl_ring *ring, const struct tccl_node_class *class, int node,
                       struct written *written, int *n_written)
{
    const struct tccl_ring_choice *own = &ring->choices[node];
    for (int i = 0; i < *n_written; i++) {
        const struct tccl_ring_choice *other = &ring->choices[written[i].node];
        if (written[i].class == class && own->seen == other->seen &&
            memcmp(own->order, other->order, (size_t)ring->rings) == 0)
            return written[i].node;
    }
    written[(*n_written)++] = (struct written){class, node};
    return node;
}

/* written: room for all nodes if equal nodes are written once, else NULL. */
static void put_nodes(FILE *stream, const struct tccl_run *runs, int n_runs,
                      const struct tccl_ring *ring, const char *const *names,
                      struct written *written)
{
    int n_written = 0;
    for (int run = 0, node = 0; run < n_runs; run++) {
        const struct tccl_node_class *class = runs[run].class;
        for (int i = 0; i < runs[run].count; i++, node++) {
            struct tccl_ring_set set;
            char text[TCCL_RINGS_TEXT];
            int first = written ? first_alike(ring, class, node, written, &n_written) : node;
            fputs(node ? " " : "", stream);
            if (first < node) {
                fprintf(stream, "%s[= %s]", names[node], names[first]);
                continue;
            }
            tccl_ring_set_of(ring, class, node, &set);
            tccl_class_format(class, &set, text);
            fprintf(stream, "%s[%s]", names[node], text);
        }
    }
}

char *tccl_ring_format(const struct tccl_run *runs, int n_runs, const struct tccl_ring *ring,
                       const char *const *names, size_t most)
{
    cleanup_free struct written *written = calloc((size_t)ring->n_nodes, sizeof(*written));
    for (int brief = 0; brief < 2; brief++) {
        char *text = NULL;
        size_t size;
        FILE *stream = written ? open_memstream(&text, &size) : NULL;
        if (!stream)
            return NULL;
        put_nodes(stream, runs, n_runs, ring, names, brief ? written : NULL);
        if (fclose(stream) == 0 && (brief || size <= most))
            return text;
        free(text);
    }
    return NULL;
}
