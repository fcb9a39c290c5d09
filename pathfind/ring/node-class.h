/* node-class.h: what of a node's chain table matters to the ring: its entries as they are seen
 * beside the steps that run on the node, of those with the same NICs only the best one. Nodes with
 * the same profile and GPU set are of one class (struct tccl_node_class). */
#pragma once

#include "chain/ring-set.h"
#include "machine/sides.h"
#include "ring/table.h"

/* Rings of the node alone, or chains of one of several, that run at once. */
struct tccl_seen {
    double gbps;              /* of all of them together beside the steps that run; 0: none */
    double bound;             /* proven upper bound, of several that of all sets of as many */
    double alone;             /* what they reach when nobody else runs */
    double share;             /* what they leave to those that run, as tccl_worth; 1: all */
    bool harms;               /* one of those has less than beside NCCL's own choice */
    enum tccl_basis basis;    /* by what gbps and share are known beside them */
    uint8_t ends;             /* of an all-reduce's rounds (reach.h); 0: nothing is lost */
    uint8_t told_ends;        /* of these beside the steps that run (tccl_beside_ends), which
                               * people are told by; 0: as ends. Neither sent nor compared */
    struct tccl_ring_set set; /* n = 0: none; NICs are indices into nics */
    struct tccl_tree tree;    /* only for the node itself: neither sent nor compared */
};

/* The baseline of a generation of NCCL, [0] of one node of several, [1] of this node alone. */
struct tccl_class_baseline {
    double gbps[2];                /* of all of its chains or rings together; 0: there are none */
    double share[2];               /* as of what is seen */
    int bounces[2];                /* of the one that has most (latency.h) */
    uint8_t ends[2], told_ends[2]; /* as of what is seen */
    int n_chains;                  /* and their NICs, in ascending order */
    uint8_t entry_nics[TCCL_MAX_CHANNELS], exit_nics[TCCL_MAX_CHANNELS];
    /* What NCCL says of ring and tree. Only for the node itself: neither sent nor compared. */
    struct tccl_nominal ring[2], tree[2];
};

/* The ends of what NCCL builds, as they are told (where these are known), or as they decide. */
static inline uint8_t tccl_class_baseline_ends(const struct tccl_class_baseline *own, bool closed,
                                               bool told)
{
    return told && own->told_ends[closed] ? own->told_ends[closed] : own->ends[closed];
}

enum { TCCL_CLASS_WORSE = 160 };

struct tccl_node_class {
    char machine[TCCL_HASH_HEX];
    char source[TCCL_NAME];
    uint32_t gpus;
    int n_gpus;
    bool moved;     /* as its table (table.h) */
    int neighbours; /* steps beside which it is seen */
    char *beside;   /* those (chain/beside-text.h), with what each has alone; NULL: not known */
    int n_nics;
    struct tccl_class_nic {
        char name[TCCL_NAME];
        char fabric[TCCL_NAME];
        double gbps;
    } nics[TCCL_MAX_NICS];
    /* First the best chain of each pair of NICs, [entry NIC * n_nics + exit NIC], and the best
     * ring; then sets of two rings and more. */
    struct tccl_seen *seen;
    int n_seen;
    size_t room;                  /* for so many */
    char worse[TCCL_CLASS_WORSE]; /* what it lacks of what was measured (narrowed.h); "": nothing */
    char meets[TCCL_NAME]; /* tccl_table_fabric, "": none. Only for the node itself, as trees */
    double noise;          /* of the measurements: values closer than this ratio count as equal */
    struct tccl_class_baseline baselines[TCCL_GENERATIONS];
};

enum { TCCL_CLASS_SETS = 64 /* of one class; more are left out */ };

/* How many pairs of NICs there are, and where the sets begin. */
static inline int tccl_class_pairs(const struct tccl_node_class *class)
{
    return class->n_nics * class->n_nics;
}

static inline int tccl_class_first_set(const struct tccl_node_class *class)
{
    return tccl_class_pairs(class) + 1;
}

static inline struct tccl_seen *tccl_class_ring(const struct tccl_node_class *class)
{
    return &class->seen[tccl_class_pairs(class)];
}

/* On which fabric groups of these GPUs may be over several nodes, each node of which knows itself
 * alone: where the NICs of all chains of NCCL's own, of any generation, are on one, those of other
 * nodes are on that one, too, or NCCL would not reach them; then so may be those of ours, whatever
 * other nodes take. Where all NICs of the machine are on one fabric, that one. NULL: there is none.
 * Borrowed from the machine. */
