/* acct-ring-page.c: the ring of a step as a page. */
#include <string.h>

#include "acct/acct-html.h"
#include "acct/acct-ring-svg.h"
#include "acct/acct-ring.h"
#include "base/cleanup.h"
#include "base/fields.h"
#include "draw/chart.h"
#include "draw/html.h"
#include "draw/svg.h"
#include "draw/way.h"

enum { NAMES = 400, TEXT = 8192 }; /* longest texts, columns */

static void put_lines(const struct acct_ring_facts *facts, FILE *out)
{
    fputs("<h2>In short</h2>\n<div class=\"card\">\n", out);
    for (int i = facts->lead ? 0 : 1; i < facts->n_lines; i++) {
        fputs("<p>", out);
        tccl_svg_escape(facts->lines[i], out);
        fputs("</p>\n", out);
    }
    fputs("</div>\n", out);
}

static void put_bandwidths(const struct acct_ring_facts *facts, FILE *out)
{
    struct tccl_chart_column columns[ACCT_RING_BARS] = {0};
    struct tccl_chart chart = {.name = "Bandwidth of the ring and what to compare it with",
                               .x_axis = "ring",
                               .y_axis = "GB/s",
                               .series = {"GB/s (1e9 bytes per second)"},
                               .n_series = 1,
                               .digits = 2,
                               .columns = columns,
                               .n_columns = facts->n_bars};
    if (facts->n_bars == 0)
        return;
    for (int i = 0; i < facts->n_bars; i++) {
        snprintf(columns[i].name, sizeof(columns[i].name), "%s", facts->bars[i].label);
        snprintf(columns[i].label, sizeof(columns[i].label), "%s", facts->bars[i].label);
        columns[i].values[0] = facts->bars[i].gbps;
    }
    fputs("<h2>Bandwidth</h2>\n<div class=\"card\">\n", out);
    tccl_chart_write(&chart, out);
    fputs("</div>\n", out);
}

static void put_chain(const struct tccl_named_chain *chain, FILE *out)
{
    char text[TCCL_CHAIN_TEXT];
    tccl_named_format(chain, text);
    fputs("<code>", out);
    acct_html_text(text, TEXT, out);
    fputs("</code>", out);
}

static void put_card(const struct acct_ring *ring, const struct acct_group *group, int place,
                     FILE *out)
{
    int count;
    cleanup_free char *names = acct_group_names(ring, group, place, &count);
    fputs("<tr><th scope=\"row\">", out);
    acct_html_text(names ? names : "", NAMES, out);
    fprintf(out, "</th><td class=\"n\">%d</td><td>", count);
    const struct tccl_named_rings *set = &ring->sets[ring->runs[group->first + place].set];
    for (int r = 0; r < set->n; r++) {
        fputs(r ? "<br/>" : "", out);
        put_chain(&set->chains[r], out);
    }
    fputs("</td></tr>\n", out);
}

/* The drawing as a table, for those who can't see it. */
static void put_cards(const struct acct_ring *ring, FILE *out)
{
    enum { CARDS = 1000 };
    int cards = 0;
    fputs("<details><summary>As a table</summary>\n<table class=\"rows\">\n<caption>Nodes "
          "in ring order, with the path of the data on each</caption>\n<tr><th scope=\"col\">"
          "Nodes</th><th scope=\"col\" class=\"n\">Number</th><th scope=\"col\">Chain</th></tr>\n",
          out);
    for (int i = 0; i < ring->n_groups; i++)
        for (int place = 0; place < ring->groups[i].n_runs && cards < CARDS; place++, cards++)
            put_card(ring, &ring->groups[i], place, out);
    fprintf(out, "</table>\n%s</details>\n",
            cards == CARDS ? "<p>Only the first are listed.</p>\n" : "");
}

