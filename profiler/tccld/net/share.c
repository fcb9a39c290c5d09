/* Shares are found by a hash whose seed is new for each start, so that nobody can choose addresses
 * that fall together. The rate of an address is kept without a share, in a table of fixed size: a
 * flood is to cost no more than its accept(). */
#include "tccld/net/share.h"

#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"

enum {
    BUCKETS = 1024,
    RATES = 4096,
    PER_SECOND = 512,     /* connections of an address; it may save up those of one second */
    TRUSTED_RATE = 32,    /* times as many, of a trusted one */
    TRUSTED_MOST = 32768, /* addresses that stay trusted */
    AT_ONCE = 64,         /* called from the line before others have their turn */
};

struct rate {
    int64_t at_ms;
    int64_t left; /* connections, in thousandths */
};

struct owner {
    uint64_t seed, kind;
    unsigned char id[8];
};

struct shares {
    LIST_HEAD(, share) buckets[BUCKETS];
    uint64_t seed;
    int holders, n_trusted; /* held: by itself, and by its shares */
    struct rate rates[RATES];
};

struct shares *shares_new(void)
{
    struct shares *shares = calloc(1, sizeof(*shares));
    if (!shares)
        return NULL;
    if (getrandom(&shares->seed, sizeof(shares->seed), GRND_NONBLOCK) < 0)
        shares->seed = (uint64_t)(uintptr_t)shares;
    shares->holders = 1;
    return shares;
}

static void release(struct shares *shares)
{
    if (--shares->holders == 0)
        free(shares);
}

static void drop_trust(struct share *share)
{
    if (share->trusted) {
        share->trusted = false;
        share_drop(share);
    }
}

void shares_free(struct shares *shares)
{
    struct share *each, *next;
    for (int i = 0; shares && i < BUCKETS; i++)
        for (each = LIST_FIRST(&shares->buckets[i]); each; each = next) {
            next = LIST_NEXT(each, link);
            drop_trust(each);
        }
    if (shares)
        release(shares);
}

static uint64_t hash_of(const struct shares *shares, uint64_t kind, const void *id, size_t size)
{
    struct owner owner = {.seed = shares->seed, .kind = kind};
    memcpy(owner.id, id, size);
    return tccl_hash64(&owner, sizeof(owner));
}

static struct share *find(struct shares *shares, uint64_t hash)
{
    struct share *each;
    LIST_FOREACH(each, &shares->buckets[hash % BUCKETS], link)
    if (each->hash == hash)
        return each;
    return NULL;
}

static struct share *share_of(struct shares *shares, uint64_t hash)
{
    struct share *share = find(shares, hash);
    if (share) {
        share->holders++;
        return share;
    }
    share = malloc(sizeof(*share));
    if (!share)
        return NULL;
    *share = (struct share){.all = shares, .hash = hash, .holders = 1};
    LIST_INSERT_HEAD(&shares->buckets[hash % BUCKETS], share, link);
    shares->holders++;
    return share;
}

/* Of IPv6 the network: a host has as many addresses there as it likes. */
static uint64_t address_hash(const struct shares *shares, const struct sockaddr *address)
{
    if (address && address->sa_family == AF_INET)
        return hash_of(shares, AF_INET, &((const struct sockaddr_in *)address)->sin_addr, 4);
    if (address && address->sa_family == AF_INET6)
        return hash_of(shares, AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, 8);
    return hash_of(shares, AF_UNSPEC, "", 0);
}

struct share *share_of_user(struct shares *shares, uid_t uid)
{
    return share_of(shares, hash_of(shares, AF_UNIX, &uid, sizeof(uid)));
}

struct share *share_of_address(struct shares *shares, const struct sockaddr *address)
{
    return share_of(shares, address_hash(shares, address));
}

void share_drop(struct share *share)
{
    if (!share || --share->holders > 0)
        return;
    LIST_REMOVE(share, link);
    release(share->all);
    free(share);
}

