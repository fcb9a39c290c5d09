/* path-route.c: the ring sets of all nodes in order, with the hops between them. */
#include "command/path.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/numberset.h"
#include "nccl/baseline.h"
#include "ring/reach.h"
#include "ring/ring.h"

int route_init(struct route *route, int n, struct tccl_error *err)
{
    *route = (struct route){.n = n};
    route->stops = calloc(n, sizeof(*route->stops));
    route->hops = n > 1 ? calloc(n, sizeof(*route->hops)) : NULL;
    if (!route->stops || (n > 1 && !route->hops))
        return tccl_fail(err, "out of memory for %d nodes", n);
    return 0;
}

void route_clear(struct route *route)
{
    free(route->stops);
    free(route->hops);
    *route = (struct route){.n = 0};
}

/* From the exits of one stop's chains to the entries of the next one's, ring by ring; those that
 * share a NIC share its line rate. GB/s of all of them together, 0 if two NICs don't meet. */
static double hop_rate(const struct stop *from, const struct stop *to)
{
    const struct tccl_node_class *out = from->class->class, *in = to->class->class;
    int sent[TCCL_MAX_NICS] = {0}, taken[TCCL_MAX_NICS] = {0}, n = from->set.n;
    double least = INFINITY;
    for (int i = 0; i < n; i++) {
        sent[from->set.rings[i].exit.nic]++;
        taken[to->set.rings[i].entry.nic]++;
    }
    for (int i = 0; i < n; i++) {
        int exit = from->set.rings[i].exit.nic, entry = to->set.rings[i].entry.nic;
        if (tccl_hop(out, exit, in, entry) <= 0)
            return 0;
        least = fmin(least,
                     fmin(out->nics[exit].gbps / sent[exit], in->nics[entry].gbps / taken[entry]));
    }
    return n * least;
}

void route_rate(struct route *route)
{
    int gpus = 0;
    for (int i = 0; i < route->n; i++)
        gpus += route->stops[i].set.rings[0].n_gpus;
    route->gbps = route->reach = INFINITY;
    for (int i = 0; i < route->n; i++) {
        const struct stop *from = &route->stops[i], *to = &route->stops[(i + 1) % route->n];
        route->gbps = fmin(route->gbps, from->gbps);
        const struct tccl_model *model = from->class->source->model;
        uint8_t ends = model ? tccl_ends(model, from->set.rings, from->set.n)
                             : tccl_ends_most(from->set.rings, from->set.n);
        route->reach = fmin(route->reach, from->gbps * tccl_reach(ends, gpus));
        if (!route->hops)
            continue;
        route->hops[i] = from->baseline
                             ? tccl_baseline_hop(from->class->class, to->class->class, TCCL_NEWEST)
                             : hop_rate(from, to);
        route->gbps = fmin(route->gbps, route->hops[i]);
        route->reach = fmin(route->reach, route->hops[i]);
    }
}

bool route_meets(const struct route *route, int i, int nic)
{
    const struct tccl_node_class *own = route->stops[i].class->class;
    for (int side = -1; side <= 1 && route->n > 1; side += 2) {
        const struct tccl_node_class *other =
            route->stops[(i + side + route->n) % route->n].class->class;
        bool meets = false;
        for (int k = 0; k < other->n_nics && !meets; k++)
            meets = tccl_hop(own, nic, other, k) > 0;
        if (!meets)
            return false;
    }
    return true;
}

/* From a model: a transfer counts as often as rings make it. */
static int rate_by_model(const struct tccl_model *model, const struct tccl_ring_set *set,
                         double *gbps, struct tccl_error *err)
{
    struct tccl_side side;
    const struct tccl_side *sides[] = {&side};
    if (tccl_ring_set_side(set, &side) != 0)
        return tccl_fail(err, "more than %d transfers at once", TCCL_MAX_SIDE);
    return tccl_model_sides(model, sides, 1, gbps, err);
}

/* A set of a profile's table. Returns 1 with *gbps, 0 if it isn't there, or -1 with err. */
static int find_measured(const struct stop *stop, double *gbps, struct tccl_error *err)
{
    struct tccl_table *table = NULL;
    int found = 0;
    if (source_table(stop->class->source, stop->class->gpus, &table, err) != 0)
        return -1;
    for (const struct tccl_result *own = NULL;
         table && !found && (own = tccl_table_next(table, own, TCCL_SETS));) {
        found = tccl_ring_set_alike(own->set, &stop->set);
        *gbps = own->gbps;
    }
    tccl_table_free(table);
    return found;
}

