/* fill.c: a run of tccl-profile: the matrix, the symmetries, then the chains of one GPU set after
 * the other, each within its share of the time. */
#include "fill/fill.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/numberset.h"
#include "fill/run-meter.h"
#include "ring/reach.h"
#include "search/beside.h"
#include "search/model-table.h"
#include "search/oddity.h"
#include "search/search.h"

static const double MATRIX_PART = 0.25; /* of the time, at most */
static const double PART = 0.5;         /* of the time that is left, for what comes first */
static const double SHORTEST = 0.2;     /* seconds that a search gets in any case */
static const double BLUR = 3;           /* deviations that two sets can't be told apart by */
static const double MAY_BE_OFF = 2;     /* deviations that one value may be off by */
static const double MOST_DIFFER = 0.1;  /* what is taken for one at most */
static const double FEW_DIFFER = 0.01;  /* a deviation below that needs no more measuring */
static const double UNPROVEN = 3;       /* what is bounded by so many times itself is not proven */

enum {
    HOST_SETS = 200,   /* of one GPU set, for chains without P2P */
    METER_SETS = 1000, /* for ring sets, measured */
    NOISE_SETS = 32,   /* measured twice, for how much measurements differ */
};

struct fill {
    struct tccl_backend *backend;
    struct tccl_profile *profile;
    const struct tccl_fill_options *options;
    struct tccl_run_meter meter;
    double deviation;               /* of measurements of one set, as a ratio */
    struct tccl_symmetry *symmetry; /* found by measuring; NULL: none, or the back end's own */
    struct tccl_search *search;
    struct tccl_fill_progress progress;
    double work_done, work_now, work_total;
    double end;           /* of all, seconds of a clock that never jumps; 0: no limit */
    double part_end;      /* of what is at work; 0: no limit */
    double ring_end;      /* of its ring */
    const uint32_t *sets; /* of GPUs: those asked for, and those that stand for others */
    int n_sets;
    uint32_t *more; /* these, where there are more; owned */
    bool *cut;      /* by GPU set: had not the time that it needed */
    bool stopped, time_over, part_over, ring_over;
    int faults;              /* tables that could not be written, */
    struct tccl_error fault; /* and the first one's reason */
};

/* How much work the chains of a set are, next to those of others: a guess for
 * the time left. */
static double work(uint32_t gpus)
{
    double n = __builtin_popcount(gpus);
    return n * n * n * n;
}

/* ---- when to stop ---- */

/* part: how much of the table at work is done, by the search's count, which may
 * also go back. */
static bool stop(struct fill *fill, double part)
{
    const struct tccl_fill_options *options = fill->options;
    struct tccl_fill_progress *progress = &fill->progress;
    double done = part > 1 ? 1 : part, time = tccl_seconds();
    double fraction = (fill->work_done + done * fill->work_now) / fill->work_total;
    bool over = fill->part_end > 0 && time >= fill->part_end;
    if (fraction > progress->fraction)
        progress->fraction = fmin(fraction, 1);
    progress->left = fill->end > 0 ? fmax(fill->end - time, 0) : -1;
    if (options->progress && options->progress(options->context, progress) != 0)
        fill->stopped = true;
    fill->time_over = fill->time_over || (fill->end > 0 && time >= fill->end);
    fill->part_over = fill->part_over || over;
    return fill->stopped || fill->time_over || over;
}

static bool ended(const struct fill *fill)
{
    return fill->stopped || fill->time_over;
}

/* What is begun now may take this part of the time that is left. */
static void give_time(struct fill *fill, double part)
{
    double time = tccl_seconds();
    fill->part_over = fill->ring_over = false;
    fill->part_end = fill->ring_end = 0;
    if (fill->end <= 0)
        return;
    double seconds = fmax((fill->end - time) * part, SHORTEST);
    fill->part_end = time + seconds;
    fill->ring_end = time + seconds / 2;
}

/* ---- what comes before the chains ---- */

