/* bench-merge.c: how long the ring over thousands of nodes takes, and how much faster that is than
 * the recurrence of the TCCL paper as it stands there. */
#include "ring/segment.h"

#include "bench.h"

enum { NODES = 4096, PORTS = 64, NICS = 4, REPEATS = 7, PAPER_NODES = 64, PAPER_STATES = 256 };

/* segment.c once more, without AVX2 (meson.build). */
int baseline_nodes_ring(const struct tccl_nodes *nodes, float *gbps,
                        struct tccl_node_ports *choices);

typedef int (*ring_function)(const struct tccl_nodes *, float *, struct tccl_node_ports *);

static struct {
    float *cells; /* NODES matrices PORTS x PORTS */
    float *hops;  /* NODES matrices PORTS x PORTS, or the first NICS * NICS of each */
    int ports[NODES], nics[NODES];
    const float *gbps[NODES], *hop[NODES];
    const unsigned char *nic[NODES];
    struct tccl_node_ports choices[NODES];
} sample;

static unsigned char own_nic[PORTS], shared_nic[PORTS];

static float random_gbps(void)
{
    static unsigned long state = 1;
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return 1 + (float)(state >> 40) * (24.0f / (1 << 24));
}

static void *room(size_t count, size_t size)
{
    void *data = calloc(count, size);
    if (!data) {
        fprintf(stderr, "bench-merge: out of memory\n");
        exit(1);
    }
    return data;
}

static void fill(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = random_gbps();
}

/* nics = PORTS: hops may differ from port to port. */
static struct tccl_nodes make_nodes(int count, int nics, bool equal)
{
    for (int i = 0; i < count; i++) {
        size_t own = equal ? 0 : (size_t)i * PORTS * PORTS;
        sample.ports[i] = PORTS;
        sample.nics[i] = nics;
        sample.gbps[i] = sample.cells + own;
        sample.hop[i] = sample.hops + own;
        sample.nic[i] = nics == PORTS ? own_nic : shared_nic;
    }
    return (struct tccl_nodes){count,       sample.ports, sample.nics,
                               sample.gbps, sample.nic,   sample.hop};
}

static double time_ring(ring_function ring, const struct tccl_nodes *nodes, int times, float *gbps)
{
    double start = bench_cpu();
    for (int i = 0; i < times; i++) {
        if (ring(nodes, gbps, sample.choices) < 0) {
            fprintf(stderr, "bench-merge: out of memory\n");
            exit(1);
        }
    }
    return (bench_cpu() - start) * 1e3 / times;
}

/* Both builds in turn; their rings must be equal. */
static void compare_builds(const char *what, const struct tccl_nodes *nodes, int times,
                           const char *aim, const char *baseline_aim)
{
    double fast[REPEATS], baseline[REPEATS], ratio[REPEATS];
    char text[80];
    for (int i = 0; i < REPEATS; i++) {
        float a, b;
        fast[i] = time_ring(tccl_nodes_ring, nodes, times, &a);
        baseline[i] = time_ring(baseline_nodes_ring, nodes, times, &b);
        ratio[i] = baseline[i] / fast[i];
        if (a != b) {
            fprintf(stderr, "bench-merge: the rings differ: %g and %g\n", (double)a, (double)b);
            exit(1);
        }
    }
    snprintf(text, sizeof(text), "%s, baseline", what);
    bench_spread(text, baseline, REPEATS, "ms", baseline_aim);
    snprintf(text, sizeof(text), "%s, chosen at run time", what);
    bench_spread(text, fast, REPEATS, "ms", aim);
    bench_spread("  baseline : chosen at run time", ratio, REPEATS, "x", "");
}

/* The paper's recurrence over encoded transfers:
 * D[n][h][t] = max over x of min(D[n - 1][h][x], DB[x][t]), then the ring. */
static double time_paper(float *gbps)
{
    enum { E = PAPER_STATES };
    float *db = room((size_t)E * E, sizeof(float));
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
    free(db);
    free(d);
    free(next);
    return seconds * 1e3;
}

static void compare_paper(void)
{
    enum { TIMES = 20, PAPER_REPEATS = 5 };
    double plain[PAPER_REPEATS], ours[PAPER_REPEATS], baseline[PAPER_REPEATS], ratio[PAPER_REPEATS],
        baseline_ratio[PAPER_REPEATS];
    struct tccl_nodes nodes = make_nodes(PAPER_NODES, NICS, false);
    for (int i = 0; i < PAPER_REPEATS; i++) {
        float gbps;
        plain[i] = time_paper(&gbps);
        ours[i] = time_ring(tccl_nodes_ring, &nodes, TIMES, &gbps);
        baseline[i] = time_ring(baseline_nodes_ring, &nodes, TIMES, &gbps);
        ratio[i] = plain[i] / ours[i];
        baseline_ratio[i] = plain[i] / baseline[i];
    }
    bench_spread("plain recurrence over 256 encoded transfers", plain, PAPER_REPEATS, "ms", "");
    bench_spread("64 ports, 4 NICs, baseline", baseline, PAPER_REPEATS, "ms", "");
    bench_spread("64 ports, 4 NICs, chosen at run time", ours, PAPER_REPEATS, "ms", "");
    bench_spread("  plain : baseline", baseline_ratio, PAPER_REPEATS, "x", ">= 1000");
    bench_spread("  plain : chosen at run time", ratio, PAPER_REPEATS, "x", ">= 1000");
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    size_t total = (size_t)NODES * PORTS * PORTS;
    sample.cells = room(total, sizeof(float));
    sample.hops = room(total, sizeof(float));
    fill(sample.cells, total);
    fill(sample.hops, total);
    for (int p = 0; p < PORTS; p++) {
        own_nic[p] = (unsigned char)p;
        shared_nic[p] = (unsigned char)(p / (PORTS / NICS));
    }
    bench_title("The ring over 4,096 nodes of 64 ports each (processor time, one core)");
    bench_heads();
    struct tccl_nodes nodes = make_nodes(NODES, NICS, false);
    compare_builds("different nodes, hops by pair of 4 NICs", &nodes, 1, "<= 100", "<= 100");
    nodes = make_nodes(NODES, PORTS, false);
    compare_builds("different nodes, 64 x 64 hops", &nodes, 1, "<= 100", "<= 250");
    nodes = make_nodes(NODES, NICS, true);
    compare_builds("equal nodes, hops by pair of 4 NICs", &nodes, 20, "<= 1", "<= 1");
    nodes = make_nodes(NODES, PORTS, true);
    compare_builds("equal nodes, 64 x 64 hops", &nodes, 5, "", "");
    bench_title("The ring over 64 different nodes, against the paper's recurrence");
    bench_heads();
    compare_paper();
    free(sample.cells);
    free(sample.hops);
    return bench_end();
}
