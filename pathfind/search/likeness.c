/* likeness.c: telling sets and their images, measured. */
#include "search/likeness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/setmap.h"

enum {
    PAIRS = 6,  /* to ask of each way in which two transfers can meet, for one exchange */
    CHAINS = 6, /* larger sets to ask for one exchange, */
    DRAWS = 40, /* of so many drawn */
};

struct tccl_likeness {
    const struct tccl_machine *machine;
    const struct tccl_meter *meter;
    double noise;
    struct tccl_setmap *sets; /* measured: of the meter, or own */
    struct tccl_setmap own;
};

/* One exchange that is asked about. */
struct question {
    struct tccl_likeness *likeness;
    const struct tccl_exchange *exchange;
    struct tccl_likeness_view view;
    struct tccl_setmap asked; /* as the view has them */
    struct tccl_error *err;
    int n_moved, n_others; /* transfers that the exchange moves, and those that it doesn't */
    tccl_transfer moved[TCCL_TRANSFERS], others[TCCL_TRANSFERS];
};

/* ---- by description ---- */

/* All that the description says of two devices together. */
static bool two_alike(const struct tccl_machine *machine, const struct tccl_exchange *exchange,
                      struct tccl_device a, struct tccl_device b)
{
    struct tccl_device c = tccl_exchange_device(exchange, a), d = tccl_exchange_device(exchange, b);
    if (tccl_machine_path(machine, a, b) != tccl_machine_path(machine, c, d) ||
        (tccl_machine_numa(machine, a) == tccl_machine_numa(machine, b)) !=
            (tccl_machine_numa(machine, c) == tccl_machine_numa(machine, d)))
        return false;
    for (int reads = 0; reads < 2; reads++) {
        tccl_transfer here = tccl_transfer_make(a, reads, b);
        tccl_transfer there = tccl_transfer_make(c, reads, d);
        if (tccl_machine_allows(machine, here, NULL) != tccl_machine_allows(machine, there, NULL))
            return false;
    }
    return true;
}

bool tccl_likeness_described(const struct tccl_machine *machine,
                             const struct tccl_exchange *exchange, bool nics)
{
    const int counts[] = {machine->n_gpus, machine->n_memories, nics ? machine->n_nics : 0};
    struct tccl_device all[TCCL_MAX_GPUS + TCCL_MAX_MEMORIES + TCCL_MAX_NICS];
    int n = 0;
    for (int kind = TCCL_GPU; kind <= TCCL_NIC; kind++)
        for (int i = 0; i < counts[kind]; i++)
            all[n++] = (struct tccl_device){kind, i};
    for (int i = 0; i < machine->n_gpus; i++) {
        const struct tccl_gpu *a = &machine->gpus[i],
                              *b = &machine->gpus[exchange->image[TCCL_GPU][i]];
        if (strcmp(a->model, b->model) != 0 || a->sm != b->sm)
            return false;
    }
    for (int i = 0; i < counts[TCCL_NIC]; i++)
        if (machine->nics[i].gbps != machine->nics[exchange->image[TCCL_NIC][i]].gbps)
            return false;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (i != j && !two_alike(machine, exchange, all[i], all[j]))
                return false;
    return true;
}

/* Slots of a GPU and of the switches above it. */
static bool slots_alike(const struct tccl_machine *machine, int a, int b)
{
    const struct tccl_gpu *x = &machine->gpus[a], *y = &machine->gpus[b];
    bool alike = x->slot == y->slot;
    for (a = x->parent, b = y->parent; alike && a >= 0 && b >= 0;
         a = machine->switches[a].parent, b = machine->switches[b].parent)
        alike = machine->switches[a].slot == machine->switches[b].slot;
    return alike && a < 0 && b < 0;
}

bool tccl_likeness_to_nccl(const struct tccl_machine *machine, const struct tccl_exchange *move)
{
    for (int i = 0; i < machine->n_gpus; i++)
        if (!slots_alike(machine, i, move->image[TCCL_GPU][i]))
            return false;
    for (int i = 0; i < machine->n_nics; i++)
        if (move->image[TCCL_NIC][i] != i)
            return false;
    return tccl_likeness_described(machine, move, true);
}

/* ---- by measurement ---- */

struct tccl_likeness *tccl_likeness_new(const struct tccl_machine *machine,
                                        const struct tccl_meter *meter, double noise)
{
    struct tccl_likeness *likeness = calloc(1, sizeof(*likeness));
    if (!likeness)
        return NULL;
    *likeness = (struct tccl_likeness){.machine = machine, .meter = meter, .noise = noise};
    likeness->sets = meter->sets ? meter->sets : &likeness->own;
    return likeness;
}

void tccl_likeness_free(struct tccl_likeness *likeness)
{
    if (!likeness)
        return;
    tccl_setmap_clear(&likeness->own);
    free(likeness);
}

