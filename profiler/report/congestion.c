/* congestion.c: transfer sets that stay far below what their parts reach alone. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "search/limit.h"

/* Bandwidths that differ less count as equal. */
static const double TOLERANCE = 0.03;

/* What each transfer reaches alone, GB/s; 0: nothing is known. */
struct alone {
    double gbps[TCCL_TRANSFERS], spread[TCCL_TRANSFERS];
    bool at_least[TCCL_TRANSFERS]; /* only known from sets with others */
};

static void learn_set(struct alone *alone, const struct tccl_set *set,
                      const struct tccl_measurement *value)
{
    for (int i = 0; i < set->count && !value->failed; i++) {
        tccl_transfer transfer = set->transfers[i];
        bool single = set->count == 1;
        if (!single && (!alone->at_least[transfer] || value->gbps <= alone->gbps[transfer]))
            continue;
        alone->gbps[transfer] = value->gbps;
        alone->spread[transfer] = value->spread;
        alone->at_least[transfer] = !single;
    }
}

static void learn(struct alone *alone, const struct tccl_measured *measured)
{
    const struct tccl_setmap *sets = &measured->sets;
    for (int i = 0; i < TCCL_TRANSFERS; i++)
        alone->at_least[i] = true;
    for (size_t i = 0; i < sets->count; i++)
        learn_set(alone, &sets->entries[i].set, &sets->entries[i].best);
    for (size_t i = 0; i < sets->count && measured->model; i++)
        for (int j = 0; j < sets->entries[i].set.count; j++) {
            struct tccl_set one = {.count = 1, .transfers = {sets->entries[i].set.transfers[j]}};
            struct tccl_measurement value;
            if (alone->at_least[one.transfers[0]] &&
                tccl_measured_ask(measured, &one, &value) == TCCL_ANSWER_MODEL)
                learn_set(alone, &one, &value);
        }
}

/* Compares a set with its members alone. *least: what the slowest has alone, but for the spread. */
static struct tccl_congested judge(const struct alone *alone, const struct tccl_set *set,
                                   const struct tccl_measurement *value, enum tccl_answer from,
                                   double *least)
{
    double spread = 0;
    struct tccl_congested found = {.set = *set,
                                   .gbps = value->gbps,
                                   .alone = INFINITY,
                                   .noisy = value->noisy,
                                   .from = from,
                                   .marks = value->marks};
    for (int i = 0; i < set->count; i++) {
        double gbps = alone->gbps[set->transfers[i]];
        found.alone = fmin(found.alone, gbps);
        found.at_least = found.at_least || alone->at_least[set->transfers[i]];
        spread = fmax(spread, alone->spread[set->transfers[i]]);
    }
    *least = found.alone * (1 - fmin(1, spread));
    found.ratio = found.alone > 0 ? found.gbps / found.alone : 1;
    return found;
}

/* The list, and for each entry a mark of its members: a set that contains it has all its bits. */
struct list {
    struct tccl_congested *entries;
    uint64_t marks[TCCL_MAX_CONGESTED];
    long count;
};

static uint64_t mark_of(const struct tccl_set *set)
{
    uint64_t mark = 0;
    for (int i = 0; i < set->count; i++)
        mark |= UINT64_C(1) << (set->transfers[i] * 0x9e3779b1u >> 26);
    return mark;
}

/* The entry that already explains the set; NULL if there is none. */
static struct tccl_congested *explanation(const struct list *list, const struct tccl_set *set,
                                          double gbps)
{
    uint64_t mark = mark_of(set);
    for (long i = 0; i < list->count; i++)
        if (!(list->marks[i] & ~mark) && list->entries[i].gbps <= gbps * (1 + TOLERANCE) &&
            tccl_set_contains(set, &list->entries[i].set))
            return &list->entries[i];
    return NULL;
}

static void consider(struct list *list, const struct tccl_measured *measured,
                     const struct alone *alone, const struct tccl_set *set,
                     const struct tccl_measurement *value, double threshold)
{
    double least;
    struct tccl_congested found = judge(alone, set, value, TCCL_ANSWER_MEASURED, &least);
    if (value->failed || set->count < 2 || found.ratio >= threshold ||
        found.gbps * (1 + value->spread) >= least)
        return;
    struct tccl_congested *known = explanation(list, set, value->gbps);
    if (known) {
        known->hides++;
        return;
    }
    struct tccl_set part = *set;
    int left = measured->model ? tccl_limit_shrink(measured->model, part.transfers, part.count, 2,
                                                   value->gbps, NULL)
                               : -1;
    if (left > 0 && left < set->count) {
        struct tccl_measurement of_part;
        part.count = (uint16_t)left;
        enum tccl_answer from = tccl_measured_ask(measured, &part, &of_part);
        found = judge(alone, &part, &of_part, from, &least);
        found.hides = 1;
    }
    if (list->count == TCCL_MAX_CONGESTED)
        return;
    list->marks[list->count] = mark_of(&found.set);
    list->entries[list->count++] = found;
}

