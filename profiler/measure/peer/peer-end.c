#include "measure/peer/peer-end.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { KIND_SHIFT = 56, QUIET_SECONDS = 10, PROBE_SECONDS = 5, PROBES = 3 };

void tccl_far_put_number(uint64_t number, unsigned char bytes[static TCCL_FAR_HEAD])
{
    for (int i = 0; i < TCCL_FAR_HEAD; i++)
        bytes[i] = (unsigned char)(number >> (8 * (TCCL_FAR_HEAD - 1 - i)));
}

uint64_t tccl_far_get_number(const unsigned char bytes[static TCCL_FAR_HEAD])
{
    uint64_t number = 0;

    for (int i = 0; i < TCCL_FAR_HEAD; i++)
        number = number << 8 | bytes[i];
    return number;
}

void tccl_far_put(const struct tccl_far_head *head, unsigned char bytes[static TCCL_FAR_HEAD])
{
    tccl_far_put_number((uint64_t)head->kind << KIND_SHIFT | head->bytes, bytes);
}

int tccl_far_get(const unsigned char bytes[static TCCL_FAR_HEAD], struct tccl_far_head *head,
                 struct tccl_error *err)
{
    uint64_t number = tccl_far_get_number(bytes);
    uint64_t kind = number >> KIND_SHIFT, size = number & ((UINT64_C(1) << KIND_SHIFT) - 1);
    uint64_t most = kind == TCCL_FAR_DATA     ? TCCL_FAR_PIECE
                    : kind == TCCL_FAR_CREDIT ? TCCL_FAR_WINDOW
                                              : 0;

    if (size == 0 || size > most)
        return tccl_fail(err, "sends what is no block");
    *head = (struct tccl_far_head){(enum tccl_far_kind)kind, size};
    return 0;
}

static void set(int fd, int level, int option, int value)
{
    setsockopt(fd, level, option, &value, sizeof(value)); /* good to have, no more */
}

void tccl_far_tune(int fd)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, QUIET_SECONDS);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_SECONDS);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
}
