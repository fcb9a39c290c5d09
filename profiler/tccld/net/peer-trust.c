/* Names are looked up one after the other, slowly, since the tccld of all nodes may start in the
 * same minute and ask the same DNS; those without an address are tried again, ever less often. An
 * address whose name has not been looked up yet is trusted from the first message of its tccld on.
 */
#include "tccld/net/resolver.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tccld/net/share.h"

enum { PACE_MS = 250, AGAIN_MS = 60000, AGAIN_MOST_MS = 3600000 };

struct peer_trust {
    struct daemon *daemon;
    struct lookup *lookup; /* under way */
    struct event *go_on;
    char **names; /* without an address yet */
    int n_names, at;
    int64_t wait_ms;
};

static void trust_all(struct shares *shares, const struct addrinfo *addresses)
{
    for (; addresses; addresses = addresses->ai_next)
        shares_trust(shares, addresses->ai_addr);
}

/* Returns whether it is an address in numbers. */
static bool trust_number(struct shares *shares, const char *host)
{
    struct addrinfo *found = lookup_numbers(host, 0, 0);
    trust_all(shares, found);
    if (found)
        freeaddrinfo(found);
    return found != NULL;
}

static void forget_names(struct peer_trust *trust)
{
    while (trust->n_names > 0)
        free(trust->names[--trust->n_names]);
    free(tccl_steal(trust->names));
}

static void on_found(void *context, const struct addrinfo *addresses, const char *why UNUSED)
{
    struct peer_trust *trust = context;
    trust->lookup = NULL;
    if (addresses) {
        trust_all(trust->daemon->shares, addresses);
        free(trust->names[trust->at]);
        trust->names[trust->at] = trust->names[--trust->n_names];
    } else {
        trust->at++;
    }
    daemon_set(trust->go_on, PACE_MS);
}

static void on_go_on(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct peer_trust *trust = argument;
    if (trust->at < trust->n_names) {
        trust->lookup = lookup_start(trust->daemon->names, "", false, trust->names[trust->at], 0, 0,
                                     on_found, trust);
        if (!trust->lookup)
            daemon_set(trust->go_on, AGAIN_MS);
    } else if (trust->n_names > 0) {
        trust->at = 0;
        daemon_set(trust->go_on, trust->wait_ms);
        trust->wait_ms = 2 * trust->wait_ms < AGAIN_MOST_MS ? 2 * trust->wait_ms : AGAIN_MOST_MS;
    }
}

void peer_trust_reloaded(struct peer_trust *trust)
{
    const struct tccl_conf *conf = trust->daemon->conf;
    lookup_cancel(tccl_steal(trust->lookup));
    forget_names(trust);
    trust->at = 0;
    trust->wait_ms = AGAIN_MS;
    trust->names = calloc((size_t)conf->n_peers + 1, sizeof(*trust->names));
    for (int i = 0; i < conf->n_peers; i++) {
        const char *host = conf->peers[i].host;
        const int n = trust->n_names; /* nodes that follow on each other often have one host */
        if (!trust_number(trust->daemon->shares, host) && trust->names &&
            (n == 0 || strcmp(trust->names[n - 1], host) != 0) &&
            (trust->names[n] = strdup(host)) != NULL)
            trust->n_names++;
    }
    daemon_set(trust->go_on, 0);
}

struct peer_trust *peer_trust_new(struct daemon *daemon)
{
    struct peer_trust *trust = calloc(1, sizeof(*trust));
    if (!trust)
        return NULL;
    trust->daemon = daemon;
    trust->go_on = evtimer_new(daemon->base, on_go_on, trust);
    if (!trust->go_on) {
        free(trust);
        return NULL;
    }
    peer_trust_reloaded(trust);
    return trust;
}

void peer_trust_free(struct peer_trust *trust)
{
    if (!trust)
        return;
    lookup_cancel(trust->lookup);
    event_free(trust->go_on);
    forget_names(trust);
    free(trust);
}
