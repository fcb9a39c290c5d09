/* bench-merge.c: how long the best rings over thousands of nodes takes, and how much faster that is
 * than the recurrence of the TCCL paper as it stands there. */
#include "ring/segment.h"

#include "bench.h"

enum {
    NODES = 4096,
    KINDS = 128,
    NICS = 4,
    WAYS = 64, /* sets of each node class */
    MAX_RINGS = 4,
    REPEATS = 7,
    PAPER_NODES = 64,
    PAPER_STATES = 256
};

/* segment.c and maxmin.c once more, without AVX2 (meson.build). */
int baseline_nodes_ring(const struct tccl_nodes *nodes, float *gbps, struct tccl_node_way *choices);

typedef int (*ring_function)(const struct tccl_nodes *, float *, struct tccl_node_way *);

static struct {
    struct tccl_way ways[KINDS][WAYS];
    struct tccl_ways kinds[KINDS];
    struct tccl_ways_run runs[NODES];
    struct tccl_node_way choices[NODES];
} sample;

static unsigned random_number(unsigned below)
{
    static unsigned long state = 1;
    return (unsigned)random_below(&state, (int)below);
}

static float random_gbps(void)
{
    return 1 + (float)random_number(1 << 24) * (24.0f / (1 << 24));
}

static void *room(size_t count, size_t size)
{
    void *data = calloc(count, size);
    MUST(!data);
    return data;
}

static void fill(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = random_gbps();
}

/* Node classes with so many sets of so many rings, each ring by any NICs; NICs are on so many
 * fabrics. Of one ring all pairs of NICs. */
static void make_kinds(int rings, unsigned fabrics)
{
    for (int kind = 0; kind < KINDS; kind++) {
        int n = rings == 1 ? NICS * NICS : WAYS;
        sample.kinds[kind] = (struct tccl_ways){n, sample.ways[kind]};
        for (int i = 0; i < n; i++) {
            sample.ways[kind][i] = (struct tccl_way){.gbps = random_gbps()};
            for (int r = 0; r < rings; r++) {
                unsigned in = rings == 1 ? (unsigned)i / NICS : random_number(NICS);
                unsigned out = rings == 1 ? (unsigned)i % NICS : random_number(NICS);
                sample.ways[kind][i].in[r] = in % fabrics;
                sample.ways[kind][i].out[r] = out % fabrics;
            }
        }
    }
}

/* NODES nodes in runs of equal ones. */
static struct tccl_nodes make_nodes(int rings, int kinds, int run)
{
    for (int i = 0; i < NODES / run; i++)
        sample.runs[i] = (struct tccl_ways_run){i % kinds, run};
    return (struct tccl_nodes){rings, kinds, sample.kinds, NODES / run, sample.runs};
}

/* All numbers of rings, one after the other. */
static double time_rings(ring_function ring, int max_rings, unsigned fabrics, int kinds, int run,
                         float *gbps)
{
    double total = 0;
    *gbps = 0;
    for (int rings = 1; rings <= max_rings; rings++) {
        float own;
        make_kinds(rings, fabrics);
        struct tccl_nodes nodes = make_nodes(rings, kinds, run);
        double start = bench_cpu();
        if (ring(&nodes, &own, sample.choices) != 0) {
            fprintf(stderr, "bench-merge: no room\n");
            exit(1);
        }
        total += (bench_cpu() - start) * 1e3;
        *gbps = own > *gbps ? own : *gbps;
    }
    return total;
}

/* Both builds in turn, over other random ways each time. */
static void compare_builds(const char *what, int max_rings, unsigned fabrics, int kinds, int run,
                           const char *aim)
{
    double fast[REPEATS], baseline[REPEATS];
    char text[80];
    for (int i = 0; i < REPEATS; i++) {
        float gbps;
        fast[i] = time_rings(tccl_nodes_ring, max_rings, fabrics, kinds, run, &gbps);
        baseline[i] = time_rings(baseline_nodes_ring, max_rings, fabrics, kinds, run, &gbps);
    }
    snprintf(text, sizeof(text), "%s, baseline", what);
    bench_spread(text, baseline, REPEATS, "ms", aim);
    snprintf(text, sizeof(text), "%s, chosen at run time", what);
    bench_spread(text, fast, REPEATS, "ms", aim);
}

