/* decide.c: what a communicator on this node is given: its chain, the checks before, and the two
 * files. */
#include "hook/hook.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "chain/nccl-version.h"
#include "nccl/shim-nccl.h"

enum {
    ASK_US = 2000000,    /* for tccld's answer: other ranks wait for this one in NCCL anyway */
    ASK_AGAIN_US = 50000 /* once it has not answered in that time */
};

/* With CUDA, P2P to GPUs that a task may not open can fail, which ends the init or the first
 * collective. */
static int check_hidden(const struct shim_chain *chain, uint32_t version, struct tccl_error *why)
{
    if (!tccl_release_does(version, TCCL_FACT_OWN_GPU))
        return tccl_fail(why, "ranks see only their own GPUs, and NCCL %u.%u does not know others",
                         version / 10000, version / 100 % 100);
    for (int i = 0; i < chain->rings.n; i++)
        for (int j = 0; j < tccl_named_edges(&chain->rings.chains[i]); j++)
            if (chain->rings.chains[i].edges[j].kind != TCCL_BOUNCE)
                return tccl_fail(why, "ranks see only their own GPUs, and the ring has P2P between "
                                      "them");
    return 0;
}

/* The user's own settings and NVLink take precedence over any ring over PCIe. */
static int check_wanted(const struct shim_member *members, int n, bool hidden,
                        bool linked[SHIM_GPUS][SHIM_GPUS], struct tccl_error *why)
{
    tccl_bus gpus[SHIM_GPUS];
    uint32_t user = 0;
    for (int i = 0; i < n; i++) {
        gpus[i] = members[i].gpu;
        user |= members[i].user;
    }
    if (shim_settings_refuse(user & (SHIM_USER_FILES | SHIM_USER_SHARP), why) != 0)
        return -1;
    if (n < 2)
        return 0;
    for (int i = 0; i < n && hidden; i++)
        if (members[i].linked)
            return tccl_fail(why, "ranks see only their own GPUs, which may be joined by NVLink");
    if (hidden)
        return 0;
    int nvlink = shim_device_nvlink(gpus, n, linked, why);
    if (nvlink == SHIM_NVLINK_ALL)
        return tccl_fail(why, "NVLink joins all of its GPUs");
    return nvlink < 0 ? -1 : 0;
}

static bool same_gpus(const struct shim_chain *chain, const struct shim_member *members, int n)
{
    if (chain->rings.chains[0].n_gpus != n)
        return false;
    for (int i = 0; i < n; i++)
        if (shim_ring_find(&chain->rings.chains[0], members[i].gpu) < 0)
            return false;
    return true;
}

/* Is the chain better than what this NCCL would build by itself? */
static int check_gain(const struct shim_chain *chain, uint32_t version, struct shim_answer *answer,
                      struct tccl_error *why)
{
    const struct shim_baseline *own = shim_chain_baseline(chain, (int)version);
    if (!own->better)
        return 0;
    answer->no_gain = true;
    return tccl_fail(why,
                     "the ring of %.2f GB/s is no gain over that of NCCL %u.%u itself, %.2f GB/s",
                     chain->gbps, version / 10000, version / 100 % 100, own->gbps);
}

/* A tccld that hangs is waited for once, until it answers again. */
static int ask(const struct shim_plan *plan, struct shim_registry *registry,
               const struct shim_member *members, int n, bool closed, struct shim_chain *chain,
               struct tccl_error *why)
{
    tccl_bus gpus[SHIM_GPUS];
    for (int i = 0; i < n; i++)
        gpus[i] = members[i].gpu;
    bool silent = registry && shim_registry_silent(registry);
    int64_t deadline = shim_now_us() + (silent ? ASK_AGAIN_US : ASK_US);
    int asked = shim_ask_chain(plan, gpus, n, closed, deadline, chain, why);
    if (registry)
        shim_registry_set_silent(registry, asked < 0 && shim_now_us() >= deadline);
    return asked;
}

