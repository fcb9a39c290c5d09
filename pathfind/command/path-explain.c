/* path-explain.c: tccl-path explain: what limits the rings, and the next best ones. */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "command/path.h"
#include "ring/latency.h"

enum { RUNNERS = 5 };

/* Other sets, best first. */
struct runner {
    double gbps;
    struct tccl_ring_set set;
};

struct runners {
    int count;
    struct runner best[RUNNERS];
};

/* Alternatives to a set: others as fast, and the next best ones. */
struct others {
    struct runners as_fast, slower;
};

/* Does this bandwidth limit the route? With a tolerance, because sums in another order differ in
 * the last digit. */
static bool holds_route(const struct route *route, double gbps)
{
    return gbps <= route->gbps * (1 + 1e-9);
}

/* Is this member one of the slowest, and the first of its kind? */
static bool is_slow(const struct stop *stop, const struct tccl_limit *limit, int i)
{
    for (int k = 0; k < i; k++)
        if (limit->side.transfers[k] == limit->side.transfers[i])
            return false;
    return limit->rates[i] <= stop_slowest(stop) * (1 + 1e-6);
}

/* "g0>g1 g0>g1 g1<m0": sorted, repeats included. Allocated; NULL if out of memory. */
static char *format_part(const struct tccl_side *part)
{
    char *text = NULL, member[12];
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    struct tccl_set set;
    if (!stream)
        return NULL;
    tccl_limit_set(part, &set);
    for (int i = 0, n = 0; i < set.count; i++)
        for (int k = 0; k < part->count; k++)
            if (part->transfers[k] == set.transfers[i]) {
                tccl_transfer_format(set.transfers[i], member);
                fprintf(stream, "%s%s", n++ ? " " : "", member);
            }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* Runners-up */

/* Keeps the best sets in order, without duplicates. */
static void keep(struct runners *runners, const struct tccl_ring_set *set, double gbps)
{
    if (runners->count == RUNNERS && gbps <= runners->best[RUNNERS - 1].gbps)
        return;
    for (int i = 0; i < runners->count; i++)
        if (tccl_ring_set_alike(&runners->best[i].set, set))
            return;
    int at = runners->count;
    while (at > 0 && runners->best[at - 1].gbps < gbps)
        at--;
    if (runners->count < RUNNERS)
        runners->count++;
    memmove(&runners->best[at + 1], &runners->best[at],
            (runners->count - 1 - at) * sizeof(*runners->best));
    runners->best[at] = (struct runner){gbps, *set};
}

static void offer(struct others *others, const struct stop *stop, const struct tccl_ring_set *set,
                  double gbps)
{
    if (!tccl_ring_set_alike(&stop->set, set))
        keep(gbps >= stop->gbps * (1 - 1e-9) ? &others->as_fast : &others->slower, set, gbps);
}

/* What the table has: of other port pairs the best chains, or as many rings at once. */
static void offer_table(const struct stop *stop, struct others *others)
{
    int n = stop->set.n;
    for (const struct tccl_result *own = NULL;
         (own = tccl_table_next(stop->class->table, own, n > 1 ? TCCL_SETS : 1 << TCCL_BEST));)
        if (n == 1 && !own->chain.closed)
            offer(others, stop, &(struct tccl_ring_set){1, {own->chain}}, own->gbps);
        else if (n > 1 && own->set->n == n && own->chain.closed == stop_first(stop)->closed)
            offer(others, stop, own->set, own->gbps);
}

/* Measures a set in which one ring is changed. One that the profile has not measured is skipped,
 * and one that reads where neither the answer does nor the table, which was asked whether P2P may.
 */
static void offer_changed(const struct stop *stop, bool any, const struct tccl_ring_set *set,
                          struct others *others)
{
    struct stop changed = {.class = stop->class, .set = *set};
    if (tccl_ring_set_check(set, &stop->class->source->machine, NULL) != 0 ||
        (!any && tccl_ring_set_reads(set) && !tccl_ring_set_reads(&stop->set) &&
         !tccl_table_reads(stop->class->table)) ||
        (!any && tccl_expressible(&stop->class->source->machine, set->rings, set->n, NULL) != 0) ||
        stop_measure(&changed, NULL) != 0)
        return;
    offer(others, stop, set, changed.gbps);
}

static struct tccl_edge edge_of(int kind)
{
    return kind < TCCL_BOUNCE ? (struct tccl_edge){kind, 0}
                              : (struct tccl_edge){TCCL_BOUNCE, kind - TCCL_BOUNCE};
}

static int count_kinds(const struct stop *stop)
{
    return TCCL_BOUNCE + stop->class->source->machine.n_memories;
}

/* All that differ in one edge of one ring, or, with places, in the places of two of its GPUs. */
static void change_one(const struct stop *stop, bool any, int ring, bool places,
                       struct others *others)
{
    const struct tccl_chain *chain = &stop->set.rings[ring];
    for (int i = 0; i < tccl_chain_edges(chain); i++)
        for (int kind = 0; kind < count_kinds(stop); kind++) {
            struct tccl_ring_set changed = stop->set;
            changed.rings[ring].edges[i] = edge_of(kind);
            offer_changed(stop, any, &changed, others);
        }
    for (int i = 1; places && i < chain->n_gpus; i++)
        for (int k = i + 1; k < chain->n_gpus; k++) {
            struct tccl_ring_set changed = stop->set;
            changed.rings[ring].gpus[i] = chain->gpus[k];
            changed.rings[ring].gpus[k] = chain->gpus[i];
            offer_changed(stop, any, &changed, others);
        }
}

/* All orders of the GPUs from the given place on, the first one stays; then all kinds of edges. */
static void offer_all(const struct stop *stop, bool any, const struct tccl_ring_set *one, int place,
                      int edge, struct others *others)
{
    const struct tccl_chain *chain = &one->rings[0];
    bool placed = place == chain->n_gpus;
    if (placed && edge == tccl_chain_edges(chain)) {
        offer_changed(stop, any, one, others);
        return;
    }
    for (int i = placed ? 0 : place; i < (placed ? count_kinds(stop) : chain->n_gpus); i++) {
        struct tccl_ring_set changed = *one;
        if (placed) {
            changed.rings[0].edges[edge] = edge_of(i);
        } else {
            changed.rings[0].gpus[place] = chain->gpus[i];
            changed.rings[0].gpus[i] = chain->gpus[place];
        }
        offer_all(stop, any, &changed, place + !placed, edge + placed, others);
    }
}

/* One ring: of several nodes the best of other ports, if they are known; of a single node all
 * others if there are few. Else, and of several rings: those that differ in one edge, or, in rings
 * of a single node and sets, in the places of two GPUs of one ring. */
static void find_others(const struct stop *stop, bool any, struct others *others)
{
    enum { MAX_RINGS = 100000 }; /* with more, only those that differ little are tried */
    bool closed = stop_first(stop)->closed, several = stop->set.n > 1;
    double rings = 1;
    for (int i = 1; i < stop_first(stop)->n_gpus; i++)
        rings *= i;
    rings *= pow(count_kinds(stop), stop_first(stop)->n_gpus);
    *others = (struct others){.as_fast.count = 0};
    if (stop->class->solved && !closed && !several) {
        offer_table(stop, others);
        return;
    }
    if (several)
        offer_table(stop, others);
    for (int i = 0; i < stop->set.n; i++)
        change_one(stop, any, i, closed || several, others);
    if (closed && !several && rings <= MAX_RINGS)
        offer_all(stop, any, &stop->set, 1, 0, others);
}

/* JSON */

static json_t *limit_to_json(const struct stop *stop, const struct tccl_limit *limit)
{
    char text[12];
    cleanup_free char *part = format_part(&limit->part);
    json_t *slowest = json_array();
    for (int i = 0; limit->together && i < limit->side.count; i++) {
        if (!is_slow(stop, limit, i))
            continue;
        tccl_transfer_format(limit->side.transfers[i], text);
        json_array_append_new(slowest, json_pack("{s:s, s:f, s:s?}", "transfer", text, "gbps",
                                                 limit->rates[i], "limit", limit->held[i]));
    }
    return json_pack("{s:o, s:s?}", "slowest", slowest, "slow_part", part);
}

static json_t *runners_to_json(const struct stop *stop, const struct runners *runners)
{
    json_t *json = json_array();
    char text[TCCL_RINGS_TEXT];
    for (int i = 0; i < runners->count; i++) {
        tccl_ring_set_format(&runners->best[i].set, &stop->class->source->machine, text);
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
        struct tccl_limit limit;
        char name[32];
        n = route_alike(route, i);
        if (stop_limit(stop, &limit, err) != 0)
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

/* What all-reduces take with these rings and with NCCL's own. */
static json_t *times_to_json(const struct answer *answer)
{
    const struct tccl_decision_case asked = answer_case(answer);
    json_t *list = json_array();
    for (int i = 0; i < TCCL_LATENCY_SIZES && asked.nccl.gbps > 0 && asked.gpus > 1; i++) {
        double ours, nccl;
        tccl_decision_times(&asked, i, &ours, &nccl);
        json_array_append_new(list, json_pack("{s:I, s:f, s:f}", "bytes",
                                              (json_int_t)tccl_latency_size(i), "us", ours,
                                              "baseline_us", nccl));
    }
    return list;
}

/* For people */

static void print_limit(const struct stop *stop, const struct tccl_limit *limit)
{
    cleanup_json json_t *json = limit_to_json(stop, limit);
    const char *part = json_string_value(json_object_get(json, "slow_part"));
    const json_t *slow;
    size_t i;
    json_array_foreach(json_object_get(json, "slowest"), i, slow)
    {
        const char *held = json_string_value(json_object_get(slow, "limit"));
        printf("  slowest    %6.2f GB/s  %s, held by \"%s\"\n",
               json_real_value(json_object_get(slow, "gbps")),
               json_string_value(json_object_get(slow, "transfer")), held ? held : "nothing");
    }
    if (limit->part.count < limit->side.count)
        printf("  cause      %s alone, %d of %d transfers, would be as slow\n", part ? part : "",
               limit->part.count, limit->side.count);
    else
        printf("  cause      all %d transfers together\n", limit->side.count);
}

static void print_runners(const struct stop *stop, const struct runners *runners, const char *what)
{
    cleanup_json json_t *json = runners_to_json(stop, runners);
    const json_t *one;
    size_t i;
    json_array_foreach(json, i, one) printf("  %-9s  %6.2f GB/s  %s\n", i ? "" : what,
                                            json_real_value(json_object_get(one, "gbps")),
                                            json_string_value(json_object_get(one, "chain")));
}

static int print_stop(const struct route *route, int i, int n, bool any, bool with_runners,
                      struct tccl_error *err)
{
    const struct stop *stop = &route->stops[i];
    struct tccl_limit limit;
    char name[32], chain[TCCL_CHAIN_TEXT];
    if (stop_limit(stop, &limit, err) != 0)
        return -1;
    format_nodes(i, n, name);
    printf("%s (%s): %.2f GB/s%s\n", name, stop->class->source->machine.name, stop->gbps,
           holds_route(route, stop->gbps) ? ", the limit of the ring" : "");
    for (int k = 0; k < stop->set.n; k++) {
        tccl_chain_format(&stop->set.rings[k], &stop->class->source->machine, chain);
        printf("  %-9s  %s\n", k ? "with" : "chain", chain);
    }
    print_limit(stop, &limit);
    if (with_runners) {
        struct others others;
        find_others(stop, any, &others);
        if (others.as_fast.count > 2)
            others.as_fast.count = 2;
        print_runners(stop, &others.as_fast, "as fast");
        print_runners(stop, &others.slower, "next best");
    }
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

/* Every other size, and the last one. */
static void print_times(const struct answer *answer)
{
    cleanup_json json_t *times = times_to_json(answer);
    char size[16];
    if (answer->is_baseline || json_array_size(times) == 0)
        return;
    printf(
        "\nTimes of all-reduces along rings, by NCCL's own latencies and %.1f us for a way through "
        "host memory\n  %-8s %12s %12s\n",
        TCCL_BOUNCE_US, "size", route_rings(&answer->route) > 1 ? "these" : "this", "NCCL's own");
    for (int i = 0; i < TCCL_LATENCY_SIZES; i += i == TCCL_LATENCY_SIZES - 2 ? 1 : 2) {
        const json_t *time = json_array_get(times, (size_t)i);
        double ours = json_real_value(json_object_get(time, "us")),
               nccl = json_real_value(json_object_get(time, "baseline_us"));
        tccl_latency_format_size(tccl_latency_size(i), size);
        printf("  %-8s %9.0f us %9.0f us  %.2fx\n", size, ours, nccl, nccl / ours);
    }
}

/* Appends by what its first part that holds it is limited. */
static void print_held(const struct route *route)
{
    for (int i = 0; i < route->n; i++) {
        struct tccl_limit limit;
        if (!holds_route(route, route->stops[i].gbps) ||
            stop_limit(&route->stops[i], &limit, NULL) != 0)
            continue;
        cleanup_json json_t *json = limit_to_json(&route->stops[i], &limit);
        const char *held =
            tccl_text_of(json_array_get(json_object_get(json, "slowest"), 0), "limit");
        if (*held)
            printf(" (limited by \"%s\")", held);
        else
            printf(" (limited by %d transfers at once)", limit.part.count);
        return;
    }
    fputs(route->n ? " (limited between nodes)" : "", stdout);
}

/* What limits NCCL, what limits ours, and by how much, in one sentence. */
static void print_lead(const struct answer *answer)
{
    const struct route *ours = &answer->route, *nccl = &answer->baseline;
    if (!nccl->n || !(nccl->gbps > 0) || !(ours->gbps > 0) || !isfinite(answer_ratio(answer)))
        return;
    printf("A large all-reduce has %.2f GB/s by NCCL's own rings", nccl->reach);
    print_held(nccl);
    printf(", %.2f GB/s by %s", ours->reach, route_rings(ours) > 1 ? "these" : "this one");
    print_held(ours);
    printf(": %.2f times as fast.\n\n", answer_ratio(answer));
}

static const char transfers_legend[] =
    "\nTransfers: g0>m1 GPU 0 writes to memory 1, g1<m1 GPU 1 reads from there, n0 is a NIC. "
    "Slowest:\nthose that hold the others up. Held by: what of the machine is used up. Cause: the "
    "fewest of\nthem that would be as slow without the others.\n";

static int explain(const struct options *options, const struct answer *answer,
                   struct tccl_error *err)
{
    bool any = options->any;
    json_t *found = NULL;
    int rc = options->busy && !answer->nothing ? answer_beside(options, answer, &found, err) : 0;
    cleanup_json json_t *beside = found;
    if (rc != 0)
        return rc;
    if (options->json) {
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
        json_object_set_new(json, "times", times_to_json(answer));
        if (beside)
            json_object_set(json, "beside", beside);
        return print_json(json, err);
    }
    print_lead(answer);
    answer_print(answer, stdout);
    if (answer->nothing)
        return 0;
    printf("\n%s\n", route_rings(&answer->route) > 1 ? "These rings" : "This ring");
    if (print_route(&answer->route, any, true, err) != 0)
        return -1;
    print_times(answer);
    if (beside)
        answer_beside_print(beside);
    if (answer->baseline.n) {
        printf("\nBaseline: NCCL's own rings\n");
        if (print_route(&answer->baseline, any, false, err) != 0)
            return -1;
    }
    fputs(transfers_legend, stdout);
    return 0;
}

int command_explain(const struct options *options, struct tccl_error *err)
{
    return answer_command(options->ring ? evaluate : solve, explain, options, err);
}
