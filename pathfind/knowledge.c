/* knowledge.c: measured transfer sets and the bounds that follow from them. */
#include "knowledge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "setmap.h"

/* A limit with a large orbit keeps this many of its images; fewer only weakens bounds. */
enum { MAX_IMAGES = 4096, MAX_LIMITS = 1 << 16, WORDS = 32 };

/* Floors are looked for among the sets measured last: an older one only saves a measurement. */
enum { RECENT = 4096 };

/* A limit of three or more transfers; met counts those on the stack. */
struct limit {
    double gbps;
    uint32_t first; /* into members */
    uint16_t size, met;
};

/* The limits in which a transfer takes part. */
struct uses {
    uint32_t *limits;
    uint32_t count, room;
};

struct tccl_knowledge {
    const struct tccl_symmetry *symmetry;
    struct tccl_setmap exact, canonical;
    int n_transfers;                  /* possible on this machine */
    uint16_t compact[TCCL_TRANSFERS]; /* number -> 0 .. n_transfers - 1 */
    double alone[TCCL_TRANSFERS];     /* by compact number */
    double *pairs;                    /* n_transfers squared */
    struct limit *limits;
    size_t n_limits, limits_room;
    uint16_t *members; /* compact numbers */
    size_t n_members, members_room;
    struct uses *uses;
    double *values; /* of all limits, ascending, each once */
    size_t n_values, values_room;
    uint64_t (*covers)[WORDS]; /* by exact entry: its transfers as bits */
    size_t covers_room;
    int depth;
    uint16_t stack[TCCL_MAX_SET];
    uint32_t met[TCCL_MAX_SET];      /* limits that each one on the stack was counted in */
    double bounds[TCCL_MAX_SET + 1]; /* bounds[d]: of the first d on the stack */
};

static void number_transfers(struct tccl_knowledge *knowledge, const struct tccl_machine *machine)
{
    memset(knowledge->compact, 0xff, sizeof(knowledge->compact));
    for (int transfer = 0; transfer < TCCL_TRANSFERS; transfer++) {
        if (tccl_transfer_valid(transfer) && tccl_machine_allows(machine, transfer, NULL) == 0)
            knowledge->compact[transfer] = knowledge->n_transfers++;
        knowledge->alone[transfer] = INFINITY;
    }
}

struct tccl_knowledge *tccl_knowledge_new(const struct tccl_machine *machine,
                                          const struct tccl_symmetry *symmetry)
{
    struct tccl_knowledge *knowledge = calloc(1, sizeof(*knowledge));
    if (!knowledge)
        return NULL;
    knowledge->symmetry = symmetry;
    number_transfers(knowledge, machine);
    size_t square = (size_t)knowledge->n_transfers * knowledge->n_transfers;
    knowledge->pairs = malloc((square + 1) * sizeof(*knowledge->pairs));
    knowledge->uses = calloc(knowledge->n_transfers + 1, sizeof(*knowledge->uses));
    if (!knowledge->pairs || !knowledge->uses) {
        tccl_knowledge_free(knowledge);
        return NULL;
    }
    for (size_t i = 0; i < square; i++)
        knowledge->pairs[i] = INFINITY;
    knowledge->bounds[0] = INFINITY;
    return knowledge;
}

void tccl_knowledge_free(struct tccl_knowledge *knowledge)
{
    if (!knowledge)
        return;
    tccl_setmap_clear(&knowledge->exact);
    tccl_setmap_clear(&knowledge->canonical);
    for (int i = 0; knowledge->uses && i < knowledge->n_transfers; i++)
        free(knowledge->uses[i].limits);
    free(knowledge->pairs);
    free(knowledge->uses);
    free(knowledge->limits);
    free(knowledge->members);
    free(knowledge->covers);
    free(knowledge->values);
    free(knowledge);
}

static void set_of_walk(const tccl_transfer *walk, int count, struct tccl_set *set)
{
    set->count = 0;
    for (int i = 0; i < count; i++)
        tccl_set_add(set, walk[i]);
}

static void canonical_set(const struct tccl_knowledge *knowledge, const struct tccl_walk *walk,
                          struct tccl_set *set)
{
    tccl_transfer image[TCCL_MAX_SET];
    tccl_symmetry_relabel(knowledge->symmetry, walk->transfers, walk->count, image);
    set_of_walk(image, walk->count, set);
}

static void bits_of_set(const struct tccl_knowledge *knowledge, const struct tccl_set *set,
                        uint64_t bits[WORDS])
{
    memset(bits, 0, WORDS * sizeof(bits[0]));
    for (int i = 0; i < set->count; i++) {
        unsigned transfer = knowledge->compact[set->transfers[i]];
        if (transfer < WORDS * 64)
            bits[transfer / 64] |= 1ULL << (transfer % 64);
    }
}

