/* model-file.h: the file of a machine model that somebody names. */
#ifndef TCCL_MODEL_FILE_H
#define TCCL_MODEL_FILE_H

#include <limits.h>

#include "base/error.h"

/* Writes the path of the model that is named: a file as it is, or else, for a name without '/', one
 * of the models that are installed, or of the tests' for a program in its build folder. Returns 0,
 * or -1 with err: there is none, and which there are. */
int tccl_model_file(const char *name, char path[static PATH_MAX], struct tccl_error *err);

#endif
