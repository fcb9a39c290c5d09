/* page.c: a report as an HTML page. */
#include "report/page.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/numbers.h"
#include "chain/chain.h"
#include "draw/html.h"
#include "draw/svg.h"
#include "report/page-rings.h"
#include "search/setlog.h"

enum { GPUS_TEXT = 64, OPEN_CONGESTED = 4, MOST_CONGESTED = 200, OPEN_RINGS = 3 };

static void put(FILE *out, const char *text)
{
    tccl_svg_escape(text, out);
}

static void format_date(long long when, char text[static 32])
{
    time_t seconds = (time_t)when;
    struct tm tm;

    snprintf(text, 32, "unknown");
    if (when > 0 && localtime_r(&seconds, &tm))
        strftime(text, 32, "%Y-%m-%d %H:%M", &tm);
}

static void put_quality(const struct tccl_quality *quality, FILE *out)
{
    char marks[64] = "";

    tccl_html_fact(out, "Transfer sets", "%ld (%ld noisy, %ld failed)", quality->sets,
                   quality->noisy, quality->failed);
    tccl_html_fact(out, "Spread of repeats", "%.1f %% median, %.1f %% worst",
                   quality->median_spread * 100, quality->worst_spread * 100);
    if (quality->timed > 0) {
        tccl_html_fact(out, "Start skew", "%.1f us median, %.1f us worst", quality->median_skew,
                       quality->worst_skew);
        tccl_html_fact(out, "Overlap of the members", "at least %.1f %%",
                       quality->least_overlap * 100);
    }
    for (int i = 0; i < TCCL_MARKS; i++)
        if (quality->marks & 1u << i) {
            size_t length = strlen(marks);
            snprintf(marks + length, sizeof(marks) - length, " %s", tccl_mark_name(1u << i));
        }
    if (quality->marked > 0)
        tccl_html_fact(out, "Marked, never served", "%ld sets:%s", quality->marked, marks);
}

static void put_origin(const struct tccl_report *report, FILE *out)
{
    const char *source = tccl_profile_source(report->profile);
    const char *conditions = tccl_profile_conditions(report->profile);
    char when[32];

    fputs("<h2>How it was measured</h2>\n<div class=\"card\"><dl class=\"facts\">\n", out);
    tccl_html_fact(out, "Source", "%s%s", source,
                   strcmp(source, "model") == 0 ? ": computed, not measured"
                   : strcmp(source, "host") == 0
                       ? ": cores and memory of this machine in place of GPUs"
                       : "");
    if (*conditions)
        tccl_html_fact(out, "Conditions", "%s", conditions);
    format_date(report->last, when);
    tccl_html_fact(out, "Last measured", "%s", when);
    put_quality(&report->quality, out);
    tccl_html_fact(out, "Machine id", "%s", tccl_profile_id(report->profile));
    tccl_html_fact(out, "GPUs, memories, NICs, PCI switches", "%d, %d, %d, %d",
                   report->machine->n_gpus, report->machine->n_memories, report->machine->n_nics,
                   report->machine->n_switches);
    if (report->machine->n_gpus > 0)
        tccl_html_fact(out, "GPU 0", "%s", report->machine->gpus[0].model);
    tccl_html_fact(out, "Made by", "%s", report->created_by);
    fputs("</dl></div>\n", out);
}

/* Matrices. */

static void put_cell(const struct tccl_matrix_cell *cell, double fastest, FILE *out)
{
    double heat = tccl_cell_heat(cell, fastest), shade = 0.06 + 0.8 * heat * heat;
    bool model = cell->state == TCCL_CELL_MODEL;
    char text[TCCL_CELL_TEXT];

    tccl_cell_format(cell, text);
    if (model)
        text[strcspn(text, "*")] = '\0'; /* slanted in its place */
    if (heat < 0)
        fprintf(out, "<td class=\"no\">%s</td>", text);
    else
        /* Black up to here, white from here on: either way at least 4.5 to 1 against the cell. */
        fprintf(out, "<td%s style=\"background:rgba(var(--heat),%.2f)%s\">%s</td>",
                model ? " class=\"model\"" : "", shade, shade > 0.78 ? ";color:#fff" : "", text);
}

