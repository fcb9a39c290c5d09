/* sheet-text.c: a sheet on a terminal. */
#include <math.h>

#include "base/cleanup.h"
#include "draw/sheet.h"
#include "draw/svg.h"

enum { LABEL = 13, NUMBER = 14, BARS = 48 };

/* The characters of the drawing. */
struct strokes {
    const char *first, *next, *rail, *last; /* of the line along the left side */
    const char *shaft, *head;               /* of an arrow */
    const char *times, *dots;
};

static const struct strokes utf8_strokes = {"╭─▶ ", "├─▶ ", "│   ", "╰── ", "─", "▶", "×", "…"};
static const struct strokes ascii_strokes = {"+-> ", "+-> ", "|   ", "+-- ", "-", ">", "x", "..."};

struct drawing {
    const struct tccl_sheet *sheet;
    const struct strokes *strokes;
    struct tccl_pen *pen;
    bool grey;        /* then the colours of arrows don't count */
    unsigned looks;   /* drawn so far */
    const char *left; /* of further lines */
};

static void put_line(struct tccl_pen *pen, const char *text)
{
    cleanup_free char *escaped = tccl_term_escape(text, NULL);
    tccl_pen_words(pen, escaped ? escaped : "", "", "  ");
    tccl_pen_end(pen);
}

/* An arrow and the device after it, on the next line if they don't fit on this one. */
static void put_link(struct drawing *drawing, struct tccl_text_arrow arrow, const char *device)
{
    const struct strokes *strokes = drawing->strokes;
    int look = tccl_look_of(arrow);
    char text[TCCL_ARROW_TEXT + 16], between[TCCL_ARROW_TEXT];
    tccl_text_arrow_format(arrow, between);
    snprintf(text, sizeof(text), " %s%s%s ", strokes->shaft, between, strokes->head);
    if (drawing->pen->used + tccl_term_width(text) + tccl_term_width(device) >
        drawing->pen->columns) {
        tccl_pen_end(drawing->pen);
        tccl_pen_print(drawing->pen, "%s   ", drawing->left);
    }
    if (!drawing->grey)
        tccl_pen_colour(drawing->pen, tccl_looks[look].code);
    tccl_pen_put(drawing->pen, text);
    if (!drawing->grey)
        tccl_pen_colour(drawing->pen, "0");
    tccl_pen_put(drawing->pen, device);
    drawing->looks |= 1u << look;
}

/* The chains of a card, each on a line of its own. */
static void put_chains(struct drawing *drawing, const struct tccl_named_rings *rings)
{
    char gpu[24];
    for (int r = 0; r < rings->n; r++) {
        const struct tccl_named_chain *chain = &rings->chains[r];
        tccl_pen_put(drawing->pen, drawing->left);
        if (rings->n > 1)
            tccl_pen_print(drawing->pen, "ring %d: ", r + 1);
        tccl_pen_put(drawing->pen, tccl_card_device(chain, 0, gpu));
        for (int i = 1; i < tccl_card_devices(chain); i++)
            put_link(drawing, tccl_named_arrow(chain, i - 1), tccl_card_device(chain, i, gpu));
        tccl_pen_end(drawing->pen);
    }
}

/* A card of ours: its nodes, cut to fit the line, and its chains unless they were drawn above. */
static void put_card(struct drawing *drawing, int i)
{
    const struct tccl_card *card = &drawing->sheet->cards[i], *same = drawing->sheet->cards;
    const struct strokes *strokes = drawing->strokes;
    struct tccl_pen *pen = drawing->pen;
    bool rail = !card->rings->chains[0].closed;
    char times[32] = "";
    drawing->left = rail ? strokes->rail : "    ";
    if (card->times > 1 && card->turn == 0) {
        tccl_pen_put(pen, i ? strokes->rail : "    ");
        tccl_pen_colour(pen, "2");
        tccl_pen_print(pen, "these %d in turn, %s%d:", card->turns, strokes->times, card->times);
        tccl_pen_colour(pen, "0");
        tccl_pen_end(pen);
    }
    if (card->nodes > 1)
        snprintf(times, sizeof(times), "  %s%d", strokes->times, card->nodes);
    tccl_pen_put(pen, !rail ? "    " : i == 0 ? strokes->first : strokes->next);
    tccl_pen_colour(pen, "1");
    tccl_pen_cut(pen, card->head, pen->columns - pen->used - tccl_term_width(times));
    tccl_pen_colour(pen, "0");
    tccl_pen_put(pen, times);
    tccl_pen_end(pen);
    while (same->rings != card->rings)
        same++;
    if (same == card) {
        put_chains(drawing, card->rings);
        return;
    }
    cleanup_free char *name = tccl_term_escape(same->first, NULL);
    tccl_pen_print(pen, "%sas ", drawing->left);
    tccl_pen_words(pen, name ? name : "", drawing->left, "   ");
    tccl_pen_end(pen);
}

