/* symbols.h: the symbol tables of loaded objects, read without dlsym, which the shim stands in
 * front of. No allocation; nothing here changes dlerror or errno. */
#ifndef SHIM_SYMBOLS_H
#define SHIM_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

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

#endif
