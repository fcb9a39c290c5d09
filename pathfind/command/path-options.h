/* path-options.h: the command line options of tccl-path. */
#ifndef TCCL_PATH_OPTIONS_H
#define TCCL_PATH_OPTIONS_H

#include <stdbool.h>

#include "base/error.h"

enum { MAX_NODE_OPTIONS = 4096 };

/* Texts are borrowed from the command line. */
struct options {
    const char *model, *profile; /* NULL if not given */
    const char *nodes[MAX_NODE_OPTIONS];
    int n_nodes;
    const char *gpus, *ring, *set, *output, *busy;
    bool json, any, help;
    double gap, noise;  /* -1 if not given */
    long budget, pairs; /* -1 if not given */
    long rings;         /* -1 if not given; 0: auto */
};

/* Reads the options of one command: accepted holds the first letter of each option that it knows,
 * as listed in path-options.c. Returns 0, or -1 with err: a usage error. */
int options_parse(int argc, char **argv, const char *accepted, struct options *options,
                  struct tccl_error *err);

#endif
