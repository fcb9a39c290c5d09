/* test-ring.c: rings over node classes equal the best of all choices of NICs. */
#include "ring/ring.h"

#include "machines.h"
#include "owned.h"
#include "random-model.h"

enum { MAX_KINDS = 3, MAX_NODES = 6, MAX_NIC = 3 };

static struct tccl_ring ring; /* the latest one */

static int solve(const struct tccl_run *runs, int n_runs, int rings)
{
    tccl_ring_clear(&ring);
    return tccl_ring_solve(runs, n_runs, rings, &ring, ERR);
}

AFTER
{
    tccl_ring_clear(&ring);
}

/* Of each pair of NICs a chain of that bandwidth. */
static struct tccl_node_class *new_class(int n_nics, double gbps)
{
    struct tccl_node_class *class = tccl_node_class_new(n_nics);
    class->n_gpus = 2;
    class->gpus = 3;
    for (int i = 0; i < tccl_class_pairs(class); i++) {
        struct tccl_chain chain = {
            .n_gpus = 1, .entry.nic = (uint8_t)(i / n_nics), .exit.nic = (uint8_t)(i % n_nics)};
        class->seen[i] = (struct tccl_seen){.gbps = gbps, .bound = gbps, .set = {1, {chain}}};
    }
    return class;
}

static struct tccl_node_class *random_class(unsigned long *state)
{
    struct tccl_node_class *class = new_class(1 + random_below(state, MAX_NIC), 0);
    for (int i = 0; i < class->n_nics; i++) {
        snprintf(class->nics[i].name, sizeof(class->nics[i].name), "nic%d", i);
        snprintf(class->nics[i].fabric, sizeof(class->nics[i].fabric), "f%d",
                 random_below(state, 2));
        class->nics[i].gbps = random_gbps(state);
    }
    for (int i = 0; i < class->n_nics * class->n_nics; i++) {
        class->seen[i].gbps = random_below(state, 5) ? random_gbps(state) / 3 : 0;
        class->seen[i].bound = class->seen[i].gbps * 1.02;
    }
    class->baselines[TCCL_NEWEST].gbps[0] = random_gbps(state) / 4;
    class->baselines[TCCL_NEWEST].n_chains = 1; /* in and out by NIC 0 */
    return class;
}

/* All choices of entry and exit NICs, node by node. */
static double best_of(const struct tccl_node_class *const *nodes, int count, int node, int first,
                      int entry)
{
    const struct tccl_node_class *own = nodes[node];
    const struct tccl_node_class *next = nodes[(node + 1) % count];
    double best = 0;
    for (int exit = 0; exit < own->n_nics; exit++) {
        double chain = own->seen[entry * own->n_nics + exit].gbps;
        for (int in = 0; in < next->n_nics; in++) {
            bool last = node + 1 == count;
            if (last && in != first)
                continue;
            double hop = strcmp(own->nics[exit].fabric, next->nics[in].fabric) == 0
                             ? own->nics[exit].gbps < next->nics[in].gbps ? own->nics[exit].gbps
                                                                          : next->nics[in].gbps
                             : 0;
            double rest = last ? 1e9 : best_of(nodes, count, node + 1, first, in);
            double least = chain < hop ? chain : hop;
            least = rest < least ? rest : least;
            best = least > best ? least : best;
        }
    }
    return best;
}

TEST(best_of_all)
{
    unsigned long seed = check_seed();
    for (int round = 0; round < 300 && !check_failures; round++) {
        unsigned long state = seed + round;
        struct tccl_node_class *classes[MAX_KINDS];
        struct tccl_run runs[MAX_KINDS];
        const struct tccl_node_class *nodes[MAX_NODES];
        int n_runs = 1 + random_below(&state, MAX_KINDS), count = 0;
        for (int i = 0; i < n_runs; i++) {
            classes[i] = random_class(&state);
            runs[i] = (struct tccl_run){classes[i], 1 + random_below(&state, 2)};
            for (int j = 0; j < runs[i].count; j++)
                nodes[count++] = classes[i];
        }
        double best = 0;
        for (int first = 0; first < nodes[0]->n_nics; first++) {
            double gbps = count > 1 ? best_of(nodes, count, 0, first, first) : 0;
            best = gbps > best ? gbps : best;
        }
        int status = solve(runs, n_runs, 0);
        CHECK_INT(status, best > 0 ? 0 : -1);
        CHECK((status == 0) == (check_err.text[0] == '\0'));
        CHECK(ring.gbps == best);
        CHECK(status != 0 || (ring.bound >= ring.gbps && ring.bound <= ring.gbps * 1.03));
        for (int i = 0; i < n_runs; i++)
            tccl_node_class_free(classes[i]);
    }
}

