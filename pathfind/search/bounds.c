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
/* A part is slower than the whole by more than noise: by this ratio, and so many times the blur. */
static const double SLOWER = 0.05, BLURS = 2;

/* A limit of three or more transfers, or of any number that are to be avoided; met counts those on
 * the stack. One of one or two is a number in pairs, which a search looks up most often. */
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

struct tccl_bounds {
    const struct tccl_symmetry *symmetry;
    struct tccl_setmap *sets; /* those asked count */
    double blur;
    struct tccl_setmap canonical;
    uint32_t *asked; /* entries of sets, in the order in which they were asked */
    size_t n_asked, asked_room;
    int n_transfers;                  /* possible on this machine */
    uint16_t compact[TCCL_TRANSFERS]; /* number -> 0 .. n_transfers - 1, */
    uint16_t numbers[TCCL_TRANSFERS]; /* and back */
    double
        *pairs; /* of two transfers, by compact numbers: n_transfers squared; of one: with itself */
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
    uint32_t *late; /* entries of sets whose parts are to be raised when the stack is empty */
    size_t n_late, late_room;
    struct tccl_doubt doubts[TCCL_MAX_DOUBTS];
    int n_doubts;
    struct tccl_set *exceptions; /* with their images */
    size_t n_exceptions, exceptions_room;
    bool looked;               /* for doubts among what was measured before */
    bool avoids;               /* some set is, or was, avoided, */
    bool ignores_avoided;      /* but that does not count now */
    uint64_t (*covers)[WORDS]; /* as asked: the transfers as bits */
    size_t covers_room;
    int depth;
    uint16_t stack[TCCL_MAX_SET];
    uint32_t met[TCCL_MAX_SET];     /* limits that each one on the stack was counted in */
    double upper[TCCL_MAX_SET + 1]; /* upper[d]: of the first d on the stack */
};

struct tccl_bounds *tccl_bounds_new(const struct tccl_machine *machine,
                                    const struct tccl_symmetry *symmetry, struct tccl_setmap *sets)
{
    struct tccl_bounds *bounds = calloc(1, sizeof(*bounds));
    if (!bounds)
        return NULL;
    bounds->symmetry = symmetry;
    bounds->sets = sets;
    for (size_t i = 0; i < sets->count; i++)
        sets->entries[i].asked = sets->entries[i].limits = sets->entries[i].confirmed = false;
    memset(bounds->compact, 0xff, sizeof(bounds->compact));
    for (int transfer = 0; transfer < TCCL_TRANSFERS; transfer++) {
        if (tccl_machine_allows(machine, transfer, NULL) != 0)
            continue;
        bounds->numbers[bounds->n_transfers] = transfer;
        bounds->compact[transfer] = bounds->n_transfers++;
    }
    size_t square = (size_t)bounds->n_transfers * bounds->n_transfers;
    bounds->pairs = malloc((square + 1) * sizeof(*bounds->pairs));
    bounds->uses = calloc(bounds->n_transfers + 1, sizeof(*bounds->uses));
    if (!bounds->pairs || !bounds->uses) {
        tccl_bounds_free(bounds);
        return NULL;
    }
    for (size_t i = 0; i < square; i++)
        bounds->pairs[i] = INFINITY;
    bounds->upper[0] = INFINITY;
    return bounds;
}

void tccl_bounds_free(struct tccl_bounds *bounds)
{
    if (!bounds)
        return;
    tccl_setmap_clear(&bounds->canonical);
    for (int i = 0; bounds->uses && i < bounds->n_transfers; i++)
        free(bounds->uses[i].limits);
    free(bounds->pairs);
    free(bounds->uses);
    free(bounds->limits);
    free(bounds->members);
    free(bounds->covers);
    free(bounds->asked);
    free(bounds->values);
    free(bounds->raises);
    free(bounds->found);
    free(bounds->exceptions);
    free(bounds->late);
    free(bounds);
}

