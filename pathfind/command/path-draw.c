/* path-draw.c: tccl-path draw: of each kind of node its chains and, beside it, what NCCL builds
 * there by itself, as SVG with all that it needs inside. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "command/path.h"
#include "draw/svg.h"

enum { NAMES_TEXT = 80 };

enum { MARGIN = 24, TITLE = 74, MIN_WIDTH = 760, MOST_WIDTH = 1900 };

/* Red is what limits NCCL, and nothing else. */
static void make_panel(const struct stop *stop, const char *who, bool nccl,
                       struct tccl_panel *panel)
{
    const struct source *source = stop->class->source;
    struct tccl_limit limit;
    if (stop_limit(stop, &limit, NULL) != 0)
        limit.rated = (struct tccl_rated){.set = {.count = 0}};
    if (!nccl)
        limit.rated.slow.count = 0;
    snprintf(panel->head, sizeof(panel->head), "%s: %s, %.2f GB/s (%s)", who, source->machine.name,
             stop->gbps, source->name);
    tccl_panel_make(&source->machine, stop->class->gpus, stop->set.rings, stop->set.n, &limit.rated,
                    panel);
}

/* Nodes with the same chains share a panel. */
struct shared {
    const struct stop *stop;
    char names[NAMES_TEXT]; /* "n1-n4, n7" */
};

/* Returns 0, or -1: out of memory. */
static int make_panels(const struct answer *answer, struct tccl_panels *panels)
{
    const struct route *route = &answer->route, *own = &answer->baseline;
    cleanup_free struct shared *shared = calloc((size_t)route->n, sizeof(*shared));
    int kinds = 0;
    for (int i = 0, n; shared && i < route->n; i += n) {
        const struct stop *stop = &route->stops[i];
        int k = 0;
        n = route_alike(route, i);
        while (k < kinds && (shared[k].stop->class != stop->class ||
                             memcmp(&shared[k].stop->set, &stop->set, sizeof(stop->set)) != 0))
            k++;
        kinds += k == kinds;
        shared[k].stop = shared[k].stop ? shared[k].stop : stop;
        /* Appends "n1-n4" to the names, or "..." once there are too many. */
        char name[32];
        size_t length = strlen(shared[k].names);
        format_nodes(i, n, name);
        if (length + strlen(name) + 8 < sizeof(shared[k].names))
            snprintf(shared[k].names + length, sizeof(shared[k].names) - length, "%s%s",
                     length ? ", " : "", name);
        else if (!strstr(shared[k].names, "..."))
            strcat(shared[k].names, ", ...");
    }
    panels->list = calloc((size_t)kinds * 2 + 1, sizeof(*panels->list));
    if (!shared || !panels->list)
        return -1;
    for (int i = 0; i < kinds; i++) {
        const struct stop *other = own->n ? &own->stops[shared[i].stop - route->stops] : NULL;
        char who[NAMES_TEXT + 32];
        make_panel(shared[i].stop, shared[i].names, false, &panels->list[panels->n++]);
        snprintf(who, sizeof(who), "NCCL's own on %s", shared[i].names);
        if (other && other->gbps > 0)
            make_panel(other, who, true, &panels->list[panels->n++]);
    }
    return 0;
}

static int print_svg(FILE *out, const void *what, struct tccl_error *err)
{
    const struct answer *answer = what;
    struct tccl_panels panels = {.n = 0};
    if (make_panels(answer, &panels) != 0) {
        free(panels.list);
        return tccl_fail(err, "out of memory");
    }
    tccl_panels_place(&panels, MOST_WIDTH);
    double width = fmax(MIN_WIDTH, panels.width + 2 * MARGIN);
    double height = TITLE + panels.height + MARGIN;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\">\n",
            width, height, width, height);
    tccl_svg_style(out);
    fputs("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", out);
    char text[200];
    int n = answer->route.n;
    int rings = route_rings(&answer->route), length = 0;
    if (rings > 1)
        length = snprintf(text, sizeof(text), "%d rings of %.2f GB/s", rings,
                          answer->route.gbps / rings);
    snprintf(text + length, sizeof(text) - length, "%s over %d node%s: %s%.2f GB/s",
             rings > 1 ? "" : "Ring", n, n == 1 ? "" : "s", rings > 1 ? "together " : "",
             answer->route.gbps);
    tccl_svg_text(MARGIN, MARGIN + 14, "title", text, out);
    length = 0;
    text[0] = '\0';
    if (isfinite(answer_ratio(answer)))
        length = snprintf(text, sizeof(text),
                          "baseline (NCCL's own rings): %.2f GB/s; in a large all-reduce this is "
                          "%.2f times as fast. ",
                          answer->baseline.gbps, answer_ratio(answer));
    if (rings > 1 || route_rings(&answer->baseline) > 1)
        snprintf(text + length, sizeof(text) - length,
                 "At each arrow: " TCCL_PANELS_PLACE ", then GB/s");
    tccl_svg_text(MARGIN, MARGIN + 36, "", text, out);
    fprintf(out, "<g transform=\"translate(%d,%d)\">\n", MARGIN, TITLE);
    tccl_panels_svg(&panels, out);
    fputs("</g>\n</svg>\n", out);
    free(panels.list);
    return 0;
}

static int draw(const struct options *options, const struct answer *answer, struct tccl_error *err)
{
    return answer->nothing ? tccl_fail(err, "one GPU in all: there is no ring to draw")
                           : tccl_print_output(options->output, print_svg, answer, err);
}

int command_draw(const struct options *options, struct tccl_error *err)
{
    return answer_command(options->ring ? evaluate : solve, draw, options, err);
}