int tccl_knowledge_add(struct tccl_knowledge *knowledge, const struct tccl_walk *walk, double gbps)
{
    struct tccl_set set;
    set_of_walk(walk->transfers, walk->count, &set);
    int added = tccl_setmap_add(&knowledge->exact, &set, gbps);
    if (added <= 0)
        return added;
    size_t entry = knowledge->exact.count - 1;
    if (tccl_grow((void **)&knowledge->covers, entry, &knowledge->covers_room,
                  sizeof(*knowledge->covers)) < 0)
        return -1;
    bits_of_set(knowledge, &set, knowledge->covers[entry]);
    if (!knowledge->symmetry)
        return 0;
    canonical_set(knowledge, walk, &set);
    return tccl_setmap_add(&knowledge->canonical, &set, gbps) < 0 ? -1 : 0;
}

int tccl_knowledge_find(const struct tccl_knowledge *knowledge, const struct tccl_walk *walk,
                        double *gbps, bool *symmetric)
{
    struct tccl_set set;
    set_of_walk(walk->transfers, walk->count, &set);
    const struct tccl_setmap_entry *found = tccl_setmap_find(&knowledge->exact, &set);
    if (symmetric)
        *symmetric = !found;
    if (!found && knowledge->symmetry) {
        canonical_set(knowledge, walk, &set);
        found = tccl_setmap_find(&knowledge->canonical, &set);
    }
    if (found)
        *gbps = found->gbps;
    return found != NULL;
}

static bool covers(const uint64_t set[WORDS], const uint64_t part[WORDS], int words)
{
    for (int i = 0; i < words; i++)
        if (part[i] & ~set[i])
            return false;
    return true;
}

double tccl_knowledge_floor(const struct tccl_knowledge *knowledge, const struct tccl_walk *walk)
{
    struct tccl_set set;
    uint64_t bits[WORDS];
    double best = 0;
    int words = (knowledge->n_transfers + 63) / 64;
    if (words > WORDS)
        return 0;
    set_of_walk(walk->transfers, walk->count, &set);
    bits_of_set(knowledge, &set, bits);
    size_t count = knowledge->exact.count, first = count > RECENT ? count - RECENT : 0;
    for (size_t i = first; i < count; i++)
        if (knowledge->exact.entries[i].gbps > best && covers(knowledge->covers[i], bits, words))
            best = knowledge->exact.entries[i].gbps;
    return best;
}

/* Keeps a transfer's limits in ascending order of their bandwidths. */
static int add_use(const struct tccl_knowledge *knowledge, struct uses *uses, uint32_t limit,
                   double gbps)
{
    size_t room = uses->room;
    if (tccl_grow((void **)&uses->limits, uses->count, &room, sizeof(*uses->limits)) < 0)
        return -1;
    uses->room = room;
    uint32_t place = uses->count++;
    for (; place > 0 && knowledge->limits[uses->limits[place - 1]].gbps > gbps; place--)
        uses->limits[place] = uses->limits[place - 1];
    uses->limits[place] = limit;
    return 0;
}

static int add_long_limit(struct tccl_knowledge *knowledge, const uint16_t *members, int count,
                          double gbps)
{
    if (knowledge->n_limits >= MAX_LIMITS)
        return 0;
    if (tccl_grow((void **)&knowledge->limits, knowledge->n_limits, &knowledge->limits_room,
                  sizeof(*knowledge->limits)) < 0)
        return -1;
    struct limit limit = {gbps, knowledge->n_members, count, 0};
    for (int i = 0; i < count; i++) {
        if (tccl_grow((void **)&knowledge->members, knowledge->n_members, &knowledge->members_room,
                      sizeof(*knowledge->members)) < 0 ||
            add_use(knowledge, &knowledge->uses[members[i]], knowledge->n_limits, gbps) < 0)
            return -1;
        knowledge->members[knowledge->n_members++] = members[i];
    }
    knowledge->limits[knowledge->n_limits++] = limit;
    return 0;
}

/* One limit, without its images. The stack must be empty. */
static int add_limit(struct tccl_knowledge *knowledge, const struct tccl_set *set, double gbps)
{
    uint16_t members[TCCL_MAX_SET];
    size_t n = knowledge->n_transfers;
    for (int i = 0; i < set->count; i++) {
        members[i] = knowledge->compact[set->transfers[i]];
        if (members[i] >= n)
            return 0;
    }
    if (set->count == 1) {
        knowledge->alone[members[0]] = fmin(knowledge->alone[members[0]], gbps);
        return 0;
    }
    if (set->count > 2)
        return add_long_limit(knowledge, members, set->count, gbps);
    double *both = &knowledge->pairs[members[0] * n + members[1]];
    if (gbps < *both)
        *both = knowledge->pairs[members[1] * n + members[0]] = gbps;
    return 0;
}

double tccl_knowledge_bound(struct tccl_knowledge *knowledge, const tccl_transfer *transfers,
                            int count, double above)
{
    double bound = INFINITY;
    for (int i = 0; i < count; i++)
        bound = tccl_knowledge_push(knowledge, transfers[i], above);
    for (int i = 0; i < count; i++)
        tccl_knowledge_pop(knowledge);
    return bound;
}

