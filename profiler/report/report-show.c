/* report-show.c: a report for a terminal and as a page. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/numberset.h"
#include "chain/chain.h"
#include "draw/doc.h"
#include "draw/html.h"
#include "draw/svg.h"
#include "report/report.h"
#include "search/setlog.h"

enum {
    GPUS_TEXT = 64,
    COLUMNS = 100,
    OPEN_CONGESTED = 4, /* on a page, not folded */
    MOST_CONGESTED = 200,
    OPEN_RINGS = 3,
    SHOWN_RINGS = 16 /* on a terminal */
};

/* ---- how it was measured ---- */

static void put_quality(struct tccl_doc *doc, const struct tccl_quality *quality)
{
    char marks[64] = "";
    tccl_doc_fact(doc, "Loads measured", "%ld (%ld noisy, %ld failed)", quality->sets,
                  quality->noisy, quality->failed);
    tccl_doc_fact(doc, "Spread of repeats", "%.1f %% median, %.1f %% worst",
                  quality->median_spread * 100, quality->worst_spread * 100);
    if (quality->timed > 0) {
        tccl_doc_fact(doc, "Start skew", "%.1f us median, %.1f us worst", quality->median_skew,
                      quality->worst_skew);
        tccl_doc_fact(doc, "Overlap of the members", "at least %.1f %%",
                      quality->least_overlap * 100);
    }
    for (int i = 0; i < TCCL_MARKS; i++)
        if (quality->marks & 1u << i) {
            size_t length = strlen(marks);
            snprintf(marks + length, sizeof(marks) - length, " %s", tccl_mark_name(1u << i));
        }
    if (quality->marked > 0)
        tccl_doc_fact(doc, "Marked, never served", "%ld sets:%s", quality->marked, marks);
}

static void put_origin(struct tccl_doc *doc, const struct tccl_report *report)
{
    const struct tccl_machine *machine = report->machine;
    const char *source = tccl_profile_source(report->profile);
    const char *conditions = tccl_profile_conditions(report->profile);
    time_t last = (time_t)report->last;
    struct tm tm;
    char when[32] = "unknown";
    if (report->last > 0 && localtime_r(&last, &tm))
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
    tccl_doc_fact(doc, "Source", "%s%s", source,
                  strcmp(source, "model") == 0 ? ": computed, not measured"
                  : strcmp(source, "host") == 0
                      ? ": cores and memory of this machine in place of GPUs"
                      : "");
    if (*conditions)
        tccl_doc_fact(doc, "Conditions", "%s", conditions);
    tccl_doc_fact(doc, "Last measured", "%s", when);
    put_quality(doc, &report->quality);
    if (report->together + report->foretold > 0)
        tccl_doc_fact(doc, "Jobs side by side", "%d results measured, %d foretold within 10 %%",
                      report->together, report->foretold);
    tccl_doc_fact(doc, "Machine id", "%s", tccl_profile_id(report->profile));
    tccl_doc_fact(doc,
                  doc->html ? "GPUs, memories, NICs, PCI switches" : "GPUs, memories, NICs, ...",
                  "%d, %d, %d, %d", machine->n_gpus, machine->n_memories, machine->n_nics,
                  machine->n_switches);
    if (machine->n_gpus > 0)
        tccl_doc_fact(doc, "GPU 0", "%s", machine->gpus[0].model);
    tccl_doc_fact(doc, "Made by", "%s", report->created_by);
}

