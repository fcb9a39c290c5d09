/* acct-ring-svg.c: the ring of a step as SVG. A card shows a chain and the nodes that have it, from
 * the NIC where data enter to the NIC where they leave. Cards are in ring order; of rings that run
 * at once one is below the other. */
#include <math.h>
#include <string.h>

#include "acct/acct-ring-svg.h"
#include "acct/acct-ring.h"
#include "acct/acct-text.h"
#include "base/cleanup.h"
#include "draw/html.h"
#include "draw/svg.h"

enum {
    MARGIN = 24,
    RAIL = 22,  /* from the margin to the cards: arrows from card to card */
    PAD = 18,   /* within a card */
    GPU_W = 56, /* of the devices */
    NIC_W = 86,
    DEVICE_H = 40,
    GAP = 74,     /* between devices */
    HEAD = 30,    /* a card's names */
    ABOVE = 44,   /* room for memories over the devices, where there are some */
    BARE = 8,     /* where there are none */
    BETWEEN = 34, /* from card to card */
    FRAME = 26,   /* over and below cards that repeat */
    LINE = 18,
    BAR_X = 100,
    BAR_W = 320,
    MIN_WIDTH = 720,
    LETTER = 8, /* average width of a character in a card's head, an upper bound */
    CARDS = 64, /* drawn at most of a ring; and of NCCL's own and the steps beside it: */
    OTHERS = (1 + TCCL_MAX_BESIDE) * TCCL_CHAIN_RINGS,
    WRAP = 110, /* characters of a line of text */
};

static const double LETTERS = 7.4; /* width of a character of a line of text, an upper bound */
static const double MOST_GBPS = 1e9;

/* A card on the sheet. */
struct card {
    const struct tccl_named_chain *chain;
    const struct acct_group *group;
    int place;     /* of its run in the group */
    int ring;      /* of those that run at once, from 0 */
    bool nccl;     /* NCCL's own; without a group */
    int neighbour; /* of a step beside it: which; of NCCL's own: which of its rings */
    double gbps;   /* that each edge carries; 0: not known */
    bool least;    /* at least */
    double x, y, w;
};

struct sheet {
    const struct acct_ring *ring;
    const struct acct_ring_facts *facts;
    struct card cards[TCCL_CHAIN_RINGS * CARDS]; /* ring by ring, of each as many: */
    int n_each, n_cards, n_left;                 /* n_left: nodes that are not drawn */
    struct card others[OTHERS];                  /* NCCL's own, then those of steps beside it */
    int n_others, n_nccl;
    bool grey;    /* what is drawn now belongs to others */
    bool in_page; /* without the facts above the cards */
    double top, width, height;
    FILE *out;
};

/* Devices of a chain in order, NICs included. */
static int n_devices(const struct tccl_named_chain *chain)
{
    return chain->closed ? chain->n_gpus + 1 : chain->n_gpus + 2;
}

static bool is_nic(const struct tccl_named_chain *chain, int device)
{
    return !chain->closed && (device == 0 || device == chain->n_gpus + 1);
}

static double device_w(const struct tccl_named_chain *chain, int device)
{
    return is_nic(chain, device) ? NIC_W : GPU_W;
}

/* The left edge of a device, from the card's. */
static double device_x(const struct tccl_named_chain *chain, int device)
{
    double x = PAD;
    for (int i = 0; i < device; i++)
        x += device_w(chain, i) + GAP;
    return x;
}

static double card_w(const struct tccl_named_chain *chain)
{
    int last = n_devices(chain) - 1;
    return device_x(chain, last) + device_w(chain, last) + PAD;
}

/* Where the card's devices begin. */
static double devices_y(const struct card *card)
{
    bool memories = false;
    for (int i = 0; i < tccl_named_arrows(card->chain); i++)
        memories |= tccl_named_arrow(card->chain, i).kind == 'm';
    return card->y + HEAD + (memories ? ABOVE : BARE);
}

