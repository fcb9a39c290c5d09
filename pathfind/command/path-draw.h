/* path-draw.h: the drawing of a ring or a set of rings: one panel per node class and set. */
#ifndef TCCL_PATH_DRAW_H
#define TCCL_PATH_DRAW_H

#include "command/path-answer.h"

enum { NAMES_TEXT = 80 };

/* Nodes with the same chains share a panel. */
struct panel {
    const struct stop *stop;
    char names[NAMES_TEXT]; /* "n1-n4, n7" */
    int count;
};

struct drawing {
    const struct answer *answer;
    struct panel *panels;
    int n_panels;
};

/* Writes a whole file. Errors of out are left to ferror. Returns 0, or -1 with err and nothing
 * written. */
int draw_svg(const struct drawing *drawing, FILE *out, struct tccl_error *err);

#endif
