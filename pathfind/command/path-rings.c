/* path-rings.c: tccl-path solve --rings: several rings that run at once, on one node or on equal
 * ones. All nodes have the same chains; ring r leaves each by its exit NIC to its entry NIC of the
 * next. The best single rings, of a short search, and the baseline are where the search begins. */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "command/path-commands.h"
#include "nccl/baseline.h"
#include "search/rings.h"

enum {
    BUDGET = 10000,
    SINGLES_BUDGET = 1000,
    SINGLES_PAIRS = 4,
    STARTS = 1 + TCCL_MAX_NICS * TCCL_MAX_NICS
};

struct rings_answer {
    struct node_class *class;
    bool nothing; /* one GPU in all */
    bool closed;
    int nodes;
    struct tccl_rings_result result;
    struct route baseline; /* n = 0: unknown */
};

static int check_nodes(const struct nodes *nodes, struct tccl_error *err)
{
    for (int i = 0; i < nodes->n_groups; i++) {
        const struct group *group = &nodes->groups[i];
        if (group->source->profile)
            return tccl_fail(err, "%s: --rings needs a model: profiles have no ring sets yet",
                             group->source->path);
        if (group->source != nodes->groups[0].source || group->gpus != nodes->groups[0].gpus)
            return tccl_fail(err, "%s: --rings needs equal nodes with the same GPUs",
                             group->source->path);
    }
    return 0;
}

