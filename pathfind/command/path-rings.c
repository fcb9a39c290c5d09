/* path-rings.c: several rings that run at once, on one node or over several. The best set of each
 * node class is found as if all nodes were equal, with as many rings as any class has in its best
 * set; all go into the classes' tables, from which the nodes are merged. The best single rings and
 * the baseline are where the search begins. */
#include "command/path.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "search/rings.h"

enum { BUDGET = 10000, STARTS = 1 + TCCL_MAX_NICS * TCCL_MAX_NICS };

/* What is being found, and for each node class its best set as if all nodes were equal. */
struct finding {
    const struct options *options;
    const struct nodes *nodes;
    bool closed;
    struct route baseline; /* n = 0: unknown */
    struct tccl_rings_result *results;
    long *rated;
};

bool rings_wanted(const struct options *options, const struct node_class *class)
{
    return options->rings != 1 && class->source->model && !class->source->profile &&
           (class->source->machine.n_nics > 0 || class->class->n_gpus > 1);
}

/* No single ring on the class is faster, GB/s. */
static double single_bound(const struct node_class *class, bool closed)
{
    const struct tccl_node_class *own = class->class;
    double bound = closed ? tccl_class_ring(own)->bound : 0;
    for (int i = 0; i < tccl_class_pairs(own) && !closed; i++)
        bound = fmax(bound, own->seen[i].bound);
    return bound;
}

/* The baseline, and the best single rings. Returns how many. */
static int list_starts(const struct finding *finding, const struct node_class *class, bool reads,
                       struct tccl_ring_set *starts)
{
    const struct tccl_node_class *own = class->class;
    int n = 0;
    for (int i = 0; i < finding->baseline.n && n == 0; i++)
        if (finding->baseline.stops[i].class == class)
            starts[n++] = finding->baseline.stops[i].set;
    for (int i = 0; i < tccl_class_first_set(own); i++)
        if (own->seen[i].set.n > 0 && (i == tccl_class_pairs(own)) == finding->closed)
            starts[n++] = own->seen[i].set;
    for (int i = 0; i < n && !finding->options->any; i++)
        tccl_ring_set_turn(&starts[i], reads);
    return n;
}

/* The best set of a class whose P2P edges read, or write, into its table. */
static int search_kind(const struct finding *finding, struct node_class *class,
                       const struct tccl_rings_options *wanted, struct tccl_rings_result *result,
                       struct tccl_error *err)
{
    cleanup_free struct tccl_ring_set *starts = calloc(STARTS, sizeof(*starts));
    if (!starts)
        return tccl_fail(err, "out of memory");
    if (tccl_rings_find(class->source->model, class->gpus, finding->closed, wanted, starts,
                        list_starts(finding, class, wanted->reads, starts), result, err) != 0)
        return tccl_fail_in(err, "%s", class->source->path);
    *finding->rated += result->rated;
    /* A single ring that is better than the one in the table takes its place. */
    struct tccl_result *kept =
        result->set.n == 1 ? tccl_table_place(class->table, &result->set.rings[0]) : NULL;
    if (kept && result->gbps > kept->gbps) {
        kept->chain = result->set.rings[0];
        kept->gbps = result->gbps;
        kept->bound = fmax(kept->bound, result->gbps);
    }
    if (result->set.n > 1)
        tccl_table_keep_set(class->table, &result->set, result->gbps, result->bound);
    return node_class_refresh(class, err);
}

/* The best set of a class; of both kinds, where P2P may read. */
static int search_class(const struct finding *finding, struct node_class *class,
                        struct tccl_rings_options *wanted, struct tccl_rings_result *result,
                        struct tccl_error *err)
{
    struct tccl_rings_result reading;
    wanted->reads = false;
    if (search_kind(finding, class, wanted, result, err) != 0)
        return -1;
    wanted->reads = !wanted->any && tccl_table_reads(class->table);
    if (!wanted->reads)
        return 0;
    if (search_kind(finding, class, wanted, &reading, err) != 0)
        return -1;
    const double bound = fmax(result->bound, reading.bound);
    if (reading.gbps > result->gbps * (1 + 1e-9))
        *result = reading;
    result->bound = bound;
    return 0;
}

/* The NICs whose fabrics all classes have, as a mask. */
static uint32_t common_nics(const struct nodes *nodes, const struct tccl_machine *machine)
{
    uint32_t common = 0;
    for (int i = 0; i < machine->n_nics; i++) {
        int have = 0;
        for (int k = 0; k < nodes->n_classes; k++) {
            const struct tccl_machine *other = &nodes->classes[k]->source->machine;
            int nic = 0;
            while (nic < other->n_nics && strcmp(other->nics[nic].fabric, machine->nics[i].fabric))
                nic++;
            have += nic < other->n_nics;
        }
        common |= (uint32_t)(have == nodes->n_classes) << i;
    }
    return common;
}

