/* nominal.h: what NCCL's search says of a graph. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What NCCL's search says of its rings or trees on a node (struct ncclTopoGraph), before channels
 * are doubled for the communicator. Nominal, not measured. */
struct tccl_nominal {
    uint8_t pattern;    /* NCCL's number: 4 ring; 1 balanced tree, 2 split tree, 3 tree */
    uint8_t channels;   /* 0: unknown */
    float intra, inter; /* GB/s of each channel, within the node and to its NICs */
    uint8_t far_intra;  /* enum tccl_far (nccl/topo.h): longest path between GPUs, */
    uint8_t far_inter;  /* and between GPUs and NICs */
    bool alike;         /* all channels are the same (sameChannels); not kept in tables */
};

/* Takes over what is less in another one: channels and rates, each by itself, and the longer paths.
 * The pattern stays. */
void tccl_nominal_least(struct tccl_nominal *all, const struct tccl_nominal *other);

/* "4 2 12 12 PHB SYS": pattern, channels, speedintra, speedinter, typeintra, typeinter, the last
 * two in NCCL's words; of nothing known "0 0 0 0 LOC LOC". */
enum { TCCL_NOMINAL_TEXT = 64 };
void tccl_nominal_format(const struct tccl_nominal *nominal, char text[static TCCL_NOMINAL_TEXT]);
