/* acct-summary.c: the summary for a terminal. */
#include "acct/acct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acct/acct-summary-parts.h"
#include "acct/acct-time.h"
#include "base/cleanup.h"
#include "base/fields.h"
#include "draw/term.h"

enum { LEAST_COLUMNS = 72, BAR = 30 };

/* A text, cut and padded to that many columns. */
static void put_column(struct tccl_pen *pen, const char *text, int columns)
{
    int begin = pen->used;
    tccl_pen_cut(pen, text, columns);
    if (pen->used - begin < columns)
        tccl_pen_print(pen, "%*s", columns - (pen->used - begin), "");
}

static void put_time(struct tccl_pen *page, json_int_t when, const char *format)
{
    char text[64];
    acct_time_print((time_t)when, time(NULL), format, text, sizeof(text));
    fputs(text, page->out);
}

static void put_head(struct tccl_pen *page, const json_t *summary)
{
    const char *format = getenv("SLURM_TIME_FORMAT");
    json_int_t steps = tccl_number_of(summary, "steps");
    if (steps == 0) {
        fputs("no steps in this time that you may see\n", page->out);
        return;
    }
    fprintf(page->out, "%lld step%s, started from ", (long long)steps, steps == 1 ? "" : "s");
    put_time(page, tccl_number_of(summary, "start"), format);
    fputs(" to ", page->out);
    put_time(page, tccl_number_of(summary, "end"), format);
    fputc('\n', page->out);
}

static void put_words(struct tccl_pen *page, const char *title, const json_t *words, json_int_t all)
{
    struct acct_word list[ACCT_WORDS];
    int count = acct_summary_words(words, list);
    if (count > 0)
        fprintf(page->out, "\n%s\n", title);
    for (int i = 0; i < count; i++) {
        double steps = (double)list[i].steps;
        fputs("  ", page->out);
        put_column(page, list[i].word, 18);
        fprintf(page->out, "%9lld  %5.1f %%  ", (long long)list[i].steps,
                all ? 100.0 * steps / (double)all : 0);
        tccl_pen_bar(page, all ? steps / (double)all : 0, BAR);
        fputc('\n', page->out);
    }
}

static void put_reasons(struct tccl_pen *page, const json_t *reasons)
{
    size_t i;
    json_t *reason;
    if (json_array_size(reasons) > 0)
        fputs("\nReasons by class\n", page->out);
    json_array_foreach(reasons, i, reason)
    {
        fputs("  ", page->out);
        put_column(page, tccl_text_of(reason, "class"), 18);
        fprintf(page->out, "%9lld  last ", (long long)tccl_number_of(reason, "steps"));
        put_time(page, tccl_number_of(reason, "last"), "%Y-%m-%d %H:%M");
        fputs("\n      ", page->out);
        tccl_pen_cut(page, tccl_text_of(reason, "example"), page->columns - 6);
        fputc('\n', page->out);
    }
}

static void put_gains(struct tccl_pen *page, const json_t *summary)
{
    const json_t *gains = json_object_get(summary, "gains");
    size_t first, last;
    double most = 0;
    if (!acct_summary_gains(summary, &first, &last))
        return;
    for (size_t i = first; i <= last; i++)
        most = fmax(most, acct_real_of(json_array_get(gains, i), "steps"));
    const json_t *built = json_object_get(summary, "gain_built");
    if (tccl_number_of(built, "steps") > 0)
        fprintf(page->out, "\nGain over the baseline: median %.2f of %lld ring%s that NCCL built\n",
                acct_real_of(built, "median"), (long long)tccl_number_of(built, "steps"),
                tccl_number_of(built, "steps") == 1 ? "" : "s");
    else
        fputs("\nGain over the baseline: of no ring is it known that NCCL built it\n", page->out);
    fprintf(page->out, "  predicted for all: median %.2f, mean %.2f\n",
            acct_real_of(summary, "gain_median"), acct_real_of(summary, "gain_mean"));
    for (size_t i = first; i <= last; i++) {
        const json_t *part = json_array_get(gains, i);
        char range[32];
        acct_gain_range(part, range, sizeof(range));
        fprintf(page->out, "  %-18s%9lld  ", range, (long long)tccl_number_of(part, "steps"));
        tccl_pen_bar(page, acct_real_of(part, "steps") / most, BAR);
        fputc('\n', page->out);
    }
}

