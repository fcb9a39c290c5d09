/* rings.c: the best ring set, by simulated annealing within what a stock NCCL can be made to build:
 * islands of GPUs with P2P inside and memory between them, a memory and GPUDirect or not for each
 * GPU, and for each ring an order and its NICs. */
#include "search/rings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* SMALL: with up to so many GPUs all sets are counted out, if that takes no more than EFFORT sets;
 * then BEFORE sets by chance are enough to begin with. */
enum { BUDGET = 10000, SHARPNESS = 6, DESCENTS = 4, SMALL = 4, BEFORE = 1000, EFFORT = 300000 };

/* How data come to a GPU of a ring, or pass a port, where rings needn't agree: as the plan says for
 * all of them, directly (of an edge: written, or read), or through memory BY_MEMORY + m. */
enum { AS_ALL, DIRECTLY, BY_READ, BY_MEMORY };

/* A set as the search changes it. Chains follow from it. */
struct plan {
    int n;
    uint8_t orders[TCCL_CHAIN_RINGS][TCCL_MAX_GPUS];
    uint8_t nics[TCCL_CHAIN_RINGS][2];
    uint8_t islands[TCCL_MAX_GPUS];
    uint8_t memories[TCCL_MAX_GPUS];
    bool direct[TCCL_MAX_GPUS];
    uint8_t edges[TCCL_CHAIN_RINGS][TCCL_MAX_GPUS]; /* by the GPU that receives */
    uint8_t ports[TCCL_CHAIN_RINGS][2];
};

struct finder {
    const struct tccl_model *model;
    const struct tccl_machine *machine;
    const struct tccl_rings_options *options;
    bool closed;
    int n_gpus;
    uint8_t gpus[TCCL_MAX_GPUS];
    int n_nics;
    uint8_t nics[TCCL_MAX_NICS]; /* that rings may use */
    uint64_t state;
    double goal;                  /* what is good enough */
    double floor;                 /* sets with a transfer that keeps them below it are not rated */
    double alone[TCCL_TRANSFERS]; /* what each transfer reaches by itself; 0: not asked yet */
    const struct tccl_ring_set *starts;
    int n_starts;
    struct tccl_rings_result *result;
    struct tccl_error *err;
};

static uint32_t chance(struct finder *finder, uint32_t below)
{
    finder->state = finder->state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)((finder->state >> 33) % below);
}

static struct tccl_port port_of(const struct plan *plan, int ring, int end, int gpu)
{
    struct tccl_device itself = {TCCL_GPU, (uint8_t)gpu};
    struct tccl_device memory = {TCCL_MEMORY, plan->memories[gpu]};
    int own = plan->ports[ring][end];
    bool direct = own == AS_ALL ? plan->direct[gpu] : own == DIRECTLY;
    if (own >= BY_MEMORY)
        memory.index = (uint8_t)(own - BY_MEMORY);
    return (struct tccl_port){plan->nics[ring][end], direct ? itself : memory};
}

static struct tccl_edge edge_of(const struct finder *finder, const struct plan *plan, int ring,
                                int from, int to)
{
    int own = plan->edges[ring][to];
    if (own >= BY_MEMORY)
        return (struct tccl_edge){TCCL_BOUNCE, (uint8_t)(own - BY_MEMORY)};
    if (own == BY_READ ||
        (own == AS_ALL && finder->options->reads && plan->islands[from] == plan->islands[to]))
        return (struct tccl_edge){.kind = TCCL_P2P_READ};
    if (own == DIRECTLY || plan->islands[from] == plan->islands[to])
        return (struct tccl_edge){.kind = TCCL_P2P_WRITE};
    return (struct tccl_edge){TCCL_BOUNCE, plan->memories[to]};
}

