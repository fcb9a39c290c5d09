/* Counters and histograms of this tccld, and their text. Buckets are fixed, so that the series of
 * all nodes can be added. */
#include "tccld/main/metrics.h"

#include <stdio.h>
#include <stdlib.h>

enum { MODES = 4, STATES = 4 };

/* Histograms: upper ends of their buckets; the last bucket has none. */
enum { WAIT, GAIN, RINGS, ACHIEVED, HISTOGRAMS, ENDS = 13 };
static const struct {
    const char *name, *unit, *help;
    int n;
    double ends[ENDS];
} histograms[HISTOGRAMS] = {
    [WAIT] = {"tccl_wait_seconds",
              "seconds",
              "From JOIN to answer.",
              13,
              {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10}},
    [GAIN] = {"tccl_gain_ratio",
              "ratio",
              "Bandwidth of rings over that of NCCL's own choice.",
              9,
              {1, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3}},
    [RINGS] = {"tccl_rings",
               NULL,
               "Rings that a step with rings has at once.",
               8,
               {1, 2, 3, 4, 5, 6, 7, 8}},
    [ACHIEVED] =
        {"tccl_achieved_ratio",
         "ratio",
         "What the large collectives of steps with the ring reached of what was predicted.",
         9,
         {0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1, 1.1}},
};

struct metrics {
    unsigned long long joins[MODES], states[STATES];
    unsigned long long reasons[TCCL_REASON_END], measured[METRICS_KINDS];
    unsigned long long buckets[HISTOGRAMS][ENDS + 1];
    double sums[HISTOGRAMS];
    bool works[METRICS_PARTS], asked; /* squeue */
    long long lost, pending;          /* records */
    int links, gone;                  /* worse than measured */
};

struct metrics *metrics_new(void)
{
    return calloc(1, sizeof(struct metrics));
}

struct metrics *metrics_copy(const struct metrics *metrics)
{
    struct metrics *copy = metrics_new();
    if (copy)
        *copy = *metrics;
    return copy;
}

void metrics_free(struct metrics *metrics)
{
    free(metrics);
}

void metrics_join(struct metrics *metrics, enum tccl_mode mode)
{
    if ((int)mode >= 0 && (int)mode < MODES)
        metrics->joins[mode]++;
}

static void count_value(struct metrics *metrics, int histogram, double value)
{
    int i = 0;
    while (i < histograms[histogram].n && value > histograms[histogram].ends[i])
        i++;
    metrics->buckets[histogram][i]++;
    metrics->sums[histogram] += value;
}

void metrics_answer(struct metrics *metrics, enum tccl_state state, enum tccl_reason reason,
                    double ratio, int64_t rings, int64_t waited_us)
{
    if ((int)state >= 0 && (int)state < STATES)
        metrics->states[state]++;
    if (state == TCCL_STATE_FAILED)
        metrics->reasons[reason]++;
    if (state == TCCL_STATE_OFF)
        return; /* nobody waited */
    if (state == TCCL_STATE_PLANNED && ratio > 0)
        count_value(metrics, GAIN, ratio);
    if (state == TCCL_STATE_PLANNED && rings > 0)
        count_value(metrics, RINGS, (double)rings);
    count_value(metrics, WAIT, (double)waited_us * 1e-6);
}

void metrics_measured(struct metrics *metrics, enum metrics_kind kind, double share)
{
    metrics->measured[kind]++;
    if (kind == METRICS_RING && share > 0)
        count_value(metrics, ACHIEVED, share);
}

void metrics_works(struct metrics *metrics, enum metrics_part part, bool works)
{
    metrics->works[part] = works;
    metrics->asked = metrics->asked || part == METRICS_SQUEUE;
}

void metrics_worse(struct metrics *metrics, int links, int gone)
{
    metrics->links = links;
    metrics->gone = gone;
}

void metrics_records(struct metrics *metrics, long long lost, long long pending)
{
    metrics->lost = lost;
    metrics->pending = pending;
}

/* Text */

static void describe(FILE *out, const char *name, const char *type, const char *unit,
                     const char *help)
{
    fprintf(out, "# TYPE %s %s\n", name, type);
    if (unit)
        fprintf(out, "# UNIT %s %s\n", name, unit);
    fprintf(out, "# HELP %s %s\n", name, help);
}

static void put_label(FILE *out, const char *name, const char *value)
{
    fprintf(out, "%s=\"", name);
    for (; *value; value++)
        if (*value == '\n')
            fputs("\\n", out);
        else if (*value == '"' || *value == '\\')
            fprintf(out, "\\%c", *value);
        else
            fputc(*value, out);
    fputc('"', out);
}

static void put_counter(FILE *out, const char *name, const char *label, const char *value,
                        unsigned long long count)
{
    fprintf(out, "%s{", name);
    put_label(out, label, value);
    fprintf(out, "} %llu\n", count);
}

static void put_histogram(FILE *out, const struct metrics *metrics, int histogram)
{
    const unsigned long long *buckets = metrics->buckets[histogram];
    const char *name = histograms[histogram].name;
    int n = histograms[histogram].n;
    unsigned long long count = 0;
    describe(out, name, "histogram", histograms[histogram].unit, histograms[histogram].help);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s_bucket{le=\"%.10g\"} %llu\n", name, histograms[histogram].ends[i],
                count += buckets[i]);
    count += buckets[n];
    fprintf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", name, count, name,
            metrics->sums[histogram], name, count);
}

