/* summary.c: summarizes many records in one pass over the store's index of facts (store.h). Not by
 * GROUP BY and windows: of a million records one such question took 4 to 7 s where all of this took
 * 2, and there are a dozen. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "records/store.h"
#include "records/summary.h"

enum {
    WORDS = 32,  /* distinct states, or words for what was built; further ones count as "other" */
    NODES = 20,  /* in the answer */
    DAYS = 1100, /* the latest of them */
    HOURS = 24,
    ROWS = 50000000 /* more are too many for one answer */
};

/* Facts that a summary looks at. */
#define LOOKS                                                                                      \
    (TCCL_LOOK_SHOWN | TCCL_LOOK(n_nodes) | TCCL_LOOK(gpus) | TCCL_LOOK(neighbours) |              \
     TCCL_LOOK(gbps) | TCCL_LOOK(ratio) | TCCL_LOOK(alone_gbps) | TCCL_LOOK(placed_gbps) |         \
     TCCL_LOOK(baseline_gbps) | TCCL_LOOK(solve_us) | TCCL_LOOK(nodes) | TCCL_LOOK(node_class))

/* Lower bounds of the histogram's parts. */
static const double gains[] = {0, 1, 1.05, 1.1, 1.2, 1.3, 1.5, 1.75, 2, 2.5, 3, 4, 6};
enum { GAINS = sizeof(gains) / sizeof(*gains) };

struct words {
    char word[WORDS][TCCL_RECORD_WORD + 1];
    int64_t steps[WORDS];
    int count;
};

struct cause {
    int64_t steps, failed, last;
    char example[TCCL_OUTCOME_REASON + 1];
};

/* The steps of a day, or of an hour. */
struct day {
    int64_t start, steps, planned, failed, gains;
    int64_t built; /* of those planned: NCCL built the ring, as all nodes said */
    double gain;
};

/* Means of two bandwidths over the same steps, GB/s. */
struct pair {
    int64_t steps;
    double is, might; /* sums */
};

struct summary {
    int64_t steps, first, last;
    struct words states, built;
    struct cause causes[TCCL_REASON_END];
    struct tccl_series gain, solve;
    struct tccl_series built_gain;  /* where NCCL built the ring, as all nodes said */
    struct pair sharing, placement; /* beside others and alone; alone, and on the best GPUs */
    int64_t unplaced;               /* steps of which the best GPUs are not known */
    int64_t histogram[GAINS];
    struct day *days;
    int n_days;
    size_t days_room;
    int64_t day_end;
    struct day hours[HOURS]; /* the latest; that of an hour is its number modulo HOURS */
    struct tccl_nodestats *nodes;
    struct tccl_achieved *achieved;
};

static void clear(struct summary **pointer)
{
    struct summary *summary = *pointer;
    if (!summary)
        return;
    tccl_series_clear(&summary->gain);
    tccl_series_clear(&summary->built_gain);
    tccl_series_clear(&summary->solve);
    tccl_nodestats_free(summary->nodes);
    tccl_achieved_free(summary->achieved);
    free(summary->days);
    free(summary);
}

static void count_word(struct words *words, const char *word)
{
    for (int i = 0; i < words->count; i++)
        if (tccl_is(words->word[i], word)) {
            words->steps[i]++;
            return;
        }
    if (words->count == WORDS - 1)
        word = "other";
    if (words->count < WORDS) {
        strncpy(words->word[words->count], word, TCCL_RECORD_WORD);
        words->steps[words->count++]++;
    } else {
        words->steps[WORDS - 1]++;
    }
}

/* The bounds of the day of a time, in local time. */
static void day_of(int64_t when, int64_t *start, int64_t *end)
{
    time_t time = (time_t)when;
    struct tm tm;
    if (!localtime_r(&time, &tm)) {
        *start = when - when % 86400;
        *end = *start + 86400;
        return;
    }
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    tm.tm_isdst = -1;
    *start = (int64_t)mktime(&tm);
    tm.tm_mday++;
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    tm.tm_isdst = -1;
    *end = (int64_t)mktime(&tm);
    if (*end <= when || *start > when) { /* the clock was set back across midnight */
        *start = when;
        *end = when + 1;
    }
}

/* Rows come in the order of their starts. NULL if out of memory. */
static struct day *find_day(struct summary *summary, int64_t when)
{
    if (summary->n_days > 0 && when < summary->day_end)
        return &summary->days[summary->n_days - 1];
    if (TCCL_GROW(summary->days, summary->n_days, summary->days_room) != 0)
        return NULL;
    struct day *day = &summary->days[summary->n_days++];
    *day = (struct day){0};
    day_of(when, &day->start, &summary->day_end);
    return day;
}

static void count_pair(struct pair *pair, double is, double might)
{
    pair->steps++;
    pair->is += is;
    pair->might += might;
}

/* What a step lost to those beside it, and to the GPUs that Slurm gave it. gbps: of its ring, or of
 * NCCL's own where that is as fast. */
