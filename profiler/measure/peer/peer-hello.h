/* peer-hello.h: how a connection to a tccl-profile peer begins: it says which protocol it speaks
 * and a number used once; we answer with who we are (a munge credential around that number, one of
 * our own and the peer's address); and it proves itself (a munge credential around our number and
 * the addresses of both ends), or says why not. So neither believes a user of the other node who
 * has taken the port, nor one in between. Frames and messages as in frame.h and message.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/message.h"
#include "client/users.h"
#include "measure/peer/rdma.h"

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
