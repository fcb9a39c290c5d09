/* test-segment.c: merged ring sets equal a plain recurrence over all orders of rings, however runs
 * of nodes are cut. */
#include "ring/segment.h"

#include "random-model.h"

enum { MAX_RINGS = 4, MAX_KINDS = 3, MAX_WAYS = 6, MAX_RUNS = 4, MAX_NODES = 16, FABRICS = 3 };
enum { WORDS = 81 /* FABRICS ^ MAX_RINGS */ };

struct sample {
    struct tccl_nodes nodes;
    struct tccl_way ways[MAX_KINDS][MAX_WAYS];
    struct tccl_ways kinds[MAX_KINDS];
    struct tccl_ways_run runs[MAX_NODES];
    int count; /* of nodes */
};

static float random_value(unsigned long *state)
{
    return random_below(state, 6) == 0 ? 0 : 1 + random_below(state, 40);
}

static void make_sample(struct sample *sample, unsigned long *state, int longest)
{
    int rings = 1 + random_below(state, MAX_RINGS), fabrics = 1 + random_below(state, FABRICS);
    bool kept = random_below(state, 2); /* most rings leave by the fabric by which they came */
    *sample = (struct sample){.count = 0};
    sample->nodes = (struct tccl_nodes){rings, 1 + random_below(state, MAX_KINDS), sample->kinds,
                                        1 + random_below(state, MAX_RUNS), sample->runs};
    for (int kind = 0; kind < sample->nodes.n_kinds; kind++) {
        sample->kinds[kind] =
            (struct tccl_ways){1 + random_below(state, MAX_WAYS), sample->ways[kind]};
        for (int i = 0; i < sample->kinds[kind].n; i++) {
            struct tccl_way *way = &sample->ways[kind][i];
            way->gbps = random_value(state);
            for (int r = 0; r < rings; r++) {
                way->in[r] = random_below(state, fabrics);
                way->out[r] = kept && random_below(state, 4)
                                  ? way->in[r]
                                  : (unsigned)random_below(state, fabrics);
            }
        }
    }
    for (int i = 0; i < sample->nodes.n_runs; i++) {
        sample->runs[i] = (struct tccl_ways_run){random_below(state, sample->nodes.n_kinds),
                                                 1 + random_below(state, longest)};
        sample->count += sample->runs[i].count;
    }
}

/* The kind of a node. */
static int kind_of(const struct sample *sample, int node)
{
    int run = 0;
    while (node >= sample->runs[run].count)
        node -= sample->runs[run++].count;
    return sample->runs[run].kind;
}

static int word_of(const uint32_t *fabrics, const int *order, int rings)
{
    int word = 0;
    for (int r = 0; r < rings; r++)
        word = word * FABRICS + (int)fabrics[order[r]];
    return word;
}

/* One node more, in all orders of a way's rings from ring r on. */
static void spread(const struct tccl_way *way, int rings, int r, int *order, const double *before,
                   double *behind)
{
    if (r == MAX_RINGS || r == rings) {
        double reached = before[word_of(way->in, order, rings)];
        double through = reached < way->gbps ? reached : way->gbps;
        double *to = &behind[word_of(way->out, order, rings)];
        *to = through > *to ? through : *to;
        return;
    }
    for (int k = 0; k < rings; k++) {
        bool used = false;
        for (int j = 0; j < r; j++)
            used = used || order[j] == k;
        order[r] = k;
        if (!used)
            spread(way, rings, r + 1, order, before, behind);
    }
}

/* D[n][h][t] = max over x of min(D[n-1][h][x], DB[x][t]), where h, x and t say the fabric of each
 * ring; then each ring comes back to where it began. */
static double recurrence(const struct sample *sample)
{
    double best = 0;
    for (int head = 0; head < WORDS; head++) {
        double reached[WORDS] = {0};
        reached[head] = 1e9;
        for (int node = 0; node < sample->count; node++) {
            const struct tccl_ways *ways = &sample->kinds[kind_of(sample, node)];
            double behind[WORDS] = {0};
            int order[MAX_RINGS];
            for (int i = 0; i < ways->n; i++)
                spread(&ways->ways[i], sample->nodes.rings, 0, order, reached, behind);
            memcpy(reached, behind, sizeof(reached));
        }
        best = reached[head] > best ? reached[head] : best;
    }
    return best;
}

/* The bandwidth of the choices, followed ring by ring; 0 if one does not go on where it came from.
 */
static double value_of(const struct sample *sample, const struct tccl_node_way *choices)
{
    double least = 1e9;
    for (int node = 0; node < sample->count; node++) {
        int next = (node + 1) % sample->count;
        const struct tccl_way *own = &sample->ways[kind_of(sample, node)][choices[node].way];
        const struct tccl_way *on = &sample->ways[kind_of(sample, next)][choices[next].way];
        unsigned used = 0;
        least = own->gbps < least ? own->gbps : least;
        for (int r = 0; r < sample->nodes.rings; r++) {
            used |= 1U << choices[node].order[r];
            if (own->out[choices[node].order[r]] != on->in[choices[next].order[r]])
                return 0;
        }
        if (used != (1U << sample->nodes.rings) - 1)
            return 0;
    }
    return least;
}

