/* fill-together.c: measures candidates of several sets of GPUs while all of them run, as few as
 * foretell the others. */
#include "fill/fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fill/run-meter.h"
#include "measure/pool/workspace.h"
#include "ring/neighbours.h"
#include "search/foretell.h"
#include "search/oddity.h"

/* A step that started alone runs its best ring, or NCCL's own: of two sides one has one of these.
 */
enum { CANDIDATES = 20, COMMON = 2 };
#define SAME 0.01 /* what is foretold anew, and differs by no more, isn't written again */

struct candidates {
    int n;
    struct tccl_side sides[CANDIDATES];
    bool failed[CANDIDATES]; /* in this run: it is not tried again */
    int now;                 /* the one at work */
};

struct work {
    struct tccl_setmap sets; /* as they were measured */
    struct tccl_backend *backend;
    struct tccl_profile *profile;
    const struct tccl_fill_options *options;
    struct tccl_fill_progress *progress;
    struct tccl_together *known;  /* measured, and foretold as the profile has it */
    struct tccl_together *failed; /* in this run */
    struct tccl_foretell *foretell;
    struct tccl_symmetry *found; /* by samples; NULL: symmetry is the back end's */
    const struct tccl_symmetry *symmetry;
    struct kind *kinds; /* of pairs */
    size_t n_kinds, kinds_room;
    struct candidates parts[TCCL_MAX_SIDES]; /* of the split at work */
    double end;                              /* seconds; 0: no limit */
    int64_t synced;                          /* milliseconds */
    int in_a_row;                            /* failed, with none good in between */
    bool stopped, time_over;
};

/* ---- candidates ---- */

/* Each transfer once; the others, which run as well, are added to rest. */
static void split_repeats(const struct tccl_side *side, struct tccl_set *once,
                          struct tccl_side *rest)
{
    *once = (struct tccl_set){0};
    for (int i = 0; i < side->count; i++)
        if (tccl_set_add(once, side->transfers[i]) != 0 && rest->count < TCCL_MAX_SIDE)
            rest->transfers[rest->count++] = side->transfers[i];
}

/* n rings, which have so much alone. */
static void offer(struct work *work, struct candidates *candidates, int most,
                  const struct tccl_chain *rings, int n, double gbps)
{
    struct tccl_side rest = {0}, own = {.alone = gbps};
    const struct tccl_side *side = &own;
    struct tccl_set set;
    if (!(gbps > 0) || tccl_rings_side(rings, n, &own) != 0 || side->count == 0 ||
        side->count > TCCL_MAX_SET || candidates->n == most)
        return;
    split_repeats(side, &set, &rest);
    if (tccl_backend_can(work->backend, &set, NULL) != 0)
        return;
    for (int i = 0; i < candidates->n; i++)
        if (candidates->sides[i].count == side->count &&
            memcmp(candidates->sides[i].transfers, side->transfers,
                   (size_t)side->count * sizeof(*side->transfers)) == 0)
            return;
    candidates->sides[candidates->n++] = *side;
}

static int by_gbps(const void *a, const void *b)
{
    const struct tccl_result *const *x = a, *const *y = b;
    return ((*x)->gbps < (*y)->gbps) - ((*x)->gbps > (*y)->gbps);
}

static int find_candidates(struct work *work, uint32_t gpus, int most,
                           struct candidates *candidates, struct tccl_error *err)
{
    struct tccl_error ignored = {0};
    const struct tccl_table *table = tccl_profile_table(work->profile, gpus, &ignored);
    *candidates = (struct candidates){0};
    if (!table)
        return 0;
    for (int closed = 1; closed >= 0; closed--) {
        const struct tccl_result *best =
            closed ? tccl_table_ring(table) : tccl_table_best(table, -1, -1);
        const struct tccl_baseline *nccl = &table->baselines[closed][TCCL_NEWEST];
        if (best)
            offer(work, candidates, most, &best->chain, 1, best->gbps);
        offer(work, candidates, most, nccl->set.rings, nccl->set.n, nccl->gbps);
    }
    const struct tccl_result **sorted = calloc((size_t)table->n_results, sizeof(*sorted));
    size_t n = 0;
    if (!sorted)
        return tccl_fail(err, "out of memory");
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_OTHERS));)
        sorted[n++] = own;
    qsort(sorted, n, sizeof(*sorted), by_gbps);
    for (size_t i = 0; i < n; i++)
        offer(work, candidates, most, &sorted[i]->chain, 1, sorted[i]->gbps);
    free(sorted);
    return 0;
}

