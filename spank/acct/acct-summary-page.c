/* acct-summary-page.c: the summary as an HTML page. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acct/acct-summary-parts.h"
#include "acct/acct-time.h"
#include "acct/acct.h"
#include "base/fields.h"
#include "draw/chart.h"
#include "draw/html.h"
#include "draw/svg.h"

enum { DAY = 86400 };
enum { NAME = 64, REASON = 512 }; /* longest texts, columns */

static double share(double part, double all)
{
    return all > 0 ? part / all : 0;
}

static void format_time(json_int_t when, const char *format, char *text, size_t size)
{
    acct_time_print((time_t)when, time(NULL), format, text, size);
}

static json_int_t sum_of(const json_t *words, const char *const *names)
{
    json_int_t sum = 0;
    for (; *names; names++)
        sum += acct_count_of(words, *names);
    return sum;
}

static void put_count(const char *name, json_int_t count, json_int_t all, FILE *out)
{
    if (all > 0)
        tccl_html_fact(out, name, "%lld (%.0f %%)", (long long)count,
                       100 * share((double)count, (double)all));
    else
        tccl_html_fact(out, name, "%lld", (long long)count);
}

static void put_span(const json_t *summary, FILE *out)
{
    const char *format = getenv("SLURM_TIME_FORMAT");
    char from[64], to[64];
    format_time(acct_count_of(summary, "start"), format, from, sizeof(from));
    format_time(acct_count_of(summary, "end"), format, to, sizeof(to));
    fputs("<h2>In short</h2>\n<p class=\"dim\">Started from ", out);
    tccl_svg_escape(from, out);
    fputs(" to ", out);
    tccl_svg_escape(to, out);
    fputs("</p>\n", out);
}

static void put_tiles(const json_t *summary, FILE *out)
{
    static const char *const with_ring[] = {"applied", "partial", "differs", NULL};
    const json_t *states = json_object_get(summary, "states");
    const json_t *solve = json_object_get(summary, "solve_us");
    json_int_t steps = acct_count_of(summary, "steps"), rings = sum_of(states, with_ring);
    put_span(summary, out);
    fputs("<div class=\"card\"><dl class=\"facts tiles\">\n", out);
    put_count("Steps", steps, 0, out);
    put_count("With a ring", rings, steps, out);
    put_count("Built by NCCL", acct_count_of(json_object_get(summary, "built"), "applied"), rings,
              out);
    put_count("Fallbacks", acct_count_of(states, "fallback"), steps, out);
    const json_t *of_built = json_object_get(summary, "gain_built");
    if (acct_real_of(of_built, "median") > 0)
        tccl_html_fact(out, "Gain of rings that NCCL built, median", "%.2f×",
                       acct_real_of(of_built, "median"));
    if (acct_real_of(summary, "gain_median") > 0)
        tccl_html_fact(out, "Gain predicted for all, median (mean)", "%.2f× (%.2f×)",
                       acct_real_of(summary, "gain_median"), acct_real_of(summary, "gain_mean"));
    if (acct_real_of(solve, "max") > 0)
        tccl_html_fact(out, "Time to a ring, median (99 % within)", "%.1f ms (%.1f ms)",
                       acct_real_of(solve, "median") / 1e3, acct_real_of(solve, "p99") / 1e3);
    fputs("</dl></div>\n", out);
}

static void put_losses(const json_t *summary, FILE *out)
{
    char text[ACCT_LOSS];
    bool any = false;
    for (int which = 0; which < ACCT_LOSSES; which++) {
        if (!acct_summary_loss(summary, which, text))
            continue;
        fprintf(out, "%s<p>%s.</p>\n",
                any ? "" : "<h2>Sharing and placement</h2>\n<div class=\"card\">\n", text);
        any = true;
    }
    if (any)
        fputs("</div>\n", out);
}

/* Charts */

static void name_day(json_int_t noon, bool with_year, struct tccl_chart_column *column)
{
    format_time(noon, "%Y-%m-%d", column->name, sizeof(column->name));
    format_time(noon, with_year ? "%Y-%m" : "%m-%d", column->label, sizeof(column->label));
}

/* The outcome of steps, in the order of state_series. */
static const char *const state_series[] = {"applied, built by NCCL",
                                           "applied, not known to be built", "fallback",
                                           "others: off, nothing to do, partial, differs"};
static const int state_colours[] = {3, 0, 1, 2};
enum { STATE_SERIES = 4 };
_Static_assert((int)STATE_SERIES <= (int)TCCL_CHART_SERIES, "one for each");

static void put_states(const struct acct_span *span, double values[static STATE_SERIES])
{
    values[0] = (double)span->built;
    values[1] = fmax(0, (double)(span->applied - span->built));
    values[2] = (double)span->fallback;
    values[3] = fmax(0, (double)(span->steps - span->applied - span->fallback));
}

/* Spans without steps keep their column, so that the time axis is even. Returns how many columns.
 */
