/* gpusets.c: lists of GPU sets, those that Slurm mostly allocates first; and of sets that jobs have
 * side by side. */
#include "fill/fill.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/numberset.h"
#include "machine/transfer.h"

enum { MAX_COMPLETE = TCCL_COMPLETE_GPUS, MAX_SETS = TCCL_MAX_GPUSETS };

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

int tccl_gpusets_all(int n_gpus, uint32_t **sets, struct tccl_error *err)
{
    struct list list = {calloc(MAX_SETS, sizeof(*list.sets)), 0};
    if (!list.sets)
        return tccl_fail(err, "out of memory");
    for (int parts = 1; parts <= 4; parts *= 2)
        if (n_gpus / parts > 0)
            add_aligned(&list, n_gpus, n_gpus / parts);
    if (n_gpus <= MAX_COMPLETE)
        for (int size = 1; size <= n_gpus; size++)
            for (uint32_t set = 1; set < UINT32_C(1) << n_gpus; set++)
                if (__builtin_popcount(set) == size)
                    add(&list, set);
    for (int size = n_gpus; size >= 1; size--)
        add_aligned(&list, n_gpus, size);
    *sets = list.sets;
    return list.count;
}

int tccl_gpusets_first(int n_gpus, const struct tccl_alike *alike, const uint32_t *before, int n,
                       uint32_t **sets, struct tccl_error *err)
{
    struct list list = {calloc(MAX_SETS, sizeof(*list.sets)), 0};
    struct tccl_exchange move;
    if (!list.sets)
        return tccl_fail(err, "out of memory");
    for (int i = 0; i < n; i++)
        add(&list, before[i]);
    for (int i = 0; i < 2 * n_gpus; i++) {
        int size = i % n_gpus + 1;
        if ((size == 2 || size == 4 || size == 8) != (i < n_gpus))
            continue;
        for (uint32_t set = 1; set < UINT32_C(1) << n_gpus && list.count < MAX_SETS; set++)
            if (__builtin_popcount(set) == size && tccl_alike_first(alike, set, &move) == set)
                add(&list, set);
    }
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

/* ---- side by side ---- */

enum { MAX_SPLITS = 256 };

struct split_list {
    struct tccl_split *splits;
    int count;
};

static void add_split(struct split_list *list, const struct tccl_split *split)
{
    for (int i = 0; i < list->count; i++)
        if (list->splits[i].n == split->n && memcmp(list->splits[i].parts, split->parts,
                                                    (size_t)split->n * sizeof(*split->parts)) == 0)
            return;
    if (split->n > 1 && list->count < MAX_SPLITS)
        list->splits[list->count++] = *split;
}

/* The i-th of as many equal parts of the GPUs; what is left over is in none. */
static uint32_t part(int n_gpus, int parts, int i)
{
    int size = n_gpus / parts;
    return ((UINT32_C(1) << size) - 1) << (i * size);
}

static void add_usual(struct split_list *list, int n_gpus)
{
    struct tccl_split quarters = {.n = 4};
    if (n_gpus >= 2)
        add_split(list, &(struct tccl_split){2, {part(n_gpus, 2, 0), part(n_gpus, 2, 1)}});
    if (n_gpus < 4)
        return;
    for (int i = 0; i < 4; i++) {
        uint32_t half = part(n_gpus, 2, i < 2), own = part(n_gpus, 4, i);
        quarters.parts[i] = own;
        if (!(half & own))
            add_split(list, &(struct tccl_split){2, {half, own}});
        for (int k = 0; k < i; k++)
            add_split(list, &(struct tccl_split){2, {part(n_gpus, 4, k), own}});
    }
    for (int i = 0; i < 2; i++)
        add_split(list, &(struct tccl_split){3,
                                             {part(n_gpus, 2, i), part(n_gpus, 4, i ? 0 : 2),
                                              part(n_gpus, 4, i ? 1 : 3)}});
    add_split(list, &quarters);
}

static int parse_one(char *text, int n_gpus, struct tccl_split *split, struct tccl_error *err)
{
    uint32_t seen = 0;
    char *one;
    *split = (struct tccl_split){0};
    while ((one = strsep(&text, "/"))) {
        uint32_t set = 0;
        if (!*one)
            return tccl_fail(err, "one of its sets names no GPU");
        for (char *at = one; *at; at++)
            *at = *at == '+' ? ',' : *at;
        if (split->n == TCCL_MAX_SIDES)
            return tccl_fail(err, "more than %d sets of GPUs side by side", TCCL_MAX_SIDES);
        if (tccl_numberset_parse(one, n_gpus, &set, err) != 0)
            return -1;
        if (seen & set)
            return tccl_fail(err, "a GPU is in two of its sets");
        seen |= set;
        split->parts[split->n++] = set;
    }
    return split->n > 1
               ? 0
               : tccl_fail(err, "give two sets of GPUs at least, such as 0-1/2-3 or 0+2/1+3");
}

static int parse_all(const char *text, int n_gpus, struct split_list *list, struct tccl_error *err)
{
    cleanup_free char *copy = strdup(text);
    struct tccl_split split;
    char *rest = NULL;
    if (!copy)
        return tccl_fail(err, "out of memory");
    for (char *one = strtok_r(copy, ",; \t\n", &rest); one;
         one = strtok_r(NULL, ",; \t\n", &rest)) {
        char name[41];
        snprintf(name, sizeof(name), "%s", one);
        if (list->count == MAX_SPLITS)
            return tccl_fail(err, "--splits: more than %d, give fewer", MAX_SPLITS);
        if (parse_one(one, n_gpus, &split, err) != 0)
            return tccl_fail_in(err, "--splits \"%s\"", name);
        add_split(list, &split);
    }
    return list->count > 0 ? 0 : tccl_fail(err, "--splits: none is named, such as 0-1/2-3");
}

int tccl_splits_parse(const char *text, int n_gpus, struct tccl_split **splits,
                      struct tccl_error *err)
{
    cleanup_free struct tccl_split *memory = calloc(MAX_SPLITS, sizeof(*memory));
    struct split_list list = {memory, 0};
    if (!memory)
        return tccl_fail(err, "out of memory");
    if (!text)
        add_usual(&list, n_gpus);
    else if (parse_all(text, n_gpus, &list, err) != 0)
        return -1;
    *splits = tccl_steal(memory);
    return list.count;
}

int tccl_splits_sets(const struct tccl_split *splits, int n_splits, uint32_t **sets)
{
    uint32_t *list = calloc((size_t)n_splits * TCCL_MAX_SIDES + 1, sizeof(*list));
    int count = 0;
    for (int i = 0; list && i < n_splits; i++)
        for (int k = 0; k < splits[i].n; k++) {
            int at = 0;
            while (at < count && list[at] != splits[i].parts[k])
                at++;
            list[at] = splits[i].parts[k];
            count += at == count;
        }
    *sets = list;
    return list ? count : -1;
}