static int test_ring(unsigned long seed)
{
    static struct sample sample;
    int closed = 0;
    for (int round = 0; round < 2000 && !check_failures; round++) {
        unsigned long state = seed + round;
        struct tccl_node_way choices[MAX_NODES];
        float gbps, alone;
        make_sample(&sample, &state, MAX_NODES / MAX_RUNS);
        CHECK_INT(tccl_nodes_ring(&sample.nodes, &gbps, choices), 0);
        CHECK_INT(tccl_nodes_ring(&sample.nodes, &alone, NULL), 0);
        CHECK(gbps == alone && gbps == recurrence(&sample));
        if (gbps > 0)
            CHECK(value_of(&sample, choices) == gbps);
        closed += gbps > 0;
        if (check_failures)
            fprintf(stderr, "round %d: %d rings, %d nodes\n", round, sample.nodes.rings,
                    sample.count);
    }
    return closed;
}

/* Long runs, which are squared, equal as many runs of one node. */
TEST(runs)
{
    unsigned long seed = check_seed();
    enum { LONG = 700 };
    static struct sample sample;
    static struct tccl_ways_run single[MAX_RUNS * LONG];
    for (int round = 0; round < 200 && !check_failures; round++) {
        unsigned long state = seed + 5000 + round;
        float gbps, one_by_one;
        int n = 0;
        make_sample(&sample, &state, LONG);
        CHECK_INT(tccl_nodes_ring(&sample.nodes, &gbps, NULL), 0);
        for (int i = 0; i < sample.nodes.n_runs; i++)
            for (int k = 0; k < sample.runs[i].count; k++)
                single[n++] = (struct tccl_ways_run){sample.runs[i].kind, 1};
        sample.nodes.runs = single;
        sample.nodes.n_runs = n;
        CHECK_INT(tccl_nodes_ring(&sample.nodes, &one_by_one, NULL), 0);
        CHECK(gbps == one_by_one);
    }
}

/* Two rings that change places on each node come back after an even number of nodes only. */
TEST(turns)
{
    const struct tccl_way turn = {.gbps = 3, .in = {0, 1}, .out = {1, 0}};
    const struct tccl_ways kind = {1, &turn};
    for (int count = 1; count < 70; count++) {
        const struct tccl_ways_run run = {0, count};
        const struct tccl_nodes nodes = {2, 1, &kind, 1, &run};
        float gbps;
        CHECK_INT(tccl_nodes_ring(&nodes, &gbps, NULL), 0);
        CHECK(gbps == (count % 2 ? 0 : 3));
    }
}

/* More words than there is room for are refused, not tried: eight rings on eight fabrics that may
 * all change places. */
TEST(room)
{
    struct tccl_way ways[] = {{.gbps = 2}, {.gbps = 2}};
    const struct tccl_ways kind = {2, ways};
    const struct tccl_ways_run run = {0, 3};
    const struct tccl_nodes nodes = {8, 1, &kind, 1, &run};
    float gbps = 1;
    for (uint32_t r = 0; r < 8; r++) {
        ways[0].in[r] = ways[0].out[r] = ways[1].in[r] = r;
        ways[1].out[r] = r < 2 ? 1 - r : r;
    }
    CHECK_INT(tccl_nodes_ring(&nodes, &gbps, NULL), 0);
    CHECK(gbps == 2);
    for (uint32_t r = 0; r < 8; r++)
        ways[1].out[r] = (r + 1) % 8;
    ways[0].out[0] = 1;
    ways[0].out[1] = 0;
    CHECK_INT(tccl_nodes_ring(&nodes, &gbps, NULL), 1);
    CHECK(gbps == 0);
}

/* Any shape, with sizes around those of the vector kernels. */
TEST(product)
{
    unsigned long seed = check_seed();
    enum { SIDE = 100 }; /* wider than the widest tile */
    static float a[SIDE * SIDE], b[SIDE * SIDE], out[SIDE * SIDE];
    for (int round = 0; round < 300 && !check_failures; round++) {
        unsigned long state = seed + 9000 + round;
        int rows = 1 + random_below(&state, SIDE), inner = 1 + random_below(&state, SIDE);
        int columns = 1 + random_below(&state, SIDE);
        for (int i = 0; i < SIDE * SIDE; i++) {
            a[i] = random_value(&state);
            b[i] = random_value(&state);
        }
        tccl_maxmin(a, b, out, rows, inner, columns);
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                double best = 0;
                for (int k = 0; k < inner; k++) {
                    double through = fmin(a[i * inner + k], b[k * columns + j]);
                    best = through > best ? through : best;
                }
                CHECK(out[i * columns + j] == best);
            }
        }
    }
}

TEST(rings)
{
    CHECK(test_ring(check_seed()) > 200);
}
