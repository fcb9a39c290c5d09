/* decide.c: the checks before a communicator is steered, and the two files. The first rank that
 * asks works them out for all ranks of the node; any doubt makes all of them stand aside. */
#include "hook/decide.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/device.h"
#include "base/log.h"
#include "hook/ask.h"
#include "nccl/graph.h"
#include "nccl/islands.h"
#include "nccl/memory.h"
#include "nccl/nics.h"
#include "nccl/settings.h"
#include "nccl/steer.h"

enum {
    OLDEST = 21800,
    NEWEST = 23099,
    KNOWS_HIDDEN = 22200,
    ASK_US = 50000,
    ASKED_US = 2000000, /* between the first local rank's question and the last one's */
    WAIT_US = 5000000,
    LEFT_OVER = 256 << 20 /* bytes that stay free beside what NCCL takes for the graph file */
};

/* Each one by itself, and all alike. members are in the order of their GPUs. */
static int check_alike(const struct shim_plan *plan, const struct shim_member *members, int n,
                       struct shim_why *why)
{
    for (int i = 0; i < n; i++) {
        const struct shim_member *member = &members[i];
        if (member->gpu == (shim_bus)SHIM_NO_BUS)
            return shim_fail(why, "the GPU of a rank (process %d) is not known", member->pid);
        if (shim_bus_find(plan->gpus, plan->n_gpus, member->gpu) < 0)
            return shim_fail(why, "the GPU of a rank (process %d) is none of the step's",
                             member->pid);
        if (i > 0 && members[i - 1].gpu == member->gpu)
            return shim_fail(why, "two ranks are on one GPU (processes %d and %d)",
                             members[i - 1].pid, member->pid);
        if (member->version < OLDEST || member->version > NEWEST)
            return shim_fail(why, "NCCL's version %u is not known", member->version);
        if (member->version != members[0].version)
            return shim_fail(why, "ranks have different NCCL versions (%u and %u)",
                             members[0].version, member->version);
        if (member->host != members[0].host)
            return shim_fail(why, "NCCL takes local ranks for ones on different hosts");
    }
    return 0;
}

/* Are all local ranks here, or may some run without the shim? */
static int check_complete(const struct shim_plan *plan, const struct shim_registry *registry,
                          const struct shim_comm *comm, int n, struct shim_why *why)
{
    if (comm->ranks < 0)
        return shim_fail(why, "its number of ranks is unknown");
    if (n > comm->ranks)
        return shim_fail(why, "more local ranks (%d) than it has (%d)", n, comm->ranks);
    if (comm->expected >= 0)
        return n == comm->expected
                   ? 0
                   : shim_fail(why, "%d of its %d local ranks have the shim", n, comm->expected);
    if (n == comm->ranks || n == plan->n_gpus)
        return 0;
    if (registry && !shim_registry_closed(registry) &&
        shim_registry_all_claimed(registry, plan->gpus, plan->n_gpus))
        return 0;
    return shim_fail(why, "only %d local ranks are known; others may run without the shim", n);
}

int shim_check_members(const struct shim_plan *plan, const struct shim_registry *registry,
                       const struct shim_comm *comm, const struct shim_member *members, int n,
                       struct shim_why *why)
{
    if (n < 1 || n > SHIM_GPUS)
        return shim_fail(why, "%d local ranks", n);
    if (check_alike(plan, members, n, why))
        return -1;
    return check_complete(plan, registry, comm, n, why);
}

/* Are there GPUs of the communicator that some of its ranks don't see, as NVML hides those of other
 * tasks? They may then have equal numbers. */
static bool are_hidden(const struct shim_plan *plan, const struct shim_member *members, int n)
{
    uint32_t gpus = 0;
    for (int i = 0; i < n; i++)
        gpus |= 1u << shim_bus_find(plan->gpus, plan->n_gpus, members[i].gpu);
    for (int i = 0; i < n; i++)
        if (gpus & ~members[i].sees)
            return true;
    return false;
}

/* From 2.22 on each rank tells NCCL of its own GPU, before that of all of them. With CUDA, P2P to
 * GPUs that a task may not open can fail, which ends the init or the first collective. */
