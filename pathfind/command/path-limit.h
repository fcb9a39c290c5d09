/* path-limit.h: what limits the chains of a node. */
#ifndef TCCL_PATH_LIMIT_H
#define TCCL_PATH_LIMIT_H

#include "command/path-route.h"

/* What limits the transfers of a stop: one that several rings make is there as often. */
struct limit {
    struct tccl_side side, part; /* part: the smallest one known to be as slow */
    bool detailed;               /* rates and limits are known (from a model) */
    double rates[TCCL_MAX_SIDE];
    const char *limits[TCCL_MAX_SIDE];
};

/* Returns 0, or -1 with err. */
int limit_find(const struct stop *stop, struct limit *limit, struct tccl_error *err);

/* The transfers of a side, each once; at most TCCL_MAX_SET. */
void limit_set(const struct tccl_side *side, struct tccl_set *set);

#endif
