/* path-tuning.h: for which sizes of an all-reduce NCCL uses the ring. */
#ifndef TCCL_PATH_TUNING_H
#define TCCL_PATH_TUNING_H

#include "command/path-route.h"

/* A list with an object for each generation of NCCL: "nccl" (its first version) and "picks", a list
 * of
 * {"from" (bytes), "algorithm", "protocol"}, ascending from 1 KiB. NULL: out of memory, or NCCL's
 * own search is not possible here. closed: a ring of a single node. */
json_t *tuning_to_json(const struct route *route, bool closed);

/* A line for each that differs from the one before, with a heading; nothing where that is not
 * possible. */
void tuning_print(const struct route *route, bool closed, FILE *out);

#endif
