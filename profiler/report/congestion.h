/* congestion.h: transfer sets that stay far below what their parts reach alone. */
#pragma once

#include "machine/machine.h"
#include "profile/measured.h"

struct tccl_congested {
    struct tccl_set set;
    double gbps;   /* of the slowest member while all run, GB/s */
    double alone;  /* what the slowest of the members reaches alone */
    double ratio;  /* gbps / alone */
    bool at_least; /* some member was not measured alone: it reaches at least that */
    bool noisy;
    enum tccl_answer from; /* measured, or asked from the model */
    unsigned marks;        /* of enum tccl_mark */
    bool repeats; /* one before it in the list is alike: members of the same kinds, as slow */
    long alike;   /* how many behind it are like this one */
    long hides;   /* measured sets that hold this one and are about as slow */
};

enum { TCCL_MAX_CONGESTED = 4096 };

/* The sets whose bandwidth is below threshold (0 to 1) times what the slowest member reaches alone,
 * by more than both spreads; worst first. A set is left out if a smaller one in the list is about
 * as slow and part of it: the list holds causes. With a model, sets are reduced to the smallest
 * part that is as slow. At most TCCL_MAX_CONGESTED. *list is the caller's. Returns how many, or -1
 * with err. */
long tccl_congestion_find(const struct tccl_measured *measured, double threshold,
                          struct tccl_congested **list, struct tccl_error *err);

/* A new reference; NULL only without memory. */
json_t *tccl_congestion_to_json(const struct tccl_congested *congested);
