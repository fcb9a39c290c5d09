/* rounds.h: what all-reduces reach, of which one or several run at once on a node, by a model.
 *
 * A round of n ranks is as ring/reach.h has it: what is sent only, all 2n - 3 times, what is
 * received only.
 *
 * Of several sides nobody keeps step with another one. While a side does one of these three things,
 * each other one does each of them for the part of the time that it takes. What a chunk takes is
 * averaged over that: it is short, so that it meets one of them. (Were it long, rates would be to
 * be averaged: that is up to 5 % more.) These parts are as long as they come out, which is looked
 * for from equal steps on, until no round changes by a ten-thousandth, or 30 times; then they stay
 * as they are. All ways in which several sides meet would be too many: nine are taken,
 * in which each two of four sides do all that two can (an orthogonal array); of more, the fifth one
 * keeps step with the first, and so on. */
#pragma once

#include "machine/sides.h"

/* What an all-reduce of each of n sides reaches while all run, GB/s of all of its rings: as
 * tccl_model_sides, where nothing is lost. A side without ranks is always under way. Returns 0, or
 * -1 with err. */
int tccl_model_rounds(const struct tccl_model *model, const struct tccl_side *const *sides, int n,
                      double *gbps, struct tccl_error *err);
