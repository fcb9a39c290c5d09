/* acct-summary.c: what many records have in common, for people. */
#include "acct/acct-summary.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acct/acct-text.h"
#include "acct/acct-time.h"
#include "base/cleanup.h"
#include "base/fields.h"

enum { LEAST_COLUMNS = 72, BAR = 30, ROWS = 31 };

struct page {
    FILE *out;
    int columns;
    bool utf8;
};

static double real_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* A text without what acts on a terminal, cut to so many columns. */
static void put_text(const struct page *page, const char *text, int columns)
{
    int used;
    cleanup_free char *escaped = acct_escape(text, NULL);
    if (!escaped || columns < 4)
        return;
    if (acct_columns(escaped) <= columns) {
        fputs(escaped, page->out);
        return;
    }
    int bytes = acct_bytes_within(escaped, columns - (page->utf8 ? 1 : 3), &used);
    fprintf(page->out, "%.*s%s", bytes, escaped, page->utf8 ? "…" : "...");
}

/* The same, filled up with blanks. */
static void put_column(const struct page *page, const char *text, int columns)
{
    cleanup_free char *escaped = acct_escape(text, NULL);
    int used = escaped ? acct_columns(escaped) : 0;
    put_text(page, text, columns);
    fprintf(page->out, "%*s", used < columns ? columns - used : 0, "");
}

/* A bar for part of most, in eighths of a block where there are such; something of it is seen of
 * the smallest part. */
static void put_bar(const struct page *page, double part, double most, int room)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int steps = page->utf8 ? 8 : 1; /* of a block */
    int length = most > 0 ? (int)(part / most * room * steps + 0.5) : 0;
    if (part > 0 && length == 0)
        length = 1;
    for (int i = 0; i < length / steps; i++)
        fputs(page->utf8 ? "█" : "#", page->out);
    fputs(eighths[length % steps], page->out);
}

static void put_time(const struct page *page, json_int_t when, const char *format)
{
    char text[64];
    acct_time_print((time_t)when, time(NULL), format, text, sizeof text);
    fputs(text, page->out);
}

static void put_head(const struct page *page, const json_t *summary)
{
    const char *format = getenv("SLURM_TIME_FORMAT");
    json_int_t steps = tccl_number_of(summary, "steps");
    if (steps == 0) {
        fputs("no step in that time that is yours to see\n", page->out);
        return;
    }
    fprintf(page->out, "%lld step%s, started from ", (long long)steps, steps == 1 ? "" : "s");
    put_time(page, tccl_number_of(summary, "start"), format);
    fputs(" to ", page->out);
    put_time(page, tccl_number_of(summary, "end"), format);
    fputc('\n', page->out);
}

/* Words and how many steps, most first; each is taken out of the copy that it is found in. */
static void put_words(const struct page *page, const char *title, const json_t *words,
                      json_int_t all)
{
    cleanup_json json_t *left = json_copy((json_t *)words);
    if (json_object_size(left) > 0)
        fprintf(page->out, "\n%s\n", title);
    while (json_object_size(left) > 0) {
        const char *name, *most = NULL;
        json_t *value;
        json_object_foreach(left, name, value)
        {
            if (!most || json_integer_value(value) > tccl_number_of(left, most))
                most = name;
        }
        json_int_t steps = tccl_number_of(left, most);
        fputs("  ", page->out);
        put_column(page, most, 18);
        fprintf(page->out, "%9lld  %5.1f %%  ", (long long)steps,
                all ? 100.0 * (double)steps / (double)all : 0);
        put_bar(page, (double)steps, (double)all, BAR);
        fputc('\n', page->out);
        json_object_del(left, most);
    }
}

static void put_reasons(const struct page *page, const json_t *reasons)
{
    size_t i;
    json_t *reason;
    if (json_array_size(reasons) > 0)
        fputs("\nReasons, by kind\n", page->out);
    json_array_foreach(reasons, i, reason)
    {
        fputs("  ", page->out);
        put_column(page, tccl_text_of(reason, "class"), 18);
        fprintf(page->out, "%9lld  last ", (long long)tccl_number_of(reason, "steps"));
        put_time(page, tccl_number_of(reason, "last"), "%Y-%m-%d %H:%M");
        fputs("\n      ", page->out);
        put_text(page, tccl_text_of(reason, "example"), page->columns - 6);
        fputc('\n', page->out);
    }
}

/* The histogram, from the first part with steps to the last. */
static void put_gains(const struct page *page, const json_t *summary)
{
    const json_t *gains = json_object_get(summary, "gains");
    size_t first = json_array_size(gains), last = 0;
    double most = 0;
    for (size_t i = 0; i < json_array_size(gains); i++) {
        double steps = real_of(json_array_get(gains, i), "steps");
        if (steps > 0 && first > i)
            first = i;
        last = steps > 0 ? i : last;
        most = steps > most ? steps : most;
    }
    if (most <= 0)
        return;
    fprintf(page->out, "\nGain: times NCCL's own choice (median %.2f, mean %.2f)\n",
            real_of(summary, "gain_median"), real_of(summary, "gain_mean"));
    for (size_t i = first; i <= last; i++) {
        const json_t *part = json_array_get(gains, i), *to = json_object_get(part, "to");
        char range[32];
        if (json_is_number(to))
            snprintf(range, sizeof range, "%.2f - %.2f", real_of(part, "from"),
                     json_number_value(to));
        else
            snprintf(range, sizeof range, "%.2f -", real_of(part, "from"));
        fprintf(page->out, "  %-18s%9lld  ", range, (long long)tccl_number_of(part, "steps"));
        put_bar(page, real_of(part, "steps"), most, BAR);
        fputc('\n', page->out);
    }
}

