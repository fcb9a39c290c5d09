/* shim-settle.c: one decision for all ranks of a communicator on this node, in the registry. The
 * first rank that asks works it out; any doubt makes all of them stand aside. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hook/hook.h"

enum {
    ASKED_US = 2000000, /* between the first local rank's question and the last one's */
    AGREE_US = 1000000, /* until all nodes have said that they build several rings */
    WAIT_US = 10000000  /* for who decides: longer than that takes, with tccld's answer */
};

/* What is worked out: the answer, and the graph file where not all nodes build several rings. */
struct draft {
    struct shim_answer answer;
    char apart[SHIM_GRAPH_SIZE];
};

/* Of a split: how many local ranks have this color, once all of the parent's have said theirs. */
static int call_roll(struct shim_comm *comm, struct tccl_error *why)
{
    struct shim_member members[SHIM_GPUS * 2];
    if (!comm->roll)
        return 0;
    int n = shim_entry_members(comm->roll, members), same = 0;
    if (n != comm->roll_locals)
        return tccl_fail(why, "%d of its parent's %d local ranks are seen", n, comm->roll_locals);
    for (int i = 0; i < n; i++)
        same += members[i].color == comm->color;
    comm->expected = same;
    if (comm->roll_locals == comm->roll_ranks)
        comm->ranks = same;
    return 0;
}

/* A copy for the user: whatever is there under that name stays. */
static void keep_file(const char *folder, uint64_t key, const char *kind, const char *text,
                      size_t size)
{
    char path[SHIM_PATH];
    int length = snprintf(path, sizeof(path), "%s/tccl-%d-%016llx.%s.xml", folder, (int)getpid(),
                          (unsigned long long)key, kind);
    if (length < 0 || (size_t)length >= sizeof(path))
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || shim_write_all(fd, text, size))
        shim_log(SHIM_LOG_WARN, "%s can't be written", path);
    if (fd >= 0)
        close(fd);
}

static void tell_use(const struct shim_comm *comm, const struct shim_answer *answer)
{
    char line[TCCL_RINGS_TEXT];
    const char *files = !answer->graph_size  ? "topology file"
                        : !answer->topo_size ? "graph file"
                                             : "graph file, topology file";
    tccl_named_rings_format(&answer->chain.rings, line);
    shim_log(SHIM_LOG_INFO,
             "communicator %016llx of %d ranks, %d here: %s %s; %s, %.2f GB/s (NCCL's own %.2f); "
             "%s",
             (unsigned long long)comm->key, answer->ranks, answer->locals,
             answer->chain.rings.n > 1 ? "rings" : "ring", line, answer->chain.source,
             answer->chain.gbps, shim_chain_baseline(&answer->chain, (int)comm->nccl.version)->gbps,
             files);
    const char *folder = shim_env("TCCL_DEBUG_FILES");
    if (!folder || !folder[0])
        return;
    if (answer->graph_size)
        keep_file(folder, comm->key, "graph", answer->graph, answer->graph_size);
    if (answer->topo_size)
        keep_file(folder, comm->key, "topo", answer->topo, answer->topo_size);
}

static void tell_aside(const struct shim_comm *comm, enum shim_level level,
                       const struct tccl_error *why)
{
    char ranks[32] = "of some ranks";
    if (comm->ranks >= 0)
        snprintf(ranks, sizeof(ranks), "of %d ranks", comm->ranks);
    shim_log(level, "communicator %016llx %s: NCCL's own choice: %s", (unsigned long long)comm->key,
             ranks, why->text);
}

static void tell_tccld(const struct shim_plan *plan, enum shim_verdict verdict, const char *text,
                       const struct shim_comm *comm, const struct shim_answer *answer, int locals)
{
    if (answer->whole)
        shim_ask_confirm(plan, verdict, text, comm->nccl.version, comm->ranks, true, locals, -1,
                         shim_now_us() + SHIM_CONFIRM_US, NULL);
}

/* Several rings at once are built by all nodes or by none: NCCL takes the least number of channels
 * and the least speed of all nodes, each by itself. So is a ring over several fabrics: NICs of
 * NCCL's own choice might not meet its. Do all build them? */