/* The steps beside it, as a table. */
static void put_beside(const struct acct_ring *ring, const struct acct_ring_facts *facts, FILE *out)
{
    if (facts->n_beside == 0)
        return;
    fputs("<h2>Beside it when it began</h2>\n<div class=\"card\">\n<table class=\"rows\">\n<tr>"
          "<th scope=\"col\">Step</th><th scope=\"col\" class=\"n\">GB/s</th><th scope=\"col\" "
          "class=\"n\">Alone</th><th scope=\"col\">Chains</th></tr>\n",
          out);
    for (int i = 0; i < facts->n_beside; i++) {
        const struct tccl_neighbour *other = &facts->beside[i];
        char place[ACCT_RING_PLACE], who[ACCT_RING_WHO];
        acct_ring_place(ring, other->node, place);
        acct_ring_who(other, -1, who);
        fprintf(out,
                "<tr><th scope=\"row\">%s on %s</th><td class=\"n\">%s%.2f</td><td "
                "class=\"n\">%.2f</td><td>",
                who, place, acct_ring_at_least(facts, i) ? "≥ " : "", other->gbps, other->alone);
        for (int k = 0; k < other->rings.n; k++) {
            fputs(k ? "<br/>" : "", out);
            put_chain(&other->rings.chains[k], out);
        }
        fputs("</td></tr>\n", out);
    }
    fputs("</table>\n</div>\n", out);
}

/* A chain whose edges all carry as much; the bounces of that memory are marked. */
static void put_way(const struct tccl_named_chain *chain, double gbps, int busy, FILE *out)
{
    double rates[TCCL_CHAIN_GPUS + 1];
    bool marked[TCCL_CHAIN_GPUS + 1];
    for (int i = 0; i < tccl_named_arrows(chain); i++) {
        struct tccl_text_arrow arrow = tccl_named_arrow(chain, i);
        rates[i] = gbps;
        marked[i] = arrow.kind == 'm' && arrow.memory == busy;
    }
    tccl_way_write(chain, rates, marked, out);
}

/* The drawing as lists, for phones: the chains of each set once. */
static void put_ways(const struct acct_ring *ring, const struct acct_ring_facts *facts, FILE *out)
{
    enum { WAYS = 16 };
    for (int i = 0; i < ring->n_sets && i < WAYS; i++) {
        int first = -1, nodes = 0;
        for (int run = 0; run < ring->n_runs; run++) {
            if (ring->runs[run].set != i)
                continue;
            first = first < 0 ? ring->runs[run].first : first;
            nodes += ring->runs[run].count;
        }
        fputs("<p class=\"way\">", out);
        acct_html_text(ring->names[first], NAMES, out);
        fputs(nodes > 1 ? " and nodes like it</p>\n" : "</p>\n", out);
        for (int r = 0; r < ring->n_rings; r++)
            put_way(&ring->sets[i].chains[r], facts->gbps / ring->n_rings, -1, out);
    }
    for (int i = 0; i < facts->nccl.n; i++) {
        char text[ACCT_RING_LABEL];
        acct_ring_nccl(ring, facts, i, text);
        fputs("<p class=\"way\">", out);
        tccl_svg_escape(text, out);
        fputs("</p>\n", out);
        put_way(&facts->nccl.chains[i], facts->baseline_gbps / facts->nccl.n, facts->busy.memory,
                out);
    }
}

/* In grey, as drawn, the steps beside it. */
static void put_other_ways(const struct acct_ring *ring, const struct acct_ring_facts *facts,
                           FILE *out)
{
    if (facts->n_beside == 0)
        return;
    fputs("<div class=\"grey\">\n", out);
    for (int i = 0; i < facts->n_beside; i++) {
        const struct tccl_neighbour *other = &facts->beside[i];
        char text[ACCT_RING_LABEL];
        acct_ring_beside(ring, facts, i, -1, text);
        fputs("<p class=\"way\">", out);
        tccl_svg_escape(text, out);
        fputs("</p>\n", out);
        for (int k = 0; k < other->rings.n; k++)
            put_way(&other->rings.chains[k], other->gbps / other->rings.n, -1, out);
    }
    fputs("</div>\n", out);
}