static void count_losses(struct summary *summary, const struct tccl_facts *facts, double gbps)
{
    double alone = fmax(facts->alone_gbps, gbps);
    if (facts->neighbours > 0 && facts->alone_gbps > 0)
        count_pair(&summary->sharing, gbps, alone);
    if (facts->placed_gbps > 0)
        count_pair(&summary->placement, alone, fmax(facts->placed_gbps, alone));
    else
        summary->unplaced++;
}

static int count_gain(struct summary *summary, double ratio, bool built)
{
    int part = GAINS - 1;
    while (part > 0 && ratio < gains[part])
        part--;
    summary->histogram[part]++;
    if (built && tccl_series_add(&summary->built_gain, ratio) != 0)
        return -1;
    return tccl_series_add(&summary->gain, ratio);
}

static int count_row(void *argument, const struct tccl_facts *facts, struct tccl_error *err)
{
    struct summary *summary = argument;
    const char *state = facts->shown.state;
    bool ring = tccl_is(state, "planned"), failed = tccl_is(state, "failed");
    bool own = facts->gbps == 0 && tccl_is(state, "left") &&
               facts->shown.cause != TCCL_REASON_TRIAL &&
               facts->shown.cause != TCCL_REASON_EVIDENCE;
    bool built = ring && tccl_is(facts->shown.built, "yes"), gains = ring && facts->ratio > 0;
    /* By the hours since 1970. Rows come in the order of their starts. */
    int64_t start = facts->start - facts->start % 3600;
    struct day *hour = &summary->hours[start / 3600 % HOURS];
    if (hour->start != start || hour->steps == 0)
        *hour = (struct day){.start = start};
    struct day *parts[] = {find_day(summary, facts->start), hour};
    if (summary->steps == ROWS)
        return tccl_fail(err, "more than %d records: select a shorter time", ROWS);
    if (summary->steps++ == 0)
        summary->first = facts->start;
    summary->last = facts->start;
    for (int i = 0; i < 2 && parts[0]; i++) {
        parts[i]->steps++;
        parts[i]->planned += ring;
        parts[i]->built += built;
        parts[i]->failed += failed;
        parts[i]->gains += gains;
        parts[i]->gain += gains ? facts->ratio : 0;
    }
    count_word(&summary->states, state);
    if (*facts->shown.built)
        count_word(&summary->built, facts->shown.built);
    if (facts->shown.cause) {
        struct cause *cause = &summary->causes[facts->shown.cause];
        cause->steps++;
        cause->failed += failed;
        cause->last = facts->start;
        size_t length = strnlen(facts->shown.reason, TCCL_OUTCOME_REASON);
        memcpy(cause->example, facts->shown.reason, length);
        cause->example[length] = '\0';
    }
    if (ring && facts->gbps > 0)
        count_losses(summary, facts, facts->gbps);
    else if (own && facts->baseline_gbps > 0)
        count_losses(summary, facts, facts->baseline_gbps);
    if (!parts[0] || (gains && count_gain(summary, facts->ratio, built) != 0) ||
        (ring && facts->gbps > 0 && tccl_nodestats_ring(summary->nodes, facts) != 0) ||
        ((failed || ring) && tccl_reason_of_node(facts->shown.cause) &&
         tccl_nodestats_failed(summary->nodes, facts) != 0) ||
        (facts->solve_us > 0 && tccl_series_add(&summary->solve, (double)facts->solve_us) != 0))
        return tccl_fail(err, "out of memory for a summary");
    return facts->achieved_gbps > 0 ? tccl_achieved_count(summary->achieved, facts, err) : 0;
}

/* The answer */

static json_t *words_json(const struct words *words)
{
    cleanup_json json_t *json = json_object();
    for (int i = 0; i < words->count; i++)
        if (json_object_set_new(json, words->word[i], json_integer(words->steps[i])) != 0)
            return NULL;
    return tccl_steal(json);
}

/* Most steps first. */
static json_t *causes_json(const struct cause causes[static TCCL_REASON_END])
{
    cleanup_json json_t *array = json_array();
    bool done[TCCL_REASON_END] = {false};
    for (;;) {
        int most = -1;
        for (int i = 0; i < TCCL_REASON_END; i++)
            if (!done[i] && causes[i].steps && (most < 0 || causes[i].steps > causes[most].steps))
                most = i;
        if (most < 0)
            return tccl_steal(array);
        const struct cause *cause = &causes[most];
        json_t *example = json_string(cause->example); /* NULL if it is no UTF-8 */
        done[most] = true;
        if (json_array_append_new(
                array,
                json_pack("{s:s, s:I, s:I, s:o, s:I}", "class", tccl_reason_words[most], "steps",
                          (json_int_t)cause->steps, "failed", (json_int_t)cause->failed, "example",
                          example ? example : json_string(""), "last", (json_int_t)cause->last)) !=
            0)
            return NULL;
    }
}

static json_t *gains_json(const int64_t histogram[static GAINS])
{
    cleanup_json json_t *array = json_array();
    for (int i = 0; i < GAINS; i++) {
        json_t *to = i + 1 < GAINS ? json_real(gains[i + 1]) : json_null();
        json_t *part = json_pack("{s:f, s:o, s:I}", "from", gains[i], "to", to, "steps",
                                 (json_int_t)histogram[i]);
        if (json_array_append_new(array, part) != 0)
            return NULL;
    }
    return tccl_steal(array);
}

