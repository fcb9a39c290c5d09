/* svg.h: a node and the chains on it as self-contained SVG. */
#pragma once

#include <stdio.h>

#include "draw/layout.h"
#include "machine/sides.h"

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
