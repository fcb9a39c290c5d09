/* calls.c: the wrappers. Each finds NCCL's function, writes down what is about to begin, calls on,
 * and looks at what came of it. With no plan, or any doubt, it only calls on. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "hook/hook.h"
#include "nccl/nccl-abi.h"
#include "nccl/shim-nccl.h"
#include "verify/verify.h"

/* What a thread asks in a wrapper that has nothing to give. */
static struct shim_init nothing;

static bool has_begun; /* the process has, or had at a fork, a plan that fits */

/* NCCL's function and, if the process has a plan that fits, the process. */
static void *begin(const char *name, const void *caller, struct shim_nccl *nccl,
                   const struct shim_process **process)
{
    void *real = shim_resolve(name, caller, nccl);
    *process = real ? shim_process_arm(nccl->version) : NULL;
    if (!real)
        shim_log(SHIM_LOG_WARN, "no NCCL has %s", name);
    if (!*process)
        return real;
    has_begun = true;
    shim_nccllog_read(); /* where nothing is steered, too: what nobody reads would grow */
    shim_question_finish_over();
    shim_steered_look();
    shim_pending_sweep();
    shim_pending_here(&nothing);
    return real;
}

/* The beginning of a wrapper, with NCCL's function as real, of these parameters. */
#define BEGIN(...)                                                                                 \
    struct shim_nccl nccl;                                                                         \
    const struct shim_process *process;                                                            \
    ncclResult_t (*real)(__VA_ARGS__) =                                                            \
        begin(__func__, __builtin_return_address(0), &nccl, &process);                             \
    if (!real)                                                                                     \
    return NCCL_SYSTEM_ERROR

/* ---- A communicator's settings ---- */

struct config {
    bool split_share, shrink_share, waits_not;
    uint32_t user; /* SHIM_USER_… */
};

#define HAS(config, member)                                                                        \
    ((config)->size >= offsetof(ncclConfig_t, member) + sizeof(config)->member)

static void read_config(const ncclConfig_t *config, struct config *read)
{
    if (!config || config->size < offsetof(ncclConfig_t, cgaClusterSize) ||
        config->magic != NCCL_CONFIG_MAGIC)
        return;
    read->waits_not = config->blocking == 0;
    read->split_share = HAS(config, splitShare) && config->splitShare == 1;
    read->shrink_share = HAS(config, shrinkShare) && config->shrinkShare == 1;
    if (HAS(config, netName) && config->netName)
        read->user |= SHIM_USER_NET;
    if (HAS(config, collnetEnable) && config->collnetEnable == 1)
        read->user |= SHIM_USER_SHARP;
}

/* ---- Before ---- */

static void describe(const struct shim_process *process, const struct shim_nccl *nccl, tccl_bus gpu,
                     struct shim_member *member)
{
    const struct shim_plan *plan = &process->plan;
    /* A table that is not cleared takes nothing that counts. */
    bool clears = shim_graph_is_costly(nccl->version) && shim_clearing_can((void *)nccl->start);
    int nvml;
    *member = (struct shim_member){.gpu = gpu,
                                   .rank = -1,
                                   .nvml = shim_device_nvml(gpu, &nvml, NULL) ? -1 : nvml,
                                   .version = nccl->version,
                                   .sm = shim_device_sm(gpu),
                                   .host = process->host,
                                   .nics = shim_nics_settings(),
                                   .pid = getpid(),
                                   .room = shim_memory_limits_left(),
                                   .table = clears ? 0 : shim_graph_memory(nccl->version)};
    member->user = shim_process_user();
    for (int i = 0; i < plan->n_gpus; i++)
        member->sees |= (uint32_t)shim_device_seen(plan->gpus[i]) << i;
    member->linked = member->sees != (1u << plan->n_gpus) - 1 && shim_device_has_nvlink(gpu);
}

/* With room for what will be written to it, so that it can't fail then. Returns 0: there is none.
 */