/* Of the arrows that were drawn. */
static void put_legend(struct drawing *drawing)
{
    struct tccl_pen *pen = drawing->pen;
    tccl_pen_end(pen);
    for (int i = 0; i < TCCL_ARROW_KINDS; i++) {
        const struct tccl_look *look = &tccl_looks[i];
        char text[120];
        if (!(drawing->looks >> i & 1))
            continue;
        snprintf(text, sizeof(text), "%s%c%s%s %s", drawing->strokes->shaft, look->letter,
                 look->letter == 'm'   ? "N"
                 : look->letter == 'n' ? "InJ"
                                       : "",
                 drawing->strokes->head, look->in_text);
        if (pen->used > 0 && pen->used + 3 + tccl_term_width(text) > pen->columns)
            tccl_pen_end(pen);
        else if (pen->used > 0)
            tccl_pen_put(pen, "   ");
        tccl_pen_colour(pen, look->code);
        tccl_pen_put(pen, text);
        tccl_pen_colour(pen, "0");
    }
    tccl_pen_end(pen);
}

static void put_head(const struct tccl_sheet *sheet, struct tccl_pen *pen)
{
    double most = 0;
    int room = pen->columns - LABEL - NUMBER - 2;
    tccl_pen_colour(pen, "1");
    cleanup_free char *title = tccl_term_escape(sheet->title, NULL);
    tccl_pen_words(pen, title ? title : "", "", "  ");
    tccl_pen_colour(pen, "0");
    tccl_pen_end(pen);
    if (sheet->lead)
        put_line(pen, sheet->lead);
    for (int i = 0; i < sheet->n_lines; i++)
        put_line(pen, sheet->lines[i]);
    if (sheet->n_bars)
        tccl_pen_end(pen);
    for (int i = 0; i < sheet->n_bars; i++)
        most = fmax(most, sheet->bars[i].gbps);
    for (int i = 0; i < sheet->n_bars; i++) {
        fprintf(pen->out, "%-*s%*.2f GB/s  ", LABEL, sheet->bars[i].label, NUMBER - 5,
                sheet->bars[i].gbps);
        tccl_pen_colour(pen, !sheet->bars[i].ours ? "2" : sheet->built ? "32" : "34");
        tccl_pen_bar(pen, sheet->bars[i].gbps / most, room > BARS ? BARS : room);
        tccl_pen_colour(pen, "0");
        tccl_pen_end(pen);
    }
    tccl_pen_end(pen);
}

int tccl_sheet_text(const struct tccl_sheet *sheet, struct tccl_pen *pen)
{
    const struct strokes *strokes = pen->utf8 ? &utf8_strokes : &ascii_strokes;
    struct drawing drawing = {.sheet = sheet, .strokes = strokes, .pen = pen};
    cleanup_free char *first = tccl_term_escape(sheet->cards[0].first, NULL);
    if (!first)
        return -1;
    put_head(sheet, pen);
    for (int i = 0; i < sheet->n_ours; i++)
        put_card(&drawing, i);
    if (!sheet->cards[0].rings->chains[0].closed) {
        tccl_pen_put(pen, strokes->last);
        tccl_pen_put(pen, sheet->cut ? strokes->dots : "over the network back to ");
        tccl_pen_put(pen, sheet->cut ? "" : first);
        tccl_pen_end(pen);
    }
    for (int i = sheet->n_ours; i < sheet->n_cards; i++) {
        /* NCCL's own, and in grey the steps beside it. */
        cleanup_free char *head = tccl_card_head(&sheet->cards[i], -1);
        drawing.grey = sheet->cards[i].kind == TCCL_CARD_OTHER;
        drawing.left = "    ";
        if (drawing.grey)
            tccl_pen_colour(drawing.pen, "90");
        tccl_pen_end(drawing.pen);
        put_line(drawing.pen, head ? head : "");
        put_chains(&drawing, sheet->cards[i].rings);
        if (drawing.grey)
            tccl_pen_colour(drawing.pen, "0");
    }
    put_legend(&drawing);
    return 0;
}
