/* lookup.h: dlsym in front of libc's. */
#ifndef SHIM_LOOKUP_H
#define SHIM_LOOKUP_H

#include <stdbool.h>

/* In two registers. */
struct shim_lookup {
    void *address;
    long done; /* 0: the next dlsym is to be called, as if by the program; address means nothing */
};

/* Called by our dlsym for names that begin with "nccl" or "cuGe". caller: where dlsym will return
 * to. */
struct shim_lookup shim_lookup(void *handle, const char *name, const void *caller);

#endif
