/* meter-sets.c: ring sets by few measurements. What was measured for chains says what parts of the
 * machine have room for: a transfer alone, or a small set of them that is slow together, has a
 * capacity, which is shared by all that use it; and
 * each link of the PCI tree has that of the fastest transfer over it. By these capacities, which
 * are a guess and rather too large than too small, rings are annealed (search/rings.h) at no cost.
 * The best set is measured. If it is slower than guessed, the smallest part of it that is as slow
 * is looked for, and becomes one more capacity; then it begins again, until the guess promises
 * nothing better. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "machine/links.h"
#include "search/model-table.h"
#include "search/rings.h"
#include "search/task.h"

enum {
    FAILURES = 2,
    FEW_MEMBERS = 4,
    MAX_BAD = 64,
    ROUNDS = 60,
    TRIES = 2,
    GUESSES = 10000,
    MAX_ROOMS = 1 << 14,
    MAX_IMAGES = 64
};

/* Transfers of several kinds together get more out of a link than one kind alone, as reads cost
 * more than writes; this much at most. */
#define SLACK 1.1

/* What its members have together. */
struct room {
    double gbps;
    int32_t next;            /* that has the same first member; -1: none */
    struct tccl_set members; /* each once */
};

struct guesser {
    struct tccl_task *task;
    struct tccl_table *table;
    double alone[TCCL_TRANSFERS];
    struct tccl_links links[TCCL_TRANSFERS];
    double carried[TCCL_LINKS]; /* GB/s, the most that was seen */
    double limits[TCCL_LINKS];  /* what there is room for, as far as known; INFINITY: unknown */
    double single;              /* no ring is faster, GB/s; INFINITY: unknown */
    struct room *rooms;
    size_t n_rooms, rooms_room;
    int32_t by_first[TCCL_TRANSFERS]; /* rooms by their first member; -1: none */
    /* Sets that were asked for here. What else the meter knows doesn't count, so that a run that is
     * resumed asks for the same ones. */
    struct tccl_setmap tried;
    struct tccl_set bad[MAX_BAD];  /* could not be measured */
    int n_bad, failures;           /* failures: while ring sets were measured */
    uint8_t times[TCCL_TRANSFERS]; /* zero but while a set is rated */
    bool closed, reads;
    int status; /* of the meter: 0, or why it has to stop */
};

/* ---- guesses ---- */

static void add_room(void *context, const struct tccl_set *members, double gbps)
{
    struct guesser *guesser = context;
    if (guesser->n_rooms == MAX_ROOMS)
        return;
    if (members->count == 0 ||
        TCCL_GROW(guesser->rooms, guesser->n_rooms, guesser->rooms_room) != 0)
        return;
    int32_t *first = &guesser->by_first[members->transfers[0]];
    guesser->rooms[guesser->n_rooms] = (struct room){gbps, *first, *members};
    *first = (int32_t)guesser->n_rooms++;
}

/* A limit: what its members had, each once. */
static void add_limit(void *context, const struct tccl_set *members, double gbps)
{
    add_room(context, members, gbps * members->count);
}

static void add_bad(struct guesser *guesser, const struct tccl_set *set)
{
    if (guesser->n_bad < MAX_BAD)
        guesser->bad[guesser->n_bad++] = *set;
}

/* Does it hold a set that could not be measured? */
static bool is_bad(const struct guesser *guesser, const struct tccl_set *set)
{
    for (int i = 0; i < guesser->n_bad; i++)
        if (tccl_set_contains(set, &guesser->bad[i]))
            return true;
    return false;
}

static bool has_gpu(const struct guesser *guesser, struct tccl_device device)
{
    return device.kind != TCCL_GPU || (guesser->task->gpus >> device.index & 1);
}

