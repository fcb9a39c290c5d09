/* cuda-keeper.h: the process that keeps a GPU: it has the only context on it, lends its memory to
 * the other GPUs, and starts the copies that workers ask for (see cuda-request.h). */
#ifndef TCCL_CUDA_KEEPER_H
#define TCCL_CUDA_KEEPER_H

#include "measure/pool/workspace.h"

/* Sets the GPU up, fills its loan, and starts the thread that serves the GPU's requests until the
 * process ends; the thread ends the process if the GPU fails for good. Returns 0, or -1 with err.
 */
int tccl_cuda_keep(struct tccl_workspace *workspace, int gpu, struct tccl_error *err);

#endif
