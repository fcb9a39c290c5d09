/* peer.h: NICs measured against a peer: RDMA connections, how a connection begins, and what flows.
 */
#pragma once

#include <endian.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/error.h"
#include "client/message.h"
#include "client/users.h"
#include "machine/machine.h"

/* ---- rdma: one connection between two RDMA devices (a reliable queue pair), over which one side
 * reads and writes memory of the other's. */

enum { TCCL_RDMA_NAME = 64, TCCL_RDMA_DEPTH = 16 /* pieces under way, at most */ };

/* What each side tells the other. */
struct tccl_rdma_end {
    char device[TCCL_RDMA_NAME];
    bool ethernet; /* RoCE; else InfiniBand */
    uint8_t mtu;   /* enum ibv_mtu */
    uint8_t reads; /* that it serves at a time */
    uint16_t lid;
    uint32_t number; /* of the queue pair, 24 bits */
    unsigned char gid[16];
    /* Memory that the other side may read and write; bytes 0: none. */
    uint32_t key;
    uint64_t address, bytes;
};

/* A new reference, NULL only without memory; and back, all bounded: 0, or -1 with err. */
json_t *tccl_rdma_to_json(const struct tccl_rdma_end *end);
int tccl_rdma_from_json(const json_t *json, struct tccl_rdma_end *end, struct tccl_error *err);

struct tccl_rdma;

/* Is this the name of an RDMA device of this machine, and are verbs built in? */
bool tccl_rdma_is_here(const char *name);

/* Lets a guest, who told us that end, reach memory of ours, through the device of the same name as
 * its own where there is one: nodes of one kind are cabled alike; else the first one with an active
 * port. *ours is what to tell it. Returns NULL with err. */
struct tccl_rdma *tccl_rdma_lend(const struct tccl_rdma_end *guest, void *memory, size_t bytes,
                                 struct tccl_rdma_end *ours, struct tccl_error *err);
void tccl_rdma_close(struct tccl_rdma *rdma); /* NULL is fine */

/* ---- only in a build with verbs ---- */

/* Opens that device. Returns NULL with err. */
struct tccl_rdma *tccl_rdma_open(const char *name, struct tccl_error *err);

/* Makes memory known to the device, so that it moves data from and to it. dmabuf: the memory of a
 * GPU, as a file descriptor of it; -1: what the address says. Returns its number, or -1 with err.
 */
int tccl_rdma_register(struct tccl_rdma *rdma, void *address, size_t bytes, int dmabuf,
                       struct tccl_error *err);

void tccl_rdma_describe(const struct tccl_rdma *rdma, struct tccl_rdma_end *end);
/* Connects to what the other side has told; both do. Returns 0, or -1 with err. */
int tccl_rdma_join(struct tccl_rdma *rdma, const struct tccl_rdma_end *there,
                   struct tccl_error *err);

/* Starts a piece between a registered memory and the other side's, at these offsets (both within
 * their memories): from there to here (reads) or from here to there. No more than TCCL_RDMA_DEPTH
 * may be under way. Returns 0, or -1 with err. */
int tccl_rdma_start(struct tccl_rdma *rdma, bool reads, int memory, uint64_t here, uint64_t there,
                    uint32_t bytes, struct tccl_error *err);
/* How many pieces have ended since the last call: all their bytes have arrived. Does not wait.
 * Returns the number, or -1 with err: the connection is lost. */
int tccl_rdma_ended(struct tccl_rdma *rdma, struct tccl_error *err);

/* ---- memory of a GPU that a NIC of this process reaches directly (GPUDirect; gpu-memory.c) ----
 */

struct tccl_gpu_memory {
    void *address; /* the GPU's, not to be touched from here */
    int dmabuf;    /* the same as a file descriptor; -1: the driver has none (nvidia_peermem) */
};

/* Allocates it on the GPU of that bus id, in a context of this process that runs nothing; it stays
 * until the process ends. Returns 0, or -1 with err. */
int tccl_gpu_memory_get(const char *busid, size_t bytes, struct tccl_gpu_memory *memory,
                        struct tccl_error *err);

/* ---- peer-hello: how a connection to a tccl-profile peer begins: it says which protocol it speaks
 * and a number used once; we answer with who we are (a munge credential around that number, one of
 * our own and the peer's address); and it proves itself (a munge credential around our number and
 * the addresses of both ends), or says why not. So neither believes a user of the other node who
 * has taken the port, nor one in between. Frames and messages as in frame.h and message.h. */

enum { TCCL_PEER_HOST = 256, TCCL_PEER_PORT = 8518, TCCL_PEER_PROTOCOL = 2 };

/* "HOST", "HOST:PORT", "[IPV6]:PORT"; without a port: TCCL_PEER_PORT. "" for a host, as in ":PORT",
 * only if any. Returns 0, or -1 with err. */
int tccl_peer_address(const char *text, bool any, char host[static TCCL_PEER_HOST], uint16_t *port,
                      struct tccl_error *err);

/* Who has come, and what for. */
struct tccl_peer_guest {
    uid_t user;             /* (uid_t)-1 where anybody may come */
    char nonce[TCCL_NONCE]; /* the guest's, for our proof */
    bool rdma;              /* wants to reach memory of ours by RDMA, from that end */
    struct tccl_rdma_end end;
};

/* The peer's side, both until deadline (tccl_now_ms). First it hears who comes; a refusal is told
 * to the other end too. Then it agrees, with its proof: ours is the end for a guest who wants RDMA,
 * else NULL. Each returns 0, or -1 with err. */
int tccl_peer_hear(int fd, const struct tccl_trust *trust, int64_t deadline,
                   struct tccl_peer_guest *guest, struct tccl_error *err);
int tccl_peer_agree(int fd, const struct tccl_trust *trust, const struct tccl_peer_guest *guest,
                    const struct tccl_rdma_end *ours, int64_t deadline, struct tccl_error *err);

/* Tells the other end why it is not served; does not wait. */
void tccl_peer_refuse(int fd, const char *why);

/* Connects to the peer, through that network interface if device is not "", and says hello, until
 * deadline. trust: who may run it. For RDMA from our end, theirs is the peer's; ours NULL: for TCP,
 * which sets no theirs. Returns the connection, which the caller closes, or -1 with err: nobody
 * there, no peer, or one that does not prove that such a user runs it. */
int tccl_peer_connect(const char *peer, const char *device, const struct tccl_trust *trust,
                      const struct tccl_rdma_end *ours, struct tccl_rdma_end *theirs,
                      int64_t deadline, struct tccl_error *err);

/* ---- peer-stream: what flows between a NIC's transfer and its other end (tccl-profile peer, or
 * ourselves over loopback) once both have said hello. One TCP connection serves both
 * directions, one at a time, and is silent between runs:
 *
 *   to the other end:  blocks, each a head of 8 bytes: DATA n, and n bytes that it swallows; or
 *                      CREDIT n: it may send n bytes more.
 *   from the other end: after each DATA block, how many bytes it has swallowed in all (8 bytes);
 *                      and, for a CREDIT, that many bytes, of no meaning.
 *
 * So both sides know at any time what is under way, and nothing of one run is left to the next.
 * Numbers: most significant byte first. */

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