static void put_matrix(const struct tccl_matrix *matrix, const struct tccl_machine *machine,
                       double fastest, FILE *out)
{
    char label[TCCL_LABEL];

    fprintf(out, "<div class=\"card\"><h3>%s</h3>\n", matrix->title);
    tccl_html_wide_begin(matrix->title, out);
    fputs("<table class=\"heat\">\n<tr><td></td>", out);
    for (int i = 0; i < matrix->columns; i++) {
        tccl_device_label(machine, (struct tccl_device){matrix->column_kind, (uint8_t)i}, label);
        fputs("<th scope=\"col\">", out);
        put(out, label);
        fputs("</th>", out);
    }
    fputs("</tr>\n", out);
    for (int i = 0; i < matrix->rows; i++) {
        tccl_device_label(machine, (struct tccl_device){matrix->row_kind, (uint8_t)i}, label);
        fputs("<tr><th scope=\"row\">", out);
        put(out, label);
        fputs("</th>", out);
        for (int j = 0; j < matrix->columns; j++)
            put_cell(&matrix->cells[i][j], fastest, out);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
    tccl_html_wide_end(out);
    if (matrix->known > 0)
        fprintf(out, "<p class=\"dim\">min %.2f, median %.2f, max %.2f</p>\n", matrix->min,
                matrix->median, matrix->max);
    fputs("</div>\n", out);
}

static void put_matrices(const struct tccl_report *report, FILE *out)
{
    fprintf(
        out,
        "<h2>Bandwidth matrices</h2>\n<p class=\"dim\">GB/s: 0 <span class=\"ramp\"></span> "
        "%.2f, the same colours in all of them. &#8211; not possible, ? not measured, ! failed, "
        "~ noisy; slanted: from the model. Both ways at once: the slower way.</p>\n"
        "<div class=\"grid\">\n",
        report->fastest);
    for (int i = 0; i < TCCL_MATRICES; i++)
        if (report->matrices[i].rows > 0)
            put_matrix(&report->matrices[i], report->machine, report->fastest, out);
    fputs("</div>\n", out);
}

/* Congested sets. */

static void put_congested(const struct tccl_congested *one, FILE *out)
{
    char set[TCCL_SET_TEXT];

    tccl_set_format(&one->set, set);
    fprintf(out, "<tr><td class=\"n\">%.0f %%%s", one->ratio * 100, one->noisy ? " ~" : "");
    tccl_html_bar(one->ratio, out);
    fprintf(out, "</td><td class=\"n\">%.2f</td><td class=\"n\">%s%.2f</td><td><code>", one->gbps,
            one->at_least ? "at least " : "", one->alone);
    put(out, set);
    fputs("</code>", out);
    if (one->from == TCCL_ANSWER_MODEL)
        fputs(" <span class=\"dim\">from the model</span>", out);
    if (one->alike > 0)
        fprintf(out, "%s <span class=\"dim\">%ld like it</span>",
                one->from == TCCL_ANSWER_MODEL ? "," : "", one->alike);
    fputs("</td></tr>\n", out);
}

/* From the i-th on, those unlike the ones before them, at most count. Returns where it stopped. */
static long put_some_congested(const struct tccl_report *report, long i, long count, FILE *out)
{
    fputs("<table class=\"rows\">\n<tr><th scope=\"col\" class=\"n\">of alone</th><th "
          "scope=\"col\" class=\"n\">GB/s</th><th scope=\"col\" class=\"n\">alone</th><th "
          "scope=\"col\">at the same time</th></tr>\n",
          out);
    for (; i < report->n_congested && count > 0; i++)
        if (!report->congested[i].repeats) {
            put_congested(&report->congested[i], out);
            count--;
        }
    fputs("</table>\n", out);
    return i;
}

static bool more_congested(const struct tccl_report *report, long i)
{
    while (i < report->n_congested && report->congested[i].repeats)
        i++;
    return i < report->n_congested;
}

static void put_congestion(const struct tccl_report *report, FILE *out)
{
    fprintf(
        out,
        "<h2>Congested sets</h2>\n<p class=\"dim\">Transfers that run together below %.0f %% of "
        "what the slowest of them reaches alone, worst first. A set is as fast as its slowest "
        "member. Larger sets that hold a listed one and are as slow are left out. g0&gt;m1: GPU 0 "
        "writes to memory 1, g0&lt;m1: it reads from it.</p>\n"
        "<div class=\"card\">\n",
        report->threshold * 100);
    if (report->n_congested == 0) {
        fputs("<p>None.</p></div>\n", out);
        return;
    }
    long next = put_some_congested(report, 0, OPEN_CONGESTED, out);
    if (more_congested(report, next)) {
        fputs("<details><summary>More of them</summary>\n", out);
        put_some_congested(report, next, MOST_CONGESTED - OPEN_CONGESTED, out);
        fputs("</details>\n", out);
    }
    fputs("</div>\n", out);
}

/* Rings. */

static void put_result(const struct tccl_report *report, const char *gpus, const char *what,
                       const struct tccl_result *result, const struct tccl_baseline *baseline,
                       FILE *out)
{
    char chain[TCCL_CHAIN_TEXT];

    if (result->chain.n_gpus == 0)
        return;
    tccl_chain_format(&result->chain, report->machine, chain);
    fprintf(out, "<tr><th scope=\"row\">%s</th><td>%s</td><td class=\"n\">%.2f</td>", gpus, what,
            result->gbps);
    if (baseline->gbps > 0)
        fprintf(out, "<td class=\"n\">%.2f</td><td class=\"n\">%.2f&#215;</td>", baseline->gbps,
                result->gbps / baseline->gbps);
    else
        fputs("<td class=\"n\">&#8211;</td><td class=\"n\">&#8211;</td>", out);
    fprintf(out, "<td class=\"n\">%.1f %%</td><td class=\"long\"><code>",
            tccl_report_gap(result) * 100);
    put(out, chain);
    fputs("</code></td></tr>\n", out);
}

/* Several rings at once, where they are faster than one. */
static void put_set(const struct tccl_report *report, const char *gpus, const char *what,
                    const struct tccl_class_set *set, double single,
                    const struct tccl_baseline *baseline, FILE *out)
{
    char chain[TCCL_CHAIN_TEXT];

    if (set->gbps <= single)
        return;
    fprintf(out, "<tr><th scope=\"row\">%s</th><td>%d %s</td><td class=\"n\">%.2f</td>", gpus,
            set->set.n, what, set->gbps);
    if (baseline->gbps > 0)
        fprintf(out, "<td class=\"n\">%.2f</td><td class=\"n\">%.2f&#215;</td>", baseline->gbps,
                set->gbps / baseline->gbps);
    else
        fputs("<td class=\"n\">&#8211;</td><td class=\"n\">&#8211;</td>", out);
    if (isfinite(set->bound))
        fprintf(out, "<td class=\"n\">%.1f %%</td>", tccl_report_set_gap(set) * 100);
    else
        fputs("<td class=\"n\">&#8211;</td>", out);
    fputs("<td class=\"long\">", out);
    for (int i = 0; i < set->set.n; i++) {
        tccl_chain_format(&set->set.rings[i], report->machine, chain);
        fputs(i > 0 ? "<br/><code>" : "<code>", out);
        put(out, chain);
        fputs("</code>", out);
    }
    fputs("</td></tr>\n", out);
}

static void put_some_rings(const struct tccl_report *report, int from, int to, FILE *out)
{
    char gpus[GPUS_TEXT];

    static const char *const numbers[] = {"GB/s", "baseline", "ratio", "gap"};

    tccl_html_wide_begin("Rings found", out);
    fputs("<table class=\"rows six\">\n<tr><th scope=\"col\">GPUs</th><th scope=\"col\">what</th>",
          out);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        fprintf(out, "<th scope=\"col\" class=\"n\">%s</th>", numbers[i]);
    fputs("<th scope=\"col\" class=\"long\">in order</th></tr>\n", out);
    for (int i = from; i < to; i++) {
        const struct tccl_found_rings *found = &report->rings[i];
        tccl_numberset_format(found->gpus, gpus, sizeof(gpus));
        put_result(report, gpus, "ring", &found->ring, &found->baseline_ring, out);
        put_set(report, gpus, "rings", &found->ring_set, found->ring.gbps, &found->baseline_ring,
                out);
        put_result(report, gpus, "chain", &found->chain, &found->baseline_chain, out);
        put_set(report, gpus, "chains", &found->chain_set, found->chain.gbps,
                &found->baseline_chain, out);
    }
    fputs("</table>\n", out);
    tccl_html_wide_end(out);
}

static void put_rings(const struct tccl_report *report, FILE *out)
{
    int open = report->n_rings < OPEN_RINGS ? report->n_rings : OPEN_RINGS;

    fputs("<h2>Rings found</h2>\n<p class=\"dim\">For each set of GPUs the best ring on one node, "
          "and the best chain from network to network for one node of several. Baseline: what "
          "NCCL reaches by itself. Gap: how much better an undiscovered one could be at most. "
          "-w&gt; writes to the "
          "next, -r&gt; is read by the next, -mK&gt; through memory K, -g&gt; between NIC and "
          "GPU.</p>\n<div class=\"card\">\n",
          out);
    if (report->n_rings == 0)
        fputs("<p>None were searched yet.</p>\n", out);
    else
        put_some_rings(report, 0, open, out);
    if (open < report->n_rings) {
        fprintf(out, "<details><summary>%d more sets of GPUs</summary>\n", report->n_rings - open);
        put_some_rings(report, open, report->n_rings, out);
        fputs("</details>\n", out);
    }
    fputs("</div>\n", out);
}

void tccl_page_write(const struct tccl_report *report, FILE *out)
{
    char lead[TCCL_LEAD];
    tccl_page_lead(report, lead);
    tccl_html_begin("tccl-profile", report->machine->name,
                    *lead ? lead : "No rings were searched yet", out);
    tccl_page_rings(report, out);
    put_matrices(report, out);
    put_rings(report, out);
    put_congestion(report, out);
    put_origin(report, out);
    tccl_html_end("tccl-profile", out);
}
