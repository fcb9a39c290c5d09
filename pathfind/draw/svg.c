/* svg.c: a node and the chains on it as SVG. */
#include "draw/svg.h"

#include <math.h>
#include <string.h>

const struct tccl_look tccl_looks[TCCL_LOOKS] = {
    {'w', "write", "#1769aa", "34", "GPU writes to the next GPU (-w>)", "GPU writes to the next"},
    {'r', "read", "#b0500b", "33", "next GPU reads from the GPU (-r>)", "next GPU reads from it"},
    {'m', "memory", "#2e7d32", "32", "bounce: written to a memory, read from there (-mK>)",
     "through the memory of that number"},
    {'g', "GPUDirect", "#6a4c93", "35", "from and to the network", "NIC and GPU directly"},
    {'n', "by NICs", "#a23b72", "36", "between GPUs of the node by NICs (-nInJ>)",
     "by the node's NICs of these numbers"},
    {0, "", "#b3161e", "31", "hold each other back: they alone would be as slow", ""},
};

int tccl_look_of(struct tccl_text_arrow arrow)
{
    int look = 0;
    while (tccl_looks[look].letter && tccl_looks[look].letter != arrow.kind)
        look++;
    return look;
}

double tccl_svg_text_width(const char *text)
{
    const double letter = 7.4;
    double width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) == 0x80 ? 0 : letter; /* UTF-8: characters */
    return width;
}

static void put_marker(const char *name, const char *colour, FILE *out)
{
    fprintf(out,
            "<marker id=\"head%s\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" "
            "markerWidth=\"10\" markerHeight=\"10\" markerUnits=\"userSpaceOnUse\" "
            "orient=\"auto\"><path d=\"M0,1 L10,5 L0,9 z\" fill=\"%s\"/></marker>\n",
            name, colour);
}

