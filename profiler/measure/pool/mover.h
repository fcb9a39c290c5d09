/* mover.h: what a worker process does: one transfer, piece by piece, from the common start until it
 * is told to stop. One mover per kind of hardware (mover-NAME.c). All of it runs in the worker,
 * never in the process that leads the pool. */
#ifndef TCCL_MOVER_H
#define TCCL_MOVER_H

#include "measure/pool/member.h"
#include "measure/pool/workspace.h"

struct tccl_mover {
    /* The mover to take in place of this one, of which nothing else counts. NULL: this one. */
    const struct tccl_mover *(*choose)(const struct tccl_workspace *workspace, int device);

    /* In the keeper process of a GPU, once: fills tccl_workspace_loan(workspace, gpu) but for its
     * turn, and returns; the process then lives on, so that what it lent stays. err stays there as
     * long: a keeper that has to end itself later says in it why. NULL: no keepers are needed.
     * Returns 0, or -1 with err. */
    int (*keep)(struct tccl_workspace *workspace, int gpu, struct tccl_error *err);

    /* Once in each worker: it will start the transfers of this device, and may use the regions of
     * its place. Returns 0 with *state, or -1 with err. */
    int (*open)(struct tccl_workspace *workspace, struct tccl_device device, int place,
                void **state, struct tccl_error *err);

    /* Before each run: all that takes time (maps buffers, opens connections), kept for the next
     * time. Returns 0, or -1 with err. */
    int (*prepare)(void *state, tccl_transfer transfer, struct tccl_error *err);

    /* One run: gets ready, calls tccl_member_wait, and moves pieces, calling tccl_member_moved
     * after each, until that says to stop. Returns 0, or -1 with err. */
    int (*move)(void *state, struct tccl_member *member, struct tccl_error *err);

    void (*close)(void *state);
};

extern const struct tccl_mover tccl_mover_host; /* a core copies between memories */
extern const struct tccl_mover tccl_mover_cuda; /* a GPU; only in builds with CUDA */
extern const struct tccl_mover tccl_mover_tcp;  /* a NIC, by TCP */
extern const struct tccl_mover tccl_mover_nic;  /* a NIC: by RDMA with a peer if it can, or TCP */

#endif