static int measure_matrix(struct fill *fill, struct tccl_error *err)
{
    cleanup_free struct tccl_set *sets = NULL;
    struct tccl_measurement out;
    int count = tccl_first_sets(tccl_profile_machine(fill->profile), &sets, err);
    fill->progress.phase = TCCL_FILL_MATRIX;
    fill->progress.steps = count;
    give_time(fill, MATRIX_PART);
    for (int i = 0; i < count && !stop(fill, 0); i++) {
        if (tccl_backend_can(fill->backend, &sets[i], NULL) == 0 &&
            tccl_run_meter_measure(&fill->meter, &sets[i], &out, err) != 0)
            return -1;
        fill->progress.step = i + 1;
    }
    return count < 0 ? -1 : 0;
}

/* As the search's meter, but it gives up when the time is over. */
static int measure_in_time(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                           struct tccl_error *err)
{
    struct fill *fill = context;
    return stop(fill, 0) ? tccl_fail(err, "stopped")
                         : tccl_run_meter_measure(&fill->meter, set, out, err);
}

static int again_in_time(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                         struct tccl_error *err)
{
    struct fill *fill = context;
    return stop(fill, 0) ? tccl_fail(err, "stopped")
                         : tccl_run_meter_again(&fill->meter, set, TCCL_MEASURED_MOST, out, err);
}

/* How much measurements of one set differ, by some that are measured twice. */
static int learn_noise(struct fill *fill, struct tccl_error *err)
{
    cleanup_free struct tccl_set *sets = NULL;
    struct tccl_measurement out;
    int count = tccl_first_sets(tccl_profile_machine(fill->profile), &sets, err), rc = 0;
    int step = count > NOISE_SETS ? count / NOISE_SETS : 1;
    give_time(fill, MATRIX_PART);
    for (int i = 0; i < count && rc == 0 && !stop(fill, 0); i += step)
        if (tccl_backend_can(fill->backend, &sets[i], NULL) == 0)
            rc = tccl_run_meter_measure(&fill->meter, &sets[i], &out, err) != 0 ||
                 tccl_run_meter_again(&fill->meter, &sets[i], TCCL_MEASURED_MOST, &out, err) != 0;
    if (count < 0 || rc != 0)
        return -1;
    fill->deviation = fmin(tccl_setmap_deviation(&fill->meter.sets, sets, count), MOST_DIFFER);
    return 0;
}

/* What sets that are alike may be off by, each. */
static double likeness_noise(const struct fill *fill)
{
    return fmax(fill->backend->noise, TCCL_ALIKE * fill->deviation);
}

/* Which parts of the machine are alike. Where there is no time for it, the
 * chains are searched without. */
static int learn_symmetry(struct fill *fill, struct tccl_error *err)
{
    struct tccl_meter meter = {.measure = measure_in_time,
                               .context = fill,
                               .again = again_in_time,
                               .sets = &fill->meter.sets};
    struct tccl_error why = {0};
    fill->progress.phase = TCCL_FILL_SYMMETRY;
    give_time(fill, PART);
    fill->symmetry = tccl_symmetry_of_machine(tccl_profile_machine(fill->profile), &meter,
                                              likeness_noise(fill), &why);
    if (fill->symmetry || ended(fill) || fill->part_over)
        return 0;
    return tccl_fail(err, "%s", why.text);
}

static bool stop_pairs(void *context)
{
    return stop(context, 0);
}

/* What transfers of two jobs do to each other: steps that run beside each other are planned by
 * what collapses, and so are chains. */
static int measure_pairs(struct fill *fill, struct tccl_error *err)
{
    const struct tccl_pairs pairs = {
        .meter = &fill->meter, .symmetry = fill->symmetry, .stop = stop_pairs, .context = fill};
    fill->progress.phase = TCCL_FILL_PAIRS;
    give_time(fill, MATRIX_PART);
    return tccl_pairs_measure(&pairs, err);
}

static const struct tccl_symmetry *symmetry_of(const struct fill *fill)
{
    return fill->backend->symmetry ? fill->backend->symmetry : fill->symmetry;
}

/* Larger machines have no table for each set: those that are alike have one for all of them. given
 * up: a search found that they aren't. Without time, what an earlier run knew stays. */
