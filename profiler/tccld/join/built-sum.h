/* built-sum.h: what the nodes of a range of a step's tree say that NCCL built there, added up. */
#pragma once

#include "client/client.h"
#include "records/record.h"

enum {
    BUILT_RANKS = TCCL_BUILT_RANKS,
    BUILT_TEXT = 340 /* bytes that a node says: its name and its reason */
};

/* By rank (record.h). Rank TCCL_BUILT_NOTHING: nodes that have not said anything. */
struct built_sum {
    int first, end;          /* the range: [first, end) */
    int nodes[BUILT_RANKS];  /* how many there are of each; all together: end - first */
    int lowest[BUILT_RANKS]; /* the index of the first of them; -1: none */
    char text[BUILT_RANKS][BUILT_TEXT + 1]; /* what that one says */
    /* NCCL takes nodes in the order of their lowest ranks: that of the first node and the last one
     * of the range, -1 where it is not known of a node; and how often it falls from one node to the
     * next. A ring that begins at another node is the same ring. */
    int rank_first, rank_last, falls;
    int later;                   /* nodes where a step began beside it */
    char slowed[BUILT_TEXT + 1]; /* of the first node where one slows it down; "" */
};

/* An empty range; what is appended follows on it. */
void built_sum_begin(struct built_sum *sum, int first);
/* Some nodes say the same. */
void built_sum_put(struct built_sum *sum, int nodes, int rank, const char *text);
/* That of the node that was put last. */
void built_sum_put_rank(struct built_sum *sum, int lowest_rank);
/* The range that begins where this one ends. */
void built_sum_append(struct built_sum *sum, const struct built_sum *next);
/* Has every node said something? */
bool built_sum_is_whole(const struct built_sum *sum);

/* What holds for the step, and why; nodes: its node names in bracket form, "" if not known.
 * YES if every node said so; DIFFERS if one did; else PARTLY if one did; DIFFERS, too,
 * if some nodes have left the plan alone that others followed, or NCCL has them in another order;
 * NOT_USED if all have left it alone; else UNKNOWN. *node: the index of the one that says why; -1:
 * none. Returns the rank. */
int built_sum_judge(const struct built_sum *sum, const char *nodes,
                    char reason[static TCCL_OUTCOME_REASON + 1], int *node);

/* As members of a message. A new reference; NULL without memory. */
json_t *built_sum_to_json(const struct built_sum *sum);
/* Of the range [first, end). Returns 0, or -1 with err: it is not of that range, or not a sum. */
int built_sum_from_json(const json_t *json, int first, int end, struct built_sum *sum,
                        struct tccl_error *err);
