/* peer-end.c: the heads of blocks on a connection to the peer, and its socket options. */
#include "measure/peer/peer-end.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { KIND_SHIFT = 56, QUIET_SECONDS = 10, PROBE_SECONDS = 5, PROBES = 3 };

void tccl_peer_put_number(uint64_t number, unsigned char bytes[static TCCL_PEER_HEAD])
{
    for (int i = 0; i < TCCL_PEER_HEAD; i++)
        bytes[i] = (unsigned char)(number >> (8 * (TCCL_PEER_HEAD - 1 - i)));
}

uint64_t tccl_peer_get_number(const unsigned char bytes[static TCCL_PEER_HEAD])
{
    uint64_t number = 0;

    for (int i = 0; i < TCCL_PEER_HEAD; i++)
        number = number << 8 | bytes[i];
    return number;
}

void tccl_peer_put(const struct tccl_peer_head *head, unsigned char bytes[static TCCL_PEER_HEAD])
{
    tccl_peer_put_number((uint64_t)head->kind << KIND_SHIFT | head->bytes, bytes);
}

int tccl_peer_get(const unsigned char bytes[static TCCL_PEER_HEAD], struct tccl_peer_head *head,
                  struct tccl_error *err)
{
    uint64_t number = tccl_peer_get_number(bytes);
    uint64_t kind = number >> KIND_SHIFT, size = number & ((UINT64_C(1) << KIND_SHIFT) - 1);
    uint64_t most = kind == TCCL_PEER_DATA     ? TCCL_PEER_PIECE
                    : kind == TCCL_PEER_CREDIT ? TCCL_PEER_WINDOW
                                               : 0;

    if (size == 0 || size > most)
        return tccl_fail(err, "sends what is no block");
    *head = (struct tccl_peer_head){(enum tccl_peer_kind)kind, size};
    return 0;
}

static void set(int fd, int level, int option, int value)
{
    setsockopt(fd, level, option, &value, sizeof(value)); /* good to have, no more */
}

void tccl_peer_tune(int fd)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, QUIET_SECONDS);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_SECONDS);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
}
