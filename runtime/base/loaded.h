/* loaded.h: loaded objects: their symbols, the NCCLs among them, and what dlsym has handed out. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- symbols ---- */

/* The symbol tables of loaded objects, read without dlsym, which the shim stands in front of. No
 * allocation; nothing here changes dlerror or errno. */

/* A loaded object of this namespace. */
struct shim_object {
    uintptr_t start, end; /* its loaded range */
    const char *name;     /* its file, borrowed from the loader; "" the program itself */
};

/* The object that holds an address. False: none of this namespace (dlmopen) does. */
bool shim_object_of(const void *address, struct shim_object *object);
/* The path, borrowed from the loader, of a loaded object whose file's name begins so; NULL: there
 * is none. */
const char *shim_loaded(const char *beginning);
/* Is the address one of the shim's? */
bool shim_is_ours(const void *address);

/* A symbol that an object defines: its address, or NULL. type: STT_FUNC, STT_OBJECT. Needs nothing
 * of libc's, nor that the shim is relocated. */
void *shim_symbol_in(uintptr_t base, const ElfW(Dyn) * dynamic, const char *name, unsigned type);

/* Does the object that holds the address define a function of that name? */
bool shim_defines(const void *address, const char *name);
/* Does any object but the shim define it, whatever its visibility to others? */
bool shim_defined_elsewhere(const char *name);

/* Where the object that holds the address keeps its pointer to another object's function, through
 * which it calls it. NULL: it has none, or this is write-protected (RELRO). */
void **shim_slot(const void *address, const char *name);

/* dlsym as it is without the shim: that of the next object behind it, which is libc's, libdl's, or
 * another library's that stands in front of these. Its caller is the shim: RTLD_NEXT means what
 * comes behind the shim. NULL, too, if no dlsym is found. */
void *shim_dlsym(void *handle, const char *name);
/* So are these: the shim is not linked to libdl, which would be one more file for each program. */
void *shim_dlopen(const char *name, int flags);
/* Fills in n pointers to functions, one after the other, by these names (arrays, not pointers,
 * which the loader would have to relocate in every program). Are the first ones there, so many as
 * are needed? */
enum { SHIM_FUNCTION = 40 };
bool shim_functions(void *handle, const char names[][SHIM_FUNCTION], size_t n, size_t needed,
                    void *functions);
void shim_dlclose(void *handle);
/* The function of that name behind the shim; known: it, or NULL before the first call. */
void *shim_next(void **known, const char *name);
/* The address of that dlsym, found at the first call; NULL: none. */
void *shim_find_dlsym(void) __attribute__((visibility("hidden")));
/* The same, once it was found; read by the assembly in hook/shim-lookup.c. */
extern void *shim_next_dlsym __attribute__((visibility("hidden")));

/* Has the loader relocated the shim? Programs can be there before: functions that choose a variant
 * for the processor (IFUNC) in libraries that are relocated first. Nothing of libc can be called,
 * and no data of other libraries be reached, in that state (early.c). */
bool shim_relocated(void);
/* The address of a function in the first library behind the shim that defines it, in that state.
 * NULL: it can't be found (no /proc). */
void *shim_early_function(const char *name);

/* ---- resolve ---- */

/* NCCL's own functions, those that a caller of a wrapper would have reached without us. */

/* The library (or program) that holds an NCCL. */
struct shim_nccl {
    uintptr_t start, end; /* its loaded range, which tells whose getenv it is */
    uint32_t version;     /* ncclGetVersion's number (22105, 22907 …); 0: unknown */
    const char *name;     /* its file, borrowed from the loader; "" the program itself */
};

/* The function behind the wrapper of that name ("ncclCommInitRank") that was called from caller,
 * and whose NCCL it is. Of a wrapper that dlsym has handed out: that which dlsym has found
 * (bound). Else searched in this order: what comes behind the shim; what the caller's object
 * would have reached; a loaded libnccl.so.2 of any visibility; and at last libnccl.so.2 as the
 * loader would find it. A library between the shim and NCCL is called as without us. NULL: none;
 * never our wrapper. */
void *shim_resolve(const char *name, const void *caller, struct shim_nccl *nccl);

/* The NCCL that holds an address, of those that shim_resolve has found; NULL: none. No lock, no
 * allocation. */
const struct shim_nccl *shim_nccl_at(const void *address);

/* ---- bound ---- */

/* Functions of particular NCCLs, which programs have got from dlsym. Each has an entry of its own
 * in front of the wrapper (hook/shim-lookup.c), as the wrapper can't tell by its caller whose it
 * is: ctypes calls from libffi. Written without locks; what is bound stays so. */

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
