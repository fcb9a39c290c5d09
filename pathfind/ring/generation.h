/* generation.h: generations of NCCL. Its graph search changed a few times; versions between two
 * changes are one generation, which is called by the first of them. What a stock NCCL builds on a
 * machine, the baseline, is known for each generation. */
#ifndef TCCL_GENERATION_H
#define TCCL_GENERATION_H

#include <stdint.h>

enum tccl_nccl {
    TCCL_NCCL_2_18,
    TCCL_NCCL_2_19,
    TCCL_NCCL_2_20,
    TCCL_NCCL_2_21,
    TCCL_NCCL_2_22,
    TCCL_NCCL_2_23,
    TCCL_NCCL_2_25,
    TCCL_NCCL_2_26,
    TCCL_NCCL_2_27,
    TCCL_NCCL_2_28,
    TCCL_NCCL_2_29,
    TCCL_NCCL_2_30,
    TCCL_GENERATIONS,
    TCCL_NEWEST = TCCL_GENERATIONS - 1
};

struct tccl_generation {
    int first;        /* its first version, as ncclGetVersion counts: 22900 */
    const char *name; /* "2.29" */
};
extern const struct tccl_generation tccl_generations[TCCL_GENERATIONS]; /* ascending */

/* The generation of a version, an index: versions before the first belong to that. */
int tccl_generation_of(int version);

/* What NCCL's search says of its rings or trees on a node (struct ncclTopoGraph), before channels
 * are doubled for the communicator. Nominal, not measured. */
struct tccl_nominal {
    uint8_t pattern;    /* NCCL's number: 4 ring; 1 balanced tree, 2 split tree, 3 tree */
    uint8_t channels;   /* 0: unknown */
    float intra, inter; /* GB/s of each channel, within the node and to its NICs */
    uint8_t far_intra;  /* enum tccl_far (nccl/topology.h): longest path between GPUs, */
    uint8_t far_inter;  /* and between GPUs and NICs */
};

/* Takes over what is less in another one: channels and rates, each by itself, and the longer paths.
 * The pattern stays. */
void tccl_nominal_least(struct tccl_nominal *all, const struct tccl_nominal *other);

/* "4 2 12 12 PHB SYS": pattern, channels, speedintra, speedinter, typeintra, typeinter, the last
 * two in NCCL's words; of nothing known "0 0 0 0 LOC LOC". */
enum { TCCL_NOMINAL_TEXT = 64 };
void tccl_nominal_format(const struct tccl_nominal *nominal, char text[static TCCL_NOMINAL_TEXT]);

#endif
