/* table.h: the chain table of one GPU set of one kind of machine: the best chain known for every
 * pair of ports, with proven bounds, others for steps beside others, ring sets, and the baseline.
 */
#pragma once

#include "chain/nccl-version.h"
#include "chain/ring-set.h"
#include "chain/tree.h"
#include "ring/nominal.h"

/* What an entry of a table is. */
enum tccl_part {
    TCCL_BEST,  /* the best chain of its pair of ports, or the best ring */
    TCCL_HOST,  /* the same without P2P, of its pair of NICs, where the best one has some: for tasks
                   that see only their own GPUs */
    TCCL_OTHER, /* slower, but uses other memories, or none: for steps that run beside others. No
                   bound is known of it */
    TCCL_SET,   /* two rings and more that run at once: closed ones for the node alone, open ones
                   for one of several. Its bound is that of all sets of as many, whatever NICs */
};

/* The ends of an all-reduce's round, in hundredths of a step (reach.h). */
enum { TCCL_ENDS_LEAST = 100, TCCL_ENDS_MOST = 200 };

/* Rings that run at once, most often one: what they reach together when nobody else runs, and the
 * proven upper bound (bound >= gbps; infinite: unknown; 0: proven that there is none), of a best
 * one that writes by P2P of those that write. GB/s. */
struct tccl_result {
    double gbps; /* 0: none is known, and chain.n_gpus = 0 */
    double bound;
    enum tccl_part part;       /* of a table */
    struct tccl_chain chain;   /* of a set its first one */
    struct tccl_tree tree;     /* beside an open chain */
    struct tccl_ring_set *set; /* of a TCCL_SET: all of them, the table's own; else NULL */
    uint8_t ends;              /* of an all-reduce's rounds (reach.h); 0: not known */
};

/* All of its rings, and how many there are. */
static inline const struct tccl_chain *tccl_result_rings(const struct tccl_result *result, int *n)
{
    *n = result->set ? result->set->n : result->chain.n_gpus > 0;
    return result->set ? result->set->rings : &result->chain;
}

/* As tccl_rings_side. */
static inline int tccl_result_side(const struct tccl_result *result, struct tccl_side *side)
{
    int n;
    const struct tccl_chain *rings = tccl_result_rings(result, &n);
    return tccl_rings_side(rings, n, side);
}

enum { TCCL_MAX_CHANNELS = 8 };

/* The baseline: what a stock NCCL of one generation builds on its own (see nccl/baseline.h). All
 * chains run at the same time. */
struct tccl_baseline {
    double gbps;                    /* GB/s, aggregate; 0: not measured */
    struct tccl_ring_set set;       /* n = 0: none, or their bandwidth cannot be measured */
    struct tccl_nominal ring, tree; /* also where nothing can be measured */
    uint8_t ends;                   /* of an all-reduce's rounds (reach.h); 0: not known */
};

struct tccl_table {
    char machine[TCCL_HASH_HEX]; /* machine id */
    char source[TCCL_NAME];      /* back end that measured: "model", "host", "cuda" */
    uint32_t gpus;               /* the GPU set, as a mask of GPU positions */
    uint32_t measured;           /* transfer sets measured for it */
    double noise;                /* values closer than this ratio count as equal */
    bool moved; /* made of that of GPUs that are alike (search/alike.h); not on disk */
    int n_ports;
    struct tccl_port *ports;
    /* First the best chain of each pair of ports, [entry * n_ports + exit], the best ring, and the
     * best ring without P2P, known or not; then all others in the order in which they were kept. */
    struct tccl_result *results;
    int n_results;
    size_t room; /* for so many */
    /* Of each generation of NCCL. [0] open: the node is one of several, none without a NIC; [1]
     * closed: the node alone. */
    struct tccl_baseline baselines[2][TCCL_GENERATIONS];
};

bool tccl_baseline_equal(const struct tccl_baseline *a, const struct tccl_baseline *b);

/* An empty table: all ports of the GPU set (for each NIC: its GPUs with GPUDirect, then all
 * memories), all bounds +inf. NULL only if out of memory. */
