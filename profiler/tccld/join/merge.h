/* merge.h: what is known of a contiguous range of nodes: the kinds that occur, and runs of them. A
 * hop depends only on the pair of NICs, so a kind is all that the ring needs of a node, and equal
 * nodes cost nothing. */
#ifndef TCCL_MERGE_H
#define TCCL_MERGE_H

#include <jansson.h>

#include "ring/ring.h"

enum { MERGE_KINDS = 128 };

/* A kind with a count of its holders. */
struct shared_kind {
    struct tccl_kind *kind;
    int holders;
};
/* Takes the kind over, with one holder. NULL without memory (the kind is then freed). */
struct shared_kind *shared_kind_new(struct tccl_kind *kind);
struct shared_kind *shared_kind_hold(struct shared_kind *shared);
void shared_kind_drop(struct shared_kind *shared); /* NULL is fine */

struct merge_run {
    int kind, count; /* kind: index into kinds */
};

struct merge {
    int first, end; /* nodes [first, end) */
    int n_kinds, n_runs, room;
    struct shared_kind *kinds[MERGE_KINDS];
    struct merge_run *runs;
};

/* Knows nothing yet; its range begins at first. NULL without memory. */
struct merge *merge_new(int first);
void merge_free(struct merge *merge); /* NULL is fine */

/* Appends count nodes of a kind (held from now on). Returns 0, or -1 with err: too many kinds. */
int merge_add(struct merge *merge, struct shared_kind *kind, int count, struct tccl_error *err);
/* Appends the range that follows. Returns 0, or -1 with err. */
int merge_append(struct merge *merge, const struct merge *next, struct tccl_error *err);

/* {"kinds":[…],"runs":[[kind,count],…]}: a new reference; NULL with err. */
json_t *merge_to_json(const struct merge *merge, struct tccl_error *err);
/* Reads and checks it for the range [first, end). NULL with err. */
struct merge *merge_from_json(const json_t *json, int first, int end, struct tccl_error *err);

/* The runs as tccl_ring_solve wants them: n_runs of them, allocated; borrow the kinds. */
struct tccl_run *merge_runs(const struct merge *merge);
/* GPUs of all nodes. */
long merge_gpus(const struct merge *merge);

#endif
