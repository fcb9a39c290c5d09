/* narrowed.c: the rings of a profile on links that carry less by now. */
#include "ring/narrowed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ring/reach.h"

static bool is_below(const struct tccl_narrow *link, struct tccl_device device)
{
    return device.kind == TCCL_GPU   ? link->gpus >> device.index & 1
           : device.kind == TCCL_NIC ? link->nics >> device.index & 1
                                     : false;
}

static bool is_apart(const struct tccl_narrow *link, struct tccl_device a, struct tccl_device b)
{
    return a.kind == TCCL_GPU && b.kind == TCCL_GPU && (link->apart >> b.index & 1);
}

/* Which way does the transfer pass the link? 1: up, 0: down, -1: it doesn't. */
static int way_of(const struct tccl_narrow *link, tccl_transfer transfer)
{
    struct tccl_device from = tccl_transfer_source(transfer), to = tccl_transfer_sink(transfer);
    bool up = is_below(link, from);
    if (up == is_below(link, to) || is_apart(link, up ? from : to, up ? to : from))
        return -1;
    return up;
}

enum { EVERY = TCCL_SINGLES | TCCL_SETS };

/* A guess counts if it is as much better than what was measured. */
static const double MORE = 1.05;

/* ---- what it carries ---- */

/* The fastest that passes it each way, [up][reads]. */
static void find_fastest(const struct tccl_narrow *link, const struct tccl_machine *machine,
                         tccl_narrow_known *known, void *context, double best[2][2])
{
    for (int i = 0; i < TCCL_TRANSFERS; i++) {
        const tccl_transfer transfer = (tccl_transfer)i;
        const int way = tccl_transfer_valid(transfer) ? way_of(link, transfer) : -1;
        if (way < 0 || tccl_machine_allows(machine, transfer, NULL) != 0)
            continue;
        double *own = &best[way][tccl_transfer_reads(transfer)];
        *own = fmax(*own, known(context, &(struct tccl_set){1, {transfer}}));
    }
}

/* Do two GPUs below it write at once, one to this GPU and one to a memory, with more than it
 * carries? */
static bool shows_apart(const struct tccl_narrow *link, const struct tccl_machine *machine, int gpu,
                        double gbps, tccl_narrow_known *known, void *context)
{
    static const double more = 1.1; /* than noise */
    for (int a = 0; a < machine->n_gpus; a++)
        for (int b = 0; b < machine->n_gpus; b++)
            for (int memory = 0; memory < machine->n_memories; memory++) {
                struct tccl_device from = {TCCL_GPU, (uint8_t)a}, beside = {TCCL_GPU, (uint8_t)b};
                tccl_transfer pair[] = {
                    tccl_transfer_make(from, false, (struct tccl_device){TCCL_GPU, (uint8_t)gpu}),
                    tccl_transfer_make(beside, false,
                                       (struct tccl_device){TCCL_MEMORY, (uint8_t)memory})};
                struct tccl_set set = tccl_set_sorted(pair, 2);
                if (a != b && is_below(link, from) && is_below(link, beside) &&
                    tccl_machine_allows(machine, pair[0], NULL) == 0 &&
                    2 * known(context, &set) > more * gbps)
                    return true;
            }
    return false;
}

/* The GPUs of the same switch. */
static uint32_t beside(const struct tccl_machine *machine, int gpu)
{
    uint32_t gpus = UINT32_C(1) << gpu;
    for (int i = 0; i < machine->n_gpus && machine->gpus[gpu].parent >= 0; i++)
        gpus |= (uint32_t)(machine->gpus[i].parent == machine->gpus[gpu].parent) << i;
    return gpus;
}