static bool agree(const struct shim_plan *plan, struct shim_registry *registry,
                  const struct shim_comm *comm, bool will, struct tccl_error *why)
{
    bool unheard = shim_registry_unheard(registry);
    bool ask = will && !unheard;
    int agreed =
        shim_ask_agree(plan, comm->key, ask, shim_now_us() + (ask ? AGREE_US : SHIM_CONFIRM_US),
                       unheard ? NULL : why);
    if (unheard)
        tccl_fail(why, "a node has not said in time whether it builds the ring");
    if (ask && agreed < 0)
        shim_registry_set_unheard(registry);
    return agreed == 1;
}

static enum shim_decision decide_now(const struct shim_plan *plan, struct shim_registry *registry,
                                     struct shim_entry *entry, const struct shim_comm *given,
                                     struct draft *draft)
{
    struct shim_member members[SHIM_GPUS * 2];
    struct shim_answer *answer = &draft->answer;
    struct shim_text apart = {draft->apart, sizeof(draft->apart), 0, false};
    struct shim_comm comm = *given;
    struct tccl_error why = {""}, why_apart = {""};
    int n = shim_entry_members(entry, members);
    bool good = !call_roll(&comm, &why) &&
                !shim_decide(plan, registry, &comm, members, n, answer, &apart, &why) &&
                /* Files for some ranks of a node would fail the init: all are to take theirs. */
                (shim_entry_await(entry, n, shim_now_us() + ASKED_US) == 0 ||
                 tccl_fail(&why, "NCCL did not ask for all of its local ranks") == 0) &&
                shim_entry_members(entry, members) == n &&
                !shim_members_can(answer, members, n, &why) &&
                !shim_budget_take(registry, entry, answer, members, n, &why);
    /* Must other nodes know of this one? They have the same plan, and no gain is none on all. */
    bool concerns_others = (plan->chain.rings.n > 1 || plan->agreed) && plan->n_nodes > 1 &&
                           !answer->no_gain && shim_plan_whole(plan, comm.ranks);
    bool all =
        !concerns_others || agree(plan, registry, &comm,
                                  good && (answer->chain.rings.n > 1 || plan->agreed), &why_apart);
    bool use = good && (all || !plan->agreed);
    if (good && !use) {
        tccl_fail(&why, "not all nodes build it, and its NICs might not meet theirs: %s",
                  why_apart.text);
    } else if (!all && good) {
        shim_log(SHIM_LOG_INFO,
                 "communicator %016llx: not all nodes build all rings: NCCL's own number of "
                 "channels: %s",
                 (unsigned long long)comm.key, why_apart.text);
        memcpy(answer->graph, draft->apart, sizeof(draft->apart));
        answer->graph_size = (uint32_t)strlen(draft->apart);
    }
    *shim_entry_answer(entry) = *answer;
    shim_entry_prove(entry, answer->locals);
    const struct tccl_error *told = !use ? &why : all ? NULL : &why_apart;
    enum shim_decision decision = shim_entry_decide(entry, use ? SHIM_USE : SHIM_ASIDE, told);
    if (decision == SHIM_USE) {
        tell_use(&comm, answer);
        tell_tccld(plan, SHIM_BEGUN, "", &comm, answer, n);
        return decision;
    }
    if (good)
        shim_registry_release(registry, (uint64_t)n * answer->memory);
    shim_entry_why(entry, &why);
    tell_aside(&comm, answer->no_gain ? SHIM_LOG_INFO : SHIM_LOG_WARN, &why);
    tell_tccld(plan, why.reason == TCCL_REASON_UNKNOWN_NCCL ? SHIM_UNKNOWN_NCCL : SHIM_NOT_USED,
               why.text, &comm, answer, n);
    return decision;
}

enum shim_decision shim_settle(const struct shim_plan *plan, struct shim_registry *registry,
                               struct shim_entry *entry, const struct shim_comm *comm)
{
    static const struct tccl_error why = {"out of memory"};
    if (!shim_entry_begin(entry))
        return shim_entry_wait(entry, shim_now_us() + WAIT_US);
    struct draft *draft = shim_scratch(sizeof(*draft));
    if (!draft)
        return shim_entry_decide(entry, SHIM_ASIDE, &why);
    enum shim_decision decision = decide_now(plan, registry, entry, comm, draft);
    shim_scratch_free(draft, sizeof(*draft));
    return decision;
}

enum shim_decision shim_settle_aside(struct shim_entry *entry, const struct shim_comm *comm,
                                     const struct tccl_error *why)
{
    if (!shim_entry_begin(entry))
        return shim_entry_aside(entry, why); /* who decides there will log it */
    tell_aside(comm, SHIM_LOG_WARN, why);
    return shim_entry_decide(entry, SHIM_ASIDE, why);
}
