/* path-route.h: a ring: the chains of all nodes in order, with the hops between them. */
#ifndef TCCL_PATH_ROUTE_H
#define TCCL_PATH_ROUTE_H

#include "command/path-nodes.h"

/* One node of the route. */
struct stop {
    struct node_class *class;
    struct tccl_chain chain; /* closed, if it is a ring of a single node */
    double gbps;             /* of the chain's own set */
    /* The baseline: all its chains run at the same time, gbps is the aggregate, chain is the first.
     * NULL: a single chain. Owned by the class. */
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

/* Measures the sets of all stops, then rates. Returns 0, or -1 with err: a set is unknown. */
int route_measure(struct route *route, struct tccl_error *err);

/* The baseline of the same nodes and GPUs. closed: a ring of a single node. Returns 0; -1
 * with err: it has none there, or it was not measured. */
int route_baseline(const struct route *like, bool closed, struct route *route,
                   struct tccl_error *err);

/* Reads the notation of a ring: a piece for each node, named n1 to nN or not at all; or one without
 * brackets, which then is the same for each node. Returns 0, or -1 with err. */
int route_parse(struct nodes *nodes, const char *text, struct route *route, struct tccl_error *err);

/* Of the chains that run at the same time at a stop: their number, the i-th (from 0), all of their
 * transfers, and the bandwidth of the slowest transfer. */
int stop_chains(const struct stop *stop);
const struct tccl_chain *stop_chain(const struct stop *stop, int i);
void stop_set(const struct stop *stop, struct tccl_set *set);
double stop_slowest(const struct stop *stop);

/* The tree beside the stop's chain; NULL: none is known. */
const struct tccl_tree *stop_tree(const struct stop *stop);

/* How many rings run at once: the most chains of any stop. */
int route_rings(const struct route *route);

/* The text of the i-th ring (from 0). At each stop the ring continues with a chain whose entry is
 * the NIC by which it left the previous stop, if there is one. Allocated; NULL if out of memory. */
char *route_format(const struct route *route, int i);

/* Can a stock NCCL be made to build it? Returns 0, or -1 with the reason in err. */
int route_expressible(const struct route *route, struct tccl_error *err);

/* The texts of all of its rings, null for one without memory; none without nodes. */
json_t *route_to_json(const struct route *route);

#endif