/* Is a node slow, or did steps fall back because of it? */
static bool stands_out(const json_t *node)
{
    const double slow = 0.95; /* of the best, as on the page */
    return real_of(node, "share") < slow || tccl_number_of(node, "fallbacks");
}

static void put_nodes(const struct page *page, const json_t *nodes)
{
    size_t i, shown = 0;
    json_t *node;
    if (json_array_size(nodes) > 0)
        fputs("\nSlowest nodes: GB/s of their rings, of the best of that size\n", page->out);
    json_array_foreach(nodes, i, node)
    {
        if (!stands_out(node))
            continue;
        shown++;
        fputs("  ", page->out);
        put_column(page, tccl_text_of(node, "node"), 18);
        if (json_is_number(json_object_get(node, "share")))
            fprintf(page->out, "%7.1f %%", 100 * real_of(node, "share"));
        else
            fprintf(page->out, "%9s", "-");
        fprintf(page->out, "  %8lld steps", (long long)tccl_number_of(node, "steps"));
        if (tccl_number_of(node, "fallbacks"))
            fprintf(page->out, "  %6lld fell back", (long long)tccl_number_of(node, "fallbacks"));
        fputc('\n', page->out);
    }
    if (json_array_size(nodes) > 0 && shown == 0)
        fputs("  none stands out: each reaches 95 % or more\n", page->out);
}

/* Consecutive days as one. */
struct span {
    json_int_t start, steps, applied, fallback;
    double gains; /* sum of the days' means, each as often as rings were applied */
    json_int_t n_gains;
};

/* Days from index first on, as long as they are within so many days of it. Returns the index behind
 * them. */
static size_t add_days(const json_t *days, size_t first, json_int_t length, struct span *span)
{
    enum { DAY = 86400 };
    size_t i = first;
    *span = (struct span){.start = tccl_number_of(json_array_get(days, first), "start")};
    for (; i < json_array_size(days); i++) {
        const json_t *day = json_array_get(days, i);
        json_int_t applied = tccl_number_of(day, "applied");
        if (i > first && (tccl_number_of(day, "start") - span->start + DAY / 2) / DAY >= length)
            break;
        span->steps += tccl_number_of(day, "steps");
        span->applied += applied;
        span->fallback += tccl_number_of(day, "fallback");
        if (json_is_number(json_object_get(day, "gain_mean"))) {
            span->gains += real_of(day, "gain_mean") * (double)(applied ? applied : 1);
            span->n_gains += applied ? applied : 1;
        }
    }
    return i;
}

static void put_span(const struct page *page, const struct span *span, double most)
{
    fputs("  ", page->out);
    put_time(page, span->start, "%Y-%m-%d");
    fprintf(page->out, " %7lld  %8lld  %8lld", (long long)span->steps, (long long)span->applied,
            (long long)span->fallback);
    if (span->n_gains)
        fprintf(page->out, "  %5.2f  ", span->gains / (double)span->n_gains);
    else
        fprintf(page->out, "  %5s  ", "");
    put_bar(page, (double)span->steps, most, 22);
    fputc('\n', page->out);
}

/* A row for each day with steps; of a longer time, for so many days that the rows can be overseen.
 */
static void put_days(const struct page *page, const json_t *days)
{
    size_t count = json_array_size(days);
    struct span span;
    double most = 0;
    if (count == 0)
        return;
    json_int_t first = tccl_number_of(json_array_get(days, 0), "start");
    json_int_t all = (tccl_number_of(json_array_get(days, count - 1), "start") - first) / 86400 + 1;
    json_int_t each = (all + ROWS - 1) / ROWS;
    for (size_t i = 0; i < count;) {
        i = add_days(days, i, each, &span);
        most = (double)span.steps > most ? (double)span.steps : most;
    }
    if (each == 1)
        fputs("\nDay            steps   applied  fallback   gain\n", page->out);
    else
        fprintf(page->out, "\n%4lld days from  steps   applied  fallback   gain\n",
                (long long)each);
    for (size_t i = 0; i < count;) {
        i = add_days(days, i, each, &span);
        put_span(page, &span, most);
    }
}

static void put_solve(const struct page *page, const json_t *solve)
{
    if (real_of(solve, "max") > 0)
        fprintf(page->out,
                "\nTime to a ring: median %.2f ms, 99 %% within %.2f ms, longest %.2f ms\n",
                real_of(solve, "median") / 1e3, real_of(solve, "p99") / 1e3,
                real_of(solve, "max") / 1e3);
}

void acct_summary_text(FILE *out, const json_t *summary, int columns, bool utf8)
{
    struct page page = {
        .out = out, .columns = columns < LEAST_COLUMNS ? LEAST_COLUMNS : columns, .utf8 = utf8};
    json_int_t steps = tccl_number_of(summary, "steps");
    put_head(&page, summary);
    if (steps == 0)
        return;
    put_words(&page, "What became of them", json_object_get(summary, "states"), steps);
    put_words(&page, "What NCCL built, as far as it is known", json_object_get(summary, "built"),
              steps);
    put_reasons(&page, json_object_get(summary, "reasons"));
    put_gains(&page, summary);
    put_nodes(&page, json_object_get(summary, "nodes"));
    put_solve(&page, json_object_get(summary, "solve_us"));
    put_days(&page, json_object_get(summary, "days"));
}
