/* nccl-foresee.h: will the tasks of a step load an NCCL that isn't known? Looked at in slurmstepd,
 * before anything is promised. */
#ifndef TCCL_NCCL_FORESEE_H
#define TCCL_NCCL_FORESEE_H

#include <stddef.h>
#include <sys/types.h>

/* A program of a step, its environment and its user. */
struct nccl_task {
    const char *program; /* argv[0] */
    char *const *env;
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    int n_groups;
};

/* Which NCCL it is, where, and what to do; "": none is foreseen, or it can't be told. A child looks
 * (nccl-look.h), which becomes the user first, and is given up after ms. */
void nccl_foresee(const struct nccl_task *task, int ms, char *text, size_t size);

#endif
