/* conditions.c: settings of processes under which NCCL takes a chain's buffers and ends as planned.
 * What a process has for its whole life can't be changed for one communicator. */
#include "hook/conditions.h"

#include "hook/members.h"
#include "nccl/settings.h"

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

/* Of older GPUs, and up to 2.18 of all, only where that is all that the machine's PCIe has to
 * carry.
 */
bool shim_sends_directly(const struct tccl_named_chain *path, const struct shim_member *members,
                         int n, bool linked[SHIM_GPUS][SHIM_GPUS])
{
    enum { AMPERE = 80, KNOWS_AMPERE = 21900 };
    int at = 0;
    while (at < n && members[at].gpu != path->gpus[path->n_gpus - 1])
        at++;
    if (at == n)
        return false;
    bool direct = n == 1 || (members[at].sm >= AMPERE && members[at].version >= KNOWS_AMPERE);
    for (int i = 0; i < n; i++)
        direct = direct || linked[at][i] || linked[i][at];
    return direct;
}

int shim_check_settings(const struct shim_plan *plan, const struct shim_registry *registry,
                        const struct shim_chain *chain, struct shim_pci *pci,
                        const struct shim_member *members, int n, uint32_t *all,
                        struct shim_why *why)
{
    uint32_t user[SHIM_GPUS] = {0}, given[SHIM_GPUS] = {0}, version = members[0].version;
    uint32_t needs = shim_settings_ahead(chain, pci, version);
    bool one = shim_members_one_process(members, n);
    *all = 0;
    if (check_buffers(plan, registry, one ? needs & ~(uint32_t)SHIM_GIVE_SHM_HOST : needs, why))
        return -1;
    for (int i = 0; i < n; i++) {
        int at = shim_ring_find(&chain->rings[0], members[i].gpu);
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
