/* bound.c: a small table, by where a library is loaded. One that is unloaded keeps its place, which
 * the next one at the same address has then. */
#include "base/loaded.h"

#include <stddef.h>
#include <string.h>

struct copy {
    uintptr_t start; /* 0: free */
    const void *in;
    void *real[SHIM_WRAPPERS];
};

static struct copy copies[SHIM_BOUND_COPIES];

__thread int shim_bound_entry;

int shim_wrapper_number(const char *name)
{
#define SHIM_NAME_OF(name) #name,
    static const char names[][32] = {SHIM_WRAPPED(SHIM_NAME_OF)};
    for (int i = 0; i < SHIM_WRAPPERS; i++)
        if (names[i][4] == name[4] && !strcmp(names[i], name)) /* behind "nccl" */
            return i;
    return -1;
}

/* Its place; -1: all are taken by others. */
static int find_copy(uintptr_t start)
{
    for (int i = 0; i < SHIM_BOUND_COPIES; i++) {
        uintptr_t there = 0;
        if (__atomic_compare_exchange_n(&copies[i].start, &there, start, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST) ||
            there == start)
            return i;
    }
    return -1;
}

int shim_bind(int wrapper, uintptr_t start, void *real, const void *in)
{
    int i = find_copy(start);
    if (i < 0)
        return -1;
    __atomic_store_n(&copies[i].in, in, __ATOMIC_SEQ_CST);
    __atomic_store_n(&copies[i].real[wrapper], real, __ATOMIC_SEQ_CST);
    return i * SHIM_WRAPPERS + wrapper;
}

void *shim_bound_take(const void **in)
{
    int entry = shim_bound_entry - 1;
    shim_bound_entry = 0;
    if (entry < 0)
        return NULL;
    const struct copy *copy = &copies[entry / SHIM_WRAPPERS];
    *in = __atomic_load_n(&copy->in, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&copy->real[entry % SHIM_WRAPPERS], __ATOMIC_SEQ_CST);
}