static json_t *day_json(const struct day *day)
{
    json_t *mean = day->gains ? json_real(day->gain / (double)day->gains) : json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "start", (json_int_t)day->start, "steps",
                     (json_int_t)day->steps, "planned", (json_int_t)day->planned, "built",
                     (json_int_t)day->built, "failed", (json_int_t)day->failed, "gain_mean", mean);
}

static json_t *days_json(const struct summary *summary)
{
    cleanup_json json_t *array = json_array();
    for (int i = summary->n_days > DAYS ? summary->n_days - DAYS : 0; i < summary->n_days; i++)
        if (json_array_append_new(array, day_json(&summary->days[i])) != 0)
            return NULL;
    return tccl_steal(array);
}

/* The last one is that of the last step. */
static json_t *hours_json(const struct summary *summary)
{
    cleanup_json json_t *array = json_array();
    int64_t last = summary->last / 3600;
    for (int64_t number = last - HOURS + 1; number <= last; number++) {
        const struct day *hour = &summary->hours[(number % HOURS + HOURS) % HOURS];
        if (hour->steps > 0 && hour->start == number * 3600 &&
            json_array_append_new(array, day_json(hour)) != 0)
            return NULL;
    }
    return tccl_steal(array);
}

static json_t *solve_json(struct tccl_series *solve)
{
    if (solve->count == 0)
        return json_pack("{s:n, s:n, s:n}", "median", "p99", "max");
    return json_pack("{s:f, s:f, s:f}", "median", tccl_series_median(solve), "p99",
                     tccl_series_rank(solve, 0.99), "max", tccl_series_rank(solve, 1));
}

/* The means, null without steps. Takes over what more is to stand there. */
static json_t *pair_json(const struct pair *pair, const char *is, const char *might, json_t *more)
{
    double steps = (double)pair->steps;
    json_t *json = json_pack("{s:I, s:o, s:o}", "steps", (json_int_t)pair->steps, is,
                             pair->steps ? json_real(pair->is / steps) : json_null(), might,
                             pair->steps ? json_real(pair->might / steps) : json_null());
    if (json && more)
        json_object_update(json, more);
    json_decref(more);
    return json;
}

/* Null without a step. */
static json_t *median_json(struct tccl_series *series)
{
    return series->count ? json_real(tccl_series_median(series)) : json_null();
}

static json_t *summary_json(struct summary *summary, const struct tccl_filter *filter)
{
    struct tccl_series *gain = &summary->gain;
    int64_t start = filter->start ? filter->start : summary->first;
    int64_t last = summary->steps ? summary->last : start;
    json_t *mean = gain->count ? json_real(gain->sum / (double)gain->count) : json_null();
    json_t *built = json_pack("{s:I, s:o}", "steps", (json_int_t)summary->built_gain.count,
                              "median", median_json(&summary->built_gain));
    json_t *unplaced = json_pack("{s:I}", "unknown", (json_int_t)summary->unplaced);
    return json_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "start", (json_int_t)start, "end",
        (json_int_t)(filter->end < INT64_MAX ? filter->end : last), "steps",
        (json_int_t)summary->steps, "states", words_json(&summary->states), "built",
        words_json(&summary->built), "reasons", causes_json(summary->causes), "gains",
        gains_json(summary->histogram), "gain_median", median_json(gain), "gain_mean", mean,
        "gain_built", built, "nodes", tccl_nodestats_json(summary->nodes, NODES), "days",
        days_json(summary), "hours", hours_json(summary), "solve_us", solve_json(&summary->solve),
        "sharing", pair_json(&summary->sharing, "gbps", "alone_gbps", NULL), "placement",
        pair_json(&summary->placement, "alone_gbps", "placed_gbps", unplaced), "achieved",
        tccl_achieved_json(summary->achieved));
}

json_t *tccl_records_summary(struct tccl_records *records, const json_t *filter, int64_t uid,
                             struct tccl_error *err)
{
    __attribute__((cleanup(tccl_filter_clear))) struct tccl_filter wanted = {0};
    __attribute__((cleanup(clear))) struct summary *summary = calloc(1, sizeof(*summary));
    if (tccl_filter_read(filter, uid, &wanted, err) != 0)
        return NULL;
    wanted.newest = false;
    wanted.after = NULL;
    if (!summary || !(summary->nodes = tccl_nodestats_new()) ||
        !(summary->achieved = tccl_achieved_new()))
        return tccl_fail_null(err, "out of memory for a summary");
    tccl_store_ask(records);
    if (tccl_filter_each(records, &wanted, LOOKS | TCCL_ACHIEVED_LOOKS, count_row, summary, err) !=
        0)
        return NULL;
    json_t *json = summary_json(summary, &wanted);
    if (!json)
        tccl_fail(err, "out of memory for a summary");
    return json;
}
