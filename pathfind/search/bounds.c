/* bounds.c: measured transfer sets and the bounds that follow from them. */
#include "search/bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/setmap.h"

/* A limit with a large orbit keeps this many of its images; fewer only weakens bounds. */
enum { MAX_IMAGES = 4096, MAX_LIMITS = 1 << 16, WORDS = 32 };

/* Floors are looked for among the sets measured last: an older one only saves a measurement. */
enum { RECENT = 4096 };

/* Two values nearer than this are one: models add up in floating point. */
static const double SAME = 1e-9;

/* A limit of three or more transfers, or of any number that are to be avoided; met counts those on
 * the stack. */
struct limit {
    double gbps;
    uint32_t first; /* into members */
    uint16_t size, met;
    bool avoided; /* it failed: gbps, 0, is not proven */
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
    uint16_t compact[TCCL_TRANSFERS]; /* number -> 0 .. n_transfers - 1, */
    uint16_t numbers[TCCL_TRANSFERS]; /* and back */
    double alone[TCCL_TRANSFERS];     /* by compact number */
    double *pairs;                    /* n_transfers squared */
    struct limit *limits;
    size_t n_limits, limits_room;
    uint16_t *members; /* compact numbers */
    size_t n_members, members_room;
    struct uses *uses;
    double *values; /* of all limits, ascending, each once */
    size_t n_values, values_room;
    struct tccl_raise *raises;
    size_t n_raises, raises_room;
    uint32_t *found; /* limits to be raised */
    size_t n_found, found_room;
    uint32_t *late; /* exact entries whose parts are to be raised when the stack is empty */
    size_t n_late, late_room;
    bool avoids;               /* some set is, or was, avoided, */
    bool honest;               /* but that doesn't count now */
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
        knowledge->alone[transfer] = INFINITY;
        if (!tccl_transfer_valid(transfer) || tccl_machine_allows(machine, transfer, NULL) < 0)
            continue;
        knowledge->numbers[knowledge->n_transfers] = transfer;
        knowledge->compact[transfer] = knowledge->n_transfers++;
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
    free(knowledge->raises);
    free(knowledge->found);
    free(knowledge->late);
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
    struct limit limit = {.gbps = gbps, .first = knowledge->n_members, .size = count};
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

typedef int image_visitor(struct tccl_knowledge *knowledge, const struct tccl_set *set,
                          double gbps);

/* Visits all images of a set under exchanges of brothers that are alike, exactly or nearly. */
static int each_image(struct tccl_knowledge *knowledge, const struct tccl_set *set, bool near,
                      double gbps, image_visitor *visit)
{
    __attribute__((cleanup(tccl_setmap_clear))) struct tccl_setmap images = {0};
    int exchanges = tccl_symmetry_exchanges(knowledge->symmetry, set, near);
    if (tccl_setmap_add(&images, set, gbps) < 0)
        return -1;
    for (size_t i = 0; i < images.count; i++) {
        struct tccl_set member = images.entries[i].set, image;
        if (visit(knowledge, &member, gbps) < 0)
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
    struct tccl_setmap_entry *own = tccl_setmap_find(&knowledge->exact, &set);
    if (own)
        own->limits = true;
    if (add_value(knowledge, gbps) < 0 || add_value(knowledge, near) < 0 ||
        each_image(knowledge, &set, false, gbps, lower_limit) < 0)
        return -1;
    return knowledge->symmetry ? each_image(knowledge, &set, true, near, lower_limit) : 0;
}

/* ---- limits that turn out to be too low ---- */

static int note_raise(struct tccl_knowledge *knowledge, double low, double high)
{
    if (tccl_grow((void **)&knowledge->raises, knowledge->n_raises, &knowledge->raises_room,
                  sizeof(*knowledge->raises)) < 0)
        return -1;
    knowledge->raises[knowledge->n_raises++] = (struct tccl_raise){low, high};
    return add_value(knowledge, high);
}

static bool out_of_order(const struct tccl_knowledge *knowledge, const struct uses *uses,
                         size_t place)
{
    return place + 1 < uses->count && knowledge->limits[uses->limits[place]].gbps >
                                          knowledge->limits[uses->limits[place + 1]].gbps;
}

/* Puts a limit that has grown where it belongs among a transfer's. */
static void move_use(const struct tccl_knowledge *knowledge, struct uses *uses, uint32_t limit)
{
    size_t place = 0;
    while (uses->limits[place] != limit)
        place++;
    for (; out_of_order(knowledge, uses, place); place++) {
        uses->limits[place] = uses->limits[place + 1];
        uses->limits[place + 1] = limit;
    }
}

static void raise_long_limit(struct tccl_knowledge *knowledge, uint32_t index, double gbps)
{
    struct limit *limit = &knowledge->limits[index];
    limit->gbps = limit->avoided ? INFINITY : gbps;
    limit->avoided = false;
    for (int i = 0; i < limit->size; i++)
        move_use(knowledge, &knowledge->uses[knowledge->members[limit->first + i]], index);
}

/* The long limit with exactly these members that is below gbps, or -1. */
static long find_long_limit(const struct tccl_knowledge *knowledge, const uint16_t *members,
                            int count, double gbps)
{
    const struct uses *uses = &knowledge->uses[members[0]];
    for (uint32_t i = 0; i < uses->count; i++) {
        const struct limit *limit = &knowledge->limits[uses->limits[i]];
        if (limit->gbps >= gbps)
            break;
        if (!limit->avoided && limit->size == count &&
            memcmp(knowledge->members + limit->first, members, count * sizeof(*members)) == 0)
            return uses->limits[i];
    }
    return -1;
}

static int raise_if_long(struct tccl_knowledge *knowledge, const struct tccl_set *set, double gbps)
{
    uint16_t members[TCCL_MAX_SET];
    for (int i = 0; i < set->count; i++)
        members[i] = knowledge->compact[set->transfers[i]];
    long found = find_long_limit(knowledge, members, set->count, gbps);
    if (found < 0)
        return 0;
    double low = knowledge->limits[found].gbps;
    raise_long_limit(knowledge, found, gbps);
    return note_raise(knowledge, low, gbps);
}

/* Raises the limit of exactly this set of possible transfers, if there is a lower one. */
static int raise_limit(struct tccl_knowledge *knowledge, const struct tccl_set *set, double gbps)
{
    size_t n = knowledge->n_transfers;
    if (set->count > 2)
        return raise_if_long(knowledge, set, gbps);
    size_t a = knowledge->compact[set->transfers[0]];
    size_t b = knowledge->compact[set->transfers[set->count - 1]];
    double *one = set->count == 1 ? &knowledge->alone[a] : &knowledge->pairs[a * n + b];
    double low = *one;
    if (low >= gbps)
        return 0;
    *one = gbps;
    if (set->count == 2)
        knowledge->pairs[b * n + a] = gbps;
    return note_raise(knowledge, low, gbps);
}

/* What is wrong of a set is wrong of those that share its measurement. */
static int raise_images(struct tccl_knowledge *knowledge, const tccl_transfer *transfers, int count,
                        double gbps)
{
    struct tccl_set set;
    set_of_walk(transfers, count, &set);
    return each_image(knowledge, &set, false, gbps, raise_limit);
}

/* Lists the long limits below gbps all of whose members are in the set. */
static int find_low_limits(struct tccl_knowledge *knowledge, const struct tccl_set *set,
                           double gbps)
{
    int status = 0;
    knowledge->n_found = 0;
    for (int undo = 0; undo < 2; undo++) {
        for (int i = 0; i < set->count; i++) {
            uint16_t member = knowledge->compact[set->transfers[i]];
            if (member >= knowledge->n_transfers)
                continue;
            const struct uses *uses = &knowledge->uses[member];
            for (uint32_t u = 0; u < uses->count; u++) {
                struct limit *limit = &knowledge->limits[uses->limits[u]];
                if (limit->gbps >= gbps)
                    break;
                limit->met += undo ? -1 : 1;
                if (undo || limit->met != limit->size)
                    continue;
                if (tccl_grow((void **)&knowledge->found, knowledge->n_found,
                              &knowledge->found_room, sizeof(*knowledge->found)) < 0)
                    status = -1;
                else
                    knowledge->found[knowledge->n_found++] = uses->limits[u];
            }
        }
    }
    return status;
}

static int raise_found(struct tccl_knowledge *knowledge, uint32_t index, double gbps)
{
    const struct limit *limit = &knowledge->limits[index];
    tccl_transfer transfers[TCCL_MAX_SET];
    if (limit->avoided) {
        raise_long_limit(knowledge, index, gbps);
        return 0;
    }
    for (int i = 0; i < limit->size; i++)
        transfers[i] = knowledge->numbers[knowledge->members[limit->first + i]];
    return raise_images(knowledge, transfers, limit->size, gbps);
}

static int raise_pairs(struct tccl_knowledge *knowledge, const struct tccl_set *set, int i,
                       double low, double gbps)
{
    size_t n = knowledge->n_transfers, a = knowledge->compact[set->transfers[i]];
    for (int j = i + 1; j < set->count; j++) {
        tccl_transfer both[] = {set->transfers[i], set->transfers[j]};
        size_t b = knowledge->compact[both[1]];
        if (b < n && knowledge->pairs[a * n + b] < low &&
            raise_images(knowledge, both, 2, gbps) < 0)
            return -1;
    }
    return 0;
}

/* A set reaches gbps, so each of its parts does. The stack must be empty. */
static int raise_parts(struct tccl_knowledge *knowledge, const struct tccl_set *set, double gbps)
{
    double low = gbps * (1 - SAME);
    for (int i = 0; i < set->count; i++) {
        uint16_t a = knowledge->compact[set->transfers[i]];
        if (a >= knowledge->n_transfers)
            return 0;
        if (knowledge->alone[a] < low && raise_images(knowledge, &set->transfers[i], 1, gbps) < 0)
            return -1;
        if (raise_pairs(knowledge, set, i, low, gbps) < 0)
            return -1;
    }
    if (find_low_limits(knowledge, set, low) < 0)
        return -1;
    for (size_t i = 0; i < knowledge->n_found; i++)
        if (raise_found(knowledge, knowledge->found[i], gbps) < 0)
            return -1;
    return 0;
}

/* Limits must not change while some are counted on the stack. */
static int raise_later(struct tccl_knowledge *knowledge, const struct tccl_setmap_entry *entry)
{
    if (tccl_grow((void **)&knowledge->late, knowledge->n_late, &knowledge->late_room,
                  sizeof(*knowledge->late)) < 0)
        return -1;
    knowledge->late[knowledge->n_late++] = entry - knowledge->exact.entries;
    return 0;
}

static void raise_late_ones(struct tccl_knowledge *knowledge)
{
    while (knowledge->n_late > 0) {
        size_t entry = knowledge->late[--knowledge->n_late];
        struct tccl_set set = knowledge->exact.entries[entry].set;
        /* Without memory a limit stays too low. */
        raise_parts(knowledge, &set, knowledge->exact.entries[entry].gbps);
    }
}

size_t tccl_knowledge_raises(const struct tccl_knowledge *knowledge,
                             const struct tccl_raise **raises)
{
    *raises = knowledge->raises;
    return knowledge->n_raises;
}

/* ---- what was measured ---- */

/* The set's own entry, made if there is none; NULL without memory. */
static struct tccl_setmap_entry *entry_of(struct tccl_knowledge *knowledge,
                                          const struct tccl_set *set, bool *fresh)
{
    int added = tccl_setmap_add(&knowledge->exact, set, 0);
    *fresh = added > 0;
    if (added < 0)
        return NULL;
    size_t last = knowledge->exact.count - 1;
    if (added == 0)
        return tccl_setmap_find(&knowledge->exact, set);
    if (tccl_grow((void **)&knowledge->covers, last, &knowledge->covers_room,
                  sizeof(*knowledge->covers)) < 0)
        return NULL;
    bits_of_set(knowledge, set, knowledge->covers[last]);
    return &knowledge->exact.entries[last];
}

/* The entry that all symmetric sets share; NULL without one. */
static struct tccl_setmap_entry *shared_entry(const struct tccl_knowledge *knowledge,
                                              const struct tccl_walk *walk)
{
    struct tccl_set set;
    if (!knowledge->symmetry)
        return NULL;
    canonical_set(knowledge, walk, &set);
    return tccl_setmap_find(&knowledge->canonical, &set);
}

static int share(struct tccl_knowledge *knowledge, const struct tccl_walk *walk, double gbps,
                 double upper)
{
    struct tccl_set set;
    if (!knowledge->symmetry)
        return 0;
    canonical_set(knowledge, walk, &set);
    if (tccl_setmap_add(&knowledge->canonical, &set, gbps) < 0)
        return -1;
    struct tccl_setmap_entry *entry = tccl_setmap_find(&knowledge->canonical, &set);
    if (gbps >= entry->gbps) {
        entry->gbps = gbps;
        entry->upper = upper;
    }
    return 0;
}

int tccl_knowledge_add(struct tccl_knowledge *knowledge, const struct tccl_walk *walk, double gbps,
                       double upper)
{
    struct tccl_set set;
    bool fresh;
    set_of_walk(walk->transfers, walk->count, &set);
    struct tccl_setmap_entry *entry = entry_of(knowledge, &set, &fresh);
    if (!entry)
        return -1;
    entry->gbps = gbps;
    entry->upper = upper;
    entry->failed = false;
    if ((knowledge->depth > 0 ? raise_later(knowledge, entry)
                              : raise_parts(knowledge, &set, gbps)) < 0)
        return -1;
    return share(knowledge, walk, gbps, upper);
}

int tccl_knowledge_fail(struct tccl_knowledge *knowledge, const struct tccl_walk *walk)
{
    struct tccl_set set;
    bool fresh;
    set_of_walk(walk->transfers, walk->count, &set);
    struct tccl_setmap_entry *entry = entry_of(knowledge, &set, &fresh);
    if (entry && fresh)
        entry->failed = true;
    return entry ? 0 : -1;
}

static struct tccl_setmap_entry *own_entry(const struct tccl_knowledge *knowledge,
                                           const struct tccl_walk *walk)
{
    struct tccl_set set;
    set_of_walk(walk->transfers, walk->count, &set);
    return tccl_setmap_find(&knowledge->exact, &set);
}

bool tccl_knowledge_find(const struct tccl_knowledge *knowledge, const struct tccl_walk *walk,
                         struct tccl_known *known)
{
    const struct tccl_setmap_entry *own = own_entry(knowledge, walk);
    const struct tccl_setmap_entry *found = own ? own : shared_entry(knowledge, walk);
    if (found)
        *known = (struct tccl_known){found->gbps, found->upper, !own, found->failed};
    return found != NULL;
}

bool tccl_knowledge_confirmed(const struct tccl_knowledge *knowledge, const struct tccl_walk *walk)
{
    const struct tccl_setmap_entry *own = own_entry(knowledge, walk);
    return own && own->confirmed;
}

void tccl_knowledge_confirm(struct tccl_knowledge *knowledge, const struct tccl_walk *walk)
{
    struct tccl_setmap_entry *own = own_entry(knowledge, walk);
    if (own)
        own->confirmed = true;
}

int tccl_knowledge_avoid(struct tccl_knowledge *knowledge, const struct tccl_walk *walk)
{
    uint16_t members[TCCL_MAX_SET];
    for (int i = 0; i < walk->count; i++) {
        members[i] = knowledge->compact[walk->transfers[i]];
        if (members[i] >= knowledge->n_transfers)
            return 0;
    }
    size_t before = knowledge->n_limits;
    if (add_value(knowledge, 0) < 0 || add_long_limit(knowledge, members, walk->count, 0) < 0)
        return -1;
    if (knowledge->n_limits > before) {
        knowledge->limits[before].avoided = true;
        knowledge->avoids = true;
    }
    return 0;
}

void tccl_knowledge_be_honest(struct tccl_knowledge *knowledge, bool honest)
{
    knowledge->honest = honest;
}

bool tccl_knowledge_avoids(const struct tccl_knowledge *knowledge)
{
    return knowledge->avoids;
}

bool tccl_knowledge_assumes(const struct tccl_knowledge *knowledge)
{
    return knowledge->symmetry && tccl_symmetry_assumed(knowledge->symmetry);
}

/* Forgets all limits of one or two transfers, and all longer ones but those to be avoided. */
static void forget_limits(struct tccl_knowledge *knowledge)
{
    size_t n = knowledge->n_transfers;
    for (size_t i = 0; i < n * n; i++)
        knowledge->pairs[i] = INFINITY;
    for (size_t i = 0; i < n; i++)
        knowledge->alone[i] = INFINITY;
    for (size_t i = 0; i < knowledge->n_limits; i++)
        if (!knowledge->limits[i].avoided && knowledge->limits[i].gbps < INFINITY)
            raise_long_limit(knowledge, i, INFINITY);
}

int tccl_knowledge_distrust(struct tccl_knowledge *knowledge)
{
    knowledge->symmetry = NULL;
    forget_limits(knowledge);
    for (size_t i = 0; i < knowledge->exact.count; i++) {
        const struct tccl_setmap_entry *entry = &knowledge->exact.entries[i];
        struct tccl_set set = entry->set;
        if (entry->limits && lower_limit(knowledge, &set, entry->upper) < 0)
            return -1;
    }
    return 0;
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
        if (++limit->met == limit->size && !(limit->avoided && knowledge->honest))
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
    if (knowledge->depth == 0 && knowledge->n_late > 0)
        raise_late_ones(knowledge);
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
