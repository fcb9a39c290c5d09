/* path-tuning.c: NCCL picks an algorithm for each all-reduce by its size. Small ones go along a
 * tree, which has fewer steps, so the ring counts from some size on. */
#include "command/path-tuning.h"

#include <stdio.h>
#include <string.h>

#include "chain/tree-rate.h"
#include "nccl/baseline.h"
#include "nccl/search.h"
#include "nccl/tuning.h"

enum { SMALLEST = 10, LARGEST = 32 }; /* powers of two: 1 KiB to 4 GiB */

/* What NCCL picks from each of these sizes on. */
struct picks {
    int n;
    struct {
        uint64_t from;
        struct tccl_pick pick;
    } list[LARGEST - SMALLEST + 1];
};

/* How NCCL is told of a planned ring: not at all; or by a graph file, which has the tree, too; or
 * by a topology file, under which NCCL's trees go along the ring. */
enum told { ALONE, GRAPH_FILE, TOPOLOGY_FILE };

/* Versions of NCCL from which on something differs. A graph file has no tree where a topology file
 * may do: what NCCL picks with such a file is what it picks alone. */
struct row {
    const char *from;
    int generation;
    enum told told;
};
enum { ROWS = TCCL_GENERATIONS + 1 };

/* Where another generation begins, or graph files become costly. Returns how many. */
static int list_rows(struct row rows[static ROWS])
{
    const struct tccl_release *release;
    int n = 0;

    for (int i = 0; (release = tccl_release_at(i)) && n < ROWS; i++) {
        enum told told = release->facts & TCCL_FACT_BIG_GRAPH ? TOPOLOGY_FILE : GRAPH_FILE;
        int generation = (int)release->search;
        if (n == 0 || rows[n - 1].generation != generation || rows[n - 1].told != told)
            rows[n++] = (struct row){release->name, generation, told};
    }
    return n;
}

/* What a generation of NCCL finds on a node by itself: from the table, or now. */
static int own_graphs(const struct node_class *class, bool closed, int generation,
                      struct tccl_baseline *found)
{
    const struct tccl_table *table = class->table;
    *found = closed ? table->baseline_ring[generation] : table->baseline_chain[generation];
    if (found->ring.channels > 0)
        return 0;
    return tccl_baseline_find(&class->source->machine, class->gpus, closed, generation, found, NULL,
                              NULL);
}

static int lowest_sm(const struct node_class *class)
{
    const struct tccl_machine *machine = &class->source->machine;
    int lowest = 0;
    for (int i = 0; i < machine->n_gpus; i++)
        if (class->gpus >> i & 1 && (lowest == 0 || machine->gpus[i].sm < lowest))
            lowest = machine->gpus[i].sm;
    return lowest;
}

/* As the runtime shim writes it to the graph file: the paths of a tree may be the longest ones. */
static void give_tree(const struct tccl_nominal *ring, const struct tccl_tree *planned,
                      double ring_gbps, struct tccl_nominal *tree)
{
    int channels = tree->channels;
    tree->intra = (float)(tccl_tree_rate(ring->channels * (double)ring->intra,
                                         channels * (double)tree->intra, ring_gbps, planned->gbps) /
                          channels);
    tree->inter = (float)(tccl_tree_rate(ring->channels * (double)ring->inter,
                                         channels * (double)tree->inter, ring_gbps, planned->gbps) /
                          channels);
    tree->far_intra = tree->far_inter = TCCL_FAR_SYSTEM;
}

/* The rate of the tree that NCCL finds under a topology file, of all its channels. */
static void lead_tree(const struct stop *stop, int generation, const struct tccl_nominal *ring,
                      const struct tccl_tree *planned, double ring_gbps, struct tccl_nominal *tree)
{
    double all = ring->channels * (double)ring->intra;
    double wanted = tccl_tree_rate(ring->channels * (double)ring->inter,
                                   tree->channels * (double)tree->inter, ring_gbps, planned->along);
    double most = tccl_tree_rate_by_links(stop_first(stop)->n_gpus, all, wanted);
    float rate = tccl_nccl_rate(false, lowest_sm(stop->class), generation, most) / tree->channels;
    if (rate < tree->inter)
        tree->intra = tree->inter = rate;
}

/* Can there be a topology file? One reason more against it is not known here: the PCI tree. */
static bool may_lead(const struct stop *stop, const struct tccl_nominal *ring)
{
    enum tccl_cpu cpu = stop->class->source->machine.cpu;
    return tccl_tree_is_one_channel(ring->channels, ring->channels * (double)ring->intra) &&
           stop_first(stop)->entry.nic == stop_first(stop)->exit.nic && cpu >= TCCL_CPU_AMD &&
           cpu <= TCCL_CPU_INTEL_ERP;
}

static void plan_tree(const struct route *route, const struct stop *stop, const struct row *row,
                      const struct tccl_nominal *ring, struct tccl_nominal *tree)
{
    const struct tccl_tree *planned = stop_tree(stop);
    if (!planned || tree->channels == 0 || ring->channels == 0)
        return;
    if (row->told == GRAPH_FILE)
        give_tree(ring, planned, route->gbps, tree);
    if (row->told == TOPOLOGY_FILE && planned->along > 0 && may_lead(stop, ring))
        lead_tree(stop, row->generation, ring, planned, route->gbps, tree);
}