void tccl_svg_style(FILE *out)
{
    fputs("<style>text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#222}"
          ".title{font-size:18px;font-weight:bold}.head{font-size:14px;font-weight:bold}"
          ".mono{font-family:monospace;font-size:12px}.small{font-size:10.5px;fill:#555}"
          ".mid{text-anchor:middle}.step{font-size:10px;font-weight:bold;fill:#fff;"
          "text-anchor:middle}.node{fill:#fff;stroke:#999}.numa{fill:#f4f6f8;stroke:#b8c0c8}"
          ".switch{fill:#e7e3d8;stroke:#b5ac94}.memory{fill:#fff3d6;stroke:#c9a94b}"
          ".busy{fill:#ffd5d2;stroke:#b3161e;stroke-width:2}"
          ".gpu{fill:#dcebdc;stroke:#6b946b}.nic{fill:#e3dcef;stroke:#8d78b3}"
          ".idle{opacity:.45}.arrow{fill:none;stroke-width:2.2}.slow{fill:none;stroke:#e5383b;"
          "stroke-width:9;stroke-opacity:.45}"
          ".other rect{fill:#f3f4f5;stroke:#b9bfc5}.other text{fill:#5c636a}"
          ".other .arrow{stroke:#9aa1a8}</style>\n",
          out);
    fputs("<defs>\n", out);
    for (int i = 0; i < TCCL_ARROW_KINDS; i++)
        put_marker((char[]){(char)('0' + i), '\0'}, tccl_looks[i].colour, out);
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

void tccl_svg_box(const struct tccl_box *box, int corner, const char *class, FILE *out)
{
    fprintf(out,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
            "rx=\"%d\"/>\n",
            class, box->x, box->y, box->w, box->h, corner);
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
    tccl_svg_box(box, 6, class, out);
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
    tccl_svg_box(&layout->node, 6, "node", out);
    for (int i = 0; i < machine->n_memories; i++) {
        snprintf(name, sizeof(name), "NUMA node %d", i);
        tccl_svg_box(&layout->numas[i], 6, "numa", out);
        tccl_svg_text(layout->numas[i].x + 8, layout->numas[i].y + 16, "small", name, out);
    }
    for (int i = 0; i < machine->n_switches; i++) {
        tccl_svg_box(&layout->switches[i], 6, "switch", out);
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

void tccl_svg_line(int look, bool grey, const char *path, FILE *out)
{
    if (look == TCCL_LOOK_SLOW)
        fprintf(out, "<path class=\"slow\" d=\"%s\"/>\n", path);
    else
        fprintf(
            out, "<path class=\"arrow\" stroke=\"%s\"%s d=\"%s\" marker-end=\"url(#head%s)\"/>\n",
            tccl_looks[look].colour, look >= TCCL_ARROW_NETWORK ? " stroke-dasharray=\"6 3\"" : "",
            path, grey ? "grey" : (char[]){(char)('0' + look), '\0'});
}

static void put_arrow(const struct tccl_arrow *arrow, int look, FILE *out)
{
    struct curve curve = arrow_curve(arrow);
    char path[160];
    snprintf(path, sizeof(path), "M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f", arrow->x1, arrow->y1,
             curve.x1, curve.y1, curve.x2, curve.y2, arrow->x2, arrow->y2);
    tccl_svg_line(look, false, path, out);
}

/* The place of an arrow's label on its curve, so many pixels from the device's edge: next to the
 * device, not to the memory, where arrows meet. */
static double label_at(const struct tccl_arrow *arrow, const struct curve *curve, double height)
{
    double from = 0, to = 1;
    bool down = arrow->from.kind == TCCL_MEMORY;
    double device = down ? arrow->y2 : arrow->y1;
    for (int i = 0; i < 30; i++) {
        double at = (from + to) / 2, y = bezier(arrow->y1, curve->y1, curve->y2, arrow->y2, at);
        bool near = fabs(device - y) < height;
        *(near == down ? &to : &from) = at;
    }
    return from;
}

/* The step's number, with a letter where there are several rings, and its GB/s where it is known;
 * in a box. */
struct label {
    char text[32];
    struct tccl_box box;
};

/* The try-th place along the curve. */
static void place_label(const struct tccl_arrow *arrow, int try, struct label *label)
{
    enum { FIRST = 20, APART = 21, LEVELS = 4 };
    static const double below[] = {0.5, 0.62, 0.38, 0.74, 0.26, 0.86, 0.14};
    struct curve curve = arrow_curve(arrow);
    double height = FIRST + (arrow->level % LEVELS + try / 2.0) * APART;
    double at = arrow->below ? below[try % (int)(sizeof(below) / sizeof(below[0]))]
                             : label_at(arrow, &curve, height);
    label->box.x = bezier(arrow->x1, curve.x1, curve.x2, arrow->x2, at) - label->box.w / 2;
    label->box.y = bezier(arrow->y1, curve.y1, curve.y2, arrow->y2, at) - label->box.h / 2;
}

/* Beside those before it, as far as there is room. */
static void make_label(const struct tccl_picture *picture, int i, struct label *labels)
{
    enum { TRIES = 10, H = 16 };
    const double letter = 6.6; /* at most, of 10 pixels, bold */
    const struct tccl_arrow *arrow = &picture->arrows[i];
    struct label *label = &labels[i];
    int length =
        picture->n_rings > 1
            ? snprintf(label->text, sizeof(label->text), "%c%d", 'a' + arrow->ring, arrow->step)
            : snprintf(label->text, sizeof(label->text), "%d", arrow->step);
    if (arrow->gbps > 0)
        length += snprintf(label->text + length, sizeof(label->text) - (size_t)length, ": %.2f",
                           arrow->gbps);
    label->box.w = fmax(H, letter * length + 6);
    label->box.h = H;
    for (int try = 0; try < TRIES; try++) {
        bool free = true;
        place_label(arrow, try, label);
        const struct tccl_box *a = &label->box;
        for (int k = 0; k < i && free; k++) {
            const struct tccl_box *b = &labels[k].box;
            free = a->x >= b->x + b->w || b->x >= a->x + a->w || a->y >= b->y + b->h ||
                   b->y >= a->y + a->h;
        }
        if (free)
            return;
    }
    place_label(arrow, 0, label);
}

/* Adds a chain's arrows, unless an equal one was there. */
static void add_chain(const struct tccl_chain *chains, int i, struct tccl_picture *picture)
{
    struct tccl_arrow *arrows = picture->arrows + picture->n_arrows;
    for (int k = 0; k < i; k++)
        if (tccl_chain_equal(&chains[k], &chains[i]))
            return;
    int n = tccl_chain_arrows(&chains[i], arrows);
    for (int k = 0; k < n; k++)
        arrows[k].ring = picture->n_rings;
    picture->n_arrows += n;
    picture->n_rings++;
}

void tccl_picture_make(const struct tccl_machine *machine, uint32_t gpus,
                       const struct tccl_chain *chains, int n, const struct tccl_rated *rated,
                       struct tccl_picture *picture)
{
    *picture = (struct tccl_picture){.machine = machine, .gpus = gpus};
    struct tccl_layout *layout = &picture->layout;
    tccl_layout_machine(machine, layout);
    for (int i = 0; i < n && i < TCCL_CHAIN_RINGS; i++)
        if (chains[i].n_gpus > 0)
            add_chain(chains, i, picture);
    if (rated)
        for (int i = 0; i < picture->n_arrows; i++) {
            struct tccl_arrow *arrow = &picture->arrows[i];
            arrow->slow = rated->slow.count > 1 && tccl_set_has(&rated->slow, arrow->transfer);
            for (int k = 0; k < rated->set.count; k++)
                if (rated->set.transfers[k] == arrow->transfer)
                    arrow->gbps = rated->gbps[k];
        }
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
        if (picture->arrows[i].slow)
            put_arrow(&picture->arrows[i], TCCL_LOOK_SLOW, out);
    for (int i = 0; i < picture->n_arrows; i++)
        put_arrow(&picture->arrows[i], picture->arrows[i].kind, out);
    struct label labels[TCCL_ALL_ARROWS];
    for (int i = 0; i < picture->n_arrows; i++) {
        const struct tccl_box *box = &labels[i].box;
        make_label(picture, i, labels);
        fprintf(
            out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" rx=\"8\" "
            "fill=\"%s\"/>\n",
            box->x, box->y, box->w, box->h,
            tccl_looks[picture->arrows[i].slow ? (int)TCCL_LOOK_SLOW : (int)picture->arrows[i].kind]
                .colour);
        tccl_svg_text(box->x + box->w / 2, box->y + 11.5, "step", labels[i].text, out);
    }
}

unsigned tccl_picture_looks(const struct tccl_picture *picture)
{
    unsigned looks = 0;
    for (int i = 0; i < picture->n_arrows; i++)
        looks |= 1u << picture->arrows[i].kind | (unsigned)picture->arrows[i].slow
                                                     << TCCL_LOOK_SLOW;
    return looks;
}

double tccl_svg_legend(double left, double y, double width, unsigned looks, FILE *out)
{
    enum { SAMPLE = 42, SPACE = 18, LINE = 20 };
    double x = 0, at = 0;
    for (int i = 0; i < TCCL_LOOKS; i++) {
        double takes = SAMPLE + tccl_svg_text_width(tccl_looks[i].meaning);
        char path[48];
        if (!(looks >> i & 1))
            continue;
        if (x > 0 && x + takes > width) {
            x = 0;
            at += LINE;
        }
        snprintf(path, sizeof(path), "M%.1f,%.1f h34", left + x, y + at);
        if (out) {
            tccl_svg_line(i, false, path, out);
            tccl_svg_text(left + x + SAMPLE, y + at + 4, "", tccl_looks[i].meaning, out);
        }
        x += takes + SPACE;
    }
    return looks ? at + LINE : 0;
}
