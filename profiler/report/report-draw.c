/* report-draw.c: the best rings of a report, drawn beside what NCCL builds by itself. */
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "chain/memory-load.h"
#include "draw/html.h"
#include "draw/svg.h"
#include "machine/meter.h"
#include "report/report.h"
#include "ring/latency.h"
#include "ring/ring.h"

enum { MOST_WIDTH = 1280, LEAST_WIDTH = 330, SEVERAL = 2 /* nodes, for the decision */ };
#define SAME 1.005 /* bandwidths that differ by less are called equal */

/* Chains that run at once, and what is known of them. */
struct drawn {
    const char *who;  /* of a panel */
    const char *what; /* in a sentence: "the best single ring" */
    const struct tccl_chain *chains;
    int n;
    double gbps;   /* of all together, GB/s */
    char held[32]; /* by what, in words: of ours, where red is NCCL's */
    struct tccl_limit limit;
    bool known; /* the limit is */
};

/* "best rings: 3 of 3.94 GB/s, together 11.81 GB/s". */
static void say_rings(const struct drawn *drawn, char text[static TCCL_PANEL_HEAD])
{
    if (drawn->n > 1)
        snprintf(text, TCCL_PANEL_HEAD, "%s: %d of %.2f GB/s, together %.2f GB/s%s", drawn->who,
                 drawn->n, drawn->gbps / drawn->n, drawn->gbps, drawn->held);
    else
        snprintf(text, TCCL_PANEL_HEAD, "%s: %.2f GB/s%s", drawn->who, drawn->gbps, drawn->held);
}

/* A ring and, with chains, NCCL's own. */
struct pair {
    struct drawn ours, nccl;
};

/* What a job gets: several rings where they are worth it. */
static struct drawn drawn_of(const struct tccl_report *report, const struct tccl_best *found,
                             int nodes)
{
    const struct tccl_report_rings *all = &report->rings[0];
    const struct tccl_ring_set *set = &found->several.set;
    const struct tccl_decision_case one = {
        .ours = {.gbps = found->one.gbps,
                 .share = 1,
                 .bounces = tccl_bounces(&found->one.chain, 1)},
        .nccl = {.gbps = found->baseline.gbps,
                 .share = 1,
                 .bounces = tccl_bounces(found->baseline.set.rings, found->baseline.set.n)},
        .nodes = nodes,
        .gpus = nodes * __builtin_popcount(all->gpus),
        .noise = all->noise,
        .measured = tccl_meter_measured(tccl_profile_source(report->profile))};
    struct tccl_decision_case several = one;
    several.ours.gbps = found->several.gbps;
    several.ours.rings = set->n;
    several.ours.bounces = tccl_bounces(set->rings, set->n);
    if (set->n > 1 && tccl_decide_several(&several, &one))
        return (struct drawn){.who = "best rings",
                              .what = "the best rings at once",
                              .chains = set->rings,
                              .n = set->n,
                              .gbps = found->several.gbps};
    return (struct drawn){.who = "best ring",
                          .what = "the best single ring",
                          .chains = &found->one.chain,
                          .n = 1,
                          .gbps = found->one.gbps};
}

static void find_limit(const struct tccl_report *report, struct drawn *drawn)
{
    if (drawn->n > 0)
        drawn->known =
            tccl_limit_find(report->measured.model, &report->measured.sets, drawn->chains, drawn->n,
                            drawn->gbps / drawn->n, false, &drawn->limit, NULL) == 0;
}

/* The memory to and from which most of its members copy, two of three at least: of a measured
 * machine the smallest set that is known to be as slow may hold one that is innocent. -1: none. */
static int memory_of(const struct tccl_side *set)
{
    int copies[TCCL_MAX_MEMORIES] = {0};
    for (int i = 0; i < set->count; i++) {
        struct tccl_device target = tccl_transfer_target(set->transfers[i]);
        if (target.kind == TCCL_MEMORY)
            copies[target.index]++;
    }
    for (int i = 0; i < TCCL_MAX_MEMORIES; i++)
        if (copies[i] > 1 && 3 * copies[i] >= 2 * set->count)
            return i;
    return -1;
}

