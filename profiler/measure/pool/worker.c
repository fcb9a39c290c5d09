/* worker.c: what the processes of the pool do. */
#include "measure/pool/worker.h"

#include <errno.h>
#include <sys/socket.h>

/* Returns 1 with the word, 0: the pool is gone. */
static int hear(int fd, char *word)
{
    ssize_t got;

    while ((got = recv(fd, word, 1, 0)) < 0 && errno == EINTR)
        ;
    return got == 1;
}

static void say(int fd, char word)
{
    send(fd, &word, 1, MSG_NOSIGNAL);
}

/* A mover that can't be opened is tried again at the next run. */
static int run_lane(const struct tccl_worker_job *job, void **state, bool *opened)
{
    struct tccl_lane *lane = job->lane;
    struct tccl_error *err = &lane->error;

    if (!*opened && job->mover->open(job->stage, job->device, job->place, state, err) < 0)
        return -1;
    *opened = true;
    if (job->mover->prepare(*state, lane->transfer, err) < 0)
        return -1;
    return job->mover->move(*state, lane, err);
}

void tccl_worker_body(int fd, void *context)
{
    const struct tccl_worker_job *job = context;
    void *state = NULL;
    bool opened = false;
    char word;

    while (hear(fd, &word)) {
        job->lane->fd = fd;
        job->lane->result = run_lane(job, &state, &opened);
        say(fd, TCCL_LANE_DONE);
    }
    if (opened)
        job->mover->close(state);
}

void tccl_keeper_body(int fd, void *context)
{
    const struct tccl_worker_job *job = context;
    char word;

    job->lane->result = job->mover->keep(job->stage, job->device.index, &job->lane->error);
    if (job->lane->result == 0)
        atomic_fetch_add(&tccl_stage_loan(job->stage, job->device.index)->turn, 1);
    say(fd, TCCL_LANE_DONE);
    while (hear(fd, &word))
        ;
}
