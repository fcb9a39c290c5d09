/* budget.c: the memory that NCCL takes to read a graph file. */
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

int shim_budget_take(struct shim_registry *registry, const struct shim_answer *answer, int n,
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

void shim_budget_give_back(struct shim_registry *registry, const struct shim_answer *answer, int n)
{
    shim_registry_release(registry, (uint64_t)n * answer->memory);
}
