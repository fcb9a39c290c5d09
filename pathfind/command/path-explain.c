/* path-explain.c: tccl-path explain: what limits the ring, and the next best chains. */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "chain/ring-set.h"
#include "command/path-commands.h"
#include "command/path-limit.h"
#include "command/path-tuning.h"

enum { RUNNERS = 5 };

/* Other chains, best first. */
struct runners {
    int count;
    struct tccl_result best[RUNNERS];
};

/* Alternatives to a chain: others as fast, and the next best ones. */
struct others {
    struct runners as_fast, slower;
};

/* Does this bandwidth limit the route? With a tolerance, because sums in another order differ in
 * the last digit. */
static bool holds_route(const struct route *route, double gbps)
{
    return gbps <= route->gbps * (1 + 1e-9);
}

/* Is this member one of the slowest? */
static bool is_slow(const struct stop *stop, const struct limit *limit, int i)
{
    return limit->rates[i] <= stop_slowest(stop) * (1 + 1e-6);
}

/* Runners-up */

static bool same_set(const struct tccl_chain *a, const struct tccl_chain *b)
{
    struct tccl_set x, y;
    tccl_chain_set(a, &x);
    tccl_chain_set(b, &y);
    return tccl_set_equal(&x, &y);
}

/* Keeps the best chains in order, without duplicates of a set. */
static void keep(struct runners *runners, const struct tccl_result *result)
{
    if (runners->count == RUNNERS && result->gbps <= runners->best[RUNNERS - 1].gbps)
        return;
    for (int i = 0; i < runners->count; i++)
        if (same_set(&runners->best[i].chain, &result->chain))
            return;
    int at = runners->count;
    while (at > 0 && runners->best[at - 1].gbps < result->gbps)
        at--;
    if (runners->count < RUNNERS)
        runners->count++;
    memmove(&runners->best[at + 1], &runners->best[at],
            (runners->count - 1 - at) * sizeof(*runners->best));
    runners->best[at] = *result;
}

static void offer(struct others *others, const struct stop *stop, const struct tccl_result *result)
{
    if (!same_set(&stop->chain, &result->chain))
        keep(result->gbps >= stop->gbps * (1 - 1e-9) ? &others->as_fast : &others->slower, result);
}

/* Several nodes: the best chains of other port pairs. */
static void offer_pairs(const struct stop *stop, struct others *others)
{
    const struct tccl_table *table = stop->class->table;
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        if (table->pairs[i].chain.n_gpus)
            offer(others, stop, &table->pairs[i]);
}

/* Measures a changed chain. A chain that the profile has not measured is skipped. */
static void offer_changed(const struct stop *stop, bool any, const struct tccl_chain *chain,
                          struct others *others)
{
    struct tccl_result result = {.chain = *chain};
    struct tccl_set set;
    tccl_chain_set(chain, &set);
    if (tccl_chain_check(chain, &stop->class->source->machine, NULL) != 0 ||
        (!any && tccl_chain_expressible(chain, NULL) != 0) ||
        source_measure(stop->class->source, &set, &result.gbps, NULL) != 0)
        return;
    result.bound = result.gbps;
    offer(others, stop, &result);
}

static void change_edges(const struct stop *stop, bool any, const struct tccl_chain *chain,
                         struct others *others)
{
    int kinds = TCCL_BOUNCE + stop->class->source->machine.n_memories;
    for (int i = 0; i < tccl_chain_edges(chain); i++)
        for (int kind = 0; kind < kinds; kind++) {
            struct tccl_chain changed = *chain;
            changed.edges[i] = kind < TCCL_BOUNCE
                                   ? (struct tccl_edge){kind, 0}
                                   : (struct tccl_edge){TCCL_BOUNCE, kind - TCCL_BOUNCE};
            offer_changed(stop, any, &changed, others);
        }
}

/* A single node: rings that differ in one edge, or in the positions of two GPUs. */
static void offer_neighbours(const struct stop *stop, bool any, struct others *others)
{
    change_edges(stop, any, &stop->chain, others);
    for (int i = 1; i < stop->chain.n_gpus; i++)
        for (int k = i + 1; k < stop->chain.n_gpus; k++) {
            struct tccl_chain changed = stop->chain;
            changed.gpus[i] = stop->chain.gpus[k];
            changed.gpus[k] = stop->chain.gpus[i];
            offer_changed(stop, any, &changed, others);
        }
}

/* With more rings than this, only neighbours are tried. */
enum { MAX_RINGS = 100000 };

static bool few_rings(const struct stop *stop)
{
    double rings = 1;
    for (int i = 1; i < stop->chain.n_gpus; i++)
        rings *= i;
    rings *= pow(TCCL_BOUNCE + stop->class->source->machine.n_memories, stop->chain.n_gpus);
    return rings <= MAX_RINGS;
}