static int note_alike(struct fill *fill, bool given_up, struct tccl_error *err)
{
    const struct tccl_machine *machine = tccl_profile_machine(fill->profile);
    const struct tccl_symmetry *symmetry = symmetry_of(fill);
    struct tccl_alike alike;
    if (machine->n_gpus <= TCCL_COMPLETE_GPUS || !symmetry || fill->backend->marks)
        return 0;
    tccl_symmetry_alike(given_up ? NULL : symmetry, machine, &alike);
    if (!fill->backend->model)
        alike.noise = 2 * likeness_noise(fill); /* each of the two may be off */
    if (tccl_profile_set_alike(fill->profile, &alike, err) != 0)
        return -1;
    if (given_up || !fill->options->all)
        return 0;
    fill->n_sets = tccl_gpusets_first(machine->n_gpus, &alike, fill->options->sets,
                                      fill->options->n_sets, &fill->more, err);
    fill->sets = fill->more;
    fill->progress.total = fill->n_sets;
    return fill->n_sets < 0 ? -1 : 0;
}

/* ---- chains ---- */

static int follow(void *context, const struct tccl_search_progress *search)
{
    struct fill *fill = context;
    double part = search->pairs_total > 0 ? (double)search->pairs_done / search->pairs_total : 0;
    fill->progress.shared = search->shared;
    fill->progress.pruned = search->pruned;
    if (stop(fill, part))
        return TCCL_SEARCH_STOP;
    /* A ring that had its time gives way to the chains between ports. */
    if (!search->ring || fill->ring_over || fill->ring_end <= 0 || tccl_seconds() < fill->ring_end)
        return TCCL_SEARCH_GO_ON;
    fill->ring_over = fill->part_over = true;
    return TCCL_SEARCH_LEAVE_RING;
}

/* For the search: port pairs that can't be measured are left out. */
static bool can(void *context, tccl_transfer transfer)
{
    const struct fill *fill = context;
    const struct tccl_set set = {1, {transfer}};
    return tccl_backend_can(fill->backend, &set, NULL) == 0;
}

static bool proven(const struct tccl_result *result, double gap)
{
    return result->bound <= result->gbps * (1 + gap) * (1 + 1e-9);
}

/* Is the table proven as far as asked, or was its budget used up? */
static bool is_proven(struct fill *fill, const struct tccl_table *table)
{
    const struct tccl_fill_options *options = fill->options;
    double gap = fmax(options->gap, table->noise); /* no search can do better */
    long wanted = 0, good = 0;
    tccl_transfer in[2], out[2];
    if (options->budget > 0 && table->measured >= (unsigned long)options->budget)
        return true;
    for (int i = 0; i < tccl_table_pairs(table); i++) {
        /* May there be a chain between the ports, and can it be measured? */
        tccl_entry_transfers(table->ports[i / table->n_ports], 0, in);
        tccl_exit_transfers(table->ports[i % table->n_ports], 0, out);
        if (table->results[i].bound <= 0 || !can(fill, in[0]) || !can(fill, out[0]))
            continue;
        wanted++;
        good += proven(&table->results[i], gap);
    }
    if (options->pairs > 0 && options->pairs < wanted)
        wanted = options->pairs;
    bool alone = __builtin_popcount(table->gpus) < 2; /* no ring to be proven */
    return good >= wanted && (alone || proven(tccl_table_ring(table), gap));
}

/* The table of a GPU set that is there and good; NULL: none. A bad one is as
 * good as none: it is written anew. */
static const struct tccl_table *there_is(struct fill *fill, uint32_t gpus)
{
    struct tccl_error ignored = {0};
    return tccl_profile_table(fill->profile, gpus, &ignored);
}

/* now: also sets that failed in this run count. */
static bool is_complete(struct fill *fill, uint32_t gpus, bool failed_now)
{
    const struct tccl_table *table = there_is(fill, gpus);
    return table && is_proven(fill, table) &&
           !tccl_run_meter_failed(&fill->meter, gpus, failed_now);
}

/* doubtful: the old bound was found while a set could not be measured, and is
 * not to be trusted. What was better by the noise alone was not. writes: reading loses now. */
static void keep_better(struct tccl_result *result, const struct tccl_result *old, bool doubtful,
                        bool writes, double noise)
{
    double bound = doubtful ? result->bound : fmin(result->bound, old->bound);
    if (writes && tccl_chain_reads(&old->chain))
        return;
    if (old->gbps > result->gbps * (1 + noise))
        *result = *old;
    else if (old->tree.gbps > result->tree.gbps && tccl_chain_equal(&old->chain, &result->chain))
        result->tree = old->tree;
    result->bound = fmax(bound, result->gbps);
}

