/* segment.c: the best ways of several rings through a list of nodes. First the words that the rings
 * can meet are found, and each node kind's ways become edges between them; then the segment grows
 * node by node, or by repeated squaring. */
#include "ring/segment.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"

/* LANES: rows of the segment are padded to a multiple of it. */
enum { MAX_WORDS = 4096, SLOTS = 2 * MAX_WORDS, MAX_EDGES = 1 << 21, LANES = 4 };

/* The fabric of each ring; unused ones are 0, so that words compare as a whole. */
struct word {
    uint32_t fabrics[TCCL_CHAIN_RINGS];
};

/* A way of a node kind in one order of its rings. */
struct edge {
    int from, to; /* words */
    int way;
    float gbps;
};

/* Those of a node kind. */
struct edges {
    int count;
    size_t room;
    struct edge *edges;
    struct word *entries; /* of each way: what its rings come in from, sorted */
};

struct merge {
    const struct tccl_nodes *nodes;
    int n_words, n_starts; /* the first words are the starts */
    struct word *words, *sorted;
    int *slots;              /* hash table: index of a word + 1 */
    int *latest;             /* of each word: index of the edge to it that its kind got last */
    int n_edges;             /* of all kinds */
    struct edges *of;        /* of each kind */
    bool full;               /* there was no room for all words or edges */
    int lanes;               /* n_starts, padded */
    float *segment, *next;   /* n_words x lanes: [word][start] */
    float *square, *product; /* n_words x n_words: [to][from] */
};

static void merge_clear(struct merge *merge)
{
    for (int i = 0; merge->of && i < merge->nodes->n_kinds; i++) {
        free(merge->of[i].edges);
        free(merge->of[i].entries);
    }
    free(merge->words);
    free(merge->sorted);
    free(merge->slots);
    free(merge->latest);
    free(merge->of);
    free(merge->segment);
    free(merge->next);
    free(merge->square);
    free(merge->product);
}

/* Words */

static struct word make_word(const uint32_t *fabrics, int rings)
{
    struct word word = {{0}};
    memcpy(word.fabrics, fabrics, sizeof(*fabrics) * rings);
    return word;
}

static struct word sort_word(struct word word, int rings)
{
    for (int i = 1; i < rings; i++)
        for (int k = i; k > 0 && word.fabrics[k - 1] > word.fabrics[k]; k--) {
            uint32_t kept = word.fabrics[k];
            word.fabrics[k] = word.fabrics[k - 1];
            word.fabrics[k - 1] = kept;
        }
    return word;
}

