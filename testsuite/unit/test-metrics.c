/* test-metrics.c: the numbers in the text are those of plain counting. */
#include <event2/event.h>

#include "check.h"
#include "tccld/main/metrics.h"

enum { EVENTS = 400, MOST_WAITS = EVENTS };

static const enum tccl_reason reasons[] = {TCCL_REASON_NO_DAEMON, TCCL_REASON_NO_ANSWER,
                                           TCCL_REASON_OTHER, TCCL_REASON_NO_PROFILE};

static const struct metrics_machine found = {{[TCCL_DOCTOR_NOTE] = 3, [TCCL_DOCTOR_WARN] = 7}};

/* The value behind a line's beginning, which must stand at the beginning of exactly one line; -1:
 * it stands nowhere. */
static double value_of(const char *text, const char *begin)
{
    double value = -1;
    size_t length = strlen(begin);
    for (const char *line = text; line && *line; line = strchr(line, '\n') + 1)
        if (strncmp(line, begin, length) == 0 && line[length] == ' ') {
            CHECK(value < 0);
            value = strtod(line + length, NULL);
        }
    return value;
}

struct counted {
    int joins[4], states[4], classes[4], n;
    double waits[MOST_WAITS], gains[MOST_WAITS], rings[MOST_WAITS];
    int n_waits, n_gains, n_rings;
    int kinds[METRICS_KINDS], n_shares;
    double shares[MOST_WAITS];
};

static void make_events(struct metrics *metrics, struct counted *counted)
{
    for (int i = 0; i < EVENTS; i++) {
        int mode = rand() % 4, state = rand() % 4, reason = rand() % 4;
        int64_t us = (int64_t)pow(10, 1 + rand() % 7000 / 1000.0);
        double ratio = rand() % 5 ? 1 + rand() % 300 / 100.0 : 0;
        int rings = rand() % 9;
        metrics_join(metrics, (enum tccl_mode)mode);
        metrics_answer(metrics, (enum tccl_state)state, reasons[reason], ratio, rings, us);
        int kind = rand() % METRICS_KINDS;
        double share = rand() % 5 ? rand() % 150 / 100.0 : 0;
        metrics_measured(metrics, (enum metrics_kind)kind, share);
        counted->kinds[kind]++;
        if (kind == METRICS_RING && share > 0)
            counted->shares[counted->n_shares++] = share;
        counted->joins[mode]++;
        counted->states[state]++;
        counted->classes[reason] += state == TCCL_STATE_FAILED;
        if (state != TCCL_STATE_OFF)
            counted->waits[counted->n_waits++] = (double)us * 1e-6;
        if (state == TCCL_STATE_PLANNED && ratio > 0)
            counted->gains[counted->n_gains++] = ratio;
        if (state == TCCL_STATE_PLANNED && rings > 0)
            counted->rings[counted->n_rings++] = rings;
    }
}

/* Every bucket of the text, by its own upper end. */
static void check_histogram(const char *text, const char *name, const double *values, int n)
{
    char begin[64];
    double sum = 0;
    int buckets = 0;
    snprintf(begin, sizeof(begin), "%s_bucket{le=\"", name);
    for (const char *at = text; (at = strstr(at, begin)) != NULL; buckets++) {
        int below = 0;
        char *rest;
        double end = strtod(at += strlen(begin), &rest);
        for (int i = 0; i < n; i++)
            below += values[i] <= end;
        CHECK(strncmp(rest, "\"} ", 3) == 0);
        CHECK_INT(atoi(rest + 3), below);
    }
    CHECK(buckets > 5);
    for (int i = 0; i < n; i++)
        sum += values[i];
    snprintf(begin, sizeof(begin), "%s_sum", name);
    CHECK(fabs(value_of(text, begin) - sum) < 1e-3);
    snprintf(begin, sizeof(begin), "%s_count", name);
    CHECK_INT((int)value_of(text, begin), n);
}

