/* parent-comms.h: communicators of this process that children can be made of. */
#ifndef SHIM_PARENT_COMMS_H
#define SHIM_PARENT_COMMS_H

#include "plan/registry.h"

enum { SHIM_PARENTS = 1024 };

/* Of one rank's handle. */
struct shim_parent {
    const void *handle;
    uint64_t key;
    struct shim_entry *entry;
    struct shim_entry *roll; /* of a split: where ranks of all colors are. Like entry it is held by
                                this rank until the communicator is gone (registry.h) */
    int ranks, rank;         /* -1: unknown */
    tccl_bus gpu;
    unsigned splits, shrinks;       /* children so far */
    bool split_share, shrink_share; /* its children use its buffers */
};

/* Takes note of a communicator. One with the same handle is gone: it is copied to gone. Returns 0;
 * 1: there is one in gone; or -1: there is no room. */
int shim_parent_add(const struct shim_parent *parent, struct shim_parent *gone);
/* Copies it and counts one more child of that kind. Returns 0, or -1: not known. */
enum shim_kind { SHIM_SPLIT, SHIM_SHRINK };
int shim_parent_child(const void *handle, enum shim_kind kind, struct shim_parent *parent);
/* Copies what was known of it to gone. Returns 0, or -1: nothing. */
int shim_parent_forget(const void *handle, struct shim_parent *gone);

#endif
