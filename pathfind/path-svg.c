/* path-svg.c: a drawing as SVG, with all that it needs inside. */
#include <math.h>
#include <string.h>

#include "numberset.h"
#include "path-draw.h"
#include "path-picture.h"

enum { MARGIN = 24, TITLE = 74, PANEL_HEAD = 48, LEGEND = 46, MIN_WIDTH = 760, CHAR_W = 7 };

static const char *const colours[ARROW_KINDS] = {"#1769aa", "#c2570c", "#2e7d32", "#6a4c93"};
static const char *const meanings[ARROW_KINDS] = {
    "GPU writes to the next GPU (-w>)", "next GPU reads from the GPU (-r>)",
    "bounce: written to a memory, read from there (-mK>)", "from and to the network"};

static void style(FILE *out)
{
    fputs("<style>text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#222}"
          ".title{font-size:18px;font-weight:bold}.head{font-size:14px;font-weight:bold}"
          ".mono{font-family:monospace;font-size:12px}.small{font-size:10.5px;fill:#555}"
          ".mid{text-anchor:middle}.step{font-size:10px;font-weight:bold;fill:#fff;"
          "text-anchor:middle}.node{fill:#fff;stroke:#999}.numa{fill:#f4f6f8;stroke:#b8c0c8}"
          ".switch{fill:#e7e3d8;stroke:#b5ac94}.memory{fill:#fff3d6;stroke:#c9a94b}"
          ".gpu{fill:#dcebdc;stroke:#6b946b}.nic{fill:#e3dcef;stroke:#8d78b3}"
          ".idle{opacity:.45}.arrow{fill:none;stroke-width:2.2}</style>\n",
          out);
}

static void markers(FILE *out)
{
    fputs("<defs>\n", out);
    for (int i = 0; i < ARROW_KINDS; i++)
        fprintf(out,
                "<marker id=\"head%d\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" "
                "markerWidth=\"10\" markerHeight=\"10\" markerUnits=\"userSpaceOnUse\" "
                "orient=\"auto\"><path d=\"M0,1 L10,5 L0,9 z\" fill=\"%s\"/></marker>\n",
                i, colours[i]);
    fputs("</defs>\n", out);
}

static void put_box(const struct box *box, const char *class, FILE *out)
{
    fprintf(out,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\"/>\n",
            class, box->x, box->y, box->w, box->h);
}

static void put_text(double x, double y, const char *class, const char *text, FILE *out)
{
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    put_escaped(text, out);
    fputs("</text>\n", out);
}

/* A device with one or two lines in it. */
static void put_device(const struct box *box, const char *class, const char *name,
                       const char *detail, FILE *out)
{
    double x = box->x + box->w / 2, y = box->y + box->h / 2;
    put_box(box, class, out);
    put_text(x, detail[0] ? y - 2 : y + 4, "mid", name, out);
    if (detail[0])
        put_text(x, y + 13, "small mid", detail, out);
}

static void put_devices(const struct tccl_machine *machine, const struct layout *layout,
                        uint32_t gpus, FILE *out)
{
    char name[32], detail[TCCL_BUSID];
    for (int i = 0; i < machine->n_gpus; i++) {
        bool idle = !(gpus >> i & 1);
        const char *busid = machine->gpus[i].busid;
        snprintf(name, sizeof(name), "GPU %d", i);
        snprintf(detail, sizeof(detail), "%s", strncmp(busid, "0000:", 5) ? busid : busid + 5);
        put_device(&layout->gpus[i], idle ? "gpu idle" : "gpu", name, detail, out);
    }
    for (int i = 0; i < machine->n_nics; i++) {
        snprintf(detail, sizeof(detail), "%.4g GB/s", machine->nics[i].gbps);
        put_device(&layout->nics[i], "nic", machine->nics[i].name, detail, out);
    }
}

static void put_machine(const struct tccl_machine *machine, const struct layout *layout,
                        uint32_t gpus, FILE *out)
{
    char name[32];
    put_box(&layout->node, "node", out);
    for (int i = 0; i < machine->n_memories; i++) {
        snprintf(name, sizeof(name), "NUMA node %d", i);
        put_box(&layout->numas[i], "numa", out);
        put_text(layout->numas[i].x + 8, layout->numas[i].y + 16, "small", name, out);
    }
    for (int i = 0; i < machine->n_switches; i++) {
        put_box(&layout->switches[i], "switch", out);
        put_text(layout->switches[i].x + 8, layout->switches[i].y + 14, "small",
                 machine->switches[i].name, out);
    }
    for (int i = 0; i < machine->n_memories; i++) {
        snprintf(name, sizeof(name), "memory %d", i);
        put_device(&layout->memories[i], "memory", name, "", out);
    }
    put_devices(machine, layout, gpus, out);
}

/* The two middle points of an arrow's curve. */
struct curve {
    double x1, y1, x2, y2;
};

static struct curve arrow_curve(const struct arrow *arrow)
{
    double depth = arrow_depth(arrow), reach = fabs(arrow->y2 - arrow->y1) / 2;
    if (arrow->below)
        return (struct curve){arrow->x1, arrow->y1 + depth, arrow->x2, arrow->y2 + depth};
    double way = arrow->y2 < arrow->y1 ? -reach : reach;
    return (struct curve){arrow->x1, arrow->y1 + way, arrow->x2, arrow->y2 - way};
}

/* A point of the curve, at from 0 to 1. */
static double bezier(double a, double b, double c, double d, double at)
{
    double left = 1 - at;
    return left * left * left * a + 3 * left * left * at * b + 3 * left * at * at * c +
           at * at * at * d;
}

