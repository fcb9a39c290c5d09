/* path-rings.h: ring sets of node classes, by their models. */
#ifndef TCCL_PATH_RINGS_H
#define TCCL_PATH_RINGS_H

#include "command/path-route.h"

/* Are sets of several rings wanted (--rings is not 1), and has the class a model to ask? */
bool rings_wanted(const struct options *options, const struct node_class *class);

/* Finds the best sets of all classes of the route of which rings_wanted, and puts them into their
 * tables, where the best single rings are already. closed: of a single node. *rated grows by the
 * sets that were rated. bounds[i]: no set on the i-th class is faster (GB/s), where one was
 * searched. Returns 0, or -1 with err. */
int rings_find(const struct options *options, const struct nodes *nodes, const struct route *route,
               bool closed, double *bounds, long *rated, struct tccl_error *err);

#endif
