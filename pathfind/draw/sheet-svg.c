/* sheet-svg.c: a sheet as SVG. Of rings that run at once one is below the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "draw/html.h"
#include "draw/sheet.h"
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
    CARDS = 64, /* drawn at most of a ring */
    WRAP = 110, /* characters of a line of text */
    TITLE = 80, /* of the title */
};

static const double LETTERS = 7.4; /* width of a character of a line of text, an upper bound */
static const double MOST_GBPS = 1e9;

/* A chain of a card, drawn as a card of its own. */
struct spot {
    const struct tccl_card *card;
    const struct tccl_named_chain *chain;
    int ring; /* of those of the card */
    double y, w;
};

struct drawing {
    const struct tccl_sheet *sheet;
    struct spot *spots; /* ours ring by ring, of each as many; then the others */
    int n_each, n_ours, n;
    int left;     /* nodes that are not drawn */
    bool in_page; /* without title, lines and bars */
    unsigned looks;
    double top, width, height;
    FILE *out;
};

/* The left edge of a device; that behind the last one is the card's end, but for its gap. */
static double device_x(const struct tccl_named_chain *chain, int device)
{
    return MARGIN + RAIL + PAD + device * (GPU_W + GAP) +
           (chain->closed ? 0 : (NIC_W - GPU_W) * ((device > 0) + (device > chain->n_gpus + 1)));
}

static double device_end(const struct tccl_named_chain *chain, int device)
{
    return device_x(chain, device + 1) - GAP;
}

static double devices_y(const struct spot *spot)
{
    bool memories = false;
    for (int i = 0; i < tccl_named_arrows(spot->chain); i++)
        memories |= tccl_named_arrow(spot->chain, i).kind == 'm';
    return spot->y + HEAD + (memories ? ABOVE : BARE);
}

static double middle_y(const struct spot *spot)
{
    return devices_y(spot) + DEVICE_H / 2.0;
}

static double spot_end(const struct spot *spot)
{
    return devices_y(spot) + DEVICE_H + PAD;
}

static bool is_grey(const struct spot *spot)
{
    return spot->card->kind == TCCL_CARD_OTHER;
}

static void put_device(const struct drawing *drawing, const struct spot *spot, int i)
{
    enum { FITS = 12, FITS_SMALL = 15 }; /* of a NIC's name its end, where names differ */
    const struct tccl_named_chain *chain = spot->chain;
    double x = device_x(chain, i), w = device_end(chain, i) - x, y = middle_y(spot) + 4;
    bool nic = !chain->closed && (i == 0 || i == chain->n_gpus + 1),
         again = chain->closed && i == chain->n_gpus;
    char gpu[24], text[FITS_SMALL + 1];
    const char *name = tccl_card_device(chain, i, gpu);
    size_t length = strlen(name);
    bool cut = length > FITS_SMALL;
    tccl_svg_box(&(struct tccl_box){x, devices_y(spot), w, DEVICE_H}, 6,
                 nic     ? "nic"
                 : again ? "gpu idle"
                         : "gpu",
                 drawing->out);
    snprintf(text, sizeof(text), "%s%s", cut ? "..." : "",
             cut ? name + length - FITS_SMALL + 3 : name);
    tccl_svg_text(x + w / 2, again ? y - 6 : y, length > FITS ? "small mid" : "mid", text,
                  drawing->out);
    if (again)
        tccl_svg_text(x + w / 2, y + 9, "small mid", "again", drawing->out);
}

