/* The back end "host": cores of this machine copy between its memories in place of GPUs, and NICs
 * are what TCP can do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend-ops.h"
#include "cleanup.h"
#include "discover.h"
#include "far-hello.h"
#include "nic-of-peer.h"
#include "repeat.h"
#include "wire.h"
#include "workers.h"

/* Bytes of each region: larger than most caches, where there is memory for all of them. */
static const size_t most_region = 64 << 20, least_region = 4 << 20;
static const double window = 0.02; /* seconds */
enum { PEER_MS = 5000 };
enum { REPEATS = 5, ROUNDS = 3, WORKERS_PER_GPU = 3, PART_OF_MEMORY = 8 };

struct state {
    struct tccl_found found;
    struct tccl_stage *stage;
    struct tccl_workers *workers;
    struct tccl_repeat_options repeat;
    char conditions[64];
};

static void host_close(void *context)
{
    struct state *state = context;

    tccl_workers_free(state->workers);
    tccl_stage_free(state->stage);
    free(state);
}

/* The NIC is the one that leads to the peer; without a peer, the loopback. */
static int look_at_machine(struct state *state, const struct tccl_backend_options *options,
                           struct tccl_error *err)
{
    const struct tccl_discover_options what = {.host = true, .devices = options->devices};
    struct tccl_machine *machine = &state->found.site.machine;

    if (tccl_discover(&what, &state->found, err) < 0)
        return -1;
    snprintf(state->conditions, sizeof(state->conditions),
             "core copies, non-temporal; TCP over loopback");
    if (!options->peer)
        return 0;
    machine->n_nics = 1;
    snprintf(state->conditions, sizeof(state->conditions), "core copies, non-temporal; TCP");
    return tccl_nic_of_peer(options->peer, machine, &machine->nics[0], err);
}

/* One that can't be reached is better known before an hour of measuring. */
static int check_peer(const struct tccl_backend_options *options, struct tccl_error *err)
{
    const char *munge = options->munge ? options->munge : "";

    if (!options->peer)
        return 0;
    cleanup_close int fd = tccl_far_connect(options->peer, "", munge, tccl_now_ms() + PEER_MS, err);
    return fd < 0 ? -1 : 0;
}

static int copy_setting(char *to, size_t size, const char *from, const char *what,
                        struct tccl_error *err)
{
    if (snprintf(to, size, "%s", from ? from : "") >= (int)size)
        return tccl_fail(err, "%s is too long: at most %zu bytes", what, size - 1);
    return 0;
}

static size_t choose_region(const struct tccl_machine *machine)
{
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    int regions = machine->n_gpus * WORKERS_PER_GPU * (machine->n_memories + machine->n_gpus);
    size_t region = most_region;

    while (region > least_region && (double)region * regions > memory / PART_OF_MEMORY)
        region /= 2;
    return region;
}

static void choose_repeats(struct state *state, const struct tccl_backend_options *options)
{
    int repeats = options->repeats > 0 ? options->repeats : REPEATS;

    state->repeat = (struct tccl_repeat_options){
        .window = options->window > 0 ? options->window : window,
        .repeats = repeats < 3 ? 3 : repeats | 1,
        .rounds = ROUNDS,
        .spread = 0.05,
    };
}

static int start_pool(struct state *state, const struct tccl_backend_options *options,
                      struct tccl_error *err)
{
    const struct tccl_site *site = &state->found.site;
    struct tccl_stage_settings settings = {.region = choose_region(&site->machine),
                                           .bind = site->machine.n_memories > 1};
    const struct tccl_workers_options pool = {
        .gpu = &tccl_mover_host,
        .nic = &tccl_mover_tcp,
        .prepare_limit = 20,
        .run_limit = 5 + 20 * state->repeat.window,
    };

    if (copy_setting(settings.peer, sizeof(settings.peer), options->peer, "--peer", err) < 0 ||
        copy_setting(settings.munge, sizeof(settings.munge), options->munge, "munged's socket",
                     err) < 0)
        return -1;
    state->stage = tccl_stage_new(site, &settings, err);
    if (!state->stage)
        return -1;
    state->workers = tccl_workers_new(state->stage, &pool, err);
    return state->workers ? 0 : -1;
}

static int host_open(const struct tccl_backend_options *options, void **out, struct tccl_error *err)
{
    struct state *state = calloc(1, sizeof(*state));

    if (!state)
        return tccl_fail(err, "out of memory");
    choose_repeats(state, options);
    if (look_at_machine(state, options, err) < 0 || check_peer(options, err) < 0 ||
        start_pool(state, options, err) < 0) {
        host_close(state);
        return -1;
    }
    *out = state;
    return 0;
}

static const struct tccl_machine *host_machine(const void *context)
{
    const struct state *state = context;
    return &state->found.site.machine;
}

static const char *host_conditions(const void *context)
{
    const struct state *state = context;
    return state->conditions;
}

static int host_measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                        struct tccl_error *err)
{
    struct state *state = context;

    *out = (struct tccl_measurement){0};
    return tccl_repeat(state->workers, &state->repeat, set, out, err);
}

const struct tccl_backend_ops tccl_backend_of_host = {
    .name = "host",
    .noise = 0.05,
    .open = host_open,
    .machine = host_machine,
    .conditions = host_conditions,
    .measure = host_measure,
    .close = host_close,
};
