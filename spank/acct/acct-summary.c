/* acct-summary.c: the summary of many records, for a terminal and as a page. */
#include "acct/acct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "draw/doc.h"
#include "draw/html.h"
#include "draw/svg.h"
#include "draw/term.h"

enum { DAY = 86400, LEAST_COLUMNS = 72, WORDS = 33, NAME = 64, REASON = 512, LEAD = 512 };

/* A count or a time, clamped to 0 … 10^12, so that sums can't overflow. */
static long long count_of(const json_t *object, const char *name)
{
    const json_int_t most = 1000000000000;
    json_int_t count = tccl_number_of(object, name);
    return count < 0 ? 0 : count > most ? most : count;
}

static double share(double part, double all)
{
    return all > 0 ? part / all : 0;
}

static void format_time(json_int_t when, const char *format, char *text, size_t size)
{
    acct_time_print((time_t)when, time(NULL), format, text, size);
}

/* ---- tables ---- */

struct word {
    const char *word; /* borrowed */
    json_int_t steps;
};

/* Words and their numbers of steps, most first. Returns how many words. */
static int sort_words(const json_t *words, struct word list[static WORDS])
{
    int count = 0;
    const char *word;
    json_t *value;
    json_object_foreach((json_t *)words, word, value)
    {
        int at = count < WORDS ? count++ : WORDS;
        for (; at > 0 && list[at - 1].steps < json_integer_value(value); at--)
            if (at < WORDS)
                list[at] = list[at - 1];
        if (at < WORDS)
            list[at] = (struct word){word, json_integer_value(value)};
    }
    return count;
}

/* A heading and, of any rows, their table; else a line on a page, and nothing on a terminal.
 * Returns whether there is something to end. */
static bool begin_table(struct tccl_doc *doc, const char *heading, bool any, const char *none,
                        const char *class, const struct tccl_doc_column *columns, int n)
{
    if (!any && !doc->html)
        return false;
    tccl_doc_begin(doc, heading, NULL);
    if (any)
        tccl_doc_table(doc, class, NULL, columns, n);
    else
        tccl_doc_line(doc, "%s", none);
    return true;
}

static void end_table(struct tccl_doc *doc, bool any)
{
    if (any)
        tccl_doc_table_end(doc);
    tccl_doc_end(doc);
}

static void put_words(struct tccl_doc *doc, const char *heading, const char *what,
                      const json_t *words, long long all)
{
    const struct tccl_doc_column columns[] = {{what, -18}, {"Steps", 9}, {"Share", 9}};
    struct word list[WORDS];
    int count = sort_words(words, list);
    if (!begin_table(doc, heading, count > 0, "No data yet.", "", columns, 3))
        return;
    for (int i = 0; i < count; i++) {
        double part = share((double)list[i].steps, (double)all);
        tccl_doc_text(doc, list[i].word, NAME);
        tccl_doc_cell(doc, "%lld", (long long)list[i].steps);
        tccl_doc_cell(doc, "%.1f %%", 100 * part);
        tccl_doc_bar(doc, part);
        tccl_doc_row(doc);
    }
    end_table(doc, count > 0);
}

static void put_reasons(struct tccl_doc *doc, const json_t *reasons)
{
    static const struct tccl_doc_column columns[] = {{"Class of reason", -18},
                                                     {"Steps", 9},
                                                     {"Failed", 11},
                                                     {"Last", 18},
                                                     {"The latest one", 0}};
    size_t i;
    json_t *reason;
    bool any = json_array_size(reasons) > 0;
    if (!begin_table(doc, "Why there was no ring", any,
                     "No step has a reason: every step that asked for a ring got one.", "four",
                     columns, 5))
        return;
    json_array_foreach(reasons, i, reason)
    {
        char last[64];
        format_time(count_of(reason, "last"), "%Y-%m-%d %H:%M", last, sizeof(last));
        tccl_doc_text(doc, tccl_text_of(reason, "class"), NAME);
        tccl_doc_cell(doc, "%lld", count_of(reason, "steps"));
        tccl_doc_cell(doc, "%lld", count_of(reason, "failed"));
        tccl_doc_cell(doc, "%s", last);
        tccl_doc_text(doc, tccl_text_of(reason, "example"), REASON);
        tccl_doc_row(doc);
    }
    end_table(doc, any);
}

