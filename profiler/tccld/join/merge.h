/* merge.h: what is known of a contiguous range of nodes: the classes that occur, and runs of them.
 * A hop depends only on the pair of NICs, so a class is all that the ring needs of a node, and
 * equal nodes cost nothing. */
#pragma once

#include <jansson.h>

#include "ring/ring.h"

enum { MERGE_CLASSES = 128 };

/* A class with a count of its holders. */
struct shared_class {
    struct tccl_node_class *class;
    int holders;
};
/* Takes the class over, with one holder. NULL without memory (the class is then freed). */
struct shared_class *shared_class_new(struct tccl_node_class *class);
struct shared_class *shared_class_hold(struct shared_class *shared);
void shared_class_drop(struct shared_class *shared); /* NULL is fine */

struct merge_run {
    int class, count; /* class: index into classes */
};

struct merge {
    int first, end; /* nodes [first, end) */
    int n_classes, n_runs, room;
    struct shared_class *classes[MERGE_CLASSES];
    struct merge_run *runs;
};

/* Knows nothing yet; its range begins at first. NULL without memory. */
struct merge *merge_new(int first);
void merge_free(struct merge *merge); /* NULL is fine */

/* Appends count nodes of a class (held from now on). Returns 0, or -1 with err: too many classes.
 */
int merge_add(struct merge *merge, struct shared_class *class, int count, struct tccl_error *err);
/* Appends the range that follows. Returns 0, or -1 with err. */
int merge_append(struct merge *merge, const struct merge *next, struct tccl_error *err);

/* {"classes":[…],"runs":[[class,count],…]}: a new reference; NULL with err. */
json_t *merge_to_json(const struct merge *merge, struct tccl_error *err);
/* Reads and checks it for the range [first, end). NULL with err. */
struct merge *merge_from_json(const json_t *json, int first, int end, struct tccl_error *err);

/* The runs as tccl_ring_solve wants them: n_runs of them, allocated; borrow the classes. */
struct tccl_run *merge_runs(const struct merge *merge);
/* Steps beside this one, on all nodes. */
long merge_neighbours(const struct merge *merge);
/* GPUs of all nodes. */
long merge_gpus(const struct merge *merge);
