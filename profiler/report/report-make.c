/* report-make.c: what a profile says, put together. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/numberset.h"
#include "chain/chain.h"
#include "measure/pool/workers.h"
#include "profile/cache-internal.h"
#include "ring/node-class.h"

enum { GPUS_TEXT = 64 };

/* One measurement's part in the statistics. */
static void rate(struct tccl_quality *quality, const struct tccl_measurement *value,
                 double *spreads, double *skews)
{
    quality->noisy += value->noisy;
    quality->failed += value->failed;
    quality->marked += value->marks != 0;
    quality->marks |= value->marks;
    if (value->failed)
        return;
    spreads[quality->sets++] = value->spread;
    quality->worst_spread = fmax(quality->worst_spread, value->spread);
    if (value->overlap <= 0)
        return;
    skews[quality->timed++] = value->skew;
    quality->worst_skew = fmax(quality->worst_skew, value->skew);
    quality->least_overlap =
        quality->timed == 1 ? value->overlap : fmin(quality->least_overlap, value->overlap);
}

static int rate_all(struct tccl_report *report, struct tccl_error *err)
{
    const struct tccl_measured *measured = &report->measured;
    struct tccl_quality *quality = &report->quality;
    size_t count = measured->sets.count;
    cleanup_free double *spreads = calloc(count + 1, sizeof(*spreads));
    cleanup_free double *skews = calloc(count + 1, sizeof(*skews));
    if (!spreads || !skews)
        return tccl_fail(err, "out of memory");
    for (size_t i = 0; i < count; i++)
        rate(quality, &measured->sets.entries[i].best, spreads, skews);
    quality->median_spread = quality->sets > 0 ? tccl_median(spreads, (int)quality->sets) : 0;
    quality->median_skew = quality->timed > 0 ? tccl_median(skews, (int)quality->timed) : 0;
    quality->sets = (long)count;
    return 0;
}

