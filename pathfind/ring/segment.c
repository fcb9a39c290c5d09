/* segment.c: (max, min) products, and the ring over a list of nodes. */
#include "ring/segment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/cleanup.h"

static inline float smaller(float a, float b)
{
    return a < b ? a : b;
}

static inline float larger(float a, float b)
{
    return a > b ? a : b;
}

/* out[i][j] for columns from first on: the columns left over by the vector kernels, and all columns
 * on other processors. */
static void maxmin_plain(const float *a, const float *b, float *out, int rows, int inner,
                         int columns, int first)
{
    for (int i = 0; i < rows; i++) {
        float *result = out + (size_t)i * columns;
        for (int j = first; j < columns; j++)
            result[j] = 0;
        for (int k = 0; k < inner; k++) {
            const float *row = b + (size_t)k * columns, x = a[(size_t)i * inner + k];
            for (int j = first; j < columns; j++)
                result[j] = larger(result[j], smaller(x, row[j]));
        }
    }
}

#ifdef __x86_64__
/* One row of out, as many times VECTORS vectors as fit: they stay in registers over the inner loop.
 */
#define UNROLLED(VECTORS) _Pragma("GCC unroll 8") for (int v = 0; v < (VECTORS); v++)
#define MAXMIN_TILES(VECTORS, VECTOR, LANES, LOAD, STORE, SPREAD, ZERO, MIN, MAX)                  \
    for (; j + (VECTORS) * (LANES) <= columns; j += (VECTORS) * (LANES)) {                         \
        VECTOR best[VECTORS];                                                                      \
        UNROLLED(VECTORS) best[v] = ZERO();                                                        \
        for (int k = 0; k < inner; k++) {                                                          \
            const float *row = b + (size_t)k * columns + j;                                        \
            VECTOR x = SPREAD(left[k]);                                                            \
            UNROLLED(VECTORS) best[v] = MAX(best[v], MIN(x, LOAD(row + v * (LANES))));             \
        }                                                                                          \
        UNROLLED(VECTORS) STORE(result + j + v * (LANES), best[v]);                                \
    }

/* From column first on. Returns the columns done. */
#define MAXMIN_ROWS(...)                                                                           \
    int j = first;                                                                                 \
    for (int i = 0; i < rows; i++) {                                                               \
        const float *left = a + (size_t)i * inner;                                                 \
        float *result = out + (size_t)i * columns;                                                 \
        j = first;                                                                                 \
        MAXMIN_TILES(8, __VA_ARGS__)                                                               \
        MAXMIN_TILES(1, __VA_ARGS__)                                                               \
    }                                                                                              \
    return j;

static int maxmin_sse2(const float *a, const float *b, float *out, int rows, int inner, int columns,
                       int first)
{
    MAXMIN_ROWS(__m128, 4, _mm_loadu_ps, _mm_storeu_ps, _mm_set1_ps, _mm_setzero_ps, _mm_min_ps,
                _mm_max_ps)
}

#ifndef TCCL_NO_AVX2 /* the benchmarks compare both */
/* Non-negative floats have the order of their bits as integers, and processors compare integers on
 * more execution units. */
#define LOAD_BITS(from) _mm256_loadu_si256((const __m256i *)(from))
#define STORE_BITS(to, bits) _mm256_storeu_si256((__m256i *)(to), bits)
#define SPREAD_BITS(x) _mm256_castps_si256(_mm256_set1_ps(x))

__attribute__((target("avx2"))) static int maxmin_avx2(const float *a, const float *b, float *out,
                                                       int rows, int inner, int columns)
{
    enum { first = 0 };
    MAXMIN_ROWS(__m256i, 8, LOAD_BITS, STORE_BITS, SPREAD_BITS, _mm256_setzero_si256,
                _mm256_min_epi32, _mm256_max_epi32)
}
#endif
#endif

void tccl_maxmin(const float *a, const float *b, float *out, int rows, int inner, int columns)
{
    int done = 0;
#if defined(__x86_64__) && !defined(TCCL_NO_AVX2)
    if (columns >= 8 && __builtin_cpu_supports("avx2"))
        done = maxmin_avx2(a, b, out, rows, inner, columns);
#endif
#ifdef __x86_64__
    done = maxmin_sse2(a, b, out, rows, inner, columns, done);
#endif
    if (done < columns)
        maxmin_plain(a, b, out, rows, inner, columns, done);
}

void tccl_segment_merge(const float *a, const float *hop, const float *b, float *out,
                        float *scratch, int rows, int exits, int entries, int columns)
{
    tccl_maxmin(a, hop, scratch, rows, exits, entries);
    tccl_maxmin(scratch, b, out, rows, entries, columns);
}

/* The list of nodes reduced to NICs, with room for the products. */
struct merge {
    const struct tccl_nodes *nodes;
    float *cells;       /* all reduced matrices, one after the other */
    const float **cell; /* cell[i]: nics[i] x nics[i]; shared by equal nodes */
    float *whole;       /* nics[0] x nics[last]: the segment over all nodes */
    float *step;        /* hop * cell, and its powers */
    float *spare;       /* result of a product before it replaces its factor */
    int max_nics;
};

