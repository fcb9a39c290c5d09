/* path-rings.c: tccl-path solve --rings: several rings that run at once, on one node or over
 * several. The best set of each node class is found as if all nodes were equal, with as many rings
 * as any class has in its best set; then the nodes are merged. The best single rings, of a short
 * search, and the baseline are where the search begins. */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "command/path-commands.h"
#include "nccl/baseline.h"
#include "ring/ring.h"
#include "search/rings.h"

enum {
    BUDGET = 10000,
    SINGLES_BUDGET = 1000,
    SINGLES_PAIRS = 4,
    STARTS = 1 + TCCL_MAX_NICS * TCCL_MAX_NICS
};

/* What was found for a node class by itself. */
struct found {
    struct node_class *class;
    double single_bound;             /* no single ring is faster */
    struct tccl_rings_result result; /* as if all nodes were equal */
};

struct rings_answer {
    bool nothing; /* one GPU in all */
    bool closed;
    int nodes;
    struct node_class **classes; /* of each node */
    struct tccl_ring_set *sets;  /* of each node: ring r of the answer is ring r of each set */
    struct found *found;         /* of each node class */
    int n_found;
    double gbps, bound;
    long rated;
    struct route baseline; /* n = 0: unknown */
};

static void answer_free(struct rings_answer *answer)
{
    free(answer->classes);
    free(answer->sets);
    free(answer->found);
    route_clear(&answer->baseline);
}

static int check_nodes(const struct nodes *nodes, struct tccl_error *err)
{
    for (int i = 0; i < nodes->n_groups; i++)
        if (nodes->groups[i].source->profile)
            return tccl_fail(err, "%s: --rings needs a model: profiles have no ring sets yet",
                             nodes->groups[i].source->path);
    return 0;
}

static int place_classes(struct nodes *nodes, struct rings_answer *answer, struct tccl_error *err)
{
    answer->classes = calloc(nodes->total, sizeof(*answer->classes));
    answer->sets = calloc(nodes->total, sizeof(*answer->sets));
    if (!answer->classes || !answer->sets)
        return tccl_fail(err, "out of memory");
    for (int i = 0, node = 0; i < nodes->n_groups; i++) {
        struct group group = nodes->groups[i];
        struct node_class *class = nodes_class(nodes, group.source, group.gpus, err);
        if (!class)
            return -1;
        for (int k = 0; k < group.count; k++)
            answer->classes[node++] = class;
    }
    answer->n_found = nodes->n_classes;
    answer->found = calloc(nodes->n_classes, sizeof(*answer->found));
    for (int i = 0; answer->found && i < nodes->n_classes; i++)
        answer->found[i].class = nodes->classes[i];
    return answer->found ? 0 : tccl_fail(err, "out of memory");
}

/* The best single ring, or the best chain of each pair of NICs, and what none can exceed. */
static int solve_single(struct node_class *class, bool closed, double *bound,
                        struct tccl_error *err)
{
    struct tccl_search_options options = {
        .gap = 0.03, .budget = SINGLES_BUDGET, .pairs = SINGLES_PAIRS};
    struct tccl_search *search = class->source->search;
    struct tccl_error why = {""};
    int status = closed ? tccl_search_ring(search, class->gpus, &options, &class->table->ring, &why)
                        : tccl_search_table(search, class->table, &options, &why);
    if (status < 0)
        return tccl_fail(err, "%s: %s", class->source->path, why.text);
    if (node_class_refresh(class, err) != 0)
        return -1;
    const struct tccl_node_class *own = class->class;
    *bound = closed ? own->ring.bound : 0;
    for (int i = 0; i < own->n_nics * own->n_nics && !closed; i++)
        *bound = fmax(*bound, own->cells[i].bound);
    return 0;
}

static void add_start(struct tccl_ring_set *starts, int *n, const struct tccl_cell *cell)
{
    if (cell->chain.n_gpus == 0)
        return;
    starts[*n].n = 1;
    starts[(*n)++].rings[0] = cell->chain;
}