static int put_ring(const struct acct_ring *ring, const struct acct_ring_facts *facts, FILE *out,
                    struct tccl_error *err)
{
    fprintf(out,
            "<h2>The ring%s%s%s</h2>\n<div class=\"card\">\n<figure>\n<div class=\"drawing\">\n",
            ring->n_rings > 1 ? "s" : "",
            !facts->nccl.n    ? ""
            : facts->n_beside ? ", NCCL's own"
                              : ", and NCCL's own",
            facts->n_beside ? ", and what ran beside" : "");
    tccl_html_wide_begin("The ring, drawn", out);
    int rc = acct_ring_draw(out, ring, facts, err);
    tccl_html_wide_end(out);
    fputs("</div>\n", out);
    put_ways(ring, facts, out);
    put_other_ways(ring, facts, out);
    put_cards(ring, out);
    fputs("</figure>\n</div>\n", out);
    return rc;
}

static void put_facts(const json_t *record, FILE *out)
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
                 {"Mode", "Mode"},
                 {"Policy", "Policy"},
                 {"State", "State"},
                 {"Reason", "Reason"},
                 {"Built", "What NCCL built"},
                 {"BuiltReason", "Reason or difference"},
                 {"NCCL", "Version of NCCL"},
                 {"GBps", "Bandwidth, GB/s"},
                 {"BaselineGBps", "Baseline (NCCL's own rings), GB/s"},
                 {"Neighbours", "Other steps beside it"},
                 {"NeighboursBy", "Bandwidths beside them by"},
                 {"AloneGBps", "Beside nobody, GB/s"},
                 {"PlacedGBps", "On the machine's best GPUs, GB/s"},
                 {"BoundGBps", "Proven upper bound, GB/s"},
                 {"Ratio", "Gain over the baseline, times"},
                 {"Source", "Bandwidths from"},
                 {"TrafficClass", "Traffic class"},
                 {"SolveTime", "Time to a ring"},
                 {"Start", "Started"},
                 {"Restarts", "Times requeued"}};
    fputs("<h2>The step</h2>\n<div class=\"card\"><dl class=\"facts\">\n", out);
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        cleanup_free char *text = acct_ring_shown(record, shown[i].field);
        if (text && *text)
            tccl_html_fact(out, shown[i].name, "%s", text);
    }
    fputs("</dl></div>\n", out);
}

static void put_notation(const json_t *record, FILE *out)
{
    static const struct {
        const char *arrow, *meaning;
    } arrows[] = {
        {"-w&gt;", "the GPU writes into the next one"},
        {"-r&gt;", "the next GPU reads from the one before it"},
        {"-m<var>K</var>&gt;", "through memory <var>K</var>: written to it, and read from there"},
        {"-g&gt;", "between NIC and GPU directly (GPUDirect)"}};
    fputs("<h2>Notation</h2>\n<div class=\"card\">\n<table class=\"rows\">\n<tr><th scope=\"col\">"
          "Arrow</th><th scope=\"col\">Data path</th></tr>\n",
          out);
    for (size_t i = 0; i < sizeof(arrows) / sizeof(arrows[0]); i++)
        fprintf(out, "<tr><th scope=\"row\"><code>%s</code></th><td>%s</td></tr>\n",
                arrows[i].arrow, arrows[i].meaning);
    fputs("</table>\n<details><summary>The ring on one line</summary>\n<p><code>", out);
    acct_html_text(tccl_text_of(record, "ring"), TEXT, out);
    fputs("</code></p>\n</details>\n</div>\n", out);
}

int acct_ring_page(FILE *out, const json_t *record, const struct acct_asked *asked,
                   struct tccl_error *err)
{
    struct acct_ring ring;
    struct acct_ring_facts facts;
    int rc = acct_ring_facts_read(record, &ring, &facts, err);
    if (rc == 0) {
        tccl_html_begin("tcclacct", facts.title, facts.lead ? facts.lead : facts.lines[0], out);
        rc = put_ring(&ring, &facts, out, err);
        put_bandwidths(&facts, out);
        put_lines(&facts, out);
        put_beside(&ring, &facts, out);
        put_facts(record, out);
        put_notation(record, out);
        acct_html_asked(asked, out);
        tccl_html_end("tcclacct", out);
    }
    acct_ring_facts_clear(&ring, &facts);
    return rc;
}