static void merge_clear(struct merge *merge)
{
    free(merge->cells);
    free(merge->cell);
    free(merge->whole);
    free(merge->step);
    free(merge->spare);
}

static bool same_node(const struct tccl_nodes *nodes, int i, int j)
{
    return nodes->gbps[i] == nodes->gbps[j] && nodes->nic[i] == nodes->nic[j] &&
           nodes->ports[i] == nodes->ports[j] && nodes->nics[i] == nodes->nics[j];
}

/* Does each port have its own NIC? Then the matrix over ports is that over NICs. */
static bool own_nics(const struct tccl_nodes *nodes, int i)
{
    if (nodes->nics[i] != nodes->ports[i])
        return false;
    for (int p = 0; p < nodes->ports[i]; p++)
        if (nodes->nic[i][p] != p)
            return false;
    return true;
}

/* Best port pair for each pair of NICs. */
static void reduce(const struct tccl_nodes *nodes, int i, float *cell)
{
    int ports = nodes->ports[i], nics = nodes->nics[i];
    const unsigned char *nic = nodes->nic[i];
    memset(cell, 0, sizeof(float) * nics * nics);
    for (int entry = 0; entry < ports; entry++) {
        const float *row = nodes->gbps[i] + (size_t)entry * ports;
        float *best = cell + (size_t)nic[entry] * nics;
        for (int exit = 0; exit < ports; exit++)
            best[nic[exit]] = larger(best[nic[exit]], row[exit]);
    }
}

static int reduce_all(struct merge *merge)
{
    const struct tccl_nodes *nodes = merge->nodes;
    size_t total = 0;
    for (int i = 0; i < nodes->count; i++) {
        if (nodes->nics[i] > merge->max_nics)
            merge->max_nics = nodes->nics[i];
        if ((i == 0 || !same_node(nodes, i, i - 1)) && !own_nics(nodes, i))
            total += (size_t)nodes->nics[i] * nodes->nics[i];
    }
    size_t square = (size_t)merge->max_nics * merge->max_nics;
    merge->cells = malloc((total + 1) * sizeof(float));
    merge->cell = calloc(nodes->count, sizeof(*merge->cell));
    merge->whole = malloc((square + 1) * sizeof(float));
    merge->step = malloc((square + 1) * sizeof(float));
    merge->spare = malloc((square + 1) * sizeof(float));
    if (!merge->cells || !merge->cell || !merge->whole || !merge->step || !merge->spare)
        return -1;
    float *next = merge->cells;
    for (int i = 0; i < nodes->count; i++) {
        if (i > 0 && same_node(nodes, i, i - 1)) {
            merge->cell[i] = merge->cell[i - 1];
            continue;
        }
        if (own_nics(nodes, i)) {
            merge->cell[i] = nodes->gbps[i];
            continue;
        }
        merge->cell[i] = next;
        reduce(nodes, i, next);
        next += (size_t)nodes->nics[i] * nodes->nics[i];
    }
    return 0;
}

static void swap(float **a, float **b)
{
    float *kept = *a;
    *a = *b;
    *b = kept;
}

/* The number of equal nodes from i on that are reached by equal hops. */
static int run_length(const struct merge *merge, int i)
{
    const struct tccl_nodes *nodes = merge->nodes;
    int length = 1;
    while (i + length < nodes->count && merge->cell[i + length] == merge->cell[i] &&
           nodes->hop[i + length - 1] == nodes->hop[i - 1] && nodes->nics[i - 1] == nodes->nics[i])
        length++;
    return length;
}

/* whole = whole * (hop * cell) ^ length, node by node or by repeated squaring. */
static void append_run(struct merge *merge, int i, int length)
{
    const struct tccl_nodes *nodes = merge->nodes;
    int rows = nodes->nics[0], before = nodes->nics[i - 1], after = nodes->nics[i];
    if (length == 1 && rows < before) {
        tccl_segment_merge(merge->whole, nodes->hop[i - 1], merge->cell[i], merge->step,
                           merge->spare, rows, before, after, after);
        swap(&merge->whole, &merge->step);
        return;
    }
    tccl_maxmin(nodes->hop[i - 1], merge->cell[i], merge->step, before, after, after);
    for (int left = length; left > 0; left >>= 1) {
        if (left & 1) {
            tccl_maxmin(merge->whole, merge->step, merge->spare, rows, before, after);
            swap(&merge->whole, &merge->spare);
            before = after;
        }
        if (left > 1) {
            tccl_maxmin(merge->step, merge->step, merge->spare, after, after, after);
            swap(&merge->step, &merge->spare);
        }
    }
}

