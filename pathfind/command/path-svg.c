/* path-svg.c: a drawing as SVG, with all that it needs inside: of each kind of node its chains and,
 * beside it, what NCCL builds there by itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "command/path-draw.h"
#include "command/path-limit.h"
#include "draw/svg.h"

enum { MARGIN = 24, TITLE = 74, MIN_WIDTH = 760, MOST_WIDTH = 1900 };

/* What each transfer reaches: of a profile without a model only which ones hold the rest back. */
static void rate(const struct stop *stop, struct tccl_rated *rated)
{
    struct limit limit;
    *rated = (struct tccl_rated){.set = {.count = 0}};
    if (limit_find(stop, &limit, NULL) != 0)
        return;
    limit_set(&limit.side, &rated->set);
    for (int i = 0; limit.detailed && i < rated->set.count; i++)
        for (int k = 0; k < limit.side.count; k++)
            if (limit.side.transfers[k] == rated->set.transfers[i])
                rated->gbps[i] = limit.rates[k];
    struct tccl_set part;
    limit_set(&limit.part, &part);
    tccl_rated_slow(rated, &part, stop_slowest(stop));
}

static void make_panel(const struct stop *stop, const char *who, struct tccl_panel *panel)
{
    const struct source *source = stop->class->source;
    struct tccl_named_rings named = {.n = 0};
    struct tccl_rated rated;
    rate(stop, &rated);
    for (; named.n < stop->set.n; named.n++)
        tccl_chain_name(&stop->set.rings[named.n], &source->machine, true, &named.chains[named.n]);
    snprintf(panel->head, sizeof(panel->head), "%s: %s, %.2f GB/s (%s)", who, source->machine.name,
             stop->gbps, source->name);
    tccl_named_rings_format(&named, panel->detail);
    tccl_picture_make(&source->machine, stop->class->gpus, stop->set.rings, stop->set.n, &rated,
                      &panel->picture);
}

/* Returns 0, or -1: out of memory. */
static int make_panels(const struct drawing *drawing, struct tccl_panels *panels)
{
    const struct route *own = &drawing->answer->baseline;
    panels->list = calloc((size_t)drawing->n_panels * 2, sizeof(*panels->list));
    for (int i = 0; panels->list && i < drawing->n_panels; i++) {
        const struct panel *panel = &drawing->panels[i];
        long at = panel->stop - drawing->answer->route.stops;
        char who[NAMES_TEXT + 32];
        make_panel(panel->stop, panel->names, &panels->list[panels->n++]);
        if (own->n == 0 || !(own->stops[at].gbps > 0))
            continue;
        snprintf(who, sizeof(who), "NCCL's own on %s", panel->names);
        make_panel(&own->stops[at], who, &panels->list[panels->n++]);
    }
    return panels->list ? 0 : -1;
}

static void put_title(const struct answer *answer, FILE *out)
{
    char text[200];
    int n = answer->route.n;
    int rings = route_rings(&answer->route), length = 0;
    if (rings > 1)
        length = snprintf(text, sizeof(text), "%d rings at once", rings);
    snprintf(text + length, sizeof(text) - length, "%s over %d node%s: %.2f GB/s",
             rings > 1 ? "" : "Ring", n, n == 1 ? "" : "s", answer->route.gbps);
    tccl_svg_text(MARGIN, MARGIN + 14, "title", text, out);
    text[0] = '\0';
    if (answer->baseline.n && answer->baseline.gbps > 0)
        snprintf(text, sizeof(text),
                 "baseline (NCCL's own rings): %.2f GB/s; this is %.2f times as fast",
                 answer->baseline.gbps, answer->route.gbps / answer->baseline.gbps);
    tccl_svg_text(MARGIN, MARGIN + 36, "", text, out);
}

int draw_svg(const struct drawing *drawing, FILE *out, struct tccl_error *err)
{
    struct tccl_panels panels = {.n = 0};
    if (make_panels(drawing, &panels) != 0)
        return tccl_fail(err, "out of memory");
    tccl_panels_place(&panels, MOST_WIDTH);
    double width = fmax(MIN_WIDTH, panels.width + 2 * MARGIN);
    double height = TITLE + panels.height + MARGIN;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\">\n",
            width, height, width, height);
    tccl_svg_style(out);
    fputs("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", out);
    put_title(drawing->answer, out);
    fprintf(out, "<g transform=\"translate(%d,%d)\">\n", MARGIN, TITLE);
    tccl_panels_svg(&panels, out);
    fputs("</g>\n</svg>\n", out);
    free(panels.list);
    return 0;
}
