/* mover-nic.c: moves the data of a NIC: by RDMA if it is an RDMA device and there is a
 * peer, else by TCP. */
#include <stdlib.h>

#include "measure/peer/rdma.h"
#include "measure/pool/mover.h"

struct state {
    const struct tccl_mover *mover;
    void *state;
};

bool tccl_nic_has_rdma(const struct tccl_workspace *workspace, int nic)
{
    return tccl_workspace_settings(workspace)->peer[0] &&
           tccl_rdma_is_here(tccl_workspace_site(workspace)->machine.nics[nic].name);
}

static int nic_open(struct tccl_workspace *workspace, struct tccl_device device, int place,
                    void **out, struct tccl_error *err)
{
    struct state *state = calloc(1, sizeof(*state));

    if (!state)
        return tccl_fail(err, "out of memory");
    state->mover = tccl_nic_has_rdma(workspace, device.index) ? &tccl_mover_verbs : &tccl_mover_tcp;
    if (state->mover->open(workspace, device, place, &state->state, err) < 0) {
        free(state);
        return -1;
    }
    *out = state;
    return 0;
}

static int nic_prepare(void *context, tccl_transfer transfer, struct tccl_error *err)
{
    struct state *state = context;

    return state->mover->prepare(state->state, transfer, err);
}

static int nic_move(void *context, struct tccl_member *member, struct tccl_error *err)
{
    struct state *state = context;

    return state->mover->move(state->state, member, err);
}

static void nic_close(void *context)
{
    struct state *state = context;

    state->mover->close(state->state);
    free(state);
}

const struct tccl_mover tccl_mover_nic = {
    .name = "nic",
    .open = nic_open,
    .prepare = nic_prepare,
    .move = nic_move,
    .close = nic_close,
};