/* Several rings, by what a profile has: the set itself, or, where no transfer is there twice, all
 * of its transfers at the same time. */
static int rate_by_profile(const struct stop *stop, double *gbps, struct tccl_error *err)
{
    struct tccl_set all = {.count = 0};
    struct tccl_side side;
    int found = find_measured(stop, gbps, err);
    if (found != 0)
        return found > 0 ? 0 : -1;
    tccl_ring_set_side(&stop->set, &side);
    for (int i = 0; i < side.count; i++)
        if (tccl_set_add(&all, side.transfers[i]) != 0)
            return tccl_fail(err, "%s: these rings together were not measured",
                             stop->class->source->path);
    if (source_measure(stop->class->source, &all, gbps, err) != 0)
        return -1;
    *gbps *= stop->set.n;
    return 0;
}

int stop_measure(struct stop *stop, struct tccl_error *err)
{
    struct source *source = stop->class->source;
    const struct tccl_model *model = source->model;
    struct tccl_set set;
    if (stop->set.n > 1)
        return model ? rate_by_model(model, &stop->set, &stop->gbps, err)
                     : rate_by_profile(stop, &stop->gbps, err);
    tccl_chain_set(&stop->set.rings[0], &set);
    return source_measure(source, &set, &stop->gbps, err);
}

int route_measure(struct route *route, struct tccl_error *err)
{
    for (int i = 0; i < route->n; i++) {
        struct stop *stop = &route->stops[i];
        if (i > 0 && stop->class == stop[-1].class &&
            memcmp(&stop->set, &stop[-1].set, sizeof(stop->set)) == 0)
            stop->gbps = stop[-1].gbps;
        else if (stop_measure(stop, err) != 0)
            return -1;
    }
    route_rate(route);
    return 0;
}

double stop_slowest(const struct stop *stop)
{
    return stop->gbps / stop->set.n;
}

int stop_limit(const struct stop *stop, struct tccl_limit *limit, struct tccl_error *err)
{
    struct source *source = stop->class->source;
    if (!source->model && source_know(source, err) != 0)
        return -1;
    return tccl_limit_find(source->model, &source->sets, stop->set.rings, stop->set.n,
                           stop_slowest(stop), true, limit, err);
}

const struct tccl_chain *stop_first(const struct stop *stop)
{
    return &stop->set.rings[0];
}

const struct tccl_tree *stop_tree(const struct stop *stop)
{
    const struct tccl_node_class *class = stop->class->class;
    const struct tccl_chain *chain = stop_first(stop);
    if (!class || stop->baseline || stop->set.n != 1 || chain->closed)
        return NULL;
    const struct tccl_seen *seen = &class->seen[chain->entry.nic * class->n_nics + chain->exit.nic];
    return seen->tree.gbps > 0 && tccl_chain_equal(&seen->set.rings[0], chain) ? &seen->tree : NULL;
}

int route_rings(const struct route *route)
{
    int most = 1;
    for (int i = 0; i < route->n; i++)
        most = route->stops[i].set.n > most ? route->stops[i].set.n : most;
    return most;
}

/* All chains of the baseline, GB/s. A profile has measured a transfer of several chains once. */
static int rate_baseline(struct source *source, const struct tccl_baseline *baseline, double *gbps,
                         struct tccl_error *err)
{
    struct tccl_set set;
    if (!source->profile)
        return rate_by_model(source->model, &baseline->set, gbps, err);
    if (tccl_baseline_set(baseline, &set, err) != 0 || source_measure(source, &set, gbps, err) != 0)
        return -1;
    *gbps = baseline->set.n * *gbps;
    return 0;
}

/* Finds and measures the baseline of one node, and keeps it in the table. */
static int measure_baseline(struct node_class *class, bool closed, struct tccl_baseline *kept,
                            struct tccl_error *err)
{
    struct tccl_baseline baseline;
    struct tccl_error why = {""};
    if (tccl_baseline_find(&class->source->machine, class->gpus, closed, TCCL_NEWEST, &baseline,
                           &why) != 0)
        return tccl_fail(err, "%s: %s", class->source->path, why.text);
    if (rate_baseline(class->source, &baseline, &baseline.gbps, err) != 0)
        return -1;
    *kept = baseline;
    return node_class_refresh(class, err);
}