static int make_file(const char *name, long size, char path[static 40])
{
    int fd = (int)syscall(SYS_memfd_create, name, 1u /* MFD_CLOEXEC */);
    snprintf(path, 40, "/proc/self/fd/%d", fd);
    if (fd > 0 && access(path, R_OK) == 0 &&
        syscall(SYS_fallocate, fd, 1 /* FALLOC_FL_KEEP_SIZE */, 0L, size) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return 0;
}

/* An init that is given nothing: what its thread asks must not pass for the question of another one
 * that is under way on this GPU (SHIM_NO_BUS: the current device). ranks: -1, unknown. Returns NULL
 * if it can't be noted. */
static struct shim_init *refuse(tccl_bus gpu, int ranks)
{
    struct shim_init init = {.gpu = gpu, .rank = -1, .comm.ranks = ranks, .called = true};
    if (gpu == SHIM_NO_BUS && shim_device_current(&init.gpu, NULL) != 0)
        return NULL;
    return shim_pending_add(&init);
}

/* This process has the shim, and works on that GPU. NCCL takes the user's own kind of P2P before
 * the step's. */
static void claim(const struct shim_process *process, tccl_bus gpu)
{
    if ((shim_process_user() & (SHIM_USER_KIND | SHIM_USER_READ)) == SHIM_USER_KIND)
        shim_registry_keep_writing(process->registry);
    shim_registry_claim_gpu(process->registry, gpu);
}

/* Writes a rank down where the others of the node see it. Returns what is under way; one that is
 * refused, or NULL, if this rank is answered nothing, nor are others of its communicator. */
static struct shim_init *enter(const struct shim_process *process, const struct shim_member *member,
                               const struct shim_comm *comm)
{
    static const struct tccl_error why = {
        "a rank can't open its files, or has too many inits under way"};
    struct shim_init init = {
        .comm = *comm, .gpu = member->gpu, .rank = member->rank, .called = true};
    init.entry = shim_registry_entry(process->registry, comm->key, 0);
    if (!init.entry) {
        shim_log(SHIM_LOG_WARN, "communicator %016llx: NCCL's own choice: no room in /dev/shm",
                 (unsigned long long)comm->key);
        return refuse(member->gpu, comm->ranks);
    }
    if (member->gpu != SHIM_NO_BUS)
        claim(process, member->gpu);
    init.place = shim_entry_join(init.entry, member);
    init.graph_fd = make_file(SHIM_GRAPH_NAME, SHIM_GRAPH_SIZE, init.graph_path);
    init.topo_fd = make_file(SHIM_TOPO_NAME, SHIM_TOPO_SIZE, init.topo_path);
    struct shim_init *added = NULL;
    if (init.place >= 0 && init.graph_fd && init.topo_fd && (added = shim_pending_add(&init)))
        return added;
    if (init.graph_fd)
        close(init.graph_fd);
    if (init.topo_fd)
        close(init.topo_fd);
    shim_settle_aside(init.entry, comm, &why);
    return refuse(member->gpu, comm->ranks);
}

static void fill_comm(struct shim_comm *comm, uint64_t key, int ranks, const struct shim_nccl *nccl)
{
    *comm = (struct shim_comm){.key = key ? key : 1, .ranks = ranks, .expected = -1, .nccl = *nccl};
}

/* A rank of a step that is left to NCCL: others need not know of it. */
static struct shim_init *pass(const struct shim_nccl *nccl, int ranks, int rank, tccl_bus gpu)
{
    struct shim_init init = {.gpu = gpu, .rank = rank, .called = true};
    fill_comm(&init.comm, 0, ranks, nccl);
    return shim_pending_add(&init);
}

static struct shim_init *enter_rank(const struct shim_process *process,
                                    const struct shim_nccl *nccl, uint64_t key, int ranks, int rank,
                                    const ncclConfig_t *config)
{
    struct shim_member member;
    struct shim_comm comm;
    struct config read = {0};
    struct tccl_error why = {""};
    static const struct tccl_error one_id = {
        "with NCCL_COMM_ID all communicators have the same id"};
    tccl_bus gpu;
    if (!process || ranks < 1)
        return NULL;
    if (process->plan.untouched)
        return shim_device_current(&gpu, NULL) == 0 ? pass(nccl, ranks, rank, gpu) : NULL;
    read_config(config, &read);
    /* A communicator of one rank is nothing to steer, but its process is one that has the shim. A
     * call that waits asks in this very thread. */
    if (ranks == 1) {
        const char *blocking = shim_env("NCCL_COMM_BLOCKING");
        if (!shim_device_current(&gpu, NULL))
            claim(process, gpu);
        bool later = shim_group_depth > 0 || read.waits_not || (blocking && *blocking == '0');
        return later ? refuse(SHIM_NO_BUS, 1) : NULL;
    }
    fill_comm(&comm, key, ranks, nccl);
    if (shim_env("NCCL_COMM_ID")) { /* they would all be one in the registry */
        struct shim_entry *entry = shim_registry_entry(process->registry, comm.key, 0);
        if (entry)
            shim_settle_aside(entry, &comm, &one_id);
        return NULL;
    }
    if (shim_device_current(&gpu, &why)) {
        shim_log(SHIM_LOG_WARN, "the GPU of rank %d: %s", rank, why.text);
        gpu = SHIM_NO_BUS;
    }
    describe(process, nccl, gpu, &member);
    member.rank = rank;
    member.user |= read.user;
    struct shim_init *init = enter(process, &member, &comm);
    if (init)
        shim_pending_here(init);
    return init;
}

/* ---- After ---- */

/* This rank has its entries no more: the communicator is gone, or was never made. */
static void drop(struct shim_entry *entry, struct shim_entry *roll)
{
    const struct shim_process *process = shim_process_armed();
    if (!process)
        return;
    shim_registry_drop(process->registry, entry);
    shim_registry_drop(process->registry, roll);
}

/* The wrapper returns. In a group, or without waiting, NCCL has not asked yet. */
static void leave(struct shim_init *init, ncclResult_t result)
{
    const struct shim_process *process = shim_process_armed();
    shim_pending_here(NULL);
    if (!init)
        return;
    if (process && process->plan.untouched) { /* it will ask for nothing */
        shim_pending_forget(init);
        return;
    }
    shim_policy_restore(&init->policy);
    if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS) {
        struct shim_entry *entry = init->entry, *roll = init->comm.roll;
        shim_pending_forget(init);
        drop(entry, roll);
    } else if (result == NCCL_SUCCESS &&
               (init->claimed_by || (!init->entry && shim_group_depth == 0))) {
        shim_question_finish(init);
    } else {
        init->called = false;
    }
}