static double middle_y(const struct card *card)
{
    return devices_y(card) + DEVICE_H / 2.0;
}

static double card_end(const struct card *card)
{
    return devices_y(card) + DEVICE_H + PAD;
}

static enum tccl_arrow_kind arrow_kind(struct tccl_text_arrow link)
{
    return link.kind == 'w'   ? TCCL_ARROW_WRITE
           : link.kind == 'r' ? TCCL_ARROW_READ
           : link.kind == 'm' ? TCCL_ARROW_BOUNCE
                              : TCCL_ARROW_NETWORK;
}

static void put_path(const struct sheet *sheet, enum tccl_arrow_kind kind, const char *path)
{
    char head[16];
    snprintf(head, sizeof(head), "%d", kind);
    fprintf(sheet->out,
            "<path class=\"arrow\" stroke=\"%s\"%s d=\"%s\" marker-end=\"url(#head%s)\"/>\n",
            tccl_svg_colour(kind), kind == TCCL_ARROW_NETWORK ? " stroke-dasharray=\"6 3\"" : "",
            path, sheet->grey ? "grey" : head);
}

/* As much of a NIC's name as fits the box: its end, where names differ. */
static void put_nic(const struct sheet *sheet, double x, double y, const char *name)
{
    enum { FITS = 12, FITS_SMALL = 15 };
    char text[FITS_SMALL + 1];
    size_t length = strlen(name);
    bool cut = length > FITS_SMALL;
    snprintf(text, sizeof(text), "%s%s", cut ? "..." : "",
             cut ? name + length - FITS_SMALL + 3 : name);
    tccl_svg_text(x, y, length > FITS ? "small mid" : "mid", text, sheet->out);
}

static void put_device(const struct sheet *sheet, const struct card *card, int device)
{
    const struct tccl_named_chain *chain = card->chain;
    double x = card->x + device_x(chain, device), w = device_w(chain, device);
    char gpu[32];
    bool nic = is_nic(chain, device), again = chain->closed && device == chain->n_gpus;
    fprintf(sheet->out,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"6\"/>\n",
            nic     ? "nic"
            : again ? "gpu idle"
                    : "gpu",
            x, devices_y(card), w, DEVICE_H);
    x += w / 2;
    double y = middle_y(card) + 4;
    if (nic) {
        put_nic(sheet, x, y, device ? chain->exit.nic : chain->entry.nic);
        return;
    }
    snprintf(gpu, sizeof(gpu), "GPU %d", (int)chain->gpus[again ? 0 : device - !chain->closed]);
    tccl_svg_text(x, again ? y - 6 : y, "mid", gpu, sheet->out);
    if (again)
        tccl_svg_text(x, y + 9, "small mid", "again", sheet->out);
}

/* A bounce through a memory, drawn above the gap between x1 and x2. */
static void put_bounce(const struct sheet *sheet, double x1, double x2, double y, int memory,
                       bool busy)
{
    enum { W = 52, H = 22, IN = 14, UP = 18 };
    char path[160], name[32];
    double x = (x1 + x2) / 2, top = y - DEVICE_H / 2.0, box = top - ABOVE + 4;
    snprintf(path, sizeof(path), "M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f", x1 - IN, top, x1 - IN,
             top - UP, x1 - IN / 2.0, box + H / 2.0, x - W / 2.0, box + H / 2.0);
    put_path(sheet, TCCL_ARROW_BOUNCE, path);
    snprintf(path, sizeof(path), "M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f", x + W / 2.0,
             box + H / 2.0, x2 + IN / 2.0, box + H / 2.0, x2 + IN, top - UP, x2 + IN, top);
    put_path(sheet, TCCL_ARROW_BOUNCE, path);
    fprintf(sheet->out,
            "<rect class=\"memory%s\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" "
            "rx=\"4\"/>\n",
            busy ? " busy" : "", x - W / 2.0, box, W, H);
    snprintf(name, sizeof(name), "mem %d", memory);
    tccl_svg_text(x, box + 15, "mid", name, sheet->out);
}