/* A search that was cut short may not have come as far as an earlier one. */
static void keep_old(struct fill *fill, struct tccl_table *table)
{
    const struct tccl_table *old = there_is(fill, table->gpus);
    if (!old || old->n_ports != table->n_ports)
        return;
    bool doubtful = tccl_run_meter_ever_failed(&fill->meter, table->gpus);
    double noise = fill->backend->noise > 0 ? table->noise : 0;
    bool writes = !tccl_table_reads(table);
    keep_better(tccl_table_ring(table), tccl_table_ring(old), doubtful, writes, noise);
    for (int i = 0; i < tccl_table_pairs(table); i++)
        keep_better(&table->results[i], &old->results[i], doubtful, writes, noise);
    keep_better(tccl_table_host_ring(table), tccl_table_host_ring(old), doubtful, writes, noise);
    for (const struct tccl_result *own = NULL; /* what was better by the noise alone was not */
         (own = tccl_table_next(old, own, TCCL_HOSTS | TCCL_SETS));) {
        struct tccl_result host = *own;
        host.gbps /= 1 + noise;
        if (own->set && !(writes && tccl_ring_set_reads(own->set)))
            tccl_table_keep_set(table, own->set, host.gbps, own->bound);
        else if (!own->set && !own->chain.closed)
            tccl_table_keep_host(table, &host);
    }
    table->measured += old->measured;
}

/* A table that can't be written keeps nobody from the others. */
static void put(struct fill *fill, struct tccl_table *table)
{
    struct tccl_error err = {0};
    bool cut = ended(fill) || fill->part_over;
    char gpus[TCCL_MAX_GPUS * 3];
    const struct tccl_result *best = tccl_table_best(table, -1, -1);
    bool has_chain = (best && best->gbps > 0) || tccl_table_ring(table)->gbps > 0;
    if (fill->backend->marks || (cut && !has_chain))
        return;
    keep_old(fill, table);
    if (cut && is_proven(fill, table)) {
        /* Cut short when its chains were proven already, a table has still to get what comes behind
         * them, ring sets for one. So that the next run doesn't take it for complete, it says less
         * of its ring than is known, or, where it has none, of its chains. */
        const struct tccl_fill_options *options = fill->options;
        struct tccl_result *ring = tccl_table_ring(table);
        if (ring->gbps > 0)
            ring->bound = fmax(ring->bound, UNPROVEN * ring->gbps);
        for (int i = 0; i < tccl_table_pairs(table) && ring->gbps <= 0; i++)
            table->results[i].bound =
                fmax(table->results[i].bound, UNPROVEN * table->results[i].gbps);
        if (options->budget > 0 && table->measured >= (unsigned long)options->budget)
            table->measured = (unsigned long)options->budget - 1;
    }
    if (tccl_profile_model(fill->profile, NULL) && !tccl_meter_measured(table->source))
        tccl_table_ends(table, tccl_profile_model(fill->profile, NULL));
    if (tccl_profile_put(fill->profile, table, &err) == 0 || fill->faults++ > 0)
        return;
    tccl_numberset_format(table->gpus, gpus, sizeof(gpus));
    tccl_fail(&fill->fault, "GPUs %s: %.400s", gpus, err.text);
}

static int stop_now(void *context)
{
    return stop(context, 0);
}

/* What a model says: what steps do to each other (hardware would have to be asked for it), and
 * several rings at once. */
static int add_by_model(struct fill *fill, struct tccl_table *table, struct tccl_error *err)
{
    const struct tccl_model *model = tccl_profile_model(fill->profile, NULL);
    const struct tccl_machine *machine = tccl_profile_machine(fill->profile);
    bool whole = table->gpus == (UINT32_C(1) << machine->n_gpus) - 1;
    const struct tccl_table_sets_options options = {.gap = fill->options->gap,
                                                    .budget =
                                                        whole ? TCCL_TABLE_RINGS : TCCL_TABLE_PARTS,
                                                    .progress = stop_now,
                                                    .context = fill};
    const struct tccl_search_options replies = {.gap = fill->options->gap,
                                                .budget = TCCL_TABLE_REPLIES};
    if (model && !ended(fill) && tccl_beside_replies(model, table, &replies, err) < 0)
        return -1;
    return model && !ended(fill) ? tccl_table_find_sets(model, table, &options, err) : 0;
}