void share_trust(struct share *share)
{
    if (share->trusted || share->all->n_trusted >= TRUSTED_MOST)
        return;
    share->trusted = true;
    share->holders++; /* it stays */
    share->all->n_trusted++;
}

bool share_admits(struct shares *shares, const struct sockaddr *address, int64_t now_ms)
{
    uint64_t hash = address_hash(shares, address);
    const struct share *share = find(shares, hash);
    struct rate *rate = &shares->rates[hash % RATES];
    int64_t cost = share && share->trusted ? 1000 / TRUSTED_RATE : 1000;
    rate->left += (now_ms - rate->at_ms) * PER_SECOND;
    rate->at_ms = now_ms;
    if (rate->left > PER_SECOND * 1000)
        rate->left = PER_SECOND * 1000;
    if (rate->left < cost)
        return false;
    rate->left -= cost;
    return true;
}

/* Turns */

struct turns {
    TAILQ_HEAD(, turn) line;
    int each, all, trusted;
    int taken; /* by those that aren't trusted */
    struct event *again;
};

static bool fits(const struct turns *turns, const struct share *share, int cost)
{
    if (share->turns == 0 && (share->trusted || turns->taken < turns->all))
        return true;
    if (share->trusted)
        return share->turns + cost <= turns->trusted;
    return share->turns + cost <= turns->each && turns->taken + cost <= turns->all;
}

static void take(struct turn *turn)
{
    turn->state = TURN_TAKEN;
    turn->share->turns += turn->cost;
    turn->counted = turn->share->trusted ? 0 : turn->cost;
    turn->turns->taken += turn->counted;
}

static void serve_later(struct turns *turns)
{
    static const struct timeval now = {0, 0};
    if (!TAILQ_EMPTY(&turns->line) && !evtimer_pending(turns->again, NULL))
        evtimer_add(turns->again, &now);
}

static struct turn *first_that_fits(const struct turns *turns)
{
    struct turn *each;
    TAILQ_FOREACH(each, &turns->line, link)
    if (fits(turns, each->share, each->cost))
        return each;
    return NULL;
}

/* What is called may end turns, its own and others': each time the line is looked at anew. */
static void serve(evutil_socket_t fd, short what, void *argument)
{
    struct turns *turns = argument;
    (void)fd;
    (void)what;
    for (int i = 0; i < AT_ONCE; i++) {
        struct turn *turn = first_that_fits(turns);
        if (!turn)
            return;
        TAILQ_REMOVE(&turns->line, turn, link);
        take(turn);
        turn->call(turn->context);
    }
    serve_later(turns);
}

struct turns *turns_new(struct event_base *base, int each, int all, int trusted)
{
    struct turns *turns = calloc(1, sizeof(*turns));
    if (!turns)
        return NULL;
    *turns = (struct turns){.each = each, .all = all, .trusted = trusted};
    TAILQ_INIT(&turns->line);
    turns->again = evtimer_new(base, serve, turns);
    if (turns->again)
        return turns;
    free(turns);
    return NULL;
}

void turns_free(struct turns *turns)
{
    if (!turns)
        return;
    event_free(turns->again);
    free(turns);
}

bool turn_take(struct turns *turns, struct turn *turn, struct share *share, int cost,
               void (*call)(void *context), void *context)
{
    *turn = (struct turn){
        .turns = turns, .share = share, .cost = cost, .call = call, .context = context};
    if (fits(turns, share, cost)) {
        take(turn);
        return true;
    }
    turn->state = TURN_IN_LINE;
    TAILQ_INSERT_TAIL(&turns->line, turn, link);
    return false;
}

bool turn_end(struct turn *turn)
{
    enum turn_state was = turn->state;
    turn->state = TURN_NONE;
    if (was == TURN_IN_LINE)
        TAILQ_REMOVE(&turn->turns->line, turn, link);
    if (was == TURN_TAKEN) {
        turn->share->turns -= turn->cost;
        turn->turns->taken -= turn->counted;
        serve_later(turn->turns);
    }
    return was == TURN_IN_LINE;
}
