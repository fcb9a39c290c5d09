/* mover-tcp.c: moves the data of a NIC by TCP: one thread drives some connections, as NCCL's proxy
 * does. Without a peer the other end is a thread of this process, over 127.0.0.1. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/peer/peer.h"
#include "measure/pool/mover.h"

enum {
    STREAMS = 4,         /* to a peer: switches and links that spread by connection get some */
    CONNECT_MS = 5000,   /* to reach the peer, and its answer; */
    RECONNECT_MS = 1000, /* after it was lost */
    STALL_MS = 3000,     /* without a byte: the peer is lost */
    DRAIN_MS = 500,      /* for what is under way at the end of a run */
    POLL_MS = 1,
};

struct state {
    struct tccl_seat seat;
    bool sends, lost;
    int n_streams; /* 0: not connected */
    struct tccl_peer_stream streams[STREAMS];
    struct tccl_peer_loop *loop;
};

static void disconnect(void *context)
{
    struct state *state = context;
    for (int i = 0; i < state->n_streams; i++)
        tccl_peer_stream_close(&state->streams[i]);
    state->n_streams = 0;
    tccl_peer_loop_close(state->loop, NULL);
    state->loop = NULL;
}

static int lose(struct state *state, struct tccl_error *err)
{
    char host[TCCL_PEER_HOST];
    uint16_t port;
    disconnect(state);
    state->lost = true;
    if (!*state->seat.workspace->settings.peer)
        return tccl_fail(err, "loopback: connection lost");
    if (tccl_peer_address(state->seat.workspace->settings.peer, false, host, &port, err) != 0)
        return -1;
    return tccl_fail(err, "peer %s:%u: connection lost (is tccl-profile peer still running there?)",
                     host, port);
}

static int connect_peer(struct state *state, struct tccl_error *err)
{
    const struct tccl_workspace_settings *settings = &state->seat.workspace->settings;
    int64_t deadline = tccl_now_ms() + (state->lost ? RECONNECT_MS : CONNECT_MS);
    char interface[TCCL_NAME];
    tccl_nic_interface(state->seat.workspace->site.machine.nics[state->seat.device.index].name,
                       interface);
    while (state->n_streams < STREAMS) {
        int fd = tccl_peer_connect(settings->peer, interface, &settings->trust, NULL, NULL,
                                   deadline, err);
        if (fd < 0) {
            disconnect(state);
            state->lost = true;
            return -1;
        }
        tccl_peer_stream_begin(&state->streams[state->n_streams++], fd, TCCL_PEER_WINDOW / STREAMS);
    }
    state->lost = false;
    return 0;
}

/* Is what is open still good? A peer that was ended has left word. */
static bool is_connected(const struct state *state)
{
    for (int i = 0; i < state->n_streams; i++)
        if (!tccl_peer_stream_alive(&state->streams[i]))
            return false;
    return state->n_streams > 0;
}

static int make_connected(struct state *state, struct tccl_error *err)
{
    int fd;
    if (is_connected(state))
        return 0;
    disconnect(state);
    if (*state->seat.workspace->settings.peer)
        return connect_peer(state, err);
    state->loop = tccl_peer_loop_open(&fd, err);
    if (!state->loop)
        return -1;
    tccl_peer_stream_begin(&state->streams[0], fd, TCCL_PEER_WINDOW);
    state->n_streams = 1;
    return 0;
}

static int tcp_prepare(void *context, tccl_transfer transfer, struct tccl_error *err)
{
    struct state *state = context;
    struct tccl_device memory = tccl_transfer_target(transfer);
    size_t size = state->seat.workspace->settings.region;
    if (memory.kind != TCCL_MEMORY)
        return tccl_fail(err,
                         "NIC %d: TCP can't reach the memory of a GPU: no GPUDirect without "
                         "RDMA",
                         state->seat.device.index);
    unsigned char *region =
        tccl_workspace_region(state->seat.workspace, memory, state->seat.place, err);
    if (!region || make_connected(state, err) != 0)
        return -1;
    state->sends = tccl_transfer_reads(transfer);
    for (int i = 0; i < state->n_streams; i++) {
        state->streams[i].region = region + size / (size_t)state->n_streams * (size_t)i;
        state->streams[i].size = size / (size_t)state->n_streams;
        state->streams[i].at = 0;
    }
    return 0;
}

static uint64_t moved_so_far(const struct state *state)
{
    uint64_t total = 0;
    for (int i = 0; i < state->n_streams; i++)
        total += tccl_peer_stream_moved(&state->streams[i]);
    return total;
}

/* A step of every stream. Returns 1, 0 or -1, as for one. */
static int step(struct state *state, bool more)
{
    int any = 0;
    for (int i = 0; i < state->n_streams; i++) {
        struct tccl_peer_stream *stream = &state->streams[i];
        int rc = state->sends ? tccl_peer_stream_send(stream, more)
                              : tccl_peer_stream_receive(stream, more);
        if (rc < 0)
            return -1;
        any |= rc;
    }
    return any;
}

static void rest(const struct state *state)
{
    struct pollfd ready[STREAMS];
    for (int i = 0; i < state->n_streams; i++)
        ready[i] = tccl_peer_stream_poll(&state->streams[i]);
    poll(ready, (nfds_t)state->n_streams, POLL_MS);
}

/* What is under way must not count in the next run: waits for it, or gives the connections up. */
static void drain(struct state *state, const struct tccl_member *member)
{
    int64_t end = tccl_now_ns() + (int64_t)DRAIN_MS * 1000000;
    if (end > tccl_member_deadline(member))
        end = tccl_member_deadline(member);
    for (;;) {
        bool quiet = true;
        for (int i = 0; i < state->n_streams; i++)
            quiet = quiet && tccl_peer_stream_quiet(&state->streams[i]);
        if (quiet)
            return;
        int rc = step(state, false);
        if (rc < 0 || tccl_now_ns() > end) {
            disconnect(state);
            return;
        }
        if (rc == 0)
            rest(state);
    }
}

static int tcp_move(void *context, struct tccl_member *member, struct tccl_error *err)
{
    struct state *state = context;
    uint64_t before = moved_so_far(state);
    int64_t last = tccl_member_wait(member);
    if (last < 0)
        return 0;
    do {
        int rc = step(state, true);
        int64_t now = tccl_now_ns();
        if (rc < 0 || now - last > (int64_t)STALL_MS * 1000000)
            return lose(state, err);
        if (rc > 0)
            last = now;
        else
            rest(state);
    } while (tccl_member_moved(member, moved_so_far(state) - before));
    drain(state, member);
    return 0;
}

const struct tccl_mover tccl_mover_tcp = {
    .size = sizeof(struct state),
    .prepare = tcp_prepare,
    .move = tcp_move,
    .close = disconnect,
};
