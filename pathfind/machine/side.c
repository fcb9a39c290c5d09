/* side.c: what several steps reach that run at the same time on one node, by a model. */
#include "machine/side.h"

#include <math.h>
#include <string.h>

int tccl_side_add(struct tccl_side *side, const struct tccl_set *ring)
{
    if (side->count + ring->count > TCCL_MAX_SIDE)
        return -1;
    memcpy(side->transfers + side->count, ring->transfers,
           ring->count * sizeof(ring->transfers[0]));
    side->count += ring->count;
    side->rings++;
    return 0;
}

int tccl_model_sides(const struct tccl_model *model, const struct tccl_side *const *sides, int n,
                     double *gbps, struct tccl_error *err)
{
    tccl_transfer members[TCCL_MAX_RUNNING] = {0};
    double rates[TCCL_MAX_RUNNING];
    int count = 0;

    if (n == 1) {
        if (tccl_model_slowest(model, sides[0]->transfers, sides[0]->count, &gbps[0], err) != 0)
            return -1;
        gbps[0] *= sides[0]->rings;
        return 0;
    }
    for (int i = 0; i < n; i++) {
        if (count + sides[i]->count > TCCL_MAX_RUNNING)
            return tccl_fail(err, "more than %d transfers at once", TCCL_MAX_RUNNING);
        memcpy(members + count, sides[i]->transfers, sides[i]->count * sizeof(*members));
        count += sides[i]->count;
    }
    if (tccl_model_rates(model, members, count, rates, NULL, err) != 0)
        return -1;
    count = 0;
    for (int i = 0; i < n; i++) {
        gbps[i] = INFINITY;
        for (int k = 0; k < sides[i]->count; k++)
            gbps[i] = fmin(gbps[i], rates[count++]);
        gbps[i] *= sides[i]->rings;
    }
    return 0;
}