static void put_nodes(struct tccl_doc *doc, const json_t *nodes)
{
    static const struct tccl_doc_column columns[] = {
        {"Node", -18}, {"Of best", 9}, {"Steps", 9}, {"Failed", 11}};
    size_t i, shown = 0;
    json_t *node;
    if (json_array_size(nodes) == 0 && !doc->html)
        return;
    tccl_doc_begin(doc, "Nodes that stand out", NULL);
    json_array_foreach(nodes, i, node)
    {
        const char *why = tccl_text_of(node, "stands_out");
        char name[2 * NAME];
        if (!*why)
            continue;
        snprintf(name, sizeof(name), "%.80s: %s", tccl_text_of(node, "node"), why);
        if (shown++ == 0) {
            tccl_doc_line(doc, "Slow: none of a node's rings, in 5 steps or more, has 95 %% of "
                               "the best one over such GPUs and as many nodes, all beside no other "
                               "step. Failures: 3 steps or more, and more than twice as many as on "
                               "other nodes, name it: their ring failed or was not built as "
                               "planned.");
            tccl_doc_table(doc, "", NULL, columns, 4);
        }
        tccl_doc_text(doc, name, sizeof(name));
        if (json_is_number(json_object_get(node, "share"))) {
            tccl_doc_cell(doc, "%.1f %%", 100 * tccl_real_of(node, "share"));
            tccl_doc_bar(doc, tccl_real_of(node, "share"));
        } else {
            tccl_doc_cell(doc, "-");
        }
        tccl_doc_cell(doc, "%lld", count_of(node, "steps"));
        tccl_doc_cell(doc, "%lld", count_of(node, "failed"));
        tccl_doc_row(doc);
    }
    if (!shown)
        tccl_doc_line(doc, "No node stands out.");
    end_table(doc, shown > 0);
}

/* What sharing nodes costs, and what placement would have given, a line each. */
static void put_losses(struct tccl_doc *doc, const json_t *summary)
{
    const json_t *sharing = json_object_get(summary, "sharing"),
                 *placement = json_object_get(summary, "placement");
    long long shared = count_of(sharing, "steps"), known = count_of(placement, "steps"),
              unknown = count_of(placement, "unknown");
    double beside = tccl_real_of(sharing, "gbps"), alone = tccl_real_of(placement, "alone_gbps"),
           placed = tccl_real_of(placement, "placed_gbps");
    if (shared + known + unknown <= 0)
        return;
    tccl_doc_begin(doc, "Sharing and placement", NULL);
    if (shared > 0)
        tccl_doc_line(doc,
                      "Sharing: %lld step%s began beside others: mean %.2f GB/s, %.2f alone (%.0f "
                      "%% lost)",
                      shared, ending(shared), beside, tccl_real_of(sharing, "alone_gbps"),
                      fmax(0, 100 * (1 - share(beside, tccl_real_of(sharing, "alone_gbps")))));
    if (known > 0)
        tccl_doc_line(doc,
                      "Placement: %lld step%s alone: mean %.2f GB/s, %.2f on their machines' best "
                      "GPUs (+%.0f %%)",
                      known, ending(known), alone, placed, 100 * (share(placed, alone) - 1));
    else if (unknown > 0)
        tccl_doc_line(doc,
                      "Placement: what the best GPUs would have given is not known (%lld step%s)",
                      unknown, ending(unknown));
    tccl_doc_end(doc);
}

/* ---- what was achieved ---- */

enum { GAIN = 240 };

/* The measured gain of a group in words, or what it takes until it is known. */
static void say_gain(const json_t *group, char text[static GAIN])
{
    const json_t *needs = json_object_get(group, "needs");
    const char *verdict = tccl_text_of(group, "verdict");
    long long more = count_of(needs, "rings"), own = count_of(needs, "own");
    char range[96] = "";
    if (json_is_number(json_object_get(group, "high")))
        snprintf(range, sizeof(range),
                 "%.2f times (%.2f to %.2f; %lld and %lld jobs of %lld user%s)",
                 tccl_real_of(group, "gain"), tccl_real_of(group, "low"),
                 tccl_real_of(group, "high"), count_of(json_object_get(group, "rings"), "jobs"),
                 count_of(json_object_get(group, "own"), "jobs"), count_of(group, "users"),
                 ending(count_of(group, "users")));
    if (strcmp(verdict, "unknown") != 0)
        snprintf(text, GAIN, "%s: %s%s NCCL's own", range, verdict,
                 strcmp(verdict, "as fast") == 0 ? " as" : " than");
    else if (more > 0 && own > 0)
        snprintf(text, GAIN,
                 "%s%snot yet known: it takes some %lld more jobs with the ring, and %lld with "
                 "NCCL's own",
                 range, *range ? ": " : "", more, own);
    else
        snprintf(text, GAIN, "not yet known: it takes %lld more job%s with %s", more + own,
                 ending(more + own), more > 0 ? "the ring" : "NCCL's own");
}

