/* route.c: depth-first search for a chain within known bounds. */
#include "search/route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_OPTIONS = 2 + TCCL_MAX_MEMORIES,
    MAX_STEPS = TCCL_MAX_GPUS * MAX_OPTIONS,
    POLL = 1 << 16, /* transfers tried from one poll to the next */
};

/* ---- memories that take one bounce ---- */

/* Puts a bounce's two transfers on the stack; returns the bound of the stack. */
static double push_bounce(struct tccl_bounds *bounds, int memory, int from, int to, double above)
{
    tccl_transfer transfers[2];
    tccl_edge_transfers((struct tccl_edge){TCCL_BOUNCE, memory}, from, to, transfers);
    tccl_bounds_push(bounds, transfers[0], above);
    return tccl_bounds_push(bounds, transfers[1], above);
}

static void pop_bounce(struct tccl_bounds *bounds)
{
    tccl_bounds_pop(bounds);
    tccl_bounds_pop(bounds);
}

/* Two bounces, each from one GPU to another, of which nothing tells which is the first: the ends of
 * the first one, then of the second. Looks for the ends from this one on that go together with
 * those on the stack. */
static bool pair_fits(struct tccl_bounds *bounds, uint32_t gpus, int memory, double above,
                      uint8_t ends[4], int end)
{
    for (int gpu = end == 2 ? ends[0] + 1 : 0; gpu < TCCL_MAX_GPUS && end < 4; gpu++) {
        bool taken = end % 2 && (gpu == ends[end - 1] || (end == 3 && gpu == ends[1]));
        if (!(gpus >> gpu & 1) || taken)
            continue;
        ends[end] = (uint8_t)gpu;
        tccl_transfer transfer =
            tccl_transfer_make((struct tccl_device){TCCL_GPU, (uint8_t)gpu}, end % 2,
                               (struct tccl_device){TCCL_MEMORY, (uint8_t)memory});
        bool found = tccl_bounds_push(bounds, transfer, above) > above &&
                     pair_fits(bounds, gpus, memory, above, ends, end + 1);
        tccl_bounds_pop(bounds);
        if (found)
            return true;
    }
    return end == 4;
}

/* Is there no pair of bounces through the memory, between different GPUs of the mask, whose bound
 * is above the threshold? The bounds' stack must be empty. */
static bool is_exclusive(struct tccl_pigeonholes *pigeonholes, struct tccl_bounds *bounds,
                         uint32_t gpus, int memory, double above)
{
    __typeof__(pigeonholes->memories[0]) *known = &pigeonholes->memories[memory];
    if (known->proven && above >= known->exclusive_above)
        return true;
    if (known->seen) {
        push_bounce(bounds, memory, known->ends[0], known->ends[1], above);
        double bound = push_bounce(bounds, memory, known->ends[2], known->ends[3], above);
        pop_bounce(bounds);
        pop_bounce(bounds);
        if (bound > above)
            return false;
    }
    known->seen = pair_fits(bounds, gpus, memory, above, known->ends, 0);
    if (!known->seen) {
        known->proven = true;
        known->exclusive_above = above;
    }
    return !known->seen;
}

/* ---- the walk ---- */

/* A step of the walk: from a GPU to the next, into the head, or out of the tail. */
struct step {
    struct tccl_edge edge;
    uint8_t to; /* position in the list of GPUs */
    uint8_t count;
    bool liked;
    tccl_transfer transfers[2];
    double alone; /* bound of its transfers each alone */
    int distance; /* by path type: the nearer the better */
};

struct walker {
    const struct tccl_route *route;
    int n;
    uint8_t gpus[TCCL_MAX_GPUS]; /* position -> GPU */
    struct step steps[TCCL_MAX_GPUS][MAX_STEPS];
    int n_steps[TCCL_MAX_GPUS];
    struct step first[TCCL_MAX_GPUS], last[TCCL_MAX_GPUS];
    uint32_t heads, tails;        /* positions where the chain may begin and end */
    uint32_t near[TCCL_MAX_GPUS]; /* positions reached by a p2p step within the bounds */
    uint32_t next[TCCL_MAX_GPUS]; /* positions reached by any step */
    /* ways[k << n | visited]: from which of the visited positions all others can be reached with k
     * bounces at most; k = n + 1: with any number. The first n_ways are known. */
    uint16_t *ways;
    int n_ways;
    int slots[TCCL_MAX_MEMORIES]; /* bounces that each memory can still take */
    int free_slots;               /* their sum */
    uint32_t exclusive;           /* memories that take one bounce only */
    struct tccl_set beside[3];    /* an end and a bounce in its memory, entry and exit; both ends */
    int load[TCCL_MAX_MEMORIES];  /* transfers on the stack that touch each memory */
    long steps_left;
    bool stopped; /* by a poll */
    long pruned;
    double above; /* grows while chains are visited */
    struct tccl_chain chain;
};

