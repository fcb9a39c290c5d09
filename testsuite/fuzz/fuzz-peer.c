/* What a tccl-profile peer hears, and what it says: the first byte says whether the rest is blocks
 * after the hello, a hello, an RDMA device's end, or an address. */
#include <sys/socket.h>

#include "base/clock.h"
#include "client/frame.h"
#include "fuzz.h"
#include "measure/peer/peer.h"

enum { STREAM_BYTES = 60000 };

/* A socket in which the input stands, with its end behind it; the other end stays open. */
static int open_input(const uint8_t *data, size_t size, int *other)
{
    int ends[2];
    if (size > STREAM_BYTES || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    if (write(ends[1], data, size) != (ssize_t)size || shutdown(ends[1], SHUT_WR) < 0)
        abort();
    *other = ends[1];
    return ends[0];
}

/* Bytes in the DATA blocks that the input begins with. */
static uint64_t count_bytes(const uint8_t *data, size_t size)
{
    uint64_t total = 0;
    while (size >= 8 && (data[0] == 1 || data[0] == 2)) {
        uint64_t bytes = 0;
        for (int i = 1; i < 8; i++)
            bytes = bytes << 8 | data[i];
        size_t left = size - 8, here = data[0] == 2 ? 0 : bytes < left ? bytes : left;
        total += here;
        data += 8 + here;
        size -= 8 + here;
    }
    return total;
}

static void serve_blocks(const uint8_t *data, size_t size)
{
    static const struct tccl_peer_limits limits = {0, 0};
    struct tccl_peer_count count;
    int other, fd = open_input(data, size, &other);
    if (fd < 0)
        return;
    int rc = tccl_peer_serve(fd, &limits, &count, ERR);
    FUZZ_CHECK(count.received <= count_bytes(data, size) && count.sent <= size * TCCL_PEER_WINDOW);
    FUZZ_CHECK(rc == 0 ? count.received == count_bytes(data, size) : check_err.text[0] != '\0');
    close(fd);
    close(other);
}

static void hear_hello(const uint8_t *data, size_t size)
{
    static const struct tccl_trust anybody = {.anybody = true};
    struct tccl_peer_guest guest;
    int other, fd = open_input(data, size, &other);
    if (fd < 0)
        return;
    /* No input can know the number used once. */
    FUZZ_CHECK(tccl_peer_hear(fd, &anybody, tccl_now_ms(), &guest, ERR) == -1 && check_err.text[0]);
    close(fd);
    close(other);
}

static void read_end(const uint8_t *data, size_t size)
{
    cleanup_json json_t *json = json_loadb((const char *)data, size, 0, NULL);
    json_t *again;
    struct tccl_rdma_end end, same = {0};
    if (tccl_rdma_from_json(json, &end, NULL) == 0) {
        again = tccl_rdma_to_json(&end);
        FUZZ_CHECK(tccl_rdma_from_json(again, &same, NULL) == 0);
        FUZZ_CHECK(same.number == end.number && same.key == end.key && same.bytes == end.bytes);
        FUZZ_CHECK(memcmp(same.gid, end.gid, sizeof(end.gid)) == 0 && end.number < 1U << 24);
        json_decref(again);
    }
}

static void read_address(const uint8_t *data, size_t size)
{
    char text[300], host[TCCL_PEER_HOST];
    uint16_t port;
    if (size >= sizeof(text))
        return;
    memcpy(text, data, size);
    text[size] = '\0';
    if (tccl_peer_address(text, false, host, &port, NULL) == 0)
        FUZZ_CHECK(port > 0 && *host && strstr(text, host));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const targets[])(const uint8_t *, size_t) = {serve_blocks, hear_hello, read_end,
                                                               read_address};
    if (size > 0)
        targets[data[0] & 3](data + 1, size - 1);
    return 0;
}

static void add_text(fuzz_add *add, void *context, char kind, const char *text)
{
    char input[512];
    snprintf(input, sizeof(input), "%c%s", kind, text);
    add(context, input, strlen(input));
}

static void add_blocks(fuzz_add *add, void *context)
{
    const uint64_t heads[] = {tccl_peer_head(TCCL_PEER_DATA, 100),
                              tccl_peer_head(TCCL_PEER_CREDIT, 1000)};
    uint8_t input[1 + 3 * (8 + 100)] = "0";
    size_t size = 1;
    for (int i = 0; i < 3; i++) {
        memcpy(input + size, &heads[0], 8);
        size += 8 + 100;
    }
    add(context, input, size);
    memcpy(input + 1, &heads[1], 8);
    add(context, input, 9);
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    static const char hello[] = "{\"v\":1,\"type\":\"measure\",\"protocol\":1,\"nonce\":\"0\"}";
    const struct tccl_rdma_end end = {
        .device = "mlx5_0", .mtu = 3, .reads = 16, .number = 17, .key = 5, .bytes = 100};
    cleanup_json json_t *json = tccl_rdma_to_json(&end);
    cleanup_free char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    uint8_t frame[sizeof(hello) + 5] = "1";
    if (!text)
        abort();
    tccl_frame_header(sizeof(hello) - 1, frame + 1);
    memcpy(frame + 5, hello, sizeof(hello) - 1);
    add(context, frame, sizeof(hello) + 4);
    add_blocks(add, context);
    add_text(add, context, '2', text);
    add_text(add, context, '3', "n1:8518");
    add_text(add, context, '3', "[fe80::1]:8518");
}
