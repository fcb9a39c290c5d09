/* mover-verbs.c: moves the data of a NIC by RDMA: this side reads from and writes to the peer's
 * memory, several pieces at a time. What it reads reaches our memory as what a peer would write
 * there. The TCP connection of the hello stays open: the peer serves as long as it does. */
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "measure/peer/peer.h"
#include "measure/pool/mover.h"

enum {
    PIECE = 512 * 1024,
    TARGETS = TCCL_MAX_MEMORIES + TCCL_MAX_GPUS,
    CONNECT_MS = 10000, /* devices take their time to register memory */
    RECONNECT_MS = 2000,
    STALL_MS = 3000,
    DRAIN_MS = 500,
};

struct state {
    struct tccl_seat seat;
    bool lost, inward;
    int fd; /* -1: not connected */
    struct tccl_rdma *rdma;
    uint64_t peer_bytes;
    int memories[TARGETS]; /* what rdma calls them; -1: not registered */
    int memory;            /* of this transfer */
    struct tccl_gpu_memory gpus[TCCL_MAX_GPUS];
    /* This run, in pieces. */
    uint64_t begun, ended;
};

static void disconnect(void *context)
{
    struct state *state = context;
    tccl_rdma_close(state->rdma);
    state->rdma = NULL;
    tccl_cleanup_close(&state->fd);
    state->fd = -1;
    for (int i = 0; i < TARGETS; i++)
        state->memories[i] = -1;
}

static int verbs_open(void *context, struct tccl_error *err UNUSED)
{
    struct state *state = context;
    state->fd = -1;
    disconnect(state);
    return 0;
}

static int connect_peer(struct state *state, struct tccl_error *err)
{
    const struct tccl_workspace_settings *settings = &state->seat.workspace->settings;
    int patience = state->lost ? RECONNECT_MS : CONNECT_MS;
    struct tccl_rdma_end ours, theirs;
    state->lost = true;
    state->rdma = tccl_rdma_open(
        state->seat.workspace->site.machine.nics[state->seat.device.index].name, err);
    if (!state->rdma)
        return -1;
    tccl_rdma_describe(state->rdma, &ours);
    state->fd = tccl_peer_connect(settings->peer, "", &settings->trust, &ours, &theirs,
                                  tccl_now_ms() + patience, err);
    if (state->fd < 0 || tccl_rdma_join(state->rdma, &theirs, err) != 0)
        return -1;
    if (theirs.bytes < PIECE)
        return tccl_fail(err, "peer %s: its memory for RDMA is too small", settings->peer);
    state->peer_bytes = theirs.bytes;
    state->lost = false;
    return 0;
}

static int make_connected(struct state *state, struct tccl_error *err)
{
    char byte;
    /* Nothing is ever said on it after the hello: what can be read is its end. */
    if (state->fd >= 0 && recv(state->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        return 0;
    disconnect(state);
    if (connect_peer(state, err) == 0)
        return 0;
    disconnect(state);
    return -1;
}

static size_t region_of(const struct state *state)
{
    return state->seat.workspace->settings.region;
}

static int register_gpu(struct state *state, int gpu, struct tccl_error *err)
{
    struct tccl_gpu_memory *memory = &state->gpus[gpu];
    const char *busid = state->seat.workspace->site.gpu_busid[gpu];
    if (!memory->address && tccl_gpu_memory_get(busid, region_of(state), memory, err) != 0)
        return -1;
    int number =
        tccl_rdma_register(state->rdma, memory->address, region_of(state), memory->dmabuf, err);
    return number >= 0 ? number
                       : tccl_fail_in(err, "GPUDirect to GPU %d (is nvidia_peermem loaded?)", gpu);
}

static int register_target(struct state *state, struct tccl_device target, struct tccl_error *err)
{
    bool gpu = target.kind == TCCL_GPU;
    int *memory = &state->memories[gpu ? TCCL_MAX_MEMORIES + target.index : target.index];
    if (*memory < 0 && gpu) {
        *memory = register_gpu(state, target.index, err);
    } else if (*memory < 0) {
        void *region = tccl_workspace_region(state->seat.workspace, target, state->seat.place, err);
        *memory = region ? tccl_rdma_register(state->rdma, region, region_of(state), -1, err) : -1;
    }
    state->memory = *memory;
    return *memory < 0 ? -1 : 0;
}

static int verbs_prepare(void *context, tccl_transfer transfer, struct tccl_error *err)
{
    struct state *state = context;
    if (region_of(state) < PIECE)
        return tccl_fail(err, "regions of %zu bytes are too small for RDMA", region_of(state));
    if (make_connected(state, err) != 0 ||
        register_target(state, tccl_transfer_target(transfer), err) != 0)
        return -1;
    state->inward = !tccl_transfer_reads(transfer);
    return 0;
}

/* Returns how many pieces have ended, or -1 with err. */
static int step(struct state *state, bool more, struct tccl_error *err)
{
    while (more && state->begun - state->ended < TCCL_RDMA_DEPTH) {
        /* Both memories are used round and round. */
        uint64_t here = state->begun % (region_of(state) / PIECE) * PIECE;
        uint64_t there = state->begun % (state->peer_bytes / PIECE) * PIECE;
        if (tccl_rdma_start(state->rdma, state->inward, state->memory, here, there, PIECE, err) !=
            0)
            return -1;
        state->begun++;
    }
    int ended = tccl_rdma_ended(state->rdma, err);
    if (ended > 0)
        state->ended += (uint64_t)ended;
    return ended;
}

static int verbs_move(void *context, struct tccl_member *member, struct tccl_error *err)
{
    struct state *state = context;
    struct tccl_error why = {0};
    int64_t last;
    state->begun = state->ended = 0;
    if (tccl_member_wait(member) < 0)
        return 0;
    last = tccl_now_ms();
    do {
        int ended = step(state, true, &why);
        if (ended < 0 || tccl_now_ms() - last > STALL_MS) {
            disconnect(state);
            state->lost = true;
            return tccl_fail(
                err, "peer %.100s: connection lost (is tccl-profile peer still running there?)%s%s",
                state->seat.workspace->settings.peer, why.text[0] ? ": " : "", why.text);
        }
        if (ended > 0)
            last = tccl_now_ms();
    } while (tccl_member_moved(member, state->ended * PIECE));
    /* No piece may go on into the next run. */
    int64_t end = tccl_now_ms() + DRAIN_MS, deadline = tccl_member_deadline(member) / 1000000;
    int rc = 0;
    if (end > deadline)
        end = deadline;
    while (rc >= 0 && state->ended < state->begun && tccl_now_ms() <= end)
        rc = step(state, false, NULL);
    if (state->ended < state->begun)
        disconnect(state);
    return 0;
}

static const struct tccl_mover verbs = {
    .size = sizeof(struct state),
    .open = verbs_open,
    .prepare = verbs_prepare,
    .move = verbs_move,
    .close = disconnect,
};

/* RDMA is for RDMA devices, and where there is a peer. */
static const struct tccl_mover *choose(const struct tccl_workspace *workspace, int nic)
{
    return workspace->settings.peer[0] && tccl_rdma_is_here(workspace->site.machine.nics[nic].name)
               ? &verbs
               : &tccl_mover_tcp;
}

const struct tccl_mover tccl_mover_nic = {.choose = choose};
