/* path-nodes.h: the command line, and the nodes given on it, in order. */
#pragma once

#include "command/path-source.h"
#include "ring/node-class.h"

/* The command line. Texts are borrowed from it. */
enum { MAX_NODE_OPTIONS = 4096 };

struct options {
    const char *model, *profile; /* NULL if not given */
    const char *nodes[MAX_NODE_OPTIONS];
    int n_nodes;
    const char *gpus, *ring, *load, *output, *busy;
    bool json, any;
    double gap, noise; /* -1 if not given */
    int budget, pairs; /* -1 if not given */
    int rings;         /* -1 if not given; 0: auto */
};

enum { MAX_COUNT = 4096, MAX_NODES = 65536 };

/* Nodes with the same source and GPU set share one. */
struct node_class {
    struct source *source;
    uint32_t gpus;
    struct tccl_table *table;      /* all unknown until it is solved */
    struct tccl_node_class *class; /* of that table */
    bool as_job;                   /* with those of its sets only that a job would get */
    bool solved;
};

/* Consecutive nodes of one option. */
struct group {
    struct source *source;
    uint32_t gpus;
    bool gpus_given; /* on the command line; else all the machine has */
    int count;
};

struct nodes {
    struct source **sources;
    int n_sources;
    struct node_class **classes;
    int n_classes;
    struct group *groups;
    int n_groups;
    int total;
    bool given; /* a ring, or a number of rings, is given: all sets that there are count */
};

/* Opens what --model, --profile and --node name, in order. Returns 0, or -1 with err; nodes_clear
 * frees in both cases. */
int nodes_open(const struct options *options, struct nodes *nodes, struct tccl_error *err);
void nodes_clear(struct nodes *nodes);

/* The node class with this source and these GPUs, created at first use. NULL with err. */
struct node_class *nodes_class(struct nodes *nodes, struct source *source, uint32_t gpus,
                               struct tccl_error *err);

/* Updates the node class from the table. Returns 0, or -1 with err. */
int node_class_refresh(struct node_class *class, struct tccl_error *err);

/* The group of node i (from 0). */
const struct group *nodes_group(const struct nodes *nodes, int i);
