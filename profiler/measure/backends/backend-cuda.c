/* backend-cuda.c: the back end "cuda": the GPUs of this machine copy, all members of a set at the
 * same time. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "measure/backends/backend-ops.h"
#include "measure/cuda/cuda-driver.h"
#include "measure/peer/peer.h"

/* Seconds until what an earlier run left must be gone. */
static const double left_patience = 10;

/* The driver clears up for some seconds after a process. */
static int find(const struct tccl_discover_options *what, struct tccl_found *found,
                struct tccl_error *err)
{
    int64_t until = tccl_now_ns() + (int64_t)(left_patience * 1e9);
    const struct timespec nap = {0, 100000000};
    for (;;) {
        int status = tccl_discover(what, found, err);
        /* Does a process of an earlier run, which ended or was killed, still have a GPU? */
        bool left = false;
        for (int i = 0; status == 0 && i < found->site.machine.n_gpus; i++)
            left |= found->n_users[i] > 0 && strncmp(found->user[i], "tccl ", 5) == 0;
        if (!left || tccl_now_ns() >= until)
            return status;
        nanosleep(&nap, NULL);
    }
}

static int look(struct tccl_pooled *pooled, const struct tccl_backend_options *options,
                struct tccl_error *err)
{
    const struct tccl_discover_options what = {.devices = options->devices};
    struct tccl_found *found = &pooled->found;
    struct tccl_cuda cuda;
    if (find(&what, found, err) < 0)
        return -1;
    if (found->recorded)
        return tccl_fail(err, "the topology is a recorded one: only this machine can be measured");
    /* Said at once, not by the processes that would fail at it later. */
    if (tccl_cuda_load(&cuda, err) != 0)
        return -1;
    tccl_cuda_unload(&cuda);
    for (int i = 0; i < found->site.machine.n_gpus; i++) {
        if (found->n_users[i] == 0)
            continue;
        if (!options->force)
            return tccl_fail(err,
                             "GPU %d (%s) is in use by %s: wait for its end, or measure next to it "
                             "with --force",
                             i, found->site.gpu_busid[i], found->user[i]);
        pooled->marks |= TCCL_MARK_BUSY;
    }
    if (!options->force && (found->marks & (TCCL_MARK_MIG | TCCL_MARK_MPS)))
        return tccl_fail(
            err,
            "%s: what is measured now is not what NCCL will have; end that, or measure "
            "all the same with --force, for reports only",
            found->marks & TCCL_MARK_MIG ? "a GPU is in MIG mode" : "MPS is running");
    pooled->marks |= found->marks;
    pooled->region = 16 << 20; /* what the buffers of NCCL's channels between two GPUs come to */
    const struct tccl_machine *machine = &found->site.machine;
    bool rdma = machine->n_nics > 0 && tccl_rdma_is_here(machine->nics[0].name);
    char turns[64] = "";
    if (pooled->marks & TCCL_MARK_STAND_IN)
        snprintf(turns, sizeof(turns), ", one GPU stands for %d that take turns on it",
                 machine->n_gpus);
    snprintf(pooled->conditions, sizeof(pooled->conditions), "%s%s%s",
             options->engine ? "copy engines" : "kernel copies",
             !options->peer ? ""
             : rdma         ? ", RDMA"
                            : ", TCP through host memory",
             turns);
    return 0;
}

static int cuda_open(const struct tccl_backend_options *options, struct tccl_backend *backend,
                     struct tccl_error *err)
{
    static const struct tccl_pooled_way way = {
        .look = look,
        .bind = true,
        .gpu = &tccl_mover_cuda,
        .nic = &tccl_mover_nic,
        .prepare_limit = 60, /* many GPUs without nvidia-persistenced start slowly */
    };
    return tccl_pooled_open(&way, options, backend, err);
}

static int cuda_can(const void *context, tccl_transfer transfer, struct tccl_error *err)
{
    const struct tccl_pooled *pooled = context;
    const struct tccl_machine *machine = &pooled->found.site.machine;
    struct tccl_device initiator = tccl_transfer_initiator(transfer);
    bool nic = initiator.kind == TCCL_NIC;
    if (tccl_machine_allows(machine, transfer, err) != 0)
        return -1;
    if (nic && !pooled->peer)
        return tccl_fail(err, "NICs are measured only against another node: --peer HOST, where "
                              "\"tccl-profile peer\" runs");
    if (nic && tccl_transfer_target(transfer).kind == TCCL_GPU &&
        !tccl_rdma_is_here(machine->nics[initiator.index].name))
        return tccl_fail(err,
                         "transfers between a NIC and a GPU need RDMA: %s has TCP, which goes "
                         "through host memory",
                         machine->nics[initiator.index].name);
    return 0;
}

const struct tccl_backend_ops tccl_backend_of_cuda = {
    .name = "cuda",
    .noise = 0.03,
    .open = cuda_open,
    .can = cuda_can,
    .others = tccl_pooled_others,
    .measure = tccl_pooled_measure,
    .close = tccl_pooled_close,
};
