/* sheet.c: what all drawings of a sheet have, and its parts of a page. */
#include "draw/sheet.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "draw/doc.h"
#include "draw/html.h"

enum { NAMES = 400 }; /* longest texts, columns */

void tccl_sheet_clear(struct tccl_sheet *sheet)
{
    free(sheet->title);
    free(sheet->lead);
    for (int i = 0; i < sheet->n_lines; i++)
        free(sheet->lines[i]);
    for (int i = 0; i < sheet->n_cards; i++)
        free(sheet->cards[i].head);
    free(sheet->cards);
}

char *tccl_card_head(const struct tccl_card *card, int ring)
{
    char which[40] = "", *head;
    int n = card->rings->n;
    if (n > 1 && ring >= 0)
        snprintf(which, sizeof(which), "%sring %d of %d",
                 card->kind == TCCL_CARD_OURS ? ": " : ", ", ring + 1, n);
    else if (n > 1 && card->kind != TCCL_CARD_OURS)
        snprintf(which, sizeof(which), ", %d rings", n);
    return asprintf(&head, "%s%s", card->head, which) < 0 ? NULL : head;
}

double tccl_card_gbps(const struct tccl_card *card)
{
    return card->gbps / card->rings->n;
}

int tccl_card_devices(const struct tccl_named_chain *chain)
{
    return tccl_named_arrows(chain) + 1;
}

const char *tccl_card_device(const struct tccl_named_chain *chain, int i, char gpu[static 24])
{
    int place = chain->closed ? i % chain->n_gpus : i - 1;
    if (place < 0 || place == chain->n_gpus)
        return place < 0 ? chain->entry.nic : chain->exit.nic;
    snprintf(gpu, 24, "GPU %d", (int)chain->gpus[place]);
    return gpu;
}

/* Chains whose edges all carry as much; what goes through the busy memory is marked. */
static void put_ways(const struct tccl_card *card, int busy, FILE *out)
{
    for (int r = 0; r < card->rings->n; r++) {
        const struct tccl_named_chain *chain = &card->rings->chains[r];
        double rates[TCCL_CHAIN_GPUS + 1];
        bool marked[TCCL_CHAIN_GPUS + 1];
        for (int i = 0; i < tccl_named_arrows(chain); i++) {
            struct tccl_text_arrow arrow = tccl_named_arrow(chain, i);
            rates[i] = tccl_card_gbps(card);
            marked[i] = card->kind == TCCL_CARD_NCCL && busy >= 0 &&
                        (arrow.memory == busy || (arrow.kind == 'n' && arrow.to_memory == busy));
        }
        if (card->rings->n > 1 && card->gbps > 0)
            fprintf(out, "<p class=\"way dim\">ring %d of %d: %.2f GB/s</p>\n", r + 1,
                    card->rings->n, tccl_card_gbps(card));
        tccl_html_way(chain, rates, marked, out);
    }
}

/* Have other cards the same chains? -1: one before it has. */
static int alike(const struct tccl_sheet *sheet, int i)
{
    int found = 0;
    for (int k = 0; k < sheet->n_ours; k++)
        if (k != i && sheet->cards[k].rings == sheet->cards[i].rings)
            found = k < i || found < 0 ? -1 : 1;
    return found;
}

void tccl_sheet_ways(const struct tccl_sheet *sheet, FILE *out)
{
    enum { WAYS = 16 };
    for (int i = 0, ways = 0; i < sheet->n_cards; i++) {
        const struct tccl_card *card = &sheet->cards[i];
        bool ours = card->kind == TCCL_CARD_OURS;
        int same = ours ? alike(sheet, i) : 0;
        if (same < 0 || (ours && ways++ >= WAYS))
            continue;
        cleanup_free char *head = ours ? NULL : tccl_card_head(card, -1);
        if (i == sheet->n_ours + sheet->n_nccl) /* drawn in grey */
            fputs("<div class=\"grey\">\n", out);
        fputs("<p class=\"way\">", out);
        tccl_html_text(ours ? card->first : head ? head : "", NAMES, out);
        fputs(same > 0 || card->nodes > 1 ? " and nodes like it</p>\n" : "</p>\n", out);
        put_ways(card, sheet->busy.memory, out);
    }
    if (sheet->n_cards > sheet->n_ours + sheet->n_nccl)
        fputs("</div>\n", out);
}

void tccl_sheet_table(const struct tccl_sheet *sheet, FILE *out)
{
    enum { CARDS = 1000 };
    static const struct tccl_doc_column columns[] = {{"Nodes", -1}, {"Number", 1}, {"Chain", 0}};
    struct tccl_doc doc = {.pen = {.out = out}, .html = true};
    fputs("<details><summary aria-label=\"As a table: the ring\">As a table</summary>\n", out);
    tccl_doc_table(&doc, "", "Nodes in ring order, with the path of the data on each", columns, 3);
    for (int i = 0; i < sheet->n_ours && i < CARDS; i++) {
        const struct tccl_card *card = &sheet->cards[i];
        tccl_doc_text(&doc, card->head, NAMES);
        tccl_doc_cell(&doc, "%d", card->nodes);
        tccl_doc_chains(&doc, card->rings);
        tccl_doc_row(&doc);
    }
    tccl_doc_table_end(&doc);
    fprintf(out, "%s</details>\n",
            sheet->n_ours > CARDS ? "<p>Only the first are listed.</p>\n" : "");
}

void tccl_sheet_chart(const struct tccl_sheet *sheet, FILE *out)
{
    struct tccl_chart_column columns[TCCL_SHEET_BARS] = {0};
    struct tccl_chart chart = {.name = "Bandwidth of the ring and what to compare it with",
                               .x_axis = "ring",
                               .y_axis = "GB/s",
                               .series = {"GB/s (1e9 bytes per second)"},
                               .n_series = 1,
                               .digits = 2,
                               .columns = columns,
                               .n_columns = sheet->n_bars};
    for (int i = 0; i < sheet->n_bars; i++) {
        snprintf(columns[i].name, sizeof(columns[i].name), "%s", sheet->bars[i].label);
        snprintf(columns[i].label, sizeof(columns[i].label), "%s", sheet->bars[i].label);
        columns[i].values[0] = sheet->bars[i].gbps;
    }
    tccl_html_chart("Bandwidth", &chart, out);
}