static void make_chain(const struct finder *finder, const struct plan *plan, int ring,
                       struct tccl_chain *chain)
{
    const uint8_t *order = plan->orders[ring];
    int n = finder->n_gpus;
    memset(chain, 0, sizeof(*chain));
    chain->n_gpus = (uint8_t)n;
    chain->closed = finder->closed;
    memcpy(chain->gpus, order, n);
    for (int i = 0; i < tccl_chain_edges(chain); i++)
        chain->edges[i] = edge_of(finder, plan, ring, order[i], order[(i + 1) % n]);
    if (finder->closed)
        return;
    chain->entry = port_of(plan, ring, 0, order[0]);
    chain->exit = port_of(plan, ring, 1, order[n - 1]);
}

static bool is_allowed(const struct finder *finder, int nic)
{
    return !finder->options->nics || (finder->options->nics >> nic & 1);
}

static bool nics_allowed(const struct finder *finder, const struct tccl_ring_set *set)
{
    for (int i = 0; i < set->n && !finder->closed; i++)
        if (!is_allowed(finder, set->rings[i].entry.nic) ||
            !is_allowed(finder, set->rings[i].exit.nic))
            return false;
    return true;
}

static const char *fabric_of(const struct finder *finder, int nic)
{
    return finder->machine->nics[nic].fabric;
}

/* Do as many rings come in by the fabric of this one's entry as leave by it? */
static bool balanced(const struct finder *finder, const struct tccl_ring_set *set, int ring)
{
    const char *fabric = fabric_of(finder, set->rings[ring].entry.nic);
    int balance = 0;
    for (int i = 0; i < set->n; i++)
        balance += (strcmp(fabric_of(finder, set->rings[i].entry.nic), fabric) == 0) -
                   (strcmp(fabric_of(finder, set->rings[i].exit.nic), fabric) == 0);
    return balance == 0;
}

/* Can the rings go on to the next node, which is equal? Each leaves by the fabric by which it came;
 * or, if they may, they change places. */
static bool meets_itself(const struct finder *finder, const struct tccl_ring_set *set)
{
    bool all = true;
    for (int i = 0; i < set->n && all && !finder->closed; i++)
        all = finder->options->turns ? balanced(finder, set, i)
                                     : strcmp(fabric_of(finder, set->rings[i].entry.nic),
                                              fabric_of(finder, set->rings[i].exit.nic)) == 0;
    return all;
}

void tccl_rings_known(double *rates, int count, double gbps)
{
    int slowest = 0;
    for (int i = 1; i < count; i++)
        slowest = rates[i] < rates[slowest] ? i : slowest;
    for (int i = 0; i < count; i++)
        rates[i] = i == slowest ? gbps : fmax(rates[i], gbps);
}

static int rate_transfers(struct finder *finder, const tccl_transfer *transfers, int count,
                          double *rates)
{
    const struct tccl_rings_rater *rater = finder->options->rater;
    if (rater)
        return rater->rate(rater->context, transfers, count, rates, finder->err);
    return tccl_model_rates(finder->model, transfers, count, rates, NULL, finder->err);
}

/* What the set reaches, GB/s, and how well it is spread: what is the lower, the more of its
 * transfers are slow. Returns 0; 1: it is not possible; -1 with err. */
static int rate_set(struct finder *finder, const struct tccl_ring_set *set, double *gbps,
                    double *spread)
{
    double rates[TCCL_MAX_SIDE], line = tccl_ring_set_line(set, finder->machine), sum = 0,
                                 least = line;
    struct tccl_side side;
    if (tccl_ring_set_check(set, finder->machine, NULL) != 0 ||
        (!finder->options->any &&
         tccl_expressible(finder->machine, set->rings, set->n, NULL) != 0) ||
        !nics_allowed(finder, set) || !meets_itself(finder, set))
        return 1;
    tccl_ring_set_side(set, &side);
    /* Does one transfer by itself keep the set below the floor? */
    for (int i = 0; i < side.count; i++) {
        double *alone = &finder->alone[side.transfers[i]];
        if (*alone <= 0) {
            finder->result->rated++;
            int status = rate_transfers(finder, &side.transfers[i], 1, alone);
            if (status != 0)
                return status < 0 && finder->options->rater ? -1 : 1;
        }
        if (side.rings * *alone < finder->floor)
            return 1;
    }
    finder->result->rated++;
    int status = rate_transfers(finder, side.transfers, side.count, rates);
    if (status != 0)
        return status;
    for (int i = 0; i < side.count; i++) {
        least = fmin(least, rates[i]);
        sum += pow(rates[i], -SHARPNESS);
    }
    if (!finder->closed)
        sum += pow(line, -SHARPNESS);
    *gbps = set->n * least;
    *spread = set->n * pow(sum, -1.0 / SHARPNESS);
    return 0;
}