/* ---- measuring ---- */

static bool is_over(const struct work *work)
{
    return work->stopped || work->time_over;
}

static bool stop(struct work *work)
{
    struct tccl_fill_progress *progress = work->progress;
    double time = tccl_seconds();
    progress->left = work->end > 0 ? fmax(work->end - time, 0) : -1;
    progress->fraction =
        progress->together_total > 0
            ? (double)(progress->together + progress->foretold) / progress->together_total
            : 1;
    if (work->options->progress && work->options->progress(work->options->context, progress) != 0)
        work->stopped = true;
    work->time_over = work->time_over || (work->end > 0 && time >= work->end);
    return is_over(work);
}

/* One side while the others run. Returns 0; 1: it can't be measured; -1 with err: the back end
 * can't go on. */
static int measure_side(struct work *work, struct tccl_joint *joint, int which,
                        struct tccl_error *err)
{
    struct tccl_side others = {0};
    struct tccl_measurement out;
    struct tccl_error why = {0};
    struct tccl_set set;
    split_repeats(&joint->sides[which], &set, &others);
    for (int i = 0; i < joint->n; i++)
        for (int k = 0; i != which && k < joint->sides[i].count; k++)
            others.transfers[others.count++] = joint->sides[i].transfers[k];
    tccl_backend_set_others(work->backend, &others);
    int rc = tccl_retry(work->backend, &set, work->in_a_row < TCCL_TRIES ? TCCL_TRIES : 1, &out,
                        &why, err);
    tccl_backend_set_others(work->backend, NULL);
    if (rc != 0)
        return -1;
    tccl_retry_count(work->progress, &set, " beside others", &out, &why);
    if (out.failed)
        return 1;
    joint->gbps[which] = out.gbps;
    joint->spread = fmax(joint->spread, out.spread);
    joint->marks = out.marks;
    return 0;
}

static int keep_joint(struct work *work, const struct tccl_joint *joint, struct tccl_error *err)
{
    if (tccl_profile_append_joint(work->profile, joint, err) != 0)
        return -1;
    if (tccl_together_add(work->known, joint) < 0)
        return tccl_fail(err, "out of memory");
    return tccl_retry_sync(work->profile, &work->synced, err);
}

static int measure_joint(struct work *work, struct tccl_joint *joint, struct tccl_error *err)
{
    if (tccl_together_count(work->known) >= TCCL_MAX_JOINTS) /* nobody would read one more */
        return tccl_fail(err,
                         "a profile has room for %d results of steps beside each other, which are "
                         "there: for other --splits remove %s/together.jsonl",
                         TCCL_MAX_JOINTS, tccl_profile_folder(work->profile));
    for (int i = 0; i < joint->n; i++) {
        int rc = measure_side(work, joint, i, err);
        if (rc < 0)
            return -1;
        if (rc == 0)
            continue;
        work->parts[i].failed[work->parts[i].now] = true;
        joint->gbps[i] = 0;
        if (tccl_together_add(work->failed, joint) < 0)
            return tccl_fail(err, "out of memory");
        if (++work->in_a_row < TCCL_FAILURES)
            return 0;
        return tccl_fail(err,
                         "%d loads failed in a row, the last %.200s: what was measured is kept",
                         work->in_a_row, work->progress->why.text);
    }
    work->in_a_row = 0;
    if (keep_joint(work, joint, err) != 0)
        return -1;
    if (work->foretell && tccl_foretell_joint(work->foretell, joint) != 0)
        return tccl_fail(err, "out of memory");
    work->progress->together++;
    return 0;
}