/* May rings have it? */
static bool may_use(const struct guesser *guesser, tccl_transfer transfer)
{
    const struct tccl_search_options *options = guesser->task->options;
    struct tccl_device who = tccl_transfer_initiator(transfer);
    struct tccl_device whom = tccl_transfer_target(transfer);
    bool p2p = who.kind == TCCL_GPU && whom.kind == TCCL_GPU;
    return !(p2p && tccl_transfer_reads(transfer) != guesser->reads) && has_gpu(guesser, who) &&
           has_gpu(guesser, whom) &&
           tccl_machine_allows(guesser->task->search->machine, transfer, NULL) == 0 &&
           (!options->can || options->can(options->context, transfer));
}

/* How many transfers share each link. */
static void count_users(const struct guesser *guesser, const tccl_transfer *transfers, int count,
                        int users[static TCCL_LINKS])
{
    tccl_links_users(guesser->task->search->machine, guesser->links, transfers, count, users);
}

/* A set that was measured: its links have room for what they carried. */
static void raise_carried(struct guesser *guesser, const struct tccl_set *set, double gbps)
{
    int users[TCCL_LINKS];
    count_users(guesser, set->transfers, set->count, users);
    for (int i = 0; i < TCCL_LINKS; i++)
        guesser->carried[i] = fmax(guesser->carried[i], users[i] * gbps);
}

/* By a chain of the table: of the sets that were measured only these are the same in a run that is
 * resumed. */
static void raise_by(struct guesser *guesser, const struct tccl_result *result)
{
    struct tccl_set set;
    if (result->chain.n_gpus == 0)
        return;
    tccl_chain_set(&result->chain, &set);
    raise_carried(guesser, &set, result->gbps);
}

/* Transfers that kept no chain below the best one are not known: they are measured, one of those
 * that are alike. Returns as tccl_search_meter_measure. */
static int learn_alone(struct guesser *guesser)
{
    struct tccl_search_meter *meter = &guesser->task->search->meter;
    for (int i = 0; i < TCCL_TRANSFERS; i++) {
        tccl_transfer transfer = (tccl_transfer)i;
        struct tccl_set walk = {.count = 1, .transfers = {transfer}};
        if (!may_use(guesser, transfer))
            continue;
        guesser->alone[i] = tccl_bounds_alone(meter->bounds, transfer);
        if (isinf(guesser->alone[i]) &&
            (guesser->status = tccl_search_meter_measure(meter, &walk, &guesser->alone[i],
                                                         guesser->task->err)) != 0)
            return guesser->status;
        /* The links that it shares have room for it at least. */
        struct tccl_links *own = &guesser->links[transfer];
        tccl_links_of(guesser->task->search->machine, transfer, own);
        for (int i = 0; i < own->n; i++)
            if (own->links[i] < TCCL_LINK_NUMA)
                guesser->limits[own->links[i]] =
                    fmax(guesser->limits[own->links[i]], SLACK * guesser->alone[transfer]);
    }
    return 0;
}

static int learn_chains(struct guesser *guesser)
{
    const struct tccl_bounds *bounds = guesser->task->search->meter.bounds;
    const struct tccl_setmap *sets = guesser->task->search->meter.sets;
    for (size_t i = 0; i < sets->count; i++)
        if (sets->entries[i].failed && sets->entries[i].measured == 0)
            add_bad(guesser, &sets->entries[i].set);
    for (int i = TCCL_LINK_NUMA; i < TCCL_LINKS; i++)
        guesser->limits[i] = INFINITY;
    if (learn_alone(guesser) != 0)
        return guesser->status;
    raise_by(guesser, tccl_table_ring(guesser->table));
    for (int i = 0; i < tccl_table_pairs(guesser->table); i++)
        raise_by(guesser, &guesser->table->results[i]);
    memset(guesser->by_first, 0xff, sizeof(guesser->by_first));
    tccl_bounds_each_limit(bounds, guesser->task->gpus, add_limit, guesser);
    return 0;
}

/* How often its members run now; 0: one of them doesn't. */
static int times_of(const struct guesser *guesser, const struct tccl_set *members)
{
    int sum = 0;
    for (int i = 0; i < members->count; i++) {
        int times = guesser->times[members->transfers[i]];
        if (times == 0)
            return 0;
        sum += times;
    }
    return sum;
}