static void merge_all(struct merge *merge)
{
    int first = merge->nodes->nics[0];
    memcpy(merge->whole, merge->cell[0], sizeof(float) * first * first);
    for (int i = 1; i < merge->nodes->count;) {
        int length = run_length(merge, i);
        append_run(merge, i, length);
        i += length;
    }
}

/* The best way to close the segment by the last hop. */
static float close_ring(const struct merge *merge, int *entry, int *exit)
{
    const struct tccl_nodes *nodes = merge->nodes;
    int rows = nodes->nics[0], columns = nodes->nics[nodes->count - 1];
    const float *hop = nodes->hop[nodes->count - 1];
    float best = 0;
    for (int a = 0; a < rows; a++) {
        for (int b = 0; b < columns; b++) {
            float gbps = smaller(merge->whole[(size_t)a * columns + b], hop[(size_t)b * rows + a]);
            if (gbps > best) {
                best = gbps;
                *entry = a;
                *exit = b;
            }
        }
    }
    return best;
}

/* Index of the largest min(left[k], right[k * stride]). */
static int best_middle(const float *left, const float *right, int count, int stride)
{
    int best = 0;
    float best_gbps = -1;
    for (int k = 0; k < count; k++) {
        float gbps = smaller(left[k], right[(size_t)k * stride]);
        if (gbps > best_gbps) {
            best_gbps = gbps;
            best = k;
        }
    }
    return best;
}

/* The best ports of node i for its chosen NICs. */
static struct tccl_node_ports best_ports(const struct tccl_nodes *nodes, int i, int entry_nic,
                                         int exit_nic)
{
    struct tccl_node_ports choice = {0, 0};
    int ports = nodes->ports[i];
    float best = -1;
    for (int entry = 0; entry < ports; entry++) {
        for (int exit = 0; exit < ports && nodes->nic[i][entry] == entry_nic; exit++) {
            float gbps = nodes->gbps[i][(size_t)entry * ports + exit];
            if (nodes->nic[i][exit] == exit_nic && gbps > best) {
                best = gbps;
                choice = (struct tccl_node_ports){entry, exit};
            }
        }
    }
    return choice;
}

/* Finds the choice of every node from the first entry and the last exit. One row of each partial
 * product is enough: arrive[i] over entry NICs, leave[i] over exit NICs of node i. choices gets
 * NICs.
 */
static int walk_back(const struct merge *merge, int entry, int exit,
                     struct tccl_node_ports *choices)
{
    const struct tccl_nodes *nodes = merge->nodes;
    size_t wide = merge->max_nics;
    cleanup_free float *arrive = malloc(sizeof(float) * wide * nodes->count);
    cleanup_free float *leave = malloc(sizeof(float) * wide * nodes->count);
    if (!arrive || !leave)
        return -1;
    memcpy(leave, merge->cell[0] + (size_t)entry * nodes->nics[0], sizeof(float) * nodes->nics[0]);
    for (int i = 1; i < nodes->count; i++) {
        tccl_maxmin(leave + wide * (i - 1), nodes->hop[i - 1], arrive + wide * i, 1,
                    nodes->nics[i - 1], nodes->nics[i]);
        tccl_maxmin(arrive + wide * i, merge->cell[i], leave + wide * i, 1, nodes->nics[i],
                    nodes->nics[i]);
    }
    for (int i = nodes->count - 1; i > 0; i--) {
        choices[i].exit = exit;
        choices[i].entry =
            best_middle(arrive + wide * i, merge->cell[i] + exit, nodes->nics[i], nodes->nics[i]);
        exit = best_middle(leave + wide * (i - 1), nodes->hop[i - 1] + choices[i].entry,
                           nodes->nics[i - 1], nodes->nics[i]);
    }
    choices[0] = (struct tccl_node_ports){entry, exit};
    return 0;
}

/* Replaces NICs by ports. Equal neighbours with equal choices are looked up once. */
static void nics_to_ports(const struct tccl_nodes *nodes, struct tccl_node_ports *choices)
{
    struct tccl_node_ports nics = {-1, -1}, ports = {0, 0};
    for (int i = 0; i < nodes->count; i++) {
        if (i == 0 || !same_node(nodes, i, i - 1) || choices[i].entry != nics.entry ||
            choices[i].exit != nics.exit) {
            nics = choices[i];
            ports = best_ports(nodes, i, nics.entry, nics.exit);
        }
        choices[i] = ports;
    }
}

int tccl_nodes_ring(const struct tccl_nodes *nodes, float *gbps, struct tccl_node_ports *choices)
{
    __attribute__((cleanup(merge_clear))) struct merge merge = {.nodes = nodes};
    int entry = 0, exit = 0;
    if (reduce_all(&merge) != 0)
        return -1;
    merge_all(&merge);
    *gbps = close_ring(&merge, &entry, &exit);
    if (!choices || *gbps <= 0)
        return 0;
    if (walk_back(&merge, entry, exit, choices) != 0)
        return -1;
    nics_to_ports(nodes, choices);
    return 0;
}
