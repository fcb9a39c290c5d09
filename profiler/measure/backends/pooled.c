/* pooled.c: back ends that measure with a worker pool: starting it, and its state. */
#include "measure/backends/backend-ops.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "measure/peer/peer.h"

enum { REPEATS = 5, ROUNDS = 3, PEER_MS = 5000 };

static int start_pool(struct tccl_pooled *pooled, const struct tccl_pooled_way *way,
                      const struct tccl_backend_options *options, struct tccl_error *err)
{
    const struct tccl_machine *machine = &pooled->found.site.machine;
    struct tccl_workspace_settings settings = {.region = pooled->region,
                                               .bind = way->bind || machine->n_memories > 1,
                                               .engine = options->engine,
                                               .trust = options->trust};
    const struct tccl_workers_options pool = {
        .gpu = way->gpu,
        .nic = options->peer ? way->nic : way->nic_alone,
        .prepare_limit = way->prepare_limit,
        .run_limit = 5 + 20 * pooled->repeat.window,
    };
    if (snprintf(settings.peer, sizeof(settings.peer), "%s", options->peer ? options->peer : "") >=
        (int)sizeof(settings.peer))
        return tccl_fail(err, "--peer is too long: at most %zu bytes", sizeof(settings.peer) - 1);
    pooled->workspace = tccl_workspace_new(&pooled->found.site, &settings, err);
    if (!pooled->workspace)
        return -1;
    pooled->workers = tccl_workers_new(pooled->workspace, &pool, err);
    return pooled->workers ? 0 : -1;
}

int tccl_pooled_open(const struct tccl_pooled_way *way, const struct tccl_backend_options *options,
                     struct tccl_backend *backend, struct tccl_error *err)
{
    struct tccl_pooled *pooled = calloc(1, sizeof(*pooled));
    if (!pooled)
        return tccl_fail(err, "out of memory");
    pooled->peer = options->peer != NULL;
    int rc = way->look(pooled, options, err);
    if (rc == 0 && options->peer) {
        cleanup_close int fd = tccl_peer_connect(options->peer, "", &options->trust, NULL, NULL,
                                                 tccl_now_ms() + PEER_MS, err);
        rc = fd < 0 ? -1 : 0;
    }
    /* Where several processes take turns on one GPU, a run spans many turns of some 2 ms. */
    double window = pooled->marks & TCCL_MARK_STAND_IN ? 0.1 : 0.02;
    pooled->repeat = (struct tccl_repeat_options){
        .window = options->window > 0 ? options->window : window,
        .repeats = options->repeats > 0 ? options->repeats | 1 : REPEATS, /* the median is a run */
        .rounds = ROUNDS,
        .spread = 0.05,
    };
    if (rc == 0)
        rc = start_pool(pooled, way, options, err);
    if (rc != 0) {
        tccl_pooled_close(pooled);
        return -1;
    }
    backend->state = pooled;
    backend->machine = &pooled->found.site.machine;
    backend->conditions = pooled->conditions;
    backend->marks = pooled->marks;
    return 0;
}

void tccl_pooled_others(void *state, const struct tccl_side *others)
{
    struct tccl_pooled *pooled = state;
    tccl_workers_others(pooled->workers, others);
}

int tccl_pooled_measure(void *state, const struct tccl_set *set, struct tccl_measurement *out,
                        struct tccl_error *err)
{
    struct tccl_pooled *pooled = state;
    *out = (struct tccl_measurement){.marks = pooled->marks};
    return tccl_repeat(pooled->workers, &pooled->repeat, set, out, err);
}

void tccl_pooled_close(void *state)
{
    struct tccl_pooled *pooled = state;
    tccl_workers_free(pooled->workers);
    tccl_workspace_free(pooled->workspace);
    free(pooled);
}
