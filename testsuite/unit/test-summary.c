/* test-summary.c: summaries agree with what is counted, plainly, from the records themselves. */

#include <sqlite3.h>

#include "client/hostlist.h"
#include "records/summary.h"
#include "stores.h"

enum { NODES = 12, RECORDS_MOST = 4000 };

static char path[128];

static double number_of(const json_t *json, const char *name)
{
    return json_number_value(json_object_get(json, name));
}

static const char *text_of(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

static bool is(const json_t *json, const char *name, const char *text)
{
    return strcmp(text_of(json, name), text) == 0;
}

static void check_near(const char *what, const json_t *got, double wanted)
{
    CHECK_NO(!json_is_number(got) ||
                 fabs(json_number_value(got) - wanted) > 1e-9 * fabs(wanted) + 1e-12,
             "%s: is %g (type %d), expected %g\n", what, json_number_value(got),
             got ? (int)json_typeof(got) : -1, wanted);
}

/* A member that is null where nothing is known of it. */
static void check_known(const json_t *json, const char *name, bool known, double wanted)
{
    if (known)
        check_near(name, json_object_get(json, name), wanted);
    else
        CHECK(json_is_null(json_object_get(json, name)));
}

/* The plain way */

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, two = *(const double *)b;
    return (one > two) - (one < two);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static bool has_ring(const json_t *record)
{
    return is(record, "state", "planned");
}

static int count_of(const json_t *records, const char *name, const char *word)
{
    int count = 0;
    EACH_OF(record, records)
        count += is(record, name, word);
    return count;
}

static void check_words(const json_t *records, const json_t *got, const char *name)
{
    int known = 0, total = 0;
    const char *word;
    json_t *steps;
    json_object_foreach((json_t *)got, word, steps)
    {
        CHECK_INT(json_integer_value(steps), count_of(records, name, word));
        total += (int)json_integer_value(steps);
    }
    known = (int)json_array_size(records) - count_of(records, name, "");
    CHECK_INT(total, known);
}

static void check_reasons(const json_t *records, const json_t *got)
{
    int total = 0, least = INT32_MAX;
    EACH_OF(cause, got) {
        int steps = 0, failed = 0;
        int64_t last = -1;
        bool example = false;
        EACH_OF(record, records) {
            if (!is(record, "reason_class", text_of(cause, "class")))
                continue;
            int64_t start = (int64_t)number_of(record, "start");
            steps++;
            failed += is(record, "state", "failed");
            last = start > last ? start : last;
            example = example || is(record, "reason", text_of(cause, "example"));
        }
        CHECK(steps > 0 && steps <= least && example);
        CHECK_INT((int)number_of(cause, "steps"), steps);
        CHECK_INT((int)number_of(cause, "failed"), failed);
        CHECK_INT((int64_t)number_of(cause, "last"), last);
        least = steps;
        total += steps;
    }
    CHECK_INT(total, (int)json_array_size(records) - count_of(records, "reason", ""));
}

/* A member of the records with a ring that have it, of those that were built so (NULL: any).
 * Returns how many. */
static int values_of(const json_t *records, const char *member, const char *built,
                     double values[static RECORDS_MOST])
{
    int count = 0;
    EACH_OF(record, records) {
        if (has_ring(record) && number_of(record, member) > 0 &&
            (!built || is(record, "built", built)))
            values[count++] = number_of(record, member);
    }
    return count;
}

static void check_gains(const json_t *records, const json_t *summary)
{
    static double values[RECORDS_MOST];
    const json_t *built = json_object_get(summary, "gain_built");
    int count = values_of(records, "ratio", "yes", values); /* that NCCL built as planned */
    double sum = 0, to = 0;
    CHECK_INT((int)number_of(built, "steps"), count);
    check_known(built, "median", count > 0, median(values, count));
    count = values_of(records, "ratio", NULL, values);
    for (int i = 0; i < count; i++)
        sum += values[i];
    EACH_OF(part, json_object_get(summary, "gains")) {
        int steps = 0;
        CHECK(number_of(part, "from") == to);
        to = json_is_null(json_object_get(part, "to")) ? INFINITY : number_of(part, "to");
        for (int k = 0; k < count; k++)
            steps += values[k] >= number_of(part, "from") && values[k] < to;
        CHECK_INT((int)number_of(part, "steps"), steps);
    }
    CHECK(isinf(to));
    check_known(summary, "gain_mean", count > 0, sum / count);
    check_known(summary, "gain_median", count > 0, median(values, count));
}

static void check_solve(const json_t *records, const json_t *got)
{
    static double values[RECORDS_MOST];
    int count = 0;
    EACH_OF(record, records)
        if (number_of(record, "solve_us") > 0)
            values[count++] = number_of(record, "solve_us");
    if (count == 0) {
        CHECK(json_is_null(json_object_get(got, "max")));
        return;
    }
    check_near("median", json_object_get(got, "median"), median(values, count));
    check_near("max", json_object_get(got, "max"), values[count - 1]);
    int covered = 0; /* the smallest that 99 % of all don't exceed */
    while (covered < count && (covered + 1) * 100 < count * 99)
        covered++;
    check_near("p99", json_object_get(got, "p99"), values[covered]);
}

/* What a ring has where nobody runs beside it; 0: it is not known what it has at all. */
static double alone_of(const json_t *record)
{
    return number_of(record, "gbps") == 0
               ? 0
               : fmax(number_of(record, "gbps"), number_of(record, "alone_gbps"));
}

static double best_of(const json_t *records, const json_t *like)
{
    double best = 0;
    EACH_OF(record, records)
        if (has_ring(record) && number_of(record, "n_nodes") == number_of(like, "n_nodes") &&
            number_of(record, "gpus") == number_of(like, "gpus") &&
            strcmp(text_of(record, "node_class"), text_of(like, "node_class")) == 0)
            best = fmax(best, alone_of(record));
    return best;
}

struct plain_node {
    char name[8];
    int steps, failed;
    double share, top;
};

/* Not where the step or the policy is the reason. */
static bool blames(const json_t *record)
{
    static const char *const others[] = {"policy",   "no gain",    "no GPU",       "job script",
                                         "own GPUs", "shared GPU", "unknown NCCL", "het step",
                                         "trial",    "evidence"};
    for (size_t i = 0; i < COUNT(others); i++)
        if (is(record, "reason_class", others[i]))
            return false;
    return true;
}

static void count_node(const json_t *records, const double *best, struct plain_node *node)
{
    size_t i;
    json_t *record;
    json_array_foreach((json_t *)records, i, record)
    {
        if (!tccl_hosts_contain(text_of(record, "nodes"), node->name))
            continue;
        bool fell = is(record, "state", "failed") || has_ring(record);
        node->failed += fell && !is(record, "reason", "") && blames(record) &&
                        is(record, "reason_node", node->name);
        if (!has_ring(record) || number_of(record, "gbps") == 0)
            continue;
        node->steps++;
        node->share += alone_of(record) / best[i];
        node->top = fmax(node->top, alone_of(record) / best[i]);
    }
}

/* By what it stands out among all, which are NODES. */
static const char *stands_out(const struct plain_node *nodes, const struct plain_node *node)
{
    double failed = 0, steps = 0;
    for (const struct plain_node *each = nodes; each < nodes + NODES; each++) {
        failed += each != node ? each->failed : 0;
        steps += each != node ? each->failed + each->steps : 0;
    }
    bool often = steps == 0 || node->failed * steps > 2 * failed * (node->failed + node->steps);
    return node->steps > 4 && node->top < 0.95 ? "slow"
           : node->failed > 2 && often         ? "failures"
                                               : "";
}

static void check_nodes(const json_t *records, const json_t *got)
{
    static double best[RECORDS_MOST];
    struct plain_node nodes[NODES] = {0};
    size_t i, known = 0;
    json_t *json;
    json_array_foreach((json_t *)records, i, json) best[i] = best_of(records, json);
    for (int n = 0; n < NODES; n++) {
        snprintf(nodes[n].name, sizeof(nodes[n].name), "n%d", n + 1);
        count_node(records, best, &nodes[n]);
        known += nodes[n].steps || nodes[n].failed;
    }
    CHECK_INT((long long)json_array_size(got), (long long)known);
    double before = -1;
    bool out = true;
    json_array_foreach((json_t *)got, i, json)
    {
        const struct plain_node *node = &nodes[atoi(text_of(json, "node") + 1) - 1];
        CHECK_INT((int)number_of(json, "steps"), node->steps);
        CHECK_INT((int)number_of(json, "failed"), node->failed);
        CHECK_STR(text_of(json, "stands_out"), stands_out(nodes, node));
        if (!*text_of(json, "stands_out") && out) {
            before = -1;
            out = false;
        }
        CHECK_INT(*text_of(json, "stands_out") != 0, out);
        double share = node->steps ? node->share / node->steps : 2; /* none stand last */
        check_known(json, "share", node->steps, share);
        CHECK(share >= before - 1e-9);
        before = share;
    }
}

/* What a step's rings have, or NCCL's own where these are as fast; 0: not known. */
static double gbps_of(const json_t *record)
{
    double gbps = number_of(record, "gbps");
    if (has_ring(record))
        return gbps;
    bool as_fast = is(record, "state", "left") && gbps == 0 &&
                   !is(record, "reason_class", "trial") && !is(record, "reason_class", "evidence");
    return as_fast ? number_of(record, "baseline_gbps") : 0;
}

/* What steps lost to those beside them, and to the GPUs that they got. */
static void check_losses(const json_t *records, const json_t *summary)
{
    const json_t *sharing = json_object_get(summary, "sharing"),
                 *placement = json_object_get(summary, "placement");
    double beside = 0, beside_alone = 0, alone = 0, placed = 0;
    int shared = 0, known = 0, unknown = 0;
    EACH_OF(record, records) {
        double gbps = gbps_of(record), most = fmax(gbps, number_of(record, "alone_gbps"));
        if (gbps == 0)
            continue;
        if (number_of(record, "neighbours") > 0 && number_of(record, "alone_gbps") > 0) {
            shared++;
            beside += gbps;
            beside_alone += most;
        }
        if (number_of(record, "placed_gbps") == 0) {
            unknown++;
            continue;
        }
        known++;
        alone += most;
        placed += fmax(number_of(record, "placed_gbps"), most);
    }
    CHECK_INT((int)number_of(sharing, "steps"), shared);
    CHECK_INT((int)number_of(placement, "steps"), known);
    CHECK_INT((int)number_of(placement, "unknown"), unknown);
    check_known(sharing, "gbps", shared > 0, beside / shared);
    check_known(sharing, "alone_gbps", shared > 0, beside_alone / shared);
    check_known(placement, "alone_gbps", known > 0, alone / known);
    check_known(placement, "placed_gbps", known > 0, placed / known);
}

/* What was achieved, by the plain way: record by record, for each group that there is. */

static bool is_trial_or_left(const json_t *record)
{
    return is(record, "achieved_with", "own") &&
           (is(record, "state", "left") || is(record, "state", "failed"));
}

static bool is_steered(const json_t *record)
{
    return is(record, "achieved_with", "rings") && is(record, "state", "planned") &&
           is(record, "built", "yes");
}

/* Figures of it that can be true. */
static bool is_measured(const json_t *record)
{
    return number_of(record, "achieved_share") > 0 &&
           (is_steered(record) || is_trial_or_left(record));
}

static double size_class(const json_t *record)
{
    double from = number_of(record, "achieved_from");
    return from < 16 << 20 ? 4 << 20 : from < 64 << 20 ? 16 << 20 : 64 << 20;
}

static bool is_in(const json_t *group, const json_t *record)
{
    return is_measured(record) && is(record, "node_class", text_of(group, "node_class")) &&
           number_of(record, "n_nodes") == number_of(group, "n_nodes") &&
           number_of(record, "gpus") == number_of(group, "gpus") &&
           size_class(record) == number_of(group, "from");
}

/* The means of the logarithms of each job's steps of that kind. Returns how many jobs. */
static int jobs_of(const json_t *records, const json_t *group, bool (*kind)(const json_t *),
                   double values[static RECORDS_MOST], int *steps)
{
    static struct {
        double job, uid, sum;
        int steps;
    } jobs[RECORDS_MOST];
    int n = 0;
    *steps = 0;
    EACH_OF(record, records) {
        int at = 0;
        if (!kind(record) || !is_in(group, record))
            continue;
        while (at < n && (jobs[at].job != number_of(record, "job") ||
                          jobs[at].uid != number_of(record, "uid")))
            at++;
        if (at == n)
            memset(&jobs[n++], 0, sizeof(*jobs));
        jobs[at].job = number_of(record, "job");
        jobs[at].uid = number_of(record, "uid");
        jobs[at].sum += log(number_of(record, "achieved_gbps"));
        jobs[at].steps++;
        (*steps)++;
    }
    for (int k = 0; k < n; k++)
        values[k] = jobs[k].sum / jobs[k].steps;
    return n;
}

static double mean_of(const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum / count;
}

static double variance_of(const double *values, int count)
{
    double mean = mean_of(values, count), sum = 0;
    for (int i = 0; i < count; i++)
        sum += pow(values[i] - mean, 2);
    return sum / (count - 1);
}

static void check_arm(const json_t *arm, const double *values, int jobs, int steps)
{
    CHECK_INT((int)number_of(arm, "jobs"), jobs);
    CHECK_INT((int)number_of(arm, "steps"), steps);
    check_known(arm, "gbps", jobs, exp(mean_of(values, jobs)));
}

/* The word that follows from the bounds, and that what is needed would do. */
static void check_verdict(const json_t *group, int rings, int own, double low, double high)
{
    const char *word = text_of(group, "verdict");
    const json_t *needs = json_object_get(group, "needs");
    bool enough = rings >= 5 && own >= 5;
    const char *wanted = !enough                                ? "unknown"
                         : low > 1                              ? "faster"
                         : high < 1                             ? "slower"
                         : high < exp(0.03) && low > exp(-0.03) ? "as fast"
                                                                : "unknown";
    CHECK_STR(word, wanted);
    CHECK(strcmp(word, "unknown") == 0 ||
          (number_of(needs, "rings") == 0 && number_of(needs, "own") == 0));
    if (!enough) {
        CHECK_INT((int)number_of(needs, "rings"), rings < 5 ? 5 - rings : 0);
        CHECK_INT((int)number_of(needs, "own"), own < 5 ? 5 - own : 0);
    } else if (strcmp(word, "unknown") == 0) {
        CHECK(number_of(needs, "rings") >= 1 && number_of(needs, "own") >= 1);
    }
}

static void check_group(const json_t *records, const json_t *group)
{
    static double rings[RECORDS_MOST], own[RECORDS_MOST];
    int ring_steps, own_steps, trials = 0;
    int r = jobs_of(records, group, is_steered, rings, &ring_steps);
    int o = jobs_of(records, group, is_trial_or_left, own, &own_steps);
    check_arm(json_object_get(group, "rings"), rings, r, ring_steps);
    check_arm(json_object_get(group, "own"), own, o, own_steps);
    EACH_OF(record, records)
        trials +=
            is_in(group, record) && is_trial_or_left(record) && is(record, "reason_class", "trial");
    CHECK_INT((int)number_of(group, "trials"), trials);
    int users = 0;
    for (int uid = 1000; uid < 1003; uid++) { /* all that there are */
        bool has = false;
        EACH_OF(record, records)
            has = has || (is_in(group, record) && number_of(record, "uid") == uid);
        users += has;
    }
    CHECK_INT((int)number_of(group, "users"), users);
    if (r == 0 || o == 0) {
        CHECK(json_is_null(json_object_get(group, "gain")));
        check_verdict(group, r, o, 0, INFINITY);
        return;
    }
    double gain = mean_of(rings, r) - mean_of(own, o);
    check_near("gain", json_object_get(group, "gain"), exp(gain));
    if (r < 2 || o < 2) {
        CHECK(json_is_null(json_object_get(group, "low")));
        CHECK(json_is_null(json_object_get(group, "high")));
        check_verdict(group, r, o, 0, INFINITY);
        return;
    }
    double a = variance_of(rings, r) / r, b = variance_of(own, o) / o;
    double freedom = pow(a + b, 2) / (a * a / (r - 1) + b * b / (o - 1));
    double half = tccl_student((int)freedom) * sqrt(a + b);
    check_near("low", json_object_get(group, "low"), exp(gain - half));
    check_near("high", json_object_get(group, "high"), exp(gain + half));
    check_verdict(group, r, o, exp(gain - half), exp(gain + half));
}

/* Where the profile is said to be no longer true: by the last 16 that were promised the same. */
static void check_stale(const json_t *records, const json_t *group)
{
    const json_t *stale = json_object_get(group, "stale");
    const json_t *latest[16];
    double values[16], promised = 0;
    int seen = 0, count = 0;
    json_t *record;
    for (size_t i = json_array_size(records); i > 0 && seen < 16; i--) {
        record = json_array_get(records, i - 1);
        if (!is_in(group, record) || !is_steered(record) || number_of(record, "neighbours") != 0 ||
            number_of(record, "later") != 0 || number_of(group, "from") < 64 << 20)
            continue;
        promised = seen ? promised : number_of(record, "gbps");
        seen++;
        if (fabs(number_of(record, "gbps") - promised) > 0.01 * promised)
            continue;
        latest[count] = record;
        values[count++] = number_of(record, "achieved_share");
    }
    if (count < 5 || median(values, count) >= 0.8) {
        CHECK(json_is_null(stale));
        return;
    }
    CHECK_INT((int)number_of(stale, "steps"), count);
    check_near("stale", json_object_get(stale, "share"), median(values, count));
    for (int i = 0; i < count; i++)
        if (number_of(latest[i], "achieved_share") < 0.8)
            CHECK(strstr(text_of(stale, "nodes"), text_of(latest[i], "nodes")) ||
                  strstr(text_of(stale, "nodes"), "…"));
}

/* The share of their time, by account, or by user where there is none. Returns how many steps. */
static int check_account(const json_t *records, const json_t *account)
{
    int steps = 0, few = 0;
    double share = 0, bytes = 0;
    const json_t *uid = json_object_get(account, "uid");
    EACH_OF(record, records) {
        double part = number_of(record, "sent_share");
        if (!(number_of(record, "achieved_gbps") > 0) || !(part > 0) ||
            !is(record, "account", text_of(account, "account")) ||
            (!json_is_null(uid) && json_number_value(uid) != number_of(record, "uid")))
            continue;
        steps++;
        few += part < 0.05;
        share += part;
        bytes += number_of(record, "sent_bytes");
    }
    CHECK(steps > 0 && json_is_null(uid) == (*text_of(account, "account") != '\0'));
    CHECK_INT((int)number_of(account, "steps"), steps);
    CHECK_INT((int)number_of(account, "small"), few);
    check_near("share", json_object_get(account, "share"), share / steps);
    check_near("bytes", json_object_get(account, "bytes"), bytes);
    return steps;
}

static void check_achieved(const json_t *records, const json_t *achieved)
{
    static double shares[RECORDS_MOST];
    int rings = 0, own = 0, in_groups = 0, in_accounts = 0, timed = 0;
    EACH_OF(record, records) {
        if (is_measured(record) && is_steered(record))
            shares[rings++] = number_of(record, "achieved_share");
        own += is_measured(record) && is_trial_or_left(record);
        timed += number_of(record, "achieved_gbps") > 0 && number_of(record, "sent_share") > 0;
    }
    CHECK_INT((int)number_of(achieved, "rings"), rings);
    CHECK_INT((int)number_of(achieved, "own"), own);
    check_known(achieved, "share", rings > 0, median(shares, rings));
    EACH_OF(group, json_object_get(achieved, "groups")) {
        check_group(records, group);
        check_stale(records, group);
        in_groups += (int)(number_of(json_object_get(group, "rings"), "steps") +
                           number_of(json_object_get(group, "own"), "steps"));
    }
    CHECK_INT(in_groups, rings + own);
    EACH_OF(group, json_object_get(achieved, "accounts"))
        in_accounts += check_account(records, group);
    CHECK_INT(in_accounts, timed);
}

static int64_t midnight(int64_t when)
{
    time_t time = (time_t)when;
    struct tm tm;
    localtime_r(&time, &tm);
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    tm.tm_isdst = -1;
    return (int64_t)mktime(&tm);
}

static int64_t full_hour(int64_t when)
{
    return when / 3600 * 3600;
}

/* Each span against all records that belong to it. Returns how many steps they have. */
static int check_spans(const json_t *records, const json_t *got, int64_t (*start_of)(int64_t when))
{
    int total = 0;
    int64_t before = -1;
    EACH_OF(day, got) {
        int steps = 0, planned = 0, built = 0, failed = 0, rings = 0;
        double sum = 0;
        int64_t start = (int64_t)number_of(day, "start");
        CHECK(start > before);
        before = start;
        EACH_OF(record, records) {
            if (start_of((int64_t)number_of(record, "start")) != start)
                continue;
            bool ring = has_ring(record) && number_of(record, "ratio") > 0;
            steps++;
            planned += is(record, "state", "planned");
            built += is(record, "state", "planned") && is(record, "built", "yes");
            failed += is(record, "state", "failed");
            rings += ring;
            sum += ring ? number_of(record, "ratio") : 0;
        }
        CHECK(steps > 0);
        CHECK_INT((int)number_of(day, "steps"), steps);
        CHECK_INT((int)number_of(day, "planned"), planned);
        CHECK_INT((int)number_of(day, "built"), built);
        CHECK_INT((int)number_of(day, "failed"), failed);
        check_known(day, "gain_mean", rings > 0, sum / rings);
        total += steps;
    }
    return total;
}

/* All steps of the 24 hours up to that of the last one. */
static void check_hours(const json_t *records, const json_t *got)
{
    int64_t last = 0;
    int steps = 0;
    EACH_OF(record, records)
        if (number_of(record, "start") > (double)last)
            last = (int64_t)number_of(record, "start");
    EACH_OF(record, records)
        steps += full_hour((int64_t)number_of(record, "start")) > full_hour(last) - 24 * 3600;
    CHECK_INT(check_spans(records, got, full_hour), steps);
}

/* Returns how many steps were summed up. */
static int check_summary(struct tccl_records *records, const json_t *filter, int64_t uid)
{
    cleanup_json json_t *found = find_records(records, json_deep_copy(filter), uid, 1 << 22);
    cleanup_json json_t *summary = summary_of(path, filter, uid, ERR);
    int failures = check_failures;
    CHECK_STR(check_err.text, "");
    CHECK_INT((int)number_of(summary, "steps"), (int)json_array_size(found));
    check_words(found, json_object_get(summary, "states"), "state");
    check_words(found, json_object_get(summary, "built"), "built");
    check_reasons(found, json_object_get(summary, "reasons"));
    check_gains(found, summary);
    check_solve(found, json_object_get(summary, "solve_us"));
    check_nodes(found, json_object_get(summary, "nodes"));
    check_losses(found, summary);
    CHECK_INT(check_spans(found, json_object_get(summary, "days"), midnight),
              (long long)json_array_size(found));
    check_hours(found, json_object_get(summary, "hours"));
    check_achieved(found, json_object_get(summary, "achieved"));
    if (check_failures > failures) {
        cleanup_free char *text = json_dumps(filter, 0);
        fprintf(stderr, "filter %s, uid %lld\n", text, (long long)uid);
    }
    return (int)json_array_size(found);
}

/* Random stores */

#define PICK(array) (array[rand() % (int)COUNT(array)])

static const char *const states[] = {"planned", "planned", "off", "left", "failed"};
static const char *const builds[] = {"not used", "unknown", "applied", "applied", "differs"};
static const char *const reasons[] = {
    "n2: policy night forbids rings",
    "",
    "",
    "n3: no GPU in this step",
    "n4: no plan came from n5: no answer within 12 ms (n5:8517)",
    "n6: n6: SLURM_STEP_NODELIST is not set",
    "policy: 2 nodes in this step, MinNodes is 4",
    "n1: tccld gave no answer within 500 ms",
    "the moon is full",
    "n99: connection refused by n99:8517: is its tccld running?",
};
/* In no order of theirs: nothing is read out of a text. */
static const char *const at_nodes[] = {"", "n1", "n2", "n4", "n6", "n99", "n0", "n 1"};
static const char *const classes[] = {"policy",     "no GPU",  "unknown NCCL",      "trial",
                                      "no profile", "version", "of next year",      "other",
                                      "job script", "",        "no answer in time", "evidence"};
static const char *const node_lists[] = {"n1",      "n2",     "n[1-2]",   "n[1-4]",
                                         "n[5-12]", "n[3,7]", "n1,n12",   "n[1-12]",
                                         "n[9-10]", "",       "n[2-3,6]", "n[11-12]"};
static const char *const accounts[] = {"physics", "", "bio"};
static const char *const kinds[] = {"0123abcd:0-3", "0123abcd:0-3", ""};
static const char *const partitions[] = {"gpu", "cpu", ""};

static json_t *random_record(int jobs, int64_t start)
{
    const char *state = PICK(states);
    int gpus = 4 << rand() % 2;
    double gbps = rand() % 4 ? 1 + rand() % 500 / 10.0 : 0.0;
    bool beside = rand() % 3 == 0; /* other steps */
    const char *reason = strcmp(state, "planned") ? PICK(reasons) : "";
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:s, s:I, s:f, s:f, s:i, s:i, s:s, "
                     "s:s, s:s, s:s, s:s, s:i, s:f, s:f}",
                     "account", PICK(accounts), "node_class", PICK(kinds), "cluster", "c", "job",
                     1 + rand() % jobs, "step", rand() % 2, "uid", 1000 + rand() % 3, "reporter",
                     rand() % 3, "state", state, "nodes", PICK(node_lists), "start",
                     (json_int_t)(start + rand() % 400000), "gbps", gbps, "baseline_gbps",
                     rand() % 4 ? 1 + rand() % 80 / 10.0 : 0.0, "solve_us",
                     rand() % 3 ? rand() % 100000 : 0, "gpus", gpus, "reason", reason,
                     "reason_class", *reason ? PICK(classes) : "", "reason_node",
                     *reason ? PICK(at_nodes) : "", "partition", PICK(partitions), "policy",
                     rand() % 2 ? "big" : "", "neighbours", beside ? 1 + rand() % 4 : 0,
                     "alone_gbps", beside && rand() % 4 ? gbps + rand() % 200 / 10.0 : 0.0,
                     "placed_gbps", rand() % 3 ? rand() % 800 / 10.0 : 0.0);
}

