/* layout.c: the positions of a node's devices in a drawing, and the arrows of chains. */
#include "draw/svg.h"

#include <math.h>
#include <stdlib.h>

enum {
    DEVICE_W = 92,
    DEVICE_H = 44,
    SPACE = 14,
    PAD = 14,
    SWITCH_HEAD = 20,
    NUMA_HEAD = 24,
    MEMORY_W = 120,
    MEMORY_H = 34,
    CURVES = 150, /* between memories and devices */
};

/* The row that devices are placed into from left to right. */
struct row {
    const struct tccl_machine *machine;
    struct tccl_layout *layout;
    double x, y; /* where the next device goes */
};

static void place_device(struct row *row, struct tccl_box *box)
{
    *box = (struct tccl_box){row->x, row->y, DEVICE_W, DEVICE_H};
    row->x += DEVICE_W + SPACE;
}

static int place_children(struct row *row, int parent, int numa);

/* A switch is drawn around what is below it. Returns the levels of switches, with this one. */
static int place_switch(struct row *row, int index)
{
    double left = row->x;
    row->x += PAD;
    int levels = 1 + place_children(row, index, -1);
    if (row->x < left + PAD + DEVICE_W)
        row->x = left + PAD + DEVICE_W + SPACE;
    double top = row->y - levels * SWITCH_HEAD, bottom = row->y + DEVICE_H + levels * 8;
    row->layout->switches[index] =
        (struct tccl_box){left, top, row->x - SPACE + PAD - left, bottom - top};
    row->x += PAD;
    return levels;
}

/* What is directly below a switch, or at the root complex (parent -1) of a NUMA node. Returns the
 * levels of switches in it. */
static int place_children(struct row *row, int parent, int numa)
{
    const struct tccl_machine *machine = row->machine;
    int levels = 0;
    for (int i = 0; i < machine->n_switches; i++)
        if (machine->switches[i].parent == parent &&
            (parent >= 0 || machine->switches[i].numa == numa)) {
            int below = place_switch(row, i);
            levels = below > levels ? below : levels;
        }
    for (int i = 0; i < machine->n_gpus; i++)
        if (machine->gpus[i].parent == parent && (parent >= 0 || machine->gpus[i].numa == numa))
            place_device(row, &row->layout->gpus[i]);
    for (int i = 0; i < machine->n_nics; i++)
        if (machine->nics[i].parent == parent && (parent >= 0 || machine->nics[i].numa == numa))
            place_device(row, &row->layout->nics[i]);
    return levels;
}

void tccl_layout_machine(const struct tccl_machine *machine, struct tccl_layout *layout)
{
    int heads = machine->n_switches ? SWITCH_HEAD * 3 : 0;
    double top = NUMA_HEAD + PAD, devices = top + MEMORY_H + CURVES + heads;
    struct row row = {machine, layout, PAD, devices};
    double bottom = devices + DEVICE_H + PAD + (heads ? PAD : 0);
    for (int numa = 0; numa < machine->n_memories; numa++) {
        double left = row.x;
        row.x += PAD;
        place_children(&row, -1, numa);
        double width = fmax(row.x - SPACE + PAD - left, MEMORY_W + 2 * PAD);
        layout->numas[numa] = (struct tccl_box){left, PAD, width, bottom - PAD};
        layout->memories[numa] =
            (struct tccl_box){left + (width - MEMORY_W) / 2, top, MEMORY_W, MEMORY_H};
        row.x = left + width + SPACE;
    }
    layout->node = (struct tccl_box){0, 0, row.x - SPACE + PAD, bottom + PAD};
}

static const struct tccl_box *box_of(const struct tccl_layout *layout, struct tccl_device device)
{
    switch (device.kind) {
    case TCCL_GPU:
        return &layout->gpus[device.index];
    case TCCL_MEMORY:
        return &layout->memories[device.index];
    default:
        return &layout->nics[device.index];
    }
}

/* Arrows */

static int add_transfers(struct tccl_arrow *arrows, const tccl_transfer *transfers, int n,
                         enum tccl_arrow_kind kind, int step)
{
    for (int i = 0; i < n; i++)
        arrows[i] = (struct tccl_arrow){.from = tccl_transfer_source(transfers[i]),
                                        .to = tccl_transfer_sink(transfers[i]),
                                        .kind = kind,
                                        .step = step,
                                        .transfer = transfers[i]};
    return n;
}