/* The paper's recurrence over encoded transfers:
 * D[n][h][t] = max over x of min(D[n - 1][h][x], DB[x][t]), then the ring. */
static double time_paper(float *gbps)
{
    enum { E = PAPER_STATES };
    cleanup_free float *db = room((size_t)E * E, sizeof(float));
    float *d = room((size_t)E * E, sizeof(float)), *next = room((size_t)E * E, sizeof(float));
    fill(db, (size_t)E * E);
    double start = bench_cpu();
    memcpy(d, db, sizeof(float) * E * E);
    for (int n = 1; n < PAPER_NODES; n++) {
        for (int h = 0; h < E; h++) {
            for (int t = 0; t < E; t++) {
                float best = 0;
                for (int x = 0; x < E; x++) {
                    float both = d[h * E + x] < db[x * E + t] ? d[h * E + x] : db[x * E + t];
                    best = both > best ? both : best;
                }
                next[h * E + t] = best;
            }
        }
        float *kept = d;
        d = next;
        next = kept;
    }
    *gbps = 0;
    for (int h = 0; h < E; h++)
        *gbps = d[h * E + h] > *gbps ? d[h * E + h] : *gbps;
    double seconds = bench_cpu() - start;
    free(d);
    free(next);
    return seconds * 1e3;
}

/* One ring over nodes with 4 NICs, each on a fabric of its own. */
static void compare_paper(void)
{
    enum { TIMES = 20, PAPER_REPEATS = 5 };
    double plain[PAPER_REPEATS], ours[PAPER_REPEATS], ratio[PAPER_REPEATS];
    make_kinds(1, NICS);
    for (int i = 0; i < PAPER_NODES; i++)
        sample.runs[i] = (struct tccl_ways_run){i, 1};
    struct tccl_nodes nodes = {1, PAPER_NODES, sample.kinds, PAPER_NODES, sample.runs};
    for (int i = 0; i < PAPER_REPEATS; i++) {
        float gbps;
        plain[i] = time_paper(&gbps);
        double start = bench_cpu();
        for (int k = 0; k < TIMES; k++)
            if (tccl_nodes_ring(&nodes, &gbps, sample.choices) != 0)
                exit(1);
        ours[i] = (bench_cpu() - start) * 1e3 / TIMES;
        ratio[i] = plain[i] / ours[i];
    }
    bench_spread("plain recurrence over 256 encoded transfers", plain, PAPER_REPEATS, "ms", "");
    bench_spread("4 NICs, 4 fabrics", ours, PAPER_REPEATS, "ms", "");
    bench_spread("  plain : ours", ratio, PAPER_REPEATS, "x", ">= 1000");
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    bench_title(
        "The best set of up to 4 rings over 4,096 nodes with 4 NICs (processor time, one core)");
    bench_heads();
    compare_builds("1 ring, 4 fabrics, 128 classes by turns", 1, 4, KINDS, 1, "<= 100");
    compare_builds("1 fabric, 128 classes by turns", MAX_RINGS, 1, KINDS, 1, "<= 100");
    compare_builds("2 fabrics, 128 classes by turns", MAX_RINGS, 2, KINDS, 1, "<= 100");
    compare_builds("4 fabrics, 128 classes by turns", MAX_RINGS, 4, KINDS, 1, "<= 100");
    compare_builds("4 fabrics, runs of 32 equal nodes", MAX_RINGS, 4, KINDS, 32, "<= 100");
    compare_builds("4 fabrics, equal nodes", MAX_RINGS, 4, 1, NODES, "<= 100");
    bench_title("The ring over 64 different nodes, against the paper's recurrence");
    bench_heads();
    compare_paper();
    return bench_end();
}
