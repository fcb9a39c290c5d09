/* bound.h: functions of particular NCCLs, which programs have got from dlsym. Each has an entry of
 * its own in front of the wrapper (hook/shim-lookup.c), as the wrapper can't tell by its caller
 * whose it is: ctypes calls from libffi. Written without locks; what is bound stays so. */
#ifndef SHIM_BOUND_H
#define SHIM_BOUND_H

#include <stdbool.h>
#include <stdint.h>

/* All wrappers. */
#define SHIM_WRAPPED(X)                                                                            \
    X(ncclGetUniqueId)                                                                             \
    X(ncclCommInitRank)                                                                            \
    X(ncclCommInitRankConfig)                                                                      \
    X(ncclCommInitRankScalable)                                                                    \
    X(ncclCommInitAll)                                                                             \
    X(ncclCommSplit)                                                                               \
    X(ncclCommShrink)                                                                              \
    X(ncclCommGrow)                                                                                \
    X(ncclCommFinalize)                                                                            \
    X(ncclCommDestroy)                                                                             \
    X(ncclCommAbort)                                                                               \
    X(ncclAllReduce)                                                                               \
    X(ncclAllGather)                                                                               \
    X(ncclReduceScatter)                                                                           \
    X(ncclBroadcast)                                                                               \
    X(ncclBcast)                                                                                   \
    X(ncclReduce)                                                                                  \
    X(ncclAllReduceConfig)                                                                         \
    X(ncclAllGatherConfig)                                                                         \
    X(ncclReduceScatterConfig)                                                                     \
    X(ncclBroadcastConfig)                                                                         \
    X(ncclReduceConfig)                                                                            \
    X(ncclGroupStart)                                                                              \
    X(ncclGroupEnd)

#define SHIM_BOUND_COPIES 8 /* for the assembler, too */
#define SHIM_COUNT(name) +1
enum { SHIM_WRAPPERS = 0 SHIM_WRAPPED(SHIM_COUNT) };

/* A wrapper's number in that list; -1: there is none of that name, which has four letters at least.
 */
int shim_wrapper_number(const char *name);

/* Keeps what wrapper number stands for in the library that is loaded at start: real, the function
 * that dlsym found; in, an address in the NCCL that has it (the library that defines real may be
 * one in front of NCCL). Returns the number of the entry (copy × SHIM_WRAPPERS + wrapper), or -1:
 * there are SHIM_BOUND_COPIES others. */
int shim_bind(int wrapper, uintptr_t start, void *real, const void *in);

/* Set by an entry on the way to its wrapper: 1 + its number. Each wrapper takes it first of all. */
extern __thread int shim_bound_entry __attribute__((visibility("hidden")));

/* What the calling thread's wrapper was entered for, once. Returns real, and *in; NULL: it was
 * called by its own name. */
void *shim_bound_take(const void **in);

#endif
