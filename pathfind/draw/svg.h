/* svg.h: a node and the chains on it: where they lie in a drawing, and that as SVG. */
#pragma once

#include <stdio.h>

#include "chain/chain-text.h"
#include "chain/chain.h"
#include "machine/sides.h"

/* ---- layout: the positions of a node's devices in a drawing, and the arrows of chains. */

/* Left, top, width and height, in pixels. */
struct tccl_box {
    double x, y, w, h;
};

/* A node: NUMA nodes side by side, each with its memory at the top and its devices in a row below.
 */
struct tccl_layout {
    struct tccl_box node;
    struct tccl_box numas[TCCL_MAX_MEMORIES], memories[TCCL_MAX_MEMORIES];
    struct tccl_box switches[TCCL_MAX_SWITCHES];
    struct tccl_box gpus[TCCL_MAX_GPUS], nics[TCCL_MAX_NICS];
};

void tccl_layout_machine(const struct tccl_machine *machine, struct tccl_layout *layout);

enum tccl_arrow_kind {
    TCCL_ARROW_WRITE,
    TCCL_ARROW_READ,
    TCCL_ARROW_BOUNCE,
    TCCL_ARROW_NETWORK,
    TCCL_ARROW_NICS,
    TCCL_ARROW_KINDS
};

/* A transfer of data. An arrow ends at the top of a device (to or from a memory), or at its bottom
 * (to or from another device). */
struct tccl_arrow {
    struct tccl_device from, to;
    enum tccl_arrow_kind kind;
    int ring; /* of several that run at once: which, from 0 */
    int step; /* 1, 2, … along the chain; both halves of a bounce have the same */
    tccl_transfer transfer;
    double gbps;           /* of this transfer; 0: not known */
    bool slow;             /* others and it hold each other back */
    double x1, y1, x2, y2; /* set by tccl_place_arrows */
    int level;             /* at the device, among its arrows: so that labels keep apart */
    bool below;
};

enum {
    TCCL_MAX_ARROWS = TCCL_EDGE_TRANSFERS * (TCCL_MAX_GPUS + 1), /* of a chain */
    TCCL_ALL_ARROWS = TCCL_CHAIN_RINGS * TCCL_MAX_ARROWS         /* of all that run at once */
};

/* The arrows of a chain, in order. Returns how many. */
int tccl_chain_arrows(const struct tccl_chain *chain,
                      struct tccl_arrow arrows[static TCCL_MAX_ARROWS]);

/* Sets the ends of all arrows, at most TCCL_ALL_ARROWS, side by side if several meet at a device.
 */
void tccl_place_arrows(const struct tccl_layout *layout, struct tccl_arrow *arrows, int count);

/* How far below the devices the arrows reach. */
double tccl_arrows_depth(const struct tccl_arrow *arrows, int count);
double tccl_arrow_depth(const struct tccl_arrow *arrow);

/* ---- svg: a node and the chains on it as self-contained SVG. */

/* Errors of all these are left to ferror. */

/* Writes text, escaped for XML and HTML. Control characters, which are invalid in XML, are
 * replaced by U+FFFD. */
void tccl_svg_escape(const char *text, FILE *out);

/* What an arrow looks like: as its kind, or as one of those that hold each other back. */
enum { TCCL_LOOK_SLOW = TCCL_ARROW_KINDS, TCCL_LOOKS };
extern const struct tccl_look {
    char letter;         /* of its kind in the text of a chain */
    const char *word;    /* "write" */
    const char *colour;  /* of SVG */
    const char *code;    /* of a terminal's colour */
    const char *meaning; /* in a legend */
    const char *in_text; /* in one on a terminal, behind the arrow itself */
} tccl_looks[TCCL_LOOKS];
int tccl_look_of(struct tccl_text_arrow arrow);

/* Written once per file, before the first picture: the classes (an element "style"), and the arrow
 * heads. What stands in <g class="other"> is grey. */
void tccl_svg_style(FILE *out);
void tccl_svg_text(double x, double y, const char *class, const char *text, FILE *out);
void tccl_svg_box(const struct tccl_box *box, int corner, const char *class, FILE *out);
/* An arrow along a path, or what lies below it where it is slow. grey: it is of others. */
void tccl_svg_line(int look, bool grey, const char *path, FILE *out);
/* The legend for these looks (bit K: look K), in lines no wider than that. Returns its height; out
 * may be NULL. */
double tccl_svg_legend(double left, double y, double width, unsigned looks, FILE *out);
/* About what a text takes in the widest font that a viewer may take instead, at 12 pixels. */
double tccl_svg_text_width(const char *text);

/* A node with the arrows of chains, ready to be drawn; width and height in pixels. */
struct tccl_picture {
    const struct tccl_machine *machine;
    uint32_t gpus; /* those in use; the others are drawn pale */
    struct tccl_layout layout;
    struct tccl_arrow arrows[TCCL_ALL_ARROWS];
    int n_arrows, n_rings;
    double width, height;
};

/* chains: n of them that run at once, at most TCCL_CHAIN_RINGS (the rest is not drawn); equal ones
 * are drawn once. rated: NULL, or of their transfers. The machine must live as long as the
 * picture. */
void tccl_picture_make(const struct tccl_machine *machine, uint32_t gpus,
                       const struct tccl_chain *chains, int n, const struct tccl_rated *rated,
                       struct tccl_picture *picture);
/* The looks of its arrows, for tccl_svg_legend. */
unsigned tccl_picture_looks(const struct tccl_picture *picture);
/* Draws it with its left upper corner at 0, 0. */
void tccl_svg_picture(const struct tccl_picture *picture, FILE *out);

/* Several pictures of a node in one drawing, side by side where there is room, with one legend: a
 * ring of ours, and what NCCL builds by itself. */
enum { TCCL_PANEL_HEAD = 320 };

struct tccl_panel {
    char head[TCCL_PANEL_HEAD];   /* "this ring: 11.45 GB/s" */
    char detail[TCCL_RINGS_TEXT]; /* its chains as a text */
    struct tccl_picture picture;
    double x, y; /* set by tccl_panels_place */
};

/* What stands at an arrow of several rings. */
#define TCCL_PANELS_PLACE "a1 is the first of ring a"

struct tccl_panels {
    struct tccl_panel *list;
    int n;
    double width, height; /* set by tccl_panels_place, with the legend */
};

/* All but its head; as tccl_picture_make. */
void tccl_panel_make(const struct tccl_machine *machine, uint32_t gpus,
                     const struct tccl_chain *chains, int n, const struct tccl_rated *rated,
                     struct tccl_panel *panel);
/* most: what the drawing may take from left to right, unless one panel takes more, in pixels. */
void tccl_panels_place(struct tccl_panels *panels, double most);
/* Draws them from 0, 0 on, and the legend. The style and the arrow heads are the caller's
 * (tccl_svg_style). */
void tccl_panels_svg(const struct tccl_panels *panels, FILE *out);
