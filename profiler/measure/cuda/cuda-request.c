/* cuda-request.c: requests from a GPU's workers to its keeper, in shared memory. */
#include "measure/cuda/cuda-request.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { ASK_NAP = 20 /* microseconds */ };

struct tccl_cuda_requests *tccl_cuda_requests_of(struct tccl_workspace *workspace, int gpu,
                                                 struct tccl_error *err)
{
    if (workspace->settings.region < sizeof(struct tccl_cuda_requests))
        return tccl_fail_null(err, "regions of %zu bytes are too small for the requests of a GPU",
                              workspace->settings.region);
    return tccl_workspace_region(workspace, (struct tccl_device){TCCL_GPU, (uint8_t)gpu}, 0, err);
}

static int fail_ended(struct tccl_error *err)
{
    return tccl_fail(err, "the process that holds the GPU ended");
}

void tccl_cuda_requests_open(struct tccl_cuda_requests *requests, bool first)
{
    if (first)
        memset(requests, 0, sizeof(*requests));
    sem_init(&requests->bell, 1, 0);
    requests->keeper = getpid();
    for (int i = 0; i < TCCL_WORKSPACE_PLACES; i++) {
        struct tccl_cuda_slot *slot = &requests->slots[i];
        uint32_t asked = atomic_load(&slot->asked);
        if (asked == atomic_load(&slot->answered) && atomic_load(&slot->ended) == slot->turn)
            continue;
        slot->error = (struct tccl_error){0};
        slot->result = fail_ended(&slot->error);
        atomic_store(&slot->ended, slot->turn);
        atomic_store(&slot->answered, asked);
    }
}

void tccl_cuda_nap(int microseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000L}, NULL);
}

int tccl_cuda_requests_ask(struct tccl_cuda_requests *requests, int place,
                           enum tccl_cuda_request request, double patience, struct tccl_error *err)
{
    struct tccl_cuda_slot *slot = &requests->slots[place];
    int64_t end = tccl_now_ns() + (int64_t)(patience * 1e9);
    uint32_t number = atomic_load(&slot->asked) + 1;
    slot->request = request;
    slot->error = (struct tccl_error){0};
    atomic_store(&slot->asked, number);
    sem_post(&requests->bell);
    while (atomic_load(&slot->answered) != number) {
        if (tccl_now_ns() > end) { /* it hangs in the driver; the pool puts another in its place */
            if (requests->keeper > 1)
                kill(requests->keeper, SIGKILL);
            return tccl_fail(err, "the process that holds the GPU did not answer within %g s",
                             patience);
        }
        if (tccl_cuda_requests_check(requests, err) != 0)
            return -1;
        tccl_cuda_nap(ASK_NAP);
    }
    return slot->result == 0 ? 0 : tccl_fail(err, "%s", slot->error.text);
}

int tccl_cuda_requests_check(const struct tccl_cuda_requests *requests, struct tccl_error *err)
{
    return kill(requests->keeper, 0) != 0 && errno == ESRCH ? fail_ended(err) : 0;
}

void tccl_cuda_slot_stop(struct tccl_cuda_slot *slot)
{
    __atomic_store_n(&slot->control.stop, slot->turn, __ATOMIC_SEQ_CST);
}