static int search_table(struct fill *fill, struct tccl_table *table, struct tccl_error *err)
{
    const struct tccl_table *old = there_is(fill, table->gpus);
    long left = fill->options->budget - (old ? (long)old->measured : 0);
    double noise = fill->backend->noise;
    const struct tccl_search_options options = {
        .gap = fill->options->gap,
        .every_nccl = true,
        .trees = true,
        .hosts = HOST_SETS,
        .others = TCCL_TABLE_OTHERS,
        .reads = true,
        .sets = tccl_profile_model(fill->profile, NULL) ? 0 : METER_SETS,
        .noise = noise,
        .blur = BLUR * fill->deviation,
        /* Where measurements hardly differ, once is enough. */
        .settle = noise <= 0                     ? 0
                  : fill->deviation < FEW_DIFFER ? 1
                                                 : TCCL_VALUES - 1,
        .budget = fill->options->budget <= 0 ? 0
                  : left > 0                 ? left
                                             : 1,
        .pairs = fill->options->pairs,
        .can = can,
        .progress = follow,
        .context = fill};
    strcpy(table->source, tccl_profile_source(fill->profile));
    long before = tccl_search_measured_sets(fill->search);
    int rc = tccl_search_table(fill->search, table, &options, err);
    table->noise = fmax(table->noise, MAY_BE_OFF * fill->deviation);
    fill->progress.sets += tccl_search_measured_sets(fill->search) - before;
    if (rc >= 0)
        rc = add_by_model(fill, table, err);
    if (rc >= 0)
        put(fill, table);
    return rc < 0 ? -1 : 0;
}

static int make_table(struct fill *fill, uint32_t gpus, struct tccl_error *err)
{
    const struct tccl_machine *machine = tccl_profile_machine(fill->profile);
    int rc = 0;
    if (!fill->search) /* one search knows all */
        fill->search =
            tccl_search_new(machine, tccl_run_meter_meter(&fill->meter), symmetry_of(fill));
    /* Sets that failed in an earlier run: the search may find that it needs them no more, and
     * nobody would know. */
    while (fill->search && rc == 0 && !stop(fill, 0))
        rc = tccl_run_meter_retry(&fill->meter, gpus, err);
    cleanup_table struct tccl_table *table = rc < 0 ? NULL : tccl_table_new(machine, gpus);
    if (rc < 0 || !table || !fill->search)
        return rc < 0 ? -1 : tccl_fail(err, "out of memory");
    return search_table(fill, table, err);
}

/* Which part of the time left is a table's. */
static double part_of(const struct fill *fill, int i)
{
    const uint32_t *sets = fill->sets;
    int n = tccl_profile_machine(fill->profile)->n_gpus, size = __builtin_popcount(sets[i]);
    int begin = __builtin_ctz(sets[i]);
    uint32_t block = ((UINT32_C(1) << size) - 1) << begin;
    double rest = 0;
    for (int j = i; j < fill->n_sets; j++)
        rest += fill->cut[j] ? work(sets[j]) : 0;
    double part = work(sets[i]) / rest;
    /* What Slurm mostly allocates comes first: the whole node, and its aligned halves and quarters.
     */
    bool first =
        block == sets[i] && begin % size == 0 && (size == n || size == n / 2 || size == n / 4);
    return first && part < 1 ? PART : part;
}

static int fill_one(struct fill *fill, int i, struct tccl_error *err)
{
    uint32_t gpus = fill->sets[i];
    fill->progress.gpus = gpus;
    fill->work_now = work(gpus);
    give_time(fill, part_of(fill, i));
    if (stop(fill, 0))
        return 0;
    fill->cut[i] = false;
    if (is_complete(fill, gpus, false))
        fill->progress.kept++;
    else if (make_table(fill, gpus, err) < 0)
        return -1;
    fill->cut[i] = fill->part_over && !is_complete(fill, gpus, false);
    return 0;
}