/* NICs are on several fabrics, so the best set of the class may be none of all nodes: with rings
 * that change places from node to node, as these close over some numbers of nodes only; through
 * those NICs whose fabrics all nodes have, *result then; and among nodes of several kinds through
 * those of each such fabric alone. */
static int search_fabrics(const struct finding *finding, struct node_class *class,
                          struct tccl_rings_options *wanted, struct tccl_rings_result *result,
                          struct tccl_error *err)
{
    const struct tccl_machine *machine = &class->source->machine;
    uint32_t common = common_nics(finding->nodes, machine);
    double bound = result->bound;
    struct tccl_rings_result other;
    wanted->turns = true;
    int status = search_class(finding, class, wanted, &other, err);
    wanted->turns = false;
    if (status == 0 && common && common + 1 != UINT32_C(1) << machine->n_nics) {
        wanted->nics = common;
        status = search_class(finding, class, wanted, result, err);
        result->bound = bound;
    }
    for (int i = 0; i < machine->n_nics && finding->nodes->n_classes > 1 && status == 0; i++) {
        wanted->nics = tccl_machine_fabric(machine, i);
        if ((common >> i & 1) && __builtin_ctz(wanted->nics) == i && wanted->nics != common)
            status = search_class(finding, class, wanted, &other, err);
    }
    wanted->nics = 0;
    return status;
}

/* So many rings (0: any number) of a class, in all ways that may be wanted. */
static int search_ways(const struct finding *finding, struct node_class *class,
                       struct tccl_rings_options *wanted, struct tccl_rings_result *result,
                       struct tccl_error *err)
{
    const struct tccl_machine *machine = &class->source->machine;
    if (search_class(finding, class, wanted, result, err) != 0)
        return -1;
    if (finding->closed || tccl_machine_fabric(machine, 0) + 1 == UINT32_C(1) << machine->n_nics)
        return 0;
    return search_fabrics(finding, class, wanted, result, err);
}

static int search_all(const struct finding *finding, double *bounds, struct tccl_error *err)
{
    const struct options *options = finding->options;
    const struct nodes *nodes = finding->nodes;
    struct tccl_rings_options wanted = {
        .rings = options->rings > 0 ? (int)options->rings : 0,
        .any = options->any,
        .gap = options->gap >= 0 ? options->gap : 0.03,
        .seed = 1,
    };
    long budget = options->budget > 0 ? options->budget : BUDGET;
    for (int i = 0; i < nodes->n_classes; i++) {
        struct node_class *class = nodes->classes[i];
        if (!rings_wanted(options, class))
            continue;
        long before = tccl_search_measured(class->source->search);
        wanted.budget = budget > before ? budget - before : 1;
        wanted.single_bound = single_bound(class, finding->closed);
        if (search_ways(finding, class, &wanted, &finding->results[i], err) != 0)
            return -1;
        bounds[i] = finding->results[i].bound;
    }
    for (int i = 0; i < nodes->n_classes && !finding->closed; i++)
        for (int rings = 2; rings <= TCCL_CHAIN_RINGS; rings++) {
            struct tccl_rings_result result;
            bool others = false; /* has another class its best set with as many? */
            for (int k = 0; k < nodes->n_classes; k++)
                others = others || finding->results[k].set.n == rings;
            if (!rings_wanted(options, nodes->classes[i]) || !others ||
                finding->results[i].set.n == rings)
                continue;
            wanted.rings = rings;
            wanted.single_bound = single_bound(nodes->classes[i], false);
            if (search_ways(finding, nodes->classes[i], &wanted, &result, err) != 0)
                return -1;
        }
    return 0;
}

int rings_find(const struct options *options, const struct nodes *nodes, const struct route *route,
               bool closed, double *bounds, long *rated, struct tccl_error *err)
{
    cleanup_free struct tccl_rings_result *results = calloc(nodes->n_classes, sizeof(*results));
    struct finding finding = {
        .options = options, .nodes = nodes, .closed = closed, .results = results, .rated = rated};
    if (!results)
        return tccl_fail(err, "out of memory");
    if (route_baseline(route, closed, &finding.baseline, NULL) != 0)
        route_clear(&finding.baseline);
    int status = search_all(&finding, bounds, err);
    route_clear(&finding.baseline);
    return status;
}