/* The rooms that begin with a transfer. first: where each stands in the list of least. */
static void share_rooms(const struct guesser *guesser, tccl_transfer transfer, const int *first,
                        double *least)
{
    for (int32_t i = guesser->by_first[transfer]; i >= 0; i = guesser->rooms[i].next) {
        const struct room *room = &guesser->rooms[i];
        int sum = times_of(guesser, &room->members);
        for (int k = 0; k < room->members.count && sum > 0; k++) {
            double *own = &least[first[room->members.transfers[k]]];
            *own = fmin(*own, room->gbps / sum);
        }
    }
}

static double room_of(const struct guesser *guesser, int link)
{
    return fmax(guesser->carried[link], guesser->limits[link]);
}

/* By the capacities. */
static void guess(struct guesser *guesser, const tccl_transfer *transfers, int count, double *rates)
{
    double least[TCCL_MAX_SIDE];
    int first[TCCL_TRANSFERS];
    for (int i = 0; i < count; i++)
        guesser->times[transfers[i]]++;
    for (int i = 0; i < count; i++) {
        least[i] =
            fmin(guesser->single, guesser->alone[transfers[i]] / guesser->times[transfers[i]]);
        first[transfers[i]] = i;
    }
    /* Transfers over one link share it, and so on. */
    int users[TCCL_LINKS];
    count_users(guesser, transfers, count, users);
    for (int i = 0; i < count; i++) {
        const struct tccl_links *own = &guesser->links[transfers[i]];
        for (int k = 0; k < own->n; k++)
            least[i] = fmin(least[i], room_of(guesser, own->links[k]) / users[own->links[k]]);
    }
    for (int i = 0; i < count; i++)
        if (first[transfers[i]] == i)
            share_rooms(guesser, transfers[i], first, least);
    for (int i = 0; i < count; i++)
        rates[i] = least[first[transfers[i]]];
    for (int i = 0; i < count; i++)
        guesser->times[transfers[i]] = 0;
}

static int rate_guess(void *context, const tccl_transfer *transfers, int count, double *rates,
                      struct tccl_error *err UNUSED)
{
    struct guesser *guesser = context;
    const struct tccl_task *task = guesser->task;
    struct tccl_set set = {0};
    for (int i = 0; i < count; i++)
        if ((task->options->can && !task->options->can(task->options->context, transfers[i])) ||
            tccl_set_add_again(&set, transfers[i]) != 0)
            return 1;
    if (is_bad(guesser, &set))
        return 1;
    guess(guesser, transfers, count, rates);
    const struct tccl_setmap_entry *entry = tccl_setmap_find(&guesser->tried, &set);
    if (count > 1 && entry && entry->measured > 0)
        tccl_rings_known(rates, count, entry->best.gbps);
    return 0;
}

/* ---- measuring ---- */

/* Is a set that holds this one known to be faster? */
static bool is_fast(const struct guesser *guesser, const struct tccl_set *set, double most)
{
    for (size_t i = 0; i < guesser->tried.count; i++) {
        const struct tccl_setmap_entry *entry = &guesser->tried.entries[i];
        if (entry->best.gbps > most && tccl_set_contains(&entry->set, set))
            return true;
    }
    return false;
}

/* 0 for one that failed. Returns as tccl_search_meter_measure. */
static int measure(struct guesser *guesser, const struct tccl_set *set, double *gbps)
{
    *gbps = 0;
    guesser->status = tccl_search_meter_measure_repeats(&guesser->task->search->meter, set, gbps,
                                                        guesser->task->err);
    if (guesser->status != 0)
        return guesser->status;
    raise_carried(guesser, set, *gbps);
    if (*gbps <= 0) {
        add_bad(guesser, set);
        guesser->status = ++guesser->failures >= FAILURES; /* chains come first */
    }
    const struct tccl_measurement measurement = {.gbps = *gbps, .failed = *gbps <= 0};
    if (!tccl_setmap_note(&guesser->tried, set, &measurement))
        guesser->status = tccl_fail(guesser->task->err, "out of memory");
    return guesser->status;
}