static int find_chain(const struct shim_plan *plan, struct shim_registry *registry,
                      const struct shim_member *members, int n, const struct shim_comm *comm,
                      struct shim_answer *answer, struct tccl_error *why)
{
    bool closed = comm->ranks == n;
    if (plan->chain.rings.n == 0 && answer->whole) {
        answer->no_gain = true;
        return tccl_fail(why, "the plan has no ring for all GPUs of the step");
    }
    if (plan->chain.rings.n > 0 && same_gpus(&plan->chain, members, n) &&
        plan->chain.rings.chains[0].closed == closed && (closed || answer->whole)) {
        answer->chain = plan->chain;
        return check_gain(&plan->chain, members[0].version, answer, why);
    }
    int asked = ask(plan, registry, members, n, closed, &answer->chain, why);
    answer->no_gain = asked > 0;
    return asked ? -1 : check_gain(&answer->chain, members[0].version, answer, why);
}

/* What a graph file is made of beside the chain. */
struct places {
    struct shim_pci pci, seen;         /* really, and as NCCL will see it */
    bool linked[SHIM_GPUS][SHIM_GPUS]; /* in the order of the chain */
};

static enum shim_path farther(const struct shim_pci *pci, tccl_bus a, tccl_bus b,
                              enum shim_path than)
{
    enum shim_path path = shim_pci_path(pci, a, b);
    return path > than ? path : than;
}

static enum shim_path farthest_edge(const struct shim_chain *chain, const struct places *places)
{
    enum shim_path farthest = SHIM_PIX;
    for (int i = 0; i < chain->rings.n; i++) {
        const struct tccl_named_chain *path = &chain->rings.chains[i];
        for (int j = 0; j < tccl_named_edges(path); j++)
            farthest =
                farther(&places->seen, path->gpus[j], path->gpus[(j + 1) % path->n_gpus], farthest);
    }
    return farthest;
}

/* As they really are, wherever the topology file has the NICs: NCCL chooses protocols by it. */
static enum shim_path farthest_end(const struct shim_chain *chain, const struct places *places)
{
    enum shim_path farthest = SHIM_PIX;
    for (int i = 0; i < chain->rings.n && !chain->rings.chains[i].closed; i++) {
        const struct tccl_named_chain *path = &chain->rings.chains[i];
        farthest = farther(&places->pci, chain->entry[i], path->gpus[0], farthest);
        farthest = farther(&places->pci, chain->exit[i], path->gpus[path->n_gpus - 1], farthest);
    }
    return farthest;
}

static int find_nics(const struct shim_chain *chain, const struct shim_member *members, int n,
                     const struct shim_nccl *nccl, struct shim_numbers *numbers,
                     struct tccl_error *why)
{
    struct tccl_error ignored = {""};
    for (int i = 1; i < n; i++)
        if (members[i].nics != members[0].nics)
            return tccl_fail(why, "ranks have different NIC settings");
    for (int i = 0; i < chain->rings.n; i++) {
        numbers->entry[i] = shim_nic_number(chain->rings.chains[i].entry.nic, nccl, why);
        numbers->exit[i] = shim_nic_number(chain->rings.chains[i].exit.nic, nccl, why);
        if (numbers->entry[i] < 0 || numbers->exit[i] < 0)
            return -1;
    }
    if (chain->tree.gbps > 0 && !shim_graph_is_costly(members[0].version))
        numbers->tree = shim_nic_number(chain->tree.nic, nccl, &ignored);
    return 0;
}

/* GPUs by NVML's number, on which all must agree, or with their ranks; NICs by NCCL's. */
static int find_numbers(const struct shim_chain *chain, const struct shim_member *members, int n,
                        bool hidden, const struct shim_nccl *nccl, struct shim_numbers *numbers,
                        struct tccl_error *why)
{
    *numbers = (struct shim_numbers){.by_rank = hidden, .tree = -1};
    for (int i = 0; i < n; i++) {
        int at = shim_ring_find(&chain->rings.chains[0], members[i].gpu);
        numbers->ranks[at] = members[i].rank;
        numbers->gpus[at] = members[i].nvml;
        if (hidden)
            continue;
        if (shim_device_nvml(members[i].gpu, &numbers->gpus[at], why))
            return -1;
        if (numbers->gpus[at] != members[i].nvml)
            return tccl_fail(why, "ranks see different NVML indices of a GPU");
    }
    return chain->rings.chains[0].closed ? 0 : find_nics(chain, members, n, nccl, numbers, why);
}

