/* panels.h: several pictures of a node in one drawing, side by side where there is room, with one
 * legend: a ring of ours, and what NCCL builds by itself. */
#ifndef TCCL_PANELS_H
#define TCCL_PANELS_H

#include "draw/svg.h"

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

/* most: what the drawing may take from left to right, unless one panel takes more, in pixels. */
void tccl_panels_place(struct tccl_panels *panels, double most);
/* Draws them from 0, 0 on, and the legend. The style and the arrow heads are the caller's
 * (tccl_svg_style). Errors are left to ferror. */
void tccl_panels_svg(const struct tccl_panels *panels, FILE *out);

#endif
