/* path-limit.c: what limits the chains of a node. */
#include "command/path-route.h"

void limit_set(const struct tccl_side *side, struct tccl_set *set)
{
    *set = (struct tccl_set){.count = 0};
    for (int i = 0; i < side->count; i++)
        tccl_set_add(set, side->transfers[i]);
}

/* Removes members one by one, as long as the rest is as slow. */
static int shrink(const struct tccl_model *model, double slowest, struct tccl_side *part,
                  struct tccl_error *err)
{
    double gbps;
    for (int i = part->count - 1; i >= 0 && part->count > 1; i--) {
        struct tccl_side less = *part;
        less.transfers[i] = less.transfers[--less.count];
        if (tccl_model_slowest(model, less.transfers, less.count, &gbps, err) != 0)
            return -1;
        if (gbps <= slowest * (1 + 1e-9))
            *part = less;
    }
    return 0;
}

/* One ring: of its set the smallest part. Several: of a model one from which no member can be
 * removed, of a profile the whole. */
static int find_part(const struct stop *stop, struct limit *limit, struct tccl_error *err)
{
    const struct source *source = stop->class->source;
    struct tccl_set set, part;
    limit->part = limit->side;
    if (stop->set.n > 1)
        return limit->detailed ? shrink(source->model, stop_slowest(stop), &limit->part, err) : 0;
    limit_set(&limit->side, &set);
    if (source_slow_part(source, &set, stop->gbps, &part, err) != 0)
        return -1;
    limit->part = (struct tccl_side){.rings = 1};
    return tccl_side_add(&limit->part, &part);
}

int limit_find(const struct stop *stop, struct limit *limit, struct tccl_error *err)
{
    const struct tccl_model *model = stop->class->source->model;
    tccl_ring_set_side(&stop->set, &limit->side);
    limit->detailed = model != NULL;
    if (limit->detailed && tccl_model_rates(model, limit->side.transfers, limit->side.count,
                                            limit->rates, limit->limits, err) != 0)
        return -1;
    return find_part(stop, limit, err);
}
