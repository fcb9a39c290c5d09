/* pace.h: how long copies take on the machines of the rig. Each copy under way is a flow, of all
 * processes, jobs and nodes that share a file; rates are max-min fair by the resources and rules of
 * the models (machine/README.md), and change whenever a copy begins or ends. So NCCL's own
 * splitting, pipelining and waiting decide what runs at once, not a plan.
 *
 * Written without the project's own evaluation, which is held against it. Times are scaled: a
 * machine is so many times as slow as its model, since two processors move the bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACE_PARTS = 8, PACE_FLOWS = 1024, PACE_NAME = 16 };

/* A transfer on a node: its place in the node's description, as pace_find says it. */
struct pace_part {
    int node, transfer;
};

/* One stream of copies, one after the other: a thread's. All 0 at first. */
struct pace_stream {
    double ahead; /* bytes that were done while the thread had not noticed that its last copy was */
    int64_t at;   /* when it ended, ns */
};

/* Opens what TCCL_RIG_PACE names, once in a process: a folder with "node0", "node1", …
 * (describe-pace), and "flows", which all share. False: not set, or it makes no sense, with a line
 * on stderr; then nothing is paced. */
bool pace_open(void);

/* How many times as slow as the machine all of it runs; 1: nothing is paced. */
double pace_slower(void);

/* The place of a transfer such as "g0>m1" on a node; -1: the model has none. */
int pace_find(int node, const char *name);

/* This process' node: $TCCL_RIG_NODE, or 0. */
int pace_node(void);
/* The part that a transfer of that name is on a node. False: the model has none, which is said
 * once. */
bool pace_find_part(int node, const char *name, struct pace_part *part);

/* Returns once the copy of so many bytes by all parts at once is done; or as soon as gone(data) is
 * true, asked every few milliseconds (NULL: never). */
void pace_copy(struct pace_stream *stream, const struct pace_part *parts, int n, size_t bytes,
               bool (*gone)(void *data), void *data);

/* The rates of copies that run at once, GB/s, by the model: copy i has the part parts[i] alone. */
void pace_rates(const struct pace_part *parts, int n, double *rates);
