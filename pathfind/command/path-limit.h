/* path-limit.h: what limits the chains of a node. */
#ifndef TCCL_PATH_LIMIT_H
#define TCCL_PATH_LIMIT_H

#include "command/path-route.h"

/* What limits the transfer set of a chain. */
struct limit {
    struct tccl_set set, part; /* part: the smallest one known to be as slow */
    bool detailed;             /* rates and limits are known (from a model) */
    double rates[TCCL_MAX_SET];
    const char *limits[TCCL_MAX_SET];
};

/* Returns 0, or -1 with err. */
int limit_find(const struct stop *stop, struct limit *limit, struct tccl_error *err);

#endif