struct tccl_table *tccl_table_new(const struct tccl_machine *machine, uint32_t gpus);
void tccl_table_free(struct tccl_table *table); /* NULL is fine */
static inline void tccl_cleanup_table(struct tccl_table **table)
{
    tccl_table_free(*table);
}
#define cleanup_table __attribute__((cleanup(tccl_cleanup_table)))

size_t tccl_table_bytes(const struct tccl_table *table); /* of memory */

/* How many pairs of ports there are. */
static inline int tccl_table_pairs(const struct tccl_table *table)
{
    return table->n_ports * table->n_ports;
}

/* The best ring, and the best one without P2P if the best one has some; without a chain: unknown.
 */
static inline struct tccl_result *tccl_table_ring(const struct tccl_table *table)
{
    return &table->results[tccl_table_pairs(table)];
}

static inline struct tccl_result *tccl_table_host_ring(const struct tccl_table *table)
{
    return &table->results[tccl_table_pairs(table) + 1];
}

/* The result of the chain's ports, or of the best ring; NULL: the table has no such ports. */
struct tccl_result *tccl_table_place(const struct tccl_table *table,
                                     const struct tccl_chain *chain);

/* Goes through all that have a chain: the next one behind this (NULL: the first one) that is of one
 * of these parts, a mask of 1 << part; NULL: there is none. */
enum {
    TCCL_SINGLES = 1 << TCCL_BEST | 1 << TCCL_HOST | 1 << TCCL_OTHER,
    TCCL_OTHERS = 1 << TCCL_OTHER,
    TCCL_HOSTS = 1 << TCCL_HOST,
    TCCL_SETS = 1 << TCCL_SET
};
struct tccl_result *tccl_table_next(const struct tccl_table *table, const struct tccl_result *at,
                                    unsigned parts);

/* The fastest chain between these NICs (-1: any), of several GPUs if there are; NULL: none. */
struct tccl_result *tccl_table_best(const struct tccl_table *table, int entry, int exit);

/* Drops all entries of a part, but for those that are always there. */
void tccl_table_drop(struct tccl_table *table, enum tccl_part part);

/* The chains and bandwidths of two entries change places; bounds and parts stay. */
static inline void tccl_table_swap(struct tccl_result *a, struct tccl_result *b)
{
    const struct tccl_result first = *a;
    a->chain = b->chain;
    a->gbps = b->gbps;
    b->chain = first.chain;
    b->gbps = first.gbps;
}

/* Keeps a chain without P2P, if it is the first one of its pair of NICs, or better. */
void tccl_table_keep_host(struct tccl_table *table, const struct tccl_result *host);

/* Keeps a ring or chain among the others, if it is new to the table and there is room. */
void tccl_table_keep_other(struct tccl_table *table, const struct tccl_chain *chain, double gbps);

/* Has it rings or chains that read? Then P2P may (search/reads). */
bool tccl_table_reads(const struct tccl_table *table);

/* Keeps a set of two rings or more (copied; not without memory), if it is the first one of as many
 * with these NICs that writes, or reads, as it does, or better; of too many the slowest one goes.
 * The bounds of all such sets of as many rings become the least of them. */
void tccl_table_keep_set(struct tccl_table *table, const struct tccl_ring_set *set, double gbps,
                         double bound);

/* Writes the table atomically. Returns 0, or -1 with err. */
int tccl_table_write(const struct tccl_table *table, const char *path, struct tccl_error *err);
/* Reads and checks (size, checksum, every chain against the machine, machine id); what NCCL can't
 * be made to build (chain/chain.h) is left out. *table is the caller's. Returns 0; -1 with
 * err naming the file; a table of an older version is refused with what to run. */
int tccl_table_read(const char *path, const struct tccl_machine *machine, struct tccl_table **table,
                    struct tccl_error *err);
/* Are its ports and chains possible on the machine, and do they agree with its GPU set and bounds?
 * Returns 0, or -1 with err. */
int tccl_table_check(const struct tccl_table *table, const struct tccl_machine *machine,
                     struct tccl_error *err);
