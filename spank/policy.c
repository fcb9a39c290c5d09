#include "policy.h"

#include <string.h>

static bool lists(const char *partitions, const char *partition)
{
    static const char dividers[] = ", \t";
    size_t length;
    for (; *partitions; partitions += length) {
        partitions += strspn(partitions, dividers);
        length = strcspn(partitions, dividers);
        if (length && strlen(partition) == length && memcmp(partitions, partition, length) == 0)
            return true;
    }
    return false;
}

struct policy_choice policy_choose(const struct tccl_policy *policy, int option, int environment,
                                   const char *partition)
{
    if (option != POLICY_NOT_GIVEN)
        return (struct policy_choice){(enum tccl_mode)option, true};
    if (environment != POLICY_NOT_GIVEN)
        return (struct policy_choice){(enum tccl_mode)environment, true};
    if (!policy)
        return (struct policy_choice){TCCL_MODE_OFF, false};
    if (policy->partitions && !(partition && lists(policy->partitions, partition)))
        return (struct policy_choice){TCCL_MODE_OFF, false};
    return (struct policy_choice){policy->mode, false};
}

bool policy_wants(const struct tccl_policy *policy, enum tccl_mode mode, int n_nodes, int n_gpus)
{
    if (mode != TCCL_MODE_AUTO)
        return mode != TCCL_MODE_OFF;
    return n_nodes >= policy->min_nodes && (n_nodes > 1 || n_gpus >= policy->min_gpus);
}