static int check_hidden(const struct shim_chain *chain, uint32_t version, struct shim_why *why)
{
    if (version < KNOWS_HIDDEN)
        return shim_fail(why, "ranks see only their own GPUs, and NCCL %u.%u does not know others",
                         version / 10000, version / 100 % 100);
    for (int i = 0; i < tccl_named_edges(&chain->path); i++)
        if (chain->path.edges[i].kind != TCCL_BOUNCE)
            return shim_fail(why, "ranks see only their own GPUs, and the ring has P2P between "
                                  "them");
    return 0;
}

static int check_hidden_nvlink(const struct shim_member *members, int n, struct shim_why *why)
{
    for (int i = 0; i < n; i++)
        if (members[i].linked)
            return shim_fail(why, "ranks see only their own GPUs, which may be joined by NVLink");
    return 0;
}

/* The user's own settings and NVLink take precedence over any ring over PCIe. */
static int check_wanted(const struct shim_member *members, int n, bool hidden,
                        bool linked[SHIM_GPUS][SHIM_GPUS], struct shim_why *why)
{
    shim_bus gpus[SHIM_GPUS];
    uint32_t user = 0;
    for (int i = 0; i < n; i++) {
        gpus[i] = members[i].gpu;
        user |= members[i].user;
    }
    if (user & (SHIM_USER_FILES | SHIM_USER_SHARP)) {
        char words[160];
        struct shim_text text = {words, sizeof(words), 0, false};
        words[0] = '\0';
        shim_settings_user_words(user & (SHIM_USER_FILES | SHIM_USER_SHARP), &text);
        return shim_fail(why, "the user has set %s", words[0] ? words : "it otherwise");
    }
    if (n < 2)
        return 0;
    if (hidden)
        return check_hidden_nvlink(members, n, why);
    int nvlink = shim_device_nvlink(gpus, n, linked, why);
    if (nvlink == SHIM_NVLINK_ALL)
        return shim_fail(why, "NVLink joins all of its GPUs");
    return nvlink < 0 ? -1 : 0;
}

/* Ranks of one process may read their files at the same time. */
static int check_limits(const struct shim_member *members, int n, struct shim_why *why)
{
    for (int i = 0; i < n; i++) {
        uint64_t needed = LEFT_OVER;
        for (int j = 0; j < n; j++)
            if (members[j].pid == members[i].pid)
                needed += shim_graph_memory(members[0].version);
        if (members[i].room < needed)
            return shim_fail(
                why, "the limits of process %d leave it %llu MiB, NCCL takes %llu MiB for a moment",
                members[i].pid, (unsigned long long)(members[i].room >> 20),
                (unsigned long long)(needed >> 20));
    }
    return 0;
}

static bool same_gpus(const struct shim_chain *chain, const struct shim_member *members, int n)
{
    if (chain->path.n_gpus != n)
        return false;
    for (int i = 0; i < n; i++)
        if (shim_bus_find(chain->path.gpus, chain->path.n_gpus, members[i].gpu) < 0)
            return false;
    return true;
}

/* Is the chain better than what this NCCL would build by itself? */
static int check_gain(const struct shim_chain *chain, uint32_t version, struct shim_answer *answer,
                      struct shim_why *why)
{
    const struct shim_baseline *own = shim_chain_baseline(chain, (int)version);
    if (!own->better)
        return 0;
    answer->no_gain = true;
    return shim_fail(why,
                     "the ring of %.2f GB/s is no gain over that of NCCL %u.%u itself, %.2f GB/s",
                     chain->gbps, version / 10000, version / 100 % 100, own->gbps);
}

static int find_chain(const struct shim_plan *plan, const struct shim_member *members, int n,
                      const struct shim_comm *comm, struct shim_answer *answer,
                      struct shim_why *why)
{
    bool closed = comm->ranks == n;
    if (same_gpus(&plan->chain, members, n) && plan->chain.path.closed == closed &&
        (closed || answer->whole)) {
        answer->chain = plan->chain;
        return check_gain(&plan->chain, members[0].version, answer, why);
    }
    if (!closed && !plan->one_fabric)
        return shim_fail(why, "its nodes may not reach each other over every NIC");
    shim_bus gpus[SHIM_GPUS];
    for (int i = 0; i < n; i++)
        gpus[i] = members[i].gpu;
    int asked = shim_ask_chain(plan, gpus, n, closed, shim_now_us() + ASK_US, &answer->chain, why);
    answer->no_gain = asked > 0;
    return asked ? -1 : check_gain(&answer->chain, members[0].version, answer, why);
}

