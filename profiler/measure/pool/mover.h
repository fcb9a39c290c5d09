/* mover.h: what a worker process does: one transfer, piece by piece, from the common start until it
 * is told to stop. One mover per kind of hardware (mover-NAME.c). All of it runs in the worker,
 * never in the process that leads the pool. */
#pragma once

#include "measure/pool/workspace.h"

/* ---- one run of a transfer set: all members start at one moment, and each one goes on until all
 * have moved their share. How much each had moved at which time is written down; only the window in
 * which all of them ran counts. ---- */

/* The side of the worker: its member in the run. Every wait has the run's deadline. */
struct tccl_member;

/* Says that this member is ready, and waits for the common start. Returns the time at which it may
 * begin (now, nanoseconds of CLOCK_MONOTONIC), or -1: the run was called off; return 0 then. */
int64_t tccl_member_wait(struct tccl_member *member);

/* Says that so many bytes in all have been moved since the start. Returns true: go on; false: all
 * have moved their share, or the run was called off, or its deadline is over: stop. Cheap; to be
 * called after each piece, at least every millisecond or so. A member that says 0 has not begun:
 * its start is put off to that moment. */
bool tccl_member_moved(struct tccl_member *member, uint64_t total);

/* When the run ends at the latest (nanoseconds of CLOCK_MONOTONIC), for hardware that needs a limit
 * of its own. */
int64_t tccl_member_deadline(const struct tccl_member *member);

/* ---- movers ---- */

/* Whose transfers a worker starts, and whose regions it may use. */
struct tccl_seat {
    struct tccl_workspace *workspace;
    struct tccl_device device;
    int place;
};

struct tccl_mover {
    /* The mover to take in place of this one, of which nothing else counts. NULL: this one. */
    const struct tccl_mover *(*choose)(const struct tccl_workspace *workspace, int device);

    /* In the keeper process of a GPU, once: fills tccl_workspace_loan(workspace, gpu) but for its
     * turn, and returns; the process then lives on, so that what it lent stays. err stays there as
     * long: a keeper that has to end itself later says in it why. NULL: no keepers are needed.
     * Returns 0, or -1 with err. */
    int (*keep)(struct tccl_workspace *workspace, int gpu, struct tccl_error *err);

    size_t size; /* of the state that a worker has of it, which begins with a tccl_seat; zeros */

    /* Once in each worker: makes the state ready. NULL: it is. Returns 0, or -1 with err. */
    int (*open)(void *state, struct tccl_error *err);

    /* Before each run: all that takes time (maps buffers, opens connections), kept for the next
     * time. Returns 0, or -1 with err. */
    int (*prepare)(void *state, tccl_transfer transfer, struct tccl_error *err);

    /* One run: gets ready, calls tccl_member_wait, and moves pieces, calling tccl_member_moved
     * after each, until that says to stop. Returns 0, or -1 with err. */
    int (*move)(void *state, struct tccl_member *member, struct tccl_error *err);

    void (*close)(void *state); /* what open and prepare made; NULL: nothing */
};

extern const struct tccl_mover tccl_mover_host; /* a core copies between memories */
extern const struct tccl_mover tccl_mover_cuda; /* a GPU; only in builds with CUDA */
extern const struct tccl_mover tccl_mover_tcp;  /* a NIC, by TCP */
extern const struct tccl_mover tccl_mover_nic;  /* a NIC: by RDMA with a peer if it can, or TCP */