static void put_arrow(const struct arrow *arrow, FILE *out)
{
    struct curve curve = arrow_curve(arrow);
    fprintf(out,
            "<path class=\"arrow\" stroke=\"%s\"%s d=\"M%.1f,%.1f C%.1f,%.1f %.1f,%.1f "
            "%.1f,%.1f\" marker-end=\"url(#head%d)\"/>\n",
            colours[arrow->kind], arrow->kind == ARROW_NETWORK ? " stroke-dasharray=\"6 3\"" : "",
            arrow->x1, arrow->y1, curve.x1, curve.y1, curve.x2, curve.y2, arrow->x2, arrow->y2,
            arrow->kind);
}

/* The step's number: nearer to the device than to the memory, where arrows meet. */
static void put_step(const struct arrow *arrow, FILE *out)
{
    struct curve curve = arrow_curve(arrow);
    double at = arrow->below ? 0.5 : arrow->from.kind == TCCL_MEMORY ? 0.8 : 0.2;
    double x = bezier(arrow->x1, curve.x1, curve.x2, arrow->x2, at);
    double y = bezier(arrow->y1, curve.y1, curve.y2, arrow->y2, at);
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"8\" fill=\"%s\"/>\n", x, y,
            colours[arrow->kind]);
    fprintf(out, "<text class=\"step\" x=\"%.1f\" y=\"%.1f\">%d</text>\n", x, y + 3.5, arrow->step);
}

/* A panel's picture, ready to be drawn. */
struct picture {
    struct layout layout;
    struct arrow arrows[MAX_ARROWS];
    int n_arrows;
    double width, height;
};

static void make_picture(const struct panel *panel, struct picture *picture)
{
    char chain[TCCL_CHAIN_TEXT];
    const struct tccl_machine *machine = &panel->stop->kind->source->machine;
    layout_machine(machine, &picture->layout);
    picture->n_arrows = chain_arrows(&panel->stop->chain, picture->arrows);
    place_arrows(&picture->layout, picture->arrows, picture->n_arrows);
    tccl_chain_format(&panel->stop->chain, machine, chain);
    /* Arrows below the devices may reach out of the node's box. */
    double deepest = picture->layout.gpus[0].y + picture->layout.gpus[0].h + 12 +
                     arrows_depth(picture->arrows, picture->n_arrows);
    picture->layout.node.h = fmax(picture->layout.node.h, deepest + 8);
    picture->width = fmax(picture->layout.node.w, CHAR_W * 1.05 * strlen(chain));
    picture->height = PANEL_HEAD + picture->layout.node.h + MARGIN;
}

static void put_panel(const struct panel *panel, const struct picture *picture, double y, FILE *out)
{
    const struct stop *stop = panel->stop;
    const struct tccl_machine *machine = &stop->kind->source->machine;
    char head[NAMES_TEXT + 2 * TCCL_NAME + 64], chain[TCCL_CHAIN_TEXT];
    snprintf(head, sizeof(head), "%s: %s, %.2f GB/s (%s)", panel->names, machine->name, stop->gbps,
             stop->kind->source->name);
    tccl_chain_format(&stop->chain, machine, chain);
    put_text(MARGIN, y + 14, "head", head, out);
    put_text(MARGIN, y + 34, "mono", chain, out);
    fprintf(out, "<g transform=\"translate(%d,%.1f)\">\n", MARGIN, y + PANEL_HEAD);
    put_machine(machine, &picture->layout, stop->kind->gpus, out);
    for (int i = 0; i < picture->n_arrows; i++)
        put_arrow(&picture->arrows[i], out);
    for (int i = 0; i < picture->n_arrows; i++)
        put_step(&picture->arrows[i], out);
    fputs("</g>\n", out);
}

static void put_title(const struct answer *answer, FILE *out)
{
    char text[200];
    int n = answer->route.n;
    snprintf(text, sizeof(text), "Ring over %d node%s: %.2f GB/s", n, n == 1 ? "" : "s",
             answer->route.gbps);
    put_text(MARGIN, MARGIN + 14, "title", text, out);
    text[0] = '\0';
    if (answer->baseline.n && answer->baseline.gbps > 0)
        snprintf(text, sizeof(text),
                 "NCCL by its own choice: %.2f GB/s; this is %.2f times as fast",
                 answer->baseline.gbps, answer->route.gbps / answer->baseline.gbps);
    put_text(MARGIN, MARGIN + 36, "", text, out);
}

static void put_legend(double y, FILE *out)
{
    double x = MARGIN;
    for (int i = 0; i < ARROW_KINDS; i++) {
        fprintf(out,
                "<path class=\"arrow\" stroke=\"%s\"%s d=\"M%.1f,%.1f h34\" "
                "marker-end=\"url(#head%d)\"/>\n",
                colours[i], i == ARROW_NETWORK ? " stroke-dasharray=\"6 3\"" : "", x, y, i);
        put_text(x + 42, y + 4, "", meanings[i], out);
        x += 42 + 6.2 * strlen(meanings[i]) + 18;
        if (i == 1) {
            x = MARGIN;
            y += 22;
        }
    }
}

void draw_svg(const struct drawing *drawing, FILE *out)
{
    struct picture picture;
    double width = MIN_WIDTH, height = TITLE + LEGEND + MARGIN;
    for (int i = 0; i < drawing->n_panels; i++) {
        make_picture(&drawing->panels[i], &picture);
        width = fmax(width, picture.width + 2 * MARGIN);
        height += picture.height;
    }
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\">\n",
            width, height, width, height);
    style(out);
    markers(out);
    fputs("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", out);
    put_title(drawing->answer, out);
    double y = TITLE;
    for (int i = 0; i < drawing->n_panels; i++) {
        make_picture(&drawing->panels[i], &picture);
        put_panel(&drawing->panels[i], &picture, y, out);
        y += picture.height;
    }
    put_legend(y + 12, out);
    fputs("</svg>\n", out);
}
