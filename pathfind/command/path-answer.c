/* path-answer.c: the output of solve, eval and explain, as JSON and as text. */
#include "command/path.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/numberset.h"
#include "machine/meter.h"
#include "ring/latency.h"
#include "ring/ring.h"

void answer_complete(struct answer *answer)
{
    bool closed = answer->route.n == 1 && stop_first(answer->route.stops)->closed;
    if (route_baseline(&answer->route, closed, &answer->baseline, &answer->no_baseline) != 0)
        route_clear(&answer->baseline);
    route_expressible(&answer->route, &answer->not_expressible);
}

void format_nodes(int first, int count, char text[static 32])
{
    if (count == 1)
        snprintf(text, 32, "n%d", first + 1);
    else
        snprintf(text, 32, "n%d-n%d", first + 1, first + count);
}

int route_alike(const struct route *route, int i)
{
    int count = 1;
    while (i + count < route->n && route->stops[i + count].class == route->stops[i].class &&
           memcmp(&route->stops[i + count].set, &route->stops[i].set,
                  sizeof(struct tccl_ring_set)) == 0)
        count++;
    return count;
}

/* JSON */

/* How far the ring may be below the proven bound, as a ratio. */
static double answer_gap(const struct answer *answer)
{
    if (answer->bound <= answer->route.gbps * (1 + 1e-9))
        return 0;
    return 1 - answer->route.gbps / answer->bound;
}

double answer_ratio(const struct answer *answer)
{
    return answer->baseline.n && answer->baseline.reach > 0
               ? answer->route.reach / answer->baseline.reach
               : NAN;
}

/* Of all nodes, each the ring that has most. */
static int count_bounces(const struct route *route)
{
    int bounces = 0;
    for (int i = 0; i < route->n; i++)
        bounces += tccl_bounces(route->stops[i].set.rings, route->stops[i].set.n);
    return bounces;
}

struct tccl_decision_case answer_case(const struct answer *answer)
{
    const struct route *route = &answer->route, *own = &answer->baseline;
    struct tccl_decision_case asked = {
        .ours = {.gbps = route->reach,
                 .share = 1,
                 .rings = route_rings(route),
                 .bounces = count_bounces(route)},
        .nccl = {.gbps = own->n ? own->reach : 0, .share = 1, .bounces = count_bounces(own)},
        .nodes = route->n,
        .measured = true};
    for (int i = 0; i < route->n; i++) {
        const struct node_class *class = route->stops[i].class;
        asked.noise = fmax(asked.noise, class->class->noise);
        asked.gpus += class->class->n_gpus;
        asked.measured = asked.measured && tccl_meter_measured(class->source->name);
    }
    return asked;
}

/* Would a job get these rings, and not a single one, or the baseline? If not, why. */
static bool answer_gains(const struct answer *answer, char why[static TCCL_DECISION_TEXT])
{
    const struct tccl_decision_case asked = answer_case(answer);
    const struct tccl_decision decision = tccl_decide(&asked);
    tccl_decision_say(&asked, &decision, why);
    if (answer->single > 0)
        snprintf(why, TCCL_DECISION_TEXT,
                 "a job gets the best single ring (%.1f GB/s): %d at once gain too little for "
                 "their channels",
                 answer->single, asked.ours.rings);
    return decision.decided == TCCL_TAKE && !(answer->single > 0);
}

/* {"along", "gbps", "nic", "gpus"} */
static json_t *tree_to_json(const struct stop *stop)
{
    const struct tccl_tree *tree = stop_tree(stop);
    json_t *gpus;
    if (!tree)
        return json_null();
    gpus = json_array();
    for (int i = 0; i < stop_first(stop)->n_gpus; i++)
        json_array_append_new(gpus, json_integer(tree->gpus[i]));
    return json_pack("{s:f, s:f, s:s, s:o}", "along", tree->along, "gbps", tree->gbps, "nic",
                     stop->class->source->machine.nics[tree->nic].name, "gpus", gpus);
}