/* ---- combinations ---- */

/* The number-th combination of the parts' candidates. Returns 0, or -1: it isn't wanted, or too
 * large to run. */
static int combine(struct work *work, int n, int number, struct tccl_joint *joint)
{
    int count = 0, uncommon = 0;
    *joint = (struct tccl_joint){.n = n};
    for (int i = 0; i < n; i++) {
        struct candidates *part = &work->parts[i];
        part->now = number % part->n;
        joint->sides[i] = part->sides[part->now];
        number /= part->n;
        count += joint->sides[i].count;
        uncommon += part->now >= COMMON;
    }
    return uncommon <= 1 && count <= TCCL_WORKSPACE_PLACES ? 0 : -1;
}

/* What a pass does with combinations. */
enum pass {
    LOOK,    /* they are counted */
    MEASURE, /* those that are not foretold */
    FORETELL /* the others are written down */
};

/* Writes it down, but for what the profile says already. sides: the joint's. */
static int foretell(struct work *work, struct tccl_joint *joint,
                    const struct tccl_side *const *sides, struct tccl_error *err)
{
    const struct tccl_rates rates = {.together = work->known};
    double before[TCCL_MAX_SIDES];
    enum tccl_basis basis;
    if (tccl_rates_sides(&rates, sides, joint->n, before, &basis, err) != 0)
        return -1;
    bool known = tccl_foretell_rates(work->foretell, joint, &joint->foretold) == TCCL_FORETOLD;
    bool same = known == (basis == TCCL_BASIS_FORETOLD);
    for (int i = 0; i < joint->n && same && known; i++)
        same = fabs(joint->gbps[i] * sides[i]->rings / before[i] - 1) < SAME;
    work->progress->foretold += known;
    if (same || tccl_together_count(work->known) >= TCCL_MAX_JOINTS)
        return 0;
    joint->foretold = known ? fmax(joint->foretold, 1e-3) : 1;
    joint->marks = work->backend->marks;
    for (int i = 0; i < joint->n; i++)
        joint->gbps[i] = known ? round(joint->gbps[i] * 1e3) / 1e3 : 1;
    joint->foretold = round(joint->foretold * 1e3) / 1e3;
    return keep_joint(work, joint, err);
}

static int do_joint(struct work *work, struct tccl_joint *joint, enum pass pass,
                    struct tccl_error *err)
{
    const struct tccl_side *sides[TCCL_MAX_SIDES];
    bool failed = false;
    double error;
    for (int i = 0; i < joint->n; i++) {
        sides[i] = &joint->sides[i];
        failed = failed || work->parts[i].failed[work->parts[i].now];
    }
    bool known = tccl_together_has(work->known, sides, joint->n);
    if (pass == LOOK) {
        work->progress->together_total++;
        work->progress->together += known;
        return 0;
    }
    if (known)
        return 0;
    if (pass == FORETELL)
        return foretell(work, joint, sides, err);
    if (failed || tccl_together_has(work->failed, sides, joint->n) ||
        tccl_foretell_rates(work->foretell, joint, &error) == TCCL_FORETOLD || stop(work))
        return 0;
    return measure_joint(work, joint, err);
}

/* Returns 0, or -1 with err. */
static int do_split(struct work *work, const struct tccl_split *split, enum pass pass,
                    struct tccl_error *err)
{
    int most = split->n == 2 ? CANDIDATES : split->n <= 4 ? 3 : split->n <= 6 ? COMMON : 1;
    struct tccl_joint joint;
    int count = 1, rc = 0;
    work->progress->gpus = 0;
    for (int i = 0; i < split->n; i++) {
        work->progress->gpus |= split->parts[i];
        if (find_candidates(work, split->parts[i], most, &work->parts[i], err) != 0)
            return -1;
        count *= work->parts[i].n;
    }
    for (int i = 0; i < count && rc == 0 && !(pass == MEASURE && is_over(work)); i++)
        if (combine(work, split->n, i, &joint) == 0)
            rc = do_joint(work, &joint, pass, err);
    return rc;
}

