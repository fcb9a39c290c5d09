/* pigeonhole.h: memories that known bounds allow only one bounce of a chain. Counting them ends
 * searches that trying one way after the other would not (more bounces than memories: the
 * pigeonhole). */
#ifndef TCCL_PIGEONHOLE_H
#define TCCL_PIGEONHOLE_H

#include "chain/chain.h"
#include "search/bounds.h"

/* Zero-initialise for a GPU set; what is found out is kept. */
struct tccl_pigeonholes {
    struct {
        double exclusive_above; /* from this threshold on, if proven */
        bool proven, seen;
        uint8_t from[2], to[2]; /* two bounces that went together when last seen */
    } memories[TCCL_MAX_MEMORIES];
};

/* Is there no pair of bounces through the memory, between different GPUs of the mask, whose bound
 * is above the threshold (GB/s)? The bounds' stack must be empty. */
bool tccl_pigeonholes_exclusive(struct tccl_pigeonholes *pigeonholes, struct tccl_bounds *bounds,
                                uint32_t gpus, int memory, double above);

#endif
