/* collectives.c: wrappers of the collectives that NCCL connects a ring for, and of groups. All that
 * they do is to look what NCCL has built (steered.c). A process calls them millions of times: once
 * there is nothing to look for, they cost a few loads before they call on. */
#include "base/loaded.h"
#include "hook/hook.h"
#include "nccl/nccl-abi.h"

/* NCCL's function behind one wrapper, by the place of the call. Only ever added to; the caller is
 * written last. Programs have few such places, and where there are more they are slower. */
enum { PLACES = 64, TRIES = 4 };
struct targets {
    struct {
        const void *caller;
        void *real;
        int taken;
    } places[PLACES];
};

static void *look_up(struct targets *targets, const char *name, const void *caller)
{
    size_t start = ((uintptr_t)caller >> 2) % PLACES;
    void *real = shim_resolve(name, caller, NULL);
    for (size_t i = start; real && i < start + TRIES; i++) {
        if (__atomic_exchange_n(&targets->places[i % PLACES].taken, 1, __ATOMIC_SEQ_CST))
            continue;
        targets->places[i % PLACES].real = real;
        __atomic_store_n(&targets->places[i % PLACES].caller, caller, __ATOMIC_RELEASE);
        break;
    }
    return real;
}

static inline void *target(struct targets *targets, const char *name, const void *caller)
{
    const void *in;
    if (shim_bound_entry) /* its caller says nothing, see loaded.h */
        return shim_bound_take(&in);
    size_t start = ((uintptr_t)caller >> 2) % PLACES;
    for (size_t i = start; i < start + TRIES; i++)
        if (__atomic_load_n(&targets->places[i % PLACES].caller, __ATOMIC_ACQUIRE) == caller)
            return targets->places[i % PLACES].real;
    return look_up(targets, name, caller);
}

static inline bool nothing_to_do(void)
{
    return __atomic_load_n(&shim_steered_count, __ATOMIC_RELAXED) == 0 &&
           __atomic_load_n(&shim_pending_count, __ATOMIC_RELAXED) == 0;
}

static ncclResult_t after(ncclResult_t result)
{
    if (shim_group_depth <= 0)
        shim_steered_collectives_done(result == NCCL_SUCCESS       ? SHIM_STARTED
                                      : result == NCCL_IN_PROGRESS ? SHIM_UNDER_WAY
                                                                   : SHIM_FAILED);
    return result;
}

/* Bytes of ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, half, float, double,
 * bfloat16, two of fp8. */
static size_t size_of(int type)
{
    static const unsigned char sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return (unsigned)type < sizeof(sizes) ? sizes[type] : 1;
}

/* Of a call for which the user has chosen the algorithm nothing is said: its size is none. */
static size_t judged_size(size_t size, const ncclCollConfig_t *config)
{
    const char *algorithms =
        config && config->size >= sizeof(*config) && config->magic == NCCL_CONFIG_MAGIC
            ? config->algSelection
            : NULL;
    return algorithms && *algorithms ? 0 : size;
}

static inline bool is_measured(void)
{
    return __atomic_load_n(&shim_achieved_count, __ATOMIC_RELAXED) > 0;
}

/* Is there a verdict to be taken after it? */
static bool before(ncclComm_t comm, enum shim_collective kind, size_t bytes,
                   const ncclCollConfig_t *config, void *stream, struct shim_sample **sample)
{
    bool looked = !nothing_to_do();
    if (looked) {
        shim_question_finish_over();
        shim_steered_collective(comm, kind == SHIM_ALL_REDUCE ? judged_size(bytes, config) : 0);
    }
    *sample = NULL;
    if (is_measured() && shim_group_depth > 0)
        shim_achieved_add(comm, kind, bytes, stream);
    else if (is_measured())
        *sample = shim_achieved_start(comm, kind, bytes, stream);
    return looked;
}

/* A wrapper: parameters and arguments are NCCL's. bytes: of one rank; config: NULL, or the user's.
 */
#define COLLECTIVE(name, parameters, kind, bytes, config, ...)                                     \
    NCCL_WRAPPER(name, parameters)                                                                 \
    {                                                                                              \
        static struct targets targets;                                                             \
        ncclResult_t(*real) parameters = target(&targets, __func__, __builtin_return_address(0));  \
        if (!real)                                                                                 \
            return NCCL_SYSTEM_ERROR;                                                              \
        if (nothing_to_do() && !is_measured())                                                     \
            return real(__VA_ARGS__);                                                              \
        struct shim_sample *sample;                                                                \
        bool looked = before(comm, kind, bytes, config, stream, &sample);                          \
        ncclResult_t result = real(__VA_ARGS__);                                                   \
        if (sample)                                                                                \
            shim_achieved_stop(sample, stream, result == NCCL_SUCCESS);                            \
        return looked ? after(result) : result;                                                    \
    }

