/* early.h: before the loader has relocated the shim. Programs can be there already: functions that
 * choose a variant for the processor (IFUNC) in libraries that are relocated first. Nothing of libc
 * can be called, and no data of other libraries be reached, in this state. */
#ifndef SHIM_EARLY_H
#define SHIM_EARLY_H

#include <stdbool.h>

/* Has the shim been relocated? */
bool shim_relocated(void);

/* The address of a function in the first library behind the shim that defines it, in that state.
 * NULL: it can't be found (no /proc). */
void *shim_early_function(const char *name);

#endif