/* What was measured; now and then what can't be. */
static void add_figures(const json_t *record, json_t *built)
{
    static const char *const with[] = {"rings", "rings", "own", "own", "", "hands"};
    static const json_int_t from[] = {1, 4 << 20, 64 << 20, 64 << 20, INT64_MAX};
    const char *of = PICK(with);
    double foretold = number_of(record, strcmp(of, "rings") ? "baseline_gbps" : "gbps");
    json_object_update_new(
        built,
        json_pack("{s:f, s:s, s:I, s:i, s:I, s:f, s:f}", "achieved_gbps",
                  rand() % 8 ? foretold * (0.5 + rand() % 50 / 60.0) : 1e-3 * (rand() % 10000000),
                  "achieved_with", of, "achieved_from", PICK(from), "samples", 1 + rand() % 100,
                  "sent_bytes", (json_int_t)1 + rand(), "sent_share",
                  rand() % 4 ? rand() % 300 / 1000.0 : 1.0, "nccl_gbps",
                  rand() % 2 ? foretold : 0.0));
}

/* Of a record, mostly of one that is or will be there; else of another start. */
static json_t *random_confirmation(const json_t *record)
{
    int job = (int)number_of(record, "job");
    json_int_t start = json_integer_value(json_object_get(record, "start")) + !(rand() % 5);
    json_t *built =
        json_pack("{s:s, s:i, s:i, s:s, s:s, s:s, s:I}", "cluster", "c", "job", job, "step",
                  (int)number_of(record, "step"), "built", PICK(builds), "built_reason",
                  PICK(reasons), "built_node", PICK(at_nodes), "start", start);
    if (rand() % 4)
        add_figures(record, built);
    return built;
}