static struct shim_steer facts_of(const struct shim_chain *chain, struct places *places,
                                  uint32_t version, bool pxb)
{
    const struct shim_baseline *own = shim_chain_baseline(chain, (int)version);
    const struct tccl_named_chain *path = &chain->rings.chains[0];
    struct shim_steer facts = {
        .channels = own->ring.channels,
        .gbps = own->ring.speed_intra,
        .tree_gbps = own->tree.channels * own->tree.speed_inter,
        .nics = shim_nics_there(),
        .ways = tccl_release_does(version, TCCL_FACT_PAIR_WAYS),
        .all_cpus = tccl_release_does(version, TCCL_FACT_ALL_CPUS),
        .far_p2p = !pxb && shim_islands_far_p2p(&places->pci, path->n_gpus, version)};
    if (chain->tree.along > 0) /* it goes where the ring does */
        facts.tree_gbps = shim_graph_tree_gbps(chain, own, chain->tree.along, own->tree.speed_inter,
                                               own->ring.speed_inter);
    if (!path->closed) {
        tccl_bus tail = path->gpus[path->n_gpus - 1];
        facts.near_entry = shim_pci_path(&places->seen, chain->entry[0], path->gpus[0]) <= SHIM_PXB;
        facts.near_exit = shim_pci_path(&places->seen, chain->exit[0], tail) <= SHIM_PXB;
    }
    return facts;
}

/* The topology file of steer in place of that of the islands, if there can be one. */
static bool steer(const struct shim_chain *chain, struct places *places,
                  const struct shim_steer *facts, struct shim_answer *answer,
                  struct tccl_error *why)
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

static void tell_direct(const struct tccl_error *why)
{
    if (why->text[0])
        shim_log(
            SHIM_LOG_INFO,
            "the ring needs P2P between distant GPUs, so sends between its other GPUs take P2P, "
            "too, in place of host memory: %s",
            why->text);
}

/* Where a graph file costs NCCL much: a topology file that makes it unnecessary. Returns whether
 * there is one. */
static bool steer_alone(const struct shim_chain *chain, struct places *places, uint32_t version,
                        bool pxb, uint64_t table, struct shim_answer *answer)
{
    struct shim_steer facts = facts_of(chain, places, version, pxb);
    struct tccl_error why = {""};
    if (!shim_graph_is_costly(version))
        return false;
    bool done = steer(chain, places, &facts, answer, &why);
    if (done)
        tell_direct(&why);
    else
        shim_log(SHIM_LOG_INFO, "a graph file is needed, for which NCCL %s: %s",
                 table ? "clears a table of 0.9 GB" : "is kept from clearing a table of 0.9 GB",
                 why.text);
    return done;
}

static bool are_neighbours(const struct shim_chain *chain, tccl_bus a, tccl_bus b)
{
    for (int i = 0; i < chain->rings.n; i++) {
        const struct tccl_named_chain *path = &chain->rings.chains[i];
        int between = abs(shim_ring_find(path, a) - shim_ring_find(path, b));
        if (between == 1 || (path->closed && between == path->n_gpus - 1))
            return true;
    }
    return false;
}

/* Do islands join GPUs that are no neighbours, and far from each other? */
static bool joins_others(const struct shim_chain *chain, struct places *places)
{
    const struct tccl_named_chain *path = &chain->rings.chains[0];
    for (int i = 0; i < path->n_gpus; i++)
        for (int j = 0; j < i; j++)
            if (shim_pci_path(&places->seen, path->gpus[i], path->gpus[j]) <= SHIM_PXB &&
                shim_pci_path(&places->pci, path->gpus[i], path->gpus[j]) > SHIM_PXB &&
                !are_neighbours(chain, path->gpus[i], path->gpus[j]))
                return true;
    return false;
}

