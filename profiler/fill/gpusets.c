/* gpusets.c: lists of GPU sets, those that Slurm mostly allocates first. */
#include "fill/fill.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/numberset.h"
#include "machine/transfer.h"

enum { MAX_COMPLETE = 10, MAX_SETS = 1 << MAX_COMPLETE };

struct list {
    uint32_t *sets;
    int count;
};

static void add(struct list *list, uint32_t set)
{
    for (int i = 0; i < list->count; i++)
        if (list->sets[i] == set)
            return;
    if (set && list->count < MAX_SETS)
        list->sets[list->count++] = set;
}

/* Blocks of size GPUs, each beginning at a multiple of size. */
static void add_aligned(struct list *list, int n_gpus, int size)
{
    for (int first = 0; first + size <= n_gpus; first += size)
        add(list, ((UINT32_C(1) << size) - 1) << first);
}

static void add_others(struct list *list, int n_gpus)
{
    for (int size = 1; size <= n_gpus; size++)
        for (uint32_t set = 1; set < UINT32_C(1) << n_gpus; set++)
            if (__builtin_popcount(set) == size)
                add(list, set);
}

int tccl_gpusets_all(int n_gpus, uint32_t **sets, struct tccl_error *err)
{
    struct list list = {calloc(MAX_SETS, sizeof(*list.sets)), 0};

    if (!list.sets)
        return tccl_fail(err, "out of memory");
    for (int parts = 1; parts <= 4; parts *= 2)
        if (n_gpus / parts > 0)
            add_aligned(&list, n_gpus, n_gpus / parts);
    if (n_gpus <= MAX_COMPLETE)
        add_others(&list, n_gpus);
    for (int size = n_gpus; size >= 1; size--)
        add_aligned(&list, n_gpus, size);
    *sets = list.sets;
    return list.count;
}

int tccl_gpusets_parse(const char *text, int n_gpus, uint32_t **sets, struct tccl_error *err)
{
    cleanup_free char *copy = strdup(text);
    cleanup_free uint32_t *memory = calloc(MAX_SETS, sizeof(*memory));
    struct list list = {memory, 0};
    char *rest = NULL;

    if (!copy || !memory)
        return tccl_fail(err, "out of memory");
    if (strcmp(text, "all") == 0)
        return tccl_gpusets_all(n_gpus, sets, err);
    for (char *one = strtok_r(copy, " ;\t\n", &rest); one; one = strtok_r(NULL, " ;\t\n", &rest)) {
        uint32_t set = 0;
        if (tccl_numberset_parse(one, n_gpus, &set, err) != 0)
            return tccl_fail_in(err, "GPUs \"%.40s\"", one);
        if (list.count == MAX_SETS)
            return tccl_fail(err, "more than %d sets of GPUs", MAX_SETS);
        add(&list, set);
    }
    if (list.count == 0)
        return tccl_fail(err, "no GPUs are named: give sets such as \"0-3 4-7\", or \"all\"");
    *sets = tccl_steal(memory);
    return list.count;
}
