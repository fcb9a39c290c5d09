/* path-solve.c: tccl-path solve: the best ring, or set of rings at once, for the nodes. */
#include "command/path.h"

#include <math.h>

#include "base/cleanup.h"
#include "ring/ring.h"

/* SMALL: with up to so many GPUs per node the search for single rings is exact by default. FIRST:
 * less of it is enough to begin with where sets of several rings are wanted. */
enum { SMALL = 5, BUDGET = 5000, PAIRS = 16, FIRST_BUDGET = 1000, FIRST_PAIRS = 4 };

/* Shows progress on a terminal. */
static int show_progress(void *context, const struct tccl_search_progress *progress)
{
    const struct source *source = context;
    if (progress->measured % 64 == 0)
        fprintf(stderr, "\r%s: %ld loads measured, %d of %d port pairs\033[K", source->machine.name,
                progress->measured, progress->pairs_done, progress->pairs_total);
    return 0;
}

/* Takes the table from the profile, unless search options differ from those of tccl-profile.
 * Returns 1 if there is one, 0 if not, -1 with err. */
static int take_table(const struct options *options, struct node_class *class,
                      struct tccl_error *err)
{
    struct tccl_table *table = NULL;
    if (options->any || options->gap >= 0 || options->noise >= 0 || options->budget >= 0 ||
        options->pairs >= 0)
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
    bool first = rings_wanted(options, class), small = class->class->n_gpus <= SMALL;
    struct tccl_search_options search = {
        .gap = !first && options->gap >= 0 ? options->gap
               : !first && small           ? 0
                                           : 0.03,
        .noise = options->noise >= 0 ? options->noise : 0,
        .budget = first                  ? FIRST_BUDGET
                  : options->budget >= 0 ? options->budget
                  : small                ? 0
                                         : BUDGET,
        .pairs = options->pairs >= 0 ? options->pairs
                 : first             ? FIRST_PAIRS
                 : small             ? 0
                                     : PAIRS,
        .trees = class->source->model && !first, /* profiles have what was measured */
        .reads = class->source->model != NULL,
        .any = options->any,
        .alone = single,
        .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
        .context = class->source,
    };
    struct tccl_error why = {""};
    int rc = found ? 0 : tccl_search_table(class->source->search, class->table, &search, &why);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (rc < 0)
        return tccl_fail(err, "%s: %s", class->source->path, why.text);
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
        tccl_ring_set_of(ring, class, i, &stop->set);
        if (stop->set.n == 0 || stop->set.rings[0].n_gpus == 0)
            return tccl_fail(err, "n%d: no chain for its NICs", i + 1);
        stop->gbps = class->seen[ring->choices[i].seen].gbps;
    }
    route_rate(route);
    return 0;
}

static int close_ring(const struct options *options, const struct nodes *nodes,
                      struct answer *answer, struct tccl_error *err)
{
    cleanup_free struct tccl_run *runs = calloc(nodes->n_groups, sizeof(*runs));
    struct tccl_ring ring = {0}, single;
    if (!runs)
        return tccl_fail(err, "out of memory");
    for (int i = 0, node = 0; i < nodes->n_groups; node += nodes->groups[i++].count)
        runs[i] = (struct tccl_run){answer->route.stops[node].class->class, nodes->groups[i].count};
    int rc =
        tccl_ring_solve(runs, nodes->n_groups, options->rings > 0 ? options->rings : 0, &ring, err);
    if (rc == 0) {
        if (options->rings == 1)
            answer->bound = ring.bound;
        /* The bound was rounded up to single precision. */
        if (answer->bound <= ring.gbps * (1 + 1e-6))
            answer->bound = ring.gbps;
        rc = take_choices(&ring, &answer->route, err);
    }
    /* Several were found, of any number: would a job get the best single one? */
    if (rc == 0 && options->rings <= 0 && ring.rings > 1 &&
        tccl_ring_solve(runs, nodes->n_groups, 1, &single, NULL) == 0) {
        const struct tccl_decision_case one = tccl_ring_case(&single, TCCL_NEWEST, 0);
        const struct tccl_decision_case more = tccl_ring_case(&ring, TCCL_NEWEST, 0);
        if (!tccl_decide_several(&more, &one))
            answer->single = tccl_ring_reach(&single);
        tccl_ring_clear(&single);
    }
    tccl_ring_clear(&ring);
    return rc;
}

/* What no set in the class's table exceeds, nor any other of those that may be taken. */
static double table_bound(const struct options *options, const struct tccl_node_class *class,
                          bool closed)
{
    double bound = 0;
    for (int i = 0; i < class->n_seen; i++) {
        const struct tccl_seen *seen = &class->seen[i];
        bool single = i <= tccl_class_pairs(class);
        bool is_closed = single ? i == tccl_class_pairs(class) : seen->set.rings[0].closed;
        int rings = single ? 1 : seen->set.n;
        if (is_closed == closed && (options->rings <= 0 || options->rings == rings))
            bound = fmax(bound, seen->bound);
    }
    return bound;
}

/* Sets of rings of all classes, and what none over all of the nodes can exceed. */
static int find_sets(const struct options *options, struct nodes *nodes, struct answer *answer,
                     struct tccl_error *err)
{
    bool closed = nodes->total == 1;
    cleanup_free double *bounds = calloc(nodes->n_classes, sizeof(*bounds));
    if (!bounds)
        return tccl_fail(err, "out of memory");
    for (int i = 0; i < nodes->n_classes && options->rings > 1; i++) {
        const struct tccl_node_class *class = nodes->classes[i]->class;
        int set = tccl_class_first_set(class);
        while (set < class->n_seen && (class->seen[set].set.n != options->rings ||
                                       class->seen[set].set.rings[0].closed != closed))
            set++;
        if (!rings_wanted(options, nodes->classes[i]) && set == class->n_seen)
            return tccl_fail(
                err,
                "%s: %d rings at once were not measured: give --rings auto, or a model (--model)",
                nodes->classes[i]->source->path, options->rings);
    }
    if (rings_find(options, nodes, &answer->route, closed, bounds, &answer->measured, err) != 0)
        return -1;
    for (int i = 0; i < nodes->n_classes; i++)
        answer->bound =
            fmin(answer->bound, rings_wanted(options, nodes->classes[i])
                                    ? bounds[i]
                                    : table_bound(options, nodes->classes[i]->class, closed));
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
    if (route_init(&answer->route, nodes->total, err) != 0)
        return -1;
    /* The class of each stop. */
    for (int i = 0, node = 0; i < nodes->n_groups; i++) {
        const struct group *group = &nodes->groups[i];
        struct node_class *class = nodes_class(nodes, group->source, group->gpus, err);
        if (!class)
            return -1;
        for (int k = 0; k < group->count; k++)
            answer->route.stops[node++].class = class;
    }
    for (int i = 0; i < nodes->n_classes; i++)
        if (solve_class(options, nodes->total == 1, nodes->classes[i], &answer->measured, err) != 0)
            return -1;
    if (options->rings != 1 && find_sets(options, nodes, answer, err) != 0)
        return -1;
    if (close_ring(options, nodes, answer, err) != 0)
        return tccl_fail(err, "no ring was found");
    answer_complete(answer);
    return 0;
}

int command_solve(const struct options *options, struct tccl_error *err)
{
    return answer_command(solve, answer_show, options, err);
}
