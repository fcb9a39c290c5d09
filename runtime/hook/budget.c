/* budget.c: what a ring takes on a node: memory to read a graph file, and buffers that are files in
 * /dev/shm. */
#include "hook/hook.h"
#include "nccl/shim-nccl.h"

enum { LEFT_OVER = 256 << 20 }; /* bytes that stay free beside what NCCL takes for the graph file */

int shim_budget_limits(const struct shim_member *members, int n, struct tccl_error *why)
{
    for (int i = 0; i < n; i++) {
        uint64_t needed = LEFT_OVER;
        for (int j = 0; j < n; j++)
            if (members[j].pid == members[i].pid)
                needed += shim_graph_memory(members[0].version);
        if (members[i].room < needed)
            return tccl_fail(
                why, "the limits of process %d leave it %llu MiB, NCCL takes %llu MiB for a moment",
                members[i].pid, (unsigned long long)(members[i].room >> 20),
                (unsigned long long)(needed >> 20));
    }
    return 0;
}

static const struct shim_member *member_of(const struct shim_member *members, int n, tccl_bus gpu)
{
    int i = 0;
    while (i < n - 1 && members[i].gpu != gpu)
        i++;
    return &members[i];
}

/* Through files NCCL goes where it has no other host memory, and between ranks of one process. */
static bool is_by_file(const struct tccl_named_chain *path, int edge,
                       const struct shim_member *members, int n)
{
    const struct shim_member *from = member_of(members, n, path->gpus[edge]);
    const struct shim_member *to = member_of(members, n, path->gpus[(edge + 1) % path->n_gpus]);
    return path->edges[edge].kind == TCCL_BOUNCE &&
           (from->pid == to->pid || to->buffers == SHIM_BUFFERS_FILES);
}

/* The number of that setting, if the user has set it. */
static uint64_t set_to(const char *name, uint64_t otherwise)
{
    const char *value = shim_env(name);
    uint64_t number;
    return value && shim_number(value, 10, INT32_MAX, &number) == 0 ? number : otherwise;
}

/* As seen with 2.29.7: in each channel the receiver has a buffer for each edge of the ring,
 * and one for the way back that a tree along it goes; NCCL doubles the channels that it finds. */
static uint64_t bytes_in_files(const struct shim_answer *answer, const struct shim_member *members,
                               int n)
{
    enum { SIMPLE = 4 << 20, OTHERS = 5443588 };
    const struct shim_chain *chain = &answer->chain;
    int own = shim_chain_baseline(chain, (int)members[0].version)->ring.channels;
    uint64_t channels = 2 * (uint64_t)shim_graph_channels(own > 0 ? own : 1, chain->rings.n);
    uint64_t least = set_to("NCCL_MIN_NCHANNELS", 0), edges = 0;
    channels = least > channels ? least : channels;
    for (int i = 0; i < chain->rings.n; i++)
        for (int j = 0; j < tccl_named_edges(&chain->rings.chains[i]); j++)
            edges += is_by_file(&chain->rings.chains[i], j, members, n);
    return 2 * edges * (channels / (uint64_t)chain->rings.n) *
           (set_to("NCCL_BUFFSIZE", SIMPLE) + OTHERS);
}

int shim_budget_take(struct shim_registry *registry, struct shim_entry *entry,
                     const struct shim_answer *answer, const struct shim_member *members, int n,
                     struct tccl_error *why)
{
    uint64_t taken = (uint64_t)n * answer->memory, files = bytes_in_files(answer, members, n);
    uint64_t free_now = files > 0 ? shim_shm_left() : 0;
    if (files > free_now / 4)
        return tccl_fail(why,
                         "its buffers would take %llu MiB in /dev/shm, of which %llu MiB are free",
                         (unsigned long long)(files >> 20), (unsigned long long)(free_now >> 20));
    if (shim_registry_charge(registry, entry, files, why) != 0)
        return -1;
    if (taken == 0)
        return 0;
    uint64_t left = shim_memory_left(), spare = left > LEFT_OVER ? left - LEFT_OVER : 0;
    if (shim_registry_reserve(registry, taken, spare))
        return 0;
    return tccl_fail(why, "too little memory is left: %llu MiB, NCCL takes %llu MiB for a moment%s",
                     (unsigned long long)(left >> 20),
                     (unsigned long long)((taken + LEFT_OVER) >> 20),
                     taken <= spare ? ", beside what it takes for other communicators" : "");
}
