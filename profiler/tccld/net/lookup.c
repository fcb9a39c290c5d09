/* One name at a time for each thread: what hangs holds up the names behind it, never tccld. */
#include "tccld/net/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/conf.h"

struct lookup {
    char host[TCCL_CONF_NAME], port[8];
    struct addrinfo hints, *addresses;
    int code;
    void (*found)(void *context, const struct addrinfo *addresses, const char *why);
    void *context;
};

/* In a thread. */
static void look_up(void *task)
{
    struct lookup *lookup = task;
    lookup->code = getaddrinfo(lookup->host, lookup->port, &lookup->hints, &lookup->addresses);
}

static void looked_up(void *task)
{
    struct lookup *lookup = task;
    if (lookup->found)
        lookup->found(lookup->context, lookup->code == 0 ? lookup->addresses : NULL,
                      gai_strerror(lookup->code));
    if (lookup->code == 0)
        freeaddrinfo(lookup->addresses);
    free(lookup);
}

struct lookup *lookup_start(struct pool *pool, const char *host, uint16_t port, int flags,
                            void (*found)(void *context, const struct addrinfo *addresses,
                                          const char *why),
                            void *context)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    if (!lookup)
        return NULL;
    *lookup = (struct lookup){.hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags},
                              .found = found,
                              .context = context};
    snprintf(lookup->host, sizeof(lookup->host), "%s", host);
    snprintf(lookup->port, sizeof(lookup->port), "%u", port);
    if (pool_submit(pool, look_up, looked_up, lookup) == 0)
        return lookup;
    free(lookup);
    return NULL;
}

struct addrinfo *lookup_numbers(const char *host, uint16_t port, int flags)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    char text[8];
    snprintf(text, sizeof(text), "%u", port);
    return getaddrinfo(host, text, &hints, &found) == 0 ? found : NULL;
}

void lookup_cancel(struct lookup *lookup)
{
    if (lookup)
        lookup->found = NULL;
}