static struct tccl_device gpu(const struct walker *walker, int position)
{
    return (struct tccl_device){TCCL_GPU, walker->gpus[position]};
}

static void unpush(struct walker *walker, const struct step *step, int pushed)
{
    for (int i = 0; i < pushed; i++)
        tccl_bounds_pop(walker->route->bounds);
    if (step->edge.kind == TCCL_BOUNCE)
        walker->load[step->edge.memory]--;
}

/* Puts a step's transfers on the stack. Returns true if the bound stays above; else takes them
 * back. */
static bool push(struct walker *walker, const struct step *step)
{
    struct tccl_bounds *bounds = walker->route->bounds;
    if (step->edge.kind == TCCL_BOUNCE)
        walker->load[step->edge.memory]++;
    for (int i = 0; i < step->count; i++) {
        walker->steps_left--;
        const struct tccl_route *route = walker->route;
        if (route->poll && walker->steps_left % POLL == 0 && route->poll(route->poll_context) != 0)
            walker->stopped = true;
        if (tccl_bounds_push(bounds, step->transfers[i], walker->above) <= walker->above) {
            unpush(walker, step, i + 1);
            return false;
        }
    }
    return true;
}

static void pop(struct walker *walker, const struct step *step)
{
    unpush(walker, step, step->count);
}

static bool fits(struct walker *walker, const struct step *step)
{
    if (!push(walker, step))
        return false;
    pop(walker, step);
    return true;
}

/* Does the chain to be liked go from one GPU to the next by this edge? */
static bool is_liked(const struct tccl_route *route, int from, int to, struct tccl_edge edge)
{
    const struct tccl_chain *like = route->like;
    int edges = like ? tccl_chain_edges(like) : 0;
    for (int i = 0; i < edges; i++)
        if (like->gpus[i] == from && like->gpus[(i + 1) % like->n_gpus] == to)
            return like->edges[i].kind == edge.kind && like->edges[i].memory == edge.memory;
    return false;
}

/* Without measurements, the shorter way is the better guess: one switch, a near memory, the rest.
 */
static int distance_of(const struct walker *walker, int from, int to, struct tccl_edge edge)
{
    const struct tccl_machine *machine = walker->route->machine;
    if (edge.kind == TCCL_BOUNCE) {
        struct tccl_device memory = {TCCL_MEMORY, edge.memory};
        return 2 + (tccl_machine_path(machine, gpu(walker, from), memory) == TCCL_PATH_SYSTEM) +
               (tccl_machine_path(machine, gpu(walker, to), memory) == TCCL_PATH_SYSTEM);
    }
    enum tccl_path path = tccl_machine_path(machine, gpu(walker, from), gpu(walker, to));
    return path == TCCL_PATH_SWITCH ? 0 : path == TCCL_PATH_NODE ? 1 : 5;
}

static void add_step(struct walker *walker, int from, int to, struct tccl_edge edge)
{
    struct step step = {.edge = edge, .to = to};
    step.count = tccl_edge_transfers(edge, walker->gpus[from], walker->gpus[to], step.transfers);
    if (!fits(walker, &step))
        return;
    step.alone = INFINITY;
    for (int i = 0; i < step.count; i++)
        step.alone = fmin(step.alone, tccl_bounds_alone(walker->route->bounds, step.transfers[i]));
    step.distance = distance_of(walker, from, to, edge);
    step.liked = is_liked(walker->route, walker->gpus[from], walker->gpus[to], edge);
    walker->steps[from][walker->n_steps[from]++] = step;
    walker->next[from] |= 1u << to;
    if (edge.kind != TCCL_BOUNCE)
        walker->near[from] |= 1u << to;
    else if (walker->slots[edge.memory] == 0)
        walker->slots[edge.memory] = walker->exclusive >> edge.memory & 1 ? 1 : TCCL_MAX_GPUS;
}

