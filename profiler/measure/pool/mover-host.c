/* mover-host.c: a core stands for a GPU and copies between memories: out of a buffer that its cache
 * holds into its region of another memory, past the caches, or from that region into the buffer. */
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "measure/pool/mover.h"

enum { BUFFER = 16 << 10, PIECE = 256 << 10, LINE = 64 };

static _Alignas(4096) unsigned char buffer[BUFFER]; /* of this worker */

struct state {
    struct tccl_seat seat;
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

static int host_prepare(void *context, tccl_transfer transfer, struct tccl_error *err)
{
    struct state *state = context;
    struct tccl_device target = tccl_transfer_target(transfer);
    size_t region = state->seat.workspace->settings.region;
    memset(buffer, 0x5a, BUFFER);
    state->reads = tccl_transfer_reads(transfer);
    state->region = tccl_workspace_region(state->seat.workspace, target, state->seat.place, err);
    state->bytes = region / PIECE * PIECE;
    state->offset = 0;
    if (state->bytes == 0)
        return tccl_fail(err, "regions of %zu bytes: at least %d are needed", region, PIECE);
    return state->region ? 0 : -1;
}

static int host_move(void *context, struct tccl_member *member, struct tccl_error *err UNUSED)
{
    struct state *state = context;
    uint64_t total = 0;
    if (tccl_member_wait(member) < 0)
        return 0;
    do {
        unsigned char *piece = state->region + state->offset;
        for (size_t at = 0; at < PIECE; at += BUFFER) {
            if (state->reads) {
                memcpy(buffer, piece + at, BUFFER);
                __asm__ volatile("" : : "r"(buffer) : "memory"); /* the bytes count as used */
            } else
                write_through(piece + at, buffer, BUFFER);
        }
        state->offset = (state->offset + PIECE) % state->bytes;
        total += PIECE;
    } while (tccl_member_moved(member, total));
    return 0;
}

const struct tccl_mover tccl_mover_host = {
    .size = sizeof(struct state),
    .prepare = host_prepare,
    .move = host_move,
};
