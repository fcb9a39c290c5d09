/* path-route.h: chains of all nodes in order, with the hops between them: a ring, whoever chose it.
 */
#ifndef TCCL_PATH_ROUTE_H
#define TCCL_PATH_ROUTE_H

#include "path-nodes.h"

/* One node of the route. */
struct stop {
    struct node_kind *kind;
    struct tccl_chain chain; /* closed, if it is a ring of a single node */
    double gbps;             /* of the chain's own set */
};

struct route {
    int n;
    struct stop *stops;
    double *hops; /* hops[i] leads from stop i to the next; NULL with one stop */
    double gbps;  /* of the slowest stop or hop */
};

/* A route of n stops without chains yet. Returns 0, or -1 with err. */
int route_init(struct route *route, int n, struct tccl_error *err);
void route_clear(struct route *route);

/* Rates the hops and the whole, when each stop has its chain and bandwidth. */
void route_rate(struct route *route);

/* Measures the sets of all stops, then rates. Returns 0, or -1 with err: a set is not known. */
int route_measure(struct route *route, struct tccl_error *err);

/* NCCL's own choice for the same nodes and GPUs. closed: a ring of a single node. Returns 0; -1
 * with err: it has none there, or it was not measured. */
int route_default(const struct route *like, bool closed, struct route *route,
                  struct tccl_error *err);

/* Reads the notation of a ring: a piece for each node, named n1 to nN or not at all; or one without
 * brackets, which then is the same for each node. Returns 0, or -1 with err. */
int route_parse(struct nodes *nodes, const char *text, struct route *route, struct tccl_error *err);

/* The notation. Allocated; NULL without memory. */
char *route_format(const struct route *route);

/* Would a stock NCCL build it? Returns 0, or -1 with err saying why not. */
int route_expressible(const struct route *route, struct tccl_error *err);

#endif
