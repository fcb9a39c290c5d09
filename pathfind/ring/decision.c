/* decision.c: are planned rings worth taking? */
#include "ring/decision.h"

#include <math.h>
#include <stdio.h>

#include "ring/latency.h"

#define SAME (1 + 1e-9)
#define TOLD 0.99 /* rings that are told to have less of NCCL's own than this are not taken */

/* What they have to gain; see required(). */
#define BY_MEASURING 0.05
#define BY_MODEL 0.19
#define FOR_FILE 0.05
/* Where small messages come first: what sizes up to so many bytes lose counts so often. */
#define SMALL (UINT64_C(128) << 10)
#define SMALL_COUNTS 4

/* How many times as fast as NCCL's own they have to be.
 *  - Measured: 1.05, since NCCL's kernels are not the copies that were measured, or more where
 * these are noisier; and 0.05 more for several rings, which need a graph file, and more channels
 * to be connected (runtime/nccl/README.md).
 *  - By a model, where all capacities are guesses: 1.19. Bandwidths rise and fall as capacities do.
 *    So if each of these is wrong by 10 % at most, ours have 0.9 of what was promised at least,
 *    NCCL's own 1.1 at most, and 1.19 * 0.9 / 1.1 = 0.97. That holds whatever limits them, and
 *    however many limits are near. */
static double required(const struct tccl_decision_case *asked)
{
    double measured = fmax(asked->noise, BY_MEASURING) + (asked->ours.rings > 1 ? FOR_FILE : 0);
    return 1 + (asked->measured ? measured : fmax(measured, BY_MODEL));
}

/* The least share of all that run, these rings' own step included. */
static double least_share(const struct tccl_decision_case *asked,
                          const struct tccl_contender *rings)
{
    return asked->alone > 0 ? fmin(rings->gbps / asked->alone, rings->share) : rings->share;
}

static double told_of(const struct tccl_contender *rings)
{
    return rings->told > 0 ? rings->told : rings->gbps;
}

static struct tccl_pace pace_of(const struct tccl_decision_case *asked,
                                const struct tccl_contender *rings)
{
    return (struct tccl_pace){asked->nodes, asked->gpus, rings->gbps, rings->bounces};
}

/* A planned ring has NCCL's own rates in its table (runtime/nccl/README.md), so the protocol, too.
 */
void tccl_decision_times(const struct tccl_decision_case *asked, int i, double *ours, double *nccl)
{
    struct tccl_pace own = pace_of(asked, &asked->nccl), planned = pace_of(asked, &asked->ours);
    uint64_t bytes = tccl_latency_size(i);
    enum tccl_protocol protocol = tccl_latency_protocol(&own, bytes);
    *ours = tccl_latency_time(&planned, protocol, bytes);
    *nccl = tccl_latency_time(&own, protocol, bytes);
}

static bool loses_time(const struct tccl_decision_case *asked, struct tccl_decision *decision)
{
    bool small_first = asked->small_first || (asked->nodes == 1 && asked->gpus == 2);
    double lost = 0;
    for (int i = 0; i < TCCL_LATENCY_SIZES; i++) {
        uint64_t bytes = tccl_latency_size(i);
        double ours, nccl;
        tccl_decision_times(asked, i, &ours, &nccl);
        decision->win = fmax(decision->win, nccl / ours);
        if (ours / nccl > decision->loss) {
            decision->loss = ours / nccl;
            decision->loss_at = bytes;
        }
        lost = fmax(lost, (ours / nccl - 1) * (small_first && bytes <= SMALL ? SMALL_COUNTS : 1));
    }
    return lost > decision->win - 1 + 1e-9;
}