/* The baseline, and the best single rings. Returns how many. */
static int list_starts(const struct rings_answer *answer, const struct node_class *class,
                       struct tccl_ring_set *starts)
{
    const struct tccl_node_class *own = class->class;
    int n = 0;
    for (int i = 0; i < answer->baseline.n && n == 0; i++) {
        const struct tccl_baseline *baseline = answer->baseline.stops[i].baseline;
        if (answer->classes[i] != class)
            continue;
        starts[0].n = baseline->n_chains;
        memcpy(starts[0].rings, baseline->chains, baseline->n_chains * sizeof(*baseline->chains));
        n++;
    }
    if (answer->closed)
        add_start(starts, &n, &own->ring);
    for (int i = 0; i < own->n_nics * own->n_nics && !answer->closed; i++)
        add_start(starts, &n, &own->cells[i]);
    return n;
}

static void find_baseline(struct rings_answer *answer)
{
    struct route like;
    if (route_init(&like, answer->nodes, NULL) == 0) {
        for (int i = 0; i < like.n; i++)
            like.stops[i].class = answer->classes[i];
        if (route_baseline(&like, answer->closed, &answer->baseline, NULL) != 0)
            route_clear(&answer->baseline);
    }
    route_clear(&like);
}

/* The best set of so many rings of a class (0: of any), of which the class gets its part. */
static int search_class(const struct rings_answer *answer, struct node_class *class,
                        const struct tccl_rings_options *wanted, struct tccl_rings_result *result,
                        struct tccl_error *err)
{
    cleanup_free struct tccl_ring_set *starts = calloc(STARTS, sizeof(*starts));
    if (!starts)
        return tccl_fail(err, "out of memory");
    if (tccl_rings_find(class->source->model, class->gpus, answer->closed, wanted, starts,
                        list_starts(answer, class, starts), result, err) != 0)
        return tccl_fail_in(err, "%s", class->source->path);
    if (answer->closed || result->set.n == 0)
        return 0;
    struct tccl_class_set set = {.gbps = result->gbps, .bound = result->bound, .set = result->set};
    const struct tccl_chain *chain = &result->set.rings[0];
    struct tccl_cell *cell =
        &class->class->cells[chain->entry.nic * class->class->n_nics + chain->exit.nic];
    if (set.set.n > 1)
        return tccl_node_class_add_set(class->class, &set) == 0 ? 0
                                                                : tccl_fail(err, "out of memory");
    if (set.gbps > cell->gbps)
        *cell = (struct tccl_cell){.gbps = set.gbps,
                                   .bound = fmax(cell->bound, set.gbps),
                                   .alone = set.gbps,
                                   .share = 1,
                                   .chain = *chain};
    return 0;
}

/* Has another class its best set with as many rings? They are wanted of this one once. */
static bool wants_as_well(const struct rings_answer *answer, const struct found *own, int rings)
{
    bool wanted = false;
    for (int i = 0; i < answer->n_found; i++)
        wanted = wanted || answer->found[i].result.set.n == rings;
    return wanted && rings > 1 && own->result.set.n != rings;
}

static int search_all(const struct options *options, struct rings_answer *answer,
                      struct tccl_error *err)
{
    struct tccl_rings_options wanted = {
        .rings = (int)options->rings,
        .gap = options->gap >= 0 ? options->gap : 0.03,
        .seed = 1,
    };
    long budget = options->budget > 0 ? options->budget : BUDGET;
    for (int i = 0; i < answer->n_found; i++) {
        struct found *found = &answer->found[i];
        long before = tccl_search_measured(found->class->source->search);
        wanted.budget = budget > before ? budget - before : 1;
        wanted.single_bound = found->single_bound;
        if (search_class(answer, found->class, &wanted, &found->result, err) != 0)
            return -1;
        answer->rated += found->result.rated + before;
        answer->bound = fmin(answer->bound, found->result.bound);
    }
    for (int i = 0; i < answer->n_found && !answer->closed; i++)
        for (int rings = 2; rings <= TCCL_CHAIN_RINGS; rings++) {
            struct tccl_rings_result result;
            if (!wants_as_well(answer, &answer->found[i], rings))
                continue;
            wanted.rings = rings;
            wanted.single_bound = answer->found[i].single_bound;
            if (search_class(answer, answer->found[i].class, &wanted, &result, err) != 0)
                return -1;
            answer->rated += result.rated;
        }
    return 0;
}

