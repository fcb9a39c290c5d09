/* decision.c: are planned rings worth taking? */
#include "ring/decision.h"

#include <math.h>

#define SAME (1 + 1e-9)
#define MOST_FOR_ONE 0.05 /* what a single ring may lose: a graph file costs more */

double tccl_decision_required(const struct tccl_decision_case *asked)
{
    return 1 + asked->noise;
}

/* The least share of all that run, these rings' own step included. */
static double least_share(const struct tccl_decision_case *asked,
                          const struct tccl_contender *rings)
{
    return asked->alone > 0 ? fmin(rings->gbps / asked->alone, rings->share) : rings->share;
}

struct tccl_decision tccl_decide(const struct tccl_decision_case *asked)
{
    const struct tccl_contender *ours = &asked->ours, *nccl = &asked->nccl;
    double noise = (1 + asked->noise) * SAME;
    struct tccl_decision decision = {TCCL_TAKE, tccl_decision_required(asked)};
    double share = least_share(asked, ours), own_share = least_share(asked, nccl);
    if (!(ours->gbps > 0))
        decision.decided = TCCL_NO_FASTER;
    if (!(ours->gbps > 0) || !(nccl->gbps > 0))
        return decision;
    bool leaves_more =
        asked->alone > 0 && ours->gbps * SAME >= nccl->gbps && share > own_share * noise;
    if (!(ours->gbps > nccl->gbps * noise) && !leaves_more)
        decision.decided = TCCL_NO_FASTER;
    else if (!leaves_more && share * noise < own_share)
        decision.decided = TCCL_HARMS;
    else if (!(ours->gbps > nccl->gbps * decision.required * SAME) && !leaves_more)
        decision.decided = TCCL_LITTLE_GAIN;
    else if (asked->min_gain > 1 && ours->gbps * SAME < nccl->gbps * asked->min_gain)
        decision.decided = TCCL_BELOW_POLICY;
    return decision;
}

bool tccl_decide_several(const struct tccl_decision_case *several,
                         const struct tccl_decision_case *single)
{
    if (!(several->ours.gbps > single->ours.gbps))
        return false;
    bool takes_single = tccl_decide(single).decided == TCCL_TAKE;
    return several->ours.gbps > single->ours.gbps * (1 + MOST_FOR_ONE)
               ? !takes_single || tccl_decide(several).decided == TCCL_TAKE
               : !takes_single;
}
