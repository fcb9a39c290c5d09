/* svg.h: a node and a chain on it as self-contained SVG. */
#ifndef TCCL_SVG_H
#define TCCL_SVG_H

#include <stdio.h>

#include "draw/layout.h"

/* Errors of all these are left to ferror. */

/* Writes text, escaped for XML, HTML and DOT. Control characters, which are invalid in XML, are
 * replaced by U+FFFD. */
void tccl_svg_escape(const char *text, FILE *out);

/* Written once per file, before the first picture: the classes (an element "style"), and the arrow
 * heads. What stands in <g class="other"> is grey, with "#headgrey" for its arrow heads. */
void tccl_svg_style(FILE *out);
void tccl_svg_markers(FILE *out);
void tccl_svg_text(double x, double y, const char *class, const char *text, FILE *out);
/* The colour of an arrow. */
const char *tccl_svg_colour(enum tccl_arrow_kind kind);
/* The legend for these kinds of arrows (bit K: enum tccl_arrow_kind K), at most two lines of
 * TCCL_SVG_LEGEND pixels together. */
enum { TCCL_SVG_LEGEND = 46 };
void tccl_svg_legend(double left, double y, unsigned kinds, FILE *out);

/* A node with the arrows of a chain, ready to be drawn; width and height in pixels. */
struct tccl_picture {
    const struct tccl_machine *machine;
    uint32_t gpus; /* those in use; the others are drawn pale */
    struct tccl_layout layout;
    struct tccl_arrow arrows[TCCL_MAX_ARROWS];
    int n_arrows;
    double width, height;
};

/* chain: NULL or without GPUs: no arrows. The machine must live as long as the picture. */
void tccl_picture_make(const struct tccl_machine *machine, uint32_t gpus,
                       const struct tccl_chain *chain, struct tccl_picture *picture);
/* The kinds of its arrows, for tccl_svg_legend. */
unsigned tccl_picture_kinds(const struct tccl_picture *picture);
/* Draws it with its left upper corner at 0, 0. */
void tccl_svg_picture(const struct tccl_picture *picture, FILE *out);

#endif