/* The nodes' sets merged to rings over all of them. */
static int merge_nodes(const struct options *options, const struct nodes *nodes,
                       struct rings_answer *answer, struct tccl_error *err)
{
    cleanup_free struct tccl_run *runs = calloc(nodes->n_groups, sizeof(*runs));
    struct tccl_ring ring = {0};
    if (!runs)
        return tccl_fail(err, "out of memory");
    for (int i = 0, node = 0; i < nodes->n_groups; node += nodes->groups[i++].count)
        runs[i] = (struct tccl_run){answer->classes[node]->class, nodes->groups[i].count};
    int status = tccl_ring_solve_rings(runs, nodes->n_groups, (int)options->rings, &ring, err);
    answer->gbps = ring.gbps;
    answer->bound = fmax(answer->bound, ring.gbps);
    for (int i = 0; status == 0 && i < answer->nodes; i++)
        tccl_ring_set_of(&ring, answer->classes[i]->class, i, &answer->sets[i]);
    tccl_ring_clear(&ring);
    return status == 0 ? 0 : tccl_fail(err, "no ring was found");
}

static int solve_rings(const struct options *options, struct nodes *nodes,
                       struct rings_answer *answer, struct tccl_error *err)
{
    answer->nodes = nodes->total;
    answer->closed = nodes->total == 1;
    answer->nothing = answer->closed && __builtin_popcount(nodes->groups[0].gpus) == 1;
    answer->bound = INFINITY;
    if (check_nodes(nodes, err) != 0 || answer->nothing)
        return answer->nothing ? 0 : -1;
    if (place_classes(nodes, answer, err) != 0)
        return -1;
    for (int i = 0; i < answer->n_found; i++) {
        struct found *found = &answer->found[i];
        if (solve_single(found->class, answer->closed, &found->single_bound, err) != 0)
            return -1;
    }
    find_baseline(answer);
    if (search_all(options, answer, err) != 0)
        return -1;
    if (!answer->closed)
        return merge_nodes(options, nodes, answer, err);
    answer->sets[0] = answer->found[0].result.set;
    answer->gbps = answer->found[0].result.gbps;
    return answer->sets[0].n ? 0 : tccl_fail(err, "no ring was found");
}

/* Output */

static double gap_of(const struct rings_answer *answer)
{
    return answer->bound <= answer->gbps * (1 + 1e-9) ? 0 : 1 - answer->gbps / answer->bound;
}

static json_t *chain_of_node(const struct rings_answer *answer, int ring, int node)
{
    char name[32];
    json_t *json = tccl_chain_to_json(&answer->sets[node].rings[ring],
                                      &answer->classes[node]->source->machine);
    format_nodes(node, 1, name);
    json_object_set_new(json, "ring", json_integer(ring + 1));
    json_object_set_new(json, "node", json_string(name));
    return json;
}

