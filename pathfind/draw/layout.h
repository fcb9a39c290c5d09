/* layout.h: the positions of a node's devices in a drawing, and the arrows of chains. */
#pragma once

#include "chain/chain-text.h"
#include "chain/chain.h"

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
