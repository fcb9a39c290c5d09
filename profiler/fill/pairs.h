/* pairs.h: what two GPUs of different jobs do to each other: two transfers at once, one of each. */
#pragma once

#include "fill/run-meter.h"
#include "search/symmetry.h"

struct tccl_pairs {
    struct tccl_run_meter *meter;
    const struct tccl_symmetry *symmetry; /* NULL: none */
    bool (*stop)(void *context);          /* called before each measurement */
    void *context;
};

/* Measures each transfer alone that chains have between GPUs, and then pairs of them that have no
 * GPU in common: of those that are alike one, and a second one, of other GPUs, if it collapses
 * (search/oddity.h), each of them twice; all if that one does not. Pairs below one switch come
 * first; no more than TCCL_MAX_PAIRS that do not collapse. What is known is not measured again.
 * Returns 0, also if stop ended it; -1 with err, as tccl_run_meter_measure, or without memory. */
enum { TCCL_MAX_PAIRS = 500 };
int tccl_pairs_measure(const struct tccl_pairs *pairs, struct tccl_error *err);