/* ---- pairs that collapse ---- */

/* Pairs that are alike: what each of the two transfers has, in the first and the second pair that
 * was measured. */
struct kind {
    tccl_transfer image[2];
    int n;
    double gbps[2][2];
    double least, most; /* of those that collapse, each measured as one set */
    bool shares;        /* one of them does not collapse */
};

/* The kind of a pair. turned: which of its transfers is the first. NULL without memory. */
static struct kind *kind_of(struct work *work, const struct tccl_set *pair, bool add, bool *turned)
{
    tccl_transfer image[2][2];
    for (int i = 0; i < 2; i++) {
        const tccl_transfer walk[] = {pair->transfers[i], pair->transfers[!i]};
        memcpy(image[i], walk, sizeof(walk));
        if (work->symmetry)
            tccl_symmetry_relabel(work->symmetry, walk, 2, image[i]);
    }
    *turned = memcmp(image[0], image[1], sizeof(image[0])) > 0;
    for (size_t i = 0; i < work->n_kinds; i++)
        if (memcmp(work->kinds[i].image, image[*turned], sizeof(image[0])) == 0)
            return &work->kinds[i];
    if (!add || TCCL_GROW(work->kinds, work->n_kinds, work->kinds_room) != 0)
        return NULL;
    struct kind *kind = &work->kinds[work->n_kinds++];
    *kind = (struct kind){.n = 0};
    memcpy(kind->image, image[*turned], sizeof(image[0]));
    return kind;
}

/* By how much the two that were measured differ, as a ratio: where the pairs are alike more is
 * noise. 1: nothing is foretold of the kind; nor where they are not, and a budget has ended before
 * all were measured (pairs.c). */
static double differ(const struct kind *kind)
{
    double most = 1e-3;
    for (int i = 0; i < 2 && kind->n == 2; i++)
        most = fmax(most, fabs(kind->gbps[1][i] / kind->gbps[0][i] - 1));
    const bool alike = kind->most <= kind->least * (1 + TCCL_FORETOLD_WITHIN);
    return kind->n < 2 || kind->shares || !alike ? 1 : fmin(most, TCCL_FORETOLD_WITHIN);
}

static int note(void *context, const struct tccl_set *set, const struct tccl_measurement *measured)
{
    struct work *work = context;
    return measured->marks == work->backend->marks && !tccl_setmap_note(&work->sets, set, measured)
               ? -1
               : 0;
}

/* Each of the two is a side. turned: the second one comes first. */
static void split_pair(const struct tccl_set *pair, bool turned, struct tccl_joint *joint,
                       const struct tccl_side *sides[2])
{
    joint->n = 2;
    for (int i = 0; i < 2; i++) {
        const struct tccl_set one = {1, {pair->transfers[i ^ turned]}};
        tccl_side_add(&joint->sides[i], &one);
        sides[i] = &joint->sides[i];
    }
}

static int do_pair(struct work *work, const struct tccl_set *set, bool measure,
                   struct tccl_error *err)
{
    struct tccl_joint joint = {0};
    const struct tccl_side *sides[2];
    split_pair(set, false, &joint, sides);
    bool known = tccl_together_has(work->known, sides, 2);
    if (!measure) {
        work->progress->together_total++;
        work->progress->together += known;
    } else if (!known && !stop(work)) {
        work->progress->gpus = tccl_set_gpus(set);
        return measure_joint(work, &joint, err);
    }
    return 0;
}

static int do_pairs(struct work *work, bool measure, struct tccl_error *err)
{
    const struct tccl_setmap *sets = &work->sets;
    int rc = 0;
    for (size_t i = 0; i < sets->count && rc == 0 && !is_over(work); i++) {
        const struct tccl_setmap_entry *entry = &sets->entries[i];
        if (tccl_oddity_is_pair(&entry->set) &&
            tccl_oddity_collapses(sets, &entry->set, entry->best.gbps))
            rc = do_pair(work, &entry->set, measure, err);
    }
    return rc;
}

