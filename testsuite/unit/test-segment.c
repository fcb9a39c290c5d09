/* test-segment.c: merges equal the paper's recurrence, in any order of merging. */
#include "ring/segment.h"

#include "check.h"
#include "random-model.h"

enum { MAX_NODES = 24, MAX_PORTS = 6 };

/* Random nodes, often equal to the one before. */
struct sample {
    int count;
    int ports[MAX_NODES], nics[MAX_NODES];
    float cells[MAX_NODES][MAX_PORTS * MAX_PORTS];
    unsigned char nic[MAX_NODES][MAX_PORTS];
    float hops[MAX_NODES][MAX_PORTS * MAX_PORTS];
    const float *gbps_of[MAX_NODES];
    const unsigned char *nic_of[MAX_NODES];
    const float *hop_of[MAX_NODES];
    struct tccl_nodes nodes;
};

static float random_value(unsigned long *state)
{
    return random_below(state, 6) == 0 ? 0 : 1 + random_below(state, 40);
}

static void make_node(struct sample *sample, unsigned long *state, int i)
{
    bool repeat = i > 0 && random_below(state, 2);
    int own = repeat ? i - 1 : i;
    while (repeat && own > 0 && sample->gbps_of[own] == sample->gbps_of[own - 1])
        own--;
    if (!repeat) {
        sample->nics[i] = 1 + random_below(state, 3);
        sample->ports[i] = sample->nics[i] + random_below(state, MAX_PORTS - sample->nics[i] + 1);
        for (int p = 0; p < sample->ports[i]; p++)
            sample->nic[i][p] = p < sample->nics[i] ? p : random_below(state, sample->nics[i]);
        for (int c = 0; c < sample->ports[i] * sample->ports[i]; c++)
            sample->cells[i][c] = random_value(state);
    }
    sample->nics[i] = sample->nics[own];
    sample->ports[i] = sample->ports[own];
    sample->gbps_of[i] = sample->cells[own];
    sample->nic_of[i] = sample->nic[own];
}