static int find_chains(struct fill *fill, struct tccl_error *err)
{
    fill->progress.phase = TCCL_FILL_CHAINS;
    for (int i = 0; i < fill->n_sets; i++) {
        fill->cut[i] = true; /* all want time */
        fill->work_total += work(fill->sets[i]);
    }
    for (int i = 0; i < fill->n_sets && !ended(fill); i++) {
        if (fill_one(fill, i, err) != 0)
            return -1;
        if (ended(fill) && !is_complete(fill, fill->sets[i], true))
            break;
        fill->work_done += fill->work_now;
        fill->progress.done++;
    }
    fill->work_now = 0;
    /* Tables that had not the time that they needed share what is left. */
    int kept = fill->progress.kept;
    for (bool some = true; some && !ended(fill);) {
        some = false;
        for (int i = 0; i < fill->n_sets && !ended(fill); i++) {
            if (!fill->cut[i])
                continue;
            some = true;
            if (fill_one(fill, i, err) != 0)
                return -1;
        }
        fill->work_now = 0;
        fill->progress.kept = kept;
    }
    if (!ended(fill)) {
        fill->part_end = 0;
        stop(fill, 0);
    }
    return 0;
}

/* ---- all of it ---- */

static int fill_all(struct fill *fill, struct tccl_error *err)
{
    if (tccl_run_meter_open(&fill->meter, fill->backend, fill->profile, &fill->progress, err) != 0)
        return -1;
    bool measured = !fill->backend->model;
    if (measured && measure_matrix(fill, err) != 0)
        return -1;
    if (fill->backend->noise > 0 && learn_noise(fill, err) != 0)
        return -1;
    if (measured && learn_symmetry(fill, err) != 0)
        return -1;
    if (measured && fill->options->splits && measure_pairs(fill, err) != 0)
        return -1;
    if (note_alike(fill, false, err) != 0)
        return -1;
    fill->cut = calloc((size_t)fill->n_sets + 1, sizeof(*fill->cut));
    if (!fill->cut)
        return tccl_fail(err, "out of memory");
    if (find_chains(fill, err) != 0)
        return -1;
    if (fill->search && !tccl_search_symmetric(fill->search) && note_alike(fill, true, err) != 0)
        return -1;
    if (fill->faults > 0)
        return tccl_fail(err, "%d of %d chain tables could not be written; the first: %s",
                         fill->faults, fill->n_sets, fill->fault.text);
    return fill->stopped ? TCCL_FILL_STOPPED : fill->time_over ? TCCL_FILL_TIME : TCCL_FILL_DONE;
}

/* Sets that break the rule on which all bounds rest. */
static void note_oddities(struct fill *fill)
{
    struct tccl_oddity list[TCCL_MAX_ODDITIES];
    char text[TCCL_ODDITY_TEXT];
    fill->progress.faster = tccl_oddity_list(&fill->meter.sets, list);
    if (fill->progress.faster == 0)
        return;
    tccl_oddity_format(&list[0], text);
    tccl_fail(&fill->progress.most, "%s", text);
}

int tccl_fill(struct tccl_backend *backend, struct tccl_profile *profile,
              const struct tccl_fill_options *options, struct tccl_fill_progress *end,
              struct tccl_error *err)
{
    struct fill fill = {.backend = backend,
                        .profile = profile,
                        .options = options,
                        .sets = options->sets,
                        .n_sets = options->n_sets,
                        .end = options->seconds > 0 ? tccl_seconds() + options->seconds : 0,
                        .work_total = 1e-9,
                        .progress = {.total = options->n_sets, .left = -1}};
    int rc = fill_all(&fill, err);
    /* How the tables are in the end, also those that this run didn't come to. */
    for (int i = 0; i < fill.n_sets; i++) {
        bool complete = is_complete(&fill, fill.sets[i], true);
        fill.progress.proven += complete;
        fill.progress.partial += !complete && there_is(&fill, fill.sets[i]);
    }
    tccl_search_free(fill.search);
    tccl_symmetry_free(fill.symmetry);
    free(fill.cut);
    free(fill.more);
    note_oddities(&fill);
    *end = fill.progress;
    tccl_run_meter_clear(&fill.meter);
    if (tccl_profile_sync(profile, rc < 0 ? NULL : err) != 0)
        rc = -1;
    return rc;
}