static void doubt(struct tccl_bounds *bounds, const tccl_transfer *part, int count, double low,
                  const struct tccl_set *whole, double high)
{
    const struct tccl_set set = tccl_set_sorted(part, count);
    if (high <= low * (1 + fmax(SLOWER, BLURS * bounds->blur)) || set.count == whole->count ||
        bounds->n_doubts == TCCL_MAX_DOUBTS)
        return;
    for (int i = 0; i < bounds->n_doubts; i++)
        if (tccl_set_equal(&bounds->doubts[i].part, &set))
            return;
    bounds->doubts[bounds->n_doubts++] = (struct tccl_doubt){set, *whole};
}

void tccl_bounds_set_blur(struct tccl_bounds *bounds, double blur)
{
    bounds->blur = blur;
    if (!bounds->looked) {
        /* Of what was measured before: single transfers against all that contain them. */
        for (size_t i = 0; i < bounds->sets->count; i++) {
            const struct tccl_setmap_entry *entry = &bounds->sets->entries[i];
            for (int k = 0; k < entry->set.count && entry->set.count > 1; k++) {
                const struct tccl_set one = {1, {entry->set.transfers[k]}};
                const struct tccl_setmap_entry *alone = tccl_setmap_find(bounds->sets, &one);
                if (alone && alone->best.gbps > 0)
                    doubt(bounds, one.transfers, 1, alone->best.gbps, &entry->set,
                          entry->best.gbps);
            }
        }
    }
    bounds->looked = true;
}

size_t tccl_bounds_doubts(const struct tccl_bounds *bounds, const struct tccl_doubt **doubts)
{
    *doubts = bounds->doubts;
    return (size_t)bounds->n_doubts;
}

static void canonical_set(const struct tccl_bounds *bounds, const struct tccl_set *walk,
                          struct tccl_set *set)
{
    tccl_transfer image[TCCL_MAX_SET];
    tccl_symmetry_relabel(bounds->symmetry, walk->transfers, walk->count, image);
    *set = tccl_set_sorted(image, walk->count);
}