/* A bounce through a memory, drawn above the gap between x1 and x2. */
static void put_bounce(const struct drawing *drawing, const struct spot *spot, double x1, double x2,
                       int memory)
{
    enum { W = 52, H = 22, IN = 14, UP = 18 };
    char path[160], name[32];
    double x = (x1 + x2) / 2, top = devices_y(spot), box = top - ABOVE + 4;
    bool busy = spot->card->kind == TCCL_CARD_NCCL && memory == drawing->sheet->busy.memory;
    snprintf(path, sizeof(path), "M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f", x1 - IN, top, x1 - IN,
             top - UP, x1 - IN / 2.0, box + H / 2.0, x - W / 2.0, box + H / 2.0);
    tccl_svg_line(TCCL_ARROW_BOUNCE, is_grey(spot), path, drawing->out);
    snprintf(path, sizeof(path), "M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f", x + W / 2.0,
             box + H / 2.0, x2 + IN / 2.0, box + H / 2.0, x2 + IN, top - UP, x2 + IN, top);
    tccl_svg_line(TCCL_ARROW_BOUNCE, is_grey(spot), path, drawing->out);
    tccl_svg_box(&(struct tccl_box){x - W / 2.0, box, W, H}, 4, busy ? "memory busy" : "memory",
                 drawing->out);
    snprintf(name, sizeof(name), "mem %d", memory);
    tccl_svg_text(x, box + 15, "mid", name, drawing->out);
}

static void put_link(const struct drawing *drawing, const struct spot *spot, int i)
{
    struct tccl_text_arrow arrow = tccl_named_arrow(spot->chain, i);
    double x1 = device_end(spot->chain, i), x2 = device_x(spot->chain, i + 1), y = middle_y(spot);
    double carries = tccl_card_gbps(spot->card);
    char path[64], gbps[32] = "";
    if (carries > 0)
        snprintf(gbps, sizeof(gbps), "%s%.2f", spot->card->least ? "≥ " : "",
                 fmin(carries, MOST_GBPS));
    tccl_svg_text((x1 + x2) / 2, arrow.kind == 'm' ? y + 4 : y + 15, "small mid", gbps,
                  drawing->out);
    if (arrow.kind == 'm') {
        put_bounce(drawing, spot, x1, x2, arrow.memory);
        return;
    }
    snprintf(path, sizeof(path), "M%.1f,%.1f H%.1f", x1 + 2, y, x2 - 2);
    tccl_svg_line(tccl_look_of(arrow), is_grey(spot), path, drawing->out);
    tccl_svg_text((x1 + x2) / 2, y - 7, "small mid", tccl_looks[tccl_look_of(arrow)].word,
                  drawing->out);
}

/* Its nodes, cut to fit, and their number if several. Allocated; NULL without memory. */
static char *spot_head(const struct spot *spot)
{
    const struct tccl_card *card = spot->card;
    char many[96] = "", *head;
    if (card->kind != TCCL_CARD_OURS)
        return tccl_card_head(card, spot->ring);
    if (card->nodes > 1)
        snprintf(many, sizeof(many), "  (%d nodes)", card->nodes);
    size_t used = strlen(many);
    if (card->rings->n > 1)
        used += (size_t)snprintf(many + used, sizeof(many) - used, ": ring %d of %d",
                                 spot->ring + 1, card->rings->n);
    if (card->rings->n > 1 && card->gbps > 0)
        snprintf(many + used, sizeof(many) - used,
                 spot->ring + 1 == card->rings->n ? ": %.2f GB/s, together %.2f" : ": %.2f GB/s",
                 fmin(tccl_card_gbps(card), MOST_GBPS), fmin(card->gbps, MOST_GBPS));
    int fits = (int)((spot->w - 2 * PAD) / LETTER) - (int)strlen(many);
    cleanup_free char *names = tccl_term_cut(card->head, fits, "...");
    return !names || asprintf(&head, "%s%s", names, many) < 0 ? NULL : head;
}

static void put_spot(const struct drawing *drawing, const struct spot *spot)
{
    cleanup_free char *head = spot_head(spot);
    bool ours = spot->card->kind == TCCL_CARD_OURS;
    cleanup_free char *safe = ours || !head ? NULL : tccl_term_escape(head, NULL);
    for (int back = ours && spot->card->nodes > 1 ? 2 : 0; back >= 0; back--) /* a stack of cards */
        tccl_svg_box(&(struct tccl_box){MARGIN + RAIL + 4 * back, spot->y + 4 * back, spot->w,
                                        spot_end(spot) - spot->y},
                     8, "node", drawing->out);
    tccl_svg_text(MARGIN + RAIL + PAD, spot->y + 21, "head",
                  safe   ? safe
                  : head ? head
                         : "",
                  drawing->out);
    for (int i = 0; i < tccl_card_devices(spot->chain); i++)
        put_device(drawing, spot, i);
    for (int i = 0; i < tccl_named_arrows(spot->chain); i++)
        put_link(drawing, spot, i);
}