static void put_nodes(struct tccl_pen *page, const json_t *nodes)
{
    size_t i, shown = 0;
    json_t *node;
    if (json_array_size(nodes) > 0)
        fputs("\nNodes that stand out: their rings' GB/s alone, of the best of that size\n",
              page->out);
    json_array_foreach(nodes, i, node)
    {
        if (!acct_node_stands_out(node))
            continue;
        shown++;
        fputs("  ", page->out);
        put_column(page, tccl_text_of(node, "node"), 18);
        if (json_is_number(json_object_get(node, "share")))
            fprintf(page->out, "%7.1f %%", 100 * acct_real_of(node, "share"));
        else
            fprintf(page->out, "%9s", "-");
        fprintf(page->out, "  %8lld steps", (long long)tccl_number_of(node, "steps"));
        if (tccl_number_of(node, "fallbacks"))
            fprintf(page->out, "  %6lld fell back", (long long)tccl_number_of(node, "fallbacks"));
        fputc('\n', page->out);
    }
    if (json_array_size(nodes) > 0 && shown == 0)
        fputs("  none stands out: all reach 95 % or more\n", page->out);
}

static void put_losses(struct tccl_pen *page, const json_t *summary)
{
    char text[ACCT_LOSS];
    for (int which = 0; which < ACCT_LOSSES; which++)
        if (acct_summary_loss(summary, which, text))
            fprintf(page->out, "%s%s\n", which ? "" : "\n", text);
}

static void put_span(struct tccl_pen *page, const struct acct_span *span, double most)
{
    fputs("  ", page->out);
    put_time(page, span->noon, "%Y-%m-%d");
    fprintf(page->out, " %7lld  %8lld  %8lld", (long long)span->steps, (long long)span->applied,
            (long long)span->fallback);
    if (span->gain > 0)
        fprintf(page->out, "  %5.2f  ", span->gain);
    else
        fprintf(page->out, "  %5s  ", "");
    tccl_pen_bar(page, most > 0 ? (double)span->steps / most : 0, 22);
    fputc('\n', page->out);
}

/* A row per day with steps; over a long time several days per row, so that the table stays
 * short. */
static void put_days(struct tccl_pen *page, const json_t *summary)
{
    struct acct_span spans[ACCT_SPANS];
    json_int_t each;
    double most = 0;
    int count = acct_summary_spans(summary, spans, &each);
    if (count == 0)
        return;
    for (int i = 0; i < count; i++)
        most = fmax(most, (double)spans[i].steps);
    if (each == 1)
        fputs("\nDay            steps   applied  fallback   gain\n", page->out);
    else
        fprintf(page->out, "\n%4lld days from  steps   applied  fallback   gain\n",
                (long long)each);
    for (int i = 0; i < count; i++)
        put_span(page, &spans[i], most);
}

static void put_solve(struct tccl_pen *page, const json_t *solve)
{
    if (acct_real_of(solve, "max") > 0)
        fprintf(page->out,
                "\nTime to a ring: median %.2f ms, 99 %% within %.2f ms, longest %.2f ms\n",
                acct_real_of(solve, "median") / 1e3, acct_real_of(solve, "p99") / 1e3,
                acct_real_of(solve, "max") / 1e3);
}

void acct_summary_text(FILE *out, const json_t *summary, int columns, bool utf8)
{
    struct tccl_pen page = {
        .out = out, .columns = columns < LEAST_COLUMNS ? LEAST_COLUMNS : columns, .utf8 = utf8};
    json_int_t steps = tccl_number_of(summary, "steps");
    put_head(&page, summary);
    if (steps == 0)
        return;
    put_words(&page, "Outcome", json_object_get(summary, "states"), steps);
    put_words(&page, "What NCCL built, where known", json_object_get(summary, "built"), steps);
    put_reasons(&page, json_object_get(summary, "reasons"));
    put_gains(&page, summary);
    put_losses(&page, summary);
    put_nodes(&page, json_object_get(summary, "nodes"));
    put_solve(&page, json_object_get(summary, "solve_us"));
    put_days(&page, summary);
}
