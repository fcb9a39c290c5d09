/* path-route.c: chains of all nodes in order, with the hops between them. */
#include "command/path-route.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/numbers.h"
#include "chain/ring-set.h"
#include "nccl/baseline.h"
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

void route_rate(struct route *route)
{
    route->gbps = INFINITY;
    for (int i = 0; i < route->n; i++) {
        const struct stop *from = &route->stops[i], *to = &route->stops[(i + 1) % route->n];
        route->gbps = fmin(route->gbps, from->gbps);
        if (!route->hops)
            continue;
        route->hops[i] = from->baseline
                             ? tccl_baseline_hop(from->class->class, to->class->class, TCCL_NEWEST)
                             : tccl_hop(from->class->class, from->chain.exit.nic, to->class->class,
                                        to->chain.entry.nic);
        route->gbps = fmin(route->gbps, route->hops[i]);
    }
}

static bool same_chain(const struct stop *a, const struct stop *b)
{
    return a->class == b->class && memcmp(&a->chain, &b->chain, sizeof(a->chain)) == 0;
}

int route_measure(struct route *route, struct tccl_error *err)
{
    for (int i = 0; i < route->n; i++) {
        struct stop *stop = &route->stops[i];
        struct tccl_set set;
        if (i > 0 && same_chain(stop, stop - 1)) {
            stop->gbps = stop[-1].gbps;
            continue;
        }
        tccl_chain_set(&stop->chain, &set);
        if (source_measure(stop->class->source, &set, &stop->gbps, err) != 0)
            return -1;
    }
    route_rate(route);
    return 0;
}

int stop_chains(const struct stop *stop)
{
    return stop->baseline ? stop->baseline->n_chains : 1;
}

const struct tccl_chain *stop_chain(const struct stop *stop, int i)
{
    return stop->baseline ? &stop->baseline->chains[i] : &stop->chain;
}

void stop_set(const struct stop *stop, struct tccl_set *set)
{
    if (stop->baseline)
        tccl_baseline_set(stop->baseline, set, NULL);
    else
        tccl_chain_set(&stop->chain, set);
}

double stop_slowest(const struct stop *stop)
{
    return stop->gbps / stop_chains(stop);
}

const struct tccl_tree *stop_tree(const struct stop *stop)
{
    const struct tccl_node_class *class = stop->class->class;
    const struct tccl_chain *chain = &stop->chain;
    if (!class || stop->baseline || chain->closed || chain->n_gpus == 0)
        return NULL;
    const struct tccl_cell *cell =
        &class->cells[chain->entry.nic * class->n_nics + chain->exit.nic];
    return cell->tree.gbps > 0 && tccl_chain_equal(&cell->chain, chain) ? &cell->tree : NULL;
}

int route_rings(const struct route *route)
{
    int most = 1;
    for (int i = 0; i < route->n; i++)
        most = stop_chains(&route->stops[i]) > most ? stop_chains(&route->stops[i]) : most;
    return most;
}

/* All chains of the baseline, GB/s. */
static int rate_baseline(struct source *source, const struct tccl_baseline *baseline, double *gbps,
                         struct tccl_error *err)
{
    struct tccl_set set;
    if (tccl_baseline_set(baseline, &set, err) != 0 || source_measure(source, &set, gbps, err) != 0)
        return -1;
    *gbps = tccl_baseline_gbps(baseline, *gbps);
    return 0;
}

/* Finds and measures the baseline of one node, and keeps it in the table. */
static int measure_baseline(struct node_class *class, bool closed, struct tccl_baseline *kept,
                            struct tccl_error *err)
{
    struct tccl_baseline baseline;
    struct tccl_error why = {""};
    if (tccl_baseline_find(&class->source->machine, class->gpus, closed, TCCL_NEWEST, &baseline,
                           NULL, &why) != 0)
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
    struct tccl_baseline *baseline =
        closed ? &table->baseline_ring[TCCL_NEWEST] : &table->baseline_chain[TCCL_NEWEST];
    if (baseline->n_chains == 0 && measure_baseline(class, closed, baseline, err) != 0)
        return -1;
    /* A search has rated the union of its sets. */
    if (!class->source->profile &&
        rate_baseline(class->source, baseline, &baseline->gbps, err) != 0)
        return -1;
    *stop = (struct stop){class, baseline->chains[0], baseline->gbps, baseline};
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
};