/* Asks the meter. Returns 0, or -1 with err. */
static int ask(struct question *question, const struct tccl_set *set, tccl_measure *measure)
{
    struct tccl_likeness *likeness = question->likeness;
    struct tccl_measurement measured = {0};
    if (measure(likeness->meter->context, set, &measured, question->err) < 0)
        return -1;
    if (!likeness->meter->sets && !tccl_setmap_note(likeness->sets, set, &measured))
        return tccl_fail(question->err, "out of memory");
    return 0;
}

/* What is known of the set; asked of the meter unless it is, or unless it was given up. */
static int know(struct question *question, const struct tccl_set *set,
                struct tccl_measurement *value)
{
    const struct tccl_setmap *sets = question->likeness->sets;
    const struct tccl_setmap_entry *entry = tccl_setmap_find(sets, set);
    if ((!entry || (entry->measured == 0 && !entry->given_up)) &&
        ask(question, set, question->likeness->meter->measure) != 0)
        return -1;
    entry = tccl_setmap_find(sets, set);
    *value = entry && entry->measured > 0 ? entry->best : (struct tccl_measurement){.failed = true};
    return 0;
}

/* By what noise it has of its own a measurement may be too low, GB/s. */
static double own_noise(const struct tccl_measurement *value)
{
    return value->noisy ? value->gbps * value->spread / 2 : 0;
}

/* Each of the two may be off by the noise. */
static bool agree(const struct question *question, const struct tccl_measurement *a,
                  const struct tccl_measurement *b)
{
    double low = fmin(a->gbps, b->gbps), high = fmax(a->gbps, b->gbps);
    if (a->failed || b->failed)
        return a->failed && b->failed;
    return high - low <=
           high * (2 * question->likeness->noise + 1e-9) + own_noise(a) + own_noise(b);
}

/* Returns 1 if the set and its image have the same bandwidth, 0 if not, -1 with err. */
static int is_same(struct question *question, const struct tccl_set *set)
{
    const struct tccl_meter *meter = question->likeness->meter;
    struct tccl_measurement own, other;
    struct tccl_set image;
    tccl_exchange_set(question->exchange, set, &image);
    if (know(question, set, &own) != 0 || know(question, &image, &other) != 0)
        return -1;
    if (agree(question, &own, &other) || question->likeness->noise <= 0)
        return agree(question, &own, &other);
    /* A single disturbed measurement should not refute it. */
    if (ask(question, own.gbps < other.gbps ? set : &image,
            meter->again ? meter->again : meter->measure) != 0 ||
        know(question, set, &own) != 0 || know(question, &image, &other) != 0)
        return -1;
    return agree(question, &own, &other);
}

/* Is it the first of those that look like it, and does its image look different? 1 if so, 0, or -1
 * without memory. */
static int is_new(struct question *question, const tccl_transfer *walk, int count)
{
    tccl_transfer seen[TCCL_MAX_SET];
    struct tccl_set key = {0};
    question->view.relabel(question->view.context, walk, count, seen);
    for (int i = 0; i < count; i++)
        tccl_set_add(&key, seen[i]);
    int added = tccl_setmap_add(&question->asked, &key);
    return added < 0 ? tccl_fail(question->err, "out of memory") : added;
}

static int ask_walk(struct question *question, const tccl_transfer *walk, int count)
{
    struct tccl_set set = {0};
    for (int i = 0; i < count; i++)
        tccl_set_add(&set, walk[i]);
    return is_same(question, &set);
}

static int ask_singles(struct question *question)
{
    for (int i = 0; i < question->n_moved; i++) {
        int status = is_new(question, &question->moved[i], 1);
        if (status > 0)
            status = ask_walk(question, &question->moved[i], 1);
        else if (status == 0)
            continue;
        if (status <= 0)
            return status;
    }
    return 1;
}

/* How two transfers meet: 0 the same two devices, 1 at a memory, 2 at another device, 3 nowhere. */
enum { MEETINGS = 4 };
static int meeting(tccl_transfer a, tccl_transfer b)
{
    struct tccl_device from = tccl_transfer_initiator(a), to = tccl_transfer_target(a);
    struct tccl_device begin = tccl_transfer_initiator(b), end = tccl_transfer_target(b);
    bool first = tccl_device_equal(from, begin) || tccl_device_equal(from, end);
    bool second = tccl_device_equal(to, begin) || tccl_device_equal(to, end);
    if (first && second)
        return 0;
    if (second && to.kind == TCCL_MEMORY)
        return 1;
    return first || second ? 2 : 3;
}

