/* path-picture.h: where the parts of a node stand in a drawing, and the arrows of a chain. */
#ifndef TCCL_PATH_PICTURE_H
#define TCCL_PATH_PICTURE_H

#include "chain.h"

/* Left, top, width and height, in pixels. */
struct box {
    double x, y, w, h;
};

/* A node: NUMA nodes side by side, each with its memory at the top and its devices in a row below.
 */
struct layout {
    struct box node;
    struct box numas[TCCL_MAX_MEMORIES], memories[TCCL_MAX_MEMORIES];
    struct box switches[TCCL_MAX_SWITCHES];
    struct box gpus[TCCL_MAX_GPUS], nics[TCCL_MAX_NICS];
};

void layout_machine(const struct tccl_machine *machine, struct layout *layout);
const struct box *layout_box(const struct layout *layout, struct tccl_device device);

enum arrow_kind { ARROW_WRITE, ARROW_READ, ARROW_BOUNCE, ARROW_NETWORK, ARROW_KINDS };

/* One way that data go. Ends lie at the top of a device (to a memory), or at its bottom (to another
 * device). */
struct arrow {
    struct tccl_device from, to;
    enum arrow_kind kind;
    int step;              /* 1, 2, … along the chain; both halves of a bounce have the same */
    double x1, y1, x2, y2; /* set by place_arrows */
    bool below;
};

enum { MAX_ARROWS = 2 * TCCL_MAX_GPUS + 4 };

/* The arrows of a chain, in order. Returns how many. */
int chain_arrows(const struct tccl_chain *chain, struct arrow arrows[static MAX_ARROWS]);

/* Gives each arrow its ends, side by side where several meet. */
void place_arrows(const struct layout *layout, struct arrow *arrows, int count);

/* How far below the devices the arrows reach. */
double arrows_depth(const struct arrow *arrows, int count);
double arrow_depth(const struct arrow *arrow);

#endif
