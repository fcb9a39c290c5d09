/* budget.c: what a graph file costs. NCCL reads it into a table, which takes each rank memory and,
 * from 2.29.7 on, seconds. */
#include "hook/budget.h"

#include "nccl/graph.h"
#include "nccl/memory.h"

enum { LEFT_OVER = 256 << 20 }; /* bytes that stay free beside what NCCL takes for the graph file */

int shim_budget_limits(const struct shim_member *members, int n, struct shim_why *why)
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

void shim_budget_give_back(const struct shim_plan *plan, struct shim_registry *registry,
                           const struct shim_answer *answer, uint32_t version, int n)
{
    const struct tccl_named_chain *path = &answer->chain.rings[0].path;
    shim_registry_release(registry, (uint64_t)n * answer->memory);
    if (is_counted(answer, version))
        shim_registry_uncount_file(registry, path->gpus, path->n_gpus,
                                   shim_plan_whole(plan, answer->ranks));
}

int shim_budget_take(const struct shim_plan *plan, struct shim_registry *registry,
                     const struct shim_answer *answer, uint32_t version, int n,
                     struct shim_why *why)
{
    const struct tccl_named_chain *path = &answer->chain.rings[0].path;
    if (reserve_memory(registry, answer, n, why) != 0)
        return -1;
    if (!is_counted(answer, version) ||
        shim_registry_count_file(registry, path->gpus, path->n_gpus,
                                 shim_plan_whole(plan, answer->ranks), shim_now_us(), why) == 0)
        return 0;
    shim_registry_release(registry, (uint64_t)n * answer->memory);
    return -1;
}