/* What a graph file is made of beside the chain. */
struct places {
    struct shim_pci pci;
    bool linked[SHIM_GPUS][SHIM_GPUS]; /* in the order of the chain */
    bool islands;
};

static enum shim_path path_between(const struct shim_chain *chain, struct places *places,
                                   shim_bus a, shim_bus b)
{
    return shim_islands_path(chain, &places->pci, places->islands, a, b);
}

static enum shim_path farthest_edge(const struct shim_chain *chain, struct places *places)
{
    enum shim_path farthest = SHIM_PIX;
    for (int i = 0; i < tccl_named_edges(&chain->path); i++) {
        enum shim_path path = path_between(chain, places, chain->path.gpus[i],
                                           chain->path.gpus[(i + 1) % chain->path.n_gpus]);
        farthest = path > farthest ? path : farthest;
    }
    return farthest;
}

static enum shim_path farthest_end(const struct shim_chain *chain, struct places *places)
{
    if (chain->path.closed)
        return SHIM_PIX;
    /* As it really is, wherever the topology file has the NIC: NCCL chooses protocols by it. */
    enum shim_path entry = shim_pci_path(&places->pci, chain->entry, chain->path.gpus[0]);
    enum shim_path exit =
        shim_pci_path(&places->pci, chain->exit, chain->path.gpus[chain->path.n_gpus - 1]);
    return entry > exit ? entry : exit;
}

/* GPUs by NVML's number, on which all must agree, or with their ranks; NICs by NCCL's. */
static int find_numbers(const struct shim_chain *chain, const struct shim_member *members, int n,
                        bool hidden, const struct shim_nccl *nccl, struct shim_numbers *numbers,
                        struct shim_why *why)
{
    *numbers = (struct shim_numbers){.by_rank = hidden};
    for (int i = 0; i < n; i++) {
        int at = shim_bus_find(chain->path.gpus, chain->path.n_gpus, members[i].gpu);
        if (at < 0)
            return shim_fail(why, "the chain is one of other GPUs");
        numbers->ranks[at] = members[i].rank;
        numbers->gpus[at] = members[i].nvml;
        if (hidden)
            continue;
        if (shim_device_nvml(members[i].gpu, &numbers->gpus[at], why))
            return -1;
        if (numbers->gpus[at] != members[i].nvml)
            return shim_fail(why, "ranks see different NVML indices of a GPU");
    }
    if (chain->path.closed)
        return 0;
    for (int i = 1; i < n; i++)
        if (members[i].nics != members[0].nics)
            return shim_fail(why, "ranks have different NIC settings");
    numbers->entry = shim_nic_number(chain->path.entry.nic, nccl, why);
    numbers->exit = shim_nic_number(chain->path.exit.nic, nccl, why);
    return numbers->entry < 0 || numbers->exit < 0 ? -1 : 0;
}

static bool one_process(const struct shim_member *members, int n)
{
    for (int i = 1; i < n; i++)
        if (members[i].pid != members[0].pid)
            return false;
    return true;
}

/* Can buffers be put on the chain's memories in all processes of the node? Between ranks of one
 * process NCCL takes files in /dev/shm in any case. */
static int check_buffers(const struct shim_plan *plan, const struct shim_registry *registry,
                         uint32_t needs, struct shim_why *why)
{
    struct shim_why left = {""};
    if (!registry || !needs)
        return 0;
    switch (shim_registry_buffers(registry, &left)) {
    case SHIM_BUFFERS_MOVED:
        return 0;
    case SHIM_BUFFERS_LEFT:
        return shim_fail(why, "buffers can't be put on the memories of the chain: %s", left.text);
    case SHIM_BUFFERS_OPEN: /* NCCL asks later on, or never */
        break;
    }
    return !(needs & SHIM_GIVE_CONNECT) ||
                   shim_registry_all_claimed(registry, plan->gpus, plan->n_gpus)
               ? 0
               : shim_fail(why, "buffers can't be put on the memories of the chain: not all of the "
                                "node's GPUs are used with the shim");
}

/* Does NCCL by itself send directly from a GPU to a NIC that is near? Of older GPUs, and up to 2.18
 * of all, only where that is all that the machine's PCIe has to carry. */