/* What pairs of each kind have: those that were measured beside each other, and those that were
 * seen not to collapse. */
static int learn_kinds(struct work *work, struct tccl_error *err)
{
    const struct tccl_setmap *sets = &work->sets;
    bool turned;
    work->n_kinds = 0;
    for (size_t i = 0; i < sets->count; i++) {
        const struct tccl_setmap_entry *entry = &sets->entries[i];
        if (entry->measured == 0 || !tccl_oddity_is_pair(&entry->set))
            continue;
        struct kind *kind = kind_of(work, &entry->set, true, &turned);
        if (!kind)
            return tccl_fail(err, "out of memory");
        struct tccl_joint joint = {0};
        const struct tccl_side *sides[2];
        const struct tccl_rates rates = {.together = work->known};
        double gbps[2];
        enum tccl_basis basis;
        split_pair(&entry->set, turned, &joint, sides);
        if (!tccl_oddity_collapses(sets, &entry->set, entry->best.gbps)) {
            kind->shares = true;
            continue;
        }
        kind->least = kind->most > 0 ? fmin(kind->least, entry->best.gbps) : entry->best.gbps;
        kind->most = fmax(kind->most, entry->best.gbps);
        if (tccl_together_has(work->known, sides, 2) && kind->n < 2 &&
            tccl_rates_sides(&rates, sides, 2, gbps, &basis, NULL) == 0)
            memcpy(kind->gbps[kind->n++], gbps, sizeof(gbps));
    }
    return 0;
}

/* The others of a kind of which two collapse alike; nobody has seen that they don't. What is
 * measured far off is measured too low: the larger of both counts. */
static int foretell_pair(struct work *work, const struct tccl_set *set, struct tccl_error *err)
{
    bool turned;
    const struct kind *kind = kind_of(work, set, false, &turned);
    struct tccl_joint joint = {.marks = work->backend->marks};
    const struct tccl_side *sides[2];
    const struct tccl_rates rates = {.together = work->known};
    enum tccl_basis basis;
    double before[2];
    if (!kind || differ(kind) > TCCL_FORETOLD_WITHIN ||
        tccl_together_count(work->known) >= TCCL_MAX_JOINTS)
        return 0;
    split_pair(set, false, &joint, sides);
    for (int i = 0; i < 2; i++)
        joint.gbps[i] =
            round(1e3 * fmax(kind->gbps[0][i != turned], kind->gbps[1][i != turned])) / 1e3;
    joint.foretold = round(1e3 * differ(kind)) / 1e3;
    if (tccl_rates_sides(&rates, sides, 2, before, &basis, NULL) == 0 &&
        (basis == TCCL_BASIS_MEASURED || basis == TCCL_BASIS_FORETOLD))
        return 0;
    return keep_joint(work, &joint, err);
}

/* All pairs of transfers of two GPUs each that a profile knows alone. */
static int foretell_pairs(struct work *work, struct tccl_error *err)
{
    const struct tccl_setmap *sets = &work->sets;
    int rc = learn_kinds(work, err);
    bool any = false;
    for (size_t i = 0; i < work->n_kinds; i++)
        any = any || differ(&work->kinds[i]) <= TCCL_FORETOLD_WITHIN;
    for (size_t i = 0; i < sets->count && rc == 0 && any; i++)
        for (size_t k = i + 1; k < sets->count && rc == 0; k++) {
            const struct tccl_set *a = &sets->entries[i].set, *b = &sets->entries[k].set;
            if (a->count != 1 || b->count != 1)
                continue;
            const struct tccl_set both =
                tccl_set_sorted((tccl_transfer[]){a->transfers[0], b->transfers[0]}, 2);
            if (tccl_oddity_is_pair(&both) && !tccl_setmap_find(sets, &both))
                rc = foretell_pair(work, &both, err);
        }
    return rc;
}

