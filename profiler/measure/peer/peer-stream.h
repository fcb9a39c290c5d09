/* peer-stream.h: what flows between a NIC's transfer and its other end (tccl-profile peer, or
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
#pragma once

#include <endian.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "machine/machine.h"

enum {
    TCCL_PEER_PIECE = 256 * 1024,       /* bytes of a DATA block, at most */
    TCCL_PEER_WINDOW = 4 * 1024 * 1024, /* bytes under way on a connection, at most */
    TCCL_PEER_SHIFT = 56                /* a head's first byte is the kind */
};

enum tccl_peer_kind { TCCL_PEER_DATA = 1, TCCL_PEER_CREDIT = 2 };

/* A head as it is sent. */
static inline uint64_t tccl_peer_head(enum tccl_peer_kind kind, uint64_t bytes)
{
    return htobe64((uint64_t)kind << TCCL_PEER_SHIFT | bytes);
}

/* For a connection of either end: no waiting for full packets, and an end when the other machine is
 * gone without a word. */
void tccl_peer_tune(int fd);

/* ---- our end: moves bytes between a region of memory and the network; never waits ---- */

struct tccl_peer_stream {
    int fd;
    uint64_t window;       /* bytes under way, at most; set before the first step */
    unsigned char *region; /* where data lie, used round and round; set before each run */
    size_t size;
    /* The rest is this file's. */
    size_t at;
    uint64_t head, answer; /* as they are sent */
    size_t head_left, block_left, answer_have;
    uint64_t begun, arrived;    /* sent: in blocks begun; what the other end says that it has */
    uint64_t granted, received; /* bytes asked for; of them here */
};

/* A fresh stream on a connection, which it takes over. */
void tccl_peer_stream_begin(struct tccl_peer_stream *stream, int fd, uint64_t window);
void tccl_peer_stream_close(struct tccl_peer_stream *stream); /* also if it was closed */

/* One step of sending, or of receiving; with more, new blocks are begun or asked for, otherwise
 * only what is under way is ended. Returns 1: something went on; 0: nothing can, now; -1: the
 * connection is lost, or what the other end says is nonsense. */
int tccl_peer_stream_send(struct tccl_peer_stream *stream, bool more);
int tccl_peer_stream_receive(struct tccl_peer_stream *stream, bool more);

/* Bytes that have arrived at the other end, and here, so far: both directions together. */
uint64_t tccl_peer_stream_moved(const struct tccl_peer_stream *stream);
/* Nothing is under way. */
bool tccl_peer_stream_quiet(const struct tccl_peer_stream *stream);
/* Quiet, and the other end is there, as far as one can see without asking it. */
bool tccl_peer_stream_alive(const struct tccl_peer_stream *stream);
/* What to poll for before the next step. */
struct pollfd tccl_peer_stream_poll(const struct tccl_peer_stream *stream);

/* ---- the other end (peer-serve.c): swallows what comes and sends what is asked for ---- */

struct tccl_peer_count {
    uint64_t received, sent; /* bytes, without heads */
};

struct tccl_peer_limits {
    int idle_ms;  /* without a block, at most */
    int stall_ms; /* in the middle of one, at most */
};

/* Serves one connection until it ends. Allocates TCCL_PEER_PIECE bytes, whatever comes. *count is
 * right in any case. Returns 0: it was closed between blocks, with nothing under way; or -1 with
 * err: it ended in the middle, took too long, or what came is no block. */
int tccl_peer_serve(int fd, const struct tccl_peer_limits *limits, struct tccl_peer_count *count,
                    struct tccl_error *err);

/* The other end in this process, over 127.0.0.1, served by a thread (peer-loop.c). */
struct tccl_peer_loop;

/* Returns NULL with err; *fd is our end, which the caller closes. */
struct tccl_peer_loop *tccl_peer_loop_open(int *fd, struct tccl_error *err);
/* Closes the other end and frees it; *count (or NULL) is what it has seen. NULL is fine. */
void tccl_peer_loop_close(struct tccl_peer_loop *loop, struct tccl_peer_count *count);

/* peer-places.c: the network interfaces of NICs, and the addresses on which a tccl-profile peer
 * serves them. */

enum { TCCL_PEER_PLACES = 4 * TCCL_MAX_NICS };

struct tccl_peer_place {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } address;
    char nic[TCCL_NAME]; /* of which it is the address */
};

/* The network interface of a NIC: itself, or what its RDMA device has (of InfiniBand: IPoIB's); ""
 * if none is here. */
void tccl_nic_interface(const char *nic, char name[static TCCL_NAME]);

/* The addresses that the machine's NICs have now, with that port; where an interface is part of a
 * bond or bridge, those of that. Link-local ones are left out: they say nothing without an
 * interface. Returns how many, at most TCCL_PEER_PLACES; or -1 with err: there are none. */
int tccl_peer_places(const struct tccl_machine *machine, uint16_t port,
                     struct tccl_peer_place places[static TCCL_PEER_PLACES],
                     struct tccl_error *err);

/* The network interface through which a peer is reached, as the kernel would route it now: name,
 * rate and bus id (one made up where it is no PCI device); its numa is that of the machine's memory
 * it is next to, 0 where nobody knows. Nothing is sent but questions to name servers. peer: "HOST"
 * or "HOST:PORT". Returns 0, or -1 with err. */
int tccl_nic_of_peer(const char *peer, const struct tccl_machine *machine, struct tccl_nic *nic,
                     struct tccl_error *err);