/* Records and confirmations, shuffled, some twice. */
static void fill(struct tccl_records *records, int count, int64_t start)
{
    cleanup_json json_t *all = json_array();
    for (int i = 0; i < count; i++) {
        json_t *record = random_record(count, start);
        json_array_append_new(all, record);
        for (int j = rand() % 3; j > 0; j--)
            json_array_append_new(all, random_confirmation(record));
        if (rand() % 4 == 0)
            json_array_append(all, record);
    }
    for (size_t i = json_array_size(all); i > 1; i--) {
        size_t other = (size_t)rand() % i;
        json_t *moved = json_incref(json_array_get(all, i - 1));
        json_array_set(all, i - 1, json_array_get(all, other));
        json_array_set_new(all, other, moved);
    }
    for (size_t i = 0; i < json_array_size(all); i++)
        put_record(records, json_incref(json_array_get(all, i)));
}

static json_t *random_filter(int64_t start)
{
    json_t *filter = json_object();
    if (rand() % 3 == 0)
        json_object_set_new(filter, "start", json_integer(start + rand() % 200000));
    if (rand() % 3 == 0)
        json_object_set_new(filter, "end", json_integer(start + 200000 + rand() % 200000));
    if (rand() % 4 == 0)
        json_object_set_new(filter, "users", json_pack("[i, i]", 1000, 1001 + rand() % 2));
    if (rand() % 5 == 0)
        json_object_set_new(filter, "users", json_pack("[i]", 1001));
    if (rand() % 4 == 0)
        json_object_set_new(filter, "nodes", json_pack("[s, s]", "n3", "n11"));
    if (rand() % 4 == 0)
        json_object_set_new(filter, "states", json_pack("[s, s]", "partly", "failed"));
    if (rand() % 4 == 0)
        json_object_set_new(filter, "partitions", json_pack("[s]", "gpu"));
    if (rand() % 4 == 0)
        json_object_set_new(filter, "policies", json_pack("[s]", "big"));
    if (rand() % 5 == 0)
        json_object_set_new(filter, "classes", json_pack("[s, s]", "", "no GPU"));
    if (rand() % 6 == 0)
        json_object_set_new(filter, "jobs", json_pack("[{s:i}, {s:i}]", "job", 3, "job", 7));
    return filter;
}

