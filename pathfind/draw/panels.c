/* panels.c: several pictures of a node in one drawing. */
#include "draw/svg.h"

#include <math.h>
#include <string.h>

enum { HEAD = 46, BETWEEN = 24, LEGEND = 16, CUT = 96 /* of a detail, characters */ };

void tccl_panel_make(const struct tccl_machine *machine, uint32_t gpus,
                     const struct tccl_chain *chains, int n, const struct tccl_rated *rated,
                     struct tccl_panel *panel)
{
    struct tccl_named_rings named = {.n = 0};
    for (; named.n < n && named.n < TCCL_CHAIN_RINGS; named.n++)
        tccl_chain_name(&chains[named.n], machine, true, &named.chains[named.n]);
    tccl_named_rings_format(&named, panel->detail);
    tccl_picture_make(machine, gpus, chains, named.n, rated, &panel->picture);
}

static unsigned looks_of(const struct tccl_panels *panels)
{
    unsigned looks = 0;
    for (int i = 0; i < panels->n; i++)
        looks |= tccl_picture_looks(&panels->list[i].picture);
    return looks;
}

void tccl_panels_place(struct tccl_panels *panels, double most)
{
    double x = 0, y = 0, row = 0;
    panels->width = 0;
    for (int i = 0; i < panels->n; i++) {
        struct tccl_panel *panel = &panels->list[i];
        char detail[CUT + 8];
        snprintf(detail, sizeof(detail), "%.*s", CUT, panel->detail);
        double width = fmax(panel->picture.width + 2, fmax(1.2 * tccl_svg_text_width(panel->head),
                                                           tccl_svg_text_width(detail)));
        if (x > 0 && x + width > most) {
            x = 0;
            y += row;
            row = 0;
        }
        panel->x = x;
        panel->y = y;
        panels->width = fmax(panels->width, x + width);
        row = fmax(row, HEAD + panel->picture.height + BETWEEN);
        x += width + BETWEEN;
    }
    panels->height = y + row;
    panels->height += tccl_svg_legend(0, 0, panels->width, looks_of(panels), NULL);
}

void tccl_panels_svg(const struct tccl_panels *panels, FILE *out)
{
    unsigned looks = looks_of(panels);
    double legend = tccl_svg_legend(0, 0, panels->width, looks, NULL);
    for (int i = 0; i < panels->n; i++) {
        const struct tccl_panel *panel = &panels->list[i];
        char detail[CUT + 8];
        snprintf(detail, sizeof(detail), "%.*s%s", CUT, panel->detail,
                 strlen(panel->detail) > CUT ? "..." : "");
        fprintf(out, "<g class=\"panel\" transform=\"translate(%.1f,%.1f)\">\n", panel->x,
                panel->y);
        tccl_svg_text(1, 14, "head", panel->head, out);
        tccl_svg_text(1, 34, "mono", detail, out);
        fprintf(out, "<g transform=\"translate(1,%d)\">\n", HEAD);
        tccl_svg_picture(&panel->picture, out);
        fputs("</g>\n</g>\n", out);
    }
    tccl_svg_legend(4, panels->height - legend + LEGEND / 4.0, panels->width, looks, out);
}