/* From the exit of a card, around its outside, to the entry of the next; the last one leads back to
 * the first and closes the ring. */
static void put_hop(const struct drawing *drawing, const struct spot *from, const struct spot *to,
                    bool back)
{
    int exit = tccl_card_devices(from->chain) - 1;
    double x1 = device_x(from->chain, exit) + NIC_W / 2.0;
    double y1 = devices_y(from) + DEVICE_H + 1, below = spot_end(from) + 17;
    double rail = back ? MARGIN : MARGIN + RAIL / 2.0;
    char path[200];
    snprintf(path, sizeof(path),
             "M%.1f,%.1f V%.1f Q%.1f,%.1f %.1f,%.1f H%.1f Q%.1f,%.1f %.1f,%.1f V%.1f "
             "Q%.1f,%.1f %.1f,%.1f H%.1f",
             x1, y1, below - 8, x1, below, x1 - 8, below, rail + 8, rail, below, rail,
             back ? below - 8 : below + 8, middle_y(to) + (back ? 8 : -8), rail, middle_y(to),
             rail + 8, middle_y(to), device_x(to->chain, 0) - 2.0);
    tccl_svg_line(TCCL_ARROW_NETWORK, false, path, drawing->out);
}

/* Of one ring, whose cards these are. */
static void put_hops(const struct drawing *drawing, const struct spot *spots)
{
    int n = drawing->n_each;
    bool ends = drawing->sheet->cut || drawing->left;
    if (spots[0].chain->closed)
        return;
    for (int i = 0; i < n; i++)
        if ((i + 1 < n || !ends) && !spots[i].chain->closed && !spots[(i + 1) % n].chain->closed)
            put_hop(drawing, &spots[i], &spots[(i + 1) % n], i + 1 == n);
}

/* A frame around cards that repeat. */
static void put_frame(const struct drawing *drawing, int i)
{
    const struct spot *first = &drawing->spots[i], *last = first + first->card->turns - 1;
    double w = 0;
    char text[80];
    if (first->card->times <= 1 || first->card->turn > 0 ||
        last >= drawing->spots + drawing->n_ours || last->ring != first->ring)
        return;
    for (const struct spot *spot = first; spot <= last; spot++)
        w = fmax(w, spot->w);
    snprintf(text, sizeof(text), "these %d in turn, %d times", first->card->turns,
             first->card->times);
    fprintf(drawing->out,
            "<rect fill=\"none\" stroke=\"#999\" stroke-dasharray=\"3 4\" x=\"%.1f\" y=\"%.1f\" "
            "width=\"%.1f\" height=\"%.1f\" rx=\"10\"/>\n",
            MARGIN + RAIL - 6.0, first->y - FRAME + 4, w + 22,
            spot_end(last) - first->y + FRAME + 8);
    tccl_svg_text(MARGIN + RAIL + 4, first->y - 7, "small", text, drawing->out);
}

/* What is not said by arrows: what the numbers are, and the memory that is marked. Returns how many
 * pixels; out may be NULL. */
static double put_notes(const struct drawing *drawing, double y, FILE *out)
{
    const struct tccl_sheet *sheet = drawing->sheet;
    char text[TCCL_LOAD_TEXT];
    if (out)
        tccl_svg_text(MARGIN, y, "",
                      sheet->n_cards > sheet->n_ours + sheet->n_nccl
                          ? "numbers: GB/s that each edge carries; grey: steps that ran beside it "
                            "when it began"
                          : "numbers: GB/s that each edge carries",
                      out);
    if (sheet->busy.memory < 0)
        return LINE;
    tccl_memory_load_say(&sheet->busy, "thick red frame: NCCL", text);
    if (out)
        tccl_svg_text(MARGIN, y + LINE, "", text, out);
    return 2 * LINE;
}