/* Beside a graph file: ways for pairs, where one bridge would join more GPUs than the chain does.
 */
static void steer_beside(const struct shim_chain *chain, struct places *places, uint32_t version,
                         bool pxb, struct shim_answer *answer)
{
    struct shim_steer facts = facts_of(chain, places, version, pxb);
    struct tccl_error why = {""};
    facts.given = true;
    if (facts.far_p2p || !joins_others(chain, places))
        return;
    if (chain->rings.n > 1)
        tccl_fail(&why, "the plan has %d rings", chain->rings.n);
    else if (facts.ways)
        steer(chain, places, &facts, answer, &why);
    else
        tccl_fail(&why, "this NCCL takes one transport for all pairs of GPUs");
    tell_direct(&why);
}

static int write_graph(const struct shim_chain *chain, struct places *places,
                       const struct shim_numbers *numbers, uint32_t version, struct shim_text *text,
                       struct tccl_error *why)
{
    return shim_graph(chain, numbers, shim_chain_baseline(chain, (int)version),
                      farthest_edge(chain, places), farthest_end(chain, places), text, why);
}

/* The topology file; then the graph file, which depends on it, unless it does without. */
static int write_texts(const struct shim_member *members, int n, struct places *places,
                       const struct shim_numbers *numbers, struct shim_answer *answer,
                       struct shim_text *apart, struct tccl_error *why)
{
    const struct shim_chain *chain = &answer->chain;
    struct shim_text topo = {answer->topo, sizeof(answer->topo), 0, false};
    struct shim_text graph = {answer->graph, sizeof(answer->graph), 0, false};
    struct shim_numbers own_channels = *numbers;
    uint32_t version = members[0].version;
    uint64_t table = 0;
    for (int i = 0; i < n; i++)
        table = members[i].table > table ? members[i].table : table;
    bool pxb = shim_members_pxb(members, n);
    int islands =
        shim_islands(chain, &places->pci, places->linked, pxb, version, &topo, &places->seen, why);
    if (islands < 0)
        return -1;
    answer->no_net = !places->seen.net_intra;
    own_channels.apart = true;
    answer->graph_size = 0;
    answer->tree = false;
    answer->memory = 0;
    answer->topo_size = islands > 0 ? (uint32_t)topo.length : 0;
    if (steer_alone(chain, places, version, pxb, table, answer))
        return 0;
    if (numbers->by_rank && !tccl_release_does(version, TCCL_FACT_GRAPH_RANKS))
        return tccl_fail(why, "ranks see only their own GPUs, which NCCL can tell apart from "
                              "2.30.3 on: ask for --gpus-per-node in place of --gpus-per-task or "
                              "--gpu-bind");
    /* Seconds in each communicator, where NCCL clears the table: what it will send can't be known.
     */
    if (table > 0 && !answer->whole && shim_graph_is_costly(version))
        return tccl_fail(why, "it needs a graph file, for which this NCCL clears a table of 0.9 GB "
                              "in each rank: only communicators of all of the step's GPUs are "
                              "given one");
    if (shim_budget_limits(members, n, why) ||
        write_graph(chain, places, numbers, version, &graph, why) ||
        write_graph(chain, places, &own_channels, version, apart, why))
        return -1;
    if (islands > 0)
        steer_beside(chain, places, version, pxb, answer);
    answer->graph_size = (uint32_t)graph.length;
    answer->tree = shim_graph_tells_tree(answer->graph);
    answer->memory = table;
    return 0;
}

/* Two rings put the buffers of a process into one memory. */
static int check_memories(const struct tccl_named_chain *a, const struct tccl_named_chain *b,
                          struct tccl_error *why)
{
    for (int i = 0; i < a->n_gpus; i++) {
        struct shim_memories first = shim_ring_memories(a, a->gpus[i]);
        struct shim_memories other = shim_ring_memories(b, a->gpus[i]);
        if ((first.in >= 0 && other.in >= 0 && first.in != other.in) ||
            (first.out >= 0 && other.out >= 0 && first.out != other.out))
            return tccl_fail(
                why,
                "two rings need a GPU's buffers in different memories, and NCCL has them in one");
    }
    return 0;
}

