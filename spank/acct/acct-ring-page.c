/* acct-ring-page.c: the ring of a step as a page. */

#include "acct/acct.h"
#include "base/cleanup.h"
#include "base/fields.h"
#include "draw/doc.h"
#include "draw/html.h"
#include "draw/svg.h"

enum { LINE = 4000, TEXT = 8192 }; /* longest texts, columns */

/* The steps beside it, as a table. */
static void put_beside(const struct acct_drawn *drawn, struct tccl_doc *doc)
{
    static const struct tccl_doc_column columns[] = {
        {"Step", -1}, {"GB/s", 1}, {"Alone", 1}, {"Chains", 0}};
    if (drawn->n_beside == 0)
        return;
    tccl_doc_begin(doc, "Beside it when it began", NULL);
    tccl_doc_table(doc, "", NULL, columns, 4);
    for (int i = 0; i < drawn->n_beside; i++) {
        const struct tccl_neighbour *other = &drawn->beside[i];
        char place[ACCT_PLACE], rings[24] = "a ring", step[ACCT_PLACE + 40];
        if (other->rings.n > 1)
            snprintf(rings, sizeof(rings), "%d rings", other->rings.n);
        acct_drawn_place(drawn, other->node, place);
        snprintf(step, sizeof(step), "%s on %s", other->nccl ? "NCCL's own" : rings, place);
        tccl_doc_text(doc, step, sizeof(step));
        tccl_doc_cell(doc, "%s%.2f", acct_drawn_least(drawn, i) ? "≥ " : "", other->gbps);
        tccl_doc_cell(doc, "%.2f", other->alone);
        tccl_doc_chains(doc, &other->rings);
        tccl_doc_row(doc);
    }
    tccl_doc_table_end(doc);
    tccl_doc_end(doc);
}

static int put_ring(const struct acct_drawn *drawn, FILE *out)
{
    const struct tccl_sheet *sheet = &drawn->sheet;
    fprintf(out,
            "<h2>The ring%s%s%s</h2>\n<div class=\"card\">\n<figure>\n<div class=\"drawing\">\n",
            drawn->ring.n_rings > 1 ? "s" : "",
            !drawn->nccl.n    ? ""
            : drawn->n_beside ? ", NCCL's own"
                              : ", and NCCL's own",
            drawn->n_beside ? ", and what ran beside" : "");
    tccl_html_wide_begin("The ring, drawn", out);
    int rc = tccl_sheet_svg(sheet, true, out);
    tccl_html_wide_end(out);
    fputs("</div>\n", out);
    tccl_sheet_ways(sheet, out);
    tccl_sheet_table(sheet, out);
    fputs("</figure>\n</div>\n", out);
    return rc;
}

static void put_facts(const json_t *record, struct acct_drawn *drawn, FILE *out)
{
    static const struct {
        const char *field, *name;
    } shown[] = {{"JobID", "Step"},
                 {"JobName", "Job name"},
                 {"User", "User"},
                 {"Account", "Account"},
                 {"Partition", "Partition"},
                 {"QOS", "QOS"},
                 {"Claimed", "Claimed by the job's environment, not checked"},
                 {"Cluster", "Cluster"},
                 {"NodeList", "Nodes"},
                 {"GPUs", "GPUs"},
                 {"Rings", "Rings at once"},
                 {"FewerRings", "Why no more at once"},
                 {"Degraded", "What a node had less than was measured"},
                 {"Mode", "Mode"},
                 {"Policy", "Policy"},
                 {"State", "State"},
                 {"Reason", "Reason"},
                 {"Built", "What NCCL built"},
                 {"BuiltReason", "Reason or difference"},
                 {"Slowed", "What began beside it and slows it down"},
                 {"NCCL", "Version of NCCL"},
                 {"AchievedGBps", "Achieved by the best tenth of its large collectives, GB/s"},
                 {"AchievedMedian", "Achieved by half of them, GB/s"},
                 {"AchievedShare", "Achieved, of what was predicted"},
                 {"AchievedWith", "Achieved with"},
                 {"Samples", "Collectives measured"},
                 {"SentBytes", "Bytes of its collectives"},
                 {"Captured", "Collectives captured into CUDA graphs"},
                 {"SentShare", "Part of its time in them"},
                 {"GBps", "Predicted bandwidth, GB/s"},
                 {"BaselineGBps", "Baseline (NCCL's own rings), GB/s"},
                 {"Neighbours", "Other steps beside it"},
                 {"NeighboursBy", "Bandwidths beside them by"},
                 {"AloneGBps", "Beside nobody, GB/s"},
                 {"PlacedGBps", "On the machine's best GPUs, GB/s"},
                 {"BoundGBps", "Proven upper bound, GB/s"},
                 {"Ratio", "Gain over the baseline, times"},
                 {"NodeClass", "Machine and GPUs"},
                 {"Source", "Bandwidths from"},
                 {"TrafficClass", "Traffic class"},
                 {"SolveTime", "Time to a ring"},
                 {"Start", "Started"},
                 {"Restarts", "Times requeued"}};
    fputs("<h2>The step</h2>\n<div class=\"card\"><dl class=\"facts\">\n", out);
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        const char *text = acct_drawn_field(drawn, record, shown[i].field);
        cleanup_free char *safe = tccl_term_escape(text, NULL);
        if (safe && *safe)
            tccl_html_fact(out, shown[i].name, "%s", safe);
    }
    fputs("</dl></div>\n", out);
}

