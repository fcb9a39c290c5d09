/* mover-host.c: a core stands for a GPU and copies between memories: out of a buffer that its cache
 * holds into its region of another memory, past the caches, or from that region into the buffer. */
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "measure/pool/mover.h"

enum { BUFFER = 16 << 10, PIECE = 256 << 10, LINE = 64 };

struct state {
    struct tccl_workspace *workspace;
    int place;
    unsigned char *buffer;
    bool reads;
    unsigned char *region;
    size_t bytes, offset; /* the region's, whole pieces; where the next piece is */
};

#ifdef __SSE2__
static void write_through(unsigned char *to, const unsigned char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LINE) {
        const __m128i *in = (const void *)(from + at);
        __m128i *out = (void *)(to + at);
        __m128i a = _mm_load_si128(in), b = _mm_load_si128(in + 1), c = _mm_load_si128(in + 2),
                d = _mm_load_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();
}
#else
static void write_through(unsigned char *to, const unsigned char *from, size_t bytes)
{
    memcpy(to, from, bytes);
}
#endif

static void read_in(unsigned char *to, const unsigned char *from, size_t bytes)
{
    memcpy(to, from, bytes);
    __asm__ volatile("" : : "r"(to) : "memory"); /* the bytes count as used */
}

static void move_piece(struct state *state)
{
    unsigned char *piece = state->region + state->offset;

    for (size_t at = 0; at < PIECE; at += BUFFER) {
        if (state->reads)
            read_in(state->buffer, piece + at, BUFFER);
        else
            write_through(piece + at, state->buffer, BUFFER);
    }
    state->offset = (state->offset + PIECE) % state->bytes;
}

static int host_open(struct tccl_workspace *workspace, struct tccl_device device, int place,
                     void **out, struct tccl_error *err)
{
    struct state *state = calloc(1, sizeof(*state));

    (void)device;
    if (state)
        state->buffer = aligned_alloc(4096, BUFFER);
    if (!state || !state->buffer) {
        free(state);
        return tccl_fail(err, "out of memory");
    }
    memset(state->buffer, 0x5a, BUFFER);
    state->workspace = workspace;
    state->place = place;
    *out = state;
    return 0;
}

static int host_prepare(void *context, tccl_transfer transfer, struct tccl_error *err)
{
    struct state *state = context;
    struct tccl_device target = tccl_transfer_target(transfer);
    size_t region = tccl_workspace_settings(state->workspace)->region;

    state->reads = tccl_transfer_reads(transfer);
    state->region = target.kind == TCCL_GPU
                        ? tccl_workspace_gpu(state->workspace, target.index, state->place, err)
                        : tccl_workspace_memory(state->workspace, target.index, state->place, err);
    state->bytes = region / PIECE * PIECE;
    state->offset = 0;
    if (state->bytes == 0)
        return tccl_fail(err, "regions of %zu bytes: at least %d are needed", region, PIECE);
    return state->region ? 0 : -1;
}

static int host_move(void *context, struct tccl_member *member, struct tccl_error *err)
{
    struct state *state = context;
    uint64_t total = 0;

    (void)err;
    if (tccl_member_wait(member) < 0)
        return 0;
    do {
        move_piece(state);
        total += PIECE;
    } while (tccl_member_moved(member, total));
    return 0;
}

static void host_close(void *context)
{
    struct state *state = context;

    free(state->buffer);
    free(state);
}

const struct tccl_mover tccl_mover_host = {
    .open = host_open,
    .prepare = host_prepare,
    .move = host_move,
    .close = host_close,
};