/* If it is faster, or as fast with fewer rings. */
static void keep(struct finder *finder, const struct tccl_ring_set *set, double gbps)
{
    struct tccl_rings_result *result = finder->result;
    if (!(gbps > result->gbps * (1 + 1e-9)) &&
        !(gbps > result->gbps * (1 - 1e-9) && set->n < result->set.n))
        return;
    result->gbps = gbps;
    result->set = *set;
}

/* Returns as rate_set. */
static int rate_plan(struct finder *finder, const struct plan *plan, double *spread)
{
    struct tccl_ring_set set = {.n = plan->n};
    double gbps;
    for (int i = 0; i < plan->n; i++)
        make_chain(finder, plan, i, &set.rings[i]);
    int status = rate_set(finder, &set, &gbps, spread);
    if (status == 0)
        keep(finder, &set, gbps);
    return status;
}

/* Changes */

static void swap(uint8_t *a, uint8_t *b)
{
    uint8_t kept = *a;
    *a = *b;
    *b = kept;
}

static void reverse(uint8_t *order, int from, int to)
{
    for (; from < to; from++, to--)
        swap(&order[from], &order[to]);
}

/* Parts of a ring that follow each other change places. */
static void exchange(uint8_t *order, int from, int middle, int to)
{
    reverse(order, from, middle - 1);
    reverse(order, middle, to);
    reverse(order, from, to);
}

static void change_order(struct finder *finder, struct plan *plan)
{
    uint8_t *order = plan->orders[chance(finder, plan->n)];
    int a = chance(finder, finder->n_gpus), b = chance(finder, finder->n_gpus);
    int from = a < b ? a : b, to = a < b ? b : a;
    switch (chance(finder, 4)) {
    case 0:
        swap(&order[a], &order[b]);
        break;
    case 1:
        reverse(order, from, to);
        break;
    default:
        if (from < to)
            exchange(order, from, from + 1 + chance(finder, to - from), to);
    }
}

static void change_place(struct finder *finder, struct plan *plan)
{
    int a = finder->gpus[chance(finder, finder->n_gpus)];
    int b = finder->gpus[chance(finder, finder->n_gpus)];
    switch (chance(finder, finder->closed ? 4 : 5)) {
    case 0:
        plan->memories[a] = chance(finder, finder->machine->n_memories);
        break;
    case 1:
        swap(&plan->memories[a], &plan->memories[b]);
        break;
    case 2:
        plan->islands[a] = plan->islands[b];
        break;
    case 3:
        plan->islands[a] = chance(finder, TCCL_MAX_GPUS);
        break;
    default:
        plan->direct[a] = !plan->direct[a];
    }
}

/* A ring becomes like another one, the other way round or not. */
static void copy_ring(struct finder *finder, struct plan *plan)
{
    int to = chance(finder, plan->n), from = chance(finder, plan->n);
    memcpy(plan->orders[to], plan->orders[from], finder->n_gpus);
    memcpy(plan->nics[to], plan->nics[from], sizeof(plan->nics[to]));
    memcpy(plan->edges[to], plan->edges[from], sizeof(plan->edges[to]));
    memcpy(plan->ports[to], plan->ports[from], sizeof(plan->ports[to]));
    if (chance(finder, 2) == 0)
        return;
    reverse(plan->orders[to], 0, finder->n_gpus - 1);
    swap(&plan->nics[to][0], &plan->nics[to][1]);
    swap(&plan->ports[to][0], &plan->ports[to][1]);
}