static int parse_stop(struct parse *parse, int i, const struct tccl_named_chain *named,
                      struct tccl_error *err)
{
    const struct group *group = nodes_group(parse->nodes, i);
    struct stop *stop = &parse->route->stops[i];
    struct tccl_error why = {""};
    uint32_t gpus = 0;
    char asked[64], visited[64];
    const struct tccl_machine *machine = &group->source->machine;
    if (tccl_chain_resolve(named, machine, &stop->chain, &why) != 0 ||
        tccl_chain_check(&stop->chain, machine, &why) != 0)
        return tccl_fail(err, "--ring: n%d: %s", i + 1, why.text);
    for (int k = 0; k < stop->chain.n_gpus; k++)
        gpus |= UINT32_C(1) << stop->chain.gpus[k];
    tccl_numberset_format(group->gpus, asked, sizeof(asked));
    tccl_numberset_format(gpus, visited, sizeof(visited));
    if (group->gpus_given && gpus != group->gpus)
        return tccl_fail(err, "--ring: n%d: it visits GPUs %s, --gpus asks for %s", i + 1, visited,
                         asked);
    if (parse->route->n > 1 && stop->chain.closed)
        return tccl_fail(err, "--ring: n%d: with several nodes each chain begins and ends at a NIC",
                         i + 1);
    stop->class = nodes_class(parse->nodes, group->source, gpus, err);
    return stop->class ? 0 : -1;
}

static int parse_piece(struct parse *parse, const struct tccl_ring_reader *ring,
                       const struct tccl_named_chain *named, struct tccl_error *err)
{
    char expected[32];
    snprintf(expected, sizeof(expected), "n%d", ring->node + 1);
    if (ring->chain > 0)
        return tccl_fail(err, "--ring: n%d: one chain is expected, not several", ring->node + 1);
    parse->pieces = ring->node + 1;
    parse->named = parse->named || ring->name[0];
    if (ring->node >= parse->route->n)
        return tccl_fail(err, "--ring: more pieces than the %d nodes asked for", parse->route->n);
    if (ring->name[0] && strcmp(ring->name, expected) != 0)
        return tccl_fail(err,
                         "--ring: node %.60s where %s is expected: pieces stand in the order of "
                         "the nodes",
                         ring->name, expected);
    return parse_stop(parse, ring->node, named, err);
}

int route_parse(struct nodes *nodes, const char *text, struct route *route, struct tccl_error *err)
{
    struct parse parse = {nodes, route, 0, false};
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
    if (parse.pieces == 1 && !parse.named)
        for (int i = 1; i < route->n; i++, parse.pieces++)
            if (parse_stop(&parse, i, &named, err) != 0)
                return -1;
    if (parse.pieces < route->n)
        return tccl_fail(err, "--ring: %d pieces for %d nodes", parse.pieces, route->n);
    return 0;
}

/* Notation */

/* The chain of a stop with which a ring goes on that came out of the NIC. */
static const struct tccl_chain *next_chain(const struct stop *stop, int ring, int nic)
{
    for (int i = 0; i < stop_chains(stop); i++)
        if (stop_chain(stop, i)->entry.nic == nic)
            return stop_chain(stop, i);
    return stop_chain(stop, ring % stop_chains(stop));
}

char *route_format(const struct route *route, int ring)
{
    char *text = NULL, chain[TCCL_CHAIN_TEXT];
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    const struct tccl_chain *here = NULL;
    for (int i = 0; i < route->n; i++) {
        const struct stop *stop = &route->stops[i];
        here = here ? next_chain(stop, ring, here->exit.nic)
                    : stop_chain(stop, ring % stop_chains(stop));
        tccl_chain_format(here, &stop->class->source->machine, chain);
        if (route->n == 1)
            fprintf(stream, "%s", chain);
        else
            fprintf(stream, "%sn%d[%s]", i ? " " : "", i + 1, chain);
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

int route_expressible(const struct route *route, struct tccl_error *err)
{
    for (int i = 0; i < route->n; i++) {
        struct tccl_error why = {""};
        if (tccl_chain_expressible(&route->stops[i].chain, &why) != 0)
            return tccl_fail(err, "n%d: %s", i + 1, why.text);
    }
    return 0;
}

json_t *route_to_json(const struct route *route)
{
    json_t *rings = json_array();
    for (int i = 0; route->n && i < route_rings(route); i++) {
        cleanup_free char *ring = route_format(route, i);
        json_array_append_new(rings, ring ? json_string(ring) : json_null());
    }
    return rings;
}
