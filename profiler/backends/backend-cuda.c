/* The back end "cuda": the GPUs of this machine copy, all members of a set at the same time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend-ops.h"
#include "cleanup.h"
#include "cuda-driver.h"
#include "discover.h"
#include "far-hello.h"
#include "rdma.h"
#include "repeat.h"
#include "wire.h"
#include "workers.h"

/* Bytes of each region: what the buffers of NCCL's channels between two GPUs come to. */
static const size_t region = 16 << 20;
/* Seconds. Where several processes take turns on one GPU, a run spans many turns of some 2 ms. */
static const double window = 0.02, window_in_turns = 0.1;
enum { REPEATS = 5, ROUNDS = 3, PEER_MS = 5000 };

struct state {
    struct tccl_found found;
    struct tccl_stage *stage;
    struct tccl_workers *workers;
    struct tccl_repeat_options repeat;
    unsigned marks;
    bool peer;
    char conditions[128];
};

static void cuda_close(void *context)
{
    struct state *state = context;

    tccl_workers_free(state->workers);
    tccl_stage_free(state->stage);
    free(state);
}

/* Said at once, not by the processes that would fail at it later. */
static int check_driver(struct tccl_error *err)
{
    struct tccl_cuda cuda;

    if (tccl_cuda_load(&cuda, err) < 0)
        return -1;
    tccl_cuda_unload(&cuda);
    return 0;
}

static int check_users(const struct tccl_found *found, bool force, unsigned *marks,
                       struct tccl_error *err)
{
    for (int i = 0; i < found->site.machine.n_gpus; i++) {
        if (found->n_users[i] == 0)
            continue;
        if (!force)
            return tccl_fail(err,
                             "GPU %d (%s) is in use by %s: wait for its end, or measure next to it "
                             "with --force",
                             i, found->site.gpu_busid[i], found->user[i]);
        *marks |= TCCL_MARK_BUSY;
    }
    return 0;
}

static int check_sharing(const struct tccl_found *found, bool force, struct tccl_error *err)
{
    if (force || !(found->marks & (TCCL_MARK_MIG | TCCL_MARK_MPS)))
        return 0;
    return tccl_fail(err,
                     "%s: what is measured now is not what NCCL will have; end that, or measure "
                     "all the same with --force, for reports only",
                     found->marks & TCCL_MARK_MIG ? "a GPU is in MIG mode" : "MPS is running");
}

static bool stands_in(const struct tccl_site *site)
{
    for (int i = 1; i < site->machine.n_gpus; i++)
        if (site->gpu_device[i] == site->gpu_device[0])
            return true;
    return false;
}

static int look_at_machine(struct state *state, const struct tccl_backend_options *options,
                           struct tccl_error *err)
{
    const struct tccl_discover_options what = {.devices = options->devices};
    struct tccl_found *found = &state->found;

    if (tccl_discover(&what, found, err) < 0)
        return -1;
    if (found->recorded)
        return tccl_fail(err, "the topology is a recorded one: only this machine can be measured");
    if (check_driver(err) < 0 || check_users(found, options->force, &state->marks, err) < 0 ||
        check_sharing(found, options->force, err) < 0)
        return -1;
    state->marks |= found->marks;
    if (stands_in(&found->site))
        state->marks |= TCCL_MARK_STAND_IN;
    return 0;
}

static void say_conditions(struct state *state, const struct tccl_backend_options *options)
{
    const char *copies = options->engine ? "copy engines" : "kernel copies";
    const struct tccl_machine *machine = &state->found.site.machine;
    bool rdma = machine->n_nics > 0 && tccl_rdma_is_here(machine->nics[0].name);
    const char *hops = !options->peer ? "" : rdma ? ", RDMA" : ", TCP through host memory";
    int gpus = machine->n_gpus;

    if (state->marks & TCCL_MARK_STAND_IN)
        snprintf(state->conditions, sizeof(state->conditions),
                 "%s%s, one GPU stands for %d that take turns on it", copies, hops, gpus);
    else
        snprintf(state->conditions, sizeof(state->conditions), "%s%s", copies, hops);
}

