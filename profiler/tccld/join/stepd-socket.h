/* stepd-socket.h: since when a step's slurmstepd has been on this node. */
#ifndef TCCL_STEPD_SOCKET_H
#define TCCL_STEPD_SOCKET_H

#include "client/key.h"

struct stepd_sockets;

/* NULL: out of memory. */
struct stepd_sockets *stepd_sockets_new(void);
void stepd_sockets_free(struct stepd_sockets *sockets);
/* How long, in ms; -1: it is not there, or can't be seen. The kernel is asked at most once a
 * second, for all steps. */
int64_t stepd_sockets_age(struct stepd_sockets *sockets, const char *node,
                          const struct tccl_step_key *key);

#endif