static void test_random(int count)
{
    int64_t start = 1700000000 + rand() % 30000000;
    int steps = 0;
    owned(records) struct tccl_records *records = new_store_at(path);
    cleanup_json json_t *everything = json_object();
    fill(records, count, start);
    for (int round = 0; round < 3; round++) {
        steps += check_summary(records, everything, -1);
        for (int i = 0; i < 6; i++) {
            cleanup_json json_t *filter = random_filter(start);
            check_summary(records, filter, rand() % 2 ? -1 : 1000 + rand() % 3);
        }
        CHECK(tccl_records_purge(records, start + 100000 * (round + 1), 0, count / 5, NULL) >= 0);
        fill(records, count / 10, start);
    }
    CHECK(steps > count / 2);
}

/* A job with the ring or with NCCL's own of so many GB/s, of a class of its own. */
static void put_job(struct tccl_records *records, int job, const char *class, bool ring,
                    double gbps)
{
    json_t *record = step_record(job, ring ? "planned" : "left", 1700000000 + job);
    json_object_update_new(record,
                           json_pack("{s:s, s:s, s:f, s:f}", "node_class", class, "reason_class",
                                     ring ? "" : "trial", "gbps", 12.0, "baseline_gbps", 8.0));
    if (!ring)
        json_object_set_new(record, "reason", json_string("a trial"));
    put_record(records, record);
    json_t *built = built_record(job, ring ? "applied" : "not used", "", 1700000000 + job);
    json_object_update_new(built,
                           json_pack("{s:f, s:s, s:i}", "achieved_gbps", gbps, "achieved_with",
                                     ring ? "rings" : "own", "sent_bytes", 1));
    put_record(records, built);
}

