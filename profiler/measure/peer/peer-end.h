/* peer-end.h: what flows between a NIC's transfer and its other end (tccl-profile peer, or
 * ourselves over loopback) once both have said hello (peer-hello.h). One TCP connection serves both
 * directions, one at a time, and is silent between runs:
 *
 *   to the other end:  blocks, each a head of 8 bytes: DATA n, and n bytes that it swallows; or
 *                      CREDIT n: it may send n bytes more.
 *   from the other end: after each DATA block, how many bytes it has swallowed in all (8 bytes);
 *                      and, for a CREDIT, that many bytes, of no meaning.
 *
 * So both sides know at any time what is under way, and nothing of one run is left to the next.
 * Numbers: most significant byte first. */
#ifndef TCCL_PEER_END_H
#define TCCL_PEER_END_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum {
    TCCL_PEER_PORT = 8518,
    TCCL_PEER_PROTOCOL = 2,
    TCCL_PEER_HEAD = 8,
    TCCL_PEER_PIECE = 256 * 1024,      /* bytes of a DATA block, at most */
    TCCL_PEER_WINDOW = 4 * 1024 * 1024 /* bytes under way on a connection, at most */
};

enum tccl_peer_kind { TCCL_PEER_DATA = 1, TCCL_PEER_CREDIT = 2 };

struct tccl_peer_head {
    enum tccl_peer_kind kind;
    uint64_t bytes;
};

void tccl_peer_put(const struct tccl_peer_head *head, unsigned char bytes[static TCCL_PEER_HEAD]);
/* Returns 0, or -1 with err: no such kind, or beyond its limit. */
int tccl_peer_get(const unsigned char bytes[static TCCL_PEER_HEAD], struct tccl_peer_head *head,
                  struct tccl_error *err);

void tccl_peer_put_number(uint64_t number, unsigned char bytes[static TCCL_PEER_HEAD]);
uint64_t tccl_peer_get_number(const unsigned char bytes[static TCCL_PEER_HEAD]);

/* For a connection of either end: no waiting for full packets, and an end when the other machine is
 * gone without a word. */
void tccl_peer_tune(int fd);

#endif
