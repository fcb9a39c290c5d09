/* exec-check.h: tccld --check is tccl-check. */
#ifndef TCCL_EXEC_CHECK_H
#define TCCL_EXEC_CHECK_H

#include <stdbool.h>

/* Is --check among the arguments? */
bool wants_check(int argc, char **argv);

/* Becomes tccl-check, with all arguments but --check (and --foreground): the one beside this
 * program, in the build tree, or in PATH. Returns only if there is none: prints why, and returns
 * the exit status. */
int exec_check(int argc, char **argv);

#endif
