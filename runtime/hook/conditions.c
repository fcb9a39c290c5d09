/* conditions.c: settings of processes under which NCCL takes a chain's buffers and ends as planned.
 * What a process has for its whole life can't be changed for one communicator. */
#include "hook/conditions.h"

#include "chain/nccl-version.h"
#include "hook/members.h"
#include "nccl/settings.h"

/* Of older GPUs only where that is all that the machine's PCIe has to carry. */
bool shim_sends_directly(const struct tccl_named_chain *path, const struct shim_member *members,
                         int n, bool linked[SHIM_GPUS][SHIM_GPUS])
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

int shim_check_settings(const struct shim_chain *chain, struct shim_pci *pci,
                        const struct shim_member *members, int n, struct shim_why *why)
{
    uint32_t user[SHIM_GPUS] = {0};
    for (int i = 0; i < n; i++)
        user[shim_ring_find(&chain->rings[0], members[i].gpu)] = members[i].user;
    return shim_settings_suit(chain, pci, user, members[0].version, why);
}

static int check_net(const struct shim_answer *answer, const struct shim_member *members, int n,
                     struct shim_why *why)
{
    for (int i = 0; i < n && answer->no_net; i++)
        if (members[i].net == SHIM_NET_LEFT)
            return shim_fail(why,
                             "NCCL would take the network between GPUs of this node: process %d "
                             "has made, or makes, another communicator that leaves it at that",
                             members[i].pid);
    return 0;
}

/* Between ranks of one process all NCCLs take files. */
static int check_buffers(const struct shim_answer *answer, const struct shim_member *members, int n,
                         struct shim_why *why)
{
    bool one = shim_members_one_process(members, n);
    for (int i = 0; i < n && answer->moves; i++) {
        if (tccl_release_does(members[i].version, TCCL_FACT_LATE_BUFFERS))
            return shim_fail(why, "this NCCL can't put buffers on the memories of the chain");
        if (members[i].buffers == SHIM_BUFFERS_FIXED && !one)
            return shim_fail(why,
                             "buffers can't be put on the memories of the chain: process %d does "
                             "not reach CUDA's driver through the shim",
                             members[i].pid);
    }
    return 0;
}

int shim_check_processes(const struct shim_answer *answer, const struct shim_member *members, int n,
                         struct shim_why *why)
{
    return check_buffers(answer, members, n, why) || check_net(answer, members, n, why) ? -1 : 0;
}