/* What is known, and when; a job of many steps is one. */
TEST(verdicts)
{
    static const struct {
        const char *class, *verdict;
        int rings, own;
        double gain, spread; /* of the logarithms, in turns up and down */
    } cases[] = {
        {"faster", "faster", 20, 6, 1.4, 0.05},    {"slower", "slower", 20, 6, 0.8, 0.05},
        {"alike", "as fast", 30, 30, 1.002, 0.01}, {"wide", "unknown", 20, 6, 1.1, 0.4},
        {"few", "unknown", 20, 4, 2, 0.01},        {"none", "unknown", 3, 0, 1, 0.01},
    };
    owned(records) struct tccl_records *records = new_store_at(path);
    int job = 1, trials = 0;
    for (int i = 0; i < (int)COUNT(cases); i++) {
        trials += cases[i].own;
        for (int k = 0; k < cases[i].rings + cases[i].own; k++) {
            bool ring = k < cases[i].rings;
            put_job(records, job++, cases[i].class, ring,
                    8 * (ring ? cases[i].gain : 1) * exp(cases[i].spread * (k % 3 - 1)));
        }
    }
    for (int step = 1; step < 40; step++) { /* of one job, which is twice as fast as the others */
        json_t *record = step_record(1, "planned", 1700000001 + step);
        json_object_update_new(record, json_pack("{s:s, s:f, s:i}", "node_class", "faster", "gbps",
                                                 12.0, "step", step));
        put_record(records, record);
        json_t *built = built_record(1, "applied", "", 1700000001 + step);
        json_object_update_new(built,
                               json_pack("{s:f, s:s, s:i, s:i}", "achieved_gbps", 22.0,
                                         "achieved_with", "rings", "sent_bytes", 1, "step", step));
        put_record(records, built);
    }
    cleanup_json json_t *everything = json_object();
    CHECK(check_summary(records, everything, -1) > 100);
    cleanup_json json_t *summary = summary_of(path, NULL, -1, ERR);
    const json_t *achieved = json_object_get(summary, "achieved"), *group;
    CHECK_INT((int)number_of(achieved, "trials"), trials);
    CHECK_INT((int)json_array_size(json_object_get(achieved, "groups")), (int)COUNT(cases));
    for (int i = 0; i < (int)COUNT(cases); i++) {
        size_t k = 0;
        while ((group = json_array_get(json_object_get(achieved, "groups"), k)) &&
               !is(group, "node_class", cases[i].class))
            k++;
        CHECK_STR(text_of(group, "verdict"), cases[i].verdict);
        CHECK_INT((int)number_of(json_object_get(group, "rings"), "jobs"), cases[i].rings);
    }
}