static bool same_word(const struct word *a, const struct word *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* The number of the word, which may be new; -1: there is no room. */
static int find_word(struct merge *merge, const struct word *word)
{
    uint64_t hash = 0;
    for (int i = 0; i < TCCL_CHAIN_RINGS; i++)
        hash = (hash ^ word->fabrics[i]) * UINT64_C(0x9e3779b97f4a7c15);
    unsigned at = (unsigned)(hash >> 32) % SLOTS;
    for (; merge->slots[at]; at = (at + 1) % SLOTS)
        if (same_word(&merge->words[merge->slots[at] - 1], word))
            return merge->slots[at] - 1;
    if (merge->n_words == MAX_WORDS) {
        merge->full = true;
        return -1;
    }
    int own = merge->n_words++;
    merge->words[own] = *word;
    merge->sorted[own] = sort_word(*word, merge->nodes->rings);
    merge->slots[at] = own + 1;
    return own;
}

/* Edges */

/* Adds an edge, or makes the one between the same words better. */
static int add_edge(struct merge *merge, struct edges *of, struct edge edge)
{
    int latest = merge->latest[edge.to];
    if (latest < of->count && of->edges[latest].from == edge.from &&
        of->edges[latest].to == edge.to) {
        if (edge.gbps > of->edges[latest].gbps)
            of->edges[latest] = edge;
        return 0;
    }
    if (merge->n_edges++ == MAX_EDGES) {
        merge->full = true;
        return 0;
    }
    if (TCCL_GROW(of->edges, of->count, of->room) != 0)
        return -1;
    merge->latest[edge.to] = of->count;
    of->edges[of->count++] = edge;
    return 0;
}

/* A way being put in order: its rings so far, as bits, and the word behind the node. */
struct order {
    const struct tccl_way *way;
    int index;
    int from;
    unsigned used;
    struct word to;
};

/* All orders of the way that fit the word before it, from ring r on. */
static int add_orders(struct merge *merge, struct edges *of, struct order order, int r)
{
    int rings = merge->nodes->rings;
    if (r == rings) {
        int to = find_word(merge, &order.to);
        struct edge edge = {order.from, to, order.index, order.way->gbps};
        return to < 0 ? 0 : add_edge(merge, of, edge);
    }
    uint32_t in = merge->words[order.from].fabrics[r];
    for (int k = 0; k < rings && !merge->full; k++) {
        bool again = false; /* the same as an earlier ring */
        for (int j = 0; j < k; j++)
            again = again || (!(order.used >> j & 1) && order.way->in[j] == in &&
                              order.way->out[j] == order.way->out[k]);
        if ((order.used >> k & 1) || order.way->in[k] != in || again)
            continue;
        struct order next = order;
        next.used |= 1U << k;
        next.to.fabrics[r] = order.way->out[k];
        if (add_orders(merge, of, next, r + 1) != 0)
            return -1;
    }
    return 0;
}

static int add_edges(struct merge *merge, int kind, int word)
{
    const struct tccl_ways *ways = &merge->nodes->kinds[kind];
    struct edges *of = &merge->of[kind];
    for (int i = 0; i < ways->n && !merge->full; i++) {
        struct order order = {.way = &ways->ways[i], .index = i, .from = word};
        if (ways->ways[i].gbps > 0 && same_word(&of->entries[i], &merge->sorted[word]) &&
            add_orders(merge, of, order, 0) != 0)
            return -1;
    }
    return 0;
}

static int sort_entries(struct merge *merge)
{
    const struct tccl_nodes *nodes = merge->nodes;
    for (int kind = 0; kind < nodes->n_kinds; kind++) {
        const struct tccl_ways *ways = &nodes->kinds[kind];
        struct word *entries = malloc(sizeof(*entries) * (ways->n + 1));
        if (!entries)
            return -1;
        merge->of[kind].entries = entries;
        for (int i = 0; i < ways->n; i++)
            entries[i] = sort_word(make_word(ways->ways[i].in, nodes->rings), nodes->rings);
    }
    return 0;
}

static int make_words(struct merge *merge)
{
    merge->words = malloc(sizeof(*merge->words) * MAX_WORDS);
    merge->sorted = malloc(sizeof(*merge->sorted) * MAX_WORDS);
    merge->slots = calloc(SLOTS, sizeof(*merge->slots));
    merge->latest = calloc(MAX_WORDS, sizeof(*merge->latest));
    merge->of = calloc(merge->nodes->n_kinds, sizeof(*merge->of));
    if (!merge->words || !merge->sorted || !merge->slots || !merge->latest || !merge->of)
        return -1;
    /* The words that the rings can meet, whatever the order of the nodes, and all edges. */
    const struct tccl_nodes *nodes = merge->nodes;
    int first = nodes->runs[0].kind;
    if (sort_entries(merge) != 0)
        return -1;
    for (int i = 0; i < nodes->kinds[first].n; i++)
        if (nodes->kinds[first].ways[i].gbps > 0)
            find_word(merge, &merge->of[first].entries[i]);
    merge->n_starts = merge->n_words;
    for (int word = 0; word < merge->n_words; word++)
        for (int kind = 0; kind < nodes->n_kinds && !merge->full; kind++)
            if (add_edges(merge, kind, word) != 0)
                return -1;
    return 0;
}

/* Products */

static void swap(float **a, float **b)
{
    float *kept = *a;
    *a = *b;
    *b = kept;
}

/* segment = segment * edges */
static void append_node(struct merge *merge, const struct edges *of)
{
    size_t lanes = (size_t)merge->lanes;
    memset(merge->next, 0, sizeof(float) * merge->n_words * lanes);
    for (int i = 0; i < of->count; i++) {
        const struct edge *edge = &of->edges[i];
        tccl_maxmin_row(merge->segment + edge->from * lanes, edge->gbps,
                        merge->next + edge->to * lanes, merge->lanes);
    }
    swap(&merge->segment, &merge->next);
}

/* segment = segment * edges ^ length, by repeated squaring. */
static void append_powers(struct merge *merge, const struct edges *of, int length)
{
    int n = merge->n_words;
    memset(merge->square, 0, sizeof(float) * n * n);
    for (int i = 0; i < of->count; i++)
        merge->square[(size_t)of->edges[i].to * n + of->edges[i].from] = of->edges[i].gbps;
    for (int left = length; left > 0; left >>= 1) {
        if (left & 1) {
            tccl_maxmin(merge->square, merge->segment, merge->next, n, n, merge->lanes);
            swap(&merge->segment, &merge->next);
        }
        if (left > 1) {
            tccl_maxmin(merge->square, merge->square, merge->product, n, n, n);
            swap(&merge->square, &merge->product);
        }
    }
}

/* Is a run that long better squared? */
static bool is_long(const struct merge *merge, const struct edges *of, int length)
{
    double n = merge->n_words, lanes = merge->lanes, squares = 0;
    for (int left = length; left > 1; left >>= 1)
        squares++;
    return n * n * (squares * n + __builtin_popcount(length) * lanes) <
           (double)length * (of->count + n) * lanes;
}

static int room_for_powers(struct merge *merge)
{
    size_t square = (size_t)merge->n_words * merge->n_words;
    if (merge->square)
        return 0;
    merge->square = malloc(sizeof(float) * square);
    merge->product = malloc(sizeof(float) * square);
    return merge->square && merge->product ? 0 : -1;
}

/* The best word with which rings come back as they began. */
static float close_ring(const struct merge *merge, int *start)
{
    float best = 0;
    for (int i = 0; i < merge->n_starts; i++) {
        float gbps = merge->segment[(size_t)i * merge->lanes + i];
        if (gbps > best) {
            best = gbps;
            *start = i;
        }
    }
    return best;
}

/* Choices */

static bool has_bit(const uint64_t *bits, int i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

static void set_bit(uint64_t *bits, int i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

/* Leaves the edges of that bandwidth or more. */
static void keep_fast(struct edges *of, float gbps)
{
    int kept = 0;
    for (int i = 0; i < of->count; i++)
        if (of->edges[i].gbps >= gbps)
            of->edges[kept++] = of->edges[i];
    of->count = kept;
}

/* Into which words the rings can come behind the node. */
static void reach(const struct edges *of, const uint64_t *before, uint64_t *behind)
{
    for (int i = 0; i < of->count; i++)
        if (has_bit(before, of->edges[i].from))
            set_bit(behind, of->edges[i].to);
}

/* The fastest edge to the word from one that is reached. */
static const struct edge *best_edge(const struct edges *of, const uint64_t *before, int to)
{
    const struct edge *best = NULL;
    for (int i = 0; i < of->count; i++)
        if (of->edges[i].to == to && has_bit(before, of->edges[i].from) &&
            (!best || of->edges[i].gbps > best->gbps))
            best = &of->edges[i];
    return best;
}

/* Which of the way's rings goes from and to the fabrics of each ring. */
static void put_in_order(const struct merge *merge, const struct edges *of, const struct edge *edge,
                         struct tccl_node_way *choice)
{
    const struct tccl_way *way = &merge->nodes->kinds[of - merge->of].ways[edge->way];
    const struct word *from = &merge->words[edge->from], *to = &merge->words[edge->to];
    unsigned used = 0;
    *choice = (struct tccl_node_way){.way = edge->way};
    for (int r = 0; r < merge->nodes->rings; r++) {
        int k = 0;
        while ((used >> k & 1) || way->in[k] != from->fabrics[r] || way->out[k] != to->fabrics[r])
            k++;
        used |= 1U << k;
        choice->order[r] = (uint8_t)k;
    }
}

/* From the last node back to the first. reached: of each node, the words before it. */
static void walk_back(const struct merge *merge, const uint64_t *reached, size_t wide, int start,
                      int node, struct tccl_node_way *choices)
{
    const struct tccl_nodes *nodes = merge->nodes;
    for (int i = nodes->n_runs - 1, word = start; i >= 0; i--) {
        const struct edges *of = &merge->of[nodes->runs[i].kind];
        for (int k = 0; k < nodes->runs[i].count; k++) {
            node--;
            const struct edge *edge = best_edge(of, reached + wide * node, word);
            put_in_order(merge, of, edge, &choices[node]);
            word = edge->from;
        }
    }
}

static int choose(const struct merge *merge, float gbps, int start, struct tccl_node_way *choices)
{
    const struct tccl_nodes *nodes = merge->nodes;
    size_t wide = ((size_t)merge->n_words + 63) / 64;
    int count = 0, node = 0;
    for (int i = 0; i < nodes->n_runs; i++)
        count += nodes->runs[i].count;
    cleanup_free uint64_t *reached = calloc((count + 1) * wide, sizeof(*reached));
    if (!reached)
        return -1;
    for (int i = 0; i < nodes->n_kinds; i++)
        keep_fast(&merge->of[i], gbps);
    set_bit(reached, start);
    for (int i = 0; i < nodes->n_runs; i++)
        for (int k = 0; k < nodes->runs[i].count; k++, node++)
            reach(&merge->of[nodes->runs[i].kind], reached + wide * node,
                  reached + wide * (node + 1));
    walk_back(merge, reached, wide, start, count, choices);
    return 0;
}

int tccl_nodes_ring(const struct tccl_nodes *nodes, float *gbps, struct tccl_node_way *choices)
{
    __attribute__((cleanup(merge_clear))) struct merge merge = {.nodes = nodes};
    int start = 0;
    *gbps = 0;
    if (make_words(&merge) != 0)
        return -1;
    if (merge.full)
        return 1;
    merge.lanes = (merge.n_starts + LANES - 1) / LANES * LANES;
    size_t size = (size_t)merge.n_words * merge.lanes;
    merge.segment = calloc(size + 1, sizeof(float));
    merge.next = calloc(size + 1, sizeof(float));
    if (!merge.segment || !merge.next)
        return -1;
    for (int i = 0; i < merge.n_starts; i++)
        merge.segment[(size_t)i * merge.lanes + i] = INFINITY;
    for (int i = 0; i < merge.nodes->n_runs; i++) {
        struct tccl_ways_run run = merge.nodes->runs[i];
        const struct edges *of = &merge.of[run.kind];
        if (is_long(&merge, of, run.count)) {
            if (room_for_powers(&merge) != 0)
                return -1;
            append_powers(&merge, of, run.count);
            continue;
        }
        for (int k = 0; k < run.count; k++)
            append_node(&merge, of);
    }
    *gbps = close_ring(&merge, &start);
    return choices && *gbps > 0 ? choose(&merge, *gbps, start, choices) : 0;
}