void tccl_narrow_rate(struct tccl_narrow *narrow, const struct tccl_machine *machine, double part,
                      tccl_narrow_known *known, void *context)
{
    narrow->apart = 0;
    for (int round = 0; round < 2; round++) { /* without those that turn out to be apart */
        double best[2][2] = {{0}};
        find_fastest(narrow, machine, known, context, best);
        const double writes = fmax(best[0][0], best[1][0]), reads = fmax(best[0][1], best[1][1]);
        narrow->reads = writes > reads && reads > 0 ? fmin(writes / reads, 2) : 1;
        const double down = fmax(best[0][0], narrow->reads * best[0][1]),
                     up = fmax(best[1][0], narrow->reads * best[1][1]);
        narrow->gbps[0] = part * (down > 0 ? down : up);
        narrow->gbps[1] = part * (up > 0 ? up : down);
        for (int i = 0; i < machine->n_gpus && up > 0 && round == 0; i++)
            if (!(narrow->gpus >> i & 1) && shows_apart(narrow, machine, i, up, known, context))
                narrow->apart |= beside(machine, i) & ~narrow->gpus;
    }
}

/* What the link carries of each of these transfers, GB/s. */
static double share_of(const struct tccl_narrow *link, const tccl_transfer *transfers, int count)
{
    double users[2] = {0};
    for (int i = 0; i < count; i++) {
        int way = way_of(link, transfers[i]);
        if (way >= 0)
            users[way] += tccl_transfer_reads(transfers[i]) ? link->reads : 1;
    }
    return fmin(link->gbps[0] / users[0], link->gbps[1] / users[1]);
}

static double limit(const struct tccl_narrowed *narrowed, const tccl_transfer *transfers, int count,
                    int *by)
{
    double least = INFINITY;
    *by = -1;
    for (int i = 0; i < narrowed->n; i++) {
        double share = share_of(&narrowed->links[i], transfers, count);
        if (share < least) {
            least = share;
            *by = i;
        }
    }
    return least;
}

double tccl_narrowed_limit(const struct tccl_narrowed *narrowed, const struct tccl_side *side,
                           int *by)
{
    int least;
    return side->rings * limit(narrowed, side->transfers, side->count, by ? by : &least);
}

struct had {
    const struct tccl_narrowed *narrowed;
    double gbps; /* each transfer, while all links were whole */
};

static int rate_each(const void *context, const tccl_transfer *transfers, int count, double *gbps)
{
    const struct had *had = context;
    for (int i = 0; i < count; i++)
        gbps[i] = had->gbps;
    for (int k = 0; k < had->narrowed->n; k++) {
        const struct tccl_narrow *link = &had->narrowed->links[k];
        const double share = share_of(link, transfers, count);
        for (int i = 0; i < count; i++)
            if (way_of(link, transfers[i]) >= 0)
                gbps[i] = fmin(gbps[i], share);
    }
    return 0;
}

uint8_t tccl_narrowed_ends(const struct tccl_narrowed *narrowed, const struct tccl_chain *rings,
                           int n, double gbps)
{
    const struct had had = {narrowed, gbps};
    return tccl_ends_by(rate_each, &had, rings, n);
}

/* ---- a table ---- */

struct judge {
    const struct tccl_machine *machine;
    const struct tccl_narrowed *narrowed;
    const struct tccl_model *model;
    uint32_t felt;
    /* What links leave to any ring, which has GPUs on both of their sides: a closed one; a chain
     * between NICs, and several of these. */
    double across, between[2];
};

/* Takes from gbps what the links take; the ends of the round go by it. */
static void take(struct judge *judge, const struct tccl_chain *rings, int n, double *gbps,
                 uint8_t *ends)
{
    struct tccl_side side;
    int by;
    tccl_rings_side(rings, n, &side);
    double left = tccl_narrowed_limit(judge->narrowed, &side, &by);
    if (n == 0 || !(left < *gbps))
        return;
    *ends = judge->model ? tccl_ends(judge->model, rings, n)
                         : tccl_narrowed_ends(judge->narrowed, rings, n, *gbps / n);
    *gbps = left;
    judge->felt |= UINT32_C(1) << by;
}