/* ---- all of it ---- */

static int do_all(struct work *work, enum pass pass, struct tccl_error *err)
{
    const struct tccl_fill_options *options = work->options;
    int rc = pass == FORETELL ? foretell_pairs(work, err) : do_pairs(work, pass == MEASURE, err);
    for (int i = 0; i < options->n_splits && rc == 0 && !(pass == MEASURE && is_over(work)); i++)
        rc = do_split(work, &options->splits[i], pass, err);
    return rc;
}

/* What is known of sets alone foretells what several do. */
static int learn(struct work *work, struct tccl_error *err)
{
    const struct tccl_setmap *sets = &work->sets;
    const struct tccl_machine *machine = tccl_profile_machine(work->profile);
    double deviation = tccl_setmap_deviation(sets, NULL, 0);
    work->symmetry = work->backend->symmetry;
    if (!work->symmetry)
        work->symmetry = work->found =
            tccl_symmetry_of_sets(machine, sets, work->backend->noise, deviation, err);
    if (!work->symmetry)
        return -1;
    work->foretell = tccl_foretell_of(machine, work->symmetry, deviation, sets, NULL);
    return work->foretell ? 0 : tccl_fail(err, "out of memory");
}

/* In the order in which it was measured. */
static int learn_joint(void *context, const struct tccl_joint *joint)
{
    struct work *work = context;
    bool counts = joint->marks == work->backend->marks && !(joint->foretold > 0);
    return counts && tccl_foretell_joint(work->foretell, joint) != 0 ? -1 : 0;
}

/* What was measured under marks says nothing about what was measured without. */
static int know(void *context, const struct tccl_joint *joint)
{
    struct work *work = context;
    bool same = joint->marks == work->backend->marks;
    return same && tccl_together_add(work->known, joint) < 0 ? -1 : 0;
}

static int run(struct work *work, struct tccl_error *err)
{
    work->known = tccl_together_new();
    work->failed = tccl_together_new();
    if (!work->known || !work->failed)
        return tccl_fail(err, "out of memory");
    if (tccl_profile_joints(work->profile, know, work, NULL, err) < 0 ||
        tccl_profile_sets(work->profile, note, work, NULL, err) < 0 || learn(work, err) != 0 ||
        tccl_profile_joints(work->profile, learn_joint, work, NULL, err) < 0 ||
        do_all(work, LOOK, err) != 0)
        return -1;
    work->progress->together_before = work->progress->together;
    for (int before = -1; before < work->progress->together && !is_over(work);) {
        before = work->progress->together;
        if (do_all(work, MEASURE, err) != 0)
            return -1;
    }
    if (do_all(work, FORETELL, err) != 0)
        return -1;
    if (!work->stopped && !work->time_over)
        stop(work);
    return 0;
}

int tccl_fill_together(struct tccl_backend *backend, struct tccl_profile *profile,
                       const struct tccl_fill_options *options, struct tccl_fill_progress *end,
                       struct tccl_error *err)
{
    struct work *work = calloc(1, sizeof(*work));
    if (!work)
        return tccl_fail(err, "out of memory");
    *work = (struct work){.backend = backend,
                          .profile = profile,
                          .options = options,
                          .progress = end,
                          .end = options->seconds > 0 ? tccl_seconds() + options->seconds : 0};
    end->phase = TCCL_FILL_TOGETHER;
    end->together = end->together_before = end->together_total = end->foretold = 0;
    int rc = run(work, err);
    if (tccl_profile_sync(profile, rc < 0 ? NULL : err) != 0)
        rc = -1;
    if (rc == 0)
        rc = work->stopped ? TCCL_FILL_STOPPED : work->time_over ? TCCL_FILL_TIME : TCCL_FILL_DONE;
    tccl_together_free(work->known);
    tccl_together_free(work->failed);
    tccl_foretell_free(work->foretell);
    tccl_symmetry_free(work->found);
    free(work->kinds);
    tccl_setmap_clear(&work->sets);
    free(work);
    return rc;
}
