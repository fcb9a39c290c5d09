/* reads.c: may P2P read? It does then in all communicators of the processes, in those that are left
 * to NCCL, too. So none of these may lose by it: NCCL's own rings over all of the GPUs, each pair
 * alone, sends and receives between all that are below one switch, and NCCL's own rings of groups
 * that have the same number of GPUs, neighbours or strided, all of them at once. */

#include "search/task.h"

static int measure(struct tccl_task *task, const struct tccl_set *set, double *gbps)
{
    const struct tccl_search_options *options = task->options;
    struct tccl_search_meter *meter = &task->search->meter;
    *gbps = 0;
    for (int i = 0; options->can && i < set->count; i++)
        if (!options->can(options->context, set->transfers[i]))
            return 0;
    return tccl_set_repeats(set) ? tccl_search_meter_measure_repeats(meter, set, gbps, task->err)
                                 : tccl_search_meter_measure(meter, set, gbps, task->err);
}

/* Returns 0: it loses nothing; 1: it does, or that can't be known; -1 with err. */
static int loses(struct tccl_task *task, const struct tccl_set *writes)
{
    struct tccl_set reads = {0};
    for (int i = 0; i < writes->count; i++) {
        tccl_transfer own = writes->transfers[i];
        bool p2p = tccl_transfer_initiator(own).kind == TCCL_GPU &&
                   tccl_transfer_target(own).kind == TCCL_GPU && !tccl_transfer_reads(own);
        tccl_set_add_again(&reads, p2p ? tccl_transfer_make(tccl_transfer_target(own), true,
                                                            tccl_transfer_initiator(own))
                                       : own);
    }
    double by_writes, by_reads;
    if (tccl_set_equal(&reads, writes))
        return 0;
    int status = measure(task, &reads, &by_reads);
    if (status == 0)
        status = measure(task, writes, &by_writes);
    if (status != 0)
        return status;
    return !(by_reads > 0) || !(by_writes > 0) || by_reads < by_writes * (1 - task->options->noise);
}

static int own_loses(struct tccl_task *task, const struct tccl_baseline *baselines)
{
    struct tccl_set set;
    int status = 0;
    for (int i = 0; i < TCCL_GENERATIONS && status == 0; i++) {
        if (baselines[i].set.n == 0 ||
            (i > 0 && tccl_baseline_equal(&baselines[i], &baselines[i - 1])))
            continue;
        status = tccl_baseline_set(&baselines[i], &set, NULL) == 0 ? loses(task, &set) : 1;
    }
    return status;
}

/* Each alone; below: all of those below one switch at once. */
static int pairs_lose(struct tccl_task *task, const uint8_t *gpus, int n, bool below)
{
    const struct tccl_machine *machine = task->search->machine;
    struct tccl_set set = {0};
    int status = 0;
    for (int i = 0; i < n * n && status == 0; i++) {
        struct tccl_device from = {TCCL_GPU, gpus[i / n]}, to = {TCCL_GPU, gpus[i % n]};
        if (i / n == i % n || !machine->p2p[from.index][to.index] ||
            (below && tccl_machine_path(machine, from, to) != TCCL_PATH_SWITCH))
            continue;
        if (tccl_set_add(&set, tccl_transfer_make(from, false, to)) != 0)
            return 1;
        if (!below) {
            status = loses(task, &set);
            set.count = 0;
        }
    }
    return status == 0 && set.count > 1 ? loses(task, &set) : status;
}

/* Groups of so many GPUs, each of which has every stride-th one. */
static int groups_lose(struct tccl_task *task, const uint8_t *gpus, int n, int size, int stride)
{
    struct tccl_set set = {0}, one;
    for (int first = 0; first < n; first++) {
        struct tccl_baseline own;
        uint32_t group = 0;
        if (first / stride % size != 0)
            continue;
        for (int i = 0; i < size; i++)
            group |= UINT32_C(1) << gpus[first + i * stride];
        if (tccl_baseline_find(task->search->machine, group, true, TCCL_NEWEST, &own, NULL) != 0 ||
            tccl_baseline_set(&own, &one, NULL) != 0)
            return 1;
        for (int i = 0; i < one.count; i++)
            if (tccl_set_add_again(&set, one.transfers[i]) != 0)
                return 1;
    }
    return loses(task, &set);
}

int tccl_task_reads_lose(struct tccl_task *task, const struct tccl_table *table)
{
    uint8_t gpus[TCCL_MAX_GPUS];
    int n = 0, status = 0;
    for (uint32_t left = table->gpus; left; left &= left - 1)
        gpus[n++] = (uint8_t)__builtin_ctz(left);
    for (int closed = 0; closed < 2 && status == 0; closed++)
        status = own_loses(task, table->baselines[closed]);
    if (status == 0)
        status = pairs_lose(task, gpus, n, false);
    if (status == 0)
        status = pairs_lose(task, gpus, n, true);
    for (int size = 2; 2 * size <= n && status == 0; size++) {
        if (n % size != 0)
            continue;
        status = groups_lose(task, gpus, n, size, 1);
        if (status == 0)
            status = groups_lose(task, gpus, n, size, n / size);
    }
    return status;
}