static void put_link(const struct sheet *sheet, const struct card *card, int i)
{
    const struct tccl_named_chain *chain = card->chain;
    struct tccl_text_arrow link = tccl_named_arrow(chain, i);
    double x1 = card->x + device_x(chain, i) + device_w(chain, i);
    double x2 = card->x + device_x(chain, i + 1), y = middle_y(card);
    char path[64], gbps[32] = "";
    if (card->gbps > 0)
        snprintf(gbps, sizeof(gbps), "%s%.2f", card->least ? "≥ " : "",
                 fmin(card->gbps, MOST_GBPS));
    if (link.kind == 'm') {
        put_bounce(sheet, x1, x2, y, link.memory,
                   card->nccl && link.memory == sheet->facts->busy.memory);
        tccl_svg_text((x1 + x2) / 2, y + 4, "small mid", gbps, sheet->out);
        return;
    }
    tccl_svg_text((x1 + x2) / 2, y + 15, "small mid", gbps, sheet->out);
    snprintf(path, sizeof(path), "M%.1f,%.1f H%.1f", x1 + 2, y, x2 - 2);
    put_path(sheet, arrow_kind(link), path);
    tccl_svg_text((x1 + x2) / 2, y - 7, "small mid",
                  link.kind == 'w'   ? "write"
                  : link.kind == 'r' ? "read"
                                     : "GPUDirect",
                  sheet->out);
}

/* The names of a card's nodes, cut to fit, and their number if several. Allocated; NULL if out of
 * memory. */
static char *card_head(const struct sheet *sheet, const struct card *card, int *count)
{
    char many[96] = "", which[48] = "", beside[ACCT_RING_LABEL], *head;
    *count = 1;
    if (card->nccl)
        acct_ring_nccl(sheet->ring, sheet->facts, card->neighbour, beside);
    else if (!card->group)
        acct_ring_beside(sheet->ring, sheet->facts, card->neighbour, card->ring, beside);
    if (!card->group)
        return strdup(beside);
    cleanup_free char *all = acct_group_names(sheet->ring, card->group, card->place, count);
    cleanup_free char *names = all ? acct_escape(all, NULL) : NULL;
    if (!names)
        return NULL;
    if (sheet->ring->n_rings > 1)
        snprintf(which, sizeof(which), ": ring %d of %d", card->ring + 1, sheet->ring->n_rings);
    if (*count > 1)
        snprintf(many, sizeof(many), "  (%d nodes)%s", *count, which);
    else
        snprintf(many, sizeof(many), "%s", which);
    int fits = (int)((card->w - 2 * PAD) / LETTER) - (int)strlen(many), used;
    if (acct_columns(names) <= fits)
        return asprintf(&head, "%s%s", names, many) < 0 ? NULL : head;
    int bytes = acct_bytes_within(names, fits - 3, &used);
    return asprintf(&head, "%.*s...%s", bytes, names, many) < 0 ? NULL : head;
}

static void put_card(const struct sheet *sheet, const struct card *card)
{
    int count;
    cleanup_free char *head = card_head(sheet, card, &count);
    for (int back = count > 1 ? 2 : 0; back >= 0; back--) /* several nodes: a stack of cards */
        fprintf(sheet->out,
                "<rect class=\"node\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "rx=\"8\"/>\n",
                card->x + 4 * back, card->y + 4 * back, card->w, card_end(card) - card->y);
    tccl_svg_text(card->x + PAD, card->y + 21, "head", head ? head : "", sheet->out);
    for (int i = 0; i < n_devices(card->chain); i++)
        put_device(sheet, card, i);
    for (int i = 0; i < tccl_named_arrows(card->chain); i++)
        put_link(sheet, card, i);
}

/* From the exit of a card, around its outside, to the entry of the next; the last one leads back to
 * the first and closes the ring. */
