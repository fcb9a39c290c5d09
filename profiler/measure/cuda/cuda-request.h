/* cuda-request.h: where the workers of a GPU ask its keeper for what only the keeper can do. A GPU
 * runs kernels of one process at a time (those of several take turns, some milliseconds each), so
 * transfers that one GPU starts run together only out of one process: its keeper. Each worker then
 * starts, watches and stops its own transfer through the control words here, which the kernel reads
 * and writes itself. The requests lie in the workspace's memory of the GPU, at its NUMA node. */
#pragma once

#include <semaphore.h>

#include "measure/cuda/copy-job.h"
#include "measure/pool/workspace.h"

enum tccl_cuda_request { TCCL_CUDA_PREPARE, TCCL_CUDA_LAUNCH };

/* One worker's, by its place. What is not atomic belongs to the worker until asked grows, and to
 * the keeper until answered follows. */
struct tccl_cuda_slot {
    _Alignas(64) struct tccl_copy_control control; /* the GPU reads vectors of it */
    _Atomic uint32_t asked, answered;              /* numbers of requests */
    _Atomic uint32_t ended;                        /* = turn: nothing runs any more */
    uint32_t request;
    uint32_t turn; /* of the run that is launched; grows with each */
    tccl_transfer transfer;
    int64_t limit; /* nanoseconds that what is launched may live */
    int result;
    struct tccl_error error; /* where result is -1 */
};

struct tccl_cuda_requests {
    sem_t bell;
    pid_t keeper;
    struct tccl_cuda_slot slots[TCCL_WORKSPACE_PLACES];
};

/* Returns NULL with err. Same address in all processes of the workspace. */
struct tccl_cuda_requests *tccl_cuda_requests_of(struct tccl_workspace *workspace, int gpu,
                                                 struct tccl_error *err);

/* In the keeper, before it lends: clears the requests; what was asked of an earlier keeper is
 * answered with its end. */
void tccl_cuda_requests_open(struct tccl_cuda_requests *requests, bool first);

/* In the worker: asks and waits for the answer, patience seconds; a keeper that has not answered
 * then is killed. Returns 0, or -1 with err. */
int tccl_cuda_requests_ask(struct tccl_cuda_requests *requests, int place,
                           enum tccl_cuda_request request, double patience, struct tccl_error *err);

/* Stops the run of the slot's turn. */
void tccl_cuda_slot_stop(struct tccl_cuda_slot *slot);

/* Has the keeper ended, and has the pool seen that? Returns 0, or -1 with err. */
int tccl_cuda_requests_check(const struct tccl_cuda_requests *requests, struct tccl_error *err);

void tccl_cuda_nap(int microseconds);

/* The process that keeps a GPU (cuda-keeper.c) has the only context on it, lends its memory to the
 * other GPUs, and starts the copies that workers ask for. This sets the GPU up, fills its loan, and
 * starts the thread that serves the GPU's requests until the process ends; the thread ends the
 * process if the GPU fails for good. Returns 0, or -1 with err. */
int tccl_cuda_keep(struct tccl_workspace *workspace, int gpu, struct tccl_error *err);
