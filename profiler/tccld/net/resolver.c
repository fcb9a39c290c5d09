/* Names are looked up in threads (getaddrinfo blocks), and answers kept for a while, failures
 * too. Where this node is of a cloud, dynamic, or has a NodeAddr that is not its name, slurmctld is
 * asked for the addresses of others before DNS is; else only where DNS has none, since each node of
 * a large step would ask it. */
#include "tccld/net/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/conf.h"

enum { LOOK_MS = 3600000, LOOK_AGAIN_MS = 60000 };

typedef void found_callback(void *context, const struct address *address,
                            const struct tccl_error *err);

struct entry {
    char host[TCCL_CONF_NAME];
    uint16_t port;
    int64_t until;
    struct address address;
    struct tccl_error why; /* where there is none */
};

struct resolver {
    struct threads *pool;
    bool slurm_first; /* this node's address is slurmctld's to say: so are those of others */
    int64_t look_at;  /* when that is looked at again */
    struct entry *entries[RESOLVER_NAMES];
    int next;
};

struct question {
    struct resolver *resolver;
    struct entry entry;
    found_callback *found;
    void *context;
};

struct resolver *resolver_new(struct threads *names)
{
    struct resolver *resolver = calloc(1, sizeof(*resolver));
    if (resolver)
        resolver->pool = names;
    return resolver;
}

void resolver_free(struct resolver *resolver)
{
    for (int i = 0; resolver && i < RESOLVER_NAMES; i++)
        free(resolver->entries[i]);
    free(resolver);
}

static void take_first(struct address *address, const struct addrinfo *found)
{
    if (!found || found->ai_addrlen > sizeof(address->sockaddr))
        return;
    memcpy(&address->sockaddr, found->ai_addr, found->ai_addrlen);
    address->size = found->ai_addrlen;
}

static void keep(struct resolver *resolver, const struct entry *entry)
{
    struct entry **slot = &resolver->entries[resolver->next];
    if (!*slot && !(*slot = malloc(sizeof(**slot))))
        return;
    **slot = *entry;
    resolver->next = (resolver->next + 1) % RESOLVER_NAMES;
}

static void answer(found_callback *found, void *context, const struct entry *entry)
{
    found(context, &entry->address, entry->address.size ? NULL : &entry->why);
}

static void looked_up(void *context, const struct addrinfo *found, const char *why)
{
    struct question *question = context;
    struct entry *entry = &question->entry;
    take_first(&entry->address, found);
    if (!found)
        tccl_fail(&entry->why, "its name %s has no address: %s", entry->host, why);
    entry->until = tccl_now_ms() + (entry->address.size ? RESOLVER_KEEP_MS : RESOLVER_KEEP_NOT_MS);
    keep(question->resolver, entry);
    answer(question->found, question->context, entry);
    free(question);
}

static const struct entry *cached(const struct resolver *resolver, const char *host, uint16_t port)
{
    int64_t now = tccl_now_ms();
    for (int i = 0; i < RESOLVER_NAMES && resolver->entries[i]; i++) {
        const struct entry *entry = resolver->entries[i];
        if (entry->until > now && entry->port == port && strcmp(entry->host, host) == 0)
            return entry;
    }
    return NULL;
}

/* What slurmctld says of this node. */
struct look {
    struct resolver *resolver;
    char squeue[PATH_MAX], node[TCCL_CONF_NAME];
    struct slurm_node found;
    int failed;
};

static void run_look(void *task)
{
    struct look *look = task;
    look->failed = slurm_node_ask(look->squeue, look->node, &look->found);
}

static void done_look(void *task)
{
    struct look *look = task;
    if (!look->failed)
        look->resolver->slurm_first = look->found.own;
    look->resolver->look_at = tccl_now_ms() + (look->failed ? LOOK_AGAIN_MS : LOOK_MS);
    free(look);
}

void resolver_look(struct resolver *resolver, const struct tccl_conf *conf)
{
    struct look *look = *conf->squeue ? calloc(1, sizeof(*look)) : NULL;
    resolver->look_at = tccl_now_ms() + LOOK_MS;
    if (!look)
        return;
    look->resolver = resolver;
    strcpy(look->squeue, conf->squeue);
    strcpy(look->node, conf->node);
    if (threads_submit(resolver->pool, run_look, done_look, look) != 0)
        free(look);
}

void resolver_find(struct resolver *resolver, const struct tccl_conf *conf, const char *node,
                   found_callback *found, void *context)
{
    const char *host;
    struct entry entry = {0};
    tccl_peer_find(conf, node, &host, &entry.port);
    snprintf(entry.host, sizeof(entry.host), "%s", host);
    snprintf(entry.address.place, sizeof(entry.address.place),
             strchr(entry.host, ':') ? "[%s]:%u" : "%s:%u", entry.host, entry.port);
    const struct entry *known = cached(resolver, entry.host, entry.port);
    struct addrinfo *numbers = known ? NULL : lookup_numbers(entry.host, entry.port, 0);
    if (known || numbers) {
        take_first(&entry.address, numbers);
        if (numbers)
            freeaddrinfo(numbers);
        answer(found, context, known ? known : &entry);
        return;
    }
    struct question *question = malloc(sizeof(*question));
    if (question) {
        *question = (struct question){
            .resolver = resolver, .entry = entry, .found = found, .context = context};
        if (tccl_now_ms() >= resolver->look_at)
            resolver_look(resolver, conf);
        const char *squeue = strcmp(entry.host, node) == 0 ? conf->squeue : "";
        if (lookup_start(resolver->pool, squeue, resolver->slurm_first, entry.host, entry.port,
                         AI_ADDRCONFIG, looked_up, question))
            return;
        free(question);
    }
    tccl_fail(&entry.why, "too many names are being looked up");
    answer(found, context, &entry);
}