static void put_hop(const struct sheet *sheet, const struct card *from, const struct card *to)
{
    bool back = to->group->first == 0 && to->place == 0;
    const struct tccl_named_chain *chain = from->chain;
    double x1 = from->x + device_x(chain, chain->n_gpus + 1) + NIC_W / 2.0;
    double y1 = devices_y(from) + DEVICE_H + 1, below = card_end(from) + 17;
    double rail = back ? MARGIN : MARGIN + RAIL / 2.0;
    char path[200];
    snprintf(path, sizeof(path),
             "M%.1f,%.1f V%.1f Q%.1f,%.1f %.1f,%.1f H%.1f Q%.1f,%.1f %.1f,%.1f V%.1f "
             "Q%.1f,%.1f %.1f,%.1f H%.1f",
             x1, y1, below - 8, x1, below, x1 - 8, below, rail + 8, rail, below, rail,
             back ? below - 8 : below + 8, middle_y(to) + (back ? 8 : -8), rail, middle_y(to),
             rail + 8, middle_y(to), to->x + PAD - 2);
    put_path(sheet, TCCL_ARROW_NETWORK, path);
}

/* Of one ring, whose cards these are. */
static void put_hops(const struct sheet *sheet, const struct card *cards)
{
    if (cards[0].chain->closed)
        return;
    for (int i = 0; i + 1 < sheet->n_each; i++)
        if (!cards[i + 1].chain->closed)
            put_hop(sheet, &cards[i], &cards[i + 1]);
    const struct card *last = &cards[sheet->n_each - 1];
    if (!last->chain->closed && !sheet->ring->cut && !sheet->n_left)
        put_hop(sheet, last, cards);
}

/* A frame around cards that repeat. */
static void put_frame(const struct sheet *sheet, const struct card *first)
{
    const struct card *last = first + first->group->n_runs - 1;
    double w = 0;
    char text[80];
    if (first->group->times == 1 || first->place || last >= sheet->cards + sheet->n_cards ||
        last->ring != first->ring)
        return;
    for (const struct card *card = first; card <= last; card++)
        w = fmax(w, card->w);
    snprintf(text, sizeof(text), "these %d in turn, %d times", first->group->n_runs,
             first->group->times);
    fprintf(sheet->out,
            "<rect fill=\"none\" stroke=\"#999\" stroke-dasharray=\"3 4\" x=\"%.1f\" y=\"%.1f\" "
            "width=\"%.1f\" height=\"%.1f\" rx=\"10\"/>\n",
            first->x - 6, first->y - FRAME + 4, w + 22, card_end(last) - first->y + FRAME + 8);
    tccl_svg_text(first->x + 4, first->y - 7, "small", text, sheet->out);
}

static unsigned chain_looks(const struct tccl_named_chain *chain)
{
    unsigned looks = chain->closed ? 0 : 1u << TCCL_ARROW_NETWORK;
    for (int k = 0; k < tccl_named_arrows(chain); k++)
        looks |= 1u << arrow_kind(tccl_named_arrow(chain, k));
    return looks;
}

/* Of all arrows in the picture. */
static unsigned sheet_looks(const struct sheet *sheet)
{
    unsigned looks = 0;
    for (int i = 0; i < sheet->ring->n_sets; i++)
        for (int r = 0; r < sheet->ring->n_rings; r++)
            looks |= chain_looks(&sheet->ring->sets[i].chains[r]);
    for (int i = 0; i < sheet->facts->nccl.n; i++)
        looks |= chain_looks(&sheet->facts->nccl.chains[i]);
    return looks;
}

static double legend_width(const struct sheet *sheet)
{
    return sheet->width - 2 * MARGIN;
}

/* What is not said by arrows: what the numbers are, and the memory that is marked. */
static double put_notes(const struct sheet *sheet, double y, FILE *out)
{
    const struct tccl_memory_load *busy = &sheet->facts->busy;
    char text[96];
    double height = LINE;
    if (out)
        tccl_svg_text(MARGIN, y, "",
                      sheet->facts->n_beside
                          ? "numbers: GB/s that each edge carries; grey: steps that ran beside it "
                            "when it began"
                          : "numbers: GB/s that each edge carries",
                      out);
    if (busy->memory < 0)
        return height;
    snprintf(text, sizeof(text), "red: memory %d, where %d of NCCL's own copies meet", busy->memory,
             busy->copies);
    if (out)
        tccl_svg_text(MARGIN, y + height, "", text, out);
    return height + LINE;
}