static int by_size(const void *a, const void *b, void *context)
{
    const struct tccl_setmap *sets = context;
    size_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int more = sets->entries[x].set.count - sets->entries[y].set.count;
    return more ? more : (x > y) - (x < y);
}

static int worst_first(const void *a, const void *b)
{
    const struct tccl_congested *x = a, *y = b;
    if (x->ratio != y->ratio)
        return x->ratio < y->ratio ? -1 : 1;
    if (x->set.count != y->set.count)
        return x->set.count - y->set.count;
    return memcmp(x->set.transfers, y->set.transfers, x->set.count * sizeof(*x->set.transfers));
}

/* What sets that differ only in the devices' numbers have in common. */
struct form {
    uint8_t kinds[32]; /* members by kind of transfer */
    int initiators, targets;
};

static struct form form_of(const struct tccl_set *set)
{
    struct form form = {.initiators = 0};
    uint64_t initiators = 0, targets = 0;
    for (int i = 0; i < set->count; i++) {
        struct tccl_device from = tccl_transfer_initiator(set->transfers[i]);
        struct tccl_device to = tccl_transfer_target(set->transfers[i]);
        form.kinds[(from.kind << 2 | to.kind) << 1 | tccl_transfer_reads(set->transfers[i])]++;
        initiators |= UINT64_C(1) << (from.kind << 4 | from.index);
        targets |= UINT64_C(1) << (to.kind << 4 | to.index);
    }
    form.initiators = __builtin_popcountll(initiators);
    form.targets = __builtin_popcountll(targets);
    return form;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= TOLERANCE * fmax(a, b);
}

/* The list is sorted: what is alike has about the same ratio. */
static int mark_alike(struct tccl_congested *list, long count, struct tccl_error *err)
{
    cleanup_free struct form *forms = calloc((size_t)count + 1, sizeof(*forms));
    if (!forms)
        return tccl_fail(err, "out of memory");
    for (long i = 0; i < count; i++) {
        forms[i] = form_of(&list[i].set);
        for (long j = 0; j < i && !list[i].repeats; j++)
            if (!list[j].repeats && near(list[i].gbps, list[j].gbps) &&
                near(list[i].alone, list[j].alone) &&
                memcmp(&forms[i], &forms[j], sizeof(*forms)) == 0) {
                list[j].alike++;
                list[i].repeats = true;
            }
    }
    return 0;
}

long tccl_congestion_find(const struct tccl_measured *measured, double threshold,
                          struct tccl_congested **list, struct tccl_error *err)
{
    const struct tccl_setmap *sets = &measured->sets;
    cleanup_free struct alone *alone = calloc(1, sizeof(*alone));
    cleanup_free struct list *found = calloc(1, sizeof(*found));
    cleanup_free uint32_t *order = calloc(sets->count + 1, sizeof(*order));
    *list = calloc(TCCL_MAX_CONGESTED, sizeof(**list));
    if (!alone || !found || !order || !*list) {
        free(*list);
        *list = NULL;
        return tccl_fail(err, "out of memory");
    }
    found->entries = *list;
    learn(alone, measured);
    for (size_t i = 0; i < sets->count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, sets->count, sizeof(*order), by_size, (void *)sets);
    for (size_t i = 0; i < sets->count; i++)
        consider(found, measured, alone, &sets->entries[order[i]].set,
                 &sets->entries[order[i]].best, threshold);
    qsort(*list, (size_t)found->count, sizeof(**list), worst_first);
    return mark_alike(*list, found->count, err) != 0 ? -1 : found->count;
}

json_t *tccl_congestion_to_json(const struct tccl_congested *congested)
{
    char set[TCCL_SET_TEXT];
    tccl_set_format(&congested->set, set);
    return json_pack("{s:s, s:f, s:f, s:b, s:f, s:b, s:s, s:I}", "load", set, "gbps",
                     congested->gbps, "alone_gbps", congested->alone, "alone_at_least",
                     congested->at_least, "ratio", congested->ratio, "noisy", congested->noisy,
                     "from", congested->from == TCCL_ANSWER_MODEL ? "model" : "measured",
                     "larger_loads", (json_int_t)congested->hides);
}