static void find_pair(const struct tccl_report *report, const struct tccl_best *found, int nodes,
                      struct pair *pair)
{
    const struct tccl_baseline *baseline = &found->baseline;
    *pair = (struct pair){
        .ours = drawn_of(report, found, nodes),
        .nccl = {.who = "NCCL's own", .chains = baseline->set.rings, .gbps = baseline->gbps}};
    if (baseline->gbps > 0)
        pair->nccl.n = baseline->set.n;
    find_limit(report, &pair->ours);
    /* Red is what limits NCCL; what limits ours is a word. */
    int memory = memory_of(&pair->ours.limit.part);
    if (pair->ours.known && pair->ours.limit.rated.slow.count > 1 && memory >= 0)
        snprintf(pair->ours.held, sizeof(pair->ours.held), ", limited by memory %d", memory);
    pair->ours.limit.rated.slow.count = 0;
    find_limit(report, &pair->nccl);
}

/* What holds NCCL's own chains back: "NCCL reads and writes memory 1 from three GPUs at once", or
 * how much slower some are together. "": none is known to hold another one back. */
static void say_limit(const struct drawn *nccl, const struct tccl_machine *machine,
                      char text[static TCCL_LOAD_TEXT])
{
    const struct tccl_side *slow = &nccl->limit.part;
    struct tccl_named_chain named[TCCL_CHAIN_RINGS];
    text[0] = '\0';
    if (!nccl->known || slow->count < 2)
        return;
    for (int i = 0; i < nccl->n && i < TCCL_CHAIN_RINGS; i++)
        tccl_chain_name(&nccl->chains[i], machine, true, &named[i]);
    int memory = memory_of(slow);
    if (memory >= 0) {
        struct tccl_memory_load load = tccl_memory_load(named, nccl->n, memory);
        tccl_memory_load_say(&load, "NCCL", text);
    } else {
        snprintf(text, TCCL_LOAD_TEXT, "NCCL makes %d copies at once, of %.2f GB/s each",
                 slow->count, nccl->gbps / nccl->n);
    }
}

static void say_pair(const struct tccl_report *report, const struct pair *pair,
                     char text[static TCCL_LEAD])
{
    const struct drawn *ours = &pair->ours, *nccl = &pair->nccl;
    char cause[TCCL_LOAD_TEXT] = "";
    if (!(nccl->gbps > 0)) {
        snprintf(text, TCCL_LEAD, "%.2f GB/s; what NCCL's own rings reach was not measured",
                 ours->gbps);
        return;
    }
    if (ours->gbps < nccl->gbps * SAME) {
        snprintf(text, TCCL_LEAD, "NCCL's own rings are %s: %.2f GB/s, %s %.2f",
                 nccl->gbps > ours->gbps * SAME ? "faster" : "as fast", nccl->gbps, ours->what,
                 ours->gbps);
        return;
    }
    say_limit(nccl, report->machine, cause);
    snprintf(text, TCCL_LEAD, "%.2f in place of %.2f GB/s%s%s", ours->gbps, nccl->gbps,
             *cause ? ". Why ours is faster: " : "", cause);
}

static const struct tccl_report_rings *all_gpus(const struct tccl_report *report)
{
    return report->n_rings > 0 ? &report->rings[0] : NULL;
}

void tccl_report_lead(const struct tccl_report *report, char text[static TCCL_LEAD])
{
    const struct tccl_report_rings *all = all_gpus(report);
    struct pair pair;
    text[0] = '\0';
    if (!all || (all->alone.one.chain.n_gpus == 0 && all->open.one.chain.n_gpus == 0))
        return;
    bool alone = all->alone.one.chain.n_gpus > 0;
    find_pair(report, alone ? &all->alone : &all->open, alone ? 1 : SEVERAL, &pair);
    say_pair(report, &pair, text);
}

static void make_panel(const struct tccl_report *report, uint32_t gpus, const struct drawn *drawn,
                       struct tccl_panel *panel)
{
    say_rings(drawn, panel->head);
    tccl_panel_make(report->machine, gpus, drawn->chains, drawn->n, &drawn->limit.rated, panel);
}

static void put_svg(struct tccl_panels *panels, const char *what, bool first, FILE *out)
{
    tccl_panels_place(panels, MOST_WIDTH);
    double width = fmax(LEAST_WIDTH, panels->width);
    fputs("<div class=\"drawing\">\n", out);
    tccl_html_wide_begin(what, out);
    fprintf(out,
            "<svg width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "style=\"min-width:%.0fpx\" role=\"img\" aria-label=\"%s: drawing, the same as a list "
            "below\">\n"
            "<g aria-hidden=\"true\">\n",
            width, panels->height, width, panels->height, TCCL_HTML_LEGIBLE * width, what);
    if (first)
        tccl_svg_style(out);
    tccl_panels_svg(panels, out);
    fputs("</g>\n</svg>\n", out);
    tccl_html_wide_end(out);
    fputs("</div>\n", out);
}

