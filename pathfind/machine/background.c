/* background.c: what jobs keep running beside their rings, as transfers. */
#include "machine/background.h"

#include <string.h>

_Static_assert(2 * TCCL_MAX_GPUS <= TCCL_MAX_SET, "a side has room for the background of all GPUs");

static void add_copy(struct tccl_side *side, struct tccl_device gpu, bool reads,
                     struct tccl_device memory)
{
    side->transfers[side->count++] = tccl_transfer_make(gpu, reads, memory);
}

void tccl_background_add(const struct tccl_machine *machine, enum tccl_background background,
                         uint32_t gpus, struct tccl_side *side)
{
    if (background != TCCL_BACKGROUND_OFFLOAD)
        return;
    for (int i = 0; i < machine->n_gpus; i++) {
        struct tccl_device gpu = {TCCL_GPU, (uint8_t)i};
        struct tccl_device memory = {TCCL_MEMORY, (uint8_t)machine->gpus[i].numa};
        if (!(gpus >> i & 1))
            continue;
        add_copy(side, gpu, false, memory);
        add_copy(side, gpu, true, memory);
    }
    side->rings = side->count > 0;
}

int tccl_model_beside(const struct tccl_model *model, enum tccl_background background,
                      uint32_t gpus, const struct tccl_set *set, double *gbps,
                      struct tccl_error *err)
{
    struct tccl_side own = {0}, beside = {0};
    const struct tccl_side *const sides[] = {&own, &beside};
    double rates[2];

    tccl_background_add(tccl_model_machine(model), background, gpus, &beside);
    if (beside.count == 0)
        return tccl_model_measure(model, set, gbps, NULL, NULL, err);
    tccl_side_add(&own, set); /* there is room for one */
    if (tccl_model_sides(model, sides, 2, rates, err) != 0)
        return -1;
    *gbps = rates[0];
    return 0;
}