static double tree_limit(const struct judge *judge, const struct tccl_tree_ways *ways,
                         const struct tccl_tree *tree)
{
    const int n = ways->chain->n_gpus;
    tccl_transfer transfers[4 * (TCCL_MAX_GPUS + 1)];
    int by, count = tccl_tree_end(ways, tree->nic, tree->gpus[0], transfers);
    count += tccl_tree_end(ways, tree->nic, tree->gpus[n > 1], transfers + count);
    for (int i = 0; i + 1 < n; i++)
        count += tccl_tree_edge(ways, tree->gpus[i], tree->gpus[i + 1], transfers + count);
    return limit(judge->narrowed, transfers, count, &by);
}

static void judge_tree(const struct judge *judge, const struct tccl_chain *chain,
                       struct tccl_tree *tree)
{
    struct tccl_tree along = {0};
    struct tccl_tree_ways ways;
    if (chain->closed || chain->n_gpus < 2 || !(tree->gbps > 0))
        return;
    tccl_tree_ways(judge->machine, chain, &ways);
    tccl_tree_along(chain, &along);
    tree->gbps = fmin(tree->gbps, tree_limit(judge, &ways, tree));
    tree->along = fmin(tree->along, tree_limit(judge, &ways, &along));
}

static void judge_result(struct judge *judge, struct tccl_result *own)
{
    int n;
    const struct tccl_chain *rings = tccl_result_rings(own, &n);
    take(judge, rings, n, &own->gbps, &own->ends);
    judge_tree(judge, &own->chain, &own->tree);
    own->bound = fmax(own->gbps, fmin(own->bound, own->chain.closed ? judge->across
                                                                    : judge->between[!!own->set]));
}

/* What an all-reduce reaches. */
static double reached(const struct tccl_result *own)
{
    return own->gbps *
           tccl_reach(tccl_result_ends(own), own->chain.n_gpus * (own->chain.closed ? 1 : 2));
}

/* What one entry has another one gets, but for its place in the table. */
static void put(struct tccl_result *to, const struct tccl_result *from)
{
    to->gbps = from->gbps;
    to->bound = fmax(to->bound, to->gbps);
    to->chain = from->chain;
    to->tree = from->tree;
    to->ends = from->ends;
}

/* A chain of the same ports may be better now than the one that was best. */
static void find_best(struct tccl_table *table)
{
    for (struct tccl_result *own = NULL;
         (own = tccl_table_next(table, own, TCCL_HOSTS | TCCL_OTHERS));) {
        struct tccl_result *best = tccl_table_place(table, &own->chain);
        const struct tccl_result before = best ? *best : *own;
        if (!(reached(own) > reached(&before)))
            continue;
        put(best, own);
        if (own->part == TCCL_OTHER && before.chain.n_gpus)
            put(own, &before);
    }
}

static struct tccl_table *copy(const struct tccl_table *table)
{
    const size_t ports = (size_t)table->n_ports, n = (size_t)table->n_results;
    cleanup_table struct tccl_table *own = malloc(sizeof(*own));
    if (!own)
        return NULL;
    *own = *table;
    own->room = n;
    own->n_results = 0; /* what has a set of its own, so far */
    own->ports = calloc(ports + 1, sizeof(*own->ports));
    own->results = calloc(n, sizeof(*own->results));
    for (size_t i = 0; own->ports && own->results && i < n; i++, own->n_results++) {
        struct tccl_result *to = &own->results[i];
        *to = table->results[i];
        if (to->set && (to->set = malloc(sizeof(*to->set))) == NULL)
            break;
        if (to->set)
            *to->set = *table->results[i].set;
    }
    if (!own->ports || own->n_results < table->n_results)
        return NULL;
    if (ports > 0)
        memcpy(own->ports, table->ports, ports * sizeof(*own->ports));
    return tccl_steal(own);
}

/* A closed ring passes a link both ways; so does a chain, unless a NIC is below the link: then one
 * way is enough, and others may go the other way. */
static void bound_by(struct judge *judge, const struct tccl_narrow *link)
{
    const double down = link->gbps[0], up = link->gbps[1], least = fmin(down, up);
    judge->across = fmin(judge->across, least);
    judge->between[0] = fmin(judge->between[0], link->nics ? fmax(down, up) : least);
    judge->between[1] = fmin(judge->between[1], link->nics ? down + up : least);
}