static double rate_of(const struct tccl_rated *rated, tccl_transfer transfer, bool *slow)
{
    *slow |= rated->slow.count > 1 && tccl_set_has(&rated->slow, transfer);
    for (int i = 0; i < rated->set.count; i++)
        if (rated->set.transfers[i] == transfer)
            return rated->gbps[i];
    return 0;
}

static void put_ways(const struct tccl_report *report, const struct drawn *drawn, FILE *out)
{
    char text[TCCL_PANEL_HEAD];
    say_rings(drawn, text);
    if (drawn->n > 0)
        fprintf(out, "<p class=\"way\">%s</p>\n", text);
    for (int i = 0; i < drawn->n; i++) {
        /* The same as a list of devices. An arrow is as slow as the slower one of its copies. */
        struct tccl_arrow arrows[TCCL_MAX_ARROWS];
        struct tccl_named_chain named;
        double gbps[TCCL_CHAIN_GPUS + 1] = {0};
        bool slow[TCCL_CHAIN_GPUS + 1] = {false};
        int n = tccl_chain_arrows(&drawn->chains[i], arrows);
        for (int k = 0; k < n; k++) {
            int at = arrows[k].step - 1;
            double reaches = rate_of(&drawn->limit.rated, arrows[k].transfer, &slow[at]);
            gbps[at] = gbps[at] > 0 && reaches > 0 ? fmin(gbps[at], reaches) : reaches;
        }
        tccl_chain_name(&drawn->chains[i], report->machine, true, &named);
        tccl_html_way(&named, gbps, slow, out);
    }
}

/* Returns whether it could be drawn. */
static bool put_pair(const struct tccl_report *report, const char *what,
                     const struct tccl_best *found, int nodes, bool first, FILE *out)
{
    struct pair pair;
    char lead[TCCL_LEAD];
    struct tccl_panels panels = {.n = 0};
    cleanup_free struct tccl_panel *list = calloc(2, sizeof(*list));
    if (!list || found->one.chain.n_gpus == 0)
        return false;
    panels.list = list;
    find_pair(report, found, nodes, &pair);
    say_pair(report, &pair, lead);
    make_panel(report, report->rings[0].gpus, &pair.ours, &list[panels.n++]);
    if (pair.nccl.n > 0)
        make_panel(report, report->rings[0].gpus, &pair.nccl, &list[panels.n++]);
    fprintf(out, "<div class=\"card\">\n<h3>%s: ", what);
    tccl_svg_escape(lead, out);
    fputs("</h3>\n", out);
    put_svg(&panels, what, first, out);
    put_ways(report, &pair.ours, out);
    put_ways(report, &pair.nccl, out);
    bool red = pair.nccl.limit.rated.slow.count > 1;
    fprintf(out, "<p class=\"dim\">At each arrow: its place in the ring%s, and GB/s%s%s.</p>\n",
            pair.ours.n > 1 || pair.nccl.n > 1 ? " (" TCCL_PANELS_PLACE ")" : "",
            pair.ours.limit.together ? " while all copies run"
                                     : " of that copy alone, where it was measured; of all copies "
                                       "together the slowest alone is known",
            red ? "; thick and red: copies of NCCL's own that hold each other back" : "");
    fputs("</div>\n", out);
    return true;
}

static void put_machine(const struct tccl_report *report, FILE *out)
{
    const struct tccl_report_rings *all = all_gpus(report);
    cleanup_free struct tccl_panel *panel = calloc(1, sizeof(*panel));
    if (!panel)
        return;
    snprintf(panel->head, sizeof(panel->head), "%s", report->machine->name);
    tccl_picture_make(report->machine, all ? all->gpus : UINT32_MAX, NULL, 0, NULL,
                      &panel->picture);
    fputs("<div class=\"card\">\n", out);
    put_svg(&(struct tccl_panels){.list = panel, .n = 1}, "The machine", true, out);
    fputs("</div>\n", out);
}

void tccl_report_draw(const struct tccl_report *report, FILE *out)
{
    const struct tccl_report_rings *all = all_gpus(report);
    fputs("<h2>The best rings, and NCCL's own</h2>\n", out);
    bool ring = all && put_pair(report, "On one node", &all->alone, 1, true, out);
    bool chain =
        all && put_pair(report, "On each of several nodes", &all->open, SEVERAL, !ring, out);
    if (!ring && !chain)
        put_machine(report, out);
}
