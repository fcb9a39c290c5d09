/* nccl-look.h: which NCCL a program will load, as far as its environment says it. */
#ifndef TCCL_NCCL_LOOK_H
#define TCCL_NCCL_LOOK_H

#include <stdbool.h>

enum { NCCL_LOOK_PATH = 1024, NCCL_LOOK_MOST = 8 };

struct nccl_found {
    unsigned version; /* as ncclGetVersion counts; 0: it can't be told */
    char path[NCCL_LOOK_PATH];
};

/* What may be loaded, the likeliest first. */
struct nccl_look {
    int n;
    struct nccl_found found[NCCL_LOOK_MOST];
};

/* program: as it is started, by its path or a name for PATH; NULL: the Python of that environment.
 * Looks at files as the effective user: some 20 calls, none of them lists a folder, no allocation.
 * What LD_PRELOAD names is loaded for certain. Else only of Python (the interpreter, or a script
 * with its name in the first line) is it known where it looks: its packages, the lib of its prefix,
 * VLLM_NCCL_SO_PATH, LD_LIBRARY_PATH, the loader's own folders. Of other programs, which may be
 * containers or scripts that change the environment, nothing is known. */
void nccl_look(const char *program, char *const *env, struct nccl_look *look);

/* Whichever is loaded, it is one that isn't known: the first; else NULL. */
const struct nccl_found *nccl_look_unknown(const struct nccl_look *look);

#endif