static int more_gpus_first(const void *a, const void *b)
{
    const struct tccl_report_rings *x = a, *y = b;
    int more = __builtin_popcount(y->gpus) - __builtin_popcount(x->gpus);
    return more ? more : (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

static int find_of(const struct tccl_table *table, const struct tccl_machine *machine,
                   struct tccl_report_rings *found)
{
    const struct tccl_result *best = tccl_table_best(table, -1, -1);
    struct tccl_seen sets[2];
    if (tccl_job_sets(table, machine, sets) != 0)
        return -1;
    *found = (struct tccl_report_rings){
        .gpus = table->gpus,
        .noise = table->noise,
        .alone = {*tccl_table_ring(table), sets[1], table->baselines[1][TCCL_NEWEST]},
        .open = {best ? *best : (struct tccl_result){0}, sets[0],
                 table->baselines[0][TCCL_NEWEST]}};
    return 0;
}

static int find_rings(struct tccl_profile *profile, struct tccl_report *report,
                      struct tccl_error *err)
{
    cleanup_free uint32_t *masks = NULL;
    int count = tccl_profile_tables(profile, &masks, err);
    if (count < 0)
        return -1;
    report->rings = calloc((size_t)count + 1, sizeof(*report->rings));
    if (!report->rings)
        return tccl_fail(err, "out of memory");
    for (int i = 0; i < count; i++) {
        const struct tccl_table *table = tccl_profile_table(profile, masks[i], &report->bad);
        struct tccl_report_rings *found = &report->rings[report->n_rings];
        if (!table)
            report->bad_rings++;
        else if (find_of(table, report->machine, found) == 0)
            report->n_rings++;
        else
            return tccl_fail(err, "out of memory");
    }
    qsort(report->rings, (size_t)report->n_rings, sizeof(*report->rings), more_gpus_first);
    return 0;
}

int tccl_report_make(struct tccl_profile *profile, double threshold, struct tccl_report *report,
                     struct tccl_error *err)
{
    *report = (struct tccl_report){
        .profile = profile, .machine = tccl_profile_machine(profile), .threshold = threshold};
    /* What profile.json says for people; nothing where it doesn't. */
    char path[PATH_MAX];
    tccl_profile_path(tccl_profile_folder(report->profile), ABOUT, path);
    cleanup_json json_t *json = tccl_read_json(path, PROFILE_BYTES, NULL);
    const char *by = json_string_value(json_object_get(json, "by"));
    snprintf(report->created_by, sizeof(report->created_by), "%s", by ? by : "");
    for (char *at = report->created_by; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    report->created = json_integer_value(json_object_get(json, "created"));
    report->last = (long long)tccl_profile_time(report->profile);
    if (tccl_measured_load(profile, &report->measured, err) != 0 || rate_all(report, err) != 0)
        return -1;
    report->n_odds = tccl_odd_advised(profile, &report->measured, report->matrices, report->odds,
                                      report->advice, err);
    if (report->n_odds < 0)
        return -1;
    for (int i = 0; i < TCCL_MATRICES; i++)
        report->fastest = fmax(report->fastest, report->matrices[i].max);
    report->n_faster = tccl_oddity_list(&report->measured.sets, report->faster);
    const struct tccl_together *together = tccl_profile_together(profile, NULL);
    report->together = tccl_together_by(together, TCCL_BASIS_MEASURED);
    report->foretold = tccl_together_by(together, TCCL_BASIS_FORETOLD);
    report->n_congested =
        tccl_congestion_find(&report->measured, threshold, &report->congested, err);
    return report->n_congested < 0 ? -1 : find_rings(profile, report, err);
}

void tccl_report_free(struct tccl_report *report)
{
    tccl_measured_clear(&report->measured);
    free(report->congested);
    free(report->rings);
    *report = (struct tccl_report){0};
}

double tccl_report_gap(double gbps, double bound)
{
    return gbps > 0 && isfinite(bound) ? bound / gbps - 1 : 0;
}

/* JSON. */

static json_t *quality_to_json(const struct tccl_quality *quality)
{
    json_t *marks = json_array(), *json;
    for (int i = 0; i < TCCL_MARKS; i++)
        if (quality->marks & 1u << i)
            json_array_append_new(marks, json_string(tccl_mark_name(1u << i)));
    json = json_pack("{s:I, s:I, s:I, s:I, s:o, s:f, s:f, s:n, s:n, s:n}", "loads",
                     (json_int_t)quality->sets, "noisy", (json_int_t)quality->noisy, "failed",
                     (json_int_t)quality->failed, "marked", (json_int_t)quality->marked, "marks",
                     marks, "median_spread", quality->median_spread, "worst_spread",
                     quality->worst_spread, "median_skew_us", "worst_skew_us", "least_overlap");
    if (quality->timed > 0) {
        json_object_set_new(json, "median_skew_us", json_real(quality->median_skew));
        json_object_set_new(json, "worst_skew_us", json_real(quality->worst_skew));
        json_object_set_new(json, "least_overlap", json_real(quality->least_overlap));
    }
    return json;
}

/* The best one ('o'), several at once ('s'), or NCCL's own ('n'); null where there are none. */
static json_t *best_to_json(const struct tccl_report *report, const struct tccl_best *best,
                            char what)
{
    bool one = what == 'o', own = what == 'n';
    const struct tccl_ring_set *set = own ? &best->baseline.set : &best->several.set;
    const struct tccl_chain *chains = one ? &best->one.chain : set->rings;
    double gbps = one ? best->one.gbps : own ? best->baseline.gbps : best->several.gbps;
    double bound = one ? best->one.bound : best->several.bound;
    int n = !own && gbps <= 0 ? 0 : one ? best->one.chain.n_gpus > 0 : set->n;
    char text[TCCL_CHAIN_TEXT];
    json_t *list = json_array(), *json = json_pack("{s:f}", "gbps", gbps);
    for (int i = 0; i < n; i++) {
        tccl_chain_format(&chains[i], report->machine, text);
        json_array_append_new(list, json_string(text));
    }
    if (!own)
        json_object_set_new(json, "gap",
                            one || isfinite(bound) ? json_real(tccl_report_gap(gbps, bound))
                                                   : json_null());
    json_object_set(json,
                    one   ? "chain"
                    : own ? "chains"
                          : "rings",
                    one ? json_array_get(list, 0) : list);
    json_decref(list);
    if (n > 0)
        return json;
    json_decref(json);
    return json_null();
}

static json_t *rings_to_json(const struct tccl_report *report)
{
    json_t *list = json_array();
    char gpus[GPUS_TEXT];
    for (int i = 0; i < report->n_rings; i++) {
        const struct tccl_best *alone = &report->rings[i].alone, *open = &report->rings[i].open;
        tccl_numberset_format(report->rings[i].gpus, gpus, sizeof(gpus));
        json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "gpus", gpus,
                                              "ring", best_to_json(report, alone, 'o'),
                                              "baseline_ring", best_to_json(report, alone, 'n'),
                                              "ring_set", best_to_json(report, alone, 's'),
                                              "chain_set", best_to_json(report, open, 's'), "chain",
                                              best_to_json(report, open, 'o'), "baseline_chain",
                                              best_to_json(report, open, 'n')));
    }
    return list;
}

static json_t *odds_to_json(const struct tccl_report *report)
{
    json_t *list = json_array();
    char text[TCCL_ODD_TEXT];
    for (int i = 0; i < report->n_odds; i++) {
        const struct tccl_odd *odd = &report->odds[i];
        tccl_odd_format(report->machine, odd, text);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:i}",
                                              "what", text, "advice", report->advice[i], "matrix",
                                              report->matrices[odd->matrix].name, "busid",
                                              tccl_odd_busid(report->machine, odd), "gbps",
                                              odd->gbps, "likes_gbps", odd->likes, "likes",
                                              odd->n_likes, "off", odd->off, "known", odd->known));
    }
    return list;
}

static json_t *faster_to_json(const struct tccl_report *report)
{
    json_t *list = json_array();
    char part[TCCL_SET_TEXT], whole[TCCL_SET_TEXT];
    for (int i = 0; i < report->n_faster; i++) {
        tccl_set_format(&report->faster[i].part->set, part);
        tccl_set_format(&report->faster[i].whole->set, whole);
        json_array_append_new(list, json_pack("{s:s, s:f, s:s, s:f}", "load", part, "gbps",
                                              report->faster[i].part_gbps, "larger", whole,
                                              "larger_gbps", report->faster[i].whole_gbps));
    }
    return list;
}

json_t *tccl_report_to_json(const struct tccl_report *report)
{
    json_t *matrices = json_array(), *congested = json_array();
    for (int i = 0; i < TCCL_MATRICES; i++)
        json_array_append_new(matrices, tccl_matrix_to_json(&report->matrices[i], report->machine));
    for (long i = 0; i < report->n_congested; i++)
        json_array_append_new(congested, tccl_congestion_to_json(&report->congested[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:i, s:i, s:i}",
        "id", tccl_profile_id(report->profile), "name", report->machine->name, "source",
        tccl_profile_source(report->profile), "conditions",
        tccl_profile_conditions(report->profile), "created", (json_int_t)report->created,
        "last_measured", (json_int_t)report->last, "by", report->created_by, "quality",
        quality_to_json(&report->quality), "matrices", matrices, "odd", odds_to_json(report),
        "faster_with_more", faster_to_json(report), "threshold", report->threshold, "congested",
        congested, "rings", rings_to_json(report), "bad_tables", report->bad_rings, "together",
        report->together, "together_foretold", report->foretold);
}