/* The layout of the sheet. */

static void place_card(struct sheet *sheet, const struct acct_group *group, int place, int ring,
                       double *y)
{
    const struct acct_run *run = &sheet->ring->runs[group->first + place];
    const struct tccl_named_chain *chain = &sheet->ring->sets[run->set].chains[ring];
    if (sheet->n_cards == (ring > 0 ? (ring + 1) * sheet->n_each : CARDS)) {
        sheet->n_left += ring == 0 ? run->count * group->times : 0;
        return;
    }
    struct card *card = &sheet->cards[sheet->n_cards++];
    if (group->times > 1 && place == 0)
        *y += FRAME;
    *card = (struct card){.chain = chain,
                          .group = group,
                          .place = place,
                          .ring = ring,
                          .gbps = sheet->facts->gbps / sheet->ring->n_rings,
                          .least = sheet->facts->bounds,
                          .x = MARGIN + RAIL,
                          .y = *y,
                          .w = card_w(chain)};
    *y = card_end(card) + BETWEEN;
    sheet->width = fmax(sheet->width, card->x + card->w + MARGIN + 14);
}

static void place_other(struct sheet *sheet, const struct card *what, const char *head, double *y)
{
    struct card *card = &sheet->others[sheet->n_others++];
    *card = *what;
    card->x = MARGIN + RAIL;
    card->y = *y;
    card->w = fmax(card_w(card->chain), LETTER * acct_columns(head) + 2 * PAD);
    *y = card_end(card) + BETWEEN / 2.0;
    sheet->width = fmax(sheet->width, card->x + card->w + MARGIN);
}

/* What NCCL builds by itself, below the ring. */
static void place_nccl(struct sheet *sheet, double *y)
{
    const struct acct_ring_facts *facts = sheet->facts;
    for (int i = 0; i < facts->nccl.n; i++) {
        char head[ACCT_RING_LABEL];
        acct_ring_nccl(sheet->ring, facts, i, head);
        place_other(sheet,
                    &(struct card){.chain = &facts->nccl.chains[i],
                                   .nccl = true,
                                   .neighbour = i,
                                   .gbps = facts->baseline_gbps / facts->nccl.n},
                    head, y);
    }
    sheet->n_nccl = sheet->n_others;
}

/* The chains of the steps beside it. */
static void place_others(struct sheet *sheet, double *y)
{
    for (int i = 0; i < sheet->facts->n_beside; i++) {
        const struct tccl_neighbour *other = &sheet->facts->beside[i];
        for (int k = 0; k < other->rings.n; k++) {
            char head[ACCT_RING_LABEL];
            acct_ring_beside(sheet->ring, sheet->facts, i, k, head);
            place_other(sheet,
                        &(struct card){.chain = &other->rings.chains[k],
                                       .ring = k,
                                       .neighbour = i,
                                       .gbps = other->gbps / other->rings.n,
                                       .least = acct_ring_at_least(sheet->facts, i)},
                        head, y);
        }
    }
}

static void place_cards(struct sheet *sheet)
{
    const struct acct_ring *ring = sheet->ring;
    double y = sheet->top;
    for (int r = 0; r < ring->n_rings; r++) {
        for (int i = 0; i < ring->n_groups; i++)
            for (int place = 0; place < ring->groups[i].n_runs; place++)
                place_card(sheet, &ring->groups[i], place, r, &y);
        sheet->n_each = r == 0 ? sheet->n_cards : sheet->n_each;
    }
    place_nccl(sheet, &y);
    place_others(sheet, &y);
    sheet->height = y + (sheet->n_left ? LINE : 0) + put_notes(sheet, 0, NULL) +
                    tccl_svg_legend(0, 0, legend_width(sheet), sheet_looks(sheet), NULL) + MARGIN;
}

