/* print-sides.c: what groups of GPUs of a model reach that all run at the same time: a line for
 * each with its bandwidth, that of NCCL's own when all have these, and what all-reduces reach of
 * the first. Usage: print-sides MODEL
 * open|closed VERSION GROUP... VERSION: of NCCL, such as 22907. GROUP: a chain by bus ids; or a
 * list of GPUs, which have NCCL's own. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/numberset.h"
#include "chain/ring-set.h"
#include "nccl/baseline.h"
#include "ring/neighbours.h"
#include "ring/reach.h"

static int fail(const struct tccl_error *err)
{
    fprintf(stderr, "print-sides: %s\n", err->text);
    return 1;
}

static int add_own(const struct tccl_machine *machine, uint32_t gpus, bool closed, int version,
                   struct tccl_side *side, struct tccl_error *err)
{
    struct tccl_baseline own;
    if (tccl_baseline_find(machine, gpus, closed, tccl_generation_of(version), &own, err) != 0)
        return -1;
    return tccl_ring_set_side(&own.set, side) == 0 ? 0 : tccl_fail(err, "too many transfers");
}

/* Both sides of a group. */
static int read_group(const struct tccl_machine *machine, const char *text, bool closed,
                      int version, struct tccl_side *side, struct tccl_side *own,
                      struct tccl_error *err)
{
    struct tccl_chain chain;
    uint32_t gpus = 0;
    if (!strchr(text, '>')) {
        if (tccl_numberset_parse(text, machine->n_gpus, &gpus, err) < 0)
            return -1;
        return add_own(machine, gpus, closed, version, side, err) != 0 ||
                       add_own(machine, gpus, closed, version, own, err) != 0
                   ? -1
                   : 0;
    }
    if (tccl_chain_parse(text, machine, &chain, err) != 0)
        return -1;
    for (int i = 0; i < chain.n_gpus; i++)
        gpus |= UINT32_C(1) << chain.gpus[i];
    if (tccl_side_add_chain(side, &chain) != 0)
        return tccl_fail(err, "too many transfers");
    return add_own(machine, gpus, closed, version, own, err);
}

int main(int argc, char **argv)
{
    struct tccl_error err = {""};
    struct tccl_model *model = NULL;
    static struct tccl_side sides[TCCL_MAX_SIDES], own[TCCL_MAX_SIDES];
    const struct tccl_side *list[TCCL_MAX_SIDES], *own_list[TCCL_MAX_SIDES];
    double gbps[TCCL_MAX_SIDES], own_gbps[TCCL_MAX_SIDES];
    int n = argc - 4;
    if (n < 1 || n > TCCL_MAX_SIDES)
        return 2;
    if (tccl_model_read(argv[1], &model, &err) != 0)
        return fail(&err);
    for (int i = 0; i < n; i++) {
        if (read_group(tccl_model_machine(model), argv[i + 4], strcmp(argv[2], "closed") == 0,
                       atoi(argv[3]), &sides[i], &own[i], &err) != 0)
            return fail(&err);
        list[i] = &sides[i];
        own_list[i] = &own[i];
    }
    if (tccl_model_sides(model, list, n, gbps, &err) != 0 ||
        tccl_model_sides(model, own_list, n, own_gbps, &err) != 0)
        return fail(&err);
    struct tccl_beside beside = {.model = model, .n = n - 1};
    struct tccl_worth worth = {.gbps = gbps[0]};
    uint8_t ends[TCCL_MAX_SIDES] = {0};
    memcpy(beside.others, &list[1], (size_t)beside.n * sizeof(*list));
    memcpy(worth.others, &gbps[1], (size_t)beside.n * sizeof(*gbps));
    if (tccl_beside_ends(&beside, list[0], &worth, ends, &err) != 0)
        return fail(&err);
    for (int i = 0; i < n; i++)
        printf("%.4f %.4f %.4f\n", gbps[i], own_gbps[i],
               gbps[i] * tccl_reach(ends[i], list[i]->ranks));
    tccl_model_free(model);
    return 0;
}