static int ask_pairs_of(struct question *question, tccl_transfer first, int way, int *left)
{
    int count = question->n_moved + question->n_others;
    for (int i = 0; i<count && * left> 0; i++) {
        tccl_transfer both[] = {first, i < question->n_moved
                                           ? question->moved[i]
                                           : question->others[i - question->n_moved]};
        if (both[0] == both[1] || meeting(both[0], both[1]) != way)
            continue;
        int status = is_new(question, both, 2);
        if (status == 0)
            continue;
        if (status > 0)
            status = ask_walk(question, both, 2);
        if (status <= 0)
            return status;
        --*left;
    }
    return 1;
}

static int ask_pairs(struct question *question)
{
    for (int way = 0; way < MEETINGS; way++) {
        int left = PAIRS;
        for (int i = 0; i < question->n_moved && left > 0; i++) {
            int status = ask_pairs_of(question, question->moved[i], way, &left);
            if (status <= 0)
                return status;
        }
    }
    return 1;
}

/* The same draws on every machine of a kind. */
static unsigned draw(uint64_t *state, unsigned below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % below;
}

static bool is_possible(const struct question *question, struct tccl_device a, bool reads,
                        struct tccl_device b)
{
    return tccl_machine_allows(question->likeness->machine, tccl_transfer_make(a, reads, b),
                               NULL) == 0;
}

static void draw_edge(const struct question *question, uint64_t *state, int from, int to,
                      struct tccl_set *set)
{
    struct tccl_device giver = {TCCL_GPU, from}, taker = {TCCL_GPU, to};
    struct tccl_device memory = {TCCL_MEMORY, draw(state, question->likeness->machine->n_memories)};
    if (draw(state, 2) == 0 && is_possible(question, giver, false, taker)) {
        tccl_set_add(set, tccl_transfer_make(giver, false, taker));
        return;
    }
    tccl_set_add(set, tccl_transfer_make(giver, false, memory));
    tccl_set_add(set, tccl_transfer_make(taker, true, memory));
}

static void draw_port(const struct question *question, uint64_t *state, int head, int tail,
                      struct tccl_set *set)
{
    const struct tccl_machine *machine = question->likeness->machine;
    struct tccl_device nic = {TCCL_NIC, draw(state, machine->n_nics)};
    for (int out = 0; out < 2; out++) {
        struct tccl_device end = {TCCL_GPU, out ? tail : head};
        struct tccl_device memory = {TCCL_MEMORY, draw(state, machine->n_memories)};
        bool direct = draw(state, 2) == 0 && is_possible(question, nic, out, end);
        tccl_set_add(set, tccl_transfer_make(nic, out, direct ? end : memory));
        if (!direct)
            tccl_set_add(set, tccl_transfer_make(end, !out, memory));
    }
}

/* A chain as the search might try it. */
static void draw_chain(const struct question *question, uint64_t *state, bool nics,
                       struct tccl_set *set)
{
    int order[TCCL_MAX_GPUS], n = question->likeness->machine->n_gpus;
    set->count = 0;
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = draw(state, i + 1), gpu = order[i];
        order[i] = order[j];
        order[j] = gpu;
    }
    for (int i = 0; i + nics < n && n > 1; i++)
        draw_edge(question, state, order[i], order[(i + 1) % n], set);
    if (nics)
        draw_port(question, state, order[0], order[n - 1], set);
}

static int ask_chains(struct question *question, bool nics)
{
    uint64_t state = 1;
    int left = CHAINS;
    for (int i = 0; i < DRAWS && left > 0; i++) {
        struct tccl_set set, image;
        draw_chain(question, &state, nics && i % 2, &set);
        tccl_exchange_set(question->exchange, &set, &image);
        if (tccl_set_equal(&set, &image))
            continue;
        int status = is_same(question, &set);
        if (status <= 0)
            return status;
        left--;
    }
    return 1;
}

int tccl_likeness_measured(struct tccl_likeness *likeness, const struct tccl_exchange *exchange,
                           bool nics, struct tccl_likeness_view view, struct tccl_error *err)
{
    struct question *question = calloc(1, sizeof(*question));
    if (!question)
        return tccl_fail(err, "out of memory");
    question->likeness = likeness;
    question->exchange = exchange;
    question->view = view;
    question->err = err;
    const struct tccl_machine *machine = question->likeness->machine;
    for (int transfer = 0; transfer < TCCL_TRANSFERS; transfer++) {
        if (tccl_machine_allows(machine, transfer, NULL) != 0 ||
            (!nics && tccl_transfer_initiator(transfer).kind == TCCL_NIC))
            continue;
        if (tccl_exchange_transfer(question->exchange, transfer) != transfer)
            question->moved[question->n_moved++] = transfer;
        else
            question->others[question->n_others++] = transfer;
    }
    int status = ask_singles(question);
    if (status > 0)
        status = ask_pairs(question);
    if (status > 0)
        status = ask_chains(question, nics && likeness->machine->n_nics > 0);
    tccl_setmap_clear(&question->asked);
    free(question);
    return status;
}