static void put_gauge(FILE *out, const struct metrics_profile *profile, const char *name,
                      const char *unit, const char *help, long long value)
{
    describe(out, name, "gauge", unit, help);
    fprintf(out, "%s{", name);
    put_label(out, "machine", profile->machine);
    fputc(',', out);
    put_label(out, "source", profile->source);
    fprintf(out, "} %lld\n", value);
}

static long long age(time_t then, time_t now)
{
    return now > then ? (long long)(now - then) : 0;
}

static void put_profile(FILE *out, const struct metrics_profile *profile, time_t now)
{
    describe(out, "tccl_profile", "gauge", NULL, "1 if this node's machine has a profile.");
    fprintf(out, "tccl_profile %d\n", profile->there);
    if (!profile->there)
        return;
    if (profile->measured)
        put_gauge(out, profile, "tccl_profile_age_seconds", "seconds",
                  "Since transfers were last measured.", age(profile->measured, now));
    if (profile->searched)
        put_gauge(out, profile, "tccl_chains_age_seconds", "seconds",
                  "Since the oldest of the chain tables was written.", age(profile->searched, now));
    put_gauge(out, profile, "tccl_profile_loads", NULL,
              "Measured loads (transfers that ran at once).", profile->sets);
    put_gauge(out, profile, "tccl_profile_noisy_loads", NULL,
              "Measured loads whose repeats did not agree.", profile->noisy);
    put_gauge(out, profile, "tccl_profile_failed_loads", NULL, "Loads that could not be measured.",
              profile->failed);
    put_gauge(out, profile, "tccl_profile_gpu_sets", NULL, "GPU sets with chains.",
              profile->tables);
}

static void put_steps(FILE *out, const struct metrics *metrics)
{
    static const char *const kinds[METRICS_KINDS] = {
        [METRICS_RING] = "ring", [METRICS_OWN] = "own", [METRICS_TRIAL] = "trial"};
    describe(out, "tccl_joins", "counter", NULL, "Job steps that asked this node's tccld.");
    for (int i = 0; i < MODES; i++)
        put_counter(out, "tccl_joins_total", "mode", tccl_mode_name((enum tccl_mode)i),
                    metrics->joins[i]);
    describe(out, "tccl_answers", "counter", NULL, "What they were answered.");
    for (int i = 0; i < STATES; i++)
        put_counter(out, "tccl_answers_total", "state", tccl_state_name((enum tccl_state)i),
                    metrics->states[i]);
    describe(out, "tccl_failures", "counter", NULL, "Steps whose ring failed, by reason.");
    for (int i = TCCL_REASON_NONE + 1; i < TCCL_REASON_END; i++)
        put_counter(out, "tccl_failures_total", "reason", tccl_reason_words[i],
                    metrics->reasons[i]);
    for (int i = WAIT; i <= RINGS; i++)
        put_histogram(out, metrics, i);
    describe(out, "tccl_measured_steps", "counter", NULL,
             "Steps that began here and were measured: with the ring, with NCCL's own choice, or "
             "with that by a trial.");
    for (int i = 0; i < METRICS_KINDS; i++)
        put_counter(out, "tccl_measured_steps_total", "kind", kinds[i], metrics->measured[i]);
    put_histogram(out, metrics, ACHIEVED);
}

char *metrics_text(const struct metrics *metrics, const struct metrics_profile *profile,
                   const struct metrics_machine *machine, time_t started, time_t now)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    describe(out, "tccl_build_info", "gauge", NULL, "Version of this tccld.");
    fputs("tccl_build_info{", out);
    put_label(out, "version", TCCL_VERSION);
    fputs("} 1\n", out);
    describe(out, "tccl_start_time_seconds", "gauge", "seconds", "When it started, unix time.");
    fprintf(out, "tccl_start_time_seconds %lld\n", (long long)started);
    static const char *const parts[METRICS_PARTS] = {
        [METRICS_TCP] = "tcp", [METRICS_STORE] = "store", [METRICS_SQUEUE] = "squeue"};
    describe(
        out, "tccl_works", "gauge", NULL,
        "1 if this part works: tcp, listening for other nodes; store, records in StateDir; squeue, "
        "which says whose a job is, the last time it was asked.");
    for (int i = 0; i < METRICS_PARTS; i++)
        if (i != METRICS_SQUEUE || metrics->asked)
            fprintf(out, "tccl_works{part=\"%s\"} %d\n", parts[i], metrics->works[i]);
    describe(
        out, "tccl_records_lost", "counter", NULL,
        "Records of steps that no disk took, or of which none tells after a kill, since boot.");
    fprintf(out, "tccl_records_lost_total %lld\n", metrics->lost);
    describe(out, "tccl_records_pending", "gauge", NULL, "Records that are on no disk yet.");
    fprintf(out, "tccl_records_pending %lld\n", metrics->pending);
    put_steps(out, metrics);
    put_profile(out, profile, now);
    describe(out, "tccl_machine_findings", "gauge", NULL,
             "What tccl-check machine finds on this node, without NVML.");
    for (int i = 0; i < TCCL_DOCTOR_LEVELS; i++)
        fprintf(out, "tccl_machine_findings{level=\"%s\"} %d\n",
                tccl_doctor_level_name((enum tccl_doctor_level)i), machine->findings[i]);
    describe(out, "tccl_degraded", "gauge", NULL,
             "What plans do without since the profile was measured: links that carry less, GPUs "
             "and NICs that are gone.");
    fprintf(out, "tccl_degraded{what=\"link\"} %d\n", metrics->links);
    fprintf(out, "tccl_degraded{what=\"device\"} %d\n", metrics->gone);
    fputs("# EOF\n", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