static void put_bars(const struct sheet *sheet, double y)
{
    const struct acct_ring_facts *facts = sheet->facts;
    double most = 0;
    for (int i = 0; i < facts->n_bars; i++)
        most = fmax(most, facts->bars[i].gbps);
    for (int i = 0; i < facts->n_bars; i++, y += LINE) {
        double w = BAR_W * (facts->bars[i].gbps / most);
        char text[48];
        snprintf(text, sizeof(text), "%.2f GB/s", facts->bars[i].gbps);
        tccl_svg_text(MARGIN, y + 11, "", facts->bars[i].label, sheet->out);
        fprintf(sheet->out,
                "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"13\" rx=\"2\" fill=\"%s\"/>\n",
                MARGIN + BAR_X, y, w,
                !facts->bars[i].ring ? "#b4bdc6"
                : facts->built       ? "#2e7d32"
                                     : "#1769aa");
        tccl_svg_text(MARGIN + BAR_X + w + 8, y + 11, "", text, sheet->out);
    }
}

/* Wraps a text at WRAP columns, at spaces where possible, and writes the lines unless out is NULL.
 * Returns how many lines. */
static int put_lines(const char *text, double y, FILE *out)
{
    int lines = 0;
    do {
        int used, bytes = acct_bytes_within(text, WRAP, &used), end = bytes;
        while (text[bytes] && end > 0 && text[end] != ' ')
            end--;
        if (end == 0)
            end = bytes;
        cleanup_free char *line = strndup(text, (size_t)end);
        if (out && line)
            tccl_svg_text(MARGIN, y + LINE * lines, "", line, out);
        lines++;
        text += end + (text[end] == ' ');
    } while (*text);
    return lines;
}

/* The title, cut to a sensible width. Allocated; NULL if out of memory. */
static char *cut_title(const struct acct_ring_facts *facts)
{
    enum { TITLE = 80 };
    char *text;
    int used, bytes = acct_bytes_within(facts->title, TITLE, &used);
    const char *dots = facts->title[bytes] ? "..." : "";
    return asprintf(&text, "%.*s%s", bytes, facts->title, dots) < 0 ? NULL : text;
}

static void put_head(const struct sheet *sheet)
{
    const struct acct_ring_facts *facts = sheet->facts;
    double y = MARGIN + 36;
    cleanup_free char *title = cut_title(facts);
    tccl_svg_text(MARGIN, MARGIN + 14, "title", title ? title : "", sheet->out);
    if (facts->lead)
        y += LINE * put_lines(facts->lead, y, sheet->out);
    for (int i = 0; i < facts->n_lines; i++)
        y += LINE * put_lines(facts->lines[i], y, sheet->out);
    put_bars(sheet, y);
}

/* Where the cards begin. */
static double head_height(const struct acct_ring_facts *facts)
{
    int lines = facts->n_bars + (facts->lead ? put_lines(facts->lead, 0, NULL) : 0);
    for (int i = 0; i < facts->n_lines; i++)
        lines += put_lines(facts->lines[i], 0, NULL);
    return MARGIN + 58 + LINE * lines;
}

/* A width that the texts fit into. */
static double head_width(const struct acct_ring_facts *facts)
{
    cleanup_free char *title = cut_title(facts);
    double width = 11.5 * acct_columns(title ? title : "");
    if (facts->lead)
        width = fmax(width, LETTERS * fmin(WRAP, acct_columns(facts->lead)));
    for (int i = 0; i < facts->n_lines; i++)
        width = fmax(width, LETTERS * fmin(WRAP, acct_columns(facts->lines[i])));
    return width + 2 * MARGIN;
}

/* The <svg> element: a file of its own, on white and with the facts, or part of a page that shows
 * them. */