static void load_memory(struct walker *walker, struct tccl_port port)
{
    if (port.via.kind == TCCL_MEMORY)
        walker->load[port.via.index] += 2;
}

/* The NICs' own transfers are on the stack all the time; what is left of the ports depends on the
 * head and on the tail. Returns false if they alone are out of bounds or if no GPU fits. */
static bool add_ports(struct walker *walker, struct step *fixed)
{
    const struct tccl_route *route = walker->route;
    tccl_transfer in[2] = {0}, out[2] = {0};
    for (int i = 0; i < walker->n; i++) {
        int n_in = tccl_entry_transfers(route->entry, walker->gpus[i], in);
        int n_out = tccl_exit_transfers(route->exit, walker->gpus[i], out);
        bool head = n_in == 2 || route->entry.via.index == walker->gpus[i];
        bool tail = n_out == 2 || route->exit.via.index == walker->gpus[i];
        walker->first[i] = (struct step){.count = n_in - 1, .transfers = {in[1]}};
        walker->last[i] = (struct step){.count = n_out - 1, .transfers = {out[1]}};
        walker->heads |= (uint32_t)head << i;
        walker->tails |= (uint32_t)tail << i;
    }
    *fixed = (struct step){.count = 2, .transfers = {in[0], out[0]}};
    load_memory(walker, route->entry);
    load_memory(walker, route->exit);
    return walker->heads && walker->tails && push(walker, fixed);
}

/* Positions from which a step leads to one of these. */
static uint32_t before(const struct walker *walker, const uint32_t steps[], uint32_t to)
{
    uint32_t from = 0;
    for (int i = 0; i < walker->n; i++)
        from |= (uint32_t)((steps[i] & to) != 0) << i;
    return from;
}

/* Finds the ways with one number of bounces, where those with one less are known (Held and Karp's
 * recurrence for paths over subsets, for all ends at once). */
static void look_ahead(const struct walker *walker, int bounces)
{
    uint32_t full = (1u << walker->n) - 1, by_p2p[TCCL_MAX_GPUS], by_bounce[TCCL_MAX_GPUS];
    bool any = bounces > walker->n;
    uint16_t *ways = walker->ways + ((size_t)bounces << walker->n);
    const uint16_t *less = any ? ways : bounces > 0 ? ways - (full + 1) : NULL;
    for (int to = 0; to < walker->n; to++) {
        by_p2p[to] = before(walker, walker->near, 1u << to);
        by_bounce[to] = before(walker, walker->next, 1u << to);
    }
    ways[full] = walker->tails;
    if (walker->route->closed && bounces == 0)
        ways[full] &= by_p2p[0];
    for (uint32_t visited = full - 1; visited > 0; visited--) {
        uint32_t from = 0;
        for (uint32_t left = full & ~visited; left; left &= left - 1) {
            int to = __builtin_ctz(left);
            from |= ways[visited | 1u << to] >> to & 1 ? by_p2p[to] : 0;
            from |= less && (less[visited | 1u << to] >> to & 1) ? by_bounce[to] : 0;
        }
        ways[visited] = from & visited;
    }
}

/* Room for the ways. Returns -1 without memory. */
static int plan_ahead(struct walker *walker)
{
    walker->ways = calloc((size_t)(walker->n + 2) << walker->n, sizeof(*walker->ways));
    for (int m = 0; m < TCCL_MAX_MEMORIES; m++)
        walker->free_slots += walker->slots[m];
    if (!walker->ways)
        return -1;
    look_ahead(walker, walker->n + 1);
    return 0;
}

/* As push, for the search itself. */
static bool go(struct walker *walker, const struct step *step)
{
    bool goes = push(walker, step);
    walker->pruned += !goes;
    return goes;
}

