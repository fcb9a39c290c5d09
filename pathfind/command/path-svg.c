/* path-svg.c: a drawing as SVG, with all that it needs inside. */
#include <math.h>
#include <string.h>

#include "command/path-draw.h"
#include "draw/svg.h"

enum { MARGIN = 24, TITLE = 74, PANEL_HEAD = 48, MIN_WIDTH = 760, CHAR_W = 7 };

/* A panel's picture, ready to be drawn, and the room it takes. */
struct sheet {
    struct tccl_picture picture;
    char chain[TCCL_CHAIN_TEXT];
    double width, height;
};

static void make_sheet(const struct panel *panel, struct sheet *sheet)
{
    const struct tccl_machine *machine = &panel->stop->class->source->machine;
    tccl_picture_make(machine, panel->stop->class->gpus, &panel->stop->chain, &sheet->picture);
    tccl_chain_format(&panel->stop->chain, machine, sheet->chain);
    sheet->width = fmax(sheet->picture.width, CHAR_W * 1.05 * strlen(sheet->chain));
    sheet->height = PANEL_HEAD + sheet->picture.height + MARGIN;
}

static void put_panel(const struct panel *panel, const struct sheet *sheet, double y, FILE *out)
{
    const struct stop *stop = panel->stop;
    char head[NAMES_TEXT + 2 * TCCL_NAME + 64];
    snprintf(head, sizeof(head), "%s: %s, %.2f GB/s (%s)", panel->names,
             sheet->picture.machine->name, stop->gbps, stop->class->source->name);
    tccl_svg_text(MARGIN, y + 14, "head", head, out);
    tccl_svg_text(MARGIN, y + 34, "mono", sheet->chain, out);
    fprintf(out, "<g transform=\"translate(%d,%.1f)\">\n", MARGIN, y + PANEL_HEAD);
    tccl_svg_picture(&sheet->picture, out);
    fputs("</g>\n", out);
}

static void put_title(const struct answer *answer, FILE *out)
{
    char text[200];
    int n = answer->route.n;
    snprintf(text, sizeof(text), "Ring over %d node%s: %.2f GB/s", n, n == 1 ? "" : "s",
             answer->route.gbps);
    tccl_svg_text(MARGIN, MARGIN + 14, "title", text, out);
    text[0] = '\0';
    if (answer->baseline.n && answer->baseline.gbps > 0)
        snprintf(text, sizeof(text),
                 "baseline (NCCL's own rings): %.2f GB/s; this is %.2f times as fast",
                 answer->baseline.gbps, answer->route.gbps / answer->baseline.gbps);
    tccl_svg_text(MARGIN, MARGIN + 36, "", text, out);
}

void draw_svg(const struct drawing *drawing, FILE *out)
{
    struct sheet sheet;
    double width = MIN_WIDTH, height = TITLE + TCCL_SVG_LEGEND + MARGIN;
    for (int i = 0; i < drawing->n_panels; i++) {
        make_sheet(&drawing->panels[i], &sheet);
        width = fmax(width, sheet.width + 2 * MARGIN);
        height += sheet.height;
    }
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\">\n",
            width, height, width, height);
    tccl_svg_style(out);
    tccl_svg_markers(out);
    fputs("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", out);
    put_title(drawing->answer, out);
    double y = TITLE;
    unsigned kinds = 0;
    for (int i = 0; i < drawing->n_panels; i++) {
        make_sheet(&drawing->panels[i], &sheet);
        put_panel(&drawing->panels[i], &sheet, y, out);
        y += sheet.height;
        kinds |= tccl_picture_kinds(&sheet.picture);
    }
    tccl_svg_legend(MARGIN, y + 12, kinds, out);
    fputs("</svg>\n", out);
}