/* Adds a limit unless those that there are say as much. */
static int lower_limit(struct tccl_knowledge *knowledge, const struct tccl_set *set, double gbps)
{
    double bound = tccl_knowledge_bound(knowledge, set->transfers, set->count, gbps);
    return bound <= gbps ? 0 : add_limit(knowledge, set, gbps);
}

static int add_value(struct tccl_knowledge *knowledge, double gbps)
{
    size_t place = knowledge->n_values;
    while (place > 0 && knowledge->values[place - 1] > gbps)
        place--;
    if (place > 0 && knowledge->values[place - 1] == gbps)
        return 0;
    if (tccl_grow((void **)&knowledge->values, knowledge->n_values, &knowledge->values_room,
                  sizeof(*knowledge->values)) < 0)
        return -1;
    memmove(knowledge->values + place + 1, knowledge->values + place,
            (knowledge->n_values - place) * sizeof(*knowledge->values));
    knowledge->values[place] = gbps;
    knowledge->n_values++;
    return 0;
}

size_t tccl_knowledge_values(const struct tccl_knowledge *knowledge, const double **values)
{
    *values = knowledge->values;
    return knowledge->n_values;
}

/* Limits all images of a set under exchanges of brothers that are alike, exactly or nearly. */
static int limit_images(struct tccl_knowledge *knowledge, const struct tccl_set *set, bool near,
                        double gbps)
{
    __attribute__((cleanup(tccl_setmap_clear))) struct tccl_setmap images = {0};
    int exchanges = tccl_symmetry_exchanges(knowledge->symmetry, set, near);
    if (tccl_setmap_add(&images, set, gbps) < 0)
        return -1;
    for (size_t i = 0; i < images.count; i++) {
        struct tccl_set member = images.entries[i].set, image;
        if (lower_limit(knowledge, &member, gbps) < 0)
            return -1;
        for (int e = 0; e < exchanges && images.count < MAX_IMAGES; e++) {
            tccl_symmetry_exchange(knowledge->symmetry, &member, near, e, &image);
            if (tccl_setmap_add(&images, &image, gbps) < 0)
                return -1;
        }
    }
    return 0;
}

int tccl_knowledge_limit(struct tccl_knowledge *knowledge, const struct tccl_walk *walk,
                         double gbps)
{
    struct tccl_set set;
    set_of_walk(walk->transfers, walk->count, &set);
    double near = gbps * tccl_symmetry_factor(knowledge->symmetry, &set);
    if (add_value(knowledge, gbps) < 0 || add_value(knowledge, near) < 0 ||
        limit_images(knowledge, &set, false, gbps) < 0)
        return -1;
    return knowledge->symmetry ? limit_images(knowledge, &set, true, near) : 0;
}

/* Counts the transfer in its limits up to above. */
static double meet_limits(struct tccl_knowledge *knowledge, uint16_t pushed, double above,
                          double bound)
{
    const struct uses *uses = &knowledge->uses[pushed];
    uint32_t met = 0;
    for (; met < uses->count; met++) {
        struct limit *limit = &knowledge->limits[uses->limits[met]];
        if (limit->gbps > above)
            break;
        if (++limit->met == limit->size)
            bound = fmin(bound, limit->gbps);
    }
    knowledge->met[knowledge->depth] = met;
    return bound;
}

double tccl_knowledge_push(struct tccl_knowledge *knowledge, tccl_transfer transfer, double above)
{
    uint16_t pushed = knowledge->compact[transfer];
    size_t n = knowledge->n_transfers;
    double bound = 0; /* of what is not possible on this machine */
    knowledge->met[knowledge->depth] = 0;
    if (pushed < n) {
        const double *pairs = knowledge->pairs + pushed * n;
        bound = fmin(knowledge->bounds[knowledge->depth], knowledge->alone[pushed]);
        for (int i = 0; i < knowledge->depth; i++)
            if (knowledge->stack[i] < n)
                bound = fmin(bound, pairs[knowledge->stack[i]]);
        bound = meet_limits(knowledge, pushed, above, bound);
    }
    knowledge->stack[knowledge->depth++] = pushed;
    return knowledge->bounds[knowledge->depth] = bound;
}

void tccl_knowledge_pop(struct tccl_knowledge *knowledge)
{
    uint16_t popped = knowledge->stack[--knowledge->depth];
    for (uint32_t i = 0; i < knowledge->met[knowledge->depth]; i++)
        knowledge->limits[knowledge->uses[popped].limits[i]].met--;
}

double tccl_knowledge_alone(const struct tccl_knowledge *knowledge, tccl_transfer transfer)
{
    uint16_t compact = knowledge->compact[transfer];
    return compact < knowledge->n_transfers ? knowledge->alone[compact] : 0;
}