int tccl_chain_arrows(const struct tccl_chain *chain,
                      struct tccl_arrow arrows[static TCCL_MAX_ARROWS])
{
    static const enum tccl_arrow_kind kinds[] = {TCCL_ARROW_WRITE, TCCL_ARROW_READ,
                                                 TCCL_ARROW_BOUNCE, TCCL_ARROW_NICS};
    tccl_transfer transfers[TCCL_EDGE_TRANSFERS];
    int count = 0, step = 1;
    if (!chain->closed)
        count += add_transfers(arrows, transfers,
                               tccl_entry_transfers(chain->entry, chain->gpus[0], transfers),
                               TCCL_ARROW_NETWORK, step++);
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        int n = tccl_edge_transfers(chain->edges[i], chain->gpus[i],
                                    chain->gpus[(i + 1) % chain->n_gpus], transfers);
        count += add_transfers(arrows + count, transfers, n, kinds[chain->edges[i].kind], step++);
    }
    if (!chain->closed) {
        int tail = chain->gpus[chain->n_gpus - 1];
        count += add_transfers(arrows + count, transfers,
                               tccl_exit_transfers(chain->exit, tail, transfers),
                               TCCL_ARROW_NETWORK, step);
    }
    return count;
}

/* One end of an arrow, at the top or the bottom of a box. */
struct end {
    double *x; /* where it is to be put */
    const struct tccl_box *box;
    bool below;    /* at the bottom of the box */
    double toward; /* x of the other end's box */
    int *level;    /* of the arrow, if this is its end at a device; NULL: at a memory */
};

static int compare_ends(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    if (x->box != y->box)
        return x->box < y->box ? -1 : 1;
    if (x->below != y->below)
        return x->below - y->below;
    return (x->toward > y->toward) - (x->toward < y->toward);
}

static double middle(const struct tccl_box *box)
{
    return box->x + box->w / 2;
}

/* Spreads the ends of one side of a box evenly. Returns how many there were. */
static int spread(struct end *ends, int count)
{
    int n = 1;
    while (n < count && ends[n].box == ends->box && ends[n].below == ends->below)
        n++;
    for (int i = 0; i < n; i++) {
        *ends[i].x = ends->box->x + ends->box->w * (i + 1) / (n + 1);
        if (ends[i].level)
            *ends[i].level = i;
    }
    return n;
}

void tccl_place_arrows(const struct tccl_layout *layout, struct tccl_arrow *arrows, int count)
{
    struct end ends[2 * TCCL_ALL_ARROWS];
    for (int i = 0; i < count; i++) {
        struct tccl_arrow *arrow = &arrows[i];
        const struct tccl_box *from = box_of(layout, arrow->from);
        const struct tccl_box *to = box_of(layout, arrow->to);
        bool from_memory = arrow->from.kind == TCCL_MEMORY,
             to_memory = arrow->to.kind == TCCL_MEMORY;
        arrow->below = !from_memory && !to_memory;
        arrow->y1 = from->y + (from_memory || arrow->below ? from->h : 0);
        arrow->y2 = to->y + (to_memory || arrow->below ? to->h : 0);
        ends[2 * i] = (struct end){&arrow->x1, from, from_memory || arrow->below, middle(to),
                                   from_memory ? NULL : &arrow->level};
        ends[2 * i + 1] = (struct end){&arrow->x2, to, to_memory || arrow->below, middle(from),
                                       from_memory ? &arrow->level : NULL};
    }
    qsort(ends, 2 * count, sizeof(*ends), compare_ends);
    for (int i = 0; i < 2 * count;)
        i += spread(ends + i, 2 * count - i);
}

double tccl_arrow_depth(const struct tccl_arrow *arrow)
{
    enum { APART = 24 }; /* those of several rings */
    return arrow->below ? fmin(150, 34 + 0.16 * fabs(arrow->x2 - arrow->x1)) + APART * arrow->ring
                        : 0;
}

double tccl_arrows_depth(const struct tccl_arrow *arrows, int count)
{
    double depth = 0;
    for (int i = 0; i < count; i++)
        depth = fmax(depth, 0.75 * tccl_arrow_depth(&arrows[i]));
    return depth;
}
