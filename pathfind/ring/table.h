/* table.h: the chain table of one GPU set of one kind of machine: the best chain known for every
 * pair of ports, with proven bounds, ring sets, and the baseline. On disk: compact, checksummed,
 * written whole.
 */
#ifndef TCCL_TABLE_H
#define TCCL_TABLE_H

#include "chain/nccl-version.h"
#include "chain/ring-set.h"
#include "chain/tree.h"
#include "ring/nominal.h"

/* The best chain known (gbps; 0 and n_gpus = 0 if none) and the proven upper bound (bound >= gbps;
 * 0: proven that there is none). GB/s. */
struct tccl_result {
    double gbps;
    double bound;
    struct tccl_chain chain;
    struct tccl_tree tree; /* beside an open chain */
};

/* The best set known of so many rings with these NICs, GB/s of all of them together. The bound is
 * that of all sets of as many rings, whatever their NICs; INFINITY: unknown. */
struct tccl_set_result {
    double gbps;
    double bound;
    struct tccl_ring_set set;
};

enum { TCCL_MAX_CHANNELS = 8 };

/* The baseline: what a stock NCCL of one generation builds on its own (see nccl/baseline.h). All
 * chains run at the same time. */
struct tccl_baseline {
    double gbps;  /* GB/s, aggregate; 0: not measured */
    int n_chains; /* 0: none, or their bandwidth cannot be measured */
    struct tccl_chain chains[TCCL_MAX_CHANNELS];
    struct tccl_nominal ring, tree; /* also where nothing can be measured */
};

struct tccl_table {
    char machine[TCCL_HASH_HEX]; /* machine id */
    char source[TCCL_NAME];      /* back end that measured: "model", "host", "cuda" */
    uint32_t gpus;               /* the GPU set, as a mask of GPU positions */
    uint32_t measured;           /* transfer sets measured for it */
    double noise;                /* values closer than this ratio count as equal */
    int n_ports;
    struct tccl_port *ports;
    struct tccl_result *pairs; /* n_ports * n_ports: [entry * n_ports + exit] */
    struct tccl_result ring;   /* single-node ring; chain.n_gpus = 0 with one GPU */
    /* For tasks that see only their own GPUs: the best chain without P2P of each pair of NICs whose
     * best chain has some, at most one each, and the ring if the best one has some. */
    struct tccl_result *hosts, host_ring;
    int n_hosts;
    /* Rings, and chains between NICs, that may be slower but use other memories, or none: for steps
     * that run beside others. No bound is known of them, and none of them is in pairs. */
    struct tccl_result *others;
    int n_others;
    /* Sets of two rings and more: closed ones for the node alone, open ones for one of several. */
    struct tccl_set_result *sets;
    int n_sets;
    /* Of each generation of NCCL. closed: the node alone; open: the node is one of several, none
     * without a NIC. */
    struct tccl_baseline baseline_ring[TCCL_GENERATIONS], baseline_chain[TCCL_GENERATIONS];
};

bool tccl_baseline_equal(const struct tccl_baseline *a, const struct tccl_baseline *b);

/* An empty table: all ports of the GPU set (for each NIC: its GPUs with GPUDirect, then all
 * memories), all bounds +inf. NULL only if out of memory. */
struct tccl_table *tccl_table_new(const struct tccl_machine *machine, uint32_t gpus);
void tccl_table_free(struct tccl_table *table); /* NULL is fine */

/* Keeps a chain without P2P, if it is the first one of its pair of NICs, or better. */
void tccl_table_keep_host(struct tccl_table *table, const struct tccl_result *host);

/* Keeps a ring or chain among the others, if it is new to the table and there is room. */
void tccl_table_keep_other(struct tccl_table *table, const struct tccl_chain *chain, double gbps);

/* Keeps a set of two rings or more, if it is the first one of as many with these NICs, or better;
 * of too many the slowest one goes. The bounds of all sets of as many rings become the least of
 * them. */
void tccl_table_keep_set(struct tccl_table *table, const struct tccl_set_result *set);

/* Writes the table atomically. Returns 0, or -1 with err. */
int tccl_table_write(const struct tccl_table *table, const char *path, struct tccl_error *err);
/* Reads and checks (size, checksum, every chain against the machine, machine id); what NCCL can't
 * be made to build (chain/expressible.h) is left out. *table is the caller's. Returns 0; -1 with
 * err naming the file; a table of an older version is refused with what to run. */
int tccl_table_read(const char *path, const struct tccl_machine *machine, struct tccl_table **table,
                    struct tccl_error *err);
/* Are its ports and chains possible on the machine, and do they agree with its GPU set and bounds?
 * Returns 0, or -1 with err. */
int tccl_table_check(const struct tccl_table *table, const struct tccl_machine *machine,
                     struct tccl_error *err);

#endif