static void bits_of_set(const struct tccl_bounds *bounds, const struct tccl_set *set,
                        uint64_t bits[WORDS])
{
    memset(bits, 0, WORDS * sizeof(bits[0]));
    for (int i = 0; i < set->count; i++) {
        unsigned transfer = bounds->compact[set->transfers[i]];
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

/* Bandwidth of the i-th set asked. */
static double gbps_asked(const struct tccl_bounds *bounds, size_t i)
{
    return bounds->sets->entries[bounds->asked[i]].gbps;
}

double tccl_bounds_floor(const struct tccl_bounds *bounds, const struct tccl_set *walk)
{
    uint64_t bits[WORDS];
    double best = 0;
    int words = (bounds->n_transfers + 63) / 64;
    if (words > WORDS)
        return 0;
    bits_of_set(bounds, walk, bits);
    size_t count = bounds->n_asked, first = count > RECENT ? count - RECENT : 0;
    for (size_t i = first; i < count; i++)
        if (gbps_asked(bounds, i) > best && covers(bounds->covers[i], bits, words))
            best = gbps_asked(bounds, i);
    return best;
}

/* Keeps a transfer's limits in ascending order of their bandwidths. */
static int add_use(const struct tccl_bounds *bounds, struct uses *uses, uint32_t limit, double gbps)
{
    size_t room = uses->room;
    if (TCCL_GROW(uses->limits, uses->count, room) != 0)
        return -1;
    uses->room = room;
    uint32_t place = uses->count++;
    for (; place > 0 && bounds->limits[uses->limits[place - 1]].gbps > gbps; place--)
        uses->limits[place] = uses->limits[place - 1];
    uses->limits[place] = limit;
    return 0;
}

static int add_long_limit(struct tccl_bounds *bounds, const uint16_t *members, int count,
                          double gbps)
{
    if (bounds->n_limits >= MAX_LIMITS)
        return 0;
    if (TCCL_GROW(bounds->limits, bounds->n_limits, bounds->limits_room) != 0)
        return -1;
    struct limit limit = {.gbps = gbps, .first = bounds->n_members, .size = count};
    for (int i = 0; i < count; i++) {
        if (TCCL_GROW(bounds->members, bounds->n_members, bounds->members_room) != 0 ||
            add_use(bounds, &bounds->uses[members[i]], bounds->n_limits, gbps) != 0)
            return -1;
        bounds->members[bounds->n_members++] = members[i];
    }
    bounds->limits[bounds->n_limits++] = limit;
    return 0;
}

/* One limit, without its images. The stack must be empty. */
static int add_limit(struct tccl_bounds *bounds, const struct tccl_set *set, double gbps)
{
    uint16_t members[TCCL_MAX_SET];
    size_t n = bounds->n_transfers;
    for (int i = 0; i < set->count; i++) {
        members[i] = bounds->compact[set->transfers[i]];
        if (members[i] >= n)
            return 0;
    }
    if (set->count > 2)
        return add_long_limit(bounds, members, set->count, gbps);
    size_t a = members[0], b = members[set->count - 1];
    bounds->pairs[a * n + b] = bounds->pairs[b * n + a] = fmin(bounds->pairs[a * n + b], gbps);
    return 0;
}

double tccl_bounds_of(struct tccl_bounds *bounds, const tccl_transfer *transfers, int count,
                      double above)
{
    double bound = INFINITY;
    for (int i = 0; i < count; i++)
        bound = tccl_bounds_push(bounds, transfers[i], above);
    for (int i = 0; i < count; i++)
        tccl_bounds_pop(bounds);
    return bound;
}

/* Adds a limit unless those that there are say as much. */
static int lower_limit(struct tccl_bounds *bounds, const struct tccl_set *set, double gbps)
{
    double bound = tccl_bounds_of(bounds, set->transfers, set->count, gbps);
    return bound <= gbps ? 0 : add_limit(bounds, set, gbps);
}

static int add_value(struct tccl_bounds *bounds, double gbps)
{
    size_t place = bounds->n_values;
    while (place > 0 && bounds->values[place - 1] > gbps)
        place--;
    if (place > 0 && bounds->values[place - 1] == gbps)
        return 0;
    if (TCCL_GROW(bounds->values, bounds->n_values, bounds->values_room) != 0)
        return -1;
    memmove(bounds->values + place + 1, bounds->values + place,
            (bounds->n_values - place) * sizeof(*bounds->values));
    bounds->values[place] = gbps;
    bounds->n_values++;
    return 0;
}

size_t tccl_bounds_values(const struct tccl_bounds *bounds, const double **values)
{
    *values = bounds->values;
    return bounds->n_values;
}

typedef int image_visitor(struct tccl_bounds *bounds, const struct tccl_set *set, double gbps);

/* Visits all images of a set under exchanges of siblings that are alike, exactly or nearly. */
static int each_image(struct tccl_bounds *bounds, const struct tccl_set *set, bool near,
                      double gbps, image_visitor *visit)
{
    __attribute__((cleanup(tccl_setmap_clear))) struct tccl_setmap images = {0};
    int exchanges = tccl_symmetry_exchanges(bounds->symmetry, set, near);
    if (tccl_setmap_add(&images, set) < 0)
        return -1;
    for (size_t i = 0; i < images.count; i++) {
        struct tccl_set member = images.entries[i].set, image;
        if (visit(bounds, &member, gbps) < 0)
            return -1;
        for (int e = 0; e < exchanges && images.count < MAX_IMAGES; e++) {
            tccl_symmetry_exchange(bounds->symmetry, &member, near, e, &image);
            if (tccl_setmap_add(&images, &image) < 0)
                return -1;
        }
    }
    return 0;
}

int tccl_bounds_limit(struct tccl_bounds *bounds, const struct tccl_set *walk, double gbps)
{
    struct tccl_set set = tccl_set_sorted(walk->transfers, walk->count);
    double near = gbps * tccl_symmetry_factor(bounds->symmetry, &set);
    struct tccl_setmap_entry *own = tccl_setmap_find(bounds->sets, &set);
    if (own)
        own->limits = true;
    if (add_value(bounds, gbps) != 0 || add_value(bounds, near) != 0 ||
        each_image(bounds, &set, false, gbps, lower_limit) != 0)
        return -1;
    return bounds->symmetry ? each_image(bounds, &set, true, near, lower_limit) : 0;
}

/* ---- limits that turn out to be too low ---- */

static int note_raise(struct tccl_bounds *bounds, double low, double high)
{
    if (TCCL_GROW(bounds->raises, bounds->n_raises, bounds->raises_room) != 0)
        return -1;
    bounds->raises[bounds->n_raises++] = (struct tccl_raise){low, high};
    return add_value(bounds, high);
}

static void raise_long_limit(struct tccl_bounds *bounds, uint32_t index, double gbps)
{
    struct limit *limit = &bounds->limits[index];
    limit->gbps = limit->avoided ? INFINITY : gbps;
    limit->avoided = false;
    for (int i = 0; i < limit->size; i++) {
        /* Puts a limit that has grown where it belongs among a transfer's. */
        struct uses *uses = &bounds->uses[bounds->members[limit->first + i]];
        size_t place = 0;
        while (uses->limits[place] != index)
            place++;
        for (; place + 1 < uses->count &&
               bounds->limits[index].gbps > bounds->limits[uses->limits[place + 1]].gbps;
             place++) {
            uses->limits[place] = uses->limits[place + 1];
            uses->limits[place + 1] = index;
        }
    }
}

/* The long limit with exactly these members that is below gbps, or -1. */
static long find_long_limit(const struct tccl_bounds *bounds, const uint16_t *members, int count,
                            double gbps)
{
    const struct uses *uses = &bounds->uses[members[0]];
    for (uint32_t i = 0; i < uses->count; i++) {
        const struct limit *limit = &bounds->limits[uses->limits[i]];
        if (limit->gbps >= gbps)
            break;
        if (!limit->avoided && limit->size == count &&
            memcmp(bounds->members + limit->first, members, count * sizeof(*members)) == 0)
            return uses->limits[i];
    }
    return -1;
}

static int raise_if_long(struct tccl_bounds *bounds, const struct tccl_set *set, double gbps)
{
    uint16_t members[TCCL_MAX_SET];
    for (int i = 0; i < set->count; i++)
        members[i] = bounds->compact[set->transfers[i]];
    long found = find_long_limit(bounds, members, set->count, gbps);
    if (found < 0)
        return 0;
    double low = bounds->limits[found].gbps;
    raise_long_limit(bounds, found, gbps);
    return note_raise(bounds, low, gbps);
}

/* Raises the limit of exactly this set of possible transfers, if there is a lower one. */
static int raise_limit(struct tccl_bounds *bounds, const struct tccl_set *set, double gbps)
{
    size_t n = bounds->n_transfers;
    if (set->count > 2)
        return raise_if_long(bounds, set, gbps);
    size_t a = bounds->compact[set->transfers[0]];
    size_t b = bounds->compact[set->transfers[set->count - 1]];
    double low = bounds->pairs[a * n + b];
    if (low >= gbps)
        return 0;
    bounds->pairs[a * n + b] = bounds->pairs[b * n + a] = gbps;
    return note_raise(bounds, low, gbps);
}

/* What is wrong of a set is wrong of those that share its measurement. */
static int raise_images(struct tccl_bounds *bounds, const tccl_transfer *transfers, int count,
                        double gbps)
{
    struct tccl_set set = tccl_set_sorted(transfers, count);
    return each_image(bounds, &set, false, gbps, raise_limit);
}

/* Lists the long limits below gbps all of whose members are in the set. */
static int find_low_limits(struct tccl_bounds *bounds, const struct tccl_set *set, double gbps)
{
    int status = 0;
    bounds->n_found = 0;
    for (int undo = 0; undo < 2; undo++) {
        for (int i = 0; i < set->count; i++) {
            uint16_t member = bounds->compact[set->transfers[i]];
            if (member >= bounds->n_transfers)
                continue;
            const struct uses *uses = &bounds->uses[member];
            for (uint32_t u = 0; u < uses->count; u++) {
                struct limit *limit = &bounds->limits[uses->limits[u]];
                if (limit->gbps >= gbps)
                    break;
                limit->met += undo ? -1 : 1;
                if (undo || limit->met != limit->size)
                    continue;
                if (TCCL_GROW(bounds->found, bounds->n_found, bounds->found_room) != 0)
                    status = -1;
                else
                    bounds->found[bounds->n_found++] = uses->limits[u];
            }
        }
    }
    return status;
}

static int raise_found(struct tccl_bounds *bounds, uint32_t index, const struct tccl_set *whole,
                       double gbps)
{
    const struct limit *limit = &bounds->limits[index];
    tccl_transfer transfers[TCCL_MAX_SET];
    if (limit->avoided) {
        raise_long_limit(bounds, index, gbps);
        return 0;
    }
    for (int i = 0; i < limit->size; i++)
        transfers[i] = bounds->numbers[bounds->members[limit->first + i]];
    doubt(bounds, transfers, limit->size, limit->gbps, whole, gbps);
    return raise_images(bounds, transfers, limit->size, gbps);
}

/* A set reaches gbps, so each of its parts does. The stack must be empty. */
static int raise_parts(struct tccl_bounds *bounds, const struct tccl_set *set, double gbps)
{
    double low = gbps * (1 - SAME);
    size_t n = bounds->n_transfers;
    for (int i = 0; i < set->count; i++) {
        size_t a = bounds->compact[set->transfers[i]];
        if (a >= n)
            return 0;
        for (int j = i; j < set->count; j++) {
            tccl_transfer both[] = {set->transfers[i], set->transfers[j]};
            size_t b = bounds->compact[both[1]];
            if (b >= n || bounds->pairs[a * n + b] >= low)
                continue;
            doubt(bounds, both, 1 + (j > i), bounds->pairs[a * n + b], set, gbps);
            if (raise_images(bounds, both, 1 + (j > i), gbps) != 0)
                return -1;
        }
    }
    if (find_low_limits(bounds, set, low) < 0)
        return -1;
    for (size_t i = 0; i < bounds->n_found; i++)
        if (raise_found(bounds, bounds->found[i], set, gbps) != 0)
            return -1;
    return 0;
}

size_t tccl_bounds_raises(const struct tccl_bounds *bounds, const struct tccl_raise **raises)
{
    *raises = bounds->raises;
    return bounds->n_raises;
}

/* ---- what was measured ---- */

/* Takes up the set's own entry, made if there is none; NULL without memory. */
static struct tccl_setmap_entry *take_up(struct tccl_bounds *bounds, const struct tccl_set *set)
{
    int added = tccl_setmap_add(bounds->sets, set);
    struct tccl_setmap_entry *entry = added < 0 ? NULL : tccl_setmap_find(bounds->sets, set);
    if (!entry || entry->asked)
        return entry;
    size_t last = bounds->n_asked;
    if (TCCL_GROW(bounds->asked, last, bounds->asked_room) != 0 ||
        TCCL_GROW(bounds->covers, last, bounds->covers_room) < 0)
        return NULL;
    bits_of_set(bounds, set, bounds->covers[last]);
    bounds->asked[bounds->n_asked++] = entry - bounds->sets->entries;
    entry->asked = true;
    entry->best.failed = entry->measured == 0;
    return entry;
}

static int share(struct tccl_bounds *bounds, const struct tccl_set *walk, double gbps, double upper)
{
    struct tccl_set set;
    if (!bounds->symmetry)
        return 0;
    canonical_set(bounds, walk, &set);
    if (tccl_setmap_add(&bounds->canonical, &set) < 0)
        return -1;
    struct tccl_setmap_entry *entry = tccl_setmap_find(&bounds->canonical, &set);
    if (gbps >= entry->best.gbps * (1 + bounds->blur)) {
        entry->best.gbps = gbps;
        entry->upper = upper;
    }
    return 0;
}

/* The bound from above or from below that the set can't be told from, the nearest one; else what
 * was measured. */
static double blurred(struct tccl_bounds *bounds, const struct tccl_set *walk, double gbps)
{
    if (bounds->blur <= 0 || bounds->depth > 0 || gbps <= 0)
        return gbps;
    double above = tccl_bounds_of(bounds, walk->transfers, walk->count, INFINITY);
    double below = tccl_bounds_floor(bounds, walk);
    double nearest = fabs(above - gbps) <= fabs(below - gbps) ? above : below;
    return nearest > 0 && fabs(nearest - gbps) <= bounds->blur * gbps ? nearest : gbps;
}

int tccl_bounds_add(struct tccl_bounds *bounds, const struct tccl_set *walk, double upper)
{
    struct tccl_set set = tccl_set_sorted(walk->transfers, walk->count);
    struct tccl_setmap_entry *entry = take_up(bounds, &set);
    if (!entry)
        return -1;
    double gbps = entry->gbps = blurred(bounds, walk, entry->best.gbps);
    if (gbps != entry->best.gbps)
        upper = fmax(gbps, upper - (entry->best.gbps - gbps));
    entry->upper = upper;
    if (entry->best.failed)
        return 0;
    if (bounds->depth == 0) {
        if (raise_parts(bounds, &set, gbps) != 0)
            return -1;
    } else { /* limits must not change while some are counted on the stack */
        if (TCCL_GROW(bounds->late, bounds->n_late, bounds->late_room) != 0)
            return -1;
        bounds->late[bounds->n_late++] = entry - bounds->sets->entries;
    }
    return share(bounds, walk, gbps, upper);
}

static struct tccl_setmap_entry *own_entry(const struct tccl_bounds *bounds,
                                           const struct tccl_set *walk)
{
    struct tccl_set set = tccl_set_sorted(walk->transfers, walk->count);
    struct tccl_setmap_entry *entry = tccl_setmap_find(bounds->sets, &set);
    return entry && entry->asked ? entry : NULL;
}

bool tccl_bounds_find(const struct tccl_bounds *bounds, const struct tccl_set *walk,
                      struct tccl_known *known)
{
    const struct tccl_setmap_entry *own = own_entry(bounds, walk), *found = own;
    struct tccl_set shared;
    if (!own && bounds->symmetry) { /* the entry that all symmetric sets share */
        canonical_set(bounds, walk, &shared);
        found = tccl_setmap_find(&bounds->canonical, &shared);
    }
    if (found)
        *known = (struct tccl_known){own ? own->gbps : found->best.gbps, found->upper, !own,
                                     found->best.failed};
    return found != NULL;
}

bool tccl_bounds_confirmed(const struct tccl_bounds *bounds, const struct tccl_set *walk)
{
    const struct tccl_setmap_entry *own = own_entry(bounds, walk);
    return own && own->confirmed;
}

void tccl_bounds_confirm(struct tccl_bounds *bounds, const struct tccl_set *walk)
{
    struct tccl_setmap_entry *own = own_entry(bounds, walk);
    if (own)
        own->confirmed = true;
}

static bool set_of_members(const struct tccl_bounds *bounds, const uint16_t *members, int count,
                           uint32_t gpus, struct tccl_set *set)
{
    set->count = 0;
    for (int i = 0; i < count; i++)
        tccl_set_add(set, bounds->numbers[members[i]]);
    return !(tccl_set_gpus(set) & ~gpus);
}

static int add_exception(struct tccl_bounds *bounds, const struct tccl_set *set, double gbps UNUSED)
{
    if (TCCL_GROW(bounds->exceptions, bounds->n_exceptions, bounds->exceptions_room) != 0)
        return -1;
    bounds->exceptions[bounds->n_exceptions++] = *set;
    return 0;
}

bool tccl_bounds_excepted(const struct tccl_bounds *bounds, const struct tccl_set *walk)
{
    if (bounds->n_exceptions == 0)
        return false;
    const struct tccl_set set = tccl_set_sorted(walk->transfers, walk->count);
    for (size_t i = 0; i < bounds->n_exceptions; i++)
        if (tccl_set_contains(&set, &bounds->exceptions[i]))
            return true;
    return false;
}

/* What made a limit may have been slow for the exception in it alone. */
static int lift_excepted(struct tccl_bounds *bounds)
{
    struct tccl_set set;
    int n = bounds->n_transfers;
    for (int a = 0; a < n; a++)
        for (int b = a; b < n; b++) {
            const tccl_transfer both[] = {bounds->numbers[a], bounds->numbers[b]};
            set = tccl_set_sorted(both, 1 + (b > a));
            double low = bounds->pairs[a * n + b];
            if (!isfinite(low) || !tccl_bounds_excepted(bounds, &set))
                continue;
            bounds->pairs[a * n + b] = bounds->pairs[b * n + a] = INFINITY;
            if (note_raise(bounds, low, INFINITY) != 0)
                return -1;
        }
    for (size_t i = 0; i < bounds->n_limits; i++) {
        const struct limit *limit = &bounds->limits[i];
        double low = limit->gbps;
        if (limit->avoided || !isfinite(low))
            continue;
        set_of_members(bounds, bounds->members + limit->first, limit->size, UINT32_MAX, &set);
        if (!tccl_bounds_excepted(bounds, &set))
            continue;
        raise_long_limit(bounds, (uint32_t)i, INFINITY);
        if (note_raise(bounds, low, INFINITY) != 0)
            return -1;
    }
    return 0;
}

int tccl_bounds_except(struct tccl_bounds *bounds, const struct tccl_set *part)
{
    struct tccl_set set = tccl_set_sorted(part->transfers, part->count);
    if (each_image(bounds, &set, false, 0, add_exception) != 0 ||
        (bounds->symmetry && each_image(bounds, &set, true, 0, add_exception) != 0))
        return -1;
    return lift_excepted(bounds);
}

int tccl_bounds_avoid(struct tccl_bounds *bounds, const struct tccl_set *walk)
{
    uint16_t members[TCCL_MAX_SET];
    for (int i = 0; i < walk->count; i++) {
        members[i] = bounds->compact[walk->transfers[i]];
        if (members[i] >= bounds->n_transfers)
            return 0;
    }
    size_t before = bounds->n_limits;
    if (add_value(bounds, 0) != 0 || add_long_limit(bounds, members, walk->count, 0) != 0)
        return -1;
    if (bounds->n_limits > before) {
        bounds->limits[before].avoided = true;
        bounds->avoids = true;
    }
    return 0;
}

void tccl_bounds_ignore_avoided(struct tccl_bounds *bounds, bool ignore)
{
    bounds->ignores_avoided = ignore;
}

bool tccl_bounds_avoids(const struct tccl_bounds *bounds)
{
    return bounds->avoids;
}

bool tccl_bounds_assumes(const struct tccl_bounds *bounds)
{
    return bounds->symmetry && tccl_symmetry_assumed(bounds->symmetry);
}

int tccl_bounds_distrust(struct tccl_bounds *bounds)
{
    bounds->symmetry = NULL;
    /* Forgets all limits of one or two transfers, and all longer ones but those to be avoided. */
    size_t n = bounds->n_transfers;
    for (size_t i = 0; i < n * n; i++)
        bounds->pairs[i] = INFINITY;
    for (size_t i = 0; i < bounds->n_limits; i++)
        if (!bounds->limits[i].avoided && bounds->limits[i].gbps < INFINITY)
            raise_long_limit(bounds, i, INFINITY);
    for (size_t i = 0; i < bounds->n_asked; i++) {
        const struct tccl_setmap_entry *entry = &bounds->sets->entries[bounds->asked[i]];
        struct tccl_set set = entry->set;
        if (entry->limits && !tccl_bounds_excepted(bounds, &set) &&
            lower_limit(bounds, &set, entry->upper) != 0)
            return -1;
    }
    return 0;
}

/* Counts the transfer in its limits up to above. */
static double meet_limits(struct tccl_bounds *bounds, uint16_t pushed, double above, double bound)
{
    const struct uses *uses = &bounds->uses[pushed];
    uint32_t met = 0;
    for (; met < uses->count; met++) {
        struct limit *limit = &bounds->limits[uses->limits[met]];
        if (limit->gbps > above)
            break;
        if (++limit->met == limit->size && !(limit->avoided && bounds->ignores_avoided))
            bound = fmin(bound, limit->gbps);
    }
    bounds->met[bounds->depth] = met;
    return bound;
}

double tccl_bounds_push(struct tccl_bounds *bounds, tccl_transfer transfer, double above)
{
    uint16_t pushed = bounds->compact[transfer];
    size_t n = bounds->n_transfers;
    double bound = 0; /* of what is not possible on this machine */
    while (bounds->depth == 0 && bounds->n_late > 0) {
        const struct tccl_setmap_entry *late =
            &bounds->sets->entries[bounds->late[--bounds->n_late]];
        const struct tccl_set set = late->set; /* which may move */
        raise_parts(bounds, &set, late->gbps); /* without memory a limit stays too low */
    }
    bounds->met[bounds->depth] = 0;
    if (pushed < n) {
        const double *pairs = bounds->pairs + pushed * n;
        bound = fmin(bounds->upper[bounds->depth], pairs[pushed]);
        for (int i = 0; i < bounds->depth; i++)
            if (bounds->stack[i] < n)
                bound = fmin(bound, pairs[bounds->stack[i]]);
        bound = meet_limits(bounds, pushed, above, bound);
    }
    bounds->stack[bounds->depth++] = pushed;
    return bounds->upper[bounds->depth] = bound;
}

void tccl_bounds_pop(struct tccl_bounds *bounds)
{
    uint16_t popped = bounds->stack[--bounds->depth];
    for (uint32_t i = 0; i < bounds->met[bounds->depth]; i++)
        bounds->limits[bounds->uses[popped].limits[i]].met--;
}

double tccl_bounds_alone(const struct tccl_bounds *bounds, tccl_transfer transfer)
{
    size_t compact = bounds->compact[transfer], n = bounds->n_transfers;
    return compact < n ? bounds->pairs[compact * n + compact] : 0;
}

void tccl_bounds_each_limit(const struct tccl_bounds *bounds, uint32_t gpus,
                            void (*each)(void *context, const struct tccl_set *set, double gbps),
                            void *context)
{
    struct tccl_set set;
    int n = bounds->n_transfers;
    for (int i = 0; i < n * n; i++) {
        const uint16_t pair[] = {(uint16_t)(i / n), (uint16_t)(i % n)};
        if (pair[0] < pair[1] && isfinite(bounds->pairs[i]) &&
            set_of_members(bounds, pair, 2, gpus, &set))
            each(context, &set, bounds->pairs[i]);
    }
    for (size_t i = 0; i < bounds->n_limits; i++) {
        const struct limit *limit = &bounds->limits[i];
        if (!limit->avoided &&
            set_of_members(bounds, bounds->members + limit->first, limit->size, gpus, &set))
            each(context, &set, limit->gbps);
    }
}

const struct tccl_symmetry *tccl_bounds_symmetry(const struct tccl_bounds *bounds)
{
    return bounds->symmetry;
}