static void change(struct finder *finder, struct plan *plan)
{
    int kinds = chance(finder, finder->options->any ? 28 : 20);
    if (kinds >= 20) {
        /* An edge or a port of one ring goes another way than the rest wants it to, or no longer
         * does. */
        int ring = chance(finder, plan->n), memories = finder->machine->n_memories;
        uint8_t way = (uint8_t)chance(finder, BY_MEMORY + memories);
        if (finder->closed || chance(finder, finder->n_gpus + 1) > 1)
            plan->edges[ring][finder->gpus[chance(finder, finder->n_gpus)]] = way;
        else
            plan->ports[ring][chance(finder, 2)] = way == BY_READ ? DIRECTLY : way;
    } else if (kinds < 9)
        change_order(finder, plan);
    else if (kinds < 13 && !finder->closed) {
        int ring = chance(finder, plan->n), end = chance(finder, 2);
        if (chance(finder, 2))
            plan->nics[ring][end] = finder->nics[chance(finder, finder->n_nics)];
        else
            swap(&plan->nics[ring][end], &plan->nics[chance(finder, plan->n)][chance(finder, 2)]);
    } else if (kinds < 19)
        change_place(finder, plan);
    else
        copy_ring(finder, plan);
}

/* Beginnings */

static void shuffle(struct finder *finder, uint8_t *order)
{
    memcpy(order, finder->gpus, finder->n_gpus);
    for (int i = finder->n_gpus - 1; i > 0; i--)
        swap(&order[i], &order[chance(finder, i + 1)]);
}

/* By chance, but with the memories that GPUs are next to, and GPUs below one switch together. */
static void begin_anywhere(struct finder *finder, int rings, struct plan *plan)
{
    const struct tccl_machine *machine = finder->machine;
    *plan = (struct plan){.n = rings};
    for (int i = 0; i < finder->n_gpus; i++) {
        int gpu = finder->gpus[i];
        plan->memories[gpu] = (uint8_t)machine->gpus[gpu].numa;
        plan->islands[gpu] = (uint8_t)gpu;
        for (int k = 0; k < i; k++) {
            struct tccl_device own = {TCCL_GPU, (uint8_t)gpu}, other = {TCCL_GPU, finder->gpus[k]};
            if (machine->p2p[gpu][other.index] &&
                tccl_machine_path(machine, own, other) == TCCL_PATH_SWITCH)
                plan->islands[gpu] = plan->islands[other.index];
        }
    }
    for (int i = 0; i < rings; i++) {
        shuffle(finder, plan->orders[i]);
        for (int k = 0; k < 2 && finder->n_nics; k++)
            plan->nics[i][k] = finder->nics[chance(finder, finder->n_nics)];
    }
}

static void join_islands(struct plan *plan, int a, int b)
{
    int from = plan->islands[a], to = plan->islands[b];
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (plan->islands[i] == from)
            plan->islands[i] = (uint8_t)to;
}

static void take_port(struct plan *plan, struct tccl_port port, int gpu)
{
    plan->direct[gpu] = port.via.kind == TCCL_GPU;
    if (!plan->direct[gpu])
        plan->memories[gpu] = port.via.index;
}

static uint8_t port_way(struct tccl_port port)
{
    return port.via.kind == TCCL_GPU ? DIRECTLY : BY_MEMORY + port.via.index;
}

/* The ways of a chain, whatever other rings want. */
static void take_ways(struct plan *plan, int ring, const struct tccl_chain *chain)
{
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        struct tccl_edge edge = chain->edges[i];
        uint8_t *way = &plan->edges[ring][chain->gpus[(i + 1) % chain->n_gpus]];
        *way = edge.kind == TCCL_P2P_WRITE  ? DIRECTLY
               : edge.kind == TCCL_P2P_READ ? BY_READ
                                            : BY_MEMORY + edge.memory;
    }
    if (chain->closed)
        return;
    plan->ports[ring][0] = port_way(chain->entry);
    plan->ports[ring][1] = port_way(chain->exit);
}