static json_t *stop_to_json(const struct stop *stop, int i)
{
    const struct source *source = stop->class->source;
    json_t *json = tccl_chain_to_json(stop_first(stop), &source->machine);
    json_object_set_new(json, "name", json_sprintf("n%d", i + 1));
    json_object_set_new(json, "machine", json_string(source->machine.name));
    json_object_set_new(json, "source", json_string(source->name));
    json_object_set_new(json, "gbps", json_real(stop->gbps));
    json_t *chains = json_array();
    for (int k = 0; k < stop->set.n; k++)
        json_array_append_new(chains, tccl_chain_to_json(&stop->set.rings[k], &source->machine));
    json_object_set_new(json, "chains", chains);
    if (!stop->baseline && !stop_first(stop)->closed)
        json_object_set_new(json, "tree", tree_to_json(stop));
    return json;
}

/* The NICs by which the rings leave a stop, or come in. */
static json_t *nics_to_json(const struct stop *stop, bool leave)
{
    json_t *nics = json_array();
    for (int i = 0; i < stop->set.n; i++) {
        const struct tccl_chain *chain = &stop->set.rings[i];
        int nic = leave ? chain->exit.nic : chain->entry.nic;
        json_array_append_new(nics, json_string(stop->class->source->machine.nics[nic].name));
    }
    return nics;
}

/* One entry for each ring and node. */
static json_t *rings_to_json(const struct route *route)
{
    cleanup_free const struct tccl_chain **chains = calloc(route->n, sizeof(*chains));
    json_t *rings = json_array();
    for (int ring = 0; chains && ring < route_rings(route); ring++) {
        route_ring(route, ring, chains);
        for (int i = 0; i < route->n; i++) {
            json_t *json = tccl_chain_to_json(chains[i], &route->stops[i].class->source->machine);
            json_object_set_new(json, "ring", json_integer(ring + 1));
            json_object_set_new(json, "node", json_sprintf("n%d", i + 1));
            json_array_append_new(rings, json);
        }
    }
    return rings;
}

/* The NICs that meet none of a node beside theirs. */
static json_t *left_out_to_json(const struct route *route)
{
    json_t *list = json_array();
    for (int i = 0; i < route->n; i++) {
        const struct tccl_machine *machine = &route->stops[i].class->source->machine;
        for (int k = 0; k < machine->n_nics; k++)
            if (!route_meets(route, i, k))
                json_array_append_new(
                    list, json_pack("{s:o, s:s, s:s}", "node", json_sprintf("n%d", i + 1), "nic",
                                    machine->nics[k].name, "fabric", machine->nics[k].fabric));
    }
    return list;
}

static void set_route(json_t *json, const struct answer *answer)
{
    const struct route *route = &answer->route;
    /* Of NCCL's own the first one: baseline_rings has them all. */
    cleanup_free char *ring =
        answer->is_baseline ? route_format_ring(route, 0) : route_format(route);
    json_t *nodes = json_array(), *hops = json_array();
    for (int i = 0; i < route->n; i++)
        json_array_append_new(nodes, stop_to_json(&route->stops[i], i));
    for (int i = 0; route->hops && i < route->n; i++) {
        json_t *out = nics_to_json(&route->stops[i], true);
        json_t *in = nics_to_json(&route->stops[(i + 1) % route->n], false);
        json_array_append_new(hops,
                              json_pack("{s:o, s:o, s:O, s:O, s:o, s:o, s:f}", "from",
                                        json_sprintf("n%d", i + 1), "to",
                                        json_sprintf("n%d", (i + 1) % route->n + 1), "from_nic",
                                        json_array_get(out, 0), "to_nic", json_array_get(in, 0),
                                        "from_nics", out, "to_nics", in, "gbps", route->hops[i]));
    }
    json_object_set_new(json, "gbps", json_real(route->gbps));
    json_object_set_new(json, "reach_gbps", json_real(route->reach));
    json_object_set_new(json, "ring", ring ? json_string(ring) : json_null());
    json_object_set_new(json, "rings", rings_to_json(route));
    json_object_set_new(json, "nodes", nodes);
    json_object_set_new(json, "hops", hops);
    json_object_set_new(json, "left_out", left_out_to_json(route));
}