/* The wrapper of an init returns. parent: how the communicator's children will share buffers. */
static ncclResult_t done(struct shim_init *init, const struct shim_parent *parent,
                         ncclResult_t result, const ncclComm_t *comm)
{
    struct shim_parent gone;
    /* After an error the handle is not looked at: it may be no place at all. */
    if (init && (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS) && comm && *comm) {
        const struct shim_process *process = shim_process_armed();
        init->handle = *comm;
        shim_achieved_end(*comm, false);
        if (process && !process->plan.unmeasured &&
            shim_plan_whole(&process->plan, init->comm.ranks))
            shim_achieved_begin(*comm, init->comm.ranks, init->rank, init->gpu, init->entry,
                                init->comm.nccl.version);
        if (shim_parent_add(&(struct shim_parent){.handle = *comm,
                                                  .key = init->comm.key,
                                                  .entry = init->entry,
                                                  .roll = init->comm.roll,
                                                  .gpu = init->gpu,
                                                  .rank = init->rank,
                                                  .ranks = init->comm.ranks,
                                                  .split_share = parent->split_share,
                                                  .shrink_share = parent->shrink_share},
                            &gone) > 0)
            drop(gone.entry, gone.roll);
    }
    leave(init, result);
    return result;
}

static ncclResult_t rank_done(struct shim_init *init, const ncclConfig_t *config,
                              ncclResult_t result, const ncclComm_t *comm)
{
    struct config read = {0};
    read_config(config, &read);
    return done(
        init,
        &(struct shim_parent){.split_share = read.split_share, .shrink_share = read.shrink_share},
        result, comm);
}

