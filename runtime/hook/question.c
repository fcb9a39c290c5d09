/* question.c: finds out which communicator a question belongs to, has it decided, and answers from
 * what was decided. It is NCCL's thread that asks: nothing here waits for another rank without a
 * deadline. */
#include "hook/hook.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/loaded.h"
#include "chain/nccl-version.h"
#include "nccl/shim-nccl.h"
#include "verify/verify.h"

#define NET_DISABLE_INTRA "NCCL_NET_DISABLE_INTRA"

__thread int shim_in_group_end, shim_group_depth;

static void set_policy(struct shim_init *init, const struct shim_answer *answer)
{
    struct tccl_error why = {""};
    struct shim_memories memories = {-1, -1};
    /* Of all rings: a set has one memory for each of them (check_memories in decide.c). */
    for (int i = 0; i < answer->chain.rings.n; i++) {
        struct shim_memories one = shim_ring_memories(&answer->chain.rings.chains[i], init->gpu);
        memories.in = one.in >= 0 ? one.in : memories.in;
        memories.out = one.out >= 0 ? one.out : memories.out;
    }
    /* In a group's only job the wrapper of the group's end restores it, if there is one. */
    if (init->claimed_by == init->added_by && !init->called && !shim_in_group_end) {
        if (memories.in >= 0 || memories.out >= 0)
            tccl_fail(
                &init->memory,
                "the communicator is made in a group that this NCCL does not end through the shim");
        return;
    }
    if (memories.in >= 0 && memories.out >= 0 && memories.in != memories.out)
        shim_log(SHIM_LOG_WARN,
                 "buffers for the network are on NUMA node %d, planned was %d: NCCL has them where "
                 "it receives",
                 memories.in, memories.out);
    int refused =
        shim_policy_prefer(memories.in >= 0 ? memories.in : memories.out, &init->policy, &why);
    if (refused)
        shim_log(SHIM_LOG_WARN,
                 "buffers in host memory are where the kernel puts them, not where the ring wants "
                 "them: %s",
                 why.text);
    if (refused < 0)
        init->memory = why;
}

/* Ranks of a split are only known inside it. */
static void learn_rank(struct shim_init *init)
{
    int rank, ranks;
    tccl_bus gpu;
    if ((init->rank >= 0 && init->comm.ranks >= 0) || !shim_nccllog_there())
        return;
    shim_nccllog_read();
    if (shim_nccllog_joining(shim_tid(), &rank, &ranks, &gpu) || gpu != init->gpu)
        return;
    init->rank = rank;
    init->comm.ranks = ranks;
    shim_entry_set_rank(init->entry, init->place, rank);
}

/* A file may be closed: programs close what they did not open. */
static bool fill(int fd, const char *name, const char *text, size_t size)
{
    return shim_is_memory_file(fd, name) && shim_write_all(fd, text, size) == 0;
}

/* NCCL has started, and knows the driver. From 2.26 on it takes files where CUDA may not choose a
 * memory, as in containers of Docker's; before, it fails. */
static enum shim_buffers buffers_of(const struct shim_init *init)
{
    const struct shim_nccl *nccl = &init->comm.nccl;
    if (shim_driver_lacks_cumem() || !shim_policy_can() ||
        !shim_settings_cumem_host(nccl->version, shim_device_driver(), shim_process_user()))
        return SHIM_BUFFERS_FILES;
    return shim_driver_reached(nccl) ? SHIM_BUFFERS_CUMEM : SHIM_BUFFERS_FIXED;
}

/* This rank's files, once. Returns whether it has them. */
static bool take_files(struct shim_init *init)
{
    struct shim_answer *answer = shim_scratch(sizeof(*answer));
    bool read = answer && shim_entry_read(init->entry, answer);
    bool taken = read && fill(init->graph_fd, SHIM_GRAPH_NAME, answer->graph, answer->graph_size) &&
                 fill(init->topo_fd, SHIM_TOPO_NAME, answer->topo, answer->topo_size);
    if (!read)
        shim_log(SHIM_LOG_WARN, "communicator %016llx: its file in /dev/shm is damaged",
                 (unsigned long long)init->comm.key);
    else if (!taken)
        shim_log(SHIM_LOG_WARN, "a memory file can't be written, or the program has closed it");
    else
        set_policy(init, answer);
    shim_scratch_free(answer, sizeof(*answer));
    return taken;
}