static void set_baseline(json_t *json, const struct answer *answer)
{
    const struct route *baseline = &answer->baseline;
    json_t *rings = route_to_json(baseline);
    char why[TCCL_DECISION_TEXT];
    json_object_set_new(json, "baseline_gbps",
                        baseline->n ? json_real(baseline->gbps) : json_null());
    json_object_set_new(json, "baseline_reach_gbps",
                        baseline->n ? json_real(baseline->reach) : json_null());
    json_object_set(json, "baseline_ring", baseline->n ? json_array_get(rings, 0) : json_null());
    json_object_set_new(json, "baseline_rings", rings);
    double ratio = answer_ratio(answer);
    json_object_set_new(json, "ratio", isfinite(ratio) ? json_real(ratio) : json_null());
    json_object_set_new(json, "gains", json_boolean(answer_gains(answer, why)));
    if (*why)
        json_object_set_new(json, "why_not", json_string(why));
    if (answer->no_baseline.text[0])
        json_object_set_new(json, "no_baseline", json_string(answer->no_baseline.text));
}

/* Were on some nodes other GPUs measured, which are alike? */
static bool is_moved(const struct answer *answer)
{
    bool moved = false;
    for (int i = 0; i < answer->route.n && answer->solved; i++)
        moved = moved || answer->route.stops[i].class->table->moved;
    return moved;
}

json_t *answer_to_json(const struct answer *answer)
{
    if (answer->nothing)
        return json_pack("{s:s, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:[], s:i, s:[], "
                         "s:[], s:[], s:[]}",
                         "state", "nothing-to-do", "gbps", "reach_gbps", "baseline_reach_gbps",
                         "bound", "bound_gbps", "gap", "baseline_gbps", "ratio", "ring",
                         "baseline_ring", "baseline_rings", "measured", 0, "rings", "nodes", "hops",
                         "left_out");
    bool bound = answer->solved && isfinite(answer->bound);
    json_t *json = json_pack("{s:s}", "state", "ok");
    set_route(json, answer);
    set_baseline(json, answer);
    json_object_set_new(json, "bound", bound ? json_real(answer->bound) : json_null());
    json_object_set_new(json, "bound_gbps", bound ? json_real(answer->bound) : json_null());
    json_object_set_new(json, "gap", bound ? json_real(answer_gap(answer)) : json_null());
    json_object_set_new(json, "measured", json_integer(answer->measured));
    json_object_set_new(json, "moved", json_boolean(is_moved(answer)));
    json_object_set_new(json, "expressible", json_boolean(!answer->not_expressible.text[0]));
    if (answer->not_expressible.text[0])
        json_object_set_new(json, "why", json_string(answer->not_expressible.text));
    return json;
}

int print_json(json_t *json, struct tccl_error *err)
{
    if (!json)
        return tccl_fail(err, "out of memory");
    int rc = json_dumpf(json, stdout, JSON_INDENT(2) | TCCL_JSON_DIGITS);
    if (rc < 0 || putchar('\n') == EOF || fflush(stdout) == EOF)
        return tccl_fail(err, "standard output: %s", strerror(errno));
    return 0;
}

/* For people */

static void print_bandwidth(const struct answer *answer, FILE *out)
{
    int rings = route_rings(&answer->route);
    const char *none = rings > 1 ? "no rings are" : "no ring is";
    fprintf(out, "bandwidth  %.2f GB/s", answer->route.gbps);
    if (rings > 1)
        fprintf(out, " by %d rings at once", rings);
    if (answer->solved && answer_gap(answer) == 0)
        fprintf(out, ", proven: %s better", none);
    else if (answer->solved && isfinite(answer->bound))
        fprintf(out, ", %s better than %.2f GB/s (gap %.1f %%)", none, answer->bound,
                100 * answer_gap(answer));
    fprintf(out, "\n");
}

static void print_baseline(const struct answer *answer, FILE *out)
{
    if (!answer->baseline.n) {
        fprintf(out, "baseline   unknown: %s\n", answer->no_baseline.text);
        return;
    }
    char why[TCCL_DECISION_TEXT];
    bool gains = answer_gains(answer, why);
    fprintf(out, "baseline   %.2f GB/s by NCCL's own rings", answer->baseline.gbps);
    if (isfinite(answer_ratio(answer)))
        fprintf(out, ": in a large all-reduce %s %.2f times as fast%s",
                route_rings(&answer->route) > 1 ? "these rings are" : "this ring is",
                answer_ratio(answer), gains ? "" : ", and would not be applied");
    fprintf(out, "\n");
    if (*why)
        fprintf(out, "why not    %s\n", why);
}