/* The ring set in the notation, of all nodes. Allocated; NULL if out of memory. */
static char *write_set(const struct rings_answer *answer)
{
    char rings[TCCL_RINGS_TEXT], name[32], *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    for (int i = 0; i < answer->nodes; i++) {
        tccl_ring_set_format(&answer->sets[i], &answer->classes[i]->source->machine, rings);
        format_nodes(i, 1, name);
        if (answer->nodes == 1)
            fputs(rings, stream);
        else
            fprintf(stream, "%s%s[%s]", i ? " " : "", name, rings);
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void set_baseline(json_t *json, const struct route *baseline)
{
    json_t *rings = route_to_json(baseline);
    json_object_set_new(json, "baseline_gbps",
                        baseline->n ? json_real(baseline->gbps) : json_null());
    json_object_set_new(json, "baseline_rings", rings);
}

static json_t *rings_to_json(const struct rings_answer *answer)
{
    if (answer->nothing)
        return json_pack("{s:s, s:n, s:n, s:n, s:n, s:n, s:[], s:i, s:[]}", "state",
                         "nothing-to-do", "gbps", "bound", "gap", "set", "baseline_gbps",
                         "baseline_rings", "rated", 0, "rings");
    cleanup_free char *text = write_set(answer);
    json_t *rings = json_array();
    for (int ring = 0; ring < answer->sets[0].n; ring++)
        for (int node = 0; node < answer->nodes; node++)
            json_array_append_new(rings, chain_of_node(answer, ring, node));
    json_t *json = json_pack("{s:s, s:f, s:f, s:f, s:s?, s:I, s:o}", "state", "ok", "gbps",
                             answer->gbps, "bound", answer->bound, "gap", gap_of(answer), "set",
                             text, "rated", (json_int_t)answer->rated, "rings", rings);
    if (json)
        set_baseline(json, &answer->baseline);
    return json;
}

/* From node i on: how many nodes in a row have the same chains. */
static int alike(const struct rings_answer *answer, int i)
{
    int count = 1;
    while (i + count < answer->nodes && answer->classes[i + count] == answer->classes[i] &&
           memcmp(&answer->sets[i + count], &answer->sets[i], sizeof(*answer->sets)) == 0)
        count++;
    return count;
}

static void print_nodes(const struct rings_answer *answer)
{
    char name[32], chain[TCCL_CHAIN_TEXT];
    printf("%-10s %-16s chain\n", "node", "machine");
    for (int i = 0, n; i < answer->nodes; i += n) {
        const struct tccl_machine *machine = &answer->classes[i]->source->machine;
        n = alike(answer, i);
        format_nodes(i, n, name);
        for (int k = 0; k < answer->sets[i].n; k++) {
            tccl_chain_format(&answer->sets[i].rings[k], machine, chain);
            printf("%-10s %-16s %s\n", k ? "" : name, k ? "at the same time" : machine->name,
                   chain);
        }
    }
}

static void print_rings(const struct rings_answer *answer)
{
    if (answer->nothing) {
        printf("nothing to do: one GPU in all\n");
        return;
    }
    print_nodes(answer);
    int n = answer->sets[0].n;
    printf("bandwidth  %.2f GB/s by %d ring%s at once", answer->gbps, n, n == 1 ? "" : "s");
    if (gap_of(answer) > 0)
        printf(", no set is better than %.2f GB/s (gap %.1f %%)\n", answer->bound,
               100 * gap_of(answer));
    else
        printf(", proven: no set is better\n");
    if (answer->baseline.n)
        printf("baseline   %.2f GB/s by NCCL's own rings: this set is %.2f times as fast\n",
               answer->baseline.gbps, answer->gbps / answer->baseline.gbps);
    printf("rated      %ld sets\n", answer->rated);
}

int command_rings(const struct options *options, struct tccl_error *err)
{
    struct rings_answer answer = {.nothing = false};
    struct nodes nodes;
    int status = nodes_open(options, &nodes, err);
    if (status == 0)
        status = solve_rings(options, &nodes, &answer, err);
    if (status == 0 && options->json) {
        cleanup_json json_t *json = rings_to_json(&answer);
        status = print_json(json, err);
    } else if (status == 0) {
        print_rings(&answer);
    }
    answer_free(&answer);
    nodes_clear(&nodes);
    return status;
}
