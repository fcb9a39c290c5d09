/* path-extern.h: commands of tccl-path that are programs of their own. */
#ifndef TCCL_PATH_EXTERN_H
#define TCCL_PATH_EXTERN_H

#include "base/error.h"

/* Runs tccl-path-NAME in place of this program: that of the same build folder, else the installed
 * one. argv[0] is the command's name. Returns only with an error: -1 and err. */
int path_extern(const char *name, char **argv, struct tccl_error *err);

#endif