/* The best single ring, or the best chain of each pair of NICs, and what none can exceed. */
static int solve_single(struct rings_answer *answer, double *bound, struct tccl_error *err)
{
    struct node_class *class = answer->class;
    struct tccl_search_options options = {
        .gap = 0.03, .budget = SINGLES_BUDGET, .pairs = SINGLES_PAIRS};
    struct tccl_search *search = class->source->search;
    struct tccl_error why = {""};
    int status = answer->closed
                     ? tccl_search_ring(search, class->gpus, &options, &class->table->ring, &why)
                     : tccl_search_table(search, class->table, &options, &why);
    if (status < 0)
        return tccl_fail(err, "%s: %s", class->source->path, why.text);
    if (node_class_refresh(class, err) != 0)
        return -1;
    const struct tccl_node_class *found = class->class;
    *bound = answer->closed ? found->ring.bound : 0;
    for (int i = 0; i < found->n_nics * found->n_nics && !answer->closed; i++)
        *bound = fmax(*bound, found->cells[i].bound);
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
static int list_starts(const struct rings_answer *answer, struct tccl_ring_set *starts)
{
    const struct tccl_node_class *found = answer->class->class;
    int n = 0;
    if (answer->baseline.n) {
        const struct tccl_baseline *own = answer->baseline.stops[0].baseline;
        starts[0].n = own->n_chains;
        memcpy(starts[0].rings, own->chains, own->n_chains * sizeof(*own->chains));
        n++;
    }
    if (answer->closed)
        add_start(starts, &n, &found->ring);
    for (int i = 0; i < found->n_nics * found->n_nics && !answer->closed; i++)
        add_start(starts, &n, &found->cells[i]);
    return n;
}

static void find_baseline(struct rings_answer *answer)
{
    struct route like;
    if (route_init(&like, answer->nodes, NULL) == 0) {
        for (int i = 0; i < like.n; i++)
            like.stops[i].class = answer->class;
        if (route_baseline(&like, answer->closed, &answer->baseline, NULL) != 0)
            route_clear(&answer->baseline);
    }
    route_clear(&like);
}

static int solve_rings(const struct options *options, struct nodes *nodes,
                       struct rings_answer *answer, struct tccl_error *err)
{
    const struct group *group = &nodes->groups[0];
    struct tccl_rings_options wanted = {
        .rings = (int)options->rings,
        .gap = options->gap >= 0 ? options->gap : 0.03,
        .seed = 1,
    };
    answer->nodes = nodes->total;
    answer->closed = nodes->total == 1;
    answer->nothing = answer->closed && __builtin_popcount(group->gpus) == 1;
    if (check_nodes(nodes, err) != 0 || answer->nothing)
        return answer->nothing ? 0 : -1;
    answer->class = nodes_class(nodes, group->source, group->gpus, err);
    if (!answer->class || solve_single(answer, &wanted.single_bound, err) != 0)
        return -1;
    find_baseline(answer);
    cleanup_free struct tccl_ring_set *starts = calloc(STARTS, sizeof(*starts));
    if (!starts)
        return tccl_fail(err, "out of memory");
    long before = tccl_search_measured(group->source->search);
    wanted.budget = (options->budget > 0 ? options->budget : BUDGET) - before;
    if (wanted.budget < 1)
        wanted.budget = 1;
    if (tccl_rings_find(group->source->model, group->gpus, answer->closed, &wanted, starts,
                        list_starts(answer, starts), &answer->result, err) != 0)
        return tccl_fail_in(err, "%s", group->source->path);
    answer->result.rated += before;
    return answer->result.set.n ? 0 : tccl_fail(err, "no ring was found");
}

/* Output */

static double gap_of(const struct tccl_rings_result *result)
{
    return result->bound <= result->gbps * (1 + 1e-9) ? 0 : 1 - result->gbps / result->bound;
}

static json_t *chain_of_node(const struct rings_answer *answer, int ring, int node)
{
    char name[32];
    json_t *json =
        tccl_chain_to_json(&answer->result.set.rings[ring], &answer->class->source->machine);
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
    tccl_ring_set_format(&answer->result.set, &answer->class->source->machine, rings);
    for (int i = 0; i < answer->nodes; i++) {
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
    const struct tccl_rings_result *result = &answer->result;
    if (answer->nothing)
        return json_pack("{s:s, s:n, s:n, s:n, s:n, s:n, s:[], s:i, s:[]}", "state",
                         "nothing-to-do", "gbps", "bound", "gap", "set", "baseline_gbps",
                         "baseline_rings", "rated", 0, "rings");
    cleanup_free char *text = write_set(answer);
    json_t *rings = json_array();
    for (int ring = 0; ring < result->set.n; ring++)
        for (int node = 0; node < answer->nodes; node++)
            json_array_append_new(rings, chain_of_node(answer, ring, node));
    json_t *json = json_pack("{s:s, s:f, s:f, s:f, s:s?, s:I, s:o}", "state", "ok", "gbps",
                             result->gbps, "bound", result->bound, "gap", gap_of(result), "set",
                             text, "rated", (json_int_t)result->rated, "rings", rings);
    if (json)
        set_baseline(json, &answer->baseline);
    return json;
}

static void print_rings(const struct rings_answer *answer)
{
    const struct tccl_rings_result *result = &answer->result;
    char name[32], chain[TCCL_CHAIN_TEXT];
    if (answer->nothing) {
        printf("nothing to do: one GPU in all\n");
        return;
    }
    format_nodes(0, answer->nodes, name);
    printf("%-10s %-16s chain\n", "node", "machine");
    for (int i = 0; i < result->set.n; i++) {
        tccl_chain_format(&result->set.rings[i], &answer->class->source->machine, chain);
        printf("%-10s %-16s %s\n", i ? "" : name,
               i ? "at the same time" : answer->class->source->machine.name, chain);
    }
    printf("bandwidth  %.2f GB/s by %d ring%s at once", result->gbps, result->set.n,
           result->set.n == 1 ? "" : "s");
    if (gap_of(result) > 0)
        printf(", no set is better than %.2f GB/s (gap %.1f %%)\n", result->bound,
               100 * gap_of(result));
    else
        printf(", proven: no set is better\n");
    if (answer->baseline.n)
        printf("baseline   %.2f GB/s by NCCL's own rings: this set is %.2f times as fast\n",
               answer->baseline.gbps, result->gbps / answer->baseline.gbps);
    printf("rated      %ld sets\n", result->rated);
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
    route_clear(&answer.baseline);
    nodes_clear(&nodes);
    return status;
}
