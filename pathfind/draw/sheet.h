/* sheet.h: a step's rings as people see them, where the machines are not known but only what
 * chains' texts say: as SVG, on a terminal, and as parts of a page (html.h). A card shows the nodes
 * that have the same chains, and these, from the NIC where data enter to the NIC where they leave;
 * cards are in ring order, then come NCCL's own rings and those of steps beside it. */
#pragma once

#include "chain/chain-text.h"
#include "chain/memory-load.h"
#include "draw/term.h"

enum tccl_card_kind { TCCL_CARD_OURS, TCCL_CARD_NCCL, TCCL_CARD_OTHER };

struct tccl_card {
    enum tccl_card_kind kind;
    char *head;        /* whose: "n[1-4]", "beside it: 5.20 of 10.40 GB/s, NCCL's own" */
    int nodes;         /* that have these chains */
    const char *first; /* the first of them, borrowed */
    const struct tccl_named_rings *rings; /* borrowed; cards with the same pointer are alike */
    double gbps;                          /* of all of them; 0: not known */
    bool least;                           /* at least so much */
    int turn, turns, times; /* it is the turn-th of turns cards that repeat so many times; from 0 */
};

enum { TCCL_SHEET_LINES = 9, TCCL_SHEET_BARS = 6 };

/* Texts are not escaped yet. */
struct tccl_sheet {
    char *title;                   /* whose it is */
    char *lead;                    /* what is to be said first; NULL: nothing */
    char *lines[TCCL_SHEET_LINES]; /* what else is known */
    int n_lines;
    struct {
        const char *label;
        double gbps;
        bool ours;           /* else what to compare it with */
    } bars[TCCL_SHEET_BARS]; /* known bandwidths */
    int n_bars;
    bool built;                   /* by NCCL: ours is a fact */
    bool cut;                     /* it is only the beginning of the rings */
    struct tccl_card *cards;      /* ours first, at least one */
    int n_cards, n_ours, n_nccl;  /* n_nccl: behind ours, before the others */
    struct tccl_memory_load busy; /* the memory that NCCL's own ask most of; memory -1: none */
};

/* Frees the texts, heads and cards, not what they borrow. */
void tccl_sheet_clear(struct tccl_sheet *sheet);

/* All that draw: 0, or -1 without memory. Errors of out are left to ferror. */

/* One <svg> element: of a file of its own, on white, with title, lines and bars; or within a page
 * that has these. */
int tccl_sheet_svg(const struct tccl_sheet *sheet, bool in_page, FILE *out);
/* With title, lines and bars. */
int tccl_sheet_text(const struct tccl_sheet *sheet, struct tccl_pen *pen);
/* Chains as lists, each set of chains once; and our cards as a table. */
void tccl_sheet_ways(const struct tccl_sheet *sheet, FILE *out);
void tccl_sheet_table(const struct tccl_sheet *sheet, FILE *out);
/* The bars as a chart; nothing without them. */
void tccl_sheet_chart(const struct tccl_sheet *sheet, FILE *out);

/* For these: a card's head, with the ring of several (from 0; -1: how many there are). Allocated;
 * NULL without memory. */
char *tccl_card_head(const struct tccl_card *card, int ring);
/* What each of its edges carries, GB/s. */
double tccl_card_gbps(const struct tccl_card *card);
/* Device i of a chain, NICs included, and how many: of a closed one the first again at the end. */
const char *tccl_card_device(const struct tccl_named_chain *chain, int i, char gpu[static 24]);
int tccl_card_devices(const struct tccl_named_chain *chain);