/* Transfers of a set, each once, of which some are looked at. */
struct slow_part {
    const struct tccl_set *whole; /* with repeats */
    struct tccl_set each;         /* without */
    double most;
};

/* The part of the whole that has these of each. */
static void part_of(const struct slow_part *slow, const bool *chosen, struct tccl_set *part)
{
    part->count = 0;
    for (int i = 0, k = 0; i < slow->whole->count; i++) {
        k += slow->whole->transfers[i] != slow->each.transfers[k];
        if (chosen[k])
            part->transfers[part->count++] = slow->whole->transfers[i];
    }
}

static bool is_slow(struct guesser *guesser, const struct slow_part *slow, const bool *chosen)
{
    struct tccl_set part;
    double gbps;
    part_of(slow, chosen, &part);
    if (part.count == 0 || guesser->status != 0 || is_fast(guesser, &part, slow->most))
        return false;
    return measure(guesser, &part, &gbps) == 0 && gbps > 0 && gbps <= slow->most;
}

static bool has_room(const struct room *rooms, size_t count, const struct tccl_set *members)
{
    for (size_t i = 0; i < count; i++)
        if (tccl_set_equal(&rooms[i].members, members))
            return true;
    return false;
}

/* Members of a slow part, not so few that they may hold each other back in another way, that all
 * share no link, but a way between NUMA nodes, or else a memory: so
 * may all others that use it. What carries more shows that it was something else. */
static void learn_link(struct guesser *guesser, const struct tccl_set *members, double gbps)
{
    const struct tccl_links *first = &guesser->links[members->transfers[0]];
    int users[TCCL_LINKS];
    count_users(guesser, members->transfers, members->count, users);
    for (int i = 0; i < first->n; i++) {
        int link = first->links[i];
        if (members->count < FEW_MEMBERS || users[link] < members->count)
            continue;
        if (link >= TCCL_LINK_NUMA)
            guesser->limits[link] = fmin(guesser->limits[link], gbps);
        return;
    }
}

/* The capacity, and those of symmetric parts. */
static void learn(struct guesser *guesser, const struct tccl_set *members, double gbps)
{
    const struct tccl_symmetry *symmetry =
        tccl_bounds_symmetry(guesser->task->search->meter.bounds);
    size_t first = guesser->n_rooms;
    add_room(guesser, members, gbps);
    learn_link(guesser, members, gbps);
    for (size_t at = first; at < guesser->n_rooms && guesser->n_rooms < first + MAX_IMAGES; at++) {
        const struct tccl_set own = guesser->rooms[at].members;
        struct tccl_set image;
        for (int i = tccl_symmetry_exchanges(symmetry, &own, false) - 1; i >= 0; i--) {
            tccl_symmetry_exchange(symmetry, &own, false, i, &image);
            if (!(tccl_set_gpus(&image) & ~guesser->task->gpus) &&
                !has_room(guesser->rooms + first, guesser->n_rooms - first, &image)) {
                add_room(guesser, &image, gbps);
                learn_link(guesser, &image, gbps);
            }
        }
    }
}

/* By how much two values must differ, as a ratio, to be different. */
static double unlike(const struct guesser *guesser)
{
    const struct tccl_search_options *options = guesser->task->options;
    return fmax(options->noise, options->blur);
}