static bool sends_directly(const struct shim_chain *chain, const struct shim_member *members, int n,
                           bool linked[SHIM_GPUS][SHIM_GPUS])
{
    enum { AMPERE = 80, KNOWS_AMPERE = 21900 };
    int at = 0;
    while (at < n && members[at].gpu != chain->path.gpus[chain->path.n_gpus - 1])
        at++;
    if (at == n)
        return false;
    bool direct = n == 1 || (members[at].sm >= AMPERE && members[at].version >= KNOWS_AMPERE);
    for (int i = 0; i < n; i++)
        direct = direct || linked[at][i] || linked[i][at];
    return direct;
}

/* Settings of the members in the order of the chain. */
static int check_settings(const struct shim_plan *plan, const struct shim_registry *registry,
                          const struct shim_chain *chain, struct shim_pci *pci,
                          const struct shim_member *members, int n, uint32_t *all,
                          struct shim_why *why)
{
    uint32_t user[SHIM_GPUS] = {0}, given[SHIM_GPUS] = {0}, version = members[0].version;
    uint32_t needs = shim_settings_ahead(chain, pci, version);
    bool one = one_process(members, n);
    *all = 0;
    if (check_buffers(plan, registry, one ? needs & ~(uint32_t)SHIM_GIVE_SHM_HOST : needs, why))
        return -1;
    for (int i = 0; i < n; i++) {
        int at = shim_bus_find(chain->path.gpus, chain->path.n_gpus, members[i].gpu);
        user[at] = members[i].user;
        given[at] = members[i].given;
        *all |= given[at];
        if (one) {
            given[at] |= SHIM_GIVE_SHM_HOST;
            user[at] &= ~(uint32_t)SHIM_USER_HOST;
        }
    }
    return shim_settings_suit(chain, pci, user, given, version, why);
}

/* Does NCCL take P2P up to PXB in all processes? */
static bool level_pxb(const struct shim_member *members, int n)
{
    for (int i = 0; i < n; i++)
        if (!(members[i].user & SHIM_USER_PXB))
            return false;
    return true;
}

/* The links in the order of the chain, as islands.h has them. */
static void order_links(const struct shim_chain *chain, const struct shim_member *members, int n,
                        bool from[SHIM_GPUS][SHIM_GPUS], bool to[SHIM_GPUS][SHIM_GPUS])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            to[shim_bus_find(chain->path.gpus, chain->path.n_gpus, members[i].gpu)]
              [shim_bus_find(chain->path.gpus, chain->path.n_gpus, members[j].gpu)] = from[i][j];
}

static bool is_near(enum shim_path path)
{
    return path <= SHIM_PXB;
}

static struct shim_steer facts_of(const struct shim_chain *chain, struct places *places,
                                  uint32_t version, bool pxb)
{
    const struct shim_baseline *own = shim_chain_baseline(chain, (int)version);
    const struct tccl_named_chain *path = &chain->path;
    struct shim_steer facts = {
        .channels = own->ring.channels,
        .gbps = own->ring.speed_intra,
        .tree_gbps = own->tree.channels * own->tree.speed_inter,
        .nics = shim_nics_there(),
        .ways = shim_steer_has_ways(version),
        .all_cpus = shim_islands_all_cpus(version),
        .far_p2p = !pxb && shim_islands_far_p2p(&places->pci, path->n_gpus, version)};
    if (!path->closed) {
        shim_bus tail = path->gpus[path->n_gpus - 1];
        facts.near_entry = is_near(path_between(chain, places, chain->entry, path->gpus[0]));
        facts.near_exit = is_near(path_between(chain, places, chain->exit, tail));
    }
    return facts;
}

/* The topology file of steer.h in place of that of the islands, if there can be one. */
static bool steer(const struct shim_chain *chain, struct places *places,
                  const struct shim_steer *facts, struct shim_answer *answer, struct shim_why *why)
{
    struct shim_text text = {shim_scratch(SHIM_TOPO_SIZE), SHIM_TOPO_SIZE, 0, false};
    bool done = text.at && shim_steer(chain, &places->pci, places->linked, facts, &text, why) == 1;
    if (done) {
        memcpy(answer->topo, text.at, text.length + 1);
        answer->topo_size = (uint32_t)text.length;
    }
    shim_scratch_free(text.at, SHIM_TOPO_SIZE);
    return done;
}

static void tell_direct(const struct shim_why *why)
{
    if (why->text[0])
        shim_log(SHIM_LOG_INFO,
                 "GPUs that are no neighbours in the ring, and at most as far from each other as "
                 "some that are, send to each other by P2P in place of host memory: %s",
                 why->text);
}

