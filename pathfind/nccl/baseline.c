/* baseline.c: how fast NCCL's own choice is: all of its chains run at the same time. */
#include "nccl/baseline.h"

int tccl_baseline_set(const struct tccl_choice *choice, struct tccl_set *set,
                      struct tccl_error *err)
{
    struct tccl_set one;

    set->count = 0;
    for (int i = 0; i < choice->n_chains; i++) {
        tccl_chain_set(&choice->chains[i], &one);
        for (int k = 0; k < one.count; k++)
            if (tccl_set_add(set, one.transfers[k]) < 0)
                return tccl_fail(err,
                                 "NCCL's own %d rings make more than %d transfers at once: their "
                                 "bandwidth is not known",
                                 choice->n_chains, TCCL_MAX_SET);
    }
    return 0;
}

double tccl_baseline_gbps(const struct tccl_choice *choice, double gbps)
{
    return choice->n_chains * gbps;
}