static int tune(const struct route *route, bool closed, const struct row *row,
                struct tccl_tuning *tuning)
{
    struct tccl_baseline own;
    tccl_tuning_begin(tuning, (enum tccl_nccl)row->generation);
    for (int i = 0; i < route->n; i++) {
        const struct stop *stop = &route->stops[i];
        const struct node_class *class = stop->class;
        if ((i == 0 || class != route->stops[i - 1].class) &&
            own_graphs(class, closed, row->generation, &own) != 0)
            return -1;
        struct tccl_nominal tree = own.tree;
        plan_tree(route, stop, row, &own.ring, &tree);
        tccl_tuning_add_node(tuning, &own.ring, &tree, __builtin_popcount(class->gpus),
                             lowest_sm(class), class->source->machine.cpu);
    }
    tccl_tuning_end(tuning);
    return tuning->ranks < 2 || tuning->ring.channels == 0 ? -1 : 0;
}

static int find_picks(const struct route *route, bool closed, const struct row *row,
                      struct picks *picks)
{
    struct tccl_tuning tuning;
    memset(picks, 0, sizeof(*picks));
    if (tune(route, closed, row, &tuning) != 0)
        return -1;
    for (int power = SMALLEST; power <= LARGEST; power++) {
        struct tccl_pick pick = tccl_tuning_pick(&tuning, UINT64_C(1) << power);
        const struct tccl_pick *last = picks->n > 0 ? &picks->list[picks->n - 1].pick : NULL;
        if (last && last->algorithm == pick.algorithm && last->protocol == pick.protocol)
            continue;
        picks->list[picks->n].from = UINT64_C(1) << power;
        picks->list[picks->n++].pick = pick;
    }
    return 0;
}

static json_t *picks_to_json(const struct picks *picks)
{
    static const char *const algorithms[] = {"tree", "ring"};
    static const char *const protocols[] = {"LL", "LL128", "Simple"};
    json_t *list = json_array();
    for (int i = 0; i < picks->n; i++)
        json_array_append_new(list,
                              json_pack("{s:I, s:s, s:s}", "from", (json_int_t)picks->list[i].from,
                                        "algorithm", algorithms[picks->list[i].pick.algorithm],
                                        "protocol", protocols[picks->list[i].pick.protocol]));
    return list;
}

json_t *tuning_to_json(const struct route *route, bool closed)
{
    json_t *json = json_array();
    struct picks picks, alone;
    struct row rows[ROWS];
    int n_rows = list_rows(rows);
    for (int i = 0; i < n_rows; i++) {
        struct row without = {rows[i].from, rows[i].generation, ALONE};
        if (find_picks(route, closed, &rows[i], &picks) != 0 ||
            find_picks(route, closed, &without, &alone) != 0) {
            json_decref(json);
            return NULL;
        }
        json_array_append_new(json,
                              json_pack("{s:s, s:o, s:o}", "nccl", rows[i].from, "picks",
                                        picks_to_json(&picks), "alone", picks_to_json(&alone)));
    }
    return json;
}

/* "trees, from 512 KiB on the ring" */
static void format_picks(const struct picks *picks, char *text, size_t size)
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    size_t length = 0;
    for (int i = 0; i < picks->n && length < size; i++) {
        bool ring = picks->list[i].pick.algorithm == TCCL_RING;
        uint64_t from = picks->list[i].from >> 10;
        int unit = 0;
        if (i > 0 && picks->list[i - 1].pick.algorithm == picks->list[i].pick.algorithm)
            continue;
        for (; from >= 1024; from >>= 10)
            unit++;
        int n = i == 0 ? snprintf(text, size, "%s", ring ? "the ring" : "trees")
                       : snprintf(text + length, size - length, ", from %d %s on %s", (int)from,
                                  units[unit], ring ? "the ring" : "trees");
        length += n > 0 ? (size_t)n : 0;
    }
}

void tuning_print(const struct route *route, bool closed, FILE *out)
{
    char before[2][512] = {"", ""}, text[2][512];
    struct picks picks;
    struct row rows[ROWS];
    int n_rows = list_rows(rows);
    for (int i = 0; i < n_rows; i++) {
        struct row without = {rows[i].from, rows[i].generation, ALONE};
        if (find_picks(route, closed, &rows[i], &picks) != 0)
            return;
        format_picks(&picks, text[0], sizeof(text[0]));
        memcpy(text[1], text[0], sizeof(text[0]));
        if (rows[i].told == TOPOLOGY_FILE && find_picks(route, closed, &without, &picks) == 0)
            format_picks(&picks, text[1], sizeof(text[1]));
        if (i == 0)
            fputs("\nAll-reduces by size and version of NCCL; all other collectives use the ring\n",
                  out);
        if (strcmp(text[0], before[0]) != 0 || strcmp(text[1], before[1]) != 0)
            fprintf(out, "  from %-6s  %s\n", rows[i].from, text[0]);
        if (rows[i].told == TOPOLOGY_FILE && strcmp(text[1], text[0]) != 0 &&
            (strcmp(text[0], before[0]) != 0 || strcmp(text[1], before[1]) != 0))
            fprintf(out, "               %s, where it needs a graph file\n", text[1]);
        memcpy(before, text, sizeof(before));
    }
}