static void choose_repeats(struct state *state, const struct tccl_backend_options *options)
{
    double usual = state->marks & TCCL_MARK_STAND_IN ? window_in_turns : window;
    int repeats = options->repeats > 0 ? options->repeats : REPEATS;

    state->repeat = (struct tccl_repeat_options){
        .window = options->window > 0 ? options->window : usual,
        .repeats = repeats < 3 ? 3 : repeats | 1,
        .rounds = ROUNDS,
        .spread = 0.05,
    };
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

static int start_pool(struct state *state, const struct tccl_backend_options *options,
                      struct tccl_error *err)
{
    struct tccl_stage_settings settings = {
        .region = region, .bind = true, .engine = options->engine};
    const struct tccl_workers_options pool = {
        .gpu = &tccl_mover_cuda,
        .nic = options->peer ? &tccl_mover_nic : NULL,
        .prepare_limit = 60, /* many GPUs without nvidia-persistenced start slowly */
        .run_limit = 5 + 20 * state->repeat.window,
    };

    if (copy_setting(settings.peer, sizeof(settings.peer), options->peer, "--peer", err) < 0 ||
        copy_setting(settings.munge, sizeof(settings.munge), options->munge, "munged's socket",
                     err) < 0)
        return -1;
    state->stage = tccl_stage_new(&state->found.site, &settings, err);
    if (!state->stage)
        return -1;
    state->workers = tccl_workers_new(state->stage, &pool, err);
    return state->workers ? 0 : -1;
}

static int start(struct state *state, const struct tccl_backend_options *options,
                 struct tccl_error *err)
{
    state->peer = options->peer != NULL;
    if (look_at_machine(state, options, err) < 0 || check_peer(options, err) < 0)
        return -1;
    say_conditions(state, options);
    choose_repeats(state, options);
    return start_pool(state, options, err);
}

static int cuda_open(const struct tccl_backend_options *options, void **out, struct tccl_error *err)
{
    struct state *state = calloc(1, sizeof(*state));

    if (!state)
        return tccl_fail(err, "out of memory");
    if (start(state, options, err) < 0) {
        cuda_close(state);
        return -1;
    }
    *out = state;
    return 0;
}

static const struct tccl_machine *cuda_machine(const void *context)
{
    const struct state *state = context;
    return &state->found.site.machine;
}

static const char *cuda_conditions(const void *context)
{
    const struct state *state = context;
    return state->conditions;
}

static unsigned cuda_marks(const void *context)
{
    const struct state *state = context;
    return state->marks;
}

static int cuda_can(const void *context, tccl_transfer transfer, struct tccl_error *err)
{
    const struct state *state = context;
    const struct tccl_machine *machine = &state->found.site.machine;
    struct tccl_device initiator = tccl_transfer_initiator(transfer);
    bool nic = initiator.kind == TCCL_NIC;

    if (tccl_machine_allows(machine, transfer, err) < 0)
        return -1;
    if (nic && !state->peer)
        return tccl_fail(err, "NICs are measured only against another node: --peer HOST, where "
                              "\"tccl-profile peer\" runs");
    if (nic && tccl_transfer_target(transfer).kind == TCCL_GPU &&
        !tccl_rdma_is_here(machine->nics[initiator.index].name))
        return tccl_fail(err,
                         "between a NIC and a GPU only RDMA could do: %s speaks TCP, which "
                         "goes through host memory",
                         machine->nics[initiator.index].name);
    return 0;
}

static int cuda_measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                        struct tccl_error *err)
{
    struct state *state = context;

    *out = (struct tccl_measurement){.marks = state->marks};
    return tccl_repeat(state->workers, &state->repeat, set, out, err);
}

const struct tccl_backend_ops tccl_backend_of_cuda = {
    .name = "cuda",
    .noise = 0.03,
    .open = cuda_open,
    .can = cuda_can,
    .machine = cuda_machine,
    .conditions = cuda_conditions,
    .marks = cuda_marks,
    .measure = cuda_measure,
    .close = cuda_close,
};
