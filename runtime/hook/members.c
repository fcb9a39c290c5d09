/* members.c: who takes part in a communicator on this node: all of its ranks there, known, and
 * alike. Ranks without the shim would get other files than the rest, which fails the init. And the
 * settings of their processes under which NCCL takes a chain's buffers and ends as planned: what a
 * process has for its whole life can't be changed for one communicator. */
#include "hook/hook.h"

#include "chain/nccl-version.h"
#include "nccl/shim-nccl.h"

/* Each one by itself, and all alike. members are in the order of their GPUs. */
static int check_alike(const struct shim_plan *plan, const struct shim_member *members, int n,
                       struct tccl_error *why)
{
    char unknown[TCCL_NCCL_TEXT];
    for (int i = 0; i < n; i++) {
        const struct shim_member *member = &members[i];
        if (member->gpu == SHIM_NO_BUS)
            return tccl_fail(why, "the GPU of a rank (process %d) is not known", member->pid);
        if (shim_bus_find(plan->gpus, plan->n_gpus, member->gpu) < 0)
            return tccl_fail(why, "the GPU of a rank (process %d) is none of the step's",
                             member->pid);
        if (i > 0 && members[i - 1].gpu == member->gpu)
            return tccl_fail(why, "two ranks are on one GPU (processes %d and %d)",
                             members[i - 1].pid, member->pid);
        if (!tccl_nccl_known(member->version)) {
            tccl_nccl_not_known(member->version, unknown);
            return tccl_fail_as(why, TCCL_REASON_UNKNOWN_NCCL, "%s", unknown);
        }
        if (member->version != members[0].version)
            return tccl_fail(why, "ranks have different NCCL versions (%u and %u)",
                             members[0].version, member->version);
        if (member->host != members[0].host)
            return tccl_fail(why, "NCCL takes ranks of this node for ranks of different hosts");
    }
    return 0;
}

int shim_members_check(const struct shim_plan *plan, const struct shim_registry *registry,
                       const struct shim_comm *comm, const struct shim_member *members, int n,
                       struct tccl_error *why)
{
    if (n < 1 || n > SHIM_GPUS)
        return tccl_fail(why, "%d local ranks are too many, or none", n);
    if (check_alike(plan, members, n, why))
        return -1;
    /* Are all local ranks here, or may some run without the shim? */
    if (comm->ranks < 0)
        return tccl_fail(why, "its number of ranks is unknown");
    if (n > comm->ranks)
        return tccl_fail(why, "more local ranks (%d) than it has (%d)", n, comm->ranks);
    if (comm->expected >= 0)
        return n == comm->expected
                   ? 0
                   : tccl_fail(why, "%d of its %d local ranks have the shim", n, comm->expected);
    if (n == comm->ranks || n == plan->n_gpus)
        return 0;
    if (registry && !shim_registry_closed(registry) &&
        shim_registry_all_claimed(registry, plan->gpus, plan->n_gpus))
        return 0;
    return tccl_fail(
        why, "only %d local ranks are known: do others run without the shim (LD_PRELOAD)?", n);
}

bool shim_members_hidden(const struct shim_plan *plan, const struct shim_member *members, int n)
{
    uint32_t gpus = 0;
    for (int i = 0; i < n; i++)
        gpus |= 1u << shim_bus_find(plan->gpus, plan->n_gpus, members[i].gpu);
    for (int i = 0; i < n; i++)
        if (gpus & ~members[i].sees)
            return true;
    return false;
}

bool shim_members_pxb(const struct shim_member *members, int n)
{
    for (int i = 0; i < n; i++)
        if (!(members[i].user & SHIM_USER_PXB))
            return false;
    return true;
}

/* Of older GPUs only where that is all that the machine's PCIe has to carry. */
bool shim_members_send_directly(const struct tccl_named_chain *path,
                                const struct shim_member *members, int n,
                                bool linked[SHIM_GPUS][SHIM_GPUS])
{
    enum { AMPERE = 80 };
    int at = 0;
    while (at < n && members[at].gpu != path->gpus[path->n_gpus - 1])
        at++;
    if (at == n)
        return false;
    bool direct = n == 1 || members[at].sm >= AMPERE;
    for (int i = 0; i < n; i++)
        direct = direct || linked[at][i] || linked[i][at];
    return direct;
}

int shim_members_can(const struct shim_answer *answer, const struct shim_member *members, int n,
                     struct tccl_error *why)
{
    bool one = true; /* between ranks of one process all NCCLs take files */
    for (int i = 1; i < n; i++)
        one = one && members[i].pid == members[0].pid;
    for (int i = 0; i < n && answer->moves; i++) {
        if (tccl_release_does(members[i].version, TCCL_FACT_LATE_BUFFERS))
            return tccl_fail(
                why, "this NCCL can't put buffers in host memory where the ring wants them");
        if (members[i].buffers == SHIM_BUFFERS_FIXED && !one)
            return tccl_fail(
                why,
                "buffers in host memory can't be put where the ring wants them: process "
                "%d does not call CUDA's driver through the shim",
                members[i].pid);
    }
    for (int i = 0; i < n && answer->no_net; i++) {
        if (members[i].net == SHIM_NET_OPEN && !answer->whole)
            return tccl_fail(why, "NCCL would take the network between GPUs of this node: only a "
                                  "communicator of all of the step's GPUs changes that, for all "
                                  "of its processes");
        if (members[i].net == SHIM_NET_LEFT)
            return tccl_fail(why,
                             "NCCL may take the network between GPUs of this node: process %d has "
                             "another communicator without NCCL_NET_DISABLE_INTRA=1, which NCCL "
                             "reads once",
                             members[i].pid);
    }
    return 0;
}