/* ---- The wrappers ---- */

NCCL_WRAPPER(ncclGetUniqueId, (ncclUniqueId * id))
{
    struct shim_nccl nccl;
    ncclResult_t (*real)(ncclUniqueId *) =
        shim_resolve(__func__, __builtin_return_address(0), &nccl);
    if (!real)
        return NCCL_SYSTEM_ERROR;
    shim_process_arm(nccl.version); /* ahead of NCCL's first line in its log */
    return real(id);
}

NCCL_WRAPPER(ncclCommInitRank, (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank))
{
    BEGIN(ncclComm_t *, int, ncclUniqueId, int);
    uint64_t key = shim_hash(SHIM_HASH_START, &id, sizeof(id));
    struct shim_init *init = enter_rank(process, &nccl, key, ranks, rank, NULL);
    return rank_done(init, NULL, real(comm, ranks, id, rank), comm);
}

NCCL_WRAPPER(ncclCommInitRankConfig,
             (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config))
{
    BEGIN(ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *);
    uint64_t key = shim_hash(SHIM_HASH_START, &id, sizeof(id));
    struct shim_init *init = enter_rank(process, &nccl, key, ranks, rank, config);
    return rank_done(init, config, real(comm, ranks, id, rank, config), comm);
}

NCCL_WRAPPER(ncclCommInitRankScalable, (ncclComm_t * comm, int ranks, int rank, int n_ids,
                                        ncclUniqueId *ids, ncclConfig_t *config))
{
    BEGIN(ncclComm_t *, int, int, int, ncclUniqueId *, ncclConfig_t *);
    struct shim_init *init = NULL;
    if (ids && n_ids > 0 && n_ids <= ranks) {
        uint64_t key = shim_hash(SHIM_HASH_START, ids, (size_t)n_ids * sizeof(*ids));
        init = enter_rank(process, &nccl, key, ranks, rank, config);
    }
    return rank_done(init, config, real(comm, ranks, rank, n_ids, ids, config), comm);
}

/* All ranks of it are this process': its key need only be its own. */
static void enter_all(const struct shim_process *process, const struct shim_nccl *nccl, int n,
                      const int *devices, struct shim_init *inits[static SHIM_GPUS])
{
    static unsigned count;
    const uint64_t words[] = {(uint64_t)getpid(), (uint64_t)shim_now_us(),
                              __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST)};
    struct shim_member member;
    struct shim_comm comm;
    tccl_bus gpu;
    if (!process || n < 2 || n > SHIM_GPUS)
        return;
    fill_comm(&comm, shim_hash(SHIM_HASH_START, words, sizeof(words)), n, nccl);
    comm.expected = n;
    for (int i = 0; i < n; i++) {
        if (shim_device_bus(devices ? devices[i] : i, &gpu, NULL))
            gpu = SHIM_NO_BUS;
        if (process->plan.untouched) {
            inits[i] = pass(nccl, n, i, gpu);
            continue;
        }
        describe(process, nccl, gpu, &member);
        member.rank = i;
        inits[i] = enter(process, &member, &comm);
    }
}

NCCL_WRAPPER(ncclCommInitAll, (ncclComm_t * comms, int n, const int *devices))
{
    BEGIN(ncclComm_t *, int, const int *);
    struct shim_init *inits[SHIM_GPUS] = {NULL};
    enter_all(process, &nccl, n, devices, inits);
    if (inits[0])
        shim_pending_here(NULL);
    ncclResult_t result = real(comms, n, devices);
    for (int i = 0; i < SHIM_GPUS; i++)
        if (inits[i])
            rank_done(inits[i], NULL, result, comms + i);
    shim_pending_here(NULL);
    return result;
}

/* ---- Children ---- */