TEST(counting)
{
    struct metrics *metrics = metrics_new();
    static struct counted counted;
    struct metrics_profile profile = {0};
    char begin[96];
    make_events(metrics, &counted);
    metrics_works(metrics, METRICS_TCP, true);
    metrics_records(metrics, 4711, 12);
    metrics_worse(metrics, 2, 1);
    struct metrics *copy = metrics_copy(metrics);
    metrics_join(metrics, TCCL_MODE_ON);
    char *text = metrics_text(copy, &profile, &found, 1000, 2000);
    for (int i = 0; i < 4; i++) {
        snprintf(begin, sizeof(begin), "tccl_joins_total{mode=\"%s\"}",
                 tccl_mode_name((enum tccl_mode)i));
        CHECK_INT((int)value_of(text, begin), counted.joins[i]);
        snprintf(begin, sizeof(begin), "tccl_answers_total{state=\"%s\"}",
                 tccl_state_name((enum tccl_state)i));
        CHECK_INT((int)value_of(text, begin), counted.states[i]);
        snprintf(begin, sizeof(begin), "tccl_failures_total{reason=\"%s\"}",
                 tccl_reason_words[reasons[i]]);
        CHECK_INT((int)value_of(text, begin), counted.classes[i]);
    }
    CHECK_INT((int)value_of(text, "tccl_degraded{what=\"link\"}"), 2);
    CHECK_INT((int)value_of(text, "tccl_degraded{what=\"device\"}"), 1);
    CHECK_INT((int)value_of(text, "tccl_machine_findings{level=\"note\"}"), 3);
    CHECK_INT((int)value_of(text, "tccl_machine_findings{level=\"warn\"}"), 7);
    CHECK_INT((int)value_of(text, "tccl_machine_findings{level=\"fail\"}"), 0);
    check_histogram(text, "tccl_wait_seconds", counted.waits, counted.n_waits);
    check_histogram(text, "tccl_gain_ratio", counted.gains, counted.n_gains);
    check_histogram(text, "tccl_rings", counted.rings, counted.n_rings);
    check_histogram(text, "tccl_achieved_ratio", counted.shares, counted.n_shares);
    CHECK_INT((int)value_of(text, "tccl_measured_steps_total{kind=\"ring\"}"),
              counted.kinds[METRICS_RING]);
    CHECK_INT((int)value_of(text, "tccl_measured_steps_total{kind=\"own\"}"),
              counted.kinds[METRICS_OWN]);
    CHECK_INT((int)value_of(text, "tccl_measured_steps_total{kind=\"trial\"}"),
              counted.kinds[METRICS_TRIAL]);
    CHECK_INT((int)value_of(text, "tccl_start_time_seconds"), 1000);
    CHECK_INT((int)value_of(text, "tccl_works{part=\"tcp\"}"), 1);
    CHECK_INT((int)value_of(text, "tccl_works{part=\"store\"}"), 0);
    CHECK(!strstr(text, "tccl_works{part=\"squeue\"}")); /* never asked */
    CHECK_INT((int)value_of(text, "tccl_records_lost_total"), 4711);
    CHECK_INT((int)value_of(text, "tccl_records_pending"), 12);
    CHECK(strcmp(text + strlen(text) - 6, "# EOF\n") == 0);
    free(text);
    metrics_works(metrics, METRICS_SQUEUE, false);
    text = metrics_text(metrics, &profile, &found, 1000, 2000);
    CHECK_INT((int)value_of(text, "tccl_works{part=\"squeue\"}"), 0);
    free(text);
    metrics_free(copy);
    metrics_free(metrics);
}

TEST(profile)
{
    struct metrics *metrics = metrics_new();
    struct metrics_profile profile = {.there = true,
                                      .machine = "a\"b\\c\nd",
                                      .source = "cuda",
                                      .measured = 900,
                                      .sets = 120,
                                      .noisy = 3,
                                      .failed = 1,
                                      .tables = 15};
    const char label[] = "{machine=\"a\\\"b\\\\c\\nd\",source=\"cuda\"}";
    const struct {
        const char *name;
        int value; /* -1: not in the text */
    } wanted[] = {{"tccl_profile_age_seconds", 1100}, {"tccl_chains_age_seconds", -1},
                  {"tccl_profile_loads", 120},        {"tccl_profile_noisy_loads", 3},
                  {"tccl_profile_failed_loads", 1},   {"tccl_profile_gpu_sets", 15}};
    char *text = metrics_text(metrics, &profile, &found, 1000, 2000), begin[128];
    CHECK_INT((int)value_of(text, "tccl_profile"), 1);
    for (size_t i = 0; i < COUNT(wanted); i++) {
        snprintf(begin, sizeof(begin), "%s%s", wanted[i].name, label);
        CHECK_INT((int)value_of(text, begin), wanted[i].value);
    }
    free(text);
    profile.there = false;
    text = metrics_text(metrics, &profile, &found, 1000, 2000);
    CHECK_INT((int)value_of(text, "tccl_profile"), 0);
    CHECK(!strstr(text, "machine="));
    free(text);
    metrics_free(metrics);
}

/* Without MetricsFile= nothing wakes tccld for it; once there is one, it is written again and
 * again, and it goes with its name. */
TEST(file)
{
    struct event_base *base = event_base_new();
    cleanup_free struct tccl_conf *conf = calloc(1, sizeof(*conf));
    struct daemon daemon = {.base = base, .conf = conf, .metrics = metrics_new()};
    struct metrics_file *file = metrics_file_new(&daemon, ERR);
    for (int named = 0; named < 3; named++) {
        snprintf(conf->metrics_file, sizeof(conf->metrics_file), "%s",
                 named == 1 ? check_at("tccl.prom") : "");
        metrics_file_hurry(file);
        for (int i = 0; i < 2000 && (access(check_at("tccl.prom"), F_OK) == 0) != (named == 1);
             i++) {
            event_base_loop(base, EVLOOP_NONBLOCK);
            usleep(1000);
        }
        event_base_loop(base, EVLOOP_NONBLOCK);
        CHECK_INT(access(check_at("tccl.prom"), F_OK), named == 1 ? 0 : -1);
        CHECK_INT(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 1 + (named == 1));
    }
    metrics_file_free(file);
    metrics_free(daemon.metrics);
    event_base_free(base);
}