static void make_sample(struct sample *sample, unsigned long *state)
{
    sample->count = 1 + random_below(state, MAX_NODES);
    for (int i = 0; i < sample->count; i++)
        make_node(sample, state, i);
    for (int i = 0; i < sample->count; i++) {
        int next = (i + 1) % sample->count;
        for (int c = 0; c < sample->nics[i] * sample->nics[next]; c++)
            sample->hops[i][c] = 5 + random_value(state);
        bool same = i > 0 && sample->gbps_of[i] == sample->gbps_of[i - 1] &&
                    sample->gbps_of[next] == sample->gbps_of[i] && random_below(state, 4);
        sample->hop_of[i] = same ? sample->hop_of[i - 1] : sample->hops[i];
    }
    sample->nodes = (struct tccl_nodes){sample->count,   sample->ports,  sample->nics,
                                        sample->gbps_of, sample->nic_of, sample->hop_of};
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static double hop_between(const struct sample *sample, int i, int exit, int entry)
{
    int next = (i + 1) % sample->count;
    return sample
        ->hop_of[i][sample->nic_of[i][exit] * sample->nics[next] + sample->nic_of[next][entry]];
}

/* D[n][h][t] = max over x of min(D[n-1][h][x], DB[x][t]), with x the pair (exit port of node n - 1,
 * entry port of node n) and its hop; then the ring, closed from every tail to every head. */
static double recurrence(const struct sample *sample)
{
    double best = 0;
    for (int head = 0; head < sample->ports[0]; head++) {
        double reach[MAX_PORTS];
        for (int t = 0; t < sample->ports[0]; t++)
            reach[t] = sample->gbps_of[0][head * sample->ports[0] + t];
        for (int n = 1; n < sample->count; n++) {
            double next[MAX_PORTS] = {0};
            for (int t = 0; t < sample->ports[n]; t++)
                for (int exit = 0; exit < sample->ports[n - 1]; exit++)
                    for (int entry = 0; entry < sample->ports[n]; entry++) {
                        double through =
                            lesser(lesser(reach[exit], hop_between(sample, n - 1, exit, entry)),
                                   sample->gbps_of[n][entry * sample->ports[n] + t]);
                        next[t] = through > next[t] ? through : next[t];
                    }
            memcpy(reach, next, sizeof(reach));
        }
        for (int t = 0; t < sample->ports[sample->count - 1]; t++) {
            double ring = lesser(reach[t], hop_between(sample, sample->count - 1, t, head));
            best = ring > best ? ring : best;
        }
    }
    return best;
}

/* The bandwidth of the choices, added up by hand. */
static double value_of(const struct sample *sample, const struct tccl_node_ports *choices)
{
    double least = 1e9;
    for (int i = 0; i < sample->count; i++) {
        int next = (i + 1) % sample->count;
        least = lesser(least,
                       sample->gbps_of[i][choices[i].entry * sample->ports[i] + choices[i].exit]);
        least = lesser(least, hop_between(sample, i, choices[i].exit, choices[next].entry));
    }
    return least;
}

static void test_ring(unsigned long seed)
{
    static struct sample sample;
    for (int round = 0; round < 2000 && !check_failures; round++) {
        unsigned long state = seed + round;
        struct tccl_node_ports choices[MAX_NODES];
        float gbps, alone;
        make_sample(&sample, &state);
        CHECK_INT(tccl_nodes_ring(&sample.nodes, &gbps, choices), 0);
        CHECK_INT(tccl_nodes_ring(&sample.nodes, &alone, NULL), 0);
        CHECK(gbps == alone);
        CHECK(gbps == recurrence(&sample));
        if (gbps > 0)
            CHECK(value_of(&sample, choices) == gbps);
        if (check_failures)
            fprintf(stderr, "round %d: %d nodes\n", round, sample.count);
    }
}

/* A segment over nodes first .. first + count - 1, with every port its own NIC. */
struct segment {
    int first, last;
    float cells[MAX_PORTS * MAX_PORTS];
};

static void merge(const struct sample *sample, const struct segment *a, const struct segment *b,
                  struct segment *out)
{
    float hop[MAX_PORTS * MAX_PORTS], scratch[MAX_PORTS * MAX_PORTS];
    for (int x = 0; x < sample->ports[a->last]; x++)
        for (int y = 0; y < sample->ports[b->first]; y++)
            hop[x * sample->ports[b->first] + y] = hop_between(sample, a->last, x, y);
    tccl_segment_merge(a->cells, hop, b->cells, out->cells, scratch, sample->ports[a->first],
                       sample->ports[a->last], sample->ports[b->first], sample->ports[b->last]);
    out->first = a->first;
    out->last = b->last;
}

static struct segment leaf(const struct sample *sample, int i)
{
    struct segment segment = {i, i, {0}};
    memcpy(segment.cells, sample->gbps_of[i], sizeof(float) * sample->ports[i] * sample->ports[i]);
    return segment;
}

/* Merges at random places until one segment is left. */
static struct segment merge_tree(const struct sample *sample, unsigned long *state, int first,
                                 int last)
{
    struct segment merged;
    if (first == last)
        return leaf(sample, first);
    int cut = first + random_below(state, last - first);
    struct segment left = merge_tree(sample, state, first, cut);
    struct segment right = merge_tree(sample, state, cut + 1, last);
    merge(sample, &left, &right, &merged);
    return merged;
}

static void test_tree_equals_sequence(unsigned long seed)
{
    static struct sample sample;
    for (int round = 0; round < 500 && !check_failures; round++) {
        unsigned long state = seed + 5000 + round;
        make_sample(&sample, &state);
        struct segment one = leaf(&sample, 0), next;
        for (int i = 1; i < sample.count; i++) {
            struct segment own = leaf(&sample, i);
            merge(&sample, &one, &own, &next);
            one = next;
        }
        struct segment tree = merge_tree(&sample, &state, 0, sample.count - 1);
        for (int c = 0; c < sample.ports[0] * sample.ports[sample.count - 1]; c++)
            CHECK(tree.cells[c] == one.cells[c]);
    }
}

/* Any shape, with sizes around those of the vector kernels. */
static void test_product(unsigned long seed)
{
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
                    double through = lesser(a[i * inner + k], b[k * columns + j]);
                    best = through > best ? through : best;
                }
                CHECK(out[i * columns + j] == best);
            }
        }
    }
}

int main(void)
{
    unsigned long seed = check_seed();
    test_ring(seed);
    test_tree_equals_sequence(seed);
    test_product(seed);
    return check_result();
}
