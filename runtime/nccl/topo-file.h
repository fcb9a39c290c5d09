/* topo-file.h: the text of a topology file that leads NCCL's search (steer.h). */
#ifndef SHIM_TOPO_FILE_H
#define SHIM_TOPO_FILE_H

#include "nccl/layout.h"

/* Returns 1, with why if GPUs become direct that are not to (steer.h); or 0 with why: NCCL would
 * not read it. */
int shim_topo_file(const struct shim_layout *layout, struct shim_text *text, struct shim_why *why);

#endif
