/* munge blocks, so credentials are made and opened in threads, which wait for it no longer
 * than SEAL_PATIENCE_MS. */
#include "tccld/net/front.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/credential.h"
#include "tccld/rights/monitor.h"

/* So long after its last credential munge still counts as one that works. */
enum { WORKS_MS = 3000 };

struct seal {
    struct daemon *daemon;
    struct monitor *monitor;
    const char *socket;
    uid_t uid;
    char *in, *out;
    size_t size;
    int64_t deadline;
    struct tccl_error err;
    void (*closed)(void *context, char *cred, const struct tccl_error *err);
    void (*opened)(void *context, uid_t uid, char *text, size_t size, const struct tccl_error *err);
    void *context;
};

bool seal_is_busy(const struct daemon *daemon)
{
    return threads_busy(daemon->munge) > 0 && tccl_now_ms() - daemon->munge_ms < WORKS_MS;
}

/* In a thread. */
static void run(void *task)
{
    struct seal *seal = task;
    int rc = seal->closed ? monitor_encode(seal->monitor, seal->socket, seal->uid, seal->in,
                                           strlen(seal->in), seal->deadline, &seal->out, &seal->err)
                          : monitor_decode(seal->monitor, seal->socket, seal->in, seal->deadline,
                                           &seal->uid, &seal->out, &seal->size, &seal->err);
    if (rc != 0)
        seal->out = NULL;
}

static void done(void *task)
{
    struct seal *seal = task;
    if (seal->out)
        seal->daemon->munge_ms = tccl_now_ms();
    if (seal->closed)
        seal->closed(seal->context, seal->out, &seal->err);
    else
        seal->opened(seal->context, seal->uid, seal->out, seal->size, &seal->err);
    free(seal->in);
    free(seal);
}

static int submit(struct daemon *daemon, struct seal seal, struct tccl_error *err)
{
    struct seal *task = malloc(sizeof(*task));
    int64_t most = tccl_now_ms() + SEAL_PATIENCE_MS;
    if (task) {
        *task = seal;
        task->daemon = daemon;
        task->monitor = daemon->monitor;
        task->socket = daemon->munge_socket;
        if (task->deadline > most)
            task->deadline = most;
        if (threads_submit(daemon->munge, run, done, task) == 0)
            return 0;
    }
    free(task);
    free(seal.in);
    return tccl_fail(err, "munge does not keep up: %d credentials are waiting", THREADS_QUEUE);
}

int seal_close(struct daemon *daemon, uid_t reader, char *text, int64_t deadline,
               void (*closed)(void *context, char *cred, const struct tccl_error *err),
               void *context, struct tccl_error *err)
{
    struct seal seal = {
        .uid = reader, .in = text, .deadline = deadline, .closed = closed, .context = context};
    return submit(daemon, seal, err);
}

int seal_open(struct daemon *daemon, char *cred, int64_t deadline,
              void (*opened)(void *context, uid_t uid, char *text, size_t size,
                             const struct tccl_error *err),
              void *context, struct tccl_error *err)
{
    struct seal seal = {.in = cred, .deadline = deadline, .opened = opened, .context = context};
    if (!tccl_cred_has_form(cred)) {
        free(cred);
        return tccl_fail(err, "munge: not a credential");
    }
    return submit(daemon, seal, err);
}