struct tccl_table *tccl_narrowed_table(const struct tccl_table *table,
                                       const struct tccl_machine *machine,
                                       const struct tccl_narrowed *narrowed,
                                       const struct tccl_model *model, uint32_t *felt)
{
    struct judge judge = {machine, narrowed, model, 0, INFINITY, {INFINITY, INFINITY}};
    struct tccl_table *own = copy(table);
    *felt = 0;
    if (!own)
        return NULL;
    for (int i = 0; i < narrowed->n; i++)
        if ((table->gpus & narrowed->links[i].gpus) && (table->gpus & ~narrowed->links[i].gpus) &&
            !(table->gpus & narrowed->links[i].apart))
            bound_by(&judge, &narrowed->links[i]);
    for (int i = 0; i < own->n_results; i++)
        judge_result(&judge, &own->results[i]);
    for (int i = 0; i < 2 * TCCL_GENERATIONS; i++) {
        struct tccl_baseline *nccl = &own->baselines[i / TCCL_GENERATIONS][i % TCCL_GENERATIONS];
        take(&judge, nccl->set.rings, nccl->set.n, &nccl->gbps, &nccl->ends);
    }
    find_best(own);
    *felt = judge.felt;
    return own;
}

/* What an all-reduce reaches over the best rings of the node alone (closed), or between its NICs;
 * *bound: than which none is faster. */
static double best_of(const struct tccl_table *table, bool closed, unsigned parts, double *bound)
{
    double best = 0;
    *bound = 0;
    for (int i = 0; i < table->n_results; i++) {
        const struct tccl_result *own = &table->results[i];
        if (!own->chain.n_gpus || own->chain.closed != closed || !(parts >> own->part & 1))
            continue;
        best = fmax(best, reached(own));
        if (own->part == TCCL_BEST || own->part == TCCL_SET)
            *bound = fmax(*bound, own->bound);
    }
    return best;
}

bool tccl_narrowed_suffices(const struct tccl_table *before, const struct tccl_table *table,
                            bool between, double part)
{
    for (int closed = !between; closed < 2; closed++) {
        double bound;
        const double had = best_of(before, closed, EVERY, &bound),
                     best = best_of(table, closed, EVERY, &bound);
        if (!(best >= part * fmin(bound, had)))
            return false;
    }
    return true;
}

static void keep(struct tccl_table *table, const struct tccl_result *found)
{
    struct tccl_result *own = NULL;
    if (found->set)
        tccl_table_keep_set(table, found->set, found->gbps, found->bound);
    else
        tccl_table_keep_other(table, &found->chain, found->gbps);
    while ((own = tccl_table_next(table, own, TCCL_OTHERS | TCCL_SETS)))
        if (own->part == found->part && own->gbps == found->gbps &&
            (found->set ? tccl_ring_set_equal(own->set, found->set)
                        : tccl_chain_equal(&own->chain, &found->chain)))
            own->ends = found->ends;
}

/* A better chain takes the place of that of its ports; the one that it had stays. */
static void replace(struct tccl_table *table, struct tccl_result *place,
                    const struct tccl_result *found)
{
    struct tccl_result before = *place;
    before.part = TCCL_OTHER;
    put(place, found);
    if (before.chain.n_gpus)
        keep(table, &before);
}

/* Those that are better than the best one between the same NICs, where there is one. */
static void add_chains(struct tccl_table *table, const struct tccl_table *found, double more)
{
    for (int i = 0; i < tccl_table_pairs(found); i++) {
        const struct tccl_result *own = &found->results[i],
                                 *best = tccl_table_best(table, own->chain.entry.nic,
                                                         own->chain.exit.nic);
        struct tccl_result *place = tccl_table_place(table, &own->chain);
        if (own->chain.n_gpus && best && place && reached(own) > more * reached(best))
            replace(table, place, own);
    }
}