const char *tccl_table_fabric(const struct tccl_table *table, const struct tccl_machine *machine);

enum tccl_view {
    TCCL_VIEW_JOB,    /* on a part of a node without the sets that take room (ring/neighbours.h) */
    TCCL_VIEW_HIDDEN, /* so, for tasks that see only their own GPUs: what has no P2P, against the
                         same baselines (what NCCL does about P2P to GPUs that it can't open is not
                         known here) */
    TCCL_VIEW_WRITES, /* so, where P2P has to write, */
    TCCL_VIEW_READS,  /* or to read: it is one choice for all that a step's processes do */
    TCCL_VIEW_ALL     /* all sets */
};
/* May the chain be seen, by its P2P edges? */
bool tccl_view_allows(enum tccl_view view, const struct tccl_chain *chain);
/* The table as it is with nobody beside. The caller frees. NULL without memory. */
struct tccl_node_class *tccl_node_class_from_table(const struct tccl_table *table,
                                                   const struct tccl_machine *machine,
                                                   enum tccl_view view);
/* A class of that many NICs that has nothing yet. The caller frees. NULL without memory. */
struct tccl_node_class *tccl_node_class_new(int n_nics);
void tccl_node_class_free(struct tccl_node_class *class);
static inline void tccl_cleanup_class(struct tccl_node_class **class)
{
    tccl_node_class_free(*class);
}
#define cleanup_class __attribute__((cleanup(tccl_cleanup_class)))

/* Adds a set of two rings or more, if it is the best one of as many that pass through the node in
 * the same way, from and to the same fabrics, and write, or read, as it does. alone = 0: nobody
 * runs beside it. Returns 0, or -1 if out of memory. */
int tccl_node_class_add_set(struct tccl_node_class *class, const struct tccl_seen *set);

/* The last set goes, or takes the place of another one with the same way through the node: what
 * leaves the larger least share, its own and that of those beside it, stays, then the faster one.
 */
void tccl_class_drop_twin(struct tccl_node_class *class);

/* The NICs of a set's chains, as many as it has; -1 each: closed. */
void tccl_set_nics(const struct tccl_ring_set *set, int *in, int *out);

/* What the line rates of the node's NICs leave to so many rings that come in and go out by these,
 * GB/s of all of them together: those by one NIC share its rate. */
double tccl_class_hops(const struct tccl_node_class *class, const int *in, const int *out,
                       int rings);

/* How many rings at once are best between nodes of this class alone, as far as its chains and NICs
 * go; 0: it has no chain. */
int tccl_class_best_rings(const struct tccl_node_class *class);

/* The fastest set of a node alone (closed) or, as the NICs' line rates leave it, between nodes of
 * this class; NULL: there is none. */
const struct tccl_seen *tccl_class_best_set(const struct tccl_node_class *class, bool closed);

/* The fastest sets of a table that jobs get: [0] of one of several nodes like this one, [1] of this
 * node alone; gbps 0: there is none. Returns 0, or -1 if out of memory. */
int tccl_job_sets(const struct tccl_table *table, const struct tccl_machine *machine,
                  struct tccl_seen best[static 2]);

/* The fastest that has these NICs, in any order; -1 each: the closed ones. order[i]: which of its
 * chains has the NICs i. NULL: the class has no such NICs, or no such set. */
const struct tccl_seen *tccl_class_find(const struct tccl_node_class *class, const int *in,
                                        const int *out, int rings,
                                        uint8_t order[static TCCL_CHAIN_RINGS]);

/* The text of a set of the class (chain-text.h), with GPU numbers; "" if it has no rings. */
void tccl_class_format(const struct tccl_node_class *class, const struct tccl_ring_set *set,
                       char text[static TCCL_RINGS_TEXT]);
/* For messages between nodes (class-message.c). from_json validates and bounds everything, and
 * leaves out chains and sets that no NCCL can be made to build; NULL with err. */
json_t *tccl_node_class_to_json(const struct tccl_node_class *class);
struct tccl_node_class *tccl_node_class_from_json(const json_t *json, struct tccl_error *err);
bool tccl_node_class_equal(const struct tccl_node_class *a, const struct tccl_node_class *b);
