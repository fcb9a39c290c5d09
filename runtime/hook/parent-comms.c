/* parent-comms.c: a small table under a lock, of handles that the program may split or shrink. */
#include "hook/hook.h"

#include <string.h>

static struct shim_parent parents[SHIM_PARENTS];
static shim_lock lock;
static int owner;

/* After a fork the handles are of no use. Returns -1: the lock can't be had. */
static int enter(void)
{
    if (shim_forked(&owner)) {
        memset(parents, 0, sizeof(parents));
        shim_lock_release(&lock);
    }
    return shim_lock_take(&lock);
}

static struct shim_parent *find(const void *handle)
{
    for (int i = 0; i < SHIM_PARENTS; i++)
        if (parents[i].handle == handle)
            return &parents[i];
    return NULL;
}

int shim_parent_add(const struct shim_parent *parent, struct shim_parent *gone)
{
    int result = -1;
    if (!parent->handle || enter())
        return -1;
    struct shim_parent *place = find(parent->handle);
    if (place) {
        *gone = *place;
        result = 1;
    } else if ((place = find(NULL))) {
        result = 0;
    }
    if (place)
        *place = *parent;
    shim_lock_release(&lock);
    return result;
}

int shim_parent_child(const void *handle, enum shim_kind kind, struct shim_parent *parent)
{
    if (!handle || enter())
        return -1;
    struct shim_parent *found = find(handle);
    if (found) {
        *parent = *found;
        if (kind == SHIM_SPLIT)
            found->splits++;
        else
            found->shrinks++;
    }
    shim_lock_release(&lock);
    return found ? 0 : -1;
}

int shim_parent_forget(const void *handle, struct shim_parent *gone)
{
    if (!handle || enter())
        return -1;
    struct shim_parent *found = find(handle);
    if (found) {
        *gone = *found;
        found->handle = NULL;
    }
    shim_lock_release(&lock);
    return found ? 0 : -1;
}