/* All kinds for the edges from the given one on. */
static void offer_edges(const struct stop *stop, bool any, struct tccl_chain *chain, int edge,
                        struct others *others)
{
    int kinds = TCCL_BOUNCE + stop->class->source->machine.n_memories;
    if (edge == tccl_chain_edges(chain)) {
        offer_changed(stop, any, chain, others);
        return;
    }
    for (int kind = 0; kind < kinds; kind++) {
        chain->edges[edge] = kind < TCCL_BOUNCE
                                 ? (struct tccl_edge){kind, 0}
                                 : (struct tccl_edge){TCCL_BOUNCE, kind - TCCL_BOUNCE};
        offer_edges(stop, any, chain, edge + 1, others);
    }
}

/* All orders of the GPUs from the given place on; the first one stays. */
static void offer_orders(const struct stop *stop, bool any, struct tccl_chain *chain, int place,
                         struct others *others)
{
    if (place == chain->n_gpus) {
        offer_edges(stop, any, chain, 0, others);
        return;
    }
    for (int i = place; i < chain->n_gpus; i++) {
        struct tccl_chain changed = *chain;
        changed.gpus[place] = chain->gpus[i];
        changed.gpus[i] = chain->gpus[place];
        offer_orders(stop, any, &changed, place + 1, others);
    }
}

/* A single node: all rings if there are few, else the neighbours. */
static void offer_rings(const struct stop *stop, bool any, struct others *others)
{
    struct tccl_chain chain = stop->chain;
    offer_neighbours(stop, any, others);
    if (few_rings(stop))
        offer_orders(stop, any, &chain, 1, others);
}

static void find_others(const struct stop *stop, bool any, struct others *others)
{
    *others = (struct others){.as_fast.count = 0};
    if (stop->class->solved && !stop->chain.closed)
        offer_pairs(stop, others);
    else if (stop->chain.closed)
        offer_rings(stop, any, others);
    else
        change_edges(stop, any, &stop->chain, others);
}

/* JSON */

static json_t *limit_to_json(const struct stop *stop, const struct limit *limit)
{
    char text[TCCL_SET_TEXT];
    json_t *slowest = json_array();
    for (int i = 0; limit->detailed && i < limit->set.count; i++) {
        if (!is_slow(stop, limit, i))
            continue;
        tccl_transfer_format(limit->set.transfers[i], text);
        json_array_append_new(slowest, json_pack("{s:s, s:f, s:s?}", "transfer", text, "gbps",
                                                 limit->rates[i], "limit", limit->limits[i]));
    }
    tccl_set_format(&limit->part, text);
    return json_pack("{s:o, s:s}", "slowest", slowest, "slow_part", text);
}

static json_t *runners_to_json(const struct stop *stop, const struct runners *runners)
{
    json_t *json = json_array();
    char text[TCCL_CHAIN_TEXT];
    for (int i = 0; i < runners->count; i++) {
        tccl_chain_format(&runners->best[i].chain, &stop->class->source->machine, text);
        json_array_append_new(
            json, json_pack("{s:s, s:f}", "chain", text, "gbps", runners->best[i].gbps));
    }
    return json;
}

static int stops_to_json(const struct route *route, bool any, bool with_runners, json_t *list,
                         struct tccl_error *err)
{
    for (int i = 0, n; i < route->n; i += n) {
        const struct stop *stop = &route->stops[i];
        struct limit limit;
        char name[32];
        n = route_alike(route, i);
        if (limit_find(stop, &limit, err) != 0)
            return -1;
        json_t *json = limit_to_json(stop, &limit);
        format_nodes(i, n, name);
        json_object_set_new(json, "nodes", json_string(name));
        json_object_set_new(json, "gbps", json_real(stop->gbps));
        json_object_set_new(json, "limits_ring", json_boolean(holds_route(route, stop->gbps)));
        if (with_runners) {
            struct others others;
            find_others(stop, any, &others);
            json_object_set_new(json, "as_fast", runners_to_json(stop, &others.as_fast));
            json_object_set_new(json, "runners_up", runners_to_json(stop, &others.slower));
        }
        json_array_append_new(list, json);
    }
    return 0;
}

static bool is_closed(const struct answer *answer)
{
    return answer->route.stops[0].chain.closed;
}

static int explain_json(const struct answer *answer, bool any, struct tccl_error *err)
{
    cleanup_json json_t *json = answer_to_json(answer);
    json_t *why = json_array(), *baseline = json_array(), *hops = json_array();
    json_object_set_new(json, "explain", why);
    json_object_set_new(json, "explain_baseline", baseline);
    json_object_set_new(json, "limiting_hops", hops);
    if (stops_to_json(&answer->route, any, true, why, err) != 0 ||
        stops_to_json(&answer->baseline, any, false, baseline, err) != 0)
        return -1;
    for (int i = 0; answer->route.hops && i < answer->route.n; i++)
        if (holds_route(&answer->route, answer->route.hops[i]))
            json_array_append_new(hops, json_integer(i));
    json_t *sizes = answer->route.n ? tuning_to_json(&answer->route, is_closed(answer)) : NULL;
    json_object_set_new(json, "all_reduce", sizes ? sizes : json_null());
    return print_json(json, err);
}