static void open_sheet(const struct sheet *sheet)
{
    FILE *out = sheet->out;
    fprintf(out, "<svg%s width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\"",
            sheet->in_page ? "" : " xmlns=\"http://www.w3.org/2000/svg\"", sheet->width,
            sheet->height, sheet->width, sheet->height);
    if (sheet->in_page) {
        fprintf(out, " style=\"min-width:%.0fpx\" aria-label=\"Ring of ",
                TCCL_HTML_LEGIBLE * sheet->width);
        tccl_svg_escape(sheet->facts->title, out);
        fputs("; the same as a table below\">\n", out);
    } else {
        fputs(">\n<title>", out);
        tccl_svg_escape(sheet->facts->title, out);
        fputs("</title>\n", out);
    }
    tccl_svg_style(out);
    tccl_svg_markers(out);
    if (sheet->in_page)
        return;
    fputs("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", out);
    put_head(sheet);
}

/* NCCL's own, and in grey the steps beside it. */
static void put_others(struct sheet *sheet)
{
    fputs("<g class=\"nccl\">\n", sheet->out);
    for (int i = 0; i < sheet->n_nccl; i++)
        put_card(sheet, &sheet->others[i]);
    fputs("</g>\n", sheet->out);
    if (sheet->n_others == sheet->n_nccl)
        return;
    sheet->grey = true;
    fputs("<g class=\"other\">\n", sheet->out);
    for (int i = sheet->n_nccl; i < sheet->n_others; i++)
        put_card(sheet, &sheet->others[i]);
    fputs("</g>\n", sheet->out);
    sheet->grey = false;
}

static void put_sheet(struct sheet *sheet)
{
    FILE *out = sheet->out;
    char left[80];
    open_sheet(sheet);
    for (int i = 0; i < sheet->n_cards; i++)
        put_frame(sheet, &sheet->cards[i]);
    for (int i = 0; i < sheet->n_cards; i++)
        put_card(sheet, &sheet->cards[i]);
    for (int r = 0; r < sheet->ring->n_rings; r++)
        put_hops(sheet, &sheet->cards[r * sheet->n_each]);
    put_others(sheet);
    double legend = tccl_svg_legend(0, 0, legend_width(sheet), sheet_looks(sheet), NULL);
    double y = sheet->height - MARGIN - legend - put_notes(sheet, 0, NULL);
    if (sheet->n_left) {
        snprintf(left, sizeof(left), "... and %d more nodes, not drawn", sheet->n_left);
        tccl_svg_text(MARGIN + RAIL, y - LINE, "head", left, out);
    }
    tccl_svg_legend(MARGIN, y + 10, legend_width(sheet), sheet_looks(sheet), out);
    put_notes(sheet, y + legend + 14, out);
    fputs("</svg>\n", out);
}

static int draw(FILE *out, const struct acct_ring *ring, const struct acct_ring_facts *facts,
                bool in_page, struct tccl_error *err)
{
    cleanup_free struct sheet *sheet = calloc(1, sizeof(*sheet));
    if (!sheet)
        return tccl_fail(err, "out of memory");
    sheet->ring = ring;
    sheet->facts = facts;
    sheet->out = out;
    sheet->in_page = in_page;
    sheet->width = in_page ? MIN_WIDTH : fmax(MIN_WIDTH, head_width(facts));
    sheet->top = in_page ? MARGIN / 2.0 : head_height(facts);
    place_cards(sheet);
    put_sheet(sheet);
    return 0;
}

int acct_ring_draw(FILE *out, const struct acct_ring *ring, const struct acct_ring_facts *facts,
                   struct tccl_error *err)
{
    return draw(out, ring, facts, true, err);
}

int acct_ring_svg(FILE *out, const json_t *record, struct tccl_error *err)
{
    struct acct_ring ring;
    struct acct_ring_facts facts;
    int rc = acct_ring_facts_read(record, &ring, &facts, err);
    if (rc == 0)
        rc = draw(out, &ring, &facts, false, err);
    acct_ring_facts_clear(&ring, &facts);
    return rc;
}
