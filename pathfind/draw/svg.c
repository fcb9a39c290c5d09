/* svg.c: a node and a chain on it as SVG. */
#include "draw/svg.h"

#include <math.h>
#include <string.h>

static const char *const colours[TCCL_ARROW_KINDS] = {"#1769aa", "#c2570c", "#2e7d32", "#6a4c93"};
static const char *const meanings[TCCL_ARROW_KINDS] = {
    "GPU writes to the next GPU (-w>)", "next GPU reads from the GPU (-r>)",
    "bounce: written to a memory, read from there (-mK>)", "from and to the network"};

const char *tccl_svg_colour(enum tccl_arrow_kind kind)
{
    return colours[kind];
}

void tccl_svg_style(FILE *out)
{
    fputs("<style>text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#222}"
          ".title{font-size:18px;font-weight:bold}.head{font-size:14px;font-weight:bold}"
          ".mono{font-family:monospace;font-size:12px}.small{font-size:10.5px;fill:#555}"
          ".mid{text-anchor:middle}.step{font-size:10px;font-weight:bold;fill:#fff;"
          "text-anchor:middle}.node{fill:#fff;stroke:#999}.numa{fill:#f4f6f8;stroke:#b8c0c8}"
          ".switch{fill:#e7e3d8;stroke:#b5ac94}.memory{fill:#fff3d6;stroke:#c9a94b}"
          ".gpu{fill:#dcebdc;stroke:#6b946b}.nic{fill:#e3dcef;stroke:#8d78b3}"
          ".idle{opacity:.45}.arrow{fill:none;stroke-width:2.2}"
          ".other rect{fill:#f3f4f5;stroke:#b9bfc5}.other text{fill:#6b7279}"
          ".other .arrow{stroke:#9aa1a8}</style>\n",
          out);
}

static void put_marker(const char *name, const char *colour, FILE *out)
{
    fprintf(out,
            "<marker id=\"head%s\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" "
            "markerWidth=\"10\" markerHeight=\"10\" markerUnits=\"userSpaceOnUse\" "
            "orient=\"auto\"><path d=\"M0,1 L10,5 L0,9 z\" fill=\"%s\"/></marker>\n",
            name, colour);
}

void tccl_svg_markers(FILE *out)
{
    char name[16];
    fputs("<defs>\n", out);
    for (int i = 0; i < TCCL_ARROW_KINDS; i++) {
        snprintf(name, sizeof(name), "%d", i);
        put_marker(name, colours[i], out);
    }
    put_marker("grey", "#9aa1a8", out);
    fputs("</defs>\n", out);
}

void tccl_svg_escape(const char *text, FILE *out)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\\':
            fputs("&#92;", out);
            break;
        default: /* control characters can't be in XML */
            if ((unsigned char)*text >= 0x20 || *text == '\n' || *text == '\t')
                fputc(*text, out);
            else
                fputs("&#xFFFD;", out);
        }
}

static void put_box(const struct tccl_box *box, const char *class, FILE *out)
{
    fprintf(out,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\"/>\n",
            class, box->x, box->y, box->w, box->h);
}

void tccl_svg_text(double x, double y, const char *class, const char *text, FILE *out)
{
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    tccl_svg_escape(text, out);
    fputs("</text>\n", out);
}

/* A device with one or two lines in it. */
static void put_device(const struct tccl_box *box, const char *class, const char *name,
                       const char *detail, FILE *out)
{
    double x = box->x + box->w / 2, y = box->y + box->h / 2;
    put_box(box, class, out);
    tccl_svg_text(x, detail[0] ? y - 2 : y + 4, "mid", name, out);
    if (detail[0])
        tccl_svg_text(x, y + 13, "small mid", detail, out);
}

