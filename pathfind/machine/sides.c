/* sides.c: sides by a model; sides that were measured together, found by the hashes of their
 * transfers; and bounds by them. */
#include "machine/sides.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"

/* A part that reached less than this share of a bound refutes it: less is noise. */
static const double REFUTES = 0.8;

int tccl_side_add(struct tccl_side *side, const struct tccl_set *ring)
{
    if (side->count + ring->count > TCCL_MAX_SIDE)
        return -1;
    memcpy(side->transfers + side->count, ring->transfers,
           ring->count * sizeof(ring->transfers[0]));
    memset(side->ring + side->count, side->rings, ring->count);
    side->count += ring->count;
    side->rings++;
    return 0;
}

int tccl_side_set(const struct tccl_side *side, struct tccl_set *set)
{
    set->count = 0;
    for (int i = 0; i < side->count; i++)
        if (tccl_set_add_again(set, side->transfers[i]) != 0)
            return -1;
    return 0;
}

int tccl_side_blocks(const struct tccl_side *side, struct tccl_block blocks[static TCCL_MAX_SIDE])
{
    int own[TCCL_MAX_GPUS], n = 0;
    for (int i = 0; i < side->count; i++) {
        const struct tccl_device gpu = tccl_transfer_initiator(side->transfers[i]);
        if (i == 0 || side->ring[i] != side->ring[i - 1])
            memset(own, -1, sizeof(own));
        if (gpu.kind != TCCL_GPU)
            continue;
        if (own[gpu.index] < 0) {
            own[gpu.index] = n;
            blocks[n++] = (struct tccl_block){-1, -1};
        }
        struct tccl_block *block = &blocks[own[gpu.index]];
        *(tccl_transfer_reads(side->transfers[i]) ? &block->receives : &block->sends) = i;
    }
    return n;
}

int tccl_model_sides(const struct tccl_model *model, const struct tccl_side *const *sides, int n,
                     double *gbps, struct tccl_error *err)
{
    tccl_transfer members[TCCL_MAX_RUNNING] = {0};
    double rates[TCCL_MAX_RUNNING];
    int count = 0;
    if (n == 1) {
        if (tccl_model_slowest(model, sides[0]->transfers, sides[0]->count, &gbps[0], err) != 0)
            return -1;
        gbps[0] *= sides[0]->rings;
        return 0;
    }
    for (int i = 0; i < n; i++) {
        if (count + sides[i]->count > TCCL_MAX_RUNNING)
            return tccl_fail(err, "more than %d transfers at once", TCCL_MAX_RUNNING);
        memcpy(members + count, sides[i]->transfers, sides[i]->count * sizeof(*members));
        count += sides[i]->count;
    }
    if (tccl_model_rates(model, members, count, rates, NULL, err) != 0)
        return -1;
    count = 0;
    for (int i = 0; i < n; i++) {
        gbps[i] = INFINITY;
        for (int k = 0; k < sides[i]->count; k++)
            gbps[i] = fmin(gbps[i], rates[count++]);
        gbps[i] *= sides[i]->rings;
    }
    return 0;
}

/* A joint, in short. Sides stand in the order of their hashes. */
struct entry {
    int n, count;               /* sides; transfers of all of them */
    bool singles;               /* each side is one transfer */
    uint64_t bloom;             /* a bit for some of the transfers each */
    double slowest;             /* of all transfers, GB/s */
    double foretold;            /* 0: measured; else by how much it may be off, as a ratio */
    tccl_transfer *transfers;   /* ascending, repeats stay */
    struct known_side *by_hash; /* n of them */
};

struct known_side {
    uint64_t hash;
    double gbps;         /* of its slowest transfer */
    tccl_transfer first; /* one of its transfers */
};

struct tccl_together {
    struct entry *entries;
    int count;
    size_t room;
};

static const char *const names[TCCL_BASES] = {"", "model", "measured", "foretold", "bounds"};

const char *tccl_basis_name(enum tccl_basis basis)
{
    return names[basis];
}