/* A profile that is no longer true, until what a new measurement promises was kept. */
TEST(stale)
{
    static const struct {
        double promised, share;
        int steps;
        bool said, later; /* others began beside them */
    } turns[] = {{10, 0.95, 20, false}, {10, 0.6, 12, false, true}, {10, 0.6, 7, false},
                 {10, 0.6, 4, true},    {6, 0.97, 4, false},        {6, 0.97, 30, false},
                 {6, 0.7, 4, false},    {6, 0.7, 9, true}};
    owned(records) struct tccl_records *records = new_store_at(path);
    cleanup_json json_t *everything = json_object();
    int job = 1;
    for (int i = 0; i < (int)COUNT(turns); i++) {
        for (int k = 0; k < turns[i].steps; k++, job++) {
            json_t *record = step_record(job, "planned", 1700000000 + job);
            json_object_update_new(record, json_pack("{s:s, s:f}", "node_class", "0123abcd:0-3",
                                                     "gbps", turns[i].promised));
            put_record(records, record);
            json_t *built = built_record(job, "applied", "", 1700000000 + job);
            json_object_update_new(built,
                                   json_pack("{s:f, s:s, s:i, s:i, s:i}", "achieved_gbps",
                                             turns[i].promised * turns[i].share, "achieved_with",
                                             "rings", "achieved_from", 64 << 20, "sent_bytes", 1,
                                             "later", turns[i].later));
            put_record(records, built);
        }
        check_summary(records, everything, -1);
        cleanup_json json_t *summary = summary_of(path, NULL, -1, ERR);
        const json_t *groups = json_object_get(json_object_get(summary, "achieved"), "groups");
        const json_t *stale = json_object_get(json_array_get(groups, 0), "stale");
        CHECK_INT(json_is_object(stale), turns[i].said);
        CHECK(!turns[i].said || is(stale, "nodes", "n[1-2]"));
    }
}

