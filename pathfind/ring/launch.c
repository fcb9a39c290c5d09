/* launch.c: what a step with some GPUs of one node gets at its launch. */
#include "ring/launch.h"

#include <math.h>

#include "ring/ring.h"

static void take_rings(const struct tccl_ring *ring, const struct tccl_node_class *class,
                       struct tccl_launch *launch)
{
    struct tccl_ring_set set;
    tccl_ring_set_of(ring, class, 0, &set);
    tccl_ring_set_side(&set, &launch->side);
    launch->side.alone = ring->alone;
    launch->gbps = ring->gbps;
    launch->ours = true;
}

/* Where that is known by bounds only, it is compared by what it has alone, but has so much at
 * least. */
static int take_nccl(struct tccl_beside *beside, const struct tccl_baseline *own,
                     struct tccl_launch *launch, struct tccl_error *err)
{
    struct tccl_worth worth;
    launch->gbps = launch->nccl;
    if (!(launch->nccl > 0) || tccl_side_add_baseline(&launch->side, own) != 0)
        return 0;
    beside->own = launch->side.alone = own->gbps;
    if (beside->n == 0)
        return 0;
    if (tccl_beside_worth(beside, &launch->side, &worth, err) != 0)
        return -1;
    launch->gbps = fmin(launch->gbps, worth.gbps);
    launch->basis = worth.basis;
    return 0;
}

int tccl_launch_choose(struct tccl_beside *beside, const struct tccl_table *table, int most,
                       struct tccl_launch *launch, struct tccl_error *err)
{
    const struct tccl_machine *machine =
        beside->model ? tccl_model_machine(beside->model) : beside->machine;
    struct tccl_node_class *class = beside->n
                                        ? tccl_beside_class(beside, table, true, false, err)
                                        : tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    const struct tccl_run run = {.class = class, .count = 1};
    struct tccl_ring ring = {0};
    int rings, status = 0;
    *launch = (struct tccl_launch){0};
    if (!class)
        return tccl_fail(err, "out of memory");
    bool found = tccl_ring_choose(&run, 1, most, &ring, &rings, NULL) == 0;
    launch->nccl = ring.baseline_gbps[TCCL_NEWEST];
    launch->basis = ring.basis;
    if (found && tccl_ring_gains(&ring, TCCL_NEWEST))
        take_rings(&ring, class, launch);
    else
        status = take_nccl(beside, &table->baseline_ring[TCCL_NEWEST], launch, err);
    tccl_ring_clear(&ring);
    tccl_node_class_free(class);
    return status;
}
