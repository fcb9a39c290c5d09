/* path-solve.c: tccl-path solve: the best ring for the nodes. */
#include "command/path-commands.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "ring/ring.h"

/* SMALL: with up to so many GPUs per node the search is exact by default. */
enum { SMALL = 5, BUDGET = 5000, PAIRS = 16 };

/* Shows progress on a terminal. */
static int show_progress(void *context, const struct tccl_search_progress *progress)
{
    const struct source *source = context;
    if (progress->measured % 64 == 0)
        fprintf(stderr, "\r%s: %ld sets measured, %d of %d port pairs\033[K", source->machine.name,
                progress->measured, progress->pairs_done, progress->pairs_total);
    return 0;
}

static void clear_progress(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

static struct tccl_search_options search_options(const struct options *options,
                                                 struct node_class *class)
{
    int n_gpus = class->class->n_gpus;
    bool small = n_gpus <= SMALL;
    struct tccl_search_options search = {
        .gap = options->gap >= 0 ? options->gap
               : small           ? 0
                                 : 0.03,
        .noise = options->noise >= 0 ? options->noise : 0,
        .budget = options->budget >= 0 ? options->budget
                  : small              ? 0
                                       : BUDGET,
        .pairs = options->pairs >= 0 ? options->pairs
                 : small             ? 0
                                     : PAIRS,
        .trees = class->source->model != NULL, /* profiles have what was measured */
        .any = options->any,
        .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
        .context = class->source,
    };
    return search;
}

/* The single-node ring, into the table. */
static int search_ring(const struct options *options, struct node_class *class,
                       struct tccl_error *err)
{
    struct tccl_search_options search = search_options(options, class);
    struct tccl_error why = {""};
    if (tccl_search_ring(class->source->search, class->gpus, &search, &class->table->ring, &why) <
        0)
        return tccl_fail(err, "%s: %s", class->source->path, why.text);
    return 0;
}

static int search_table(const struct options *options, struct node_class *class,
                        struct tccl_error *err)
{
    struct tccl_search_options search = search_options(options, class);
    struct tccl_error why = {""};
    if (tccl_search_table(class->source->search, class->table, &search, &why) < 0)
        return tccl_fail(err, "%s: %s", class->source->path, why.text);
    return 0;
}

/* Search options differ from those of tccl-profile, so its table is not used with them. */
static bool wants_search(const struct options *options)
{
    return options->any || options->gap >= 0 || options->noise >= 0 || options->budget >= 0 ||
           options->pairs >= 0;
}

/* Takes the table from the profile. Returns 1 if there is one, 0 if not, -1 with err. */
static int take_table(const struct options *options, struct node_class *class,
                      struct tccl_error *err)
{
    struct tccl_table *table = NULL;
    if (wants_search(options))
        return 0;
    if (source_table(class->source, class->gpus, &table, err) != 0)
        return -1;
    if (!table)
        return 0;
    tccl_table_free(class->table);
    class->table = table;
    return 1;
}

/* Fills the chain table of a node class, and updates the class from it. */
static int solve_class(const struct options *options, bool single, struct node_class *class,
                       long *measured, struct tccl_error *err)
{
    if (class->solved)
        return 0;
    long before = tccl_search_measured(class->source->search);
    int found = take_table(options, class, err);
    if (found < 0)
        return -1;
    if (!found && source_know(class->source, err) != 0)
        return -1;
    int rc = 0;
    if (!found)
        rc = single ? search_ring(options, class, err) : search_table(options, class, err);
    clear_progress();
    if (rc < 0)
        return -1;
    *measured +=
        found ? (long)class->table->measured : tccl_search_measured(class->source->search) - before;
    class->solved = true;
    return node_class_refresh(class, err);
}

/* Looks up the chains of the ring's choices. */
static int take_choices(const struct tccl_ring *ring, struct route *route, struct tccl_error *err)
{
    for (int i = 0; i < route->n; i++) {
        struct stop *stop = &route->stops[i];
        const struct tccl_node_class *class = stop->class->class;
        const struct tccl_cell *cell = tccl_ring_cell(class, ring->choices[i]);
        if (!cell || !cell->chain.n_gpus)
            return tccl_fail(err, "n%d: no chain for its NICs", i + 1);
        stop->chain = cell->chain;
        stop->gbps = cell->gbps;
    }
    route_rate(route);
    return 0;
}

static struct tccl_run *make_runs(const struct nodes *nodes, const struct route *route)
{
    struct tccl_run *runs = calloc(nodes->n_groups, sizeof(*runs));
    for (int i = 0, node = 0; runs && i < nodes->n_groups; i++) {
        runs[i] = (struct tccl_run){route->stops[node].class->class, nodes->groups[i].count};
        node += nodes->groups[i].count;
    }
    return runs;
}

static int close_ring(const struct nodes *nodes, struct answer *answer, struct tccl_error *err)
{
    cleanup_free struct tccl_run *runs = make_runs(nodes, &answer->route);
    struct tccl_ring ring = {0};
    if (!runs)
        return tccl_fail(err, "out of memory");
    int rc = tccl_ring_solve_rings(runs, nodes->n_groups, 1, &ring, err);
    if (rc == 0) {
        answer->bound = ring.bound;
        /* The bound was rounded up to single precision. */
        if (answer->bound <= ring.gbps * (1 + 1e-6))
            answer->bound = ring.gbps;
        rc = take_choices(&ring, &answer->route, err);
    }
    tccl_ring_clear(&ring);
    return rc;
}

/* The class of each stop. */
static int place_classes(struct nodes *nodes, struct route *route, struct tccl_error *err)
{
    for (int i = 0, node = 0; i < nodes->n_groups; i++) {
        const struct group *group = &nodes->groups[i];
        struct node_class *class = nodes_class(nodes, group->source, group->gpus, err);
        if (!class)
            return -1;
        for (int k = 0; k < group->count; k++)
            route->stops[node++].class = class;
    }
    return 0;
}

int solve(const struct options *options, struct nodes *nodes, struct answer *answer,
          struct tccl_error *err)
{
    *answer = (struct answer){.solved = true, .bound = INFINITY};
    if (nodes->total == 1 && __builtin_popcount(nodes->groups[0].gpus) == 1) {
        answer->nothing = true;
        return 0;
    }
    if (route_init(&answer->route, nodes->total, err) != 0 ||
        place_classes(nodes, &answer->route, err) != 0)
        return -1;
    for (int i = 0; i < nodes->n_classes; i++)
        if (solve_class(options, nodes->total == 1, nodes->classes[i], &answer->measured, err) != 0)
            return -1;
    if (close_ring(nodes, answer, err) != 0)
        return tccl_fail(err, "no ring was found");
    answer_complete(answer);
    return 0;
}

int command_solve(const struct options *options, struct tccl_error *err)
{
    if (options->rings >= 0)
        return command_rings(options, err);
    return answer_command(solve, options, err);
}