void tccl_narrowed_add(struct tccl_table *table, const struct tccl_table *found,
                       const struct tccl_model *model)
{
    const struct tccl_result *own = tccl_table_ring(found);
    struct tccl_result *ring = tccl_table_ring(table);
    const double more = model ? 0 : MORE;
    double bound, alone = more * best_of(table, true, EVERY, &bound),
                  between = more * best_of(table, false, TCCL_SETS, &bound);
    if (model)
        ring->bound = fmax(ring->gbps, fmin(ring->bound, own->bound));
    if (own->chain.n_gpus && reached(own) > fmax(reached(ring), alone))
        replace(table, ring, own);
    add_chains(table, found, fmax(1, more));
    for (own = NULL; (own = tccl_table_next(found, own, TCCL_OTHERS | TCCL_SETS));)
        if (own->chain.closed ? reached(own) >= alone : own->set && reached(own) >= between)
            keep(table, own);
    if (model)
        tccl_table_ends(table, model);
}

/* ---- a model ---- */

/* The devices of a mask of GPUs and one of NICs, and the memories. */
static json_t *group_to_json(uint32_t gpus, uint32_t nics, int memories)
{
    json_t *group = json_array();
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (gpus >> i & 1)
            json_array_append_new(group, json_sprintf("g%d", i));
    for (int i = 0; i < TCCL_MAX_NICS; i++)
        if (nics >> i & 1)
            json_array_append_new(group, json_sprintf("n%d", i));
    for (int i = 0; i < memories; i++)
        json_array_append_new(group, json_sprintf("m%d", i));
    return group;
}

static void add_users(json_t *users, const char *from, const char *to, double reads)
{
    json_array_append_new(users, json_sprintf("%s->%s", from, to));
    json_array_append_new(
        users, json_pack("{s:o, s:f}", "of", json_sprintf("%s<%s", to, from), "weight", reads));
}

/* The groups below the link, GPUs and NICs, and beyond it for each of these; then the link as a
 * resource, one each way. */
static int add_link(json_t *groups, json_t *resources, const struct tccl_narrow *link, int number,
                    const struct tccl_machine *machine)
{
    const uint32_t gpus = (UINT32_C(1) << machine->n_gpus) - 1,
                   nics = (UINT32_C(1) << machine->n_nics) - 1;
    const uint32_t below[][2] = {{link->gpus, 0}, {0, link->nics}},
                   beyond[][2] = {{gpus & ~link->gpus & ~link->apart, nics & ~link->nics},
                                  {gpus & ~link->gpus, nics & ~link->nics}};
    json_t *users[2] = {json_array(), json_array()}; /* down, up */
    char near[32], far[32];
    for (int i = 0; i < 2; i++) {
        if (!below[i][0] && !below[i][1])
            continue;
        snprintf(near, sizeof(near), "below%d_%d", number, i);
        snprintf(far, sizeof(far), "beyond%d_%d", number, i);
        json_object_set_new(groups, near, group_to_json(below[i][0], below[i][1], 0));
        json_object_set_new(groups, far,
                            group_to_json(beyond[i][0], beyond[i][1], machine->n_memories));
        add_users(users[0], far, near, link->reads);
        add_users(users[1], near, far, link->reads);
    }
    for (int way = 0; way < 2; way++)
        if (json_array_append_new(resources,
                                  json_pack("{s:o, s:f, s:o}", "name",
                                            json_sprintf("narrowed %d %d", number, way), "gbps",
                                            link->gbps[way], "users", users[way])) != 0)
            return -1;
    return 0;
}

int tccl_narrowed_model(const json_t *model, const struct tccl_machine *machine,
                        const struct tccl_narrowed *narrowed, struct tccl_model **narrow,
                        struct tccl_error *err)
{
    cleanup_json json_t *json = json_deep_copy(model);
    if (json && !json_object_get(json, "groups"))
        json_object_set_new(json, "groups", json_object());
    for (int i = 0; i < narrowed->n; i++)
        if (add_link(json_object_get(json, "groups"), json_object_get(json, "resources"),
                     &narrowed->links[i], i, machine) != 0)
            return tccl_fail(err, "out of memory");
    return tccl_model_from_json(json, narrow, err);
}