/* Where a graph file costs NCCL much: a topology file that makes it unnecessary. Returns whether
 * there is one. */
static bool steer_alone(const struct shim_chain *chain, struct places *places, uint32_t version,
                        bool pxb, struct shim_answer *answer)
{
    struct shim_steer facts = facts_of(chain, places, version, pxb);
    struct shim_why why = {""};
    if (version == 0 || !shim_graph_is_costly(version))
        return false;
    bool done = steer(chain, places, &facts, answer, &why);
    if (done)
        tell_direct(&why);
    else
        shim_log(SHIM_LOG_INFO, "a graph file is needed, which costs this NCCL %llu MiB: %s",
                 (unsigned long long)(shim_graph_memory(version) >> 20), why.text);
    return done;
}

/* Beside a graph file: ways for pairs, where one bridge would join more GPUs than the chain does.
 */
static void steer_beside(const struct shim_chain *chain, struct places *places, uint32_t version,
                         bool pxb, struct shim_answer *answer)
{
    struct shim_steer facts = facts_of(chain, places, version, pxb);
    struct shim_why why = {""};
    facts.given = true;
    if (!shim_steer_matters(chain, &places->pci, &facts))
        return;
    if (facts.ways)
        steer(chain, places, &facts, answer, &why);
    else
        shim_fail(&why, "this NCCL knows no ways between single GPUs");
    tell_direct(&why);
}

static int check_ranks(const struct shim_numbers *numbers, uint32_t version, struct shim_why *why)
{
    if (!numbers->by_rank || shim_graph_has_ranks(version))
        return 0;
    return shim_fail(why, "ranks see only their own GPUs, which NCCL can tell apart from 2.30.3 "
                          "on: ask for --gpus-per-node in place of --gpus-per-task or --gpu-bind");
}

/* The topology file; then the graph file, which depends on it, unless it does without. */
static int write_texts(const struct shim_member *members, int n, struct places *places,
                       const struct shim_numbers *numbers, struct shim_answer *answer,
                       struct shim_why *why)
{
    const struct shim_chain *chain = &answer->chain;
    struct shim_text topo = {answer->topo, sizeof(answer->topo), 0, false};
    struct shim_text graph = {answer->graph, sizeof(answer->graph), 0, false};
    uint32_t version = members[0].version;
    bool pxb = level_pxb(members, n);
    int islands = shim_islands(chain, &places->pci, places->linked, pxb, version, &topo, why);
    places->islands = islands > 0;
    answer->graph_size = 0;
    answer->memory = 0;
    answer->topo_size = islands > 0 ? (uint32_t)topo.length : 0;
    if (islands >= 0 && steer_alone(chain, places, version, pxb, answer))
        return 0;
    if (islands < 0 || check_ranks(numbers, version, why) || check_limits(members, n, why) ||
        shim_graph(chain, numbers, shim_chain_baseline(chain, (int)version),
                   farthest_edge(chain, places), farthest_end(chain, places), &graph, why))
        return -1;
    if (places->islands)
        steer_beside(chain, places, version, pxb, answer);
    answer->graph_size = (uint32_t)graph.length;
    answer->memory = shim_graph_memory(version);
    return 0;
}

/* NCCL takes the entry's NIC for both ends of a single GPU. */
static int check_ends(const struct shim_chain *chain, struct shim_why *why)
{
    if (chain->path.closed || chain->path.n_gpus > 1 || chain->entry == chain->exit)
        return 0;
    return shim_fail(why, "NCCL has one NIC for a single GPU, not %s and %s", chain->path.entry.nic,
                     chain->path.exit.nic);
}

static int write_files(const struct shim_plan *plan, const struct shim_registry *registry,
                       const struct shim_comm *comm, const struct shim_member *members, int n,
                       bool linked[SHIM_GPUS][SHIM_GPUS], struct shim_answer *answer,
                       struct shim_why *why)
{
    const struct shim_chain *chain = &answer->chain;
    bool hidden = are_hidden(plan, members, n);
    struct places places = {.islands = false};
    struct shim_numbers numbers;
    for (int i = 0; i < n; i++)
        if (shim_settings_user_allows(chain, members[i].user, why))
            return -1;
    if ((hidden && check_hidden(chain, members[0].version, why)) || check_ends(chain, why) ||
        find_numbers(chain, members, n, hidden, &comm->nccl, &numbers, why) ||
        shim_islands_read(chain, &places.pci, why))
        return -1;
    places.pci.reads = sends_directly(chain, members, n, linked);
    if (check_settings(plan, registry, chain, &places.pci, members, n, &answer->settings, why))
        return -1;
    answer->entry = chain->path.closed ? -1 : numbers.entry;
    answer->exit = chain->path.closed ? -1 : numbers.exit;
    order_links(chain, members, n, linked, places.linked);
    return write_texts(members, n, &places, &numbers, answer, why);
}