/* The baseline of one node: from the table, or now. */
static int baseline_stop(struct node_class *class, bool closed, struct stop *stop,
                         struct tccl_error *err)
{
    struct tccl_table *table = class->table;
    struct tccl_baseline *baseline = &table->baselines[closed][TCCL_NEWEST];
    if (baseline->set.n == 0 && measure_baseline(class, closed, baseline, err) != 0)
        return -1;
    /* A search has rated the union of its sets. */
    if (!class->source->profile &&
        rate_baseline(class->source, baseline, &baseline->gbps, err) != 0)
        return -1;
    *stop = (struct stop){
        .class = class, .gbps = baseline->gbps, .baseline = true, .set = baseline->set};
    return 0;
}

int route_baseline(const struct route *like, bool closed, struct route *route,
                   struct tccl_error *err)
{
    if (route_init(route, like->n, err) != 0)
        return -1;
    for (int i = 0; i < like->n; i++)
        if (baseline_stop(like->stops[i].class, closed, &route->stops[i], err) != 0)
            return -1;
    route_rate(route);
    return 0;
}

/* Reading the notation. */

struct parse {
    struct nodes *nodes;
    struct route *route;
    int pieces;
    bool named;
    struct tccl_named_chain first[TCCL_CHAIN_RINGS]; /* of the first piece */
};

/* One chain more of node i. */
static int parse_chain(struct parse *parse, int i, const struct tccl_named_chain *named,
                       struct tccl_error *err)
{
    const struct tccl_machine *machine = &nodes_group(parse->nodes, i)->source->machine;
    struct tccl_ring_set *set = &parse->route->stops[i].set;
    struct tccl_chain *chain = &set->rings[set->n++];
    struct tccl_error why = {""};
    if (tccl_chain_resolve(named, machine, chain, &why) != 0 ||
        tccl_chain_check(chain, machine, &why) != 0)
        return tccl_fail(err, "--ring: n%d: %s", i + 1, why.text);
    if (parse->route->n > 1 && chain->closed)
        return tccl_fail(err, "--ring: n%d: with several nodes each chain begins and ends at a NIC",
                         i + 1);
    return 0;
}

static int parse_piece(struct parse *parse, const struct tccl_ring_reader *ring,
                       const struct tccl_named_chain *named, struct tccl_error *err)
{
    char expected[32];
    snprintf(expected, sizeof(expected), "n%d", ring->node + 1);
    parse->pieces = ring->node + 1;
    parse->named = parse->named || ring->name[0];
    if (ring->node >= parse->route->n)
        return tccl_fail(err, "--ring: more parts NODE[CHAIN] than the %d nodes", parse->route->n);
    if (ring->name[0] && strcmp(ring->name, expected) != 0)
        return tccl_fail(err, "--ring: node %.60s in place of %s: give the nodes in their order",
                         ring->name, expected);
    if (ring->chain >= TCCL_CHAIN_RINGS)
        return tccl_fail(err, "--ring: n%d: more than %d rings", ring->node + 1, TCCL_CHAIN_RINGS);
    if (ring->node == 0)
        parse->first[ring->chain] = *named;
    return parse_chain(parse, ring->node, named, err);
}

/* A node's chains are all there: do they go together, and which class is it? */
static int end_stop(struct parse *parse, int i, struct tccl_error *err)
{
    const struct group *group = nodes_group(parse->nodes, i);
    struct stop *stop = &parse->route->stops[i];
    struct tccl_error why = {""};
    uint32_t gpus = tccl_chain_gpus(stop_first(stop));
    char asked[64], visited[64];
    int rings = parse->route->stops[0].set.n;
    if (tccl_ring_set_check(&stop->set, &group->source->machine, &why) != 0)
        return tccl_fail(err, "--ring: n%d: %s", i + 1, why.text);
    if (stop->set.n != rings)
        return tccl_fail(err, "--ring: n%d: %d chain%s, but n1 has %d: each ring visits all nodes",
                         i + 1, stop->set.n, stop->set.n == 1 ? "" : "s", rings);
    tccl_numberset_format(group->gpus, asked, sizeof(asked));
    tccl_numberset_format(gpus, visited, sizeof(visited));
    if (group->gpus_given && gpus != group->gpus)
        return tccl_fail(err, "--ring: n%d: it visits GPUs %s, --gpus asks for %s", i + 1, visited,
                         asked);
    stop->class = nodes_class(parse->nodes, group->source, gpus, err);
    return stop->class ? 0 : -1;
}

