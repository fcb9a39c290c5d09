/* node-class.h: the properties of a node that matter to the ring: the best chain for each pair of
 * NICs. Nodes with the same profile and GPU set are of one class (struct tccl_node_class). */
#ifndef TCCL_NODE_CLASS_H
#define TCCL_NODE_CLASS_H

#include "chain/ring-set.h"
#include "machine/together.h"
#include "ring/table.h"

/* A hop depends only on the pair of NICs, so of all port pairs with the same NICs only the best one
 * matters. */
struct tccl_cell {
    double gbps;             /* beside the steps that run on the node; 0: no chain */
    double bound;            /* proven upper bound over all port pairs of these NICs */
    double alone;            /* what the chain reaches when nobody else runs */
    double share;            /* what it leaves to those that run, as tccl_worth; 1: all */
    bool harms;              /* one of those has less than beside NCCL's own choice */
    enum tccl_basis basis;   /* by what gbps and share are known beside them */
    struct tccl_chain chain; /* n_gpus = 0: none; NICs are indices into nics */
    struct tccl_tree tree;   /* only for the node itself: neither sent nor compared */
};

/* Several chains on the node that run at once, or rings of the node alone: of those with these NICs
 * the best ones known. */
struct tccl_class_set {
    double gbps;  /* of all of them together, as of a cell */
    double bound; /* proven upper bound of all sets of as many rings; INFINITY: unknown */
    struct tccl_ring_set set; /* all open or all closed; NICs are indices into nics */
    double alone, share;      /* as of a cell; alone = 0: nobody runs beside them */
    enum tccl_basis basis;
};

/* The baseline of a generation of NCCL: the aggregate bandwidth of its rings on this node alone,
 * and of its chains if the node is one of several, 0 if there are none; and the NICs of these
 * chains, in ascending order. */
struct tccl_class_baseline {
    double ring_gbps, chain_gbps;
    double ring_share, chain_share;  /* as of a cell */
    int ring_bounces, chain_bounces; /* of the one that has most (latency.h) */
    int n_chains;
    uint8_t entry_nics[TCCL_MAX_CHANNELS], exit_nics[TCCL_MAX_CHANNELS];
    /* What NCCL says of ring and tree, [0] on one node of several, [1] on this node alone. Only for
     * the node itself: neither sent nor compared. */
    struct tccl_nominal ring[2], tree[2];
};

struct tccl_node_class {
    char machine[TCCL_HASH_HEX];
    char source[TCCL_NAME];
    uint32_t gpus;
    int n_gpus;
    int neighbours; /* steps beside which it is seen */
    char *beside;   /* those (chain/beside-text.h), with what each has alone; NULL: not known */
    int n_nics;
    struct {
        char name[TCCL_NAME];
        char fabric[TCCL_NAME];
        double gbps;
    } nics[TCCL_MAX_NICS];
    struct tccl_cell *cells; /* n_nics * n_nics: [entry NIC * n_nics + exit NIC] */
    struct tccl_cell ring;   /* single-node ring */
    /* Sets of two rings and more (class-sets.h), open and closed ones. */
    struct tccl_class_set *sets;
    int n_sets;
    char meets[TCCL_NAME]; /* tccl_table_fabric, "": none. Only for the node itself, as trees */
    double noise;          /* of the measurements: values closer than this ratio count as equal */
    struct tccl_class_baseline baselines[TCCL_GENERATIONS];
};

/* On which fabric groups of these GPUs may be over several nodes, each node of which knows itself
 * alone: where the NICs of all chains of NCCL's own, of any generation, are on one, those of other
 * nodes are on that one, too, or NCCL would not reach them; then so may be those of ours, whatever
 * other nodes take. Where all NICs of the machine are on one fabric, that one. NULL: there is none.
 * Borrowed from the machine. */
const char *tccl_table_fabric(const struct tccl_table *table, const struct tccl_machine *machine);

/* As jobs get it: on a part of a node without the sets that take room (ring/room.h). The caller
 * frees. NULL without memory. */
struct tccl_node_class *tccl_node_class_from_table(const struct tccl_table *table,
                                                   const struct tccl_machine *machine);
/* The same with all of the table's sets. */
struct tccl_node_class *tccl_node_class_of_all_sets(const struct tccl_table *table,
                                                    const struct tccl_machine *machine);
/* The same for tasks that see only their own GPUs: chains, ring and sets without P2P, against the
 * same baselines (what NCCL does about P2P to GPUs that it can't open is not known here). */
struct tccl_node_class *tccl_node_class_without_p2p(const struct tccl_table *table,
                                                    const struct tccl_machine *machine);
/* Adds a set of two rings or more, if it is the best one of as many that pass through the node in
 * the same way. Returns 0, or -1 if out of memory. */
int tccl_node_class_add_set(struct tccl_node_class *class, const struct tccl_class_set *set);
void tccl_node_class_free(struct tccl_node_class *class);
/* The text of a chain of the class (chain-text.h), with GPU numbers; "" if n_gpus is 0. */
void tccl_node_class_format(const struct tccl_node_class *class, const struct tccl_chain *chain,
                            char text[static TCCL_CHAIN_TEXT]);
/* For messages between nodes. from_json validates and bounds everything, and leaves out
 * chains and sets that no NCCL can be made to build; NULL with err. */
json_t *tccl_node_class_to_json(const struct tccl_node_class *class);
struct tccl_node_class *tccl_node_class_from_json(const json_t *json, struct tccl_error *err);
bool tccl_node_class_equal(const struct tccl_node_class *a, const struct tccl_node_class *b);

#endif
