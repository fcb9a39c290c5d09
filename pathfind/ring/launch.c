/* launch.c: what a step with some GPUs of one node gets at its launch. */
#include "ring/launch.h"

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

static void take_nccl(const struct tccl_baseline *own, double gbps, struct tccl_launch *launch)
{
    launch->gbps = gbps;
    if (gbps > 0 && tccl_side_add_baseline(&launch->side, own) == 0)
        launch->side.alone = own->gbps;
}

int tccl_launch_choose(struct tccl_beside *beside, const struct tccl_table *table, int most,
                       struct tccl_launch *launch, struct tccl_error *err)
{
    const struct tccl_machine *machine =
        beside->model ? tccl_model_machine(beside->model) : beside->machine;
    struct tccl_node_class *class = beside->n ? tccl_beside_class(beside, table, true, false, err)
                                              : tccl_node_class_from_table(table, machine);
    const struct tccl_run run = {.class = class, .count = 1};
    struct tccl_ring ring = {0};
    int rings;
    *launch = (struct tccl_launch){0};
    if (!class)
        return tccl_fail(err, "out of memory");
    bool found = tccl_ring_choose(&run, 1, most, &ring, &rings, NULL) == 0;
    launch->nccl = ring.baseline_gbps[TCCL_NEWEST];
    launch->basis = ring.basis;
    if (found && tccl_ring_gains(&ring, TCCL_NEWEST))
        take_rings(&ring, class, launch);
    else
        take_nccl(&table->baseline_ring[TCCL_NEWEST], launch->nccl, launch);
    tccl_ring_clear(&ring);
    tccl_node_class_free(class);
    return 0;
}