/* Users are shown their own, whatever they ask for. */
TEST(users)
{
    owned(records) struct tccl_records *records = new_store_at(path);
    fill(records, 100, 1700000000);
    cleanup_json json_t *own = json_pack("{s:[i]}", "users", 1001);
    cleanup_json json_t *wanted = json_pack("{s:[i, i]}", "users", 1000, 1002);
    cleanup_json json_t *all = summary_of(path, own, -1, NULL);
    cleanup_json json_t *asked = summary_of(path, NULL, 1001, NULL);
    cleanup_json json_t *others = summary_of(path, wanted, 1001, NULL);
    CHECK(number_of(all, "steps") > 0);
    CHECK(json_equal(all, asked));
    CHECK_INT((int)number_of(others, "steps"), 0);
    CHECK_INT((int)json_array_size(json_object_get(others, "nodes")), 0);
    CHECK_INT((int)json_object_size(json_object_get(others, "states")), 0);
    cleanup_json json_t *later = json_pack("{s:i}", "start", 2000000000);
    cleanup_json json_t *none = summary_of(path, later, -1, NULL);
    CHECK_INT((int)number_of(none, "steps"), 0);
    CHECK_INT((int)number_of(none, "end"), 2000000000); /* not before the start */
}

/* At most 20 nodes, and a file that is not there is said. */
TEST(bounds)
{
    struct tccl_records *records = new_store_at(path);
    cleanup_json json_t *record = random_record(1, 1700000000);
    json_object_update_new(
        record, json_pack("{s:s, s:s, s:f}", "nodes", "m[1-30]", "state", "planned", "gbps", 2.0));
    put_record(records, json_incref(record));
    cleanup_json json_t *summary = summary_of(path, NULL, -1, NULL);
    CHECK_INT((int)json_array_size(json_object_get(summary, "nodes")), 20);
    tccl_records_close(records);
    unlink(path);
    CHECK_SAYS(summary_of(path, NULL, -1, ERR) == NULL, path);
}

SETUP
{
    snprintf(path, sizeof(path), "%s", check_at("records.db"));
    setenv("TZ", "Europe/Berlin", 1); /* a day of 23 or 25 hours now and then */
}

TEST(rounds)
{
    for (int round = 0; round < 3; round++)
        test_random(40 + rand() % 150);
}
