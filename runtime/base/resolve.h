/* resolve.h: NCCL's own functions, those that a caller of a wrapper would have reached without us.
 */
#ifndef SHIM_RESOLVE_H
#define SHIM_RESOLVE_H

#include <stdint.h>

/* The library (or program) that holds an NCCL. */
struct shim_nccl {
    uintptr_t start, end; /* its loaded range, which tells whose getenv it is */
    uint32_t version;     /* ncclGetVersion's number (22105, 22907 …); 0: unknown */
    const char *name;     /* its file, borrowed from the loader; "" the program itself */
};

/* The function behind the wrapper of that name ("ncclCommInitRank") that was called from caller,
 * and whose NCCL it is. Of a wrapper that dlsym has handed out: that which dlsym has found
 * (bound.h). Else searched in this order: what comes behind the shim; what the caller's object
 * would have reached; a loaded libnccl.so.2 of any visibility; and at last libnccl.so.2 as the
 * loader would find it. A library between the shim and NCCL is called as without us. NULL: none;
 * never our wrapper. */
void *shim_resolve(const char *name, const void *caller, struct shim_nccl *nccl);

/* The NCCL that holds an address, of those that shim_resolve has found; NULL: none. No lock, no
 * allocation. */
const struct shim_nccl *shim_nccl_at(const void *address);

#endif
