/* beside-text.h: the text of the steps that run beside one on its node, as records have it
 * ("beside"):
 *
 *   11.45/11.45 ring: 1 -m1> 2 -m1> 1; 5.20/10.40 nccl: 0 -m0> 3 -m1> 0 | 3 -m1> 0 -m0> 3
 *
 * Those of another node than the step's first one have its index before them: "@1 5.20/10.40 nccl:
 * ...". Of each the bandwidth while all run and alone, whether a ring of ours or what NCCL builds
 * by itself, and its chains (chain-text.h) by GPU numbers. Nobody's name or job stands there: the
 * record's reader need not be allowed to see theirs. */
#pragma once

#include <stddef.h>

#include "chain/chain-text.h"

enum { TCCL_MAX_BESIDE = 60, TCCL_BESIDE_TEXT = 4095 /* bytes of all */ };

struct tccl_neighbour {
    int node;           /* of the step: its index; 0: the first */
    double gbps, alone; /* beside the others, and alone, GB/s */
    bool nccl;          /* chains of NCCL's own, not a ring of ours */
    struct tccl_named_rings rings;
};

/* The text of as many of n as fit into TCCL_BESIDE_TEXT bytes, from the first one on: the caller
 * frees. NULL if out of memory. */
char *tccl_beside_format(const struct tccl_neighbour *list, int n);

/* Reads it. Returns how many, 0 for an empty text, or -1 with err: not such a text, more than
 * TCCL_MAX_BESIDE, or a bandwidth that is not from 0 to 1e9. */
int tccl_beside_parse(const char *text, struct tccl_neighbour list[static TCCL_MAX_BESIDE],
                      struct tccl_error *err);
