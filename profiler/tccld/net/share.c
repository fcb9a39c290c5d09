/* Shares are found by a hash whose seed is new for each start, so that nobody can choose addresses
 * that fall together. The rate of a stranger is kept without a share, in a table of fixed size: a
 * flood is to cost no more than its accept(). */
#include "tccld/net/share.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"

enum {
    BUCKETS = 4096,
    RATES = 4096,
    PER_SECOND = 512,           /* connections of an address; it may save up those of one second */
    PER_SECOND_TRUSTED = 16384, /* of a trusted one */
    TRUSTED_MOST = 32768,       /* addresses that stay trusted */
    NETWORK = 8                 /* bytes of an IPv6 address that say which network it is of */
};

struct owner {
    uint64_t seed, kind;
    unsigned char id[sizeof(struct in6_addr)];
};

struct shares {
    LIST_HEAD(, share) buckets[BUCKETS];
    uint64_t seed;
    int holders; /* itself, and its shares */
    int n_trusted;
    struct rate rates[RATES]; /* of addresses that aren't trusted */
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

void shares_free(struct shares *shares)
{
    struct share *each, *next;
    for (int i = 0; shares && i < BUCKETS; i++)
        for (each = LIST_FIRST(&shares->buckets[i]); each; each = next) {
            next = LIST_NEXT(each, link);
            if (each->trusted && !each->user)
                share_drop(each);
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

/* Held once more. */
static struct share *share_of(struct shares *shares, uint64_t hash, bool user)
{
    struct share *share = find(shares, hash);
    if (share) {
        share->holders++;
        return share;
    }
    share = malloc(sizeof(*share));
    if (!share)
        return NULL;
    *share = (struct share){.all = shares, .hash = hash, .holders = 1, .user = user};
    LIST_INSERT_HEAD(&shares->buckets[hash % BUCKETS], share, link);
    shares->holders++;
    return share;
}

/* bytes: so many of an IPv6 address. */
static uint64_t address_hash(const struct shares *shares, const struct sockaddr *address,
                             size_t bytes)
{
    if (address && address->sa_family == AF_INET)
        return hash_of(shares, AF_INET, &((const struct sockaddr_in *)address)->sin_addr,
                       sizeof(struct in_addr));
    if (address && address->sa_family == AF_INET6)
        return hash_of(shares, AF_INET6 + (bytes << 32),
                       &((const struct sockaddr_in6 *)address)->sin6_addr, bytes);
    return hash_of(shares, AF_UNSPEC, "", 0);
}

/* NULL: it isn't trusted. */
static struct share *find_trusted(struct shares *shares, const struct sockaddr *address)
{
    struct share *share = find(shares, address_hash(shares, address, sizeof(struct in6_addr)));
    return share && share->trusted ? share : NULL;
}

struct share *share_of_user(struct shares *shares, uid_t uid, bool trusted)
{
    struct share *share = share_of(shares, hash_of(shares, AF_UNIX, &uid, sizeof(uid)), true);
    if (share)
        share->trusted = trusted;
    return share;
}

struct share *share_of_address(struct shares *shares, const struct sockaddr *address)
{
    const struct share *trusted = find_trusted(shares, address);
    return share_of(shares, trusted ? trusted->hash : address_hash(shares, address, NETWORK),
                    false);
}

void share_drop(struct share *share)
{
    if (!share || --share->holders > 0)
        return;
    LIST_REMOVE(share, link);
    release(share->all);
    free(share);
}

void shares_trust(struct shares *shares, const struct sockaddr *address)
{
    if (find_trusted(shares, address) || shares->n_trusted >= TRUSTED_MOST)
        return;
    struct share *share =
        share_of(shares, address_hash(shares, address, sizeof(struct in6_addr)), false);
    if (!share)
        return;
    share->trusted = true; /* and held until shares_free */
    shares->n_trusted++;
}

bool shares_admit(struct shares *shares, const struct sockaddr *address, int64_t now_ms)
{
    struct share *trusted = find_trusted(shares, address);
    struct rate *rate =
        trusted ? &trusted->rate : &shares->rates[address_hash(shares, address, NETWORK) % RATES];
    int64_t per_second = trusted ? PER_SECOND_TRUSTED : PER_SECOND;
    rate->left += (now_ms - rate->at_ms) * per_second;
    rate->at_ms = now_ms;
    if (rate->left > per_second * 1000)
        rate->left = per_second * 1000;
    if (rate->left < 1000)
        return false;
    rate->left -= 1000;
    return true;
}
