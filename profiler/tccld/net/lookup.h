/* lookup.h: getaddrinfo, which blocks, in a thread. */
#ifndef TCCL_LOOKUP_H
#define TCCL_LOOKUP_H

#include <netdb.h>
#include <stdint.h>

#include "tccld/main/threads.h"

struct lookup;

/* Calls found once, on the event loop and never before this has returned: with the addresses, which
 * end with the call, or NULL and why. The lookup ends with that. host: NULL for all addresses of
 * this machine. flags: those of getaddrinfo. Returns NULL if too many names are being looked up
 * (found is not called), or without memory. */
struct lookup *lookup_start(struct pool *pool, const char *host, uint16_t port, int flags,
                            void (*found)(void *context, const struct addrinfo *addresses,
                                          const char *why),
                            void *context);
/* found will not be called. NULL is fine. */
void lookup_cancel(struct lookup *lookup);

#endif
