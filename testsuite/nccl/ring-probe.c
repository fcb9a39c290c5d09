/* ring-probe.c: joins NCCL communicators, as a training program would, and prints the rings that
 * NCCL built, as its log tells them. Started once for each rank (srun, mpirun, torchrun) or once
 * for several GPUs. */
#include "base/options.h"
#include "ring-collective.h"
#include "ring-data.h"
#include "ring-log.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_COMMS = 64,
    MAX_COLLECTIVES = 1024,
    MAX_SUBSETS = 16,
    MAX_RANKS = 4096,
    MAX_GPUS = 16,
    WAIT_SECONDS = 300
};

/* Communicators of a rank: the ones asked for; those of subsets; then what is made of the first. */
enum { SUBSET = MAX_COMMS, SPLIT_OFF = SUBSET + MAX_SUBSETS, SPLIT_AGAIN, SHRUNKEN, GROWN, SLOTS };

/* Whose memory collectives use: CUDA's; NCCL's own, which may be registered, or be a window. */
enum buffers { BUFFERS_CUDA, BUFFERS_NCCL, BUFFERS_REGISTERED, BUFFERS_WINDOW };

enum init { INIT_RANK, INIT_CONFIG, INIT_SCALABLE, INIT_ALL };

static struct options {
    int rank, ranks; /* of processes */
    int gpus;        /* of this process */
    int device;      /* the first one; -1: from the place on the node */
    int comms, subsets, split, no_color, shrink, collectives, times, coalesced, replays, calls;
    int init, buffers; /* of those above */
    bool group, threads, nonblocking, split_off, share, again, grow, edges, json, no_log;
    bool allreduce, everywhere, in_groups, check, stuck, children_last, go_on, finalize, abort;
    const char *id;
    const char *log; /* NULL: one that is removed */
} options = {.rank = -1,
             .ranks = -1,
             .gpus = 1,
             .device = -1,
             .comms = 1,
             .no_color = -1,
             .shrink = -1,
             .coalesced = 1};

/* Ranks that make a communicator of their own, in its order. */
static struct subset {
    int n, ranks[MAX_RANKS];
} subsets[MAX_SUBSETS];

static struct ring_collective collectives[MAX_COLLECTIVES];

/* A rank of this process. */
struct member {
    int rank, device;
    ncclComm_t comms[SLOTS];
    bool broken[SLOTS]; /* NCCL wants it to be given up */
    int status;
};

static struct member members[MAX_GPUS];
static char log_path[4096];

static int fail(int rank, const char *what, const char *why)
{
    fprintf(stderr, "tccl: ring-probe: rank %d: %s: %s\n", rank, what, why);
    return -1;
}