int tccl_basis_parse(const char *name)
{
    for (int i = 0; i < TCCL_BASES; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

/* ---- what is asked, or kept ---- */

/* All transfers of the sides that are asked about. */
struct question {
    int n, count;
    uint64_t bloom;
    tccl_transfer transfers[TCCL_MAX_RUNNING]; /* ascending */
    struct known_side sides[TCCL_MAX_SIDES];   /* in the order of their hashes; gbps: as asked */
    int at[TCCL_MAX_SIDES];                    /* which of those asked about it is */
};

static void sort_side(const struct tccl_side *side, tccl_transfer sorted[static TCCL_MAX_SIDE])
{
    memcpy(sorted, side->transfers, (size_t)side->count * sizeof(*sorted));
    tccl_transfers_sort(sorted, side->count);
}

bool tccl_side_equal(const struct tccl_side *a, const struct tccl_side *b)
{
    tccl_transfer of_a[TCCL_MAX_SIDE], of_b[TCCL_MAX_SIDE];
    sort_side(a, of_a);
    sort_side(b, of_b);
    return a->count == b->count && memcmp(of_a, of_b, (size_t)a->count * sizeof(*of_a)) == 0;
}

static void insert_side(struct question *question, int which, const struct tccl_side *side)
{
    tccl_transfer sorted[TCCL_MAX_SIDE];
    sort_side(side, sorted);
    uint64_t hash = tccl_hash64(sorted, (size_t)side->count * sizeof(*sorted));
    int i = question->n++;
    for (; i > 0 && question->sides[i - 1].hash > hash; i--) {
        question->sides[i] = question->sides[i - 1];
        question->at[i] = question->at[i - 1];
    }
    question->sides[i] = (struct known_side){.hash = hash, .first = side->transfers[0]};
    question->at[i] = which;
}

/* Returns 0, or -1: more transfers, or sides, than can run. */
static int ask(const struct tccl_side *const *sides, int n, struct question *question)
{
    question->n = question->count = 0;
    question->bloom = 0;
    if (n > TCCL_MAX_SIDES)
        return -1;
    for (int i = 0; i < n; i++) {
        const struct tccl_side *side = sides[i];
        if (question->count + side->count > TCCL_MAX_RUNNING)
            return -1;
        memcpy(question->transfers + question->count, side->transfers,
               (size_t)side->count * sizeof(side->transfers[0]));
        question->count += side->count;
        for (int k = 0; k < side->count; k++)
            question->bloom |= UINT64_C(1) << side->transfers[k] % 61;
        insert_side(question, i, side);
    }
    tccl_transfers_sort(question->transfers, question->count);
    return 0;
}

static bool is_same(const struct entry *entry, const struct question *question)
{
    if (entry->n != question->n || entry->bloom != question->bloom)
        return false;
    for (int i = 0; i < entry->n; i++)
        if (entry->by_hash[i].hash != question->sides[i].hash)
            return false;
    return true;
}

static struct entry *find(const struct tccl_together *together, const struct question *question)
{
    for (int i = 0; together && i < together->count; i++)
        if (is_same(&together->entries[i], question))
            return &together->entries[i];
    return NULL;
}

/* ---- the store ---- */

struct tccl_together *tccl_together_new(void)
{
    return calloc(1, sizeof(struct tccl_together));
}

void tccl_together_free(struct tccl_together *together)
{
    if (!together)
        return;
    for (int i = 0; i < together->count; i++) {
        free(together->entries[i].transfers);
        free(together->entries[i].by_hash);
    }
    free(together->entries);
    free(together);
}

int tccl_together_count(const struct tccl_together *together)
{
    return together ? together->count : 0;
}

/* What is known of the sides of an entry. */
static enum tccl_basis basis_of(const struct entry *entry)
{
    return !(entry->foretold > 0)                    ? TCCL_BASIS_MEASURED
           : entry->foretold <= TCCL_FORETOLD_WITHIN ? TCCL_BASIS_FORETOLD
                                                     : TCCL_BASIS_BOUNDS;
}

int tccl_together_by(const struct tccl_together *together, enum tccl_basis basis)
{
    int count = 0;
    for (int i = 0; together && i < together->count; i++)
        count += basis_of(&together->entries[i]) == basis;
    return count;
}

int tccl_together_collapsed(const struct tccl_together *together, struct tccl_set *first)
{
    int count = 0;
    for (int i = 0; together && i < together->count; i++) {
        const struct entry *entry = &together->entries[i];
        if (entry->singles && basis_of(entry) != TCCL_BASIS_BOUNDS && count++ == 0)
            *first = tccl_set_sorted(entry->transfers, entry->count);
    }
    return count;
}

static struct entry *add_entry(struct tccl_together *together, const struct question *question)
{
    size_t count = (size_t)question->count;
    if (TCCL_GROW(together->entries, (size_t)together->count, together->room) != 0)
        return NULL;
    struct entry *entry = &together->entries[together->count];
    *entry = (struct entry){.n = question->n,
                            .count = question->count,
                            .singles = question->n == question->count,
                            .bloom = question->bloom};
    entry->transfers = calloc(count + 1, sizeof(*entry->transfers));
    entry->by_hash = calloc((size_t)question->n, sizeof(*entry->by_hash));
    if (!entry->transfers || !entry->by_hash) {
        free(entry->transfers);
        free(entry->by_hash);
        return NULL;
    }
    memcpy(entry->transfers, question->transfers, count * sizeof(*entry->transfers));
    together->count++;
    return entry;
}

int tccl_together_add(struct tccl_together *together, const struct tccl_joint *joint)
{
    const struct tccl_side *sides[TCCL_MAX_SIDES];
    struct question question;
    for (int i = 0; i < joint->n; i++)
        sides[i] = &joint->sides[i];
    if (joint->n < 1 || ask(sides, joint->n, &question) != 0)
        return -1;
    struct entry *entry = find(together, &question);
    if (!entry && together->count == TCCL_MAX_JOINTS)
        return 1;
    if (!entry && !(entry = add_entry(together, &question)))
        return -1;
    if (joint->foretold > 0 && entry->slowest > 0 && basis_of(entry) == TCCL_BASIS_MEASURED)
        return 0;
    entry->foretold = joint->foretold;
    entry->slowest = INFINITY;
    for (int i = 0; i < entry->n; i++) {
        double gbps = joint->gbps[question.at[i]];
        entry->by_hash[i] = question.sides[i];
        entry->by_hash[i].gbps = gbps;
        entry->slowest = fmin(entry->slowest, gbps);
    }
    return 0;
}

bool tccl_together_has(const struct tccl_together *together, const struct tccl_side *const *sides,
                       int n)
{
    struct question question;
    const struct entry *entry = ask(sides, n, &question) == 0 ? find(together, &question) : NULL;
    return entry && basis_of(entry) == TCCL_BASIS_MEASURED;
}

/* ---- bounds ---- */

static bool is_part(const struct entry *entry, const struct question *question)
{
    return !(entry->bloom & ~question->bloom) &&
           tccl_transfers_contain(question->transfers, question->count, entry->transfers,
                                  entry->count);
}

/* A ring of each of the sides has at least this, GB/s: parts are sides alone, but for those of the
 * entry (NULL: none), which are one. 0: the entry has others, or a part isn't known. */
static double level(const struct question *question, const struct tccl_side *const *sides,
                    const struct entry *entry)
{
    double time = entry ? 1 / entry->slowest : 0;
    int at = 0;
    for (int i = 0; i < question->n; i++) {
        const struct tccl_side *side = sides[question->at[i]];
        if (entry && at < entry->n && entry->by_hash[at].hash == question->sides[i].hash)
            at++;
        else if (!(side->alone > 0))
            return 0;
        else
            time += side->rings / side->alone;
    }
    return entry && at < entry->n ? 0 : 1 / time;
}

static bool side_has(const struct tccl_side *side, tccl_transfer transfer)
{
    for (int i = 0; i < side->count; i++)
        if (side->transfers[i] == transfer)
            return true;
    return false;
}

/* Returns by what it is known. */
static enum tccl_basis bound(const struct tccl_together *together, const struct question *question,
                             const struct tccl_side *const *sides, double *gbps)
{
    double least = level(question, sides, NULL);
    for (int i = 0; together && i < together->count; i++) {
        const struct entry *entry = &together->entries[i];
        if (entry->slowest <= least || basis_of(entry) != TCCL_BASIS_MEASURED)
            continue;
        if (!(question->bloom & ~entry->bloom) &&
            tccl_transfers_contain(entry->transfers, entry->count, question->transfers,
                                   question->count))
            least = entry->slowest;
        else if (!(entry->bloom & ~question->bloom))
            least = fmax(least, level(question, sides, entry));
    }
    for (int i = 0; i < question->n; i++) {
        gbps[i] = sides[i]->rings * least;
        if (sides[i]->alone > 0)
            gbps[i] = fmin(gbps[i], sides[i]->alone);
    }
    /* Single transfers that were measured together, or foretold, and reach less than sharing leaves
     * them: they collapse, and beside more they are no faster. */
    enum tccl_basis by = TCCL_BASIS_BOUNDS;
    for (int i = 0; together && i < together->count; i++) {
        const struct entry *entry = &together->entries[i];
        if (!entry->singles || basis_of(entry) == TCCL_BASIS_BOUNDS ||
            entry->slowest >= REFUTES * least || !is_part(entry, question))
            continue;
        if (by == TCCL_BASIS_BOUNDS || basis_of(entry) > by)
            by = basis_of(entry);
        for (int k = 0; k < entry->n; k++)
            for (int side = 0; side < question->n; side++)
                if (entry->by_hash[k].gbps < REFUTES * least &&
                    side_has(sides[side], entry->by_hash[k].first))
                    gbps[side] = fmin(gbps[side], sides[side]->rings * entry->by_hash[k].gbps);
    }
    return by;
}

int tccl_rates_sides(const struct tccl_rates *rates, const struct tccl_side *const *sides, int n,
                     double *gbps, enum tccl_basis *basis, struct tccl_error *err)
{
    struct question question;
    *basis = TCCL_BASIS_MODEL;
    if (rates->model)
        return tccl_model_sides(rates->model, sides, n, gbps, err);
    if (ask(sides, n, &question) != 0)
        return tccl_fail(err, "more than %d transfers at once", TCCL_MAX_RUNNING);
    const struct entry *entry = find(rates->together, &question);
    if (!entry || basis_of(entry) == TCCL_BASIS_BOUNDS) {
        *basis = bound(rates->together, &question, sides, gbps);
        return 0;
    }
    *basis = basis_of(entry);
    for (int i = 0; i < n; i++)
        gbps[question.at[i]] = sides[question.at[i]]->rings * entry->by_hash[i].gbps;
    return 0;
}
