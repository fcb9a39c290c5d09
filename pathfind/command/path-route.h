/* path-route.h: chains of all nodes in order, with the hops between them: a ring, whoever chose it.
 */
#ifndef TCCL_PATH_ROUTE_H
#define TCCL_PATH_ROUTE_H

#include "command/path-nodes.h"

/* One node of the route. */
struct stop {
    struct node_kind *kind;
    struct tccl_chain chain; /* closed, if it is a ring of a single node */
    double gbps;             /* of the chain's own set */
    /* The baseline: all of these run at once, and gbps is theirs together; chain is the first.
     * NULL: the chain runs alone. Belongs to the kind. */
    const struct tccl_baseline *baseline;
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

/* The baseline of the same nodes and GPUs. closed: a ring of a single node. Returns 0; -1
 * with err: it has none there, or it was not measured. */
int route_baseline(const struct route *like, bool closed, struct route *route,
                   struct tccl_error *err);

/* Reads the notation of a ring: a piece for each node, named n1 to nN or not at all; or one without
 * brackets, which then is the same for each node. Returns 0, or -1 with err. */
int route_parse(struct nodes *nodes, const char *text, struct route *route, struct tccl_error *err);

/* How many chains run at once at a stop, which of them is the i-th (from 0), all of their
 * transfers, and the bandwidth of the slowest of these. */
int stop_chains(const struct stop *stop);
const struct tccl_chain *stop_chain(const struct stop *stop, int i);
void stop_set(const struct stop *stop, struct tccl_set *set);
double stop_slowest(const struct stop *stop);

/* How many rings run at once: the most chains of any stop. */
int route_rings(const struct route *route);

/* The notation of the i-th ring (from 0). From each stop it goes on with a chain that enters by the
 * NIC by which it left the one before, if there is one. Allocated; NULL without memory. */
char *route_format(const struct route *route, int i);

/* Would a stock NCCL build it? Returns 0, or -1 with err saying why not. */
int route_expressible(const struct route *route, struct tccl_error *err);

#endif
