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
static int run_member(const struct tccl_worker_job *job, void **state, bool *opened)
{
    struct tccl_member *member = job->member;
    struct tccl_error *err = &member->error;

    if (!*opened && job->mover->open(job->workspace, job->device, job->place, state, err) < 0)
        return -1;
    *opened = true;
    if (job->mover->prepare(*state, member->transfer, err) < 0)
        return -1;
    return job->mover->move(*state, member, err);
}

void tccl_worker_body(int fd, void *context)
{
    const struct tccl_worker_job *job = context;
    void *state = NULL;
    bool opened = false;
    char word;

    while (hear(fd, &word)) {
        job->member->fd = fd;
        job->member->result = run_member(job, &state, &opened);
        say(fd, TCCL_MEMBER_DONE);
    }
    if (opened)
        job->mover->close(state);
}

void tccl_keeper_body(int fd, void *context)
{
    const struct tccl_worker_job *job = context;
    char word;

    job->member->result = job->mover->keep(job->workspace, job->device.index, &job->member->error);
    if (job->member->result == 0)
        atomic_fetch_add(&tccl_workspace_loan(job->workspace, job->device.index)->turn, 1);
    say(fd, TCCL_MEMBER_DONE);
    while (hear(fd, &word))
        ;
}