static void put_gbps(struct tccl_doc *doc, const json_t *arm)
{
    if (tccl_real_of(arm, "gbps") > 0)
        tccl_doc_cell(doc, "%.2f", tccl_real_of(arm, "gbps"));
    else
        tccl_doc_cell(doc, "-");
}

/* Rings beside NCCL's own, as they were measured. */
static void put_achieved(struct tccl_doc *doc, const json_t *achieved)
{
    static const struct tccl_doc_column columns[] = {
        {"Nodes and GPUs", -24},          {"From", 7}, {"Ring", 8}, {"Own", 8}, {"Reached", 9},
        {"The ring, times NCCL's own", 0}};
    const json_t *groups = json_object_get(achieved, "groups"), *group;
    size_t i;
    bool any = json_array_size(groups) > 0;
    if (!any)
        return;
    tccl_doc_begin(doc, "What was achieved", NULL);
    if (tccl_real_of(achieved, "share") > 0)
        tccl_doc_line(doc,
                      "Rings reached %.0f %% of what was predicted (the median of %lld step%s).",
                      100 * tccl_real_of(achieved, "share"), count_of(achieved, "rings"),
                      ending(count_of(achieved, "rings")));
    tccl_doc_line(doc, "GB/s by the best tenth of a step's large collectives, means over jobs; in "
                       "brackets, where the gain is with 95 %% confidence.");
    if (count_of(achieved, "own") == 0)
        tccl_doc_line(doc, "No step with NCCL's own choice was measured: Trial= of a policy has "
                           "some jobs run with it.");
    tccl_doc_table(doc, "four", NULL, columns, 6);
    json_array_foreach((json_t *)groups, i, group)
    {
        char name[NAME + 64], gain[GAIN];
        say_gain(group, gain);
        snprintf(name, sizeof(name), "%lldx%lld %s", count_of(group, "n_nodes"),
                 count_of(group, "gpus"), tccl_text_of(group, "node_class"));
        tccl_doc_text(doc, name, sizeof(name));
        tccl_doc_cell(doc, "%lld MiB", count_of(group, "from") >> 20);
        put_gbps(doc, json_object_get(group, "rings"));
        put_gbps(doc, json_object_get(group, "own"));
        if (tccl_real_of(group, "share") > 0)
            tccl_doc_cell(doc, "%.0f %%", 100 * tccl_real_of(group, "share"));
        else
            tccl_doc_cell(doc, "-");
        tccl_doc_cell(doc, "%s", gain);
        tccl_doc_row(doc);
    }
    tccl_doc_table_end(doc);
    json_array_foreach((json_t *)groups, i, group)
    {
        const json_t *stale = json_object_get(group, "stale");
        cleanup_free char *class = tccl_term_escape(tccl_text_of(group, "node_class"), NULL);
        cleanup_free char *nodes = tccl_term_escape(tccl_text_of(stale, "nodes"), NULL);
        if (json_is_object(stale) && class && nodes)
            tccl_doc_line(
                doc,
                "%s: %lld steps beside no other reached %.0f %% of what the profile says, "
                "on %s: profile no longer true here: measure again",
                class, count_of(stale, "steps"), 100 * tccl_real_of(stale, "share"), nodes);
    }
    tccl_doc_end(doc);
}