/* Can the rest be visited from this GPU with the slots that are left? */
static bool can_finish(struct walker *walker, uint32_t visited, int last, int slots)
{
    int most = walker->n - __builtin_popcount(visited) + walker->route->closed;
    int bounces = slots < most ? slots : walker->n + 1;
    if (slots < 0)
        return false;
    for (; bounces <= walker->n && walker->n_ways <= bounces; walker->n_ways++)
        look_ahead(walker, walker->n_ways);
    return walker->ways[((size_t)bounces << walker->n) + visited] >> last & 1;
}

/* Is a the better step to try: liked ones, then those with more bandwidth alone, with less crowded
 * memories, nearer. */
static bool better_step(const struct walker *walker, const struct step *a, const struct step *b)
{
    if (a->liked != b->liked)
        return a->liked;
    if (a->alone != b->alone)
        return a->alone > b->alone;
    int load_a = a->edge.kind == TCCL_BOUNCE ? walker->load[a->edge.memory] : 0;
    int load_b = b->edge.kind == TCCL_BOUNCE ? walker->load[b->edge.memory] : 0;
    return a->distance + 2 * load_a < b->distance + 2 * load_b;
}

/* A GPU's buffers are all in one memory: that of the edge into the tail and that on the way to the
 * network. What else can't be built shows when the chain is complete. */
static bool exit_allows(const struct walker *walker, uint32_t visited, const struct step *step)
{
    const struct tccl_route *route = walker->route;
    bool into_tail = !route->closed && (visited | 1u << step->to) == (1u << walker->n) - 1;
    return route->any || !into_tail || step->edge.kind != TCCL_BOUNCE ||
           route->exit.via.kind != TCCL_MEMORY || route->exit.via.index == step->edge.memory;
}

static int extend(struct walker *walker, uint32_t visited, int position);

/* A chain is complete: found, unless NCCL can't be made to build it, or a visitor wants to go on.
 */
static int meet(struct walker *walker)
{
    const struct tccl_route *route = walker->route;
    struct tccl_chain chain = walker->chain;
    chain.n_gpus = walker->n;
    chain.closed = route->closed;
    chain.entry = route->entry;
    chain.exit = route->exit;
    if (!route->any && tccl_expressible(route->machine, &chain, 1, NULL) != 0)
        return 0;
    return !route->visit || route->visit(route->context, &chain, &walker->above) != 0;
}

static void count_bounce(struct walker *walker, const struct step *step, int bounces)
{
    walker->free_slots -= bounces;
    walker->slots[step->edge.memory] -= bounces;
}

/* Takes one step and goes on from there. */
static int take(struct walker *walker, uint32_t visited, const struct step *step)
{
    int depth = __builtin_popcount(visited);
    if (!exit_allows(walker, visited, step) || !go(walker, step))
        return 0;
    bool bounce = step->edge.kind == TCCL_BOUNCE;
    count_bounce(walker, step, bounce);
    walker->chain.edges[depth - 1] = step->edge;
    int found;
    if (visited >> step->to & 1) {
        found = meet(walker);
    } else {
        walker->chain.gpus[depth] = walker->gpus[step->to];
        found = extend(walker, visited | 1u << step->to, step->to);
    }
    count_bounce(walker, step, -bounce);
    pop(walker, step);
    return found;
}

static int extend(struct walker *walker, uint32_t visited, int position)
{
    const struct step *ordered[MAX_STEPS];
    uint32_t full = (1u << walker->n) - 1;
    if (visited == full && !walker->route->closed) {
        if (!go(walker, &walker->last[position]))
            return 0;
        pop(walker, &walker->last[position]);
        return meet(walker);
    }
    uint32_t into = visited == full ? 1 : full & ~visited;
    /* The steps from a GPU to those in the mask, best first. */
    int count = 0;
    for (int i = 0; i < walker->n_steps[position]; i++) {
        const struct step *step = &walker->steps[position][i];
        bool bounce = step->edge.kind == TCCL_BOUNCE;
        if (!(into >> step->to & 1) || (bounce && walker->slots[step->edge.memory] == 0))
            continue;
        if (!(visited >> step->to & 1) &&
            !can_finish(walker, visited | 1u << step->to, step->to, walker->free_slots - bounce))
            continue;
        int place = count++;
        for (; place > 0 && better_step(walker, step, ordered[place - 1]); place--)
            ordered[place] = ordered[place - 1];
        ordered[place] = step;
    }
    for (int i = 0; i < count; i++) {
        if (walker->steps_left <= 0 || walker->stopped)
            return -1;
        int found = take(walker, visited, ordered[i]);
        if (found != 0)
            return found;
    }
    return 0;
}