/* For people */

static void print_limit(const struct stop *stop, const struct limit *limit)
{
    char text[TCCL_SET_TEXT];
    for (int i = 0; limit->detailed && i < limit->set.count; i++) {
        if (!is_slow(stop, limit, i))
            continue;
        tccl_transfer_format(limit->set.transfers[i], text);
        printf("  slowest    %6.2f GB/s  %s, held by \"%s\"\n", limit->rates[i], text,
               limit->limits[i] ? limit->limits[i] : "nothing");
    }
    tccl_set_format(&limit->part, text);
    if (limit->part.count < limit->set.count)
        printf("  cause      %s alone, %d of %d transfers, would be as slow\n", text,
               limit->part.count, limit->set.count);
    else
        printf("  cause      all %d transfers together\n", limit->set.count);
}

static void print_runners(const struct stop *stop, const struct runners *runners, const char *what)
{
    char text[TCCL_CHAIN_TEXT];
    for (int i = 0; i < runners->count; i++) {
        tccl_chain_format(&runners->best[i].chain, &stop->class->source->machine, text);
        printf("  %-9s  %6.2f GB/s  %s\n", i ? "" : what, runners->best[i].gbps, text);
    }
}

static void print_others(const struct stop *stop, bool any)
{
    struct others others;
    find_others(stop, any, &others);
    if (others.as_fast.count > 2)
        others.as_fast.count = 2;
    print_runners(stop, &others.as_fast, "as fast");
    print_runners(stop, &others.slower, "next best");
}

static int print_stop(const struct route *route, int i, int n, bool any, bool with_runners,
                      struct tccl_error *err)
{
    const struct stop *stop = &route->stops[i];
    struct limit limit;
    char name[32], chain[TCCL_CHAIN_TEXT];
    if (limit_find(stop, &limit, err) != 0)
        return -1;
    format_nodes(i, n, name);
    printf("%s (%s): %.2f GB/s%s\n", name, stop->class->source->machine.name, stop->gbps,
           holds_route(route, stop->gbps) ? ", the limit of the ring" : "");
    for (int k = 0; k < stop_chains(stop); k++) {
        tccl_chain_format(stop_chain(stop, k), &stop->class->source->machine, chain);
        printf("  %-9s  %s\n", k ? "with" : "chain", chain);
    }
    print_limit(stop, &limit);
    if (with_runners)
        print_others(stop, any);
    return 0;
}

/* The first of the hops that limit the ring, and how many more there are. */
static void print_slow_hops(const struct route *route)
{
    int first = -1, more = 0;
    for (int i = 0; route->hops && i < route->n; i++) {
        if (!holds_route(route, route->hops[i]))
            continue;
        more += first >= 0;
        first = first < 0 ? i : first;
    }
    if (first < 0)
        return;
    printf("hop n%d to n%d: %.2f GB/s, %s", first + 1, (first + 1) % route->n + 1,
           route->hops[first],
           route->hops[first] > 0 ? "the limit of the ring" : "the NICs do not reach each other");
    if (more)
        printf("; as are %d more hops", more);
    putchar('\n');
}

static int print_route(const struct route *route, bool any, bool with_runners,
                       struct tccl_error *err)
{
    for (int i = 0, n; i < route->n; i += n) {
        n = route_alike(route, i);
        if (print_stop(route, i, n, any, with_runners, err) != 0)
            return -1;
    }
    print_slow_hops(route);
    return 0;
}

static int explain_text(const struct answer *answer, bool any, struct tccl_error *err)
{
    answer_print(answer, stdout);
    if (answer->nothing)
        return 0;
    printf("\nThis ring\n");
    if (print_route(&answer->route, any, true, err) != 0)
        return -1;
    tuning_print(&answer->route, is_closed(answer), stdout);
    if (!answer->baseline.n)
        return 0;
    printf("\nBaseline: NCCL's own rings\n");
    return print_route(&answer->baseline, any, false, err);
}

static int explain(const struct options *options, struct nodes *nodes, struct tccl_error *err)
{
    struct answer answer;
    int rc = options->ring ? evaluate(options, nodes, &answer, err)
                           : solve(options, nodes, &answer, err);
    if (rc == 0)
        rc = options->json ? explain_json(&answer, options->any, err)
                           : explain_text(&answer, options->any, err);
    answer_clear(&answer);
    return rc;
}

int command_explain(const struct options *options, struct tccl_error *err)
{
    struct nodes nodes;
    int rc = nodes_open(options, &nodes, err);
    if (rc == 0)
        rc = explain(options, &nodes, err);
    nodes_clear(&nodes);
    return rc;
}