static int check(int rank, const char *what, ncclResult_t result)
{
    if (result == ncclSuccess || result == ncclInProgress)
        return 0;
    return fail(rank, what, ncclGetErrorString(result));
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* ---- who we are ---- */

/* The first of the variables that is set. */
static int from_environment(const char *const names[], int otherwise)
{
    for (int i = 0; names[i]; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return otherwise;
}

static const char *first_text(const char *a, const char *b, const char *otherwise)
{
    return getenv(a) ? getenv(a) : getenv(b) ? getenv(b) : otherwise;
}

static int find_place(void)
{
    /* Launchers start from tasks of Slurm's, so what these have comes last. */
    static const char *const rank[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
                                       NULL};
    static const char *const ranks[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "SLURM_STEP_NUM_TASKS", NULL};
    static const char *const local[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID", "SLURM_LOCALID", NULL};
    static char id[4000];
    int count = 0;
    if (options.rank < 0)
        options.rank = from_environment(rank, 0);
    if (options.ranks < 0)
        options.ranks = from_environment(ranks, 1);
    if (cudaGetDeviceCount(&count) != cudaSuccess || count < 1)
        return fail(options.rank, "CUDA", "there are no GPUs");
    if (options.device < 0)
        options.device = from_environment(local, options.rank) * options.gpus % count;
    snprintf(id, sizeof(id), "ring-probe.%s.%s",
             first_text("SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "0"),
             first_text("SLURM_STEP_ID", "TORCHELASTIC_RESTART_COUNT", "0"));
    options.id = options.id ? options.id : id;
    if (options.rank < 0 || options.rank >= options.ranks)
        return fail(options.rank, "--rank", "not one of the ranks");
    for (int i = 0; i < options.gpus; i++)
        members[i] = (struct member){.rank = options.rank * options.gpus + i,
                                     .device = (options.device + i) % count};
    return 0;
}

static int all_ranks(void)
{
    return options.ranks * options.gpus;
}

/* NCCL writes its log where we find it. */
static void prepare_log(void)
{
    const char *folder = getenv("TMPDIR");
    if (options.no_log)
        return;
    if (options.log)
        snprintf(log_path, sizeof(log_path), "%s", options.log);
    else
        snprintf(log_path, sizeof(log_path), "%s/ring-probe.%d.log", folder ? folder : "/tmp",
                 getpid());
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "INIT,GRAPH,P2P,SHM,NET,ENV,COLL,TUNING,ALLOC", 1);
    setenv("NCCL_DEBUG_FILE", log_path, 1);
}

/* ---- NCCL's id, through a file ---- */

static int write_id(const char *path, const ncclUniqueId *id)
{
    char temporary[4200];
    snprintf(temporary, sizeof(temporary), "%s.%d", path, getpid());
    FILE *file = fopen(temporary, "we");
    if (!file)
        return fail(options.rank, temporary, strerror(errno));
    bool written = fwrite(id, sizeof(*id), 1, file) == 1;
    if (fclose(file) != 0 || !written || rename(temporary, path) != 0)
        return fail(options.rank, path, strerror(errno));
    return 0;
}

static int read_id(const char *path, ncclUniqueId *id)
{
    double deadline = now() + WAIT_SECONDS;
    FILE *file;
    while (!(file = fopen(path, "re"))) {
        if (now() > deadline)
            return fail(options.rank, path, "rank 0 did not write it");
        nap();
    }
    size_t count = fread(id, sizeof(*id), 1, file);
    fclose(file);
    return count == 1 ? 0 : fail(options.rank, path, "too short");
}

/* The process owner makes the id of a communicator, the others wait for it. */
static int exchange_id(int slot, int owner, ncclUniqueId *id)
{
    char path[4100];
    snprintf(path, sizeof(path), "%s.%d", options.id, slot);
    if (options.rank != owner)
        return read_id(path, id);
    if (check(options.rank, "ncclGetUniqueId", ncclGetUniqueId(id)) != 0)
        return -1;
    return options.ranks > 1 ? write_id(path, id) : 0;
}

/* Of a communicator that all have joined. */
static void remove_id(int slot)
{
    char path[4100];
    snprintf(path, sizeof(path), "%s.%d", options.id, slot);
    unlink(path);
}

/* ---- communicators ---- */

static ncclConfig_t configuration(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = !options.nonblocking;
    config.splitShare = options.share;
    return config;
}

static int wait_ready(struct member *member, int comm)
{
    double deadline = now() + WAIT_SECONDS;
    ncclResult_t state = ncclInProgress;
    while (options.nonblocking && member->comms[comm]) {
        ncclResult_t result = ncclCommGetAsyncError(member->comms[comm], &state);
        if (result != ncclSuccess || state != ncclInProgress)
            return check(member->rank, "communicator", result != ncclSuccess ? result : state);
        if (now() > deadline)
            return fail(member->rank, "communicator", "not ready in time");
        nap();
    }
    return 0;
}

static ncclResult_t init_scalable(ncclComm_t *comm, int rank, int ranks, ncclUniqueId *id,
                                  ncclConfig_t *config)
{
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
    return ncclCommInitRankScalable(comm, ranks, rank, 1, id, config);
#else
    return ncclCommInitRankConfig(comm, ranks, *id, rank, config);
#endif
}

static int join_as(struct member *member, int slot, ncclUniqueId id, int rank, int ranks)
{
    ncclConfig_t config = configuration();
    ncclResult_t result;
    if (cudaSetDevice(member->device) != cudaSuccess)
        return fail(member->rank, "cudaSetDevice", "no such device");
    if (options.init == INIT_SCALABLE)
        result = init_scalable(&member->comms[slot], rank, ranks, &id, &config);
    else if (options.init == INIT_CONFIG || options.nonblocking)
        result = ncclCommInitRankConfig(&member->comms[slot], ranks, id, rank, &config);
    else
        result = ncclCommInitRank(&member->comms[slot], ranks, id, rank);
    return check(member->rank, "communicator", result);
}

static int join(struct member *member, int comm, ncclUniqueId id)
{
    return join_as(member, comm, id, member->rank, all_ranks());
}

static ncclUniqueId ids[MAX_COMMS];

/* Each thread's rank in a group of its own, or in none. */
static int join_by_thread(struct member *member, int comm)
{
    if (options.group && check(member->rank, "ncclGroupStart", ncclGroupStart()) != 0)
        return -1;
    int status = join(member, comm, ids[comm]);
    if (options.group && check(member->rank, "ncclGroupEnd", ncclGroupEnd()) != 0)
        return -1;
    return status;
}

static void *join_all_comms(void *data)
{
    struct member *member = data;
    for (int comm = 0; comm < options.comms && member->status == 0; comm++)
        member->status = join_by_thread(member, comm) < 0 ? -1 : wait_ready(member, comm);
    return NULL;
}

static int join_in_threads(void)
{
    pthread_t threads[MAX_GPUS];
    for (int i = 0; i < options.gpus; i++)
        if (pthread_create(&threads[i], NULL, join_all_comms, &members[i]) != 0)
            return fail(members[i].rank, "pthread_create", strerror(errno));
    for (int i = 0; i < options.gpus; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < options.gpus; i++)
        if (members[i].status < 0)
            return -1;
    return 0;
}

static int wait_all(int first, int last)
{
    for (int i = 0; i < options.gpus; i++)
        for (int comm = first; comm <= last; comm++)
            if (wait_ready(&members[i], comm) != 0)
                return -1;
    return 0;
}

/* One GPU needs no group, and programs with one GPU take none. */
static int group_start(void)
{
    if (options.gpus == 1 && !options.group)
        return 0;
    return check(options.rank, "ncclGroupStart", ncclGroupStart());
}

static int group_end(int first, int last)
{
    if ((options.gpus > 1 || options.group) &&
        check(options.rank, "ncclGroupEnd", ncclGroupEnd()) != 0)
        return -1;
    return wait_all(first, last);
}

static int join_together(int first, int last)
{
    int status = group_start();
    for (int comm = first; status == 0 && comm <= last; comm++)
        for (int i = 0; status == 0 && i < options.gpus; i++)
            status = join(&members[i], comm, ids[comm]);
    return group_end(first, last) != 0 ? -1 : status;
}

static int join_alone(int comm)
{
    int devices[MAX_GPUS];
    ncclComm_t comms[MAX_GPUS];
    for (int i = 0; i < options.gpus; i++)
        devices[i] = members[i].device;
    if (check(options.rank, "ncclCommInitAll", ncclCommInitAll(comms, options.gpus, devices)) != 0)
        return -1;
    for (int i = 0; i < options.gpus; i++)
        members[i].comms[comm] = comms[i];
    return 0;
}

static int make_comms(void)
{
    for (int comm = 0; comm < options.comms; comm++)
        if (options.init != INIT_ALL && exchange_id(comm, 0, &ids[comm]) != 0)
            return -1;
    if (options.threads)
        return join_in_threads();
    if (options.group && options.init != INIT_ALL)
        return join_together(0, options.comms - 1);
    for (int comm = 0; comm < options.comms; comm++)
        if ((options.init == INIT_ALL ? join_alone(comm) : join_together(comm, comm)) < 0)
            return -1;
    return 0;
}

/* The rank's place in the subset, or -1. */
static int place_in(const struct subset *subset, int rank)
{
    for (int i = 0; i < subset->n; i++)
        if (subset->ranks[i] == rank)
            return i;
    return -1;
}

static bool takes_part(const struct subset *subset)
{
    for (int i = 0; i < options.gpus; i++)
        if (place_in(subset, members[i].rank) >= 0)
            return true;
    return false;
}

static int join_subset(int index)
{
    const struct subset *subset = &subsets[index];
    ncclUniqueId id;
    int status = exchange_id(SUBSET + index, subset->ranks[0] / options.gpus, &id);
    if (status < 0 || (!options.group && group_start() != 0))
        return -1;
    for (int i = 0; i < options.gpus && status == 0; i++) {
        int place = place_in(subset, members[i].rank);
        if (place >= 0)
            status = join_as(&members[i], SUBSET + index, id, place, subset->n);
    }
    if (!options.group && group_end(SUBSET + index, SUBSET + index) != 0)
        return -1;
    return status;
}

static int make_subsets(void)
{
    int status = options.group ? group_start() : 0;
    for (int i = 0; i < options.subsets && status == 0; i++)
        if (takes_part(&subsets[i]))
            status = join_subset(i);
    if (options.group && group_end(SUBSET, SUBSET + options.subsets - 1) != 0)
        return -1;
    return status;
}

static int split_from(struct member *member, int from, int slot, int color, int place)
{
    ncclConfig_t config = configuration();
    return check(member->rank, "ncclCommSplit",
                 ncclCommSplit(member->comms[from], color, place, &member->comms[slot], &config));
}

/* As PyTorch's new_group does: each group is a split of its own. */
static int split_subset(struct member *member, int slot)
{
    int place = place_in(&subsets[slot - SUBSET], member->rank);
    return split_from(member, 0, slot, place < 0 ? NCCL_SPLIT_NOCOLOR : 0, place);
}

static int split_off(struct member *member, int slot)
{
    int color =
        member->rank == options.no_color ? NCCL_SPLIT_NOCOLOR : member->rank % options.split;
    return split_from(member, 0, slot, color, member->rank);
}

static int split_again(struct member *member, int slot)
{
    if (!member->comms[SPLIT_OFF])
        return 0;
    return split_from(member, SPLIT_OFF, slot, member->rank / options.split % 2, member->rank);
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
static int shrink(struct member *member, int slot)
{
    ncclConfig_t config = configuration();
    if (member->rank == options.shrink)
        return 0;
    return check(member->rank, "ncclCommShrink",
                 ncclCommShrink(member->comms[0], &options.shrink, 1, &member->comms[slot], &config,
                                NCCL_SHRINK_DEFAULT));
}
#else
static int shrink(struct member *member, int slot)
{
    (void)slot;
    return fail(member->rank, "--shrink", "needs NCCL 2.27");
}
#endif

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2)
/* The first rank of the shrunken one makes the id, the new one needs it. */
static int grow(struct member *member, int slot)
{
    int root = options.shrink == 0 ? 1 : 0;
    ncclConfig_t config = configuration();
    ncclUniqueId id;
    char path[4100];
    snprintf(path, sizeof(path), "%s.%d", options.id, slot);
    if (member->rank == root && (check(root, "ncclCommGetUniqueId",
                                       ncclCommGetUniqueId(member->comms[SHRUNKEN], &id)) != 0 ||
                                 write_id(path, &id) != 0))
        return -1;
    if (member->rank == options.shrink && read_id(path, &id) != 0)
        return -1;
    return check(member->rank, "ncclCommGrow",
                 ncclCommGrow(member->comms[SHRUNKEN], all_ranks(),
                              member->rank == root || !member->comms[SHRUNKEN] ? &id : NULL,
                              member->comms[SHRUNKEN] ? -1 : all_ranks() - 1, &member->comms[slot],
                              &config));
}
#else
static int grow(struct member *member, int slot)
{
    (void)slot;
    return fail(member->rank, "--grow", "needs NCCL 2.29.2");
}
#endif

/* Makes a communicator out of another one on each GPU of this process. Without waiting inside NCCL,
 * the new one is there when the other one is ready again. */
static int derive(int slot, int from, int (*make)(struct member *, int slot))
{
    int status = group_start();
    for (int i = 0; i < options.gpus && status == 0; i++) {
        cudaSetDevice(members[i].device);
        status = make(&members[i], slot);
    }
    if (group_end(from, from) != 0 || wait_all(slot, slot) != 0)
        return -1;
    return status;
}

static int derive_all(void)
{
    for (int i = 0; options.split_off && i < options.subsets; i++)
        if (derive(SUBSET + i, 0, split_subset) < 0)
            return -1;
    if (options.split && derive(SPLIT_OFF, 0, split_off) < 0)
        return -1;
    if (options.split && options.again && derive(SPLIT_AGAIN, SPLIT_OFF, split_again) < 0)
        return -1;
    if (options.shrink >= 0 && derive(SHRUNKEN, 0, shrink) < 0)
        return -1;
    if (options.shrink >= 0 && options.grow && derive(GROWN, SHRUNKEN, grow) < 0)
        return -1;
    return 0;
}

/* ---- collectives ---- */

/* What a rank needs for one. */
struct part {
    void *send, *receive, *host; /* host: NULL, if nobody looks at the result */
    int rank, ranks;
    void *handles[2]; /* of registered buffers */
    cudaStream_t stream;
    cudaEvent_t begun, ended; /* NULL: nobody wants to know how long it takes */
    ncclResult_t result;
};

static ncclResult_t take_window(ncclComm_t comm, void *buffer, size_t size, void **handle)
{
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    return ncclCommWindowRegister(comm, buffer, size, (ncclWindow_t *)handle,
                                  NCCL_WIN_COLL_SYMMETRIC);
#else
    return ncclInvalidUsage;
#endif
}

static ncclResult_t give_window(ncclComm_t comm, void *handle)
{
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    return ncclCommWindowDeregister(comm, handle);
#else
    return ncclInvalidUsage;
#endif
}

static int take_buffer(const struct member *member, int slot, void **buffer, size_t size,
                       void **handle)
{
    ncclComm_t comm = member->comms[slot];
    if (options.buffers == BUFFERS_CUDA)
        return cudaMalloc(buffer, size) == cudaSuccess ? 0 : -1;
    ncclResult_t result = ncclMemAlloc(buffer, size);
    if (result == ncclSuccess && options.buffers == BUFFERS_REGISTERED)
        result = ncclCommRegister(comm, *buffer, size, handle);
    if (result == ncclSuccess && options.buffers == BUFFERS_WINDOW)
        result = take_window(comm, *buffer, size, handle);
    return check(member->rank, "NCCL's own memory", result);
}

static void give_buffer(ncclComm_t comm, void *buffer, void *handle)
{
    if (options.buffers == BUFFERS_CUDA) {
        cudaFree(buffer);
        return;
    }
    if (handle && options.buffers == BUFFERS_REGISTERED)
        ncclCommDeregister(comm, handle);
    if (handle && options.buffers == BUFFERS_WINDOW)
        give_window(comm, handle);
    ncclMemFree(buffer);
}

static int prepare_part(const struct member *member, int slot,
                        const struct ring_collective *collective, struct part *part)
{
    const size_t least = (size_t)MAX_RANKS * 8; /* an element for each rank */
    size_t size = collective->bytes > least ? collective->bytes : least;
    ncclCommUserRank(member->comms[slot], &part->rank);
    ncclCommCount(member->comms[slot], &part->ranks);
    part->host = options.check ? malloc(size) : NULL;
    if (cudaSetDevice(member->device) != cudaSuccess ||
        cudaStreamCreate(&part->stream) != cudaSuccess ||
        take_buffer(member, slot, &part->send, size, &part->handles[0]) != 0 ||
        take_buffer(member, slot, &part->receive, size, &part->handles[1]) != 0 ||
        (options.check && !part->host) ||
        (options.times && (cudaEventCreate(&part->begun) != cudaSuccess ||
                           cudaEventCreate(&part->ended) != cudaSuccess)))
        return fail(member->rank, "collective", "out of memory on the GPU");
    if (!options.check)
        return 0;
    ring_data_fill(collective, part->rank, part->ranks, part->host);
    size_t sent = ring_data_sent(collective, part->ranks) * collective->type->size;
    if (cudaMemset(part->receive, 0x55, size) != cudaSuccess ||
        cudaMemcpy(part->send, part->host, sent, cudaMemcpyHostToDevice) != cudaSuccess)
        return fail(member->rank, "collective", "can't fill memory on the GPU");
    return 0;
}

static void say_result(const char *what, size_t bytes, int slot, int rank, ncclResult_t result,
                       const char *more);

/* Elements that are wrong; says so. */
static size_t look_at_part(const struct member *member, int slot,
                           const struct ring_collective *collective, struct part *part)
{
    size_t received =
        ring_data_received(collective, part->rank, part->ranks) * collective->type->size;
    char more[160];
    if (cudaMemcpy(part->host, part->receive, received, cudaMemcpyDeviceToHost) != cudaSuccess)
        part->result = ncclUnhandledCudaError;
    size_t wrong = ring_data_wrong(collective, part->rank, part->ranks, part->host);
    snprintf(more, sizeof(more),
             ", \"type\": \"%s\", \"op\": \"%s\", \"wrong\": %zu, \"digest\": \"%016llx\"",
             collective->type->name, ring_collective_op(collective->op), wrong,
             (unsigned long long)ring_data_digest(collective, part->rank, part->ranks, part->host));
    if (options.go_on)
        say_result(ring_collective_name(collective->kind), collective->bytes, slot, member->rank,
                   part->result, more);
    else if (wrong > 0)
        fail(member->rank, ring_collective_name(collective->kind), "the result is wrong");
    return wrong;
}

/* When all is done, or has failed. Returns 0, or -1 where that was said and nothing is to follow.
 */
static int finish_part(struct member *member, int slot, const struct ring_collective *collective,
                       struct part *part)
{
    const char *name = ring_collective_name(collective->kind);
    double deadline = now() + WAIT_SECONDS;
    size_t wrong = 0;
    cudaSetDevice(member->device);
    while (part->result == ncclInProgress && now() < deadline) {
        ncclResult_t asked = ncclCommGetAsyncError(member->comms[slot], &part->result);
        if (asked != ncclSuccess)
            part->result = asked;
        nap();
    }
    if (part->result == ncclSuccess && cudaStreamSynchronize(part->stream) != cudaSuccess)
        part->result = ncclUnhandledCudaError;
    float ms = 0;
    char more[64] = "";
    if (part->ended && part->result == ncclSuccess &&
        cudaEventElapsedTime(&ms, part->begun, part->ended) == cudaSuccess)
        snprintf(more, sizeof(more), ", \"seconds\": %.6f", ms / 1e3 / options.times);
    if (part->host && part->result == ncclSuccess)
        wrong = look_at_part(member, slot, collective, part);
    else if (options.go_on)
        say_result(name, collective->bytes, slot, member->rank, part->result, more);
    free(part->host);
    if (part->begun)
        cudaEventDestroy(part->begun);
    if (part->ended)
        cudaEventDestroy(part->ended);
    give_buffer(member->comms[slot], part->send, part->handles[0]);
    give_buffer(member->comms[slot], part->receive, part->handles[1]);
    cudaStreamDestroy(part->stream);
    member->broken[slot] =
        member->broken[slot] || (part->result != ncclSuccess && options.nonblocking);
    return options.go_on || (wrong == 0 && check(member->rank, name, part->result) == 0) ? 0 : -1;
}

static int start_once(const struct ring_collective *collective, int slot, struct part *parts)
{
    if (group_start() != 0)
        return -1;
    for (int i = 0; i < options.gpus; i++) {
        if (!members[i].comms[slot])
            continue;
        cudaSetDevice(members[i].device);
        parts[i].result = ncclSuccess;
        for (int n = 0; n < options.coalesced && parts[i].result == ncclSuccess; n++)
            parts[i].result =
                ring_collective_start(collective, members[i].comms[slot], parts[i].send,
                                      parts[i].receive, parts[i].stream);
    }
    ncclResult_t ended = options.gpus > 1 || options.group ? ncclGroupEnd() : ncclSuccess;
    for (int i = 0; i < options.gpus; i++)
        if (ended != ncclSuccess &&
            (parts[i].result == ncclSuccess || parts[i].result == ncclInProgress))
            parts[i].result = ended;
    return 0;
}

static struct part parts[SLOTS][MAX_GPUS];

/* With --times once, and then so often again, between two events. */
static int start_parts(const struct ring_collective *collective, int slot)
{
    for (int times = 0; times <= options.times; times++) {
        if (start_once(collective, slot, parts[slot]) != 0)
            return -1;
        for (int i = 0; i < options.gpus && options.times; i++) {
            struct part *part = &parts[slot][i];
            if (part->stream && (times == 0 || times == options.times) &&
                cudaEventRecord(times == 0 ? part->begun : part->ended, part->stream) !=
                    cudaSuccess)
                return fail(members[i].rank, "collective", "its time can't be taken");
        }
    }
    return 0;
}

/* A communicator of one rank has nobody to connect to. */
static bool is_alone(int slot)
{
    int ranks = 2;
    for (int i = 0; i < options.gpus; i++)
        if (members[i].comms[slot] && ncclCommCount(members[i].comms[slot], &ranks) == ncclSuccess)
            return ranks == 1;
    return false;
}

/* ---- in a CUDA graph ---- */

/* The slot whose stream a rank's graph is captured by, and launched on; -1: it has none. */
static int origin_of(int gpu, int first, int last)
{
    for (int slot = first; slot <= last; slot++)
        if (parts[slot][gpu].stream)
            return slot;
    return -1;
}

/* All other streams of the rank go on from the origin's, or the origin's from them. */
static cudaError_t join_streams(int gpu, int origin, int last, bool fork)
{
    cudaError_t result = cudaSuccess;
    cudaEvent_t event;
    for (int slot = origin + 1; slot <= last && result == cudaSuccess; slot++) {
        cudaStream_t to = parts[fork ? slot : origin][gpu].stream;
        cudaStream_t from = parts[fork ? origin : slot][gpu].stream;
        if (!parts[slot][gpu].stream)
            continue;
        result = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        if (result == cudaSuccess)
            result = cudaEventRecord(event, from);
        if (result == cudaSuccess)
            result = cudaStreamWaitEvent(to, event, 0);
        cudaEventDestroy(event);
    }
    return result;
}

static cudaError_t begin_capture(int gpu, int origin, int last)
{
    cudaSetDevice(members[gpu].device);
    cudaError_t result =
        cudaStreamBeginCapture(parts[origin][gpu].stream, cudaStreamCaptureModeGlobal);
    return result == cudaSuccess ? join_streams(gpu, origin, last, true) : result;
}

static cudaError_t end_capture(int gpu, int origin, int last, cudaGraphExec_t *out, size_t *nodes)
{
    cudaGraph_t graph = NULL;
    cudaSetDevice(members[gpu].device);
    cudaError_t result = join_streams(gpu, origin, last, false);
    cudaError_t ended = cudaStreamEndCapture(parts[origin][gpu].stream, &graph);
    if (result == cudaSuccess)
        result = ended;
    if (result == cudaSuccess)
        result = cudaGraphGetNodes(graph, NULL, nodes);
    if (result == cudaSuccess)
        result = cudaGraphInstantiate(out, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    return result;
}

static int capture(const struct ring_collective *collective, int first, int last,
                   cudaGraphExec_t graphs[])
{
    cudaError_t result = cudaSuccess;
    char more[64];
    for (int i = 0; i < options.gpus && result == cudaSuccess; i++) {
        int origin = origin_of(i, first, last);
        if (origin >= 0)
            result = begin_capture(i, origin, last);
    }
    for (int slot = first; slot <= last && result == cudaSuccess; slot++)
        if (!is_alone(slot) && start_once(collective, slot, parts[slot]) != 0)
            return -1;
    for (int i = 0; i < options.gpus; i++) {
        int origin = origin_of(i, first, last);
        size_t nodes = 0;
        if (origin < 0)
            continue;
        cudaError_t ended = end_capture(i, origin, last, &graphs[i], &nodes);
        if (result == cudaSuccess)
            result = ended;
        snprintf(more, sizeof(more), ", \"nodes\": %zu", nodes);
        if (options.go_on)
            say_result("capture", collective->bytes, origin, members[i].rank,
                       ended == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError, more);
    }
    return result == cudaSuccess ? 0 : fail(options.rank, "graph", cudaGetErrorString(result));
}

/* What was received before is overwritten each time. */
static int replay(const struct ring_collective *collective, int first, int last,
                  cudaGraphExec_t graphs[])
{
    for (int slot = first; slot <= last && options.times > 0; slot++)
        if (!is_alone(slot) && start_once(collective, slot, parts[slot]) != 0)
            return -1;
    for (int i = 0; i < options.gpus; i++) {
        int origin = origin_of(i, first, last);
        cudaError_t result = cudaSuccess;
        if (origin < 0)
            continue;
        cudaSetDevice(members[i].device);
        if (options.times > 0)
            result = join_streams(i, origin, last, false);
        for (int slot = first; slot <= last && result == cudaSuccess; slot++)
            if (parts[slot][i].stream)
                result = cudaMemsetAsync(parts[slot][i].receive, 0x55, collective->bytes,
                                         parts[origin][i].stream);
        if (result == cudaSuccess)
            result = cudaGraphLaunch(graphs[i], parts[origin][i].stream);
        if (result == cudaSuccess)
            result = join_streams(i, origin, last, true);
        if (result != cudaSuccess)
            return fail(members[i].rank, "graph", cudaGetErrorString(result));
    }
    return 0;
}

/* ---- all of it ---- */

/* At once on these communicators, on all ranks of this process that are in them. */
static int collect(const struct ring_collective *collective, int first, int last)
{
    cudaGraphExec_t graphs[MAX_GPUS] = {NULL};
    int status = 0;
    memset(parts, 0, sizeof(parts));
    for (int slot = first; slot <= last; slot++)
        for (int i = 0; i < options.gpus && status == 0 && !is_alone(slot); i++)
            if (members[i].comms[slot])
                status = prepare_part(&members[i], slot, collective, &parts[slot][i]);
    for (int slot = first; slot <= last && status == 0; slot++)
        if (!is_alone(slot) && (options.times || !options.replays))
            status = start_parts(collective, slot);
    if (options.replays && status == 0)
        status = capture(collective, first, last, graphs);
    for (int n = 0; n < options.replays && status == 0; n++)
        status = replay(collective, first, last, graphs);
    for (int slot = first; slot <= last; slot++)
        for (int i = 0; i < options.gpus && status == 0; i++)
            if (parts[slot][i].stream)
                status = finish_part(&members[i], slot, collective, &parts[slot][i]);
    for (int i = 0; i < options.gpus; i++)
        if (graphs[i])
            cudaGraphExecDestroy(graphs[i]);
    return status;
}

/* NCCL may connect at the first collective. A broadcast goes by the ring, whatever its size. */
static int connect_all(void)
{
    struct ring_collective broadcast;
    options.replays = 0;
    ring_collective_parse("broadcast:4", &broadcast);
    for (int slot = 0; slot < SLOTS; slot++)
        if (collect(&broadcast, slot, slot) < 0)
            return -1;
    return 0;
}

static int collect_all(void)
{
    for (int i = 0; i < options.collectives; i++)
        if (collect(&collectives[i], options.in_groups,
                    options.everywhere || options.in_groups ? SLOTS - 1 : 0) < 0)
            return -1;
    return 0;
}

/* Rank 0 starts the last collective once more, which can't end, as the others don't join it. */
static int get_stuck(void)
{
    const struct ring_collective *last = &collectives[options.collectives - 1];
    struct part part = {0};
    ncclResult_t result;
    if (members[0].rank != 0) {
        sleep(1);
        return 0;
    }
    if (prepare_part(&members[0], 0, last, &part) != 0)
        return -1;
    result = ring_collective_start(last, members[0].comms[0], part.send, part.receive, part.stream);
    sleep(1);
    if (result == ncclSuccess && cudaStreamQuery(part.stream) != cudaErrorNotReady)
        return fail(0, "the last collective", "it ended alone");
    return check(0, "the last collective", result);
}

static double thread_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void print_calls(const char *name, const double *ns)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < options.calls; i++)
        printf("%s%.0f", i ? ", " : "", ns[i]);
    putchar(']');
}

/* Of two events on the stream, whose time is asked for once it is there. */
static double time_events(const struct part *part)
{
    float ms;
    cudaStreamSynchronize(part->stream);
    double start = thread_ns();
    cudaEventRecord(part->begun, part->stream);
    cudaEventRecord(part->ended, part->stream);
    double ns = thread_ns() - start;
    cudaStreamSynchronize(part->stream);
    start = thread_ns();
    cudaEventQuery(part->ended);
    cudaEventElapsedTime(&ms, part->begun, part->ended);
    return ns + thread_ns() - start;
}

/* What a call costs its thread with what is preloaded before NCCL, and without; and what the events
 * cost that a measured one has. */
static int time_calls(struct member *member)
{
    ncclResult_t (*const functions[])(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
                                      ncclComm_t, cudaStream_t) = {ncclAllReduce, pncclAllReduce};
    double *ns[3] = {calloc((size_t)options.calls, sizeof(double)),
                     calloc((size_t)options.calls, sizeof(double)),
                     calloc((size_t)options.calls, sizeof(double))};
    struct ring_collective reduce;
    struct part part = {0};
    options.times = 1; /* with events */
    ring_collective_parse("all-reduce:4194304:f32", &reduce);
    if (!ns[0] || !ns[1] || !ns[2] || prepare_part(member, 0, &reduce, &part) != 0)
        return -1;
    for (int i = 0; i < 2 * options.calls; i++) {
        int which = (i + i / 2) % 2; /* either first, in turn */
        cudaStreamSynchronize(part.stream);
        double start = thread_ns();
        ncclResult_t result = functions[which](part.send, part.receive, 1 << 20, ncclFloat, ncclSum,
                                               member->comms[0], part.stream);
        ns[which][i / 2] = thread_ns() - start;
        if (check(member->rank, "all-reduce", result) != 0)
            return -1;
        if (which == 1)
            ns[2][i / 2] = time_events(&part);
    }
    printf("{\"call\": \"calls\", \"rank\": %d", member->rank);
    print_calls("ncclAllReduce", ns[0]);
    print_calls("pncclAllReduce", ns[1]);
    print_calls("events", ns[2]);
    puts("}");
    for (int i = 0; i < 3; i++)
        free(ns[i]);
    return 0;
}

static int all_reduce(struct member *member)
{
    float value = 1, *buffer;
    cudaStream_t stream;
    if (cudaSetDevice(member->device) != cudaSuccess || cudaStreamCreate(&stream) != cudaSuccess ||
        cudaMalloc((void **)&buffer, sizeof(value)) != cudaSuccess ||
        cudaMemcpy(buffer, &value, sizeof(value), cudaMemcpyHostToDevice) != cudaSuccess)
        return fail(member->rank, "all-reduce", "out of memory on the GPU");
    ncclResult_t result =
        ncclAllReduce(buffer, buffer, 1, ncclFloat, ncclSum, member->comms[0], stream);
    if (check(member->rank, "all-reduce", result) != 0)
        return -1;
    if (cudaStreamSynchronize(stream) != cudaSuccess ||
        cudaMemcpy(&value, buffer, sizeof(value), cudaMemcpyDeviceToHost) != cudaSuccess ||
        (int)value != all_ranks())
        return fail(member->rank, "all-reduce", "the sum is wrong");
    return 0;
}

/* ---- what came out ---- */

static const char *name_of(int slot, char *buffer, size_t size)
{
    static const char *const names[] = {"split", "split again", "shrunken", "grown"};
    if (slot >= SPLIT_OFF)
        return names[slot - SPLIT_OFF];
    snprintf(buffer, size, slot < SUBSET ? "comm %d" : "subset %d", slot % SUBSET);
    return buffer;
}

/* Which part of a split it is. */
static int part_of(int slot, int rank)
{
    if (slot == SPLIT_OFF)
        return rank % options.split;
    if (slot == SPLIT_AGAIN)
        return rank % options.split * 2 + rank / options.split % 2;
    return 0;
}

static void print_order(const struct ring_channel *channel, int ranks, const char *separator)
{
    for (int i = 0; i < ranks; i++)
        printf("%s%d", i ? separator : "", channel->order[i]);
}

static void print_channel_json(const struct ring_member *seen, int index)
{
    const struct ring_channel *channel = &seen->channels[index];
    printf("%s{\"prev\": %d, \"next\": %d, \"send\": \"%s\", \"receive\": \"%s\"",
           index ? ", " : "", channel->prev, channel->next, channel->send_via,
           channel->receive_via);
    if (channel->order) {
        fputs(", \"order\": [", stdout);
        print_order(channel, seen->ranks, ", ");
        putchar(']');
    }
    putchar('}');
}

/* NCCL's words, without its advice. */
static void print_result(ncclResult_t result)
{
    const char *words = ncclGetErrorString(result);
    printf("%.*s", (int)(strcspn(words, "(") - (strchr(words, '(') != NULL)), words);
}

/* more: of the JSON line. */
static void say_result(const char *what, size_t bytes, int slot, int rank, ncclResult_t result,
                       const char *more)
{
    char buffer[32];
    const char *name = name_of(slot, buffer, sizeof(buffer));
    if (options.json) {
        printf("{\"call\": \"%s\", \"bytes\": %zu, \"comm\": \"%s\", \"rank\": %d, \"result\": \"",
               what, bytes, name, rank);
        print_result(result);
        printf("\"%s}\n", more);
    } else if (result != ncclSuccess) {
        printf("ring-probe: %s, rank %d: %s: ", name, rank, what);
        print_result(result);
        putchar('\n');
    }
}

static double in_seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void print_json(const char *name, int part, const struct member *member, const char *busid,
                       const struct ring_log *log, const struct ring_member *seen,
                       const double seconds[2])
{
    static const char *const memory[] = {"null", "\"older\"", "\"cumem\""};
    static const char *const connected[] = {"null", "\"init\"", "\"first collective\""};
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"comm\": \"%s\", \"part\": %d, \"rank\": %d, \"ranks\": %d, "
           "\"process_rank\": %d, \"gpu\": \"%s\", "
           "\"version\": %d, \"memory\": %s, \"connected\": %s, "
           "\"seconds\": %.4f, \"connect_seconds\": %.4f, \"cpu_seconds\": %.3f, \"peak_kib\": "
           "%ld, \"channels\": [",
           name, part, seen->rank, seen->ranks, member->rank, busid, log->version,
           memory[log->memory], connected[seen->connected], seconds[0], seconds[1],
           in_seconds(used.ru_utime) + in_seconds(used.ru_stime), used.ru_maxrss);
    for (int i = 0; i < seen->n_channels; i++)
        print_channel_json(seen, i);
    puts("]}");
}

static bool same_order(const struct ring_channel *a, const struct ring_channel *b, int ranks)
{
    return a->order && b->order &&
           memcmp(a->order, b->order, (size_t)ranks * sizeof(*a->order)) == 0;
}

/* Rank 0 knows the whole ring; channels with the same one are counted together. */
static void print_rings(const char *name, const struct ring_member *seen)
{
    for (int i = 0; i < seen->n_channels; i++) {
        int count = 0, first = i;
        for (int k = seen->n_channels - 1; k >= 0; k--)
            if (same_order(&seen->channels[i], &seen->channels[k], seen->ranks)) {
                count++;
                first = k;
            }
        if (count == 0 || first != i)
            continue;
        printf("ring-probe: %s, %d ranks: ring ", name, seen->ranks);
        print_order(&seen->channels[i], seen->ranks, " ");
        printf(" (%d of %d channels)\n", count, seen->n_channels);
    }
}

/* Of each channel, or once for all of them. */
static void print_edges(const struct ring_member *seen)
{
    const struct ring_channel *first = &seen->channels[0];
    int n = 1;
    for (int i = 1; i < seen->n_channels; i++)
        if (seen->channels[i].next != first->next ||
            strcmp(seen->channels[i].send_via, first->send_via) != 0)
            n = seen->n_channels;
    for (int i = 0; i < n; i++)
        printf("%s %d by %s", i ? "," : "", seen->channels[i].next,
               seen->channels[i].send_via[0] ? seen->channels[i].send_via : "?");
    putchar('\n');
}

static void print_text(const char *name, const char *busid, const struct ring_member *seen)
{
    char host[256] = "";
    print_rings(name, seen);
    if (!options.edges || seen->n_channels == 0)
        return;
    gethostname(host, sizeof(host) - 1);
    printf("ring-probe: %s, rank %d (%s on %s): to", name, seen->rank, busid,
           first_text("NCCL_HOSTID", "SLURMD_NODENAME", host));
    print_edges(seen);
}

/* Seconds of the inits, and of the broadcasts at which NCCL connects. */
static int print_all(const double seconds[2])
{
    struct ring_log log;
    char buffer[32], busid[32] = "";
    int version = 0;
    ncclGetVersion(&version);
    if (ring_log_read(log_path, version, &log) < 0) {
        ring_log_free(&log);
        return fail(options.rank, log_path, strerror(errno));
    }
    for (int i = 0; i < options.gpus; i++)
        for (int slot = 0; slot < SLOTS; slot++) {
            const struct ring_member *seen = ring_log_find(&log, members[i].comms[slot]);
            if (!members[i].comms[slot] || !seen)
                continue;
            const char *name = name_of(slot, buffer, sizeof(buffer));
            cudaDeviceGetPCIBusId(busid, sizeof(busid), members[i].device);
            if (options.json)
                print_json(name, part_of(slot, members[i].rank), &members[i], busid, &log, seen,
                           seconds);
            else
                print_text(name, busid, seen);
        }
    fflush(stdout);
    ring_log_free(&log);
    return 0;
}

static void end_comm(struct member *member, int slot)
{
    ncclResult_t result = ncclSuccess;
    bool give_up = options.abort || member->broken[slot];
    if (options.finalize && !give_up) {
        result = ncclCommFinalize(member->comms[slot]);
        if (result == ncclInProgress)
            result = wait_ready(member, slot) != 0 ? ncclInternalError : ncclSuccess;
        if (options.go_on)
            say_result("finalize", 0, slot, member->rank, result, "");
    }
    result = give_up ? ncclCommAbort(member->comms[slot]) : ncclCommDestroy(member->comms[slot]);
    if (options.go_on)
        say_result(give_up ? "abort" : "destroy", 0, slot, member->rank, result, "");
}

static void remove_ids(void)
{
    for (int comm = 0; comm < options.comms && options.rank == 0; comm++)
        remove_id(comm);
    for (int i = 0; i < options.subsets; i++)
        if (options.rank == subsets[i].ranks[0] / options.gpus)
            remove_id(SUBSET + i);
    if (options.grow && options.rank == options.shrink / options.gpus)
        remove_id(GROWN);
}

/* A process whose ranks are in none of the subsets has not met NCCL. */
static bool has_comms(void)
{
    for (int i = 0; i < options.gpus; i++)
        for (int slot = 0; slot < SLOTS; slot++)
            if (members[i].comms[slot])
                return true;
    return false;
}

static int run(void)
{
    double start = now();
    if (make_comms() < 0 || (!options.split_off && make_subsets() < 0))
        return -1;
    double seconds[2] = {now() - start};
    if ((!options.children_last && derive_all() != 0) || collect_all() != 0 ||
        (options.children_last && derive_all() != 0))
        return -1;
    remove_ids();
    start = now();
    if ((options.edges || options.json) && connect_all() != 0)
        return -1;
    seconds[1] = now() - start;
    if (!options.no_log && has_comms() && print_all(seconds) != 0)
        return -1;
    if (options.calls && time_calls(&members[0]) != 0)
        return -1;
    for (int i = 0; i < options.gpus && options.allreduce; i++)
        if (all_reduce(&members[i]) != 0)
            return -1;
    if (options.stuck && get_stuck() != 0)
        return -1;
    for (int slot = SLOTS - 1; slot >= 0; slot--)
        for (int i = 0; i < options.gpus; i++)
            if (members[i].comms[slot])
                end_comm(&members[i], slot);
    return 0;
}

/* ---- options ---- */

/* One of the values, by its number. */
static TCCL_OPTION_SETTER(set_word)
{
    size_t length = strlen(text);
    *(int *)field = 0;
    for (const char *at = option->values; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        if (length > 0 && strcspn(at, "|") == length && strncmp(at, text, length) == 0)
            return 0;
        ++*(int *)field;
    }
    return tccl_fail(err, "--%s %.60s: is not one of %s", option->name, text, option->values);
}

/* "0,2" or "4-7": ranks, in the order of the new communicator. */
static TCCL_OPTION_SETTER(add_subset)
{
    struct subset *subset = &subsets[options.subsets];
    int first, last, length;
    while (options.subsets < MAX_SUBSETS && sscanf(text, "%d%n", &first, &length) == 1) {
        last = first;
        text += length;
        if (*text == '-' && sscanf(text, "-%d%n", &last, &length) == 1)
            text += length;
        for (int rank = first; rank >= 0 && rank <= last && subset->n < MAX_RANKS; rank++)
            subset->ranks[subset->n++] = rank;
        if (*text == '\0' && subset->n > 0)
            return options.subsets++, 0;
        if (*text++ != ',')
            break;
    }
    return tccl_fail(err, "--subset takes ranks such as 0,2 or 0-3, %d times at most", MAX_SUBSETS);
}

static TCCL_OPTION_SETTER(add_collective)
{
    if (options.collectives < MAX_COLLECTIVES &&
        ring_collective_parse(text, &collectives[options.collectives]) == 0)
        return options.collectives++, 0;
    return tccl_fail(err,
                     "--collective takes a kind and bytes, such as all-gather:1048576 or "
                     "all-reduce:1048576:f32:sum, %d times at most",
                     MAX_COLLECTIVES);
}

enum { MOST = 1 << 20 };
#define AT(field) offsetof(struct options, field)
#define FLAG(name, field, help)                                                                    \
    {                                                                                              \
        name, 0, 0, TCCL_OPTION_FLAG, AT(field), NULL, help, 0, 0, NULL                            \
    }
#define TEXT(name, field, help)                                                                    \
    {                                                                                              \
        name, 0, 0, TCCL_OPTION_TEXT, AT(field), NULL, help, 0, 0, NULL                            \
    }
#define OWN(name, at, values, help, set)                                                           \
    {                                                                                              \
        name, 0, 0, TCCL_OPTION_OWN, at, values, help, 0, 0, set                                   \
    }
#define COUNT(name, field, least, most, help)                                                      \
    {                                                                                              \
        name, 0, 0, TCCL_OPTION_COUNT, AT(field), NULL, help, least, most, NULL                    \
    }

static const struct tccl_option rows[] = {
    COUNT(
        "rank", rank, 0, MOST,
        "  --rank R --ranks N   this process, of how many (default: from Slurm, torchrun, MPI)\n"),
    COUNT("ranks", ranks, 1, MOST, NULL),
    COUNT("gpus", gpus, 1, MAX_GPUS,
          "  --gpus K             GPUs of this process, one rank each (default: 1)\n"),
    COUNT("device", device, 0, MAX_GPUS - 1,
          "  --device D           CUDA's number of the first (default: by place on the node)\n"),
    TEXT("id", id,
         "  --id FILE            passes NCCL's id on; seen by all, and new (default: by step)\n"),
    OWN("init", AT(init), "rank|config|scalable|all",
        "  --init HOW           rank, config, scalable, or all (one process only)\n", set_word),
    COUNT("comms", comms, 0, MAX_COMMS,
          "  --comms C            so many communicators, one after the other (default: 1)\n"),
    FLAG("group", group, "  --group              all of them in one group\n"),
    FLAG("threads", threads, "  --threads            one thread for each GPU\n"),
    FLAG("nonblocking", nonblocking, "  --nonblocking        without waiting inside NCCL\n"),
    OWN("subset", 0, NULL,
        "  --subset RANKS       and one of these ranks, such as 0,2 or 0-3; repeat as needed\n",
        add_subset),
    FLAG("split-off", split_off,
         "  --split-off          these are splits of the first one, each with all ranks\n"),
    COUNT("split", split, 1, MOST,
          "  --split N            then splits the first one into N by rank modulo N\n"),
    COUNT("no-color", no_color, 0, MOST, "  --no-color R         rank R takes no part in that\n"),
    FLAG("again", again, "  --again              then splits these into two\n"),
    FLAG("share", share, "  --share              splits share what they can\n"),
    COUNT("shrink", shrink, 0, MOST, "  --shrink R           then one of all ranks but R\n"),
    FLAG("grow", grow, "  --grow               then R joins that one\n"),
    FLAG("edges", edges,
         "  --edges              each rank also prints how it reaches the next, once, or of each\n"
         "                       channel where they differ; for that there is a broadcast on each\n"
         "                       communicator, since NCCL connects no earlier\n"),
    FLAG("json", json,
         "  --json               the same as JSON, a line for each rank and communicator\n"),
    TEXT("log", log, "  --log FILE           keeps NCCL's log there\n"),
    FLAG("no-log", no_log,
         "  --no-log             leaves NCCL's log alone, and so prints no rings\n"),
    OWN("collective", 0, NULL,
        "  --collective K:BYTES[:TYPE[:OP]] then a collective on the first communicator, repeat "
        "as\n                       needed: all-reduce, all-gather, reduce-scatter, broadcast, "
        "reduce or\n                       all-to-all (sends and receives); i8, u32, f16, bf16, "
        "...; sum, prod,\n                       min, max or avg\n",
        add_collective),
    FLAG("everywhere", everywhere,
         "  --everywhere         on all communicators, at once where a rank is in several\n"),
    FLAG("in-groups", in_groups, "  --in-groups          on all but the first one\n"),
    FLAG("check", check, "  --check              looks at each element of the results\n"),
    COUNT("times", times, 1, MOST,
          "  --times N            each of them so often again, and how long it then takes\n"),
    OWN("buffers", AT(buffers), "cuda|nccl|registered|window",
        "  --buffers HOW        of all collectives: cuda, nccl (ncclMemAlloc), registered, or "
        "window\n",
        set_word),
    COUNT(
        "replays", replays, 1, MOST,
        "  --replays N          each of them then in a CUDA graph, of all its communicators, that "
        "is\n                       launched so often; with --times once more before each "
        "launch\n"),
    COUNT("calls", calls, 1, MOST,
          "  --calls N            then N all-reduces of 4 MiB by ncclAllReduce, and as many by\n"
          "                       pncclAllReduce, in turn, and the processor time that each call "
          "takes\n                       its thread; one GPU per process\n"),
    COUNT("coalesced", coalesced, 1, 64,
          "  --coalesced N        with --group: each of them N times in one group\n"),
    FLAG("stuck", stuck,
         "  --stuck              rank 0 then starts the last one again, alone: it can't end, and\n"
         "                       with --abort is given up after a second\n"),
    FLAG("children-last", children_last,
         "  --children-last      splits, shrinks and grows after these\n"),
    FLAG("go-on", go_on, "  --go-on              where a collective fails, says so and goes on\n"),
    FLAG("all-reduce", allreduce, "  --all-reduce         then adds up a number over all ranks\n"),
    FLAG("finalize", finalize, "  --finalize           ncclCommFinalize, then ncclCommDestroy\n"),
    FLAG("abort", abort, "  --abort              ncclCommAbort in place of ncclCommDestroy\n"),
    {"help", 'h', 0, TCCL_OPTION_HELP, 0, NULL, NULL, 0, 0, NULL},
};

static const struct tccl_command command = {
    "",
    "Usage: ring-probe [OPTION]...\n"
    "Joins NCCL communicators and prints the rings that NCCL built.\n",
    "",
};

static const struct tccl_program program = {
    .name = "ring-probe",
    .commands = &command,
    .n_commands = 1,
    .options = rows,
    .n_options = sizeof(rows) / sizeof(*rows),
};

int main(int argc, char **argv)
{
    struct tccl_error err = {0};
    int status = tccl_options_read(&program, 0, argc, argv, &options, &err);
    if (status < 0)
        fprintf(stderr, "tccl: ring-probe: %s\n", err.text);
    if (status != 0)
        return status < 0 ? 2 : 0;
    if (find_place() != 0)
        return 1;
    if (options.init == INIT_ALL && options.ranks > 1) {
        fprintf(stderr, "tccl: ring-probe: --init all is for one process\n");
        return 2;
    }
    if (options.stuck && (options.collectives == 0 || options.gpus > 1)) {
        fprintf(stderr, "tccl: ring-probe: --stuck needs a collective, and one GPU per process\n");
        return 2;
    }
    if (options.comms == 0 && (options.split || options.split_off || options.shrink >= 0 ||
                               options.allreduce || options.collectives)) {
        fprintf(stderr, "tccl: ring-probe: --comms 0 leaves nothing to split, shrink or add up\n");
        return 2;
    }
    prepare_log();
    status = run();
    if (!options.log && !options.no_log)
        unlink(log_path);
    return status < 0 ? 1 : 0;
}