static void take_chain(struct plan *plan, const struct tccl_chain *chain)
{
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        int to = chain->gpus[(i + 1) % chain->n_gpus];
        if (chain->edges[i].kind == TCCL_BOUNCE)
            plan->memories[to] = chain->edges[i].memory;
        else
            join_islands(plan, chain->gpus[i], to);
    }
    if (chain->closed)
        return;
    take_port(plan, chain->entry, chain->gpus[0]);
    take_port(plan, chain->exit, chain->gpus[chain->n_gpus - 1]);
}

/* The set's rings, again and again. What its rings want of one GPU the last one gets, unless any
 * sets may be found. */
static void begin_with(const struct finder *finder, const struct tccl_ring_set *set, int rings,
                       struct plan *plan)
{
    *plan = (struct plan){.n = rings};
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        plan->islands[i] = (uint8_t)i;
    for (int i = 0; i < set->n; i++)
        take_chain(plan, &set->rings[i]);
    for (int i = 0; i < rings; i++) {
        const struct tccl_chain *chain = &set->rings[i % set->n];
        memcpy(plan->orders[i], chain->gpus, chain->n_gpus);
        plan->nics[i][0] = chain->entry.nic;
        plan->nics[i][1] = chain->exit.nic;
        if (finder->options->any)
            take_ways(plan, i, chain);
    }
}

/* Annealing */

/* From the plan on, with so many sets. Returns 0, or -1 with err. */
static int anneal(struct finder *finder, struct plan *plan, long sets)
{
    const struct tccl_rings_result *result = finder->result;
    long first = result->rated;
    double now = 0;
    int status = rate_plan(finder, plan, &now);
    for (long tries = 0; status >= 0 && result->rated < first + sets && tries < 50 * sets &&
                         result->gbps < finder->goal;
         tries++) {
        double heat = 0.08 * pow(0.01, (double)(result->rated - first) / (double)sets), next = 0;
        struct plan other = *plan;
        for (int i = 1 + chance(finder, 3); i > 0; i--)
            change(finder, &other);
        status = rate_plan(finder, &other, &next);
        bool taken = status >= 0 && now <= 0; /* from where no set is, anywhere */
        if (status == 0 && !taken) {          /* a slower one sometimes, while it is hot */
            double by = chance(finder, 1 << 20) / (double)(1 << 20);
            taken = next >= now || by < pow(next / now, 1 / heat);
        }
        if (taken) {
            *plan = other;
            now = next;
        }
    }
    return status < 0 ? -1 : 0;
}

/* Sets of so many rings: from the best one so far, the starts in turn, and from anywhere. */
static int descend(struct finder *finder, int rings, long sets, double bound)
{
    for (int i = 0; i < DESCENTS; i++) {
        struct plan plan;
        begin_anywhere(finder, rings, &plan);
        if (i == 0 && finder->result->gbps > 0)
            begin_with(finder, &finder->result->set, rings, &plan);
        else if (i % 2 == 0 && finder->n_starts > 0)
            begin_with(finder, &finder->starts[chance(finder, finder->n_starts)], rings, &plan);
        finder->floor = i % 4 == 3 ? 0 : 0.9 * bound;
        if (anneal(finder, &plan, sets / DESCENTS) != 0)
            return -1;
    }
    finder->floor = 0;
    return 0;
}

/* Counting out. For each choice of islands, memories and GPUDirect the chains that fit it, then
 * all sets of them of which no part is too slow. */

enum { MANY_CHAINS = 1536 };

struct counting {
    struct finder *finder;
    struct plan plan; /* its first ring is the chain */
    int n;
    struct tccl_chain chains[MANY_CHAINS];
    struct tccl_ring_set set; /* what is put together */
    long left;                /* sets that may still be tried */
    bool all;                 /* there was room for all */
    double most;              /* what a set reaches, whatever fabrics it leads to */
    int rings;
};