/* Fills in what a child has of its parent; false: it is refused. */
static bool begin_child(const struct shim_process *process, const struct shim_nccl *nccl,
                        ncclComm_t handle, enum shim_kind kind, struct shim_parent *parent,
                        struct shim_member *member)
{
    if (!process || shim_parent_child(handle, kind, parent))
        return false;
    const char *set = shim_env(kind == SHIM_SPLIT ? "NCCL_COMM_SPLIT_SHARE_RESOURCES"
                                                  : "NCCL_COMM_SHRINK_SHARE_RESOURCES");
    if (!parent->entry) /* refused, too */
        return false;
    bool shares = (kind == SHIM_SPLIT ? parent->split_share : parent->shrink_share) ||
                  (set && strcmp(set, "0") != 0);
    if (shares || shim_entry_proven(parent->entry) == 0) {
        shim_log(SHIM_LOG_WARN, "child of communicator %016llx: NCCL's own choice: %s",
                 (unsigned long long)parent->key,
                 shares ? "it shares its parent's buffers" : "its parent is not fully known");
        return false;
    }
    describe(process, nccl, parent->gpu, member);
    return true;
}

/* A child without settings of its own has its parent's. */
static void inherit(const ncclConfig_t *config, struct shim_parent *parent,
                    struct shim_member *member)
{
    struct config read = {0};
    if (!config)
        return;
    read_config(config, &read);
    parent->split_share = read.split_share;
    parent->shrink_share = read.shrink_share;
    member->user |= read.user;
}

static uint64_t child_key(uint64_t parent, const char *kind, uint64_t a, uint64_t b)
{
    const uint64_t words[] = {parent, a, b};
    return shim_hash(shim_hash(SHIM_HASH_START, kind, strlen(kind)), words, sizeof(words));
}

static struct shim_init *enter_split(const struct shim_process *process,
                                     const struct shim_nccl *nccl, ncclComm_t handle, int color,
                                     const ncclConfig_t *config, struct shim_parent *parent)
{
    struct shim_member member;
    struct shim_comm comm;
    if (!begin_child(process, nccl, handle, SHIM_SPLIT, parent, &member))
        return NULL;
    inherit(config, parent, &member);
    uint64_t roll = child_key(parent->key, "roll", parent->splits, 0);
    fill_comm(&comm, child_key(parent->key, "split", parent->splits, (uint64_t)(int64_t)color), -1,
              nccl);
    member.color = comm.color = color;
    comm.roll_locals = shim_entry_proven(parent->entry);
    comm.roll_ranks = parent->ranks;
    comm.roll = shim_registry_entry(process->registry, roll ? roll : 1, comm.roll_locals);
    if (!comm.roll || shim_entry_join(comm.roll, &member) < 0)
        return NULL;
    if (color == NCCL_NO_COLOR) {
        shim_registry_drop(process->registry, comm.roll);
        return NULL;
    }
    return enter(process, &member, &comm);
}

NCCL_WRAPPER(ncclCommSplit,
             (ncclComm_t comm, int color, int key, ncclComm_t *child, ncclConfig_t *config))
{
    BEGIN(ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *);
    struct shim_parent parent = {.gpu = SHIM_NO_BUS};
    struct shim_init *init = enter_split(process, &nccl, comm, color, config, &parent);
    if (!init && process && color != NCCL_NO_COLOR)
        init = refuse(parent.gpu, -1);
    if (init)
        shim_pending_here(init);
    return done(init, &parent, real(comm, color, key, child, config), child);
}

/* How many local ranks of the parent stay; -1: it can't be known. */
static int staying(const struct shim_parent *parent, const int *excluded, int n)
{
    struct shim_member members[SHIM_GPUS * 2];
    int locals = shim_entry_proven(parent->entry), stay = 0;
    if (locals == parent->ranks)
        return locals - n;
    if (shim_entry_members(parent->entry, members) != locals)
        return -1;
    for (int i = 0; i < locals; i++) {
        if (members[i].rank < 0)
            return -1;
        bool leaves = false;
        for (int j = 0; j < n; j++)
            leaves = leaves || excluded[j] == members[i].rank;
        stay += !leaves;
    }
    return stay;
}

