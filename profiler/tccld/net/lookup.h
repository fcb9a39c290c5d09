/* lookup.h: the addresses of names, by getaddrinfo, which blocks, in a thread. */
#ifndef TCCL_LOOKUP_H
#define TCCL_LOOKUP_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "tccld/main/threads.h"

struct lookup;

/* Calls found once, on the event loop and never before this has returned: with the addresses, which
 * end with the call, or NULL and why. The lookup ends with that. flags: those of
 * getaddrinfo. Returns NULL if too many names are being looked up
 * (found is not called), or without memory. */
struct lookup *lookup_start(struct pool *pool, const char *host, uint16_t port, int flags,
                            void (*found)(void *context, const struct addrinfo *addresses,
                                          const char *why),
                            void *context);
/* The same of a node of Slurm's, by its name: slurmctld is asked as well (slurm-node.h), before DNS
 * or where DNS knows no address. squeue: of tccl.conf; "": it is not. */
struct lookup *lookup_node(struct pool *pool, const char *squeue, bool slurm_first,
                           const char *host, uint16_t port, int flags,
                           void (*found)(void *context, const struct addrinfo *addresses,
                                         const char *why),
                           void *context);
/* The addresses of a host that is written in numbers, or of this machine (NULL), at once; the
 * caller frees them (freeaddrinfo). NULL: it is a name. */
struct addrinfo *lookup_numbers(const char *host, uint16_t port, int flags);
/* found will not be called. NULL is fine. */
void lookup_cancel(struct lookup *lookup);

#endif