/* Could the part of a set become better than the best one? */
static bool may_gain(struct counting *counting, const struct tccl_ring_set *part)
{
    struct finder *finder = counting->finder;
    struct tccl_side side;
    const struct tccl_side *sides[] = {&side};
    double gbps;
    counting->all = counting->all && counting->left-- > 0;
    finder->result->rated++;
    tccl_ring_set_side(part, &side);
    side.rings = counting->rings;
    if (!counting->all || tccl_model_sides(finder->model, sides, 1, &gbps, NULL) != 0)
        return false;
    gbps = fmin(gbps, counting->rings * tccl_ring_set_line(part, finder->machine));
    if (gbps <= finder->result->gbps * (1 + 1e-9))
        return false;
    if (part->n == counting->rings &&
        tccl_expressible(counting->finder->machine, part->rings, part->n, NULL) == 0) {
        counting->most = fmax(counting->most, gbps);
        if (meets_itself(finder, part))
            keep(finder, part, gbps);
    }
    return true;
}

static void add_rings(struct counting *counting, int from)
{
    int place = counting->set.n;
    if (place == counting->rings)
        return;
    counting->set.n++;
    for (int i = from; i < counting->n && counting->all; i++) {
        counting->set.rings[place] = counting->chains[i];
        if (may_gain(counting, &counting->set))
            add_rings(counting, i);
    }
    counting->set.n--;
}

/* Keeps the plan's chain, if it is possible. */
static void list_chain(struct counting *counting)
{
    struct tccl_ring_set one = {.n = 1};
    make_chain(counting->finder, &counting->plan, 0, &one.rings[0]);
    if (tccl_ring_set_check(&one, counting->finder->machine, NULL) != 0 ||
        tccl_expressible(counting->finder->machine, one.rings, 1, NULL) != 0 ||
        !may_gain(counting, &one))
        return;
    if (counting->n == MANY_CHAINS)
        counting->all = false;
    else
        counting->chains[counting->n++] = one.rings[0];
}

/* All orders, with all NICs at the ends; a closed ring begins with the first GPU. */
static void list_chains(struct counting *counting, int depth)
{
    struct finder *finder = counting->finder;
    uint8_t *order = counting->plan.orders[0];
    int nics = finder->closed ? 1 : finder->n_nics;
    for (int i = depth; i < finder->n_gpus && !(finder->closed && depth == 0 && i > 0); i++) {
        swap(&order[depth], &order[i]);
        if (depth + 1 < finder->n_gpus)
            list_chains(counting, depth + 1);
        for (int k = 0; k < nics * nics && depth + 1 == finder->n_gpus; k++) {
            counting->plan.nics[0][0] = finder->nics[k / nics];
            counting->plan.nics[0][1] = finder->nics[k % nics];
            list_chain(counting);
        }
        swap(&order[depth], &order[i]);
    }
}

/* All choices for the GPUs from one on; islands: how many there are so far. */
static void count_places(struct counting *counting, int at, int islands)
{
    struct finder *finder = counting->finder;
    if (!counting->all)
        return;
    if (at == finder->n_gpus) {
        counting->n = 0;
        list_chains(counting, 0);
        add_rings(counting, 0);
        return;
    }
    int gpu = finder->gpus[at], memories = finder->machine->n_memories;
    for (int i = 0; i < memories * (finder->closed ? 1 : 2); i++)
        for (int island = 0; island <= islands; island++) {
            counting->plan.memories[gpu] = (uint8_t)(i % memories);
            counting->plan.direct[gpu] = i >= memories;
            counting->plan.islands[gpu] = (uint8_t)island;
            count_places(counting, at + 1, islands + (island == islands));
        }
}