struct tccl_decision tccl_decide(const struct tccl_decision_case *asked)
{
    const struct tccl_contender *ours = &asked->ours, *nccl = &asked->nccl;
    double noise = (1 + asked->noise) * SAME;
    struct tccl_decision decision = {
        .decided = TCCL_TAKE, .required = required(asked), .win = 1, .loss = 1};
    double share = least_share(asked, ours), own_share = least_share(asked, nccl);
    if (!(ours->gbps > 0))
        decision.decided = TCCL_NO_FASTER;
    else if (!(nccl->gbps > 0) && ours->harms)
        decision.decided = TCCL_HARMS;
    if (!(ours->gbps > 0) || !(nccl->gbps > 0))
        return decision;
    double more = ours->rings > 1 ? decision.required * SAME : noise;
    bool leaves_more = asked->alone > 0 && ours->gbps * SAME >= nccl->gbps &&
                       share > own_share * more && ours->share > nccl->share * more;
    if (!(ours->gbps > nccl->gbps * noise) && !leaves_more)
        decision.decided = TCCL_NO_FASTER;
    else if (ours->harms || (!leaves_more && share * noise < own_share))
        decision.decided = TCCL_HARMS;
    else if (!(ours->gbps > nccl->gbps * decision.required * SAME) && !leaves_more)
        decision.decided = TCCL_LITTLE_GAIN;
    else if (asked->gpus > 1 && loses_time(asked, &decision))
        decision.decided = TCCL_SLOWER_SMALL;
    else if (told_of(ours) < told_of(nccl) * TOLD)
        decision.decided = TCCL_NO_FASTER;
    else if (asked->min_gain > 1 && told_of(ours) * SAME < told_of(nccl) * asked->min_gain)
        decision.decided = TCCL_BELOW_POLICY;
    return decision;
}

bool tccl_decide_several(const struct tccl_decision_case *several,
                         const struct tccl_decision_case *single)
{
    if (single->ours.harms && !several->ours.harms)
        return several->ours.gbps > 0;
    if (!(several->ours.gbps > single->ours.gbps))
        return false;
    return tccl_decide(single).decided != TCCL_TAKE ||
           (several->ours.gbps > single->ours.gbps * (1 + FOR_FILE) &&
            tccl_decide(several).decided == TCCL_TAKE);
}

void tccl_decision_say(const struct tccl_decision_case *asked, const struct tccl_decision *decision,
                       char text[static TCCL_DECISION_TEXT])
{
    const double ours = told_of(&asked->ours), nccl = told_of(&asked->nccl);
    char size[16];
    tccl_latency_format_size(decision->loss_at, size);
    *text = '\0';
    if (decision->decided == TCCL_HARMS && !(nccl > 0))
        snprintf(text, TCCL_DECISION_TEXT,
                 "the best ring found (%.1f GB/s) would slow a step beside it, and by how much "
                 "NCCL's own choice does is not known",
                 ours);
    else if (decision->decided == TCCL_HARMS)
        snprintf(text, TCCL_DECISION_TEXT,
                 "the best ring found (%.1f GB/s, NCCL's own %.1f) would slow a step beside it "
                 "more than NCCL's own choice does",
                 ours, nccl);
    else if (decision->decided == TCCL_LITTLE_GAIN && ours > nccl * decision->required)
        snprintf(text, TCCL_DECISION_TEXT,
                 "NCCL's own choice is kept (%.1f GB/s, the best ring found %.1f: if steps "
                 "beside it never rest that is %.2fx, and a gain below %.2fx is not used)",
                 nccl, ours, asked->ours.gbps / asked->nccl.gbps, decision->required);
    else if (decision->decided == TCCL_LITTLE_GAIN)
        snprintf(text, TCCL_DECISION_TEXT,
                 "NCCL's own choice is kept (%.1f GB/s, the best ring found %.1f%s: a gain below "
                 "%.2fx is not used)",
                 nccl, ours, asked->measured ? "" : ", by a model", decision->required);
    else if (decision->decided == TCCL_SLOWER_SMALL)
        snprintf(text, TCCL_DECISION_TEXT,
                 "NCCL's own choice is kept (%.1f GB/s, the best ring found %.1f: but with it "
                 "all-reduces of %s take %.2fx as long)",
                 nccl, ours, size, decision->loss);
    else if (decision->decided == TCCL_NO_FASTER && nccl > ours * (1 + asked->noise) * SAME)
        snprintf(text, TCCL_DECISION_TEXT,
                 "NCCL's own choice is faster (%.1f GB/s, the best ring found %.1f)", nccl, ours);
    else if (decision->decided == TCCL_NO_FASTER)
        snprintf(text, TCCL_DECISION_TEXT, "NCCL's own ring is as fast (%.1f GB/s)", nccl);
}
