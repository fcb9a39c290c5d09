/* segment.h: the merged chains of consecutive nodes, as a (max, min) matrix entry x exit -> GB/s.
 *
 *   (A * L * B)[a][b] = max over (x, y) of min(A[a][x], L[x][y], B[y][b])
 *
 * With one NIC per node this is the recurrence of the TCCL paper (ASPLOS '24),
 * D[n][h][t] = max over x of min(D[n-1][h][x], DB[x][t]). The product is associative. Because a hop
 * depends only on the pair of NICs, a node's matrix over ports is first reduced to one over NICs.
 */
#ifndef TCCL_SEGMENT_H
#define TCCL_SEGMENT_H

/* out[i][j] = max over k of min(a[i][k], b[k][j]); rows x inner times inner x columns, row-major,
 * GB/s, none negative. out must not overlap a or b. Uses AVX2 where the processor has it. */
void tccl_maxmin(const float *a, const float *b, float *out, int rows, int inner, int columns);

/* out = a * hop * b, where a is rows x exits, hop exits x entries, b entries x columns; scratch
 * holds rows * entries floats. */
void tccl_segment_merge(const float *a, const float *hop, const float *b, float *out,
                        float *scratch, int rows, int exits, int entries, int columns);

/* A list of nodes to be merged into one segment and closed. Node i has ports[i] entry ports and the
 * same exit ports; gbps[i] is its matrix, ports[i] x ports[i]; nic[i][p] is the NIC of port p,
 * below nics[i]. hop[i] is the matrix nics[i] x nics[(i + 1) % count] from node i's exit NIC to the
 * next node's entry NIC. Equal nodes share their pointers. If hops differ from port to
 * port, give each port its own NIC. */
struct tccl_nodes {
    int count;
    const int *ports;
    const int *nics;
    const float *const *gbps;
    const unsigned char *const *nic;
    const float *const *hop;
};

/* One node's choice: its entry and exit port. */
struct tccl_node_ports {
    int entry, exit;
};

/* The best ring through all nodes in order, closed by hop[count - 1] (with one node the hop joins
 * it to itself). Runs of equal neighbours (the same pointers) are merged by repeated squaring.
 * choices gets count entries, or is NULL. Returns 0 with *gbps (0: no ring exists, choices then
 * mean nothing), or -1 if out of memory. */
int tccl_nodes_ring(const struct tccl_nodes *nodes, float *gbps, struct tccl_node_ports *choices);

#endif
