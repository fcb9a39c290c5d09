/* resolver.h: the address of a node's tccld, without ever blocking the event loop. */
#pragma once

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "client/conf.h"
#include "tccld/main/daemon.h"
#include "tccld/main/threads.h"

enum {
    RESOLVER_NAMES = 1024,       /* answers kept */
    RESOLVER_KEEP_MS = 300000,   /* how long */
    RESOLVER_KEEP_NOT_MS = 10000 /* how long "there is no such name" is kept */
};

struct address {
    struct sockaddr_storage sockaddr;
    socklen_t size;  /* 0: not found */
    char place[300]; /* "127.0.0.1:18003": as a person would name it */
};

struct resolver;

struct resolver *resolver_new(struct threads *names); /* NULL without memory */
void resolver_free(struct resolver *resolver);

/* Has a thread ask slurmctld whether addresses are its to say; that holds for an hour. */
void resolver_look(struct resolver *resolver, const struct tccl_conf *conf);

/* Calls found once, at once where [peers] or the cache tells, else later, with the address; or with
 * err. found must not free the resolver. */
void resolver_find(struct resolver *resolver, const struct tccl_conf *conf, const char *node,
                   void (*found)(void *context, const struct address *address,
                                 const struct tccl_error *err),
                   void *context);

/* lookup.c: the addresses of names, by getaddrinfo, which blocks, in a thread. */

struct lookup;

/* Calls found once, on the event loop and never before this has returned: with the addresses, which
 * end with the call, or NULL and why. The lookup ends with that. flags: those of getaddrinfo.
 * squeue: of tccl.conf; for a node of Slurm's, by its name, slurmctld is asked as well, before DNS
 * or where DNS knows no address; "": it is not. Returns NULL if too many names are being looked up
 * (found is not called), or without memory. */
typedef void lookup_found(void *context, const struct addrinfo *addresses, const char *why);
struct lookup *lookup_start(struct threads *pool, const char *squeue, bool slurm_first,
                            const char *host, uint16_t port, int flags, lookup_found *found,
                            void *context);
/* The addresses of a host that is written in numbers, or of this machine (NULL), at once; the
 * caller frees them (freeaddrinfo). NULL: it is a name. */
struct addrinfo *lookup_numbers(const char *host, uint16_t port, int flags);
/* found will not be called. NULL is fine. */
void lookup_cancel(struct lookup *lookup);

/* slurm-node.c: a node's address as slurmctld knows it. */

enum { SLURM_NODE_MS = 5000 /* then scontrol is killed */ };

struct slurm_node {
    char address[TCCL_CONF_NAME]; /* NodeAddr: in numbers, or a name */
    bool own; /* slurmctld knows better than DNS: a cloud or dynamic node, or NodeAddr is not its
               * name
               */
};

/* Reads what `scontrol --oneliner show node NODE` prints. Returns 0, or -1: it is not of this node,
 * or has no address. */
int slurm_node_read(const char *text, const char *node, struct slurm_node *found);

/* Asks slurmctld by scontrol, which lies beside squeue (Squeue= of tccl.conf, as it stands there).
 * Blocks: for a thread. Returns 0, or -1: no answer. */
int slurm_node_ask(const char *squeue, const char *node, struct slurm_node *found);

/* peer-trust.c: the addresses of [peers] are trusted from the start. */

struct peer_trust;

/* NULL without memory. */
struct peer_trust *peer_trust_new(struct daemon *daemon);
/* The configuration has been read: from now on, and as its names are found. Those that have gone
 * stay trusted. */
void peer_trust_reloaded(struct peer_trust *trust);
void peer_trust_free(struct peer_trust *trust); /* NULL is fine */