static struct shim_init *enter_shrink(const struct shim_process *process,
                                      const struct shim_nccl *nccl, ncclComm_t handle,
                                      const int *excluded, int n, const ncclConfig_t *config,
                                      struct shim_parent *parent)
{
    struct shim_member member;
    struct shim_comm comm;
    uint64_t set = 0; /* whatever their order */
    if (!excluded || n < 1 || !begin_child(process, nccl, handle, SHIM_SHRINK, parent, &member))
        return NULL;
    inherit(config, parent, &member);
    for (int i = 0; i < n; i++)
        set += shim_hash(SHIM_HASH_START, &excluded[i], sizeof(excluded[i]));
    int ranks = parent->ranks < 0 ? -1 : parent->ranks - n;
    fill_comm(&comm, child_key(parent->key, "shrink", parent->shrinks, set), ranks, nccl);
    comm.expected = staying(parent, excluded, n);
    return ranks == 1 ? NULL : enter(process, &member, &comm);
}

NCCL_WRAPPER(ncclCommShrink, (ncclComm_t comm, int *excluded, int n_excluded, ncclComm_t *child,
                              ncclConfig_t *config, int flags))
{
    BEGIN(ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int);
    struct shim_parent parent = {.gpu = SHIM_NO_BUS};
    struct shim_init *init =
        enter_shrink(process, &nccl, comm, excluded, n_excluded, config, &parent);
    if (!init && process)
        init = refuse(parent.gpu, -1);
    if (init)
        shim_pending_here(init);
    return done(init, &parent, real(comm, excluded, n_excluded, child, config, flags), child);
}

/* Ranks that join later can't be known to those that are there: NCCL's own choice. */
NCCL_WRAPPER(ncclCommGrow, (ncclComm_t comm, int ranks, const ncclUniqueId *id, int rank,
                            ncclComm_t *child, ncclConfig_t *config))
{
    BEGIN(ncclComm_t, int, const ncclUniqueId *, int, ncclComm_t *, ncclConfig_t *);
    if (process)
        shim_log(SHIM_LOG_WARN,
                 "communicator of %d ranks: NCCL's own choice: it was made by ncclCommGrow", ranks);
    const struct shim_parent parent = {.gpu = SHIM_NO_BUS};
    struct shim_init *init = process ? refuse(SHIM_NO_BUS, ranks) : NULL;
    if (init)
        shim_pending_here(init);
    return done(init, &parent, real(comm, ranks, id, rank, child, config), child);
}

/* ---- The end ---- */

static ncclResult_t end(const char *name, const void *caller, ncclComm_t comm, bool gone)
{
    struct shim_nccl nccl;
    const struct shim_process *process;
    ncclResult_t (*real)(ncclComm_t) = begin(name, caller, &nccl, &process);
    if (!real)
        return NCCL_SYSTEM_ERROR;
    struct shim_parent parent;
    struct shim_init *init = process && gone ? shim_pending_take(comm) : NULL;
    if (process && gone) {
        shim_achieved_end(comm, strcmp(name, "ncclCommAbort") != 0);
        shim_steered_end(comm);
    }
    bool known = process && gone && !shim_parent_forget(comm, &parent);
    ncclResult_t result = real(comm);
    if (init) {
        shim_question_finish(init); /* only now: a thread of NCCL's may have been at it */
        shim_steered_end(comm);
    }
    if (known)
        drop(parent.entry, parent.roll);
    leave(NULL, result);
    return result;
}

NCCL_WRAPPER(ncclCommFinalize, (ncclComm_t comm))
{
    return end(__func__, __builtin_return_address(0), comm, false);
}

NCCL_WRAPPER(ncclCommDestroy, (ncclComm_t comm))
{
    return end(__func__, __builtin_return_address(0), comm, true);
}

NCCL_WRAPPER(ncclCommAbort, (ncclComm_t comm))
{
    return end(__func__, __builtin_return_address(0), comm, true);
}

/* What is left at the end of the process that has called NCCL. */
__attribute__((destructor)) static void at_end(void)
{
    if (!has_begun || !shim_process_armed())
        return;
    shim_question_finish_over();
    shim_achieved_end(NULL, false);
    shim_steered_end(NULL);
}