/* The best set of so many rings. *bound: for them; lowered where all were tried. */
static int find_rings(struct finder *finder, int rings, long sets, double *bound)
{
    struct tccl_rings_result *result = finder->result;
    bool small = finder->n_gpus <= SMALL && !finder->options->rater && !finder->options->any;
    if (descend(finder, rings, small && sets > BEFORE ? BEFORE : sets, *bound) != 0)
        return -1;
    if (!small || finder->options->gap > 0 || result->gbps >= finder->goal)
        return 0;
    /* Tries all sets of so many rings, and lowers their bound if no ring and no NIC was left out.
     */
    struct counting *counting = calloc(1, sizeof(*counting));
    if (!counting)
        return tccl_fail(finder->err, "out of memory");
    counting->finder = finder;
    counting->left = EFFORT;
    counting->all = true;
    counting->rings = rings;
    counting->plan.n = 1;
    memcpy(counting->plan.orders[0], finder->gpus, finder->n_gpus);
    count_places(counting, 0, 0);
    if (counting->all && finder->n_nics == finder->machine->n_nics)
        *bound = fmax(finder->result->gbps, counting->most);
    free(counting);
    return 0;
}

static int find_bounds(struct finder *finder, uint32_t gpus, int from, int to, double *bounds)
{
    double single = finder->options->single_bound;
    const struct tccl_rings_rater *rater = finder->options->rater;
    for (int i = from; i <= to && rater; i++)
        bounds[i] = rater->bound;
    if (!rater && tccl_rings_bounds(finder->model, gpus, finder->closed, finder->options->reads,
                                    finder->options->any, from, to, finder->result->gbps, bounds,
                                    finder->err) != 0)
        return -1;
    for (int i = from; i <= to && single > 0; i++)
        bounds[i] = fmin(bounds[i], i * single); /* no ring of a set is faster than one alone */
    return 0;
}

static double highest(const double *bounds, int from, int to)
{
    double bound = 0;
    for (int i = from; i <= to; i++)
        bound = fmax(bound, bounds[i]);
    return bound;
}

static int find_all(struct finder *finder, int from, int to, double *bounds)
{
    struct tccl_rings_result *result = finder->result;
    for (int i = from; i <= to && result->gbps < finder->goal; i++) {
        /* How much of the budget that is left goes to so many rings: fewer ones come first, and
         * more where they may be good enough. */
        long budget = finder->options->budget > 0 ? finder->options->budget : BUDGET;
        double part = i == to ? 1 : bounds[i] >= finder->goal ? 0.5 : 0.1;
        long sets = (long)(part * (double)(budget - finder->result->rated));
        if (bounds[i] <= result->gbps * (1 + 1e-9) || sets <= 0)
            continue;
        if (find_rings(finder, i, sets, &bounds[i]) != 0)
            return -1;
        finder->goal = highest(bounds, from, to) * (1 - finder->options->gap);
    }
    return 0;
}

/* The starts themselves, as they are. */
static int rate_starts(struct finder *finder)
{
    for (int i = 0; i < finder->n_starts; i++) {
        const struct tccl_ring_set *set = &finder->starts[i];
        int wanted = finder->options->rings;
        double gbps, spread;
        int status = rate_set(finder, set, &gbps, &spread);
        if (status < 0)
            return -1;
        if (status == 0 && (!wanted || wanted == set->n))
            keep(finder, set, gbps);
    }
    return 0;
}

/* Of the first n rings together, GB/s; 0: not known. */
static double rate_first(struct finder *finder, const struct tccl_ring_set *set, int n)
{
    struct tccl_ring_set first = *set;
    struct tccl_side side;
    double rates[TCCL_MAX_SIDE];
    first.n = n;
    tccl_ring_set_side(&first, &side);
    finder->result->rated++;
    if (rate_transfers(finder, side.transfers, side.count, rates) != 0)
        return 0;
    double least = tccl_ring_set_line(&first, finder->machine);
    for (int i = 0; i < side.count; i++)
        least = fmin(least, rates[i]);
    return n * least;
}

/* The best rings first: the one that is fastest by itself, then the one that is fastest together
 * with it, and so on, since NCCL builds as many of them, in order, as the node with the fewest
 * channels has room for (runtime/nccl/README.md, "Several rings"). Of those alike what was first
 * stays. The last ones go where any number will do and the others are as fast without them. */
