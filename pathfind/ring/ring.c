/* ring.c: the ring over the nodes of a job step. */
#include "ring/ring.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
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

static int count_nodes(const struct tccl_run *runs, int n_runs, int *gpus)
{
    int nodes = 0;
    *gpus = 0;
    for (int i = 0; i < n_runs; i++) {
        nodes += runs[i].count;
        *gpus += runs[i].count * runs[i].class->n_gpus;
    }
    return nodes;
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

/* Bandwidth of the baseline: that of its slowest node or hop; 0 if unknown. */
static double baseline(const struct tccl_run *runs, int n_runs, int generation)
{
    double least = INFINITY;
    if (n_runs == 1 && runs[0].count == 1)
        return runs[0].class->baselines[generation].ring_gbps;
    for (int i = 0; i < n_runs; i++)
        if (runs[i].class->baselines[generation].chain_gbps <= 0)
            return 0;
    for (int i = 0; i < n_runs; i++) {
        const struct tccl_node_class *own = runs[i].class, *next = runs[(i + 1) % n_runs].class;
        least = fmin(least, fmin(own->baselines[generation].chain_gbps,
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
        share = fmin(share, alone ? own->ring_share : own->chain_share);
    }
    return share;
}

static bool is_faster(const struct tccl_ring *ring, int generation)
{
    return ring->gbps > ring->baseline_gbps[generation] * (1 + ring->noise) * (1 + 1e-9);
}

static bool takes_more(const struct tccl_ring *ring, int generation)
{
    double own = fmin(ring->gbps / ring->alone, ring->share);
    double theirs =
        fmin(ring->baseline_gbps[generation] / ring->alone, ring->baseline_share[generation]);
    return ring->baseline_gbps[generation] > 0 && own * (1 + ring->noise) * (1 + 1e-9) < theirs;
}

bool tccl_ring_gains(const struct tccl_ring *ring, int generation)
{
    return is_faster(ring, generation) && !takes_more(ring, generation);
}

bool tccl_ring_harms(const struct tccl_ring *ring, int generation)
{
    return is_faster(ring, generation) && takes_more(ring, generation);
}

/* The nodes in the form of segment.h. Nodes of a run share their matrices. */
struct lists {
    int count;
    int *nics;
    const float **low, **high; /* bandwidths, and their proven bounds */
    const unsigned char **nic;
    const float **hop;
    float *cells;                      /* of all runs, low then high */
    float *hops;                       /* of all runs: within the run, and to the next */
    unsigned char same[TCCL_MAX_NICS]; /* port p is NIC p */
};

static void lists_clear(struct lists *lists)
{
    free(lists->nics);
    free(lists->low);
    free(lists->high);
    free(lists->nic);
    free(lists->hop);
    free(lists->cells);
    free(lists->hops);
}

static float rounded_up(double gbps)
{
    float nearest = (float)gbps;
    return nearest < gbps ? __builtin_nextafterf(nearest, __builtin_inff()) : nearest;
}

static void fill_cells(const struct tccl_node_class *class, float *low, float *high)
{
    for (int i = 0; i < class->n_nics * class->n_nics; i++) {
        low[i] = (float)class->cells[i].gbps;
        high[i] = rounded_up(class->cells[i].bound);
    }
}

static void fill_hop(const struct tccl_node_class *from, const struct tccl_node_class *to,
                     float *hop)
{
    for (int x = 0; x < from->n_nics; x++)
        for (int y = 0; y < to->n_nics; y++)
            hop[x * to->n_nics + y] = (float)tccl_hop(from, x, to, y);
}

enum { CELLS = TCCL_MAX_NICS * TCCL_MAX_NICS };

static int make_lists(struct lists *lists, const struct tccl_run *runs, int n_runs, int count)
{
    lists->count = count;
    lists->nics = calloc(count, sizeof(*lists->nics));
    lists->low = calloc(count, sizeof(*lists->low));
    lists->high = calloc(count, sizeof(*lists->high));
    lists->nic = calloc(count, sizeof(*lists->nic));
    lists->hop = calloc(count, sizeof(*lists->hop));
    lists->cells = calloc((size_t)n_runs * 2 * CELLS, sizeof(float));
    lists->hops = calloc((size_t)n_runs * 2 * CELLS, sizeof(float));
    if (!lists->nics || !lists->low || !lists->high || !lists->nic || !lists->hop ||
        !lists->cells || !lists->hops)
        return -1;
    for (int i = 0; i < TCCL_MAX_NICS; i++)
        lists->same[i] = i;
    for (int run = 0, node = 0; run < n_runs; run++) {
        const struct tccl_node_class *class = runs[run].class;
        float *low = lists->cells + (size_t)run * 2 * CELLS, *high = low + CELLS;
        float *inside = lists->hops + (size_t)run * 2 * CELLS, *on = inside + CELLS;
        fill_cells(class, low, high);
        fill_hop(class, class, inside);
        fill_hop(class, runs[(run + 1) % n_runs].class, on);
        for (int i = 0; i < runs[run].count; i++, node++) {
            lists->nics[node] = class->n_nics;
            lists->low[node] = low;
            lists->high[node] = high;
            lists->nic[node] = lists->same;
            lists->hop[node] = i + 1 < runs[run].count ? inside : on;
        }
    }
    return 0;
}

static int solve_nodes(const struct lists *lists, struct tccl_ring *ring)
{
    struct tccl_nodes nodes = {
        .count = lists->count,
        .ports = lists->nics,
        .nics = lists->nics,
        .gbps = lists->high,
        .nic = lists->nic,
        .hop = lists->hop,
    };
    float low, high;
    cleanup_free struct tccl_node_ports *choices = calloc(lists->count, sizeof(*choices));
    if (!choices || tccl_nodes_ring(&nodes, &high, NULL) != 0)
        return -1;
    nodes.gbps = lists->low;
    if (tccl_nodes_ring(&nodes, &low, choices) != 0)
        return -1;
    ring->gbps = low;
    ring->bound = high;
    for (int i = 0; i < lists->count; i++)
        ring->choices[i] = (struct tccl_ring_choice){choices[i].entry, choices[i].exit};
    return 0;
}

/* The products are in single precision: computes the ring's bandwidth again from the chosen cells
 * and hops in double precision, and what it would be alone. */
static void rate_exactly(const struct tccl_run *runs, int n_runs, struct tccl_ring *ring)
{
    ring->gbps = ring->alone = INFINITY;
    ring->share = 1;
    for (int run = 0, node = 0; run < n_runs; run++) {
        for (int i = 0; i < runs[run].count; i++, node++) {
            const struct tccl_node_class *own = runs[run].class;
            const struct tccl_node_class *next =
                i + 1 < runs[run].count ? own : runs[(run + 1) % n_runs].class;
            struct tccl_ring_choice choice = ring->choices[node];
            struct tccl_ring_choice after = ring->choices[(node + 1) % ring->n_nodes];
            const struct tccl_cell *cell =
                &own->cells[choice.entry_nic * own->n_nics + choice.exit_nic];
            double hop = tccl_hop(own, choice.exit_nic, next, after.entry_nic);
            ring->gbps = fmin(ring->gbps, fmin(cell->gbps, hop));
            ring->alone = fmin(ring->alone, fmin(cell->alone, hop));
            ring->share = fmin(ring->share, cell->share);
            ring->basis = cell->basis > ring->basis ? cell->basis : ring->basis;
        }
    }
}

static int single_node(const struct tccl_node_class *class, struct tccl_ring *ring,
                       struct tccl_error *err)
{
    if (class->ring.gbps <= 0)
        return tccl_fail(err, "the profile has no ring over these %d GPUs", class->n_gpus);
    ring->gbps = class->ring.gbps;
    ring->alone = class->ring.alone;
    ring->share = class->ring.share;
    ring->basis = class->ring.basis;
    ring->bound = class->ring.bound;
    ring->choices[0] = (struct tccl_ring_choice){-1, -1};
    return 0;
}

static bool has_chain(const struct tccl_node_class *class)
{
    for (int i = 0; i < class->n_nics * class->n_nics; i++)
        if (class->cells[i].gbps > 0)
            return true;
    return false;
}

/* Can a node of this class be part of a ring over several nodes? */
static int check_class(const struct tccl_node_class *class, struct tccl_error *err)
{
    if (class->n_nics == 0)
        return tccl_fail(err, "a node of machine %.8s has no NIC in its profile", class->machine);
    if (!has_chain(class))
        return tccl_fail(err,
                         "the profile of machine %.8s has no chain between NICs for these %d GPUs: "
                         "measure them with tccl-profile run --peer",
                         class->machine, class->n_gpus);
    return 0;
}

static int several_nodes(const struct tccl_run *runs, int n_runs, struct tccl_ring *ring,
                         struct tccl_error *err)
{
    __attribute__((cleanup(lists_clear))) struct lists lists = {0};
    for (int i = 0; i < n_runs; i++)
        if (check_class(runs[i].class, err) != 0)
            return -1;
    if (make_lists(&lists, runs, n_runs, ring->n_nodes) != 0 || solve_nodes(&lists, ring) != 0)
        return tccl_fail(err, "out of memory for a ring over %d nodes", ring->n_nodes);
    if (ring->gbps <= 0)
        return tccl_fail(err,
                         "no ring can be closed over these %d nodes: a chain is missing, or "
                         "NICs are on fabrics that do not meet",
                         ring->n_nodes);
    rate_exactly(runs, n_runs, ring);
    if (ring->bound < ring->gbps)
        ring->bound = ring->gbps;
    return 0;
}

int tccl_ring_solve(const struct tccl_run *runs, int n_runs, struct tccl_ring *ring,
                    struct tccl_error *err)
{
    int gpus;
    *ring = (struct tccl_ring){.n_nodes = count_nodes(runs, n_runs, &gpus)};
    if (ring->n_nodes < 1 || gpus < 1)
        return tccl_fail(err, "a ring needs a GPU");
    ring->choices = calloc(ring->n_nodes, sizeof(*ring->choices));
    if (!ring->choices)
        return tccl_fail(err, "out of memory for a ring over %d nodes", ring->n_nodes);
    if (gpus == 1)
        return 1;
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        ring->baseline_gbps[i] = baseline(runs, n_runs, i);
        ring->baseline_share[i] = baseline_share(runs, n_runs, i);
    }
    for (int i = 0; i < n_runs; i++)
        ring->noise = fmax(ring->noise, runs[i].class->noise);
    if (ring->n_nodes == 1)
        return single_node(runs[0].class, ring, err);
    return several_nodes(runs, n_runs, ring, err);
}

const struct tccl_cell *tccl_ring_cell(const struct tccl_node_class *class,
                                       struct tccl_ring_choice choice)
{
    if (choice.entry_nic < 0)
        return &class->ring;
    if (choice.entry_nic >= class->n_nics || choice.exit_nic < 0 ||
        choice.exit_nic >= class->n_nics)
        return NULL;
    return &class->cells[choice.entry_nic * class->n_nics + choice.exit_nic];
}

static void put_node(FILE *stream, const char *name, const struct tccl_node_class *class,
                     struct tccl_ring_choice choice)
{
    const struct tccl_cell *cell = tccl_ring_cell(class, choice);
    char text[TCCL_CHAIN_TEXT] = "";
    if (cell)
        tccl_node_class_format(class, &cell->chain, text);
    fprintf(stream, "%s[%s]", name, text);
}

char *tccl_ring_format(const struct tccl_run *runs, int n_runs, const struct tccl_ring *ring,
                       const char *const *names)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    for (int run = 0, node = 0; run < n_runs; run++) {
        for (int i = 0; i < runs[run].count; i++, node++) {
            fputs(node ? " " : "", stream);
            put_node(stream, names[node], runs[run].class, ring->choices[node]);
        }
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
