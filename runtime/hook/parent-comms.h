/* parent-comms.h: communicators of this process that children can be made of. */
#ifndef SHIM_PARENT_COMMS_H
#define SHIM_PARENT_COMMS_H

#include "plan/registry.h"

enum { SHIM_PARENTS = 256 };

/* Of one rank's handle. */
struct shim_parent {
    const void *handle;
    uint64_t key;
    struct shim_entry *entry;
    struct shim_entry *roll; /* of a split: where ranks of all colors are */
    int ranks, rank, color;  /* ranks, rank -1: unknown */
    shim_bus gpu;
    unsigned splits, shrinks;       /* children so far */
    bool split_share, shrink_share; /* its children use its buffers */
};

/* Takes note of a communicator; one with the same handle is gone. */
void shim_parent_add(const struct shim_parent *parent);
/* Copies it and counts one more child of that kind. Returns 0, or -1: not known. */
enum shim_kind { SHIM_SPLIT, SHIM_SHRINK };
int shim_parent_child(const void *handle, enum shim_kind kind, struct shim_parent *parent);
void shim_parent_forget(const void *handle);

#endif
