/* room.h: what rings on a part of a node take that steps on its other GPUs would need: memories
 * next to those only, links of switches that they are below, too, and NICs. */
#pragma once

#include "chain/ring-set.h"
#include "machine/machine.h"

/* What a chain may be slower than the best one, as a part of it, or its shares less, to leave room
 * to others. */
#define TCCL_MOST_FOR_ROOM 0.02

/* How many of a chain's bounces and ports go through memories that are next to none of its GPUs. */
int tccl_chain_far(const struct tccl_machine *machine, const struct tccl_chain *chain);

/* Does a ring set take more than a single chain would: more bounces through such memories in one of
 * its (closed) rings; more rings over a NIC that is next to other GPUs, too, or over the link of a
 * switch that they are below; or more NICs, and more than the part of all NICs that its GPUs are of
 * all GPUs (one at least)? No set of all GPUs does. single may be empty. */
bool tccl_set_takes_room(const struct tccl_machine *machine, const struct tccl_ring_set *set,
                         const struct tccl_chain *single);