/* A set was slower than guessed: which part makes it so? */
static void explain(struct guesser *guesser, const struct tccl_set *set, double gbps)
{
    double noise = unlike(guesser);
    struct slow_part slow = {.whole = set, .most = gbps * (1 + fmax(noise, 1e-9))};
    bool chosen[TCCL_MAX_SET];
    struct tccl_set part, members = {0};
    for (int i = 0; i < set->count; i++)
        tccl_set_add(&slow.each, set->transfers[i]);
    memset(chosen, true, sizeof(chosen));
    /* Leaves out what the part is slow without: blocks of its members, ever smaller ones. */
    int n = slow.each.count;
    for (int block = (n + 1) / 2; block > 0 && guesser->status == 0; block /= 2)
        for (int from = 0; from < n && guesser->status == 0; from += block) {
            bool fewer[TCCL_MAX_SET];
            bool any = false;
            memcpy(fewer, chosen, sizeof(fewer));
            for (int i = from; i < from + block && i < n; i++) {
                any = any || fewer[i];
                fewer[i] = false;
            }
            if (any && is_slow(guesser, &slow, fewer))
                memcpy(chosen, fewer, sizeof(fewer));
        }
    part_of(&slow, chosen, &part);
    for (int i = 0; i < part.count; i++)
        tccl_set_add(&members, part.transfers[i]);
    learn(guesser, &members, gbps * part.count);
}

/* ---- sets ---- */

/* Of sets of so many rings of this kind; 0: none. */
static double best_kept(const struct guesser *guesser, int rings)
{
    double best = 0;
    for (const struct tccl_result *own = NULL;
         (own = tccl_table_next(guesser->table, own, TCCL_SETS));)
        if (own->set->n == rings && own->chain.closed == guesser->closed &&
            tccl_ring_set_reads(own->set) == guesser->reads)
            best = fmax(best, own->gbps);
    return best;
}

/* Measures all rings together, and keeps them if they are the best of as many. guessed: GB/s of
 * all; a part that makes them slower is looked for; 0: none is. Returns what they reach; 0: they
 * can't be measured. */
static double try_rings(struct guesser *guesser, const struct tccl_ring_set *rings, double bound,
                        double guessed)
{
    struct tccl_side side;
    struct tccl_set set;
    double slowest, noise = unlike(guesser);
    tccl_ring_set_side(rings, &side);
    if (tccl_side_set(&side, &set) != 0 || is_bad(guesser, &set) ||
        measure(guesser, &set, &slowest) != 0 || slowest <= 0)
        return 0;
    double gbps =
        rings->n * fmin(slowest, tccl_ring_set_line(rings, guesser->task->search->machine));
    if (rings->n > 1 && tccl_ring_set_reads(rings) == guesser->reads &&
        gbps > best_kept(guesser, rings->n))
        tccl_table_keep_set(guesser->table, rings, gbps, fmax(bound, gbps));
    if (rings->n * slowest < guessed * (1 - noise - 1e-6))
        explain(guesser, &set, slowest);
    return gbps;
}

/* No set is faster than what enters or leaves a GPU, by what was measured for one transfer; nor is
 * a ring of it than the best one alone. */
static double bound_of(const struct guesser *guesser, int rings)
{
    double bound = rings * guesser->single;
    for (int gpu = 0; gpu < TCCL_MAX_GPUS; gpu++)
        if (guesser->task->gpus >> gpu & 1)
            bound = fmin(bound, fmin(room_of(guesser, 2 * gpu), room_of(guesser, 2 * gpu + 1)));
    return bound;
}

static double single_bound(const struct tccl_table *table, bool closed)
{
    double bound = closed ? tccl_table_ring(table)->bound : 0;
    for (int i = 0; i < tccl_table_pairs(table) && !closed; i++)
        if (table->results[i].gbps > 0 || isfinite(table->results[i].bound))
            bound = fmax(bound, table->results[i].bound);
    return bound > 0 ? bound : INFINITY;
}