int shim_work_out(const struct shim_plan *plan, const struct shim_registry *registry,
                  const struct shim_comm *comm, const struct shim_member *members, int n,
                  struct shim_answer *answer, struct shim_why *why)
{
    bool linked[SHIM_GPUS][SHIM_GPUS] = {{false}};
    answer->ranks = comm->ranks;
    answer->locals = 0;
    answer->no_gain = false;
    answer->whole = shim_plan_whole(plan, comm->ranks) && n == plan->n_gpus;
    if (shim_check_members(plan, registry, comm, members, n, why))
        return -1;
    answer->locals = n;
    if (comm->ranks < 2)
        return shim_fail(why, "it has one rank");
    if (check_wanted(members, n, are_hidden(plan, members, n), linked, why) ||
        find_chain(plan, members, n, comm, answer, why))
        return -1;
    return write_files(plan, registry, comm, members, n, linked, answer, why);
}

/* ---- In the registry ---- */

/* Of a split: how many local ranks have this color, once all of the parent's have said theirs. */
static int call_roll(struct shim_comm *comm, struct shim_why *why)
{
    struct shim_member members[SHIM_GPUS * 2];
    if (!comm->roll)
        return 0;
    int n = shim_entry_members(comm->roll, members), same = 0;
    if (n != comm->roll_locals)
        return shim_fail(why, "%d of its parent's %d local ranks are seen", n, comm->roll_locals);
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
    char line[TCCL_CHAIN_TEXT];
    const char *files = !answer->graph_size  ? "topology file"
                        : !answer->topo_size ? "graph file"
                                             : "graph file, topology file";
    tccl_named_format(&answer->chain.path, line);
    shim_log(SHIM_LOG_INFO,
             "communicator %016llx of %d ranks, %d here: ring %s; %s, %.2f GB/s (NCCL's own %.2f); "
             "%s",
             (unsigned long long)comm->key, answer->ranks, answer->locals, line,
             answer->chain.source, answer->chain.gbps,
             shim_chain_baseline(&answer->chain, (int)comm->nccl.version)->gbps, files);
    const char *folder = shim_env("TCCL_DEBUG_FILES");
    if (!folder || !folder[0])
        return;
    if (answer->graph_size)
        keep_file(folder, comm->key, "graph", answer->graph, answer->graph_size);
    if (answer->topo_size)
        keep_file(folder, comm->key, "topo", answer->topo, answer->topo_size);
}

static void tell_aside(const struct shim_comm *comm, enum shim_level level,
                       const struct shim_why *why)
{
    char ranks[32] = "of some ranks";
    if (comm->ranks >= 0)
        snprintf(ranks, sizeof(ranks), "of %d ranks", comm->ranks);
    shim_log(level, "communicator %016llx %s: NCCL's own choice: %s", (unsigned long long)comm->key,
             ranks, why->text);
}

/* Files for some ranks of a node would fail the init: all are there to take theirs. */
static int await_all(const struct shim_entry *entry, int n, struct shim_why *why)
{
    return shim_entry_await(entry, n, shim_now_us() + ASKED_US) == 0
               ? 0
               : shim_fail(why, "NCCL did not ask for all of its local ranks");
}

static void tell_tccld(const struct shim_plan *plan, enum shim_verdict verdict, const char *text,
                       const struct shim_comm *comm, const struct shim_answer *answer, int locals)
{
    if (answer->whole)
        shim_ask_confirm(plan, verdict, text, comm->nccl.version, comm->ranks, true, locals, -1,
                         shim_now_us() + SHIM_CONFIRM_US, NULL);
}

/* Is there memory for the graph file, also beside other communicators that are about to read theirs
 * and have not touched it yet? */
