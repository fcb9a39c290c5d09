/* prefer-tree.c: a tuner plugin of NCCL's (ncclTunerPlugin_v4) that has large all-reduces go by the
 * tree, as plugins of sites may. */
#include <nccl.h>
#include <stddef.h>

/* As in NCCL's plugins/tuner; the logger is not used. */
struct tuner {
    const char *name;
    ncclResult_t (*init)(size_t ranks, size_t nodes, void *logger, void **context);
    ncclResult_t (*get_collective)(void *context, int kind, size_t bytes, int operations,
                                   float **costs, int algorithms, int protocols, int registered,
                                   int *channels);
    ncclResult_t (*destroy)(void *context);
};

enum { ALL_REDUCE = 4, TREE = 0, SIMPLE = 2 };

static ncclResult_t init(size_t ranks, size_t nodes, void *logger, void **context)
{
    (void)ranks, (void)nodes, (void)logger;
    *context = NULL;
    return ncclSuccess;
}

static ncclResult_t get_collective(void *context, int kind, size_t bytes, int operations,
                                   float **costs, int algorithms, int protocols, int registered,
                                   int *channels)
{
    float(*table)[protocols] = (float(*)[protocols])(void *)costs;
    (void)context, (void)bytes, (void)operations, (void)registered, (void)channels;
    if (kind == ALL_REDUCE && algorithms > TREE && protocols > SIMPLE)
        table[TREE][SIMPLE] = 0;
    return ncclSuccess;
}

static ncclResult_t destroy(void *context)
{
    (void)context;
    return ncclSuccess;
}

__attribute__((visibility("default")))
const struct tuner ncclTunerPlugin_v4 = {"prefer-tree", init, get_collective, destroy};