/* Guesses, measures and learns, so many times, for sets better than *best. */
static int look_for(struct guesser *guesser, int rings, int rounds, double *best,
                    struct tccl_ring_set *starts, int n_starts)
{
    const struct tccl_task *task = guesser->task;
    double gap = fmax(fmax(task->gap, task->options->noise), 0.01);
    for (int i = 0; i < rounds && guesser->status == 0; i++) {
        const struct tccl_rings_rater rater = {.rate = rate_guess,
                                               .context = guesser,
                                               .machine = task->search->machine,
                                               .bound = bound_of(guesser, TCCL_CHAIN_RINGS)};
        const struct tccl_rings_options options = {
            .rater = &rater,
            .rings = rings,
            .reads = guesser->reads,
            .gap = gap,
            .budget = GUESSES,
            .single_bound = isfinite(guesser->single) ? guesser->single : 0,
            .seed = (uint64_t)i + 1};
        struct tccl_rings_result found;
        if (tccl_rings_find(NULL, task->gpus, guesser->closed, &options, starts, n_starts, &found,
                            task->err) != 0)
            return -1;
        if (found.set.n < 2 || found.gbps <= *best * (1 + gap))
            return 0;
        double gbps = try_rings(guesser, &found.set, bound_of(guesser, found.set.n), found.gbps);
        if (gbps > *best) {
            *best = gbps;
            starts[n_starts - 1] = found.set;
        }
    }
    return guesser->status;
}

/* Returns 0; 1 when stopped; -1 with err. */
static int find_sets(struct guesser *guesser, bool closed, struct tccl_ring_set *starts)
{
    const struct tccl_machine *machine = guesser->task->search->machine;
    struct tccl_table *table = guesser->table;
    int n = tccl_table_starts(table, closed, guesser->reads, starts);
    const struct tccl_result *alone =
        closed ? tccl_table_ring(table) : tccl_table_best(table, -1, -1);
    double best = alone ? alone->gbps : 0;
    guesser->closed = closed;
    guesser->single = single_bound(table, closed);
    if (n == 0 || best <= 0)
        return 0;
    for (int i = 0; i < n && guesser->status == 0; i++)
        if (starts[i].n > 1 && tccl_ring_set_check(&starts[i], machine, NULL) == 0 &&
            tccl_expressible(machine, starts[i].rings, starts[i].n, NULL) == 0)
            best = fmax(best, try_rings(guesser, &starts[i], bound_of(guesser, starts[i].n), 0));
    starts[n] = starts[0];
    int status =
        guesser->status ? guesser->status : look_for(guesser, 0, ROUNDS, &best, starts, n + 1);
    for (int rings = 2; rings <= 4 && status == 0 && !closed; rings += 2) {
        double none = 0;
        if (best_kept(guesser, rings) <= 0)
            status = look_for(guesser, rings, TRIES, &none, starts, n + 1);
    }
    return status;
}

/* Two thirds of what may be asked for are left to rings over nodes. */
static int find_both(struct guesser *guesser, struct tccl_ring_set *starts)
{
    struct tccl_search_meter *meter = &guesser->task->search->meter;
    long most = meter->most_asked;
    int status = learn_chains(guesser);
    if (status != 0)
        return status;
    if (__builtin_popcount(guesser->task->gpus) > 1) {
        meter->most_asked = meter->asked + (most - meter->asked + 2) / 3;
        status = find_sets(guesser, true, starts);
        meter->most_asked = most;
    }
    if (status < 0 || meter->stopped || guesser->task->search->machine->n_nics == 0)
        return status;
    guesser->status = 0;
    return find_sets(guesser, false, starts);
}

int tccl_task_find_sets(struct tccl_task *task, struct tccl_table *table)
{
    struct guesser *guesser = calloc(1, sizeof(*guesser));
    cleanup_free struct tccl_ring_set *starts = calloc(TCCL_TABLE_STARTS + 1, sizeof(*starts));
    int status = -1;
    if (guesser && starts) {
        guesser->task = task;
        guesser->reads = task->reads;
        guesser->table = table;
        status = find_both(guesser, starts);
        free(guesser->rooms);
        tccl_setmap_clear(&guesser->tried);
    } else {
        tccl_fail(task->err, "out of memory");
    }
    free(guesser);
    return status;
}