static int reserve_memory(struct shim_registry *registry, const struct shim_answer *answer, int n,
                          struct shim_why *why)
{
    uint64_t taken = (uint64_t)n * answer->memory;
    if (taken == 0)
        return 0;
    uint64_t left = shim_memory_left(), spare = left > LEFT_OVER ? left - LEFT_OVER : 0;
    if (shim_registry_reserve(registry, taken, spare))
        return 0;
    return shim_fail(why, "too little memory is left: %llu MiB, NCCL takes %llu MiB for a moment%s",
                     (unsigned long long)(left >> 20),
                     (unsigned long long)((taken + LEFT_OVER) >> 20),
                     taken <= spare ? ", beside what it takes for other communicators" : "");
}

/* What a communicator will send can't be known, but many of them in one process can't all pay for
 * seconds: the first ones are given a graph file. */
static bool is_counted(const struct shim_answer *answer, uint32_t version)
{
    return answer->memory > 0 && shim_graph_is_costly(version);
}

/* Nothing is taken for a communicator that is left alone. */
static void give_back(const struct shim_plan *plan, struct shim_registry *registry,
                      const struct shim_answer *answer, uint32_t version, int n)
{
    const struct tccl_named_chain *path = &answer->chain.path;
    shim_registry_release(registry, (uint64_t)n * answer->memory);
    if (is_counted(answer, version))
        shim_registry_uncount_file(registry, path->gpus, path->n_gpus,
                                   shim_plan_whole(plan, answer->ranks));
}

/* Both, or nothing is taken. */
static int reserve(const struct shim_plan *plan, struct shim_registry *registry,
                   const struct shim_answer *answer, uint32_t version, int n, struct shim_why *why)
{
    const struct tccl_named_chain *path = &answer->chain.path;
    if (reserve_memory(registry, answer, n, why) != 0)
        return -1;
    if (!is_counted(answer, version) ||
        shim_registry_count_file(registry, path->gpus, path->n_gpus,
                                 shim_plan_whole(plan, answer->ranks), shim_now_us(), why) == 0)
        return 0;
    shim_registry_release(registry, (uint64_t)n * answer->memory);
    return -1;
}

static enum shim_decision decide_now(const struct shim_plan *plan, struct shim_registry *registry,
                                     struct shim_entry *entry, const struct shim_comm *given,
                                     struct shim_answer *answer)
{
    struct shim_member members[SHIM_GPUS * 2];
    struct shim_comm comm = *given;
    struct shim_why why = {""};
    int n = shim_entry_members(entry, members);
    bool good = !call_roll(&comm, &why) &&
                !shim_work_out(plan, registry, &comm, members, n, answer, &why) &&
                !await_all(entry, n, &why) &&
                !reserve(plan, registry, answer, members[0].version, n, &why);
    *shim_entry_answer(entry) = *answer;
    shim_entry_prove(entry, answer->locals);
    enum shim_decision decision =
        shim_entry_decide(entry, good ? SHIM_USE : SHIM_ASIDE, good ? NULL : &why);
    if (decision == SHIM_USE) {
        tell_use(&comm, answer);
        tell_tccld(plan, SHIM_BEGUN, "", &comm, answer, n);
        return decision;
    }
    if (good)
        give_back(plan, registry, answer, members[0].version, n);
    shim_entry_why(entry, &why);
    tell_aside(&comm, answer->no_gain ? SHIM_LOG_INFO : SHIM_LOG_WARN, &why);
    tell_tccld(plan, SHIM_NOT_USED, why.text, &comm, answer, n);
    return decision;
}

enum shim_decision shim_decide(const struct shim_plan *plan, struct shim_registry *registry,
                               struct shim_entry *entry, const struct shim_comm *comm)
{
    static const struct shim_why why = {"out of memory"};
    struct shim_answer *answer;
    if (shim_entry_begin(entry)) {
        answer = shim_scratch(sizeof(*answer));
        if (!answer)
            return shim_entry_decide(entry, SHIM_ASIDE, &why);
        enum shim_decision decision = decide_now(plan, registry, entry, comm, answer);
        shim_scratch_free(answer, sizeof(*answer));
        return decision;
    }
    return shim_entry_wait(entry, shim_now_us() + WAIT_US);
}

enum shim_decision shim_decide_aside(struct shim_entry *entry, const struct shim_comm *comm,
                                     const struct shim_why *why)
{
    if (!shim_entry_begin(entry))
        return shim_entry_aside(entry, why); /* who decides there will log it */
    tell_aside(comm, SHIM_LOG_WARN, why);
    return shim_entry_decide(entry, SHIM_ASIDE, why);
}