/* ---- matrices ---- */

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
        tccl_svg_escape(label, out);
        fputs("</th>", out);
    }
    fputs("</tr>\n", out);
    for (int i = 0; i < matrix->rows; i++) {
        tccl_device_label(machine, (struct tccl_device){matrix->row_kind, (uint8_t)i}, label);
        fputs("<tr><th scope=\"row\">", out);
        tccl_svg_escape(label, out);
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

/* ---- congested loads ---- */

static void put_congested(struct tccl_doc *doc, const struct tccl_congested *one)
{
    char set[TCCL_SET_TEXT], text[TCCL_SET_TEXT + 80];
    tccl_set_format(&one->set, set);
    int length = snprintf(text, sizeof(text), "%s%s", set,
                          one->from == TCCL_ANSWER_MODEL ? "  (from the model)" : "");
    if (one->alike > 0)
        length +=
            snprintf(text + length, sizeof(text) - (size_t)length, "  (%ld like it)", one->alike);
    if (one->hides > 0)
        snprintf(text + length, sizeof(text) - (size_t)length, "  (%ld larger)", one->hides);
    tccl_doc_cell(doc, "%.0f %%%s", one->ratio * 100, one->noisy ? " ~" : "");
    if (doc->html)
        tccl_doc_bar(doc, one->ratio);
    tccl_doc_cell(doc, "%.2f", one->gbps);
    tccl_doc_cell(doc, "%s%.2f", one->at_least ? ">= " : "", one->alone);
    tccl_doc_code(doc, text);
    tccl_doc_row(doc);
}

/* From the i-th on, those unlike the ones before them, at most count. Returns where it stopped. */
static long put_some_congested(struct tccl_doc *doc, const struct tccl_report *report, long i,
                               long count)
{
    static const struct tccl_doc_column columns[] = {
        {"of alone", 8}, {"GB/s", 9}, {"alone", 11}, {"at the same time", 0}};
    tccl_doc_table(doc, "three", NULL, columns, 4);
    for (; i < report->n_congested && count > 0; i++)
        if (!report->congested[i].repeats) {
            put_congested(doc, &report->congested[i]);
            count--;
        }
    tccl_doc_table_end(doc);
    while (i < report->n_congested && report->congested[i].repeats)
        i++;
    return i;
}

/* limit: how many at most, before those that a page folds. */
static void put_congestion(struct tccl_doc *doc, const struct tccl_report *report, long limit)
{
    char about[400];
    long forms = 0;
    for (long i = 0; i < report->n_congested; i++)
        forms += !report->congested[i].repeats;
    snprintf(
        about, sizeof(about),
        "Transfers that run together below %.0f %% of what the slowest of them reaches alone, "
        "worst first: %s%ld, of %ld kinds. A set is as fast as its slowest member. Larger sets "
        "that hold a listed one and are as slow are left out. g0>m1: GPU 0 writes to memory 1, "
        "g0<m1: it reads from it.",
        report->threshold * 100, report->n_congested == TCCL_MAX_CONGESTED ? "at least " : "",
        report->n_congested, forms);
    tccl_doc_begin(doc, "Congested loads", about);
    if (report->n_congested == 0)
        tccl_doc_line(doc, "None.");
    long next = report->n_congested > 0 ? put_some_congested(doc, report, 0, limit) : 0;
    if (next < report->n_congested && doc->html) {
        fputs("<details><summary>More of them</summary>\n", doc->pen.out);
        put_some_congested(doc, report, next, MOST_CONGESTED - limit);
        fputs("</details>\n", doc->pen.out);
    }
    tccl_doc_end(doc);
}

/* Nothing where nothing is off. */
static void put_odds(struct tccl_doc *doc, const struct tccl_report *report)
{
    char text[TCCL_ODD_TEXT];
    if (report->n_odds == 0)
        return;
    tccl_doc_begin(doc, "Off among equals",
                   "Figures far below those of transfers that this machine should not tell apart.");
    for (int i = 0; i < report->n_odds; i++) {
        tccl_odd_format(report->machine, &report->odds[i], text);
        tccl_doc_line(doc, "%s: %s.", text, report->advice[i]);
    }
    tccl_doc_end(doc);
}

/* Nothing where a further transfer makes no set faster, as all bounds have it. */
static void put_faster(struct tccl_doc *doc, const struct tccl_report *report)
{
    char text[TCCL_ODDITY_TEXT];
    if (report->n_faster == 0)
        return;
    tccl_doc_begin(
        doc, "Faster with more",
        "Loads that are slower than a larger one, both measured four times. Here the "
        "rule does not hold that a "
        "further transfer makes nothing faster: these loads bound no chains, and a chain "
        "may be faster than its bound "
        "where others like them were not measured.");
    for (int i = 0; i < report->n_faster; i++) {
        tccl_oddity_format(&report->faster[i], text);
        tccl_doc_line(doc, "%s.", text);
    }
    tccl_doc_end(doc);
}

/* ---- rings ---- */

/* n chains that run at once; what: "ring", "rings", "chain", "chains". gap: below 0: not known. */
static void put_chains(struct tccl_doc *doc, const struct tccl_report *report, uint32_t gpus,
                       const char *what, const struct tccl_chain *chains, int n, double gbps,
                       double own, double gap)
{
    char text[TCCL_CHAIN_TEXT], which[GPUS_TEXT];
    tccl_numberset_format(gpus, which, sizeof(which));
    tccl_doc_cell(doc, "%s", which);
    if (n > 1)
        tccl_doc_cell(doc, "%d %ss", n, what);
    else
        tccl_doc_cell(doc, "%s", what);
    tccl_doc_cell(doc, "%.2f", gbps);
    if (own > 0) {
        tccl_doc_cell(doc, "%.2f", own);
        tccl_doc_cell(doc, "%.2f%s", gbps / own, doc->html ? "×" : "x");
    } else {
        tccl_doc_cell(doc, "-");
        tccl_doc_cell(doc, "-");
    }
    if (gap >= 0)
        tccl_doc_cell(doc, "%.1f %%", gap * 100);
    else
        tccl_doc_cell(doc, "-");
    for (int i = 0; i < n; i++) {
        tccl_chain_format(&chains[i], report->machine, text);
        tccl_doc_code(doc, text);
    }
    tccl_doc_row(doc);
}

/* The best one, and several at once, where they are faster. */
static void put_found(struct tccl_doc *doc, const struct tccl_report *report, uint32_t gpus,
                      const char *what, const struct tccl_best *found)
{
    const struct tccl_seen *several = &found->several;
    double own = found->baseline.gbps;
    if (found->one.chain.n_gpus > 0)
        put_chains(doc, report, gpus, what, &found->one.chain, 1, found->one.gbps, own,
                   tccl_report_gap(found->one.gbps, found->one.bound));
    if (several->gbps > found->one.gbps)
        put_chains(doc, report, gpus, what, several->set.rings, several->set.n, several->gbps, own,
                   isfinite(several->bound) ? tccl_report_gap(several->gbps, several->bound) : -1);
}

static void put_some_rings(struct tccl_doc *doc, const struct tccl_report *report, int from, int to)
{
    static const struct tccl_doc_column columns[] = {{"GPUs", -10},    {"what", -9}, {"GB/s", 9},
                                                     {"baseline", 10}, {"ratio", 8}, {"gap", 9},
                                                     {"in order", 0}};
    if (doc->html)
        tccl_html_wide_begin("Rings found", doc->pen.out);
    tccl_doc_table(doc, "six", NULL, columns, 7);
    for (int i = from; i < to; i++) {
        const struct tccl_report_rings *found = &report->rings[i];
        put_found(doc, report, found->gpus, "ring", &found->alone);
        put_found(doc, report, found->gpus, "chain", &found->open);
    }
    tccl_doc_table_end(doc);
    if (doc->html)
        tccl_html_wide_end(doc->pen.out);
}

static void put_rings(struct tccl_doc *doc, const struct tccl_report *report)
{
    int most = doc->html ? OPEN_RINGS : SHOWN_RINGS,
        open = report->n_rings < most ? report->n_rings : most;
    tccl_doc_begin(doc, "Rings found",
                   "For each set of GPUs the best ring on one node, and the best chain from "
                   "network to network for one node of several. Baseline: what NCCL reaches by "
                   "itself. Gap: how much better an undiscovered one could be at most. -w> writes "
                   "to the next, -r> is read by the next, -mK> through memory K, -g> between NIC "
                   "and GPU.");
    if (report->n_rings == 0)
        tccl_doc_line(doc, "No rings were searched yet.");
    else
        put_some_rings(doc, report, 0, open);
    if (open < report->n_rings && doc->html) {
        fprintf(doc->pen.out, "<details><summary>%d more sets of GPUs</summary>\n",
                report->n_rings - open);
        put_some_rings(doc, report, open, report->n_rings);
        fputs("</details>\n", doc->pen.out);
    } else if (open < report->n_rings) {
        tccl_doc_line(doc, "%d more sets of GPUs: tccl-profile show", report->n_rings - open);
    }
    tccl_doc_end(doc);
}

void tccl_report_print(const struct tccl_report *report, bool colours, long limit, FILE *out)
{
    struct tccl_doc doc = {.pen = {.out = out, .columns = COLUMNS}};
    tccl_doc_fact(&doc, "Machine", "%s", report->machine->name);
    put_origin(&doc, report);
    put_odds(&doc, report);
    put_faster(&doc, report);
    int from_model = 0;
    for (int i = 0; i < TCCL_MATRICES; i++)
        from_model += report->matrices[i].from_model;
    fputs("\nBandwidth, GB/s. - not possible, ? not measured, ! failed, ~ noisy", out);
    fprintf(out, "%s\n", from_model > 0 ? ", * from the model" : "");
    for (int i = 0; i < TCCL_MATRICES; i++) {
        const struct tccl_matrix *matrix = &report->matrices[i];
        if (matrix->row_kind == TCCL_NIC && report->machine->n_nics == 0)
            continue;
        fputc('\n', out);
        tccl_matrix_print(matrix, report->machine, colours ? report->fastest : 0, out);
    }
    put_congestion(&doc, report, limit);
    put_rings(&doc, report);
}

void tccl_report_page(const struct tccl_report *report, FILE *out)
{
    struct tccl_doc doc = {.pen = {.out = out}, .html = true};
    char lead[TCCL_LEAD];
    tccl_report_lead(report, lead);
    tccl_html_begin("tccl-profile", report->machine->name,
                    *lead ? lead : "No rings were searched yet", out);
    tccl_report_draw(report, out);
    put_odds(&doc, report);
    put_faster(&doc, report);
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
    put_rings(&doc, report);
    put_congestion(&doc, report, OPEN_CONGESTED);
    fputs("<h2>How it was measured</h2>\n<div class=\"card\"><dl class=\"facts\">\n", out);
    put_origin(&doc, report);
    fputs("</dl></div>\n", out);
    tccl_html_end("tccl-profile", out);
}
