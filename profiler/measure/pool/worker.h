/* worker.h: what the processes of the pool do: a worker waits for its member to be set up, runs it,
 * and waits again; a keeper lends a GPU's memory for as long as it lives. */
#ifndef TCCL_WORKER_H
#define TCCL_WORKER_H

#include "measure/pool/mover.h"
#include "measure/pool/run.h"

struct tccl_worker_job {
    struct tccl_workspace *workspace;
    const struct tccl_mover *mover;
    struct tccl_device device;
    int place;
    struct tccl_member *member; /* a keeper's: where it says why it can't lend */
};

/* Bodies of child processes (context: the job); return when the socket is closed. */
void tccl_worker_body(int fd, void *job);
void tccl_keeper_body(int fd, void *job);

#endif
