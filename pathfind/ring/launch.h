/* launch.h: what a step with some GPUs of one node gets at its launch, of their chain table:
 * several rings, a single one, or NCCL's own where that is as good. */
#ifndef TCCL_LAUNCH_H
#define TCCL_LAUNCH_H

#include "ring/neighbours.h"

struct tccl_launch {
    double gbps;           /* beside those that run, GB/s; 0: nothing is known that it could run */
    double nccl;           /* of the newest NCCL's own rings there, GB/s; 0: not known */
    bool ours;             /* it is given rings; else it has NCCL's own */
    enum tccl_basis basis; /* by what its rings are known beside those that run */
    struct tccl_side side; /* what it runs, and has alone; without transfers: not known */
};

/* Chooses as tccld does for a step that is alone on its node but for those that run, with the
 * newest NCCL. most: rings at once, at most. beside->own and selfish are set here. Returns 0, or -1
 * with err. */
int tccl_launch_choose(struct tccl_beside *beside, const struct tccl_table *table, int most,
                       struct tccl_launch *launch, struct tccl_error *err);

#endif