static void print_stops(const struct route *route, FILE *out)
{
    char name[32], gpus[64], chain[TCCL_CHAIN_TEXT];
    fprintf(out, "%-10s %-16s %-8s %-7s %7s  chain\n", "node", "machine", "source", "GPUs", "GB/s");
    for (int i = 0, n; i < route->n; i += n) {
        const struct stop *stop = &route->stops[i];
        n = route_alike(route, i);
        format_nodes(i, n, name);
        tccl_numberset_format(stop->class->gpus, gpus, sizeof(gpus));
        tccl_chain_format(stop_first(stop), &stop->class->source->machine, chain);
        fprintf(out, "%-10s %-16s %-8s %-7s %7.2f  %s\n", name, stop->class->source->machine.name,
                stop->class->source->name, gpus, stop->gbps, chain);
        for (int k = 1; k < stop->set.n; k++) {
            tccl_chain_format(&stop->set.rings[k], &stop->class->source->machine, chain);
            fprintf(out, "%52s  %s\n", "at the same time", chain);
        }
    }
}

/* The first one, and how many more there are. */
static void print_left_out(const struct route *route, FILE *out)
{
    cleanup_json json_t *list = left_out_to_json(route);
    const char *node, *nic, *fabric;
    int more = (int)json_array_size(list) - 1;
    if (json_unpack(json_array_get(list, 0), "{s:s, s:s, s:s}", "node", &node, "nic", &nic,
                    "fabric", &fabric) != 0)
        return;
    fprintf(out, "left out   %s: %s: its fabric (%s) is not that of a NIC of both nodes beside it",
            node, nic, fabric);
    if (more > 0)
        fprintf(out, "; and %d more NIC%s", more, more == 1 ? "" : "s");
    fputc('\n', out);
}

void answer_print(const struct answer *answer, FILE *out)
{
    if (answer->nothing) {
        fprintf(out, "nothing to do: one GPU in all\n");
        return;
    }
    print_stops(&answer->route, out);
    /* The slowest and the fastest. */
    double slowest = INFINITY, fastest = 0;
    for (int i = 0; answer->route.hops && i < answer->route.n; i++) {
        slowest = fmin(slowest, answer->route.hops[i]);
        fastest = fmax(fastest, answer->route.hops[i]);
    }
    if (answer->route.hops && slowest == fastest)
        fprintf(out, "hops       %.2f GB/s each\n", slowest);
    else if (answer->route.hops)
        fprintf(out, "hops       %.2f to %.2f GB/s\n", slowest, fastest);
    print_left_out(&answer->route, out);
    print_bandwidth(answer, out);
    /* NCCL's block does one thing after the other (ring/reach.h). */
    fprintf(out, "all-reduce %.2f GB/s of it in large ones", answer->route.reach);
    if (!answer->is_baseline && answer->baseline.n)
        fprintf(out, "; by NCCL's own rings %.2f", answer->baseline.reach);
    fprintf(out, "\n");
    if (answer->is_baseline) {
        fprintf(out, "ring       the baseline: NCCL's own rings\n");
    } else {
        print_baseline(answer, out);
        if (answer->baseline.n)
            print_stops(&answer->baseline, out);
    }
    fprintf(out, "measured   %ld load%s%s\n", answer->measured, answer->measured == 1 ? "" : "s",
            is_moved(answer) ? ", of other GPUs like these" : "");
    if (answer->not_expressible.text[0])
        fprintf(out, "note       a stock NCCL can't be made to build it: %s\n",
                answer->not_expressible.text);
}

int answer_show(const struct options *options, const struct answer *answer, struct tccl_error *err)
{
    if (options->json) {
        cleanup_json json_t *json = answer_to_json(answer);
        return print_json(json, err);
    }
    answer_print(answer, stdout);
    return 0;
}

int answer_command(answer_finder *find, answer_shower *show, const struct options *options,
                   struct tccl_error *err)
{
    struct nodes nodes;
    struct answer answer = {.nothing = false};
    int rc = nodes_open(options, &nodes, err);
    if (rc == 0)
        rc = find(options, &nodes, &answer, err);
    if (rc == 0)
        rc = show(options, &answer, err);
    route_clear(&answer.route);
    route_clear(&answer.baseline);
    nodes_clear(&nodes);
    return rc;
}
