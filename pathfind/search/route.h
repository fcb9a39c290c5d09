/* route.h: finds a chain through given GPUs that nothing known forbids to be better than a
 * threshold. */
#pragma once

#include "chain/chain.h"
#include "search/bounds.h"

/* Memories that known bounds allow only one bounce of a chain. Counting them ends searches that
 * trying one way after the other would not (more bounces than memories: the pigeonhole).
 * Zero-initialise for a GPU set; what is found out is kept. */
struct tccl_pigeonholes {
    struct {
        double exclusive_above; /* from this threshold on, if proven */
        bool proven, seen;
        uint8_t ends[4]; /* from, to of two bounces that went together when last seen */
    } memories[TCCL_MAX_MEMORIES];
};

struct tccl_route {
    const struct tccl_machine *machine;
    struct tccl_bounds *bounds;
    struct tccl_pigeonholes *pigeonholes; /* of this GPU set */
    uint32_t gpus;                        /* mask; closed needs two or more */
    bool closed;                          /* a ring; the ports mean nothing */
    struct tccl_port entry, exit;         /* of an open chain */
    bool any;                             /* also chains that a stock NCCL can't be made to build */
    bool reads;                           /* P2P edges read, else they write */
    uint32_t shun;                        /* memories that no bounce may use, as a mask */
    double above;                         /* the chain's bound must be above this, GB/s */
    const struct tccl_chain *like; /* steps that this chain takes are tried first; may be NULL */
    long steps;                    /* transfers to try at most before giving up */
    long *spent;                   /* grows by the transfers tried; may be NULL */
    long *pruned;                  /* grows by the beginnings of chains cut off; may be NULL */
    /* Called now and then; non-zero: give up. NULL: never. */
    int (*poll)(void *context);
    void *poll_context;
    /* Called for each chain that find meets; NULL: the first one is wanted. It may raise *above.
     * Zero goes on to the next chain, anything else ends with this chain as found. */
    int (*visit)(void *context, const struct tccl_chain *chain, double *above);
    void *context;
};

/* Depth first, the most promising step first; steps that leave GPUs unreachable are seen in
 * advance. Nothing is measured. Returns 1 with the chain; 0: proven that there is none; -1: gave
 * up. */
int tccl_route_find(const struct tccl_route *route, struct tccl_chain *chain);

/* Pairs of flows through one memory that nothing known forbids: two bounces, or a bounce beside a
 * port's own. If they turn out to be too slow, the memory can be counted as taken, and searches
 * that gave up may end. walks has room for TCCL_MAX_SUSPECTS. Returns how many. */
enum { TCCL_MAX_SUSPECTS = TCCL_MAX_MEMORIES + 3 };
int tccl_route_suspects(const struct tccl_route *route, struct tccl_set *walks);

/* How many chains a stock NCCL could be made to build there are at most, counted up to limit. */
long tccl_route_count(const struct tccl_route *route, long limit);
