/* The replay cache: hashes of nonces in a table of fixed size, and the last epoch of each sender. A
 * nonce stays for as long as its credential could be opened again. */
#include "tccld/net/front.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "client/credential.h"
#include "client/message.h"

enum { BUCKETS = 16384, WAYS = 4, SENDERS = 4096, KEEP = 2 * TCCL_CRED_TTL };

struct nonce {
    uint64_t hash;
    int64_t until; /* 0: free */
};

struct sender {
    uint64_t hash;
    json_int_t epoch;
    int64_t until;
};

struct replay {
    struct nonce nonces[BUCKETS][WAYS];
    struct sender senders[SENDERS];
};

struct replay *replay_new(void)
{
    return calloc(1, sizeof(struct replay));
}

void replay_free(struct replay *replay)
{
    free(replay);
}

static int check_epoch(struct replay *replay, const struct tccl_envelope *envelope, int64_t now,
                       struct tccl_error *err)
{
    uint64_t hash = tccl_hash64(envelope->from, strlen(envelope->from));
    struct sender *sender = &replay->senders[hash % SENDERS];
    bool known = sender->hash == hash && sender->until > now;
    if (known && envelope->epoch < sender->epoch)
        return tccl_fail(
            err, "a message from %s that is older than its tccld: repeated, or is its clock wrong?",
            envelope->from);
    *sender = (struct sender){.hash = hash, .epoch = envelope->epoch, .until = now + KEEP};
    return 0;
}

int replay_check(struct replay *replay, const struct tccl_envelope *envelope, int64_t now,
                 struct tccl_error *err)
{
    /* Tools (epoch 0) come and go: only their nonces count. */
    if (envelope->epoch && check_epoch(replay, envelope, now, err) != 0)
        return -1;
    uint64_t hash = tccl_hash64(envelope->nonce, strlen(envelope->nonce));
    struct nonce *bucket = replay->nonces[hash % BUCKETS], *oldest = bucket;
    for (struct nonce *each = bucket; each < bucket + WAYS; each++) {
        if (each->hash == hash && each->until > now)
            return tccl_fail(err, "a message of %s was sent twice", envelope->from);
        if (each->until < oldest->until)
            oldest = each;
    }
    *oldest = (struct nonce){.hash = hash, .until = now + KEEP};
    return 0;
}