/* Random sets of so many rings for a class. */
static void add_random_sets(struct tccl_node_class *class, int rings, unsigned long *state)
{
    for (int i = 1 + random_below(state, 4); i > 0; i--) {
        struct tccl_seen set = {.gbps = random_gbps(state) / 2, .bound = 30};
        set.set.n = rings;
        for (int r = 0; r < rings; r++) {
            set.set.rings[r].entry.nic = random_below(state, class->n_nics);
            set.set.rings[r].exit.nic = random_below(state, class->n_nics);
        }
        CHECK_INT(tccl_node_class_add_set(class, &set), 0);
    }
}

enum { MAX_RINGS = 3, VECTORS = 27 /* MAX_NIC ^ MAX_RINGS */ };

/* The NICs of several rings, in their order: [0] by which they enter, [1] by which they leave. */
struct vectors {
    int nics[2][MAX_RINGS];
    double gbps;
};

static int number_of(const int *nics, int rings)
{
    int number = 0;
    for (int r = 0; r < rings; r++)
        number = number * MAX_NIC + nics[r];
    return number;
}

/* All sets of a class in all orders of their rings (of at most 3). Returns how many. */
static int list_vectors(const struct tccl_node_class *class, int rings, struct vectors *list)
{
    static const int orders[][MAX_RINGS] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                            {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    int n = 0;
    for (int i = tccl_class_first_set(class); i < class->n_seen; i++) {
        for (int k = 0; k < (rings == 2 ? 2 : 6) && class->seen[i].set.n == rings; k++) {
            list[n].gbps = class->seen[i].gbps;
            for (int r = 0; r < rings; r++) {
                const struct tccl_chain *chain = &class->seen[i].set.rings[orders[k][r]];
                list[n].nics[0][r] = chain->entry.nic;
                list[n].nics[1][r] = chain->exit.nic;
            }
            n++;
        }
    }
    return n;
}

/* What a NIC's line leaves to ring r. */
static double part_of(const struct tccl_node_class *class, const int *nics, int rings, int r)
{
    int sharing = 0;
    for (int k = 0; k < rings; k++)
        sharing += nics[k] == nics[r];
    return class->nics[nics[r]].gbps / sharing;
}

/* Of all rings together, from their exit NICs to their entry NICs. */
static double hop_of(const struct tccl_node_class *from, const int *out,
                     const struct tccl_node_class *to, const int *in, int rings)
{
    double least = 1e9;
    for (int r = 0; r < rings; r++) {
        double sent = part_of(from, out, rings, r), taken = part_of(to, in, rings, r);
        if (strcmp(from->nics[out[r]].fabric, to->nics[in[r]].fabric) != 0)
            return 0;
        least = sent < least ? sent : least;
        least = taken < least ? taken : least;
    }
    return rings * least;
}

static double least_of(double a, double b, double c)
{
    double least = a < b ? a : b;
    return least < c ? least : c;
}

/* The plain recurrence over vectors of NICs: from each beginning on the first node, node by node.
 */
static double best_set(const struct tccl_node_class *const *nodes, int count, int rings)
{
    struct vectors list[4 * 6], first[4 * 6];
    double best = 0;
    int n_first = list_vectors(nodes[0], rings, first);
    for (int start = 0; start < n_first; start++) {
        double reached[VECTORS] = {0};
        int out[VECTORS][MAX_RINGS];
        memcpy(out[number_of(first[start].nics[1], rings)], first[start].nics[1], sizeof(out[0]));
        reached[number_of(first[start].nics[1], rings)] = first[start].gbps;
        for (int node = 1; node < count; node++) {
            double next[VECTORS] = {0};
            int next_out[VECTORS][MAX_RINGS], n = list_vectors(nodes[node], rings, list);
            for (int k = 0; k < n; k++) {
                int to = number_of(list[k].nics[1], rings);
                memcpy(next_out[to], list[k].nics[1], sizeof(out[0]));
                for (int x = 0; x < VECTORS; x++) {
                    double through = reached[x] > 0
                                         ? least_of(reached[x], list[k].gbps,
                                                    hop_of(nodes[node - 1], out[x], nodes[node],
                                                           list[k].nics[0], rings))
                                         : 0;
                    next[to] = through > next[to] ? through : next[to];
                }
            }
            memcpy(reached, next, sizeof(reached));
            memcpy(out, next_out, sizeof(out));
        }
        for (int x = 0; x < VECTORS; x++) {
            double closed = reached[x] > 0 ? least_of(reached[x], 1e9,
                                                      hop_of(nodes[count - 1], out[x], nodes[0],
                                                             first[start].nics[0], rings))
                                           : 0;
            best = closed > best ? closed : best;
        }
    }
    return best;
}

/* Follows the rings of the answer from node to node. */
static double value_of(const struct tccl_node_class *const *nodes, const struct tccl_ring *ring)
{
    double least = 1e9;
    for (int i = 0; i < ring->n_nodes; i++) {
        const struct tccl_node_class *own = nodes[i], *next = nodes[(i + 1) % ring->n_nodes];
        struct tccl_ring_set set, after;
        int out[TCCL_CHAIN_RINGS], in[TCCL_CHAIN_RINGS];
        tccl_ring_set_of(ring, own, i, &set);
        tccl_ring_set_of(ring, next, (i + 1) % ring->n_nodes, &after);
        for (int r = 0; r < ring->rings; r++) {
            out[r] = set.rings[r].exit.nic;
            in[r] = after.rings[r].entry.nic;
        }
        least = least_of(least, own->seen[ring->choices[i].seen].gbps,
                         hop_of(own, out, next, in, ring->rings));
    }
    return least;
}

/* Sets of rings over nodes of mixed classes: the best of those of two, three, or one, whatever all
 * classes have. */
TEST(best_sets)
{
    unsigned long seed = check_seed();
    int several = 0;
    for (int round = 0; round < 500 && !check_failures; round++) {
        unsigned long state = seed + 7000 + round;
        struct tccl_node_class *classes[MAX_KINDS];
        struct tccl_run runs[MAX_KINDS];
        const struct tccl_node_class *nodes[MAX_NODES];
        int n_runs = 1 + random_below(&state, MAX_KINDS), count = 0;
        int without = random_below(&state, 4); /* the last class has no such sets */
        for (int i = 0; i < n_runs; i++) {
            classes[i] = random_class(&state);
            runs[i] = (struct tccl_run){classes[i], 1 + random_below(&state, 2)};
            for (int k = 0; k < tccl_class_pairs(classes[i]); k++) {
                classes[i]->seen[k].gbps = classes[i]->seen[k].alone = 0.5;
                classes[i]->seen[k].bound = 1;
            }
            for (int rings = 2; rings <= MAX_RINGS; rings++)
                if (i + 1 < n_runs || rings != without)
                    add_random_sets(classes[i], rings, &state);
            for (int k = 0; k < runs[i].count; k++)
                nodes[count++] = classes[i];
        }
        double best = 0;
        for (int rings = 2; rings <= MAX_RINGS && count > 1; rings++) {
            double gbps = rings == without ? 0 : best_set(nodes, count, rings);
            best = gbps > best ? gbps : best;
        }
        int status = solve(runs, n_runs, 0);
        if (best > 0.5) {
            CHECK_INT(status, 0);
            CHECK(ring.rings > 1 && ring.rings != without && ring.gbps == best);
            CHECK(value_of(nodes, &ring) == ring.gbps && ring.bound >= ring.gbps);
            several++;
        } else {
            CHECK(status != 0 || ring.rings == 1);
        }
        if (check_failures)
            fprintf(stderr, "round %d: %d nodes, %g and %g\n", round, count, ring.gbps, best);
        for (int i = 0; i < n_runs; i++)
            tccl_node_class_free(classes[i]);
    }
    CHECK(several > 100);
}

static struct tccl_node_class *plain_class(int n_nics, const double *gbps, double chains,
                                           int n_chains)
{
    struct tccl_node_class *class = new_class(n_nics, 4);
    for (int i = 0; i < n_nics; i++)
        class->nics[i].gbps = gbps[i];
    class->baselines[TCCL_NEWEST].gbps[0] = chains;
    class->baselines[TCCL_NEWEST].n_chains = n_chains;
    for (int i = 0; i < n_chains; i++)
        class->baselines[TCCL_NEWEST].entry_nics[i] = class->baselines[TCCL_NEWEST].exit_nics[i] =
            i * n_nics / n_chains;
    return class;
}

/* Hops of NCCL's own choice by hand: its chains have equal parts, and share NICs. */
TEST(baseline)
{
    const double fast[] = {10, 10}, uneven[] = {10, 3}, one[] = {12};
    cleanup_class struct tccl_node_class *two = plain_class(2, fast, 30, 2),
                                         *slow = plain_class(2, uneven, 30, 2);
    cleanup_class struct tccl_node_class *single = plain_class(1, one, 30, 1),
                                         *four = plain_class(2, fast, 30, 4);
    cleanup_class struct tccl_node_class *none = plain_class(1, one, 0, 0);
    CHECK(tccl_baseline_hop(two, two, TCCL_NEWEST) == 20);
    CHECK(tccl_baseline_hop(two, slow, TCCL_NEWEST) == 6); /* each as the one over the slow NIC */
    CHECK(tccl_baseline_hop(two, single, TCCL_NEWEST) == 12); /* two by one NIC */
    CHECK(tccl_baseline_hop(single, two, TCCL_NEWEST) == 12);
    CHECK(tccl_baseline_hop(four, two, TCCL_NEWEST) == 20);
    CHECK(tccl_baseline_hop(single, single, TCCL_NEWEST) == 12);
    strcpy(single->nics[0].fabric, "another");
    CHECK(tccl_baseline_hop(two, single, TCCL_NEWEST) == 0);
    strcpy(single->nics[0].fabric, "");
    CHECK_INT(solve((struct tccl_run[]){{two, 1}, {slow, 1}}, 2, 0), 0);
    CHECK(ring.baseline_gbps[TCCL_NEWEST] == 6 && ring.gbps == 4);
    slow->baselines[TCCL_NEWEST].gbps[0] = 5;
    CHECK_INT(solve((struct tccl_run[]){{two, 2}, {slow, 1}}, 2, 0), 0);
    CHECK(ring.baseline_gbps[TCCL_NEWEST] == 5);
    CHECK_INT(solve((struct tccl_run[]){{two, 1}, {none, 1}}, 2, 0), 0);
    CHECK(ring.baseline_gbps[TCCL_NEWEST] == 0 && tccl_ring_gains(&ring, TCCL_NEWEST));
}

TEST(gains)
{
    CHECK(tccl_ring_gains(&(struct tccl_ring){.gbps = 4}, 0));
    CHECK(tccl_ring_gains(&(struct tccl_ring){.gbps = 4, .baseline_gbps = {3.3}}, 0));
    CHECK(!tccl_ring_gains(&(struct tccl_ring){.gbps = 4, .baseline_gbps = {3.4}}, 0));
    CHECK(!tccl_ring_gains(&(struct tccl_ring){.gbps = 4, .baseline_gbps = {4}}, 0));
    CHECK(!tccl_ring_gains(&(struct tccl_ring){.gbps = 4 * (1 + 1e-12), .baseline_gbps = {4}}, 0));
    CHECK(!tccl_ring_gains(&(struct tccl_ring){.gbps = 4, .baseline_gbps = {7}}, 0));
    struct tccl_ring ring = {.gbps = 4.3, .baseline_gbps = {4}, .measured = true};
    CHECK(tccl_ring_gains(&ring, 0));
    ring.noise = 0.08;
    CHECK(!tccl_ring_gains(&ring, 0));
}

/* Which is chosen of three nodes' single ring, at 4 GB/s, and of two rings at once; is it taken? */
static bool takes(double own, double several, const char *source, int *rings)
{
    const double nics[] = {10, 10};
    cleanup_class struct tccl_node_class *class = plain_class(2, nics, own, 1);
    cleared_by(tccl_ring_clear) struct tccl_ring ring = {0};
    int best;
    class->baselines[TCCL_NEWEST].share[0] = 1;
    for (int i = 0; i < 4; i++)
        class->seen[i].share = 1;
    struct tccl_seen set = {
        .set.n = 2, .gbps = several, .alone = several, .share = 1, .bound = several};
    for (int i = 0; i < 2; i++) {
        set.set.rings[i] = (struct tccl_chain){.n_gpus = 1};
        set.set.rings[i].entry.nic = set.set.rings[i].exit.nic = (uint8_t)i;
    }
    CHECK_INT(tccl_node_class_add_set(class, &set), 0);
    snprintf(class->source, sizeof(class->source), "%s", source);
    CHECK_INT(tccl_ring_choose((struct tccl_run[]){{class, 3}}, 1, 8, &ring, &best, NULL), 0);
    CHECK_INT(best, several > 4 ? 2 : 1);
    *rings = ring.rings;
    return tccl_ring_gains(&ring, TCCL_NEWEST);
}

/* Several have to gain 10 % over NCCL's own, or 19 % by a model, and 5 % over a single ring that is
 * taken. */
TEST(sets_gain)
{
    int rings;
    CHECK(!takes(4, 4.39, "cuda", &rings));
    CHECK(takes(4, 4.41, "cuda", &rings) && rings == 2);
    CHECK(!takes(4, 4.75, "model", &rings));
    CHECK(takes(4, 4.77, "model", &rings) && rings == 2);
    CHECK(takes(3, 4.19, "model", &rings) && rings == 1);
    CHECK(takes(3, 4.21, "model", &rings) && rings == 2);
    CHECK(takes(3.78, 4.15, "cuda", &rings) && rings == 1); /* 1.058, and 1.098 */
    CHECK(takes(3.78, 4.3, "cuda", &rings) && rings == 2);  /* 1.138 */
}

/* Beside others what these are left counts as well. */
TEST(gains_beside)
{
    struct tccl_ring ring = {.gbps = 4,
                             .alone = 5,
                             .share = 0.7,
                             .baseline_gbps = {3, 4, 4, 3, 4.1},
                             .baseline_share = {0.7, 0.6, 0.7, 0.75, 0.5}};
    CHECK(tccl_ring_gains(&ring, 0));  /* faster */
    CHECK(tccl_ring_gains(&ring, 1));  /* as fast, and leaves more */
    CHECK(!tccl_ring_gains(&ring, 2)); /* as fast, and leaves as much */
    CHECK(tccl_ring_gains(&ring, 3));  /* faster; what NCCL leaves more it lacks itself */
    CHECK(!tccl_ring_gains(&ring, 4)); /* slower: its own job comes first */
    ring.noise = 0.2;
    CHECK(!tccl_ring_gains(&ring, 1));
    ring = (struct tccl_ring){
        .gbps = 4, .alone = 5, .share = 0.5, .baseline_gbps = {3.9}, .baseline_share = {0.7}};
    CHECK(!tccl_ring_gains(&ring, 0) && tccl_ring_decide(&ring, 0, 0).decided == TCCL_HARMS);
}

/* Of a node's ring and its ring sets the fastest, beside others that which shares best. */
TEST(set_beside)
{
    struct tccl_chain chain = {.closed = true, .n_gpus = 2, .gpus = {0, 1}};
    struct tccl_seen seen[3] = {
        {.set = {.n = 1, .rings = {chain}}, .gbps = 7, .alone = 10, .share = 0.9},
        {.set = {.n = 2, .rings = {chain, chain}}, .gbps = 9, .alone = 12, .share = 0.5},
        {.set = {.n = 2, .rings = {chain, chain}}, .gbps = 8, .alone = 11, .share = 0.8}};
    struct tccl_node_class class = {.n_gpus = 2, .neighbours = 1, .seen = seen, .n_seen = 3};
    struct tccl_run run = {&class, 1};
    CHECK_INT(solve(&run, 1, 0), 0);
    CHECK(ring.gbps == 8 && ring.rings == 2 && ring.share == 0.8); /* 0.67; 0.5 and 0.58 */
    seen[0].share = seen[1].share = seen[2].share = 1;
    CHECK_INT(solve(&run, 1, 0), 0);
    CHECK(ring.gbps == 9 && ring.alone == 12);
    seen[1].share = seen[2].share = 0.4;
    CHECK_INT(solve(&run, 1, 0), 0);
    CHECK(ring.gbps == 7 && ring.rings == 1);
}

/* People are told of what all-reduces reach beside others: nobody has rings that are told to have
 * less than NCCL's own. Two at once do, a single one is told to have more. Where the ends of one
 * are not known there, it is compared as they decide. */
TEST(told)
{
    struct tccl_chain chain = {.closed = true, .n_gpus = 2, .gpus = {0, 1}};
    struct tccl_seen seen[2] = {{.set = {.n = 1, .rings = {chain}},
                                 .gbps = 8,
                                 .alone = 12,
                                 .share = 1,
                                 .ends = 100,
                                 .told_ends = 100},
                                {.set = {.n = 2, .rings = {chain, chain}},
                                 .gbps = 11,
                                 .alone = 12,
                                 .share = 1,
                                 .ends = 150,
                                 .told_ends = 200}};
    struct tccl_node_class class = {.n_gpus = 2, .neighbours = 1, .seen = seen, .n_seen = 2};
    struct tccl_class_baseline *own = &class.baselines[TCCL_NEWEST];
    *own = (struct tccl_class_baseline){.gbps = {0, 7.6}, .share = {1, 1}};
    own->ends[1] = 200;
    own->told_ends[1] = 100;
    for (int round = 0; round < 3; round++) { /* all are told; not of the set; of none */
        cleared_by(tccl_ring_clear) struct tccl_ring ring = {0};
        int best;
        seen[1].told_ends = round ? 0 : 200;
        seen[0].told_ends = round == 2 ? 0 : 100;
        CHECK_INT(tccl_ring_choose(&(struct tccl_run){&class, 1}, 1, 2, &ring, &best, NULL), 0);
        CHECK_INT(ring.rings, round ? 2 : 1);
        CHECK(tccl_ring_gains(&ring, TCCL_NEWEST));
        CHECK(fabs(tccl_ring_reach(&ring) - (round ? 11 / 1.25 : 8)) < 1e-9);
        CHECK(fabs(tccl_ring_baseline_reach(&ring, TCCL_NEWEST) - (round ? 7.6 / 1.5 : 7.6)) <
              1e-9);
    }
    cleared_by(tccl_ring_clear) struct tccl_ring two = {0};
    seen[1].told_ends = 200;
    CHECK_INT(tccl_ring_solve(&(struct tccl_run){&class, 1}, 1, 2, &two, NULL), 0);
    CHECK_INT(tccl_ring_decide(&two, TCCL_NEWEST, 0).decided, TCCL_NO_FASTER);
}

/* The largest bandwidth of so many rings over all nodes, of all sets in all orders that leave that
 * share: tried node by node. */
static double best_beside(const struct tccl_node_class *const *nodes, int count, int rings,
                          double share)
{
    struct vectors list[3][4 * 6];
    int n[3], at[3] = {0};
    double best = 0;
    for (int i = 0; i < count; i++) {
        struct tccl_node_class class = *nodes[i];
        struct tccl_seen seen[32];
        class.seen = seen;
        class.n_seen = tccl_class_first_set(nodes[i]);
        for (int k = class.n_seen; k < nodes[i]->n_seen; k++)
            if (nodes[i]->seen[k].share >= share)
                seen[class.n_seen++] = nodes[i]->seen[k];
        n[i] = list_vectors(&class, rings, list[i]);
        if (n[i] == 0)
            return 0;
    }
    for (;;) {
        double least = 1e9;
        for (int i = 0; i < count; i++) {
            int next = (i + 1) % count;
            least = least_of(least, list[i][at[i]].gbps,
                             hop_of(nodes[i], list[i][at[i]].nics[1], nodes[next],
                                    list[next][at[next]].nics[0], rings));
        }
        best = least > best ? least : best;
        int i = 0;
        while (i < count && ++at[i] == n[i])
            at[i++] = 0;
        if (i == count)
            return best;
    }
}

/* What a choice leaves on the node where that is least. */
static double share_left(const struct tccl_node_class *const *nodes, const struct tccl_ring *ring)
{
    double share = 1;
    for (int i = 0; i < ring->n_nodes; i++) {
        double left = nodes[i]->seen[ring->choices[i].seen].share;
        share = left < share ? left : share;
    }
    return share;
}

/* A class beside other steps: some of its chains and sets leave little to these. */
static struct tccl_node_class *random_beside(unsigned long *state)
{
    static const double shares[] = {0.5, 0.8, 1};
    struct tccl_node_class *class = random_class(state);
    for (int i = 0; i < class->n_nics; i++) {
        class->nics[i].gbps *= 3;
        if (i > 0 && random_below(state, 2))
            strcpy(class->nics[i].fabric, class->nics[0].fabric);
    }
    for (int k = 0; k < class->n_nics * class->n_nics; k++) {
        class->seen[k].alone = class->seen[k].gbps * (1 + 0.1 * random_below(state, 6));
        class->seen[k].share = shares[1 + random_below(state, 2)];
    }
    class->baselines[TCCL_NEWEST].gbps[0] = 0;
    for (int rings = 2; rings <= MAX_RINGS; rings++)
        add_random_sets(class, rings, state);
    for (int k = tccl_class_first_set(class); k < class->n_seen; k++) {
        class->seen[k].alone = class->seen[k].gbps * 1.5;
        class->seen[k].share = shares[random_below(state, 3)];
    }
    return class;
}

/* What a job over several nodes gets beside other steps: the fastest rings of those that leave on
 * each node the least share that there is with the single ring, its own included, if they gain more
 * than 5 %. */
TEST(choice_beside)
{
    unsigned long seed = check_seed();
    int several = 0, refused = 0, limited = 0;
    for (int round = 0; round < 2000 && !check_failures; round++) {
        unsigned long state = seed + 90000 + round;
        struct tccl_node_class *classes[3];
        const struct tccl_node_class *nodes[3];
        struct tccl_run runs[3];
        struct tccl_ring single, ring;
        int count = 2 + random_below(&state, 2), rings_of_best;
        int most = random_below(&state, 5) ? 8 : 2;
        for (int i = 0; i < count; i++) {
            nodes[i] = classes[i] = random_beside(&state);
            runs[i] = (struct tccl_run){classes[i], 1};
        }
        int status = tccl_ring_solve(runs, count, 1, &single, NULL);
        CHECK_INT(tccl_ring_choose(runs, count, most, &ring, &rings_of_best, NULL), status);
        double best = 0, without = 0, left = status == 0 ? share_left(nodes, &single) : 1;
        double floor = status == 0 ? fmin(left, single.gbps / single.alone) : 1;
        for (int rings = 2; rings <= MAX_RINGS && rings <= most && status == 0; rings++) {
            double gbps = best_beside(nodes, count, rings, floor);
            double all = best_beside(nodes, count, rings, 0);
            best = gbps > best ? gbps : best;
            without = all > without ? all : without;
            CHECK((ring.closes >> rings & 1) == (all > 0));
        }
        if (status == 0 && best > single.gbps * (1 + 0.05)) {
            CHECK(ring.rings > 1 && ring.rings <= most && ring.gbps == best);
            CHECK(ring.share == share_left(nodes, &ring) && ring.share >= floor);
            CHECK(value_of(nodes, &ring) == best && rings_of_best == ring.rings);
            several++;
            limited += without > best;
        } else if (status == 0) {
            CHECK(ring.rings == 1 && ring.gbps == single.gbps && ring.share == left);
            refused += without > single.gbps * (1 + 0.05);
        }
        CHECK(status != 0 || (ring.bound >= ring.gbps && ring.bound >= single.bound));
        if (check_failures)
            fprintf(stderr, "round %d: %d nodes, %g, %g, %g\n", round, count, single.gbps, best,
                    ring.gbps);
        tccl_ring_clear(&single);
        tccl_ring_clear(&ring);
        for (int i = 0; i < count; i++)
            tccl_node_class_free(classes[i]);
    }
    CHECK(several > 20 && refused > 20 && limited > 0);
}

static struct tccl_node_class *class_of(const char *name, uint32_t gpus)
{
    const struct tccl_model *model = load_machine(name);
    const struct tccl_search_options options = {.gap = 0.03};
    owned(table) struct tccl_table *table = table_of(model, gpus, true, &options);
    return tccl_node_class_from_table(table, tccl_model_machine(model), TCCL_VIEW_JOB);
}

/* The machines of the paper: mixed nodes reach what the weaker class does, and well above NCCL. */
TEST(machines)
{
    cleanup_class struct tccl_node_class *amd = class_of("amd-4gpu", 15),
                                         *intel = class_of("intel-4gpu", 15);
    struct tccl_run runs[] = {{amd, 2}, {intel, 2}};
    const char *const names[] = {"n1", "n2", "n3", "n4"};
    struct tccl_ring one;
    CHECK_INT(solve(runs, 2, 0), 0);
    CHECK_INT(ring.n_nodes, 4);
    double weaker =
        amd->seen[0].gbps < intel->seen[0].gbps ? amd->seen[0].gbps : intel->seen[0].gbps;
    CHECK(ring.gbps == weaker);
    CHECK(ring.baseline_gbps[TCCL_NEWEST] > 0 && ring.gbps > 1.5 * ring.baseline_gbps[TCCL_NEWEST]);
    char *text = tccl_ring_format(runs, 2, &ring, names, 4096);
    CHECK(text && strncmp(text, "n1[mlx5_0 ", 10) == 0 && strstr(text, "] n4[mlx5_0 "));
    free(text);
    CHECK_INT(tccl_ring_solve(&(struct tccl_run){amd, 1}, 1, 0, &one, ERR), 0);
    CHECK(one.gbps == tccl_class_ring(amd)->gbps &&
          amd->seen[one.choices[0].seen].set.rings[0].closed);
    text = tccl_ring_format(&(struct tccl_run){amd, 1}, 1, &one, names, 4096);
    CHECK(text && strncmp(text, "n1[0 -", 6) == 0);
    free(text);
    tccl_ring_clear(&one);
}

/* Do two texts have the same nodes with the same chains? */
static bool same_nodes(const char *a, const char *b)
{
    struct tccl_ring_reader first = {.text = a}, second = {.text = b};
    struct tccl_named_chain x, y;
    int more;
    do {
        more = tccl_ring_next(&first, &x, NULL);
        if (tccl_ring_next(&second, &y, NULL) != more)
            return false;
    } while (more > 0 && first.node == second.node && first.chain == second.chain &&
             !strcmp(first.name, second.name) && !memcmp(&x, &y, sizeof(x)));
    return more == 0;
}

/* Where a ring's text is too long, the chains of each class are written at its first node only: the
 * same ring, and no longer than names and one node of each class take. */
TEST(long_text)
{
    enum { NODES = 600 };
    static char names[NODES][8];
    const char *list[NODES];
    cleanup_class struct tccl_node_class *amd = class_of("amd-4gpu", 15),
                                         *intel = class_of("intel-4gpu", 15);
    struct tccl_seen two = {.gbps = 1e3, .bound = 1e6};
    struct tccl_run runs[NODES];
    for (int i = 0; i < NODES; i++) { /* in turn, but for a stretch */
        snprintf(names[i], sizeof(names[i]), "n%d", i + 1);
        list[i] = names[i];
        runs[i] = (struct tccl_run){i % 2 && i > 100 ? intel : amd, 1};
    }
    two.set = (struct tccl_ring_set){2, {amd->seen[0].set.rings[0], amd->seen[0].set.rings[0]}};
    CHECK_INT(tccl_node_class_add_set(amd, &two), 0);
    two.set = (struct tccl_ring_set){2, {intel->seen[0].set.rings[0], intel->seen[0].set.rings[0]}};
    CHECK_INT(tccl_node_class_add_set(intel, &two), 0);
    for (int rings = 1; rings <= 2; rings++) {
        CHECK_INT(solve(runs, NODES, rings), 0);
        cleanup_free char *whole = tccl_ring_format(runs, NODES, &ring, list, SIZE_MAX);
        cleanup_free char *brief = tccl_ring_format(runs, NODES, &ring, list, 4096);
        CHECK(whole && !strchr(whole, '=') && strstr(whole, "] n600[mlx5_0 "));
        CHECK(brief && strstr(brief, " n3[= n1]") && strstr(brief, " n600[= n102]"));
        CHECK(brief && strlen(brief) < NODES * 14 + 2 * TCCL_RINGS_TEXT);
        CHECK(whole && brief && strlen(whole) > 4 * strlen(brief) && same_nodes(whole, brief));
        cleanup_free char *fits = tccl_ring_format(runs, NODES, &ring, list, strlen(whole));
        CHECK_STR(fits, whole);
    }
}

/* One node alone: its best ring, or the best set of rings if that is faster. */
TEST(single_sets)
{
    cleanup_class struct tccl_node_class *class = class_of("amd-4gpu", 15);
    const struct tccl_run run = {class, 1};
    const double factors[] = {0.9, 1.2, 1.1};
    const char *const names[] = {"n1"};
    for (int i = 0; i < 3; i++) {
        struct tccl_seen set = {.gbps = factors[i] * tccl_class_ring(class)->gbps, .bound = 1e6};
        set.set.n = 2 + i;
        for (int r = 0; r < set.set.n; r++)
            set.set.rings[r] = tccl_class_ring(class)->set.rings[0];
        CHECK_INT(tccl_node_class_add_set(class, &set), 0);
        CHECK_INT(solve(&run, 1, 0), 0);
        CHECK_INT(ring.rings, i == 0 ? 1 : 3);
        CHECK(ring.gbps == tccl_class_ring(class)->gbps * (i == 0 ? 1 : 1.2) &&
              ring.alone == ring.gbps);
        CHECK(ring.bound >= ring.gbps && ring.share == 1);
        cleanup_free char *text = tccl_ring_format(&run, 1, &ring, names, 4096);
        int bars = 0;
        for (const char *at = text; *at; at++)
            bars += *at == '|';
        CHECK_INT(bars, ring.rings - 1);
        CHECK_INT(solve(&run, 1, 1), 0);
        CHECK(ring.rings == 1 && ring.gbps == tccl_class_ring(class)->gbps);
        CHECK_INT(solve(&run, 1, 8), -1);
        CHECK_INT(solve(&(struct tccl_run){class, 2}, 1, 0), 0);
        CHECK_INT(ring.rings, 1);
    }
}

/* One GPU in all is nothing to do; one GPU on each of two nodes is a ring of two. */
TEST(single_gpus)
{
    cleanup_class struct tccl_node_class *class = class_of("amd-4gpu", 1);
    CHECK_INT(solve(&(struct tccl_run){class, 1}, 1, 0), 1);
    CHECK_INT(solve(&(struct tccl_run){class, 2}, 1, 0), 0);
    CHECK(ring.gbps > 0 && ring.choices[0].seen == 0 && ring.choices[1].seen == 0);
}

static bool no_nic(void *context, tccl_transfer transfer)
{
    return tccl_transfer_initiator(transfer).kind != TCCL_NIC;
}

/* Without a peer NCCL's own edges by NICs are taken for bounces, and are not unknown: each ring of
 * ours would be taken. */
TEST(own_by_nics)
{
    const struct tccl_model *model = load_machine("quad-8gpu");
    double gbps[2];
    for (int without = 0; without < 2; without++) {
        const struct tccl_search_options options = {.gap = 0.03, .can = without ? no_nic : NULL};
        owned(table) struct tccl_table *table = table_of(model, 255, false, &options);
        const struct tccl_baseline *own = &table->baselines[1][TCCL_NEWEST];
        bool by_nics = false;
        for (int i = 0; i < own->set.n; i++)
            by_nics |= tccl_chain_by_nics(&own->set.rings[i]);
        CHECK_INT(by_nics, !without);
        gbps[without] = own->gbps;
    }
    CHECK(gbps[1] > 0 &&
          gbps[1] < gbps[0]); /* by NICs it is faster, else NCCL would not go there */
}

/* A profile that was measured without a peer: its node alone has a ring, and several have none,
 * with the reason. */
TEST(without_nics)
{
    const struct tccl_model *model = load_machine("amd-4gpu");
    const struct tccl_machine *machine = tccl_model_machine(model);
    const struct tccl_search_options options = {.gap = 0.03, .can = no_nic};
    owned(table) struct tccl_table *table = table_of(model, 15, false, &options);
    CHECK(table->baselines[1][TCCL_NEWEST].gbps > 0 && table->baselines[0][TCCL_NEWEST].set.n == 0);
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    CHECK_INT(solve(&(struct tccl_run){class, 1}, 1, 0), 0);
    CHECK(ring.gbps > ring.baseline_gbps[TCCL_NEWEST]);
    CHECK_SAYS(solve(&(struct tccl_run){class, 2}, 1, 0) == -1,
               "has no chain between NICs for these 4 GPUs: measure them");
}
