/* resolver.h: the address of a node's tccld, without ever blocking the event loop. */
#ifndef TCCL_RESOLVER_H
#define TCCL_RESOLVER_H

#include <sys/socket.h>

#include "client/conf.h"
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

struct resolver *resolver_new(struct pool *names); /* NULL without memory */
void resolver_free(struct resolver *resolver);

/* Has a thread ask slurmctld whether addresses are its to say; that holds for an hour. */
void resolver_look(struct resolver *resolver, const struct tccl_conf *conf);

/* Calls found once, at once where [peers] or the cache tells, else later, with the address; or with
 * err. found must not free the resolver. */
void resolver_find(struct resolver *resolver, const struct tccl_conf *conf, const char *node,
                   void (*found)(void *context, const struct address *address,
                                 const struct tccl_error *err),
                   void *context);

#endif