/* What holds for any NCCL. */
static int check_rings(const struct shim_chain *chain, struct tccl_error *why)
{
    for (int i = 0; i < chain->rings.n; i++) {
        const struct tccl_named_chain *ring = &chain->rings.chains[i];
        /* NCCL takes the entry's NIC for both ends of a single GPU. */
        if (!ring->closed && ring->n_gpus == 1 && chain->entry[i] != chain->exit[i])
            return tccl_fail(
                why,
                "the ring enters by %s and leaves by %s, and NCCL uses one NIC for a single GPU",
                ring->entry.nic, ring->exit.nic);
        for (int j = 0; j < i; j++)
            if (check_memories(&chain->rings.chains[j], ring, why) != 0)
                return -1;
    }
    return 0;
}

static int write_files(const struct shim_plan *plan, bool reads, const struct shim_comm *comm,
                       const struct shim_member *members, int n, bool linked[SHIM_GPUS][SHIM_GPUS],
                       struct shim_answer *answer, struct shim_text *apart, struct tccl_error *why)
{
    const struct shim_chain *chain = &answer->chain;
    bool hidden = shim_members_hidden(plan, members, n);
    const struct tccl_named_chain *first = &chain->rings.chains[0];
    struct places places;
    struct shim_numbers numbers;
    uint32_t user[SHIM_GPUS] = {0};
    for (int i = 0; i < n; i++)
        user[shim_ring_find(first, members[i].gpu)] = members[i].user;
    if (shim_settings_suit(chain, user, reads, why) ||
        (hidden && check_hidden(chain, members[0].version, why)) || check_rings(chain, why) ||
        find_numbers(chain, members, n, hidden, &comm->nccl, &numbers, why) ||
        shim_islands_read(chain, &places.pci, why))
        return -1;
    for (int i = 0; i < chain->rings.n; i++)
        if (shim_members_send_directly(&chain->rings.chains[i], members, n, linked))
            places.pci.reads |= (uint8_t)(1 << i);
    answer->moves = false;
    for (int i = 0; i < n; i++)
        answer->moves = answer->moves || shim_settings_move(chain, &places.pci, members[i].gpu);
    for (int i = 0; i < TCCL_CHAIN_RINGS; i++) {
        bool open = i < chain->rings.n && !chain->rings.chains[i].closed;
        answer->entry[i] = open ? numbers.entry[i] : -1;
        answer->exit[i] = open ? numbers.exit[i] : -1;
    }
    for (int i = 0; i < n; i++) /* in the order of the chain, as shim_islands has them */
        for (int j = 0; j < n; j++)
            places.linked[shim_ring_find(first, members[i].gpu)]
                         [shim_ring_find(first, members[j].gpu)] = linked[i][j];
    return write_texts(members, n, &places, &numbers, answer, apart, why);
}

int shim_decide(const struct shim_plan *plan, struct shim_registry *registry,
                const struct shim_comm *comm, const struct shim_member *members, int n,
                struct shim_answer *answer, struct shim_text *apart, struct tccl_error *why)
{
    bool linked[SHIM_GPUS][SHIM_GPUS] = {{false}};
    answer->ranks = comm->ranks;
    answer->locals = 0;
    answer->no_gain = false;
    answer->whole = shim_plan_whole(plan, comm->ranks) && n == plan->n_gpus;
    if (shim_members_check(plan, registry, comm, members, n, why))
        return -1;
    answer->locals = n;
    if (comm->ranks < 2)
        return tccl_fail(why, "it has one rank");
    if (check_wanted(members, n, shim_members_hidden(plan, members, n), linked, why) ||
        find_chain(plan, registry, members, n, comm, answer, why))
        return -1;
    bool reads =
        plan->reads && registry && shim_registry_reads(registry, plan->gpus, plan->n_gpus, false);
    return write_files(plan, reads, comm, members, n, linked, answer, apart, why);
}