static const char *file_answer(const struct shim_process *process, bool graph)
{
    struct shim_init *init = shim_pending_claim(!graph);
    if (!init || !init->entry)
        return NULL;
    if (init->decision == SHIM_UNDECIDED) {
        static const struct tccl_error closed = {"a program has closed files of the shim's"};
        learn_rank(init);
        if (shim_is_memory_file(init->graph_fd, SHIM_GRAPH_NAME) &&
            shim_is_memory_file(init->topo_fd, SHIM_TOPO_NAME))
            shim_entry_asked(init->entry, init->place, buffers_of(init),
                             shim_net_intra(init, shim_process_user()));
        else
            shim_settle_aside(init->entry, &init->comm, &closed);
        init->decision = shim_settle(&process->plan, process->registry, init->entry, &init->comm);
        if (init->decision == SHIM_USE && !take_files(init))
            init->decision = SHIM_ASIDE;
    }
    if (init->decision != SHIM_USE)
        return NULL;
    const struct shim_answer *answer = shim_entry_answer(init->entry);
    /* The ring's graph is the first that NCCL computes, the tree's the second; others are its own,
     * and so is the tree where none is planned. */
    int given = answer->graph_size == 0 ? 0 : answer->tree ? 2 : 1;
    if (graph)
        return init->graphs++ < given ? init->graph_path : NULL;
    return answer->topo_size ? init->topo_path : NULL;
}

static const char sites[] = "libnccl-env.so";

/* Where NCCL would find it: also beside itself, by its RUNPATH. */
static bool site_has_plugin(const void *caller)
{
    struct shim_object object;
    char path[PATH_MAX];
    struct shim_text text = {path, sizeof(path), 0, false};
    if (shim_dlopen(sites, RTLD_LAZY | RTLD_LOCAL))
        return true;
    const char *slash = shim_object_of(caller, &object) ? strrchr(object.name, '/') : NULL;
    if (!slash)
        return false;
    shim_text_add(&text, "%.*s/%s", (int)(slash - object.name), object.name, sites);
    return !text.full && shim_dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

/* The plugin of env.c: the loader finds what is loaded by its name alone. A site's libnccl-env.so,
 * which NCCL takes where nothing is said, stays. */
static const char *plugin_answer(uint32_t version, const void *caller)
{
    if (!tccl_release_does(version, TCCL_FACT_ENV_PLUGIN))
        return NULL;
    if (!site_has_plugin(caller))
        return "libtccl-nccl.so";
    shim_log(SHIM_LOG_INFO, "NCCL asks the site's %s for its settings", sites);
    return NULL;
}

static const char *answer(const struct shim_process *process, const char *name,
                          const struct shim_nccl *nccl, const void *caller)
{
    shim_clearing_stop();
    if (!strcmp(name, "NCCL_GRAPH_FILE")) {
        const char *file = file_answer(process, true);
        if (file && shim_graph_is_costly(nccl->version))
            shim_clearing_leave_out(caller);
        return file;
    }
    if (!strcmp(name, "NCCL_TOPO_FILE"))
        return file_answer(process, false);
    if (!tccl_nccl_known(nccl->version))
        return NULL;
    if (!strcmp(name, "NCCL_ENV_PLUGIN"))
        return plugin_answer(nccl->version, caller);
    if (!strcmp(name, NET_DISABLE_INTRA))
        return shim_net_intra_answer(shim_pending_claimed(), nccl->start);
    return shim_nccllog_answer(name, nccl->version);
}

/* The caller is an NCCL (or may be one that nobody has met). */
static const char *nccl_asks(const char *name, const void *caller)
{
    const struct shim_process *process = shim_process_armed();
    if (process && process->plan.untouched)
        return NULL;
    const struct shim_nccl *nccl = process ? shim_nccl_at(caller) : NULL;
    if (nccl)
        return answer(process, name, nccl, caller);
    if (!process && !strcmp(name, NET_DISABLE_INTRA))
        shim_net_intra_early();
    if (!process && !strcmp(name, "NCCL_GRAPH_FILE"))
        shim_process_bypassed();
    return NULL;
}

char *shim_question(const char *name, const void *caller)
{
    char *own = shim_env(name);
    if (strncmp(name, "NCCL_", 5) || (own && strncmp(name, "NCCL_DEBUG", 10)))
        return own;
    if (!strcmp(name, "NCCL_P2P_READ_ENABLE"))
        return shim_process_reads() ? "1" : NULL;
    int before = errno;
    const char *text = nccl_asks(name, caller);
    errno = before;
    return own ? own : (char *)text; /* the log has seen where the user's is */
}

/* ---- Afterwards ---- */

void shim_question_finish(struct shim_init *init)
{
    const struct shim_init steered = *init;
    bool used = init->decision == SHIM_USE;
    const struct shim_process *process = shim_process_armed();
    if (process && init->entry && shim_entry_stands(init->entry) == SHIM_USE)
        shim_registry_release(process->registry, shim_entry_answer(init->entry)->memory);
    shim_clearing_stop();
    if (init->claimed_by == shim_tid())
        shim_policy_restore(&init->policy);
    shim_pending_forget(init);
    if (used)
        shim_steered_begin(&steered);
}

void shim_question_finish_over(void)
{
    for (struct shim_init *over = NULL; (over = shim_pending_over(over));)
        shim_question_finish(over);
}
