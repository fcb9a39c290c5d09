/* path-route.h: one or several rings that run at once: the ring sets of all nodes in order, with
 * the hops between them. */
#pragma once

#include "command/path-nodes.h"
#include "search/limit.h"

/* One node of the route. */
struct stop {
    struct node_class *class;
    struct tccl_ring_set set; /* its first chain is ring 1's; closed on a single node */
    double gbps;              /* of all its chains together */
    bool baseline; /* NCCL's own chains: rings go on in the order of the NICs, not of the chains */
};

struct route {
    int n;
    struct stop *stops;
    double *hops; /* hops[i] leads from stop i to the next, all rings; NULL with one stop */
    double gbps;  /* of the slowest stop or hop: of all rings together */
    double reach; /* what an all-reduce reaches of it (ring/reach.h), GB/s */
};

/* A route of n stops without chains yet. Returns 0, or -1 with err. */
int route_init(struct route *route, int n, struct tccl_error *err);
void route_clear(struct route *route);

/* Rates the hops and the whole, when each stop has its chain and bandwidth. */
void route_rate(struct route *route);

/* Sets gbps of a stop that has its class and set: all of its chains at the same time. Returns 0, or
 * -1 with err: that is unknown. */
int stop_measure(struct stop *stop, struct tccl_error *err);

/* Does a NIC of stop i meet one of the stops before and behind it? Always with one stop. */
bool route_meets(const struct route *route, int i, int nic);

/* Measures the sets of all stops, then rates. Returns 0, or -1 with err: a set is unknown. */
int route_measure(struct route *route, struct tccl_error *err);

/* The baseline of the same nodes and GPUs. closed: a ring of a single node. Returns 0; -1
 * with err: it has none there, or it was not measured. */
int route_baseline(const struct route *like, bool closed, struct route *route,
                   struct tccl_error *err);

/* Reads the notation of a ring or a ring set: a piece for each node, named n1 to nN or not at all;
 * or one without brackets, which then is the same for each node. All have as many rings. Returns 0,
 * or -1 with err. */
int route_parse(struct nodes *nodes, const char *text, struct route *route, struct tccl_error *err);

/* The bandwidth of the slowest transfer at a stop, while all chains run. */
double stop_slowest(const struct stop *stop);
/* The chain by which closed rings and NICs are told: the first one. */
const struct tccl_chain *stop_first(const struct stop *stop);

/* The tree beside the stop's chain; NULL: none is known, as beside several rings. */
const struct tccl_tree *stop_tree(const struct stop *stop);

/* How many rings run at once: the most chains of any stop. */
int route_rings(const struct route *route);

/* The chains of a ring (from 0) on all nodes, in chains (route->n entries). At the baseline's stops
 * a ring goes on with a chain whose entry is the NIC by which it left the previous stop, if there
 * is one. */
void route_ring(const struct route *route, int ring, const struct tccl_chain **chains);

/* The text of one ring, or of all of them ("n1[chain | chain]"). Allocated; NULL if out of memory.
 */
char *route_format_ring(const struct route *route, int ring);
char *route_format(const struct route *route);

/* Can a stock NCCL be made to build it? Returns 0, or -1 with the reason in err. */
int route_expressible(const struct route *route, struct tccl_error *err);

/* The texts of all of its rings, null for one without memory; none without nodes. */
json_t *route_to_json(const struct route *route);

/* What limits its chains. Returns 0, or -1 with err. */
int stop_limit(const struct stop *stop, struct tccl_limit *limit, struct tccl_error *err);

/* ---- ring sets of node classes, by their models (path-rings.c) ---- */

/* Are sets of several rings wanted (--rings is not 1), and has the class a model to ask? */
bool rings_wanted(const struct options *options, const struct node_class *class);

/* Finds the best sets of all classes of the route of which rings_wanted, and puts them into their
 * tables, where the best single rings are already. closed: of a single node. *rated grows by the
 * sets that were rated. bounds[i]: no set on the i-th class is faster (GB/s), where one was
 * searched. Returns 0, or -1 with err. */
int rings_find(const struct options *options, const struct nodes *nodes, const struct route *route,
               bool closed, double *bounds, long *rated, struct tccl_error *err);
