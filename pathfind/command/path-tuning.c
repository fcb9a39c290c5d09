/* path-tuning.c: NCCL picks an algorithm for each all-reduce by its size. Small ones go along a
 * tree, which has fewer steps, so the ring counts from some size on. */
#include "command/path-tuning.h"

#include <stdio.h>
#include <string.h>

#include "nccl/baseline.h"
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

static int tune(const struct route *route, bool closed, int generation, struct tccl_tuning *tuning)
{
    struct tccl_baseline own;
    tccl_tuning_begin(tuning, tccl_generations[generation].first);
    for (int i = 0; i < route->n; i++) {
        const struct node_class *class = route->stops[i].class;
        if ((i == 0 || class != route->stops[i - 1].class) &&
            own_graphs(class, closed, generation, &own) != 0)
            return -1;
        tccl_tuning_add_node(tuning, &own.ring, &own.tree, __builtin_popcount(class->gpus),
                             lowest_sm(class), class->source->machine.cpu);
    }
    tccl_tuning_end(tuning);
    return tuning->ranks < 2 || tuning->ring.channels == 0 ? -1 : 0;
}

static int find_picks(const struct route *route, bool closed, int generation, struct picks *picks)
{
    struct tccl_tuning tuning;
    memset(picks, 0, sizeof(*picks));
    if (tune(route, closed, generation, &tuning) != 0)
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

json_t *tuning_to_json(const struct route *route, bool closed)
{
    static const char *const algorithms[] = {"tree", "ring"};
    static const char *const protocols[] = {"LL", "LL128", "Simple"};
    json_t *json = json_array();
    struct picks picks;
    for (int generation = 0; generation < TCCL_GENERATIONS; generation++) {
        json_t *list = json_array();
        if (find_picks(route, closed, generation, &picks) != 0) {
            json_decref(list);
            json_decref(json);
            return NULL;
        }
        for (int i = 0; i < picks.n; i++)
            json_array_append_new(
                list, json_pack("{s:I, s:s, s:s}", "from", (json_int_t)picks.list[i].from,
                                "algorithm", algorithms[picks.list[i].pick.algorithm], "protocol",
                                protocols[picks.list[i].pick.protocol]));
        json_array_append_new(json, json_pack("{s:s, s:o}", "nccl",
                                              tccl_generations[generation].name, "picks", list));
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
    char before[512] = "", text[512];
    struct picks picks;
    for (int generation = 0; generation < TCCL_GENERATIONS; generation++) {
        if (find_picks(route, closed, generation, &picks) != 0)
            return;
        format_picks(&picks, text, sizeof(text));
        if (generation == 0)
            fputs("\nAll-reduces by size and version of NCCL; all other collectives use the ring\n",
                  out);
        if (strcmp(text, before) != 0)
            fprintf(out, "  from %s  %s\n", tccl_generations[generation].name, text);
        memcpy(before, text, sizeof(before));
    }
}