/* ---- the layout ---- */

static void place(struct drawing *drawing, const struct tccl_card *card, int ring, double *y)
{
    struct spot *spot = &drawing->spots[drawing->n++];
    bool ours = card->kind == TCCL_CARD_OURS;
    *spot = (struct spot){.card = card, .chain = &card->rings->chains[ring], .ring = ring};
    if (ours && card->times > 1 && card->turn == 0)
        *y += FRAME;
    spot->y = *y;
    spot->w = device_end(spot->chain, tccl_card_devices(spot->chain) - 1) + PAD - MARGIN - RAIL;
    cleanup_free char *head = ours ? NULL : tccl_card_head(card, ring);
    if (head)
        spot->w = fmax(spot->w, LETTER * tccl_term_width(head) + 2 * PAD);
    *y = spot_end(spot) + (ours ? BETWEEN : BETWEEN / 2.0);
    drawing->width = fmax(drawing->width, MARGIN + RAIL + spot->w + MARGIN + (ours ? 14 : 0));
    if (card->kind == TCCL_CARD_OTHER)
        return;
    for (int i = 0; i < tccl_named_arrows(spot->chain); i++)
        drawing->looks |= 1u << tccl_look_of(tccl_named_arrow(spot->chain, i));
    if (!spot->chain->closed)
        drawing->looks |= 1u << TCCL_ARROW_NETWORK;
}

static void place_all(struct drawing *drawing)
{
    const struct tccl_sheet *sheet = drawing->sheet;
    double y = drawing->top;
    drawing->n_each = sheet->n_ours < CARDS ? sheet->n_ours : CARDS;
    for (int i = drawing->n_each; i < sheet->n_ours; i++)
        drawing->left += sheet->cards[i].nodes;
    for (int r = 0; r < sheet->cards[0].rings->n; r++)
        for (int i = 0; i < drawing->n_each; i++)
            place(drawing, &sheet->cards[i], r, &y);
    drawing->n_ours = drawing->n;
    for (int i = sheet->n_ours; i < sheet->n_cards; i++)
        for (int r = 0; r < sheet->cards[i].rings->n; r++)
            place(drawing, &sheet->cards[i], r, &y);
    drawing->height = y + (drawing->left ? LINE : 0) + put_notes(drawing, 0, NULL) + MARGIN +
                      tccl_svg_legend(0, 0, drawing->width - 2 * MARGIN, drawing->looks, NULL);
}

/* ---- title, lines and bars ---- */

/* Wraps a text at WRAP columns, at spaces where possible, and writes the lines unless out is NULL.
 * Returns how many, and widens *width. */
