/* segment.h: the merged ring sets of consecutive nodes.
 *
 * R rings run at once over all nodes. On a node ring r comes in from a fabric and goes out to one:
 * its way. A hop leads only between NICs of one fabric, and costs what the line rates of its NICs
 * leave to the rings that share them; each of these is known to the node that has the NIC, so the
 * rate of a way holds both, and between two nodes only the fabrics count: the word, a fabric for
 * each ring. A segment is a matrix word x word -> GB/s:
 *
 *   (A * B)[u][w] = max over v of min(A[u][v], B[v][w])
 *
 * which is associative. Rings have no names of their own, so a node offers each of its ways in all
 * orders of its rings, and the first word may be sorted; but a ring must come back to where it
 * began, so the others keep their order. One ring on one fabric is the recurrence of the TCCL paper
 * (ASPLOS '24), D[n][h][t] = max over x of min(D[n-1][h][x], DB[x][t]). */
#pragma once

#include <stdint.h>

#include "chain/chain-text.h"

/* Several rings on one node: ring k comes in from fabric in[k] and goes out to out[k]. */
struct tccl_way {
    float gbps; /* of all rings together; 0: there is no such way */
    uint32_t in[TCCL_CHAIN_RINGS], out[TCCL_CHAIN_RINGS];
};

/* The ways through a node of one kind. */
struct tccl_ways {
    int n;
    const struct tccl_way *ways;
};

/* Consecutive nodes of one kind. */
struct tccl_ways_run {
    int kind;
    int count;
};

/* Nodes to be merged into one segment and closed: each run names one of the kinds. */
struct tccl_nodes {
    int rings; /* R, 1 to TCCL_CHAIN_RINGS */
    int n_kinds;
    const struct tccl_ways *kinds;
    int n_runs;
    const struct tccl_ways_run *runs;
};

/* One node's choice: an index into the ways of its kind, and which ring of that way each ring is.
 */
struct tccl_node_way {
    int way;
    uint8_t order[TCCL_CHAIN_RINGS];
};

/* The best rings through all nodes in order; from the last node each comes back to the first (with
 * one node, to itself). Long runs are merged by repeated squaring. choices gets one entry a node,
 * or is NULL; they mean nothing if *gbps is 0: no rings can be closed. Returns 0; 1 if there are
 * more words or ways than there is room for (some 4,000 and 2 million), *gbps is 0 then; -1 if out
 * of memory. */
int tccl_nodes_ring(const struct tccl_nodes *nodes, float *gbps, struct tccl_node_way *choices);

/* (max, min) products (maxmin.c). out[i][j] = max over k of min(a[i][k], b[k][j]); rows x inner
 * times inner x columns, row-major, GB/s, none negative. out must not overlap a or b. Uses AVX2
 * where the processor has it. */
void tccl_maxmin(const float *a, const float *b, float *out, int rows, int inner, int columns);

/* to[i] = max(to[i], min(from[i], x)), for a number of columns that is a multiple of 4. */
void tccl_maxmin_row(const float *from, float x, float *to, int columns);