static void put_notation(const json_t *record, struct tccl_doc *doc)
{
    static const struct tccl_doc_column columns[] = {{"Arrow", -1}, {"Data path", -1}};
    static const char *const arrows[][2] = {
        {"-w>", "the GPU writes into the next one"},
        {"-r>", "the next GPU reads from the one before it"},
        {"-mK>", "through memory K: written to it, and read from there"},
        {"-g>", "between NIC and GPU directly (GPUDirect)"}};
    tccl_doc_begin(doc, "Notation", NULL);
    tccl_doc_table(doc, "", NULL, columns, 2);
    for (size_t i = 0; i < sizeof(arrows) / sizeof(arrows[0]); i++) {
        tccl_doc_cell(doc, "%s", arrows[i][0]);
        tccl_doc_cell(doc, "%s", arrows[i][1]);
        tccl_doc_row(doc);
    }
    tccl_doc_table_end(doc);
    fputs("<details><summary>The ring on one line</summary>\n<p><code>", doc->pen.out);
    tccl_html_text(tccl_text_of(record, "ring"), TEXT, doc->pen.out);
    fputs("</code></p>\n</details>\n", doc->pen.out);
    tccl_doc_end(doc);
}

int acct_ring_page(FILE *out, const json_t *record, const struct acct_asked *asked,
                   struct tccl_error *err)
{
    struct acct_drawn drawn;
    struct tccl_doc doc = {.pen = {.out = out}, .html = true};
    const struct tccl_sheet *sheet = &drawn.sheet;
    int rc = acct_drawn_read(record, &drawn, err);
    if (rc == 0) {
        cleanup_free char *title = tccl_term_escape(sheet->title, NULL);
        cleanup_free char *lead =
            tccl_term_escape(sheet->lead ? sheet->lead : sheet->lines[0], NULL);
        tccl_html_begin("tcclacct", title ? title : "", lead, out);
        if (put_ring(&drawn, out) != 0)
            rc = tccl_fail(err, "out of memory");
        tccl_sheet_chart(sheet, out);
        fputs("<h2>In short</h2>\n<div class=\"card\">\n", out);
        for (int i = sheet->lead ? 0 : 1; i < sheet->n_lines; i++) {
            cleanup_free char *line = tccl_term_cut(sheet->lines[i], LINE, "…");
            fputs("<p>", out);
            tccl_svg_escape(line ? line : "", out);
            fputs("</p>\n", out);
        }
        fputs("</div>\n", out);
        put_beside(&drawn, &doc);
        put_facts(record, &drawn, out);
        put_notation(record, &doc);
        acct_html_asked(asked, out);
        tccl_html_end("tcclacct", out);
    }
    acct_drawn_clear(&drawn);
    return rc;
}