/* The liked one first. */
static int try_heads(struct walker *walker)
{
    const struct tccl_chain *like = walker->route->like;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < walker->n; i++) {
            bool liked = like && like->n_gpus > 0 && like->gpus[0] == walker->gpus[i];
            if (!(walker->heads >> i & 1) || liked != (pass == 0) ||
                !can_finish(walker, 1u << i, i, walker->free_slots) ||
                !go(walker, &walker->first[i]))
                continue;
            walker->chain.gpus[0] = walker->gpus[i];
            int found = extend(walker, 1u << i, i);
            pop(walker, &walker->first[i]);
            if (found != 0)
                return found;
        }
    }
    return 0;
}

/* A bounce through the memory that goes together with this end of the chain; NULL: none. */
static const struct step *bounce_beside(struct walker *walker, int memory, const struct step *end,
                                        int position, bool is_head)
{
    const struct step *found = NULL;
    if (!push(walker, end))
        return NULL;
    for (int from = 0; from < walker->n && !found; from++) {
        for (int i = 0; i < walker->n_steps[from] && !found; i++) {
            const struct step *step = &walker->steps[from][i];
            if (step->edge.kind == TCCL_BOUNCE && step->edge.memory == memory &&
                position != (is_head ? step->to : from) && fits(walker, step))
                found = step;
        }
    }
    pop(walker, end);
    return found;
}

static void add_to_walk(struct tccl_set *walk, const struct step *step)
{
    for (int i = 0; i < step->count; i++)
        walk->transfers[walk->count++] = step->transfers[i];
}

/* A port's memory has no slot left where none of its bounces goes together with any head or tail.
 * Otherwise beside gets an end and a bounce that do. */
static void take_port_slot(struct walker *walker, struct tccl_port port, bool is_head,
                           struct tccl_set *beside)
{
    uint32_t ends = is_head ? walker->heads : walker->tails;
    const struct step *steps = is_head ? walker->first : walker->last;
    beside->count = 0;
    if (port.via.kind != TCCL_MEMORY || walker->slots[port.via.index] != 1)
        return;
    for (int i = 0; i < walker->n; i++) {
        if (!(ends >> i & 1))
            continue;
        const struct step *bounce = bounce_beside(walker, port.via.index, &steps[i], i, is_head);
        if (bounce) {
            add_to_walk(beside, &steps[i]);
            add_to_walk(beside, bounce);
            return;
        }
    }
    walker->slots[port.via.index] = 0;
}

/* A head and a tail that go together; the chain is impossible where there are none. */
static void join_ends(struct walker *walker, const struct step *fixed, struct tccl_set *both)
{
    both->count = 0;
    for (int head = 0; head < walker->n; head++) {
        if (!(walker->heads >> head & 1) || !push(walker, &walker->first[head]))
            continue;
        for (int tail = 0; tail < walker->n && both->count == 0; tail++) {
            if (!(walker->tails >> tail & 1) || (head == tail && walker->n > 1) ||
                !fits(walker, &walker->last[tail]))
                continue;
            add_to_walk(both, fixed);
            add_to_walk(both, &walker->first[head]);
            add_to_walk(both, &walker->last[tail]);
        }
        pop(walker, &walker->first[head]);
    }
    if (both->count == 0)
        walker->heads = 0;
}

