/* Messages count once. */
#include "tccld/net/front.h"

#include "check.h"
#include "client/credential.h"
#include "client/message.h"

static int hear(struct replay *seen, const char *from, long epoch, const char *nonce, int64_t now)
{
    struct tccl_envelope envelope = {.to = "n1", .from = from, .epoch = epoch};
    snprintf(envelope.nonce, sizeof(envelope.nonce), "%s", nonce);
    int refused = replay_check(seen, &envelope, now, ERR);
    CHECK(!refused == !*check_err.text);
    return refused;
}

TEST(replay)
{
    struct replay *seen = replay_new();
    CHECK_INT(hear(seen, "n2", 100, "aa", 1000), 0);
    CHECK_INT(hear(seen, "n2", 100, "aa", 1001), -1);
    CHECK_INT(hear(seen, "n2", 100, "bb", 1001), 0);
    CHECK_INT(hear(seen, "n3", 5, "cc", 1001), 0);   /* another sender's epochs are its own */
    CHECK_INT(hear(seen, "n2", 99, "dd", 1002), -1); /* from before n2 was started again */
    CHECK_INT(hear(seen, "n2", 101, "ee", 1002), 0);
    CHECK_INT(hear(seen, "n2", 100, "ff", 1002), -1);
    CHECK_INT(hear(seen, "tool", 0, "gg", 1002), 0); /* tools have no epoch, but nonces */
    CHECK_INT(hear(seen, "tool", 0, "gg", 1002), -1);
    CHECK_INT(hear(seen, "n2", 101, "aa", 1000 + TCCL_CRED_TTL), -1);
    /* Long after its credential has expired, nothing is remembered. */
    CHECK_INT(hear(seen, "n2", 50, "aa", 1000 + 10 * TCCL_CRED_TTL), 0);
    replay_free(seen);
}
