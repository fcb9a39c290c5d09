/* retry.c: a set is tried until the back end gives an answer that will do. */
#include "fill/retry.h"

#include "base/clock.h"

enum { SYNC_MS = 2000 };

/* Once. Returns 0, or -1 with err. */
static int try_once(struct tccl_backend *backend, const struct tccl_set *set,
                    struct tccl_measurement *out, struct tccl_error *why, struct tccl_error *err)
{
    unsigned marks = backend->marks;

    *out = (struct tccl_measurement){0};
    *why = (struct tccl_error){0};
    int rc = tccl_backend_measure(backend, set, out, why);
    if (rc < 0)
        return tccl_fail(err, "%s", why->text);
    if (rc == 0 && out->marks != marks)
        tccl_fail(why, "others used the GPUs meanwhile");
    if (rc > 0 || out->failed || out->marks != marks)
        *out = (struct tccl_measurement){.failed = true, .marks = marks};
    return 0;
}

int tccl_retry(struct tccl_backend *backend, const struct tccl_set *set, int tries,
               tccl_accept *accept, void *context, struct tccl_measurement *out,
               struct tccl_error *why, struct tccl_error *err)
{
    for (int i = 0; i < tries; i++) {
        if (try_once(backend, set, out, why, err) != 0)
            return -1;
        if (!out->failed && (!accept || accept(context, out)))
            break;
    }
    return 0;
}

int tccl_retry_sync(struct tccl_profile *profile, int64_t *synced, struct tccl_error *err)
{
    int64_t now = tccl_now_ms();

    if (now - *synced < SYNC_MS)
        return 0;
    *synced = now;
    return tccl_profile_sync(profile, err);
}