/* With the ports on the stack: what each step and slot is worth. */
static void look_around(struct walker *walker, const struct step *fixed)
{
    if (!walker->route->closed) {
        for (int i = 0; i < walker->n; i++) {
            if ((walker->heads >> i & 1) && !fits(walker, &walker->first[i]))
                walker->heads &= ~(1u << i);
            if ((walker->tails >> i & 1) && !fits(walker, &walker->last[i]))
                walker->tails &= ~(1u << i);
        }
        join_ends(walker, fixed, &walker->beside[2]);
    }
    const struct tccl_machine *machine = walker->route->machine;
    for (int from = 0; from < walker->n; from++) {
        for (int to = 0; to < walker->n; to++) {
            if (from == to)
                continue;
            if (machine->p2p[walker->gpus[from]][walker->gpus[to]]) {
                if (walker->route->any || !walker->route->reads)
                    add_step(walker, from, to, (struct tccl_edge){TCCL_P2P_WRITE, 0});
                if (walker->route->any || walker->route->reads)
                    add_step(walker, from, to, (struct tccl_edge){TCCL_P2P_READ, 0});
            }
            for (int m = 0; m < machine->n_memories; m++)
                if (!(walker->route->shun >> m & 1))
                    add_step(walker, from, to, (struct tccl_edge){TCCL_BOUNCE, m});
        }
    }
    if (!walker->route->closed) {
        take_port_slot(walker, walker->route->entry, true, &walker->beside[0]);
        take_port_slot(walker, walker->route->exit, false, &walker->beside[1]);
        return;
    }
    walker->heads = 1;
    for (int i = 1; i < walker->n; i++)
        walker->tails |= (walker->next[i] & 1) << i;
}

/* Everything up to the search itself. Returns whether the ports are within the bounds; fixed is
 * then on the stack. */
static bool set_up(struct walker *walker, const struct tccl_route *route, struct step *fixed)
{
    walker->route = route;
    walker->steps_left = route->steps;
    walker->above = route->above;
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (route->gpus >> i & 1)
            walker->gpus[walker->n++] = i;
    for (int m = 0; m < route->machine->n_memories; m++)
        if (is_exclusive(route->pigeonholes, route->bounds, route->gpus, m, route->above))
            walker->exclusive |= 1u << m;
    if (walker->n < (route->closed ? 2 : 1) || (!route->closed && !add_ports(walker, fixed)))
        return false;
    look_around(walker, fixed);
    return true;
}

int tccl_route_find(const struct tccl_route *route, struct tccl_chain *chain)
{
    struct step fixed = {.count = 0};
    struct walker *walker = calloc(1, sizeof(*walker));
    if (!walker)
        return -1;
    int found = 0;
    if (set_up(walker, route, &fixed)) {
        found = plan_ahead(walker) != 0 ? -1 : try_heads(walker);
        free(walker->ways);
        pop(walker, &fixed);
    }
    if (route->spent)
        *route->spent += route->steps - walker->steps_left;
    if (route->pruned)
        *route->pruned += walker->pruned;
    *chain = walker->chain;
    chain->n_gpus = found == 1 ? walker->n : 0;
    chain->closed = route->closed;
    chain->entry = route->entry;
    chain->exit = route->exit;
    free(walker);
    return found;
}

int tccl_route_suspects(const struct tccl_route *route, struct tccl_set *walks)
{
    struct step fixed = {.count = 0};
    struct walker *walker = calloc(1, sizeof(*walker));
    int count = 0;
    if (walker && set_up(walker, route, &fixed)) {
        for (int m = 0; m < route->machine->n_memories; m++)
            if (walker->slots[m] > 1) {
                /* Two bounces through one memory that nothing forbids. */
                struct tccl_set *walk = &walks[count++];
                const struct tccl_pigeonholes *pigeonholes = walker->route->pigeonholes;
                struct tccl_edge edge = {TCCL_BOUNCE, m};
                walk->count = 0;
                for (int i = 0; i < 4; i += 2)
                    walk->count += tccl_edge_transfers(edge, pigeonholes->memories[m].ends[i],
                                                       pigeonholes->memories[m].ends[i + 1],
                                                       walk->transfers + walk->count);
            }
        for (int end = 0; end < 3; end++)
            if (walker->beside[end].count > 0)
                walks[count++] = walker->beside[end];
        pop(walker, &fixed);
    }
    free(walker);
    return count;
}

long tccl_route_count(const struct tccl_route *route, long limit)
{
    int n = __builtin_popcount(route->gpus), edges = route->closed ? n : n - 1;
    long count = 1, ways = route->machine->n_memories + (route->any ? 2 : 1);
    for (int i = 2; i <= (route->closed ? n - 1 : n) && count < limit; i++)
        count *= i;
    for (int i = 0; i < edges && count < limit; i++)
        count *= ways;
    return count < limit ? count : limit;
}