static int day_columns(const json_t *summary, struct tccl_chart_column columns[static ACCT_SPANS],
                       bool gain, json_int_t *each)
{
    struct acct_span spans[ACCT_SPANS];
    int n = acct_summary_spans(summary, spans, each);
    int count = n > 0 ? spans[n - 1].place + 1 : 0;
    bool years = *each * count > 300;
    if (count > ACCT_SPANS)
        count = ACCT_SPANS;
    for (int i = 0; i < count; i++) {
        columns[i] = (struct tccl_chart_column){.values = {gain ? -1 : 0}};
        name_day(spans[0].noon + i * *each * DAY, years, &columns[i]);
    }
    for (int i = 0; i < n; i++) {
        const struct acct_span *span = &spans[i];
        if (span->place < 0 || span->place >= count)
            continue;
        double *values = columns[span->place].values;
        if (gain)
            values[0] = span->gain > 0 ? span->gain : -1;
        else
            put_states(span, values);
    }
    return count;
}

/* The day up to the last step, hour by hour. */
static void put_hours(const json_t *summary, FILE *out)
{
    enum { HOURS = 24, HOUR = 3600 };
    const json_t *hours = json_object_get(summary, "hours"), *hour;
    json_int_t last = acct_count_of(
        json_array_get(hours, json_array_size(hours) ? json_array_size(hours) - 1 : 0), "start");
    struct tccl_chart_column columns[HOURS];
    struct tccl_chart chart = {.name = "Outcome of steps by hour",
                               .x_axis = "hour from",
                               .y_axis = "steps",
                               .n_series = STATE_SERIES,
                               .colours = state_colours,
                               .columns = columns,
                               .n_columns = HOURS};
    size_t i;
    memcpy(chart.series, state_series, sizeof(state_series));
    for (int k = 0; k < HOURS; k++) {
        json_int_t start = last + (k - HOURS + 1) * HOUR;
        columns[k] = (struct tccl_chart_column){.values = {0}};
        format_time(start, "%Y-%m-%d %H:%M", columns[k].name, sizeof(columns[k].name));
        format_time(start, "%H:%M", columns[k].label, sizeof(columns[k].label));
    }
    json_array_foreach((json_t *)hours, i, hour)
    {
        json_int_t place = HOURS - 1 - (last - acct_count_of(hour, "start")) / HOUR;
        struct acct_span span = {.steps = acct_count_of(hour, "steps"),
                                 .applied = acct_count_of(hour, "applied"),
                                 .built = acct_count_of(hour, "built"),
                                 .fallback = acct_count_of(hour, "fallback")};
        if (place >= 0 && place < HOURS)
            put_states(&span, columns[place].values);
    }
    if (json_array_size(hours) > 0)
        tccl_html_chart("The last day by the hour", &chart, out);
}

static void put_days(const json_t *summary, FILE *out)
{
    struct tccl_chart_column columns[ACCT_SPANS];
    char axis[64] = "day";
    json_int_t each;
    struct tccl_chart chart = {.name = "Outcome of steps by day",
                               .x_axis = axis,
                               .y_axis = "steps",
                               .n_series = STATE_SERIES,
                               .colours = state_colours,
                               .columns = columns};
    memcpy(chart.series, state_series, sizeof(state_series));
    chart.n_columns = day_columns(summary, columns, false, &each);
    if (each > 1)
        snprintf(axis, sizeof(axis), "%lld days from", (long long)each);
    tccl_html_chart("States by day", &chart, out);
    chart.name = "Mean predicted gain of rings by day";
    chart.y_axis = "times the baseline";
    chart.series[0] = "mean predicted gain";
    chart.n_series = 1;
    chart.colours = NULL;
    chart.line = true;
    chart.base = "baseline: 1";
    chart.digits = 2;
    chart.n_columns = day_columns(summary, columns, true, &each);
    if (acct_real_of(summary, "gain_mean") > 0)
        tccl_html_chart("Predicted gain by day", &chart, out);
}

static void put_gains(const json_t *summary, FILE *out)
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
    if (!acct_summary_gains(summary, &first, &last))
        return;
    for (size_t i = first; i <= last && chart.n_columns < PARTS; i++) {
        const json_t *part = json_array_get(json_object_get(summary, "gains"), i);
        struct tccl_chart_column *column = &columns[chart.n_columns++];
        *column = (struct tccl_chart_column){.values = {acct_real_of(part, "steps")}};
        acct_gain_range(part, column->name, sizeof(column->name));
        snprintf(column->label, sizeof(column->label), "%.2f", acct_real_of(part, "from"));
    }
    tccl_html_chart("Predicted gains", &chart, out);
}

/* Tables */