/* type, op: enums; stream: a cudaStream_t. From 2.31 on there are those with a config, which may be
 * NULL. */
COLLECTIVE(ncclAllReduce,
           (const void *from, void *to, size_t count, int type, int op, ncclComm_t comm,
            void *stream),
           SHIM_ALL_REDUCE, count *size_of(type), NULL, from, to, count, type, op, comm, stream)
COLLECTIVE(ncclAllGather,
           (const void *from, void *to, size_t count, int type, ncclComm_t comm, void *stream),
           SHIM_GATHER, count *size_of(type), NULL, from, to, count, type, comm, stream)
COLLECTIVE(ncclReduceScatter,
           (const void *from, void *to, size_t count, int type, int op, ncclComm_t comm,
            void *stream),
           SHIM_GATHER, count *size_of(type), NULL, from, to, count, type, op, comm, stream)
COLLECTIVE(ncclBroadcast,
           (const void *from, void *to, size_t count, int type, int root, ncclComm_t comm,
            void *stream),
           SHIM_OTHER, count *size_of(type), NULL, from, to, count, type, root, comm, stream)
COLLECTIVE(ncclBcast,
           (void *buffer, size_t count, int type, int root, ncclComm_t comm, void *stream),
           SHIM_OTHER, 0 /* it calls ncclBroadcast */, NULL, buffer, count, type, root, comm,
           stream)
COLLECTIVE(ncclReduce,
           (const void *from, void *to, size_t count, int type, int op, int root, ncclComm_t comm,
            void *stream),
           SHIM_OTHER, count *size_of(type), NULL, from, to, count, type, op, root, comm, stream)
COLLECTIVE(ncclAllReduceConfig,
           (const void *from, void *to, size_t count, int type, int op, ncclComm_t comm,
            void *stream, const ncclCollConfig_t *config),
           SHIM_ALL_REDUCE, count *size_of(type), config, from, to, count, type, op, comm, stream,
           config)
COLLECTIVE(ncclAllGatherConfig,
           (const void *from, void *to, size_t count, int type, ncclComm_t comm, void *stream,
            const ncclCollConfig_t *config),
           SHIM_GATHER, count *size_of(type), config, from, to, count, type, comm, stream, config)
COLLECTIVE(ncclReduceScatterConfig,
           (const void *from, void *to, size_t count, int type, int op, ncclComm_t comm,
            void *stream, const ncclCollConfig_t *config),
           SHIM_GATHER, count *size_of(type), config, from, to, count, type, op, comm, stream,
           config)
COLLECTIVE(ncclBroadcastConfig,
           (const void *from, void *to, size_t count, int type, int root, ncclComm_t comm,
            void *stream, const ncclCollConfig_t *config),
           SHIM_OTHER, count *size_of(type), config, from, to, count, type, root, comm, stream,
           config)
COLLECTIVE(ncclReduceConfig,
           (const void *from, void *to, size_t count, int type, int op, int root, ncclComm_t comm,
            void *stream, const ncclCollConfig_t *config),
           SHIM_OTHER, count *size_of(type), config, from, to, count, type, op, root, comm, stream,
           config)

NCCL_WRAPPER(ncclGroupStart, (void))
{
    static struct targets targets;
    ncclResult_t (*real)(void) = target(&targets, __func__, __builtin_return_address(0));
    static bool begun;
    if (!real)
        return NCCL_SYSTEM_ERROR;
    if (!begun) { /* it may be the first that NCCL hears of: its log is asked for then */
        const struct shim_nccl *nccl = shim_nccl_at((const void *)real);
        begun = true;
        if (nccl)
            shim_process_arm(nccl->version);
    }
    shim_group_depth++;
    return real();
}

NCCL_WRAPPER(ncclGroupEnd, (void))
{
    static struct targets targets;
    ncclResult_t (*real)(void) = target(&targets, __func__, __builtin_return_address(0));
    if (!real)
        return NCCL_SYSTEM_ERROR;
    shim_group_depth -= shim_group_depth > 0;
    void *stream;
    struct shim_sample *sample =
        shim_group_depth == 0 && is_measured() ? shim_achieved_start_group(&stream) : NULL;
    shim_in_group_end++;
    ncclResult_t result = real();
    shim_in_group_end--;
    if (sample)
        shim_achieved_stop(sample, stream, result == NCCL_SUCCESS);
    if (shim_group_depth > 0 || nothing_to_do())
        return result;
    shim_question_finish_over();
    return after(result);
}
