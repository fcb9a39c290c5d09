/* path-limit.c: what limits the chains of a node. */
#include "command/path-limit.h"

#include "machine/side.h"

/* The rates of the set's members while all chains of the stop run: from a model a transfer of
 * several chains runs as often. */
static int find_rates(const struct stop *stop, struct limit *limit, struct tccl_error *err)
{
    const struct source *source = stop->class->source;
    struct tccl_side side = {0};
    double rates[TCCL_MAX_SIDE], gbps;
    const char *limits[TCCL_MAX_SIDE];
    if (source->profile)
        return tccl_model_measure(source->model, &limit->set, &gbps, limit->rates, limit->limits,
                                  err);
    for (int i = 0; i < stop_chains(stop); i++)
        tccl_side_add_chain(&side, stop_chain(stop, i)); /* there is room for all */
    if (tccl_model_rates(source->model, side.transfers, side.count, rates, limits, err) != 0)
        return -1;
    for (int i = 0; i < limit->set.count; i++) {
        int at = 0;
        while (side.transfers[at] != limit->set.transfers[i])
            at++;
        limit->rates[i] = rates[at];
        limit->limits[i] = limits[at];
    }
    return 0;
}

int limit_find(const struct stop *stop, struct limit *limit, struct tccl_error *err)
{
    const struct source *source = stop->class->source;
    stop_set(stop, &limit->set);
    limit->detailed = source_plain_model(source) != NULL;
    if (limit->detailed && find_rates(stop, limit, err) != 0)
        return -1;
    return source_slow_part(source, &limit->set, stop_slowest(stop), &limit->part, err);
}