/* How much of their time steps spend in collectives: what faster rings could save at most. */
static void put_time(struct tccl_doc *doc, const json_t *achieved)
{
    static const struct tccl_doc_column columns[] = {{"Account", -18},  {"Steps", 9},
                                                     {"Sent", 10},      {"Time", 8},
                                                     {"Below 5 %", 10}, {"Faster rings", 0}};
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    const json_t *accounts = json_object_get(achieved, "accounts"), *account;
    size_t i;
    if (json_array_size(accounts) == 0)
        return;
    tccl_doc_begin(doc, "Time in collectives", NULL);
    tccl_doc_line(doc,
                  "Of steps that were measured: the part of their time in collectives over all "
                  "of their GPUs, its mean, and how many steps have less than 5 %% of it there.");
    tccl_doc_table(doc, "four", NULL, columns, 6);
    json_array_foreach((json_t *)accounts, i, account)
    {
        char name[NAME], sent[32];
        const char *text = tccl_text_of(account, "account");
        snprintf(name, sizeof(name), *text ? "%.60s" : "user %.0s%lld", text,
                 count_of(account, "uid"));
        double part = tccl_real_of(account, "share");
        double bytes = tccl_real_of(account, "bytes");
        size_t unit = 0;
        for (; bytes >= 1000 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
            bytes /= 1000;
        snprintf(sent, sizeof(sent), "%.3g %s", bytes, units[unit]);
        tccl_doc_text(doc, name, NAME);
        tccl_doc_cell(doc, "%lld", count_of(account, "steps"));
        tccl_doc_cell(doc, "%s", sent);
        tccl_doc_cell(doc, "%.1f %%", 100 * part);
        tccl_doc_cell(doc, "%lld", count_of(account, "small"));
        tccl_doc_cell(doc, "would save at most %.1f %%%s", 100 * part,
                      part < 0.05 ? ": they don't matter here" : "");
        tccl_doc_row(doc);
    }
    tccl_doc_table_end(doc);
    tccl_doc_end(doc);
}

/* ---- spans of days ---- */

/* Days since the first one. */
static json_int_t days_after(const json_t *days, size_t i)
{
    json_int_t first = count_of(json_array_get(days, 0), "start");
    json_int_t start = count_of(json_array_get(days, i), "start");
    return start < first ? 0 : (start - first + DAY / 2) / DAY;
}

/* Folds the days from index first on that belong to its span. Returns the index past them. */
static size_t add_days(const json_t *days, size_t first, json_int_t each, struct acct_span *span)
{
    size_t i = first;
    double gains = 0;
    json_int_t n_gains = 0, place = days_after(days, first) / each;
    *span = (struct acct_span){.place = (int)place,
                               .noon = count_of(json_array_get(days, 0), "start") +
                                       place * each * DAY + DAY / 2};
    for (; i < json_array_size(days) && days_after(days, i) / each == place; i++) {
        const json_t *day = json_array_get(days, i);
        json_int_t planned = count_of(day, "planned"), times = planned ? planned : 1;
        span->steps += count_of(day, "steps");
        span->planned += planned;
        span->built += count_of(day, "built");
        span->failed += count_of(day, "failed");
        if (json_is_number(json_object_get(day, "gain_mean"))) {
            gains += tccl_real_of(day, "gain_mean") * (double)times;
            n_gains += times;
        }
    }
    span->gain = n_gains ? gains / (double)n_gains : 0;
    return i;
}

int acct_summary_spans(const json_t *summary, struct acct_span spans[static ACCT_SPANS],
                       json_int_t *each)
{
    const json_t *days = json_object_get(summary, "days");
    size_t count = json_array_size(days);
    int n = 0;
    *each = count > 0 ? days_after(days, count - 1) / ACCT_SPANS + 1 : 1;
    for (size_t i = 0; i < count && n < ACCT_SPANS; n++)
        i = add_days(days, i, *each, &spans[n]);
    return n;
}

/* ---- gains ---- */

/* The histogram of gains from the first part with steps to the last. Returns whether there are any.
 */
static bool find_gains(const json_t *summary, size_t *first, size_t *last)
{
    const json_t *gains = json_object_get(summary, "gains");
    *first = json_array_size(gains);
    *last = 0;
    for (size_t i = 0; i < json_array_size(gains); i++) {
        if (tccl_real_of(json_array_get(gains, i), "steps") <= 0)
            continue;
        if (*first > i)
            *first = i;
        *last = i;
    }
    return *first < json_array_size(gains);
}

/* Bounds of such a part: "1.50 - 2.00", or "6.00 -". */
static void gain_range(const json_t *part, char *text, size_t size)
{
    const json_t *to = json_object_get(part, "to");
    double from = tccl_real_of(part, "from");
    if (json_is_number(to))
        snprintf(text, size, "%.2f - %.2f", from, json_number_value(to));
    else
        snprintf(text, size, "%.2f -", from);
}

/* ---- for a terminal ---- */

static void put_gains(struct tccl_doc *doc, const json_t *summary)
{
    static const struct tccl_doc_column columns[] = {{"Gain", -18}, {"Steps", 9}};
    const json_t *gains = json_object_get(summary, "gains"),
                 *built = json_object_get(summary, "gain_built");
    size_t first, last;
    double most = 0;
    long long rings = count_of(built, "steps");
    if (!find_gains(summary, &first, &last))
        return;
    for (size_t i = first; i <= last; i++)
        most = fmax(most, tccl_real_of(json_array_get(gains, i), "steps"));
    tccl_doc_begin(doc, "Predicted gain over the baseline", NULL);
    if (rings > 0)
        tccl_doc_line(doc, "median %.2f of %lld ring%s that NCCL built",
                      tccl_real_of(built, "median"), rings, ending(rings));
    else
        tccl_doc_line(doc, "no ring is known to be built by NCCL");
    tccl_doc_line(doc, "for all: median %.2f, mean %.2f", tccl_real_of(summary, "gain_median"),
                  tccl_real_of(summary, "gain_mean"));
    tccl_doc_table(doc, "", NULL, columns, 2);
    for (size_t i = first; i <= last; i++) {
        const json_t *part = json_array_get(gains, i);
        char range[32];
        gain_range(part, range, sizeof(range));
        tccl_doc_cell(doc, "%s", range);
        tccl_doc_cell(doc, "%lld", count_of(part, "steps"));
        tccl_doc_bar(doc, tccl_real_of(part, "steps") / most);
        tccl_doc_row(doc);
    }
}

/* A row per day with steps; over a long time several days per row, so that the table stays
 * short. */
static void put_spans(struct tccl_doc *doc, const json_t *summary)
{
    char day[32] = "Day";
    const struct tccl_doc_column columns[] = {
        {day, -12}, {"Steps", 8}, {"Planned", 9}, {"Failed", 10}, {"Gain", 7}};
    struct acct_span spans[ACCT_SPANS];
    json_int_t each;
    double most = 0;
    int count = acct_summary_spans(summary, spans, &each);
    if (count == 0)
        return;
    for (int i = 0; i < count; i++)
        most = fmax(most, (double)spans[i].steps);
    if (each > 1)
        snprintf(day, sizeof(day), "%lld days from", (long long)each);
    tccl_doc_begin(doc, "Over time", NULL);
    tccl_doc_table(doc, "", NULL, columns, 5);
    for (int i = 0; i < count; i++) {
        char from[64];
        format_time(spans[i].noon, "%Y-%m-%d", from, sizeof(from));
        tccl_doc_cell(doc, "%s", from);
        tccl_doc_cell(doc, "%lld", (long long)spans[i].steps);
        tccl_doc_cell(doc, "%lld", (long long)spans[i].planned);
        tccl_doc_cell(doc, "%lld", (long long)spans[i].failed);
        if (spans[i].gain > 0)
            tccl_doc_cell(doc, "%.2f", spans[i].gain);
        else
            tccl_doc_cell(doc, " ");
        tccl_doc_bar(doc, share((double)spans[i].steps, most));
        tccl_doc_row(doc);
    }
}

static void format_span(const json_t *summary, char from[static 64], char to[static 64])
{
    const char *format = getenv("SLURM_TIME_FORMAT");
    format_time(count_of(summary, "start"), format, from, 64);
    format_time(count_of(summary, "end"), format, to, 64);
}

void acct_summary_text(FILE *out, const json_t *summary, int columns, bool utf8)
{
    struct tccl_doc doc = {.pen = {.out = out,
                                   .columns = columns < LEAST_COLUMNS ? LEAST_COLUMNS : columns,
                                   .utf8 = utf8}};
    const json_t *solve = json_object_get(summary, "solve_us");
    long long steps = count_of(summary, "steps");
    char from[64], to[64];
    if (steps == 0) {
        fputs("no steps in this time that you may see\n", out);
        return;
    }
    format_span(summary, from, to);
    tccl_doc_line(&doc, "%lld step%s, started from %s to %s", steps, ending(steps), from, to);
    put_words(&doc, "What NCCL built, where known", "Built", json_object_get(summary, "built"),
              steps);
    put_achieved(&doc, json_object_get(summary, "achieved"));
    put_words(&doc, "Outcome of the steps", "State", json_object_get(summary, "states"), steps);
    put_reasons(&doc, json_object_get(summary, "reasons"));
    put_gains(&doc, summary);
    put_losses(&doc, summary);
    put_time(&doc, json_object_get(summary, "achieved"));
    put_nodes(&doc, json_object_get(summary, "nodes"));
    if (tccl_real_of(solve, "max") > 0)
        fprintf(out, "\nWait at launch: median %.2f ms, 99 %% within %.2f ms, longest %.2f ms\n",
                tccl_real_of(solve, "median") / 1e3, tccl_real_of(solve, "p99") / 1e3,
                tccl_real_of(solve, "max") / 1e3);
    put_spans(&doc, summary);
}

/* ---- as a page ---- */

static void put_count(const char *name, long long count, long long all, FILE *out)
{
    if (all > 0)
        tccl_html_fact(out, name, "%lld (%.0f %%)", count, 100 * share((double)count, (double)all));
    else
        tccl_html_fact(out, name, "%lld", count);
}

static void put_tiles(const json_t *summary, FILE *out)
{
    const json_t *states = json_object_get(summary, "states");
    const json_t *solve = json_object_get(summary, "solve_us");
    const json_t *of_built = json_object_get(summary, "gain_built"),
                 *achieved = json_object_get(summary, "achieved");
    long long steps = count_of(summary, "steps"), rings = count_of(states, "planned");
    char from[64], to[64];
    format_span(summary, from, to);
    fputs("<h2>In short</h2>\n<p class=\"dim\">Started from ", out);
    tccl_svg_escape(from, out);
    fputs(" to ", out);
    tccl_svg_escape(to, out);
    fputs("</p>\n<div class=\"card\"><dl class=\"facts tiles\">\n", out);
    put_count("Steps", steps, 0, out);
    put_count("With a ring", rings, steps, out);
    if (json_object_size(json_object_get(summary, "built")) > 0)
        put_count("Built by NCCL", count_of(json_object_get(summary, "built"), "yes"), rings, out);
    else
        tccl_html_fact(out, "Built by NCCL", "not known");
    put_count("Failed", count_of(states, "failed"), steps, out);
    if (tccl_real_of(achieved, "share") > 0)
        tccl_html_fact(out, "Achieved of what was predicted, median", "%.0f %%",
                       100 * tccl_real_of(achieved, "share"));
    if (tccl_real_of(of_built, "median") > 0)
        tccl_html_fact(out, "Predicted gain of rings that NCCL built, median", "%.2f×",
                       tccl_real_of(of_built, "median"));
    if (tccl_real_of(summary, "gain_median") > 0)
        tccl_html_fact(out, "Gain predicted for all, median (mean)", "%.2f× (%.2f×)",
                       tccl_real_of(summary, "gain_median"), tccl_real_of(summary, "gain_mean"));
    if (tccl_real_of(solve, "max") > 0)
        tccl_html_fact(out, "Wait at launch, median (99 % within)", "%.1f ms (%.1f ms)",
                       tccl_real_of(solve, "median") / 1e3, tccl_real_of(solve, "p99") / 1e3);
    fputs("</dl></div>\n", out);
}

/* The outcome of steps, in the order of state_series. */
static const char *const state_series[] = {"planned, built by NCCL",
                                           "planned, not known to be built", "failed",
                                           "others: left to NCCL, off"};
static const int state_colours[] = {3, 0, 1, 2};
enum { STATE_SERIES = 4 };
_Static_assert((int)STATE_SERIES <= (int)TCCL_CHART_SERIES, "one for each");

static void put_states(const struct acct_span *span, double values[static STATE_SERIES])
{
    values[0] = (double)span->built;
    values[1] = fmax(0, (double)(span->planned - span->built));
    values[2] = (double)span->failed;
    values[3] = fmax(0, (double)(span->steps - span->planned - span->failed));
}

/* Spans without steps keep their column, so that the time axis is even: outcomes, and gains (below
 * 0: none). Returns how many columns. */
static int day_columns(const json_t *summary, struct tccl_chart_column columns[static ACCT_SPANS],
                       struct tccl_chart_column gains[static ACCT_SPANS], json_int_t *each)
{
    struct acct_span spans[ACCT_SPANS];
    int n = acct_summary_spans(summary, spans, each);
    int count = n > 0 ? spans[n - 1].place + 1 : 0;
    bool years = *each * count > 300;
    if (count > ACCT_SPANS)
        count = ACCT_SPANS;
    for (int i = 0; i < count; i++) {
        struct tccl_chart_column *column = &columns[i];
        json_int_t noon = spans[0].noon + i * *each * DAY;
        *column = (struct tccl_chart_column){.values = {0}};
        format_time(noon, "%Y-%m-%d", column->name, sizeof(column->name));
        format_time(noon, years ? "%Y-%m" : "%m-%d", column->label, sizeof(column->label));
        gains[i] = *column;
        gains[i].values[0] = -1;
    }
    for (int i = 0; i < n; i++) {
        const struct acct_span *span = &spans[i];
        if (span->place < 0 || span->place >= count)
            continue;
        put_states(span, columns[span->place].values);
        gains[span->place].values[0] = span->gain > 0 ? span->gain : -1;
    }
    return count;
}

/* A chart of outcomes, without columns yet. */
static struct tccl_chart state_chart(const char *name, const char *axis,
                                     const struct tccl_chart_column *columns)
{
    struct tccl_chart chart = {.name = name,
                               .x_axis = axis,
                               .y_axis = "steps",
                               .n_series = STATE_SERIES,
                               .colours = state_colours,
                               .columns = columns};
    memcpy(chart.series, state_series, sizeof(state_series));
    return chart;
}

/* The day up to the last step, hour by hour. */
static void put_hour_chart(const json_t *summary, FILE *out)
{
    enum { HOURS = 24, HOUR = 3600 };
    const json_t *hours = json_object_get(summary, "hours"), *hour;
    json_int_t last = count_of(
        json_array_get(hours, json_array_size(hours) ? json_array_size(hours) - 1 : 0), "start");
    struct tccl_chart_column columns[HOURS];
    struct tccl_chart chart = state_chart("Outcome of steps by hour", "hour from", columns);
    size_t i;
    chart.n_columns = HOURS;
    for (int k = 0; k < HOURS; k++) {
        json_int_t start = last + (k - HOURS + 1) * HOUR;
        columns[k] = (struct tccl_chart_column){.values = {0}};
        format_time(start, "%Y-%m-%d %H:%M", columns[k].name, sizeof(columns[k].name));
        format_time(start, "%H:%M", columns[k].label, sizeof(columns[k].label));
    }
    json_array_foreach((json_t *)hours, i, hour)
    {
        json_int_t place = HOURS - 1 - (last - count_of(hour, "start")) / HOUR;
        struct acct_span span = {.steps = count_of(hour, "steps"),
                                 .planned = count_of(hour, "planned"),
                                 .built = count_of(hour, "built"),
                                 .failed = count_of(hour, "failed")};
        if (place >= 0 && place < HOURS)
            put_states(&span, columns[place].values);
    }
    if (json_array_size(hours) > 0)
        tccl_html_chart("The last day by the hour", &chart, out);
}

static void put_day_charts(const json_t *summary, FILE *out)
{
    struct tccl_chart_column columns[ACCT_SPANS] = {{.values = {0}}}, gains[ACCT_SPANS];
    char axis[64] = "day";
    json_int_t each;
    struct tccl_chart chart = state_chart("Outcome of steps by day", axis, columns);
    chart.n_columns = day_columns(summary, columns, gains, &each);
    if (each > 1)
        snprintf(axis, sizeof(axis), "%lld days from", (long long)each);
    tccl_html_chart("States by day", &chart, out);
    chart = (struct tccl_chart){.name = "Mean predicted gain of rings by day",
                                .x_axis = axis,
                                .y_axis = "times the baseline",
                                .series = {"mean predicted gain"},
                                .n_series = 1,
                                .line = true,
                                .base = "baseline: 1",
                                .digits = 2,
                                .columns = gains,
                                .n_columns = chart.n_columns};
    if (tccl_real_of(summary, "gain_mean") > 0)
        tccl_html_chart("Predicted gain by day", &chart, out);
}

static void put_gain_chart(const json_t *summary, FILE *out)
{
    enum { PARTS = 32 };
    struct tccl_chart_column columns[PARTS];
    struct tccl_chart chart = {.name = "Steps by the predicted gain of their ring",
                               .x_axis = "times the baseline, from",
                               .y_axis = "steps",
                               .series = {"steps with a ring"},
                               .n_series = 1,
                               .columns = columns};
    size_t first, last;
    if (!find_gains(summary, &first, &last))
        return;
    for (size_t i = first; i <= last && chart.n_columns < PARTS; i++) {
        const json_t *part = json_array_get(json_object_get(summary, "gains"), i);
        struct tccl_chart_column *column = &columns[chart.n_columns++];
        *column = (struct tccl_chart_column){.values = {tccl_real_of(part, "steps")}};
        gain_range(part, column->name, sizeof(column->name));
        snprintf(column->label, sizeof(column->label), "%.2f", tccl_real_of(part, "from"));
    }
    tccl_html_chart("Predicted gains", &chart, out);
}

/* What is to be said first: what NCCL built, what that achieved, what was predicted, and why others
 * have no ring. */
static void format_lead(const json_t *summary, char text[static LEAD])
{
    const json_t *states = json_object_get(summary, "states"),
                 *gain = json_object_get(summary, "gain_built"), *reason = NULL, *one;
    long long steps = count_of(summary, "steps"), rings = count_of(states, "planned"),
              built = count_of(gain, "steps");
    double reached = 100 * tccl_real_of(json_object_get(summary, "achieved"), "share");
    double median = built > 0 ? tccl_real_of(gain, "median") : tccl_real_of(summary, "gain_median");
    char what[128] = "", foretold[80] = "", failed[120] = "";
    if (built > 0)
        snprintf(what, sizeof(what), "; NCCL built %lld of %lld planned rings", built, rings);
    else
        snprintf(what, sizeof(what), ", %lld with a planned ring", rings);
    if (built > 0 && reached > 0)
        snprintf(what + strlen(what), sizeof(what) - strlen(what),
                 ", which reached %.0f %% of what was predicted", reached);
    if (rings > 0 && median > 0)
        snprintf(foretold, sizeof(foretold), " (predicted: %.2f times NCCL's own, the median)",
                 median);
    size_t i;
    json_array_foreach(json_object_get(summary, "reasons"), i,
                       one) if (count_of(one, "failed") > (reason ? count_of(reason, "failed") : 0))
        reason = one;
    if (count_of(states, "failed") > 0)
        snprintf(failed, sizeof(failed), "; %lld failed%s%.60s", count_of(states, "failed"),
                 reason ? ", most often: " : "", reason ? tccl_text_of(reason, "class") : "");
    snprintf(text, LEAD, "%lld step%s%s%s%s", steps, ending(steps), what, foretold, failed);
}

void acct_summary_page(FILE *out, const json_t *summary, const struct acct_asked *asked)
{
    struct tccl_doc doc = {.pen = {.out = out}, .html = true};
    char lead[LEAD] = "No steps in this time that you may see";
    long long steps = count_of(summary, "steps");
    if (steps > 0)
        format_lead(summary, lead);
    tccl_html_begin("tcclacct", "Rings of job steps", lead, out);
    if (steps > 0) {
        put_tiles(summary, out);
        fputs("<div class=\"grid\">\n<div>\n", out);
        put_words(&doc, "What NCCL built, where known", "Built", json_object_get(summary, "built"),
                  steps);
        fputs("</div>\n<div>\n", out);
        put_words(&doc, "Outcome of the steps", "State", json_object_get(summary, "states"), steps);
        fputs("</div>\n</div>\n", out);
        put_achieved(&doc, json_object_get(summary, "achieved"));
        put_reasons(&doc, json_object_get(summary, "reasons"));
        put_nodes(&doc, json_object_get(summary, "nodes"));
        put_hour_chart(summary, out);
        put_day_charts(summary, out);
        put_gain_chart(summary, out);
        put_losses(&doc, summary);
        put_time(&doc, json_object_get(summary, "achieved"));
    }
    acct_html_asked(asked, out);
    tccl_html_end("tcclacct", out);
}