/* The one piece without a name stands for all nodes. */
static int repeat_piece(struct parse *parse, struct tccl_error *err)
{
    for (int i = 1; i < parse->route->n; i++, parse->pieces++)
        for (int k = 0; k < parse->route->stops[0].set.n; k++)
            if (parse_chain(parse, i, &parse->first[k], err) != 0)
                return -1;
    return 0;
}

int route_parse(struct nodes *nodes, const char *text, struct route *route, struct tccl_error *err)
{
    struct parse parse = {.nodes = nodes, .route = route};
    struct tccl_ring_reader ring = {.text = text};
    struct tccl_named_chain named;
    struct tccl_error why = {""};
    int more;
    if (route_init(route, nodes->total, err) != 0)
        return -1;
    while ((more = tccl_ring_next(&ring, &named, &why)) > 0)
        if (parse_piece(&parse, &ring, &named, err) != 0)
            return -1;
    if (more < 0)
        return tccl_fail(err, "--ring: %s", why.text);
    if (parse.pieces == 1 && !parse.named && repeat_piece(&parse, err) != 0)
        return -1;
    if (parse.pieces < route->n)
        return tccl_fail(err, "--ring: %d parts NODE[CHAIN] for %d nodes", parse.pieces, route->n);
    for (int i = 0; i < route->n; i++)
        if (end_stop(&parse, i, err) != 0)
            return -1;
    return 0;
}

/* Notation */

void route_ring(const struct route *route, int ring, const struct tccl_chain **chains)
{
    for (int i = 0; i < route->n; i++) {
        const struct stop *stop = &route->stops[i];
        int k = 0, n = i > 0 && stop->baseline ? stop->set.n : 0;
        while (k < n && stop->set.rings[k].entry.nic != chains[i - 1]->exit.nic)
            k++;
        chains[i] = &stop->set.rings[k < n ? k : ring % stop->set.n];
    }
}

/* The text of the rings from one on. */
static char *format_rings(const struct route *route, int from, int n)
{
    cleanup_free const struct tccl_chain **chains = calloc((size_t)n * route->n, sizeof(*chains));
    char *text = NULL, chain[TCCL_CHAIN_TEXT];
    size_t size;
    FILE *stream = chains ? open_memstream(&text, &size) : NULL;
    if (!stream)
        return NULL;
    for (int i = 0; i < n; i++)
        route_ring(route, from + i, chains + (size_t)i * route->n);
    for (int i = 0; i < route->n; i++) {
        if (route->n > 1)
            fprintf(stream, "%sn%d[", i ? " " : "", i + 1);
        for (int k = 0; k < n; k++) {
            tccl_chain_format(chains[(size_t)k * route->n + i],
                              &route->stops[i].class->source->machine, chain);
            fprintf(stream, "%s%s", k ? " | " : "", chain);
        }
        fputs(route->n > 1 ? "]" : "", stream);
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *route_format_ring(const struct route *route, int ring)
{
    return format_rings(route, ring, 1);
}

char *route_format(const struct route *route)
{
    return format_rings(route, 0, route_rings(route));
}

int route_expressible(const struct route *route, struct tccl_error *err)
{
    for (int i = 0; i < route->n; i++) {
        const struct stop *stop = &route->stops[i];
        struct tccl_error why = {""};
        if (tccl_expressible(&stop->class->source->machine, stop->set.rings, stop->set.n, &why) !=
            0)
            return tccl_fail(err, "n%d: %s", i + 1, why.text);
    }
    return 0;
}

json_t *route_to_json(const struct route *route)
{
    json_t *rings = json_array();
    for (int i = 0; route->n && i < route_rings(route); i++) {
        cleanup_free char *ring = route_format_ring(route, i);
        json_array_append_new(rings, ring ? json_string(ring) : json_null());
    }
    return rings;
}