static void put_devices(const struct tccl_machine *machine, const struct tccl_layout *layout,
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

static void put_machine(const struct tccl_machine *machine, const struct tccl_layout *layout,
                        uint32_t gpus, FILE *out)
{
    char name[32];
    put_box(&layout->node, "node", out);
    for (int i = 0; i < machine->n_memories; i++) {
        snprintf(name, sizeof(name), "NUMA node %d", i);
        put_box(&layout->numas[i], "numa", out);
        tccl_svg_text(layout->numas[i].x + 8, layout->numas[i].y + 16, "small", name, out);
    }
    for (int i = 0; i < machine->n_switches; i++) {
        put_box(&layout->switches[i], "switch", out);
        tccl_svg_text(layout->switches[i].x + 8, layout->switches[i].y + 14, "small",
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

static struct curve arrow_curve(const struct tccl_arrow *arrow)
{
    double depth = tccl_arrow_depth(arrow), reach = fabs(arrow->y2 - arrow->y1) / 2;
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

static void put_arrow(const struct tccl_arrow *arrow, FILE *out)
{
    struct curve curve = arrow_curve(arrow);
    fprintf(out,
            "<path class=\"arrow\" stroke=\"%s\"%s d=\"M%.1f,%.1f C%.1f,%.1f %.1f,%.1f "
            "%.1f,%.1f\" marker-end=\"url(#head%d)\"/>\n",
            colours[arrow->kind],
            arrow->kind == TCCL_ARROW_NETWORK ? " stroke-dasharray=\"6 3\"" : "", arrow->x1,
            arrow->y1, curve.x1, curve.y1, curve.x2, curve.y2, arrow->x2, arrow->y2, arrow->kind);
}

/* The step's number: nearer to the device than to the memory, where arrows meet. */
static void put_step(const struct tccl_arrow *arrow, FILE *out)
{
    struct curve curve = arrow_curve(arrow);
    double at = arrow->below ? 0.5 : arrow->from.kind == TCCL_MEMORY ? 0.8 : 0.2;
    double x = bezier(arrow->x1, curve.x1, curve.x2, arrow->x2, at);
    double y = bezier(arrow->y1, curve.y1, curve.y2, arrow->y2, at);
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"8\" fill=\"%s\"/>\n", x, y,
            colours[arrow->kind]);
    fprintf(out, "<text class=\"step\" x=\"%.1f\" y=\"%.1f\">%d</text>\n", x, y + 3.5, arrow->step);
}

void tccl_picture_make(const struct tccl_machine *machine, uint32_t gpus,
                       const struct tccl_chain *chain, struct tccl_picture *picture)
{
    *picture = (struct tccl_picture){.machine = machine, .gpus = gpus};
    struct tccl_layout *layout = &picture->layout;
    tccl_layout_machine(machine, layout);
    if (chain && chain->n_gpus > 0)
        picture->n_arrows = tccl_chain_arrows(chain, picture->arrows);
    tccl_place_arrows(layout, picture->arrows, picture->n_arrows);
    /* Arrows below the devices may reach out of the node's box. */
    double deepest = layout->gpus[0].y + layout->gpus[0].h + 12 +
                     tccl_arrows_depth(picture->arrows, picture->n_arrows);
    layout->node.h = fmax(layout->node.h, deepest + 8);
    picture->width = layout->node.w;
    picture->height = layout->node.h;
}

void tccl_svg_picture(const struct tccl_picture *picture, FILE *out)
{
    put_machine(picture->machine, &picture->layout, picture->gpus, out);
    for (int i = 0; i < picture->n_arrows; i++)
        put_arrow(&picture->arrows[i], out);
    for (int i = 0; i < picture->n_arrows; i++)
        put_step(&picture->arrows[i], out);
}

unsigned tccl_picture_kinds(const struct tccl_picture *picture)
{
    unsigned kinds = 0;
    for (int i = 0; i < picture->n_arrows; i++)
        kinds |= 1u << picture->arrows[i].kind;
    return kinds;
}

void tccl_svg_legend(double left, double y, unsigned kinds, FILE *out)
{
    enum { SAMPLE = 42, COLUMN = 376, PER_LINE = 2, LINE = 22 };
    for (int i = 0, n = 0; i < TCCL_ARROW_KINDS; i++) {
        if (!(kinds >> i & 1))
            continue;
        double x = left + n % PER_LINE * COLUMN, at = y + n / PER_LINE * LINE;
        fprintf(out,
                "<path class=\"arrow\" stroke=\"%s\"%s d=\"M%.1f,%.1f h34\" "
                "marker-end=\"url(#head%d)\"/>\n",
                colours[i], i == TCCL_ARROW_NETWORK ? " stroke-dasharray=\"6 3\"" : "", x, at, i);
        tccl_svg_text(x + SAMPLE, at + 4, "", meanings[i], out);
        n++;
    }
}
