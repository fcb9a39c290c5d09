/* peer-end.h: what flows between a NIC's transfer and its other end (tccl-profile peer, or
 * ourselves over loopback) once both have said hello (far-hello.h). One TCP connection serves both
 * directions, one at a time, and is silent between runs:
 *
 *   to the other end:  blocks, each a head of 8 bytes: DATA n, and n bytes that it swallows; or
 *                      CREDIT n: it may send n bytes more.
 *   from the other end: after each DATA block, how many bytes it has swallowed in all (8 bytes);
 *                      and, for a CREDIT, that many bytes, of no meaning.
 *
 * So both sides know at any time what is under way, and nothing of one run is left to the next.
 * Numbers: most significant byte first. */
#ifndef TCCL_FAR_H
#define TCCL_FAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum {
    TCCL_FAR_PORT = 8518,
    TCCL_FAR_PROTOCOL = 1,
    TCCL_FAR_HEAD = 8,
    TCCL_FAR_PIECE = 256 * 1024,      /* bytes of a DATA block, at most */
    TCCL_FAR_WINDOW = 4 * 1024 * 1024 /* bytes under way on a connection, at most */
};

enum tccl_far_kind { TCCL_FAR_DATA = 1, TCCL_FAR_CREDIT = 2 };

struct tccl_far_head {
    enum tccl_far_kind kind;
    uint64_t bytes;
};

void tccl_far_put(const struct tccl_far_head *head, unsigned char bytes[static TCCL_FAR_HEAD]);
/* Returns 0, or -1 with err: no such kind, or beyond its limit. */
int tccl_far_get(const unsigned char bytes[static TCCL_FAR_HEAD], struct tccl_far_head *head,
                 struct tccl_error *err);

void tccl_far_put_number(uint64_t number, unsigned char bytes[static TCCL_FAR_HEAD]);
uint64_t tccl_far_get_number(const unsigned char bytes[static TCCL_FAR_HEAD]);

/* For a connection of either end: no waiting for full packets, and an end when the other machine is
 * gone without a word. */
void tccl_far_tune(int fd);

#endif