static int put_lines(const char *raw, double y, double *width, FILE *out)
{
    cleanup_free char *escaped = tccl_term_escape(raw, NULL);
    const char *text = escaped ? escaped : "";
    int lines = 0;
    *width = fmax(*width, LETTERS * fmin(WRAP, tccl_term_width(text)));
    do {
        int used, bytes = tccl_term_fit(text, WRAP, &used), end = bytes;
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

/* Writes it unless out is NULL. Returns where the cards begin, and widens *width. */
static double put_head(const struct tccl_sheet *sheet, double *width, FILE *out)
{
    double y = MARGIN + 36, most = 0, text_width = 0;
    cleanup_free char *title = tccl_term_cut(sheet->title, TITLE, "...");
    if (out)
        tccl_svg_text(MARGIN, MARGIN + 14, "title", title ? title : "", out);
    text_width = 11.5 * tccl_term_width(title ? title : "");
    if (sheet->lead)
        y += LINE * put_lines(sheet->lead, y, &text_width, out);
    for (int i = 0; i < sheet->n_lines; i++)
        y += LINE * put_lines(sheet->lines[i], y, &text_width, out);
    *width = fmax(*width, text_width + 2 * MARGIN);
    for (int i = 0; i < sheet->n_bars; i++)
        most = fmax(most, sheet->bars[i].gbps);
    for (int i = 0; i < sheet->n_bars; i++, y += LINE) {
        double w = BAR_W * (sheet->bars[i].gbps / most);
        char text[48];
        if (!out)
            continue;
        snprintf(text, sizeof(text), "%.2f GB/s", sheet->bars[i].gbps);
        tccl_svg_text(MARGIN, y + 11, "", sheet->bars[i].label, out);
        fprintf(out,
                "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"13\" rx=\"2\" fill=\"%s\"/>\n",
                MARGIN + BAR_X, y, w,
                !sheet->bars[i].ours ? "#b4bdc6"
                : sheet->built       ? "#2e7d32"
                                     : "#1769aa");
        tccl_svg_text(MARGIN + BAR_X + w + 8, y + 11, "", text, out);
    }
    return y + 22;
}

/* The <svg> element, up to the cards. */
static void open_sheet(const struct drawing *drawing)
{
    FILE *out = drawing->out;
    double width = drawing->width;
    cleanup_free char *title = tccl_term_escape(drawing->sheet->title, NULL);
    fprintf(out, "<svg%s width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\"",
            drawing->in_page ? "" : " xmlns=\"http://www.w3.org/2000/svg\"", width, drawing->height,
            width, drawing->height);
    if (drawing->in_page)
        fprintf(out, " style=\"min-width:%.0fpx\" aria-label=\"Ring of ",
                TCCL_HTML_LEGIBLE * width);
    else
        fputs(">\n<title>", out);
    tccl_svg_escape(title ? title : "", out);
    fputs(drawing->in_page ? "; the same as a table below\">\n" : "</title>\n", out);
    fputs("<g aria-hidden=\"true\">\n", out); /* the table is what is read out */
    tccl_svg_style(out);
    if (drawing->in_page)
        return;
    fputs("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", out);
    put_head(drawing->sheet, &width, out);
}

int tccl_sheet_svg(const struct tccl_sheet *sheet, bool in_page, FILE *out)
{
    int most = TCCL_CHAIN_RINGS * (CARDS + sheet->n_cards - sheet->n_ours);
    cleanup_free struct spot *spots = calloc((size_t)most, sizeof(*spots));
    struct drawing drawing = {
        .sheet = sheet, .spots = spots, .in_page = in_page, .width = MIN_WIDTH, .out = out};
    if (!spots)
        return -1;
    drawing.top = in_page ? MARGIN / 2.0 : put_head(sheet, &drawing.width, NULL);
    place_all(&drawing);
    open_sheet(&drawing);
    for (int i = 0; i < drawing.n_ours; i++)
        put_frame(&drawing, i);
    for (int i = 0; i < drawing.n_ours; i++)
        put_spot(&drawing, &spots[i]);
    for (int i = 0; i < drawing.n_ours; i += drawing.n_each)
        put_hops(&drawing, &spots[i]);
    /* NCCL's own, and in grey the steps beside it. */
    int i = drawing.n_ours;
    fputs("<g class=\"nccl\">\n", drawing.out);
    for (; i < drawing.n && !is_grey(&drawing.spots[i]); i++)
        put_spot(&drawing, &drawing.spots[i]);
    fputs(i < drawing.n ? "</g>\n<g class=\"other\">\n" : "", drawing.out);
    for (; i < drawing.n; i++)
        put_spot(&drawing, &drawing.spots[i]);
    fputs("</g>\n", drawing.out);
    double width = drawing.width - 2 * MARGIN,
           legend = tccl_svg_legend(0, 0, width, drawing.looks, NULL),
           y = drawing.height - MARGIN - legend - put_notes(&drawing, 0, NULL);
    if (drawing.left) {
        char left[80];
        snprintf(left, sizeof(left), "... and %d more nodes, not drawn", drawing.left);
        tccl_svg_text(MARGIN + RAIL, y - LINE, "head", left, out);
    }
    tccl_svg_legend(MARGIN, y + 10, width, drawing.looks, out);
    put_notes(&drawing, y + legend + 14, out);
    fputs("</g>\n</svg>\n", out);
    return 0;
}