static void put_words(const char *heading, const char *what, const json_t *words, json_int_t all,
                      FILE *out)
{
    struct acct_word list[ACCT_WORDS];
    int count = acct_summary_words(words, list);
    fprintf(out, "<div>\n<h2>%s</h2>\n<div class=\"card\">\n", heading);
    if (count == 0)
        fputs("<p>No data yet.</p>\n", out);
    else
        tccl_html_heads((const char *const[]){what, "#Steps", "#Share", NULL}, out);
    for (int i = 0; i < count; i++) {
        double part = share((double)list[i].steps, (double)all);
        fputs("<tr><th scope=\"row\">", out);
        tccl_html_text(list[i].word, NAME, out);
        fprintf(out, "</th><td class=\"n\">%lld</td><td class=\"n\">%.1f %%",
                (long long)list[i].steps, 100 * part);
        tccl_html_bar(part, out);
        fputs("</td></tr>\n", out);
    }
    fprintf(out, "%s</div>\n</div>\n", count ? "</table>\n" : "");
}

static void put_reasons(const json_t *reasons, FILE *out)
{
    size_t i;
    json_t *reason;
    fputs("<h2>Why there was no ring</h2>\n<div class=\"card\">\n", out);
    if (json_array_size(reasons) == 0) {
        fputs("<p>No step has a reason: every step that asked for a ring got one.</p>\n</div>\n",
              out);
        return;
    }
    fputs(
        "<table class=\"rows four\">\n<tr><th scope=\"col\">Class of reason</th><th scope=\"col\" "
        "class=\"n\">Steps</th><th scope=\"col\" class=\"n\">Fell back</th><th scope=\"col\" "
        "class=\"n\">Last</th><th scope=\"col\" class=\"long\">The latest one</th></tr>\n",
        out);
    json_array_foreach(reasons, i, reason)
    {
        char last[64];
        format_time(acct_count_of(reason, "last"), "%Y-%m-%d %H:%M", last, sizeof(last));
        fputs("<tr><th scope=\"row\">", out);
        tccl_html_text(tccl_text_of(reason, "class"), NAME, out);
        fprintf(
            out,
            "</th><td class=\"n\">%lld</td><td class=\"n\">%lld</td><td class=\"n wrap\">%s</td>"
            "<td class=\"long\">",
            (long long)acct_count_of(reason, "steps"),
            (long long)acct_count_of(reason, "fallbacks"), last);
        tccl_html_text(tccl_text_of(reason, "example"), REASON, out);
        fputs("</td></tr>\n", out);
    }
    fputs("</table>\n</div>\n", out);
}

static void put_node(const json_t *node, FILE *out)
{
    fputs("<tr><th scope=\"row\">", out);
    tccl_html_text(tccl_text_of(node, "node"), NAME, out);
    fputs("</th><td class=\"n\">", out);
    if (json_is_number(json_object_get(node, "share"))) {
        fprintf(out, "%.1f %%", 100 * acct_real_of(node, "share"));
        tccl_html_bar(acct_real_of(node, "share"), out);
    } else {
        fputs("-", out);
    }
    fprintf(out, "</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td></tr>\n",
            (long long)acct_count_of(node, "steps"), (long long)acct_count_of(node, "fallbacks"));
}

static void put_nodes(const json_t *nodes, FILE *out)
{
    size_t i, shown = 0;
    json_t *node;
    fputs("<h2>Nodes that stand out</h2>\n<div class=\"card\">\n<p>Bandwidth of a node's rings "
          "alone (beside no other step) relative to the best ring over as many nodes and GPUs. "
          "Listed are nodes below 95 % and nodes that a fallback blames.</p>\n",
          out);
    json_array_foreach(nodes, i, node)
    {
        if (!acct_node_stands_out(node))
            continue;
        if (shown++ == 0)
            tccl_html_heads((const char *const[]){"Node", "#Of best", "#Steps", "#Fell back", NULL},
                            out);
        put_node(node, out);
    }
    fputs(shown ? "</table>\n</div>\n" : "<p>No node stands out.</p>\n</div>\n", out);
}

static void put_parts(const json_t *summary, FILE *out)
{
    json_int_t steps = acct_count_of(summary, "steps");
    put_tiles(summary, out);
    put_hours(summary, out);
    put_days(summary, out);
    put_gains(summary, out);
    put_losses(summary, out);
    fputs("<div class=\"grid\">\n", out);
    put_words("Outcome of the steps", "State", json_object_get(summary, "states"), steps, out);
    put_words("What NCCL built", "Built", json_object_get(summary, "built"), steps, out);
    fputs("</div>\n", out);
    put_reasons(json_object_get(summary, "reasons"), out);
    put_nodes(json_object_get(summary, "nodes"), out);
}

void acct_summary_page(FILE *out, const json_t *summary, const struct acct_asked *asked)
{
    char line[ACCT_LEAD] = "No steps in this time that you may see";
    json_int_t steps = acct_count_of(summary, "steps");
    if (steps > 0)
        acct_summary_lead(summary, line);
    tccl_html_begin("tcclacct", "Rings of job steps", line, out);
    if (steps > 0)
        put_parts(summary, out);
    acct_html_asked(asked, out);
    tccl_html_end("tcclacct", out);
}
