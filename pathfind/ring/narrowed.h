/* narrowed.h: links of a machine that carry less now than when its profile was made, and what the
 * rings of that profile have there.
 *
 * A link is known by what is below it: a transfer passes it if one of its ends is and the other one
 * isn't. Under max-min fair rates the slowest of some transfers has the least of all
 * capacity / sum of weights (pathfind/machine/README.md, "The bandwidth of a set"), so one more
 * capacity is one more minimum: what was measured stays an upper bound, and nothing has to be
 * measured again. Not right where a switch sends what stays below it up to its root and back (ACS).
 */
#pragma once

#include "ring/table.h"

enum { TCCL_MAX_NARROWED = 32, TCCL_NARROWED_TEXT = 120 };

struct tccl_narrow {
    uint32_t gpus, nics; /* below the link, as masks; never none of both */
    uint32_t apart;      /* other GPUs, which those below reach without passing it */
    double gbps[2];      /* what it carries now, down [0] and up [1], GB/s, more than 0 */
    double reads;        /* the weight of a transfer that reads, 1 or more: requests take room */
    char text[TCCL_NARROWED_TEXT]; /* for people: which link, and what it was */
};

/* Zero-initialise: none. */
struct tccl_narrowed {
    int n;
    struct tccl_narrow links[TCCL_MAX_NARROWED];
};

/* What is known of transfers that run at once: the rate of the slowest, GB/s; 0: nothing. */
typedef double tccl_narrow_known(void *context, const struct tccl_set *set);

/* By what was known of the link (whose gpus and nics are said) when the profile was made: it
 * carries this part now of what the fastest transfer had that passes it; what reading takes; which
 * GPUs are apart: partitions of one switch chip may reach each other within it, and two transfers
 * that had more together than the link carries did not share it. gbps 0 each: nothing is known. */
void tccl_narrow_rate(struct tccl_narrow *narrow, const struct tccl_machine *machine, double part,
                      tccl_narrow_known *known, void *context);

/* What the links leave to a side, GB/s of all of its rings, infinite: all. *by, or NULL, is the
 * index of the one that leaves least, -1: none. */
double tccl_narrowed_limit(const struct tccl_narrowed *narrowed, const struct tccl_side *side,
                           int *by);

/* The ends of a round (reach.h) of n rings whose transfers had that while all links were whole,
 * GB/s per ring: those that pass the links have less now, the others no less. */
uint8_t tccl_narrowed_ends(const struct tccl_narrowed *narrowed, const struct tccl_chain *rings,
                           int n, double gbps);

/* The table on the machine with these links: all that it has is judged again, and the best of each
 * pair of ports is what is best now. Where an entry has less, the ends of its round (reach.h) are
 * those by the model, which has the links; NULL: by what the links take. *felt gets the links that
 * take something from any of its entries, as a mask of their indices. The caller frees; NULL
 * without memory. */
struct tccl_table *tccl_narrowed_table(const struct tccl_table *table,
                                       const struct tccl_machine *machine,
                                       const struct tccl_narrowed *narrowed,
                                       const struct tccl_model *model, uint32_t *felt);

/* Does an all-reduce over the best rings of the node alone (between: and over the best ones between
 * its NICs) reach this part of what any can, by the bounds that are known and by what the best ones
 * had before? Else a search may find better ones. */
bool tccl_narrowed_suffices(const struct tccl_table *before, const struct tccl_table *table,
                            bool between, double part);

/* Adds what a search has found for the same GPUs: by that model, or (NULL) by what was measured
 * (search/recall.h), which is a guess, and counts where it is better than all that was measured, of
 * chains between the same NICs, by more than such a guess is off. What was best stays among the
 * others. */
void tccl_narrowed_add(struct tccl_table *table, const struct tccl_table *found,
                       const struct tccl_model *model);

/* The model (its file's object) of the machine with these links. Returns 0 with *narrow, the
 * caller's; -1 with err: there is no room for them. */
int tccl_narrowed_model(const json_t *model, const struct tccl_machine *machine,
                        const struct tccl_narrowed *narrowed, struct tccl_model **narrow,
                        struct tccl_error *err);