static void order_rings(struct finder *finder)
{
    struct tccl_rings_result *result = finder->result;
    struct tccl_ring_set *set = &result->set;
    double gbps[TCCL_CHAIN_RINGS] = {0};
    for (int place = 0; place < set->n; place++) {
        struct tccl_ring_set best = *set;
        for (int i = place; i < set->n; i++) {
            struct tccl_ring_set tried = *set;
            memmove(&tried.rings[place + 1], &tried.rings[place],
                    (size_t)(i - place) * sizeof(tried.rings[0]));
            tried.rings[place] = set->rings[i];
            double together = rate_first(finder, &tried, place + 1);
            if (together > gbps[place] * (1 + 1e-9)) {
                gbps[place] = together;
                best = tried;
            }
        }
        *set = best;
    }
    for (int n = set->n - 1; n > 0 && !finder->options->rings; n--)
        if (gbps[n - 1] >= result->gbps * (1 - 1e-9)) {
            result->gbps = fmax(result->gbps, gbps[n - 1]);
            set->n = n;
        }
}

static int find(const struct tccl_model *model, uint32_t gpus, bool closed,
                const struct tccl_rings_options *options, const struct tccl_ring_set *starts, int n,
                struct tccl_rings_result *result, struct tccl_error *err)
{
    struct finder finder = {.model = model,
                            .machine = options->rater ? options->rater->machine
                                                      : tccl_model_machine(model),
                            .options = options,
                            .closed = closed,
                            .state = options->seed,
                            .starts = starts,
                            .n_starts = n,
                            .result = result,
                            .err = err};
    int from = options->rings ? options->rings : 1;
    int to = options->rings ? options->rings : TCCL_CHAIN_RINGS;
    double bounds[TCCL_CHAIN_RINGS + 1] = {0};
    *result = (struct tccl_rings_result){.gbps = 0};
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (gpus >> i & 1)
            finder.gpus[finder.n_gpus++] = (uint8_t)i;
    for (int i = 0; i < finder.machine->n_nics; i++)
        if (is_allowed(&finder, i))
            finder.nics[finder.n_nics++] = (uint8_t)i;
    if (closed && finder.n_gpus < 2)
        return tccl_fail(err, "one GPU makes no ring");
    if (!closed && finder.n_nics == 0)
        return tccl_fail(err, "the machine has no NIC");
    if (rate_starts(&finder) != 0 || find_bounds(&finder, gpus, from, to, bounds) != 0)
        return -1;
    finder.goal = highest(bounds, from, to) * (1 - options->gap);
    if (find_all(&finder, from, to, bounds) != 0)
        return -1;
    if (!options->rater)
        order_rings(&finder);
    result->bound = fmax(result->gbps, highest(bounds, from, to));
    return 0;
}

int tccl_rings_find(const struct tccl_model *model, uint32_t gpus, bool closed,
                    const struct tccl_rings_options *options, const struct tccl_ring_set *starts,
                    int n, struct tccl_rings_result *result, struct tccl_error *err)
{
    struct tccl_rings_options built = *options;
    struct tccl_rings_result first;
    if (!options->any)
        return find(model, gpus, closed, options, starts, n, result, err);
    /* What NCCL can be made to build is a beginning: so it is never better than what is found. */
    built.any = false;
    if (find(model, gpus, closed, &built, starts, n, &first, err) != 0)
        return -1;
    cleanup_free struct tccl_ring_set *more = calloc((size_t)n + 1, sizeof(*more));
    if (!more)
        return tccl_fail(err, "out of memory");
    more[0] = first.set;
    for (int i = 0; i < n; i++)
        more[i + 1] = starts[i];
    bool none = first.set.n == 0;
    if (find(model, gpus, closed, options, more + none, n + !none, result, err) != 0)
        return -1;
    result->rated += first.rated;
    result->bound = fmax(result->bound, first.bound); /* each is found as closely as it needs to */
    return 0;
}
