/* One name at a time for each thread: what hangs holds up the names behind it, never tccld. Of a
 * node slurmctld may know the address. */
#include "tccld/net/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/conf.h"

struct lookup {
    char host[TCCL_CONF_NAME], port[8];
    char squeue[PATH_MAX]; /* "": slurmctld is not asked; else before DNS, or after it */
    bool slurm_first;
    struct addrinfo hints, *addresses;
    int code;
    lookup_found *found;
    void *context;
};

/* In a thread. code stays as it is if slurmctld has nothing to say that DNS has not. */
static void ask_slurm(struct lookup *lookup)
{
    struct slurm_node node;
    int code = lookup->code;
    if (!*lookup->squeue || slurm_node_ask(lookup->squeue, lookup->host, &node) != 0 ||
        strcmp(node.address, lookup->host) == 0)
        return;
    lookup->code = getaddrinfo(node.address, lookup->port, &lookup->hints, &lookup->addresses);
    lookup->code = lookup->code ? code : 0;
}

/* In a thread. */
static void look_up(void *task)
{
    struct lookup *lookup = task;
    lookup->code = EAI_NONAME;
    if (lookup->slurm_first)
        ask_slurm(lookup);
    if (lookup->code != 0)
        lookup->code = getaddrinfo(lookup->host, lookup->port, &lookup->hints, &lookup->addresses);
    if (lookup->code != 0 && !lookup->slurm_first)
        ask_slurm(lookup);
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

struct lookup *lookup_start(struct threads *pool, const char *squeue, bool slurm_first,
                            const char *host, uint16_t port, int flags, lookup_found *found,
                            void *context)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    if (!lookup)
        return NULL;
    *lookup = (struct lookup){.hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags},
                              .found = found,
                              .context = context};
    lookup->slurm_first = slurm_first;
    snprintf(lookup->squeue, sizeof(lookup->squeue), "%s", squeue);
    snprintf(lookup->host, sizeof(lookup->host), "%s", host);
    snprintf(lookup->port, sizeof(lookup->port), "%u", port);
    if (threads_submit(pool, look_up, looked_up, lookup) == 0)
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
