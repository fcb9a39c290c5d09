/* driver-stream.c: streams and events of the stand-in driver. A stream is a queue, which a thread
 * works off in its order as long as something is in it. What one that captures is given goes to
 * driver-graph.c. */
#include "driver-stream.h"

#include <stdlib.h>
#include <time.h>

struct task {
    struct work work;
    struct task *next;
};

pthread_mutex_t rig_streams_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stream defaults[RIG_GPUS], *streams;

/* ---- under the lock ---- */

struct stream *rig_streams(void)
{
    return streams;
}

struct stream *rig_default(int device)
{
    return &defaults[device];
}

struct stream *rig_stream_of(CUstream named)
{
    struct stream *stream = &defaults[rig_current()];
    if (named && named != CU_STREAM_LEGACY && named != CU_STREAM_PER_THREAD)
        return (struct stream *)(void *)named;
    stream->device = rig_current();
    return stream;
}

static bool reached(struct event event)
{
    return !event.stream || event.stream->done >= event.number;
}

static void await(struct event event)
{
    while (!reached(event))
        pthread_cond_wait(&changed, &rig_streams_lock);
}

static void *work(void *data)
{
    struct stream *stream = data;
    struct task *task;
    pthread_mutex_lock(&rig_streams_lock);
    while ((task = stream->first)) {
        if (!(stream->first = task->next))
            stream->end = NULL;
        pthread_mutex_unlock(&rig_streams_lock);
        task->work.run(task->work.data);
        if (task->work.drop)
            task->work.drop(task->work.data);
        free(task);
        pthread_mutex_lock(&rig_streams_lock);
        stream->done++;
        pthread_cond_broadcast(&changed);
    }
    stream->working = false;
    pthread_mutex_unlock(&rig_streams_lock);
    return NULL;
}

CUresult rig_add(struct stream *stream, struct work given)
{
    struct task *task = malloc(sizeof(*task));
    pthread_t thread;
    if (!task)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!stream->working) {
        if (pthread_create(&thread, NULL, work, stream) != 0) {
            free(task);
            return rig_refused("one more thread");
        }
        pthread_detach(thread);
        stream->working = true;
    }
    *task = (struct task){given, NULL};
    *(stream->end ? stream->end : &stream->first) = task;
    stream->end = &task->next;
    stream->submitted++;
    return CUDA_SUCCESS;
}

static void await_event(void *data)
{
    pthread_mutex_lock(&rig_streams_lock);
    await(*(struct event *)data);
    pthread_mutex_unlock(&rig_streams_lock);
}

CUresult rig_add_wait(struct stream *stream, struct event event)
{
    struct event *copy;
    if (event.stream == stream || reached(event))
        return CUDA_SUCCESS;
    copy = malloc(sizeof(*copy));
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = event;
    return rig_add(stream, (struct work){await_event, free, copy});
}

struct event rig_last_of(struct stream *stream)
{
    return (struct event){stream, stream->submitted};
}

/* What comes next in the default stream waits for all that block with it, and what comes next in
 * one of these for the default stream. */
struct stream *rig_in_order(struct stream *stream)
{
    struct stream *own = &defaults[stream->device];
    if (stream->blocking)
        rig_add_wait(stream, rig_last_of(own));
    for (struct stream *other = streams; stream == own && other; other = other->next)
        if (other->blocking && other->device == stream->device)
            rig_add_wait(stream, rig_last_of(other));
    return stream;
}

/* Those that were destroyed are used again: events still name them. */
static struct stream *find_destroyed(void)
{
    struct stream *stream = streams;
    while (stream && (!stream->destroyed || stream->done < stream->submitted))
        stream = stream->next;
    return stream;
}

/* ---- streams ---- */

CUresult rig_submit(CUstream named, void (*run)(void *data), void (*drop)(void *data), void *data)
{
    struct work work = {run, drop, data};
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    CUresult result = rig_may_add(stream);
    if (result == CUDA_SUCCESS)
        result =
            stream->capture ? rig_capture_work(stream, work) : rig_add(rig_in_order(stream), work);
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

enum rig_state rig_state(CUstream named)
{
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    enum rig_state state = stream->capture                              ? RIG_CAPTURED
                           : reached(rig_last_of(rig_in_order(stream))) ? RIG_IDLE
                                                                        : RIG_BUSY;
    pthread_mutex_unlock(&rig_streams_lock);
    return state;
}

CUresult rig_await(CUstream named)
{
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    CUresult result = rig_may_add(stream);
    if (result == CUDA_SUCCESS)
        await(rig_last_of(rig_in_order(stream)));
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

CUresult cuStreamQuery(CUstream named)
{
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    CUresult result = rig_safe(stream, NULL);
    if (result == CUDA_SUCCESS && !reached(rig_last_of(rig_in_order(stream))))
        result = CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

CUresult cuStreamSynchronize(CUstream named)
{
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    CUresult result = rig_safe(stream, NULL);
    if (result == CUDA_SUCCESS)
        await(rig_last_of(rig_in_order(stream)));
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

CUresult cuCtxSynchronize(void)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&rig_streams_lock);
    for (struct stream *stream = streams; stream && result == CUDA_SUCCESS; stream = stream->next)
        if (stream->device == rig_current() && stream->capture)
            result = rig_safe(stream, NULL);
    if (result == CUDA_SUCCESS)
        await(rig_last_of(rig_stream_of(NULL)));
    for (struct stream *stream = streams; stream && result == CUDA_SUCCESS; stream = stream->next)
        if (stream->device == rig_current())
            await(rig_last_of(stream));
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

struct stream *rig_new_stream(int device, bool blocking)
{
    struct stream *stream = find_destroyed();
    if (!stream && (stream = calloc(1, sizeof(*stream)))) {
        stream->next = streams;
        streams = stream;
    }
    if (stream) {
        stream->device = device;
        stream->blocking = blocking;
        stream->destroyed = false;
    }
    return stream;
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_new_stream(rig_current(), !(flags & CU_STREAM_NON_BLOCKING));
    pthread_mutex_unlock(&rig_streams_lock);
    *out = (CUstream)(void *)stream;
    return stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What is in it is done all the same. */
CUresult cuStreamDestroy(CUstream named)
{
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    if (stream->capture)
        rig_capture_leave(stream);
    stream->destroyed = true;
    pthread_mutex_unlock(&rig_streams_lock);
    return CUDA_SUCCESS;
}

SAYS(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority),
     cuStreamCreate(stream, flags));
DOES(cuCtxGetStreamPriorityRange, (int *least, int *greatest), *least = *greatest = 0);
DOES(cuStreamGetId, (CUstream stream, unsigned long long *id),
     *id = (unsigned long long)(size_t)stream);
DOES(cuStreamGetDevice, (CUstream stream, CUdevice *device), *device = rig_current());
SAYS(cuStreamGetCtx, (CUstream stream, CUcontext *context), cuCtxGetCurrent(context));
SAYS(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data),
     rig_submit(stream, function, NULL, data));

/* ---- events ---- */

struct stamp {
    int references;
    double ms;
};

static struct moment *moment_of(CUevent event)
{
    return (struct moment *)(void *)event;
}

static void drop_stamp(struct stamp *stamp)
{
    if (stamp && --stamp->references == 0)
        free(stamp);
}

void rig_drop_moment(struct moment *moment)
{
    if (--moment->references > 0)
        return;
    drop_stamp(moment->stamp);
    rig_clear_nodes(&moment->nodes);
    free(moment);
}

static void take_time(void *data)
{
    struct stamp *stamp = data;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&rig_streams_lock);
    stamp->ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
    drop_stamp(stamp);
    pthread_mutex_unlock(&rig_streams_lock);
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    struct moment *moment = calloc(1, sizeof(*moment));
    if (!moment)
        return CUDA_ERROR_OUT_OF_MEMORY;
    moment->references = 1;
    moment->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    *event = (CUevent)(void *)moment;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
    pthread_mutex_lock(&rig_streams_lock);
    rig_drop_moment(moment_of(event));
    pthread_mutex_unlock(&rig_streams_lock);
    return CUDA_SUCCESS;
}

CUresult rig_record(struct moment *moment, struct stream *stream)
{
    struct stamp *stamp = moment->timed ? calloc(1, sizeof(*stamp)) : NULL;
    CUresult result = CUDA_SUCCESS;
    if (moment->timed && !stamp)
        return CUDA_ERROR_OUT_OF_MEMORY;
    drop_stamp(moment->stamp);
    rig_clear_nodes(&moment->nodes);
    moment->capture = 0;
    moment->stamp = stamp;
    if (stamp) {
        stamp->references = 2;
        result = rig_add(stream, (struct work){take_time, NULL, stamp});
    }
    moment->event = rig_last_of(stream);
    return result;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream named, unsigned flags)
{
    bool external = flags & CU_EVENT_RECORD_EXTERNAL;
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    CUresult result = rig_may_add(stream);
    if (result == CUDA_SUCCESS)
        result = stream->capture ? rig_capture_record(stream, moment_of(event), external)
                                 : rig_record(moment_of(event), rig_in_order(stream));
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

SAYS(cuEventRecord, (CUevent event, CUstream stream), cuEventRecordWithFlags(event, stream, 0));

CUresult cuStreamWaitEvent(CUstream named, CUevent event, unsigned flags)
{
    struct moment *moment = moment_of(event);
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    CUresult result = rig_may_add(stream);
    if (result == CUDA_SUCCESS)
        result = stream->capture || moment->capture
                     ? rig_capture_wait(stream, moment, flags & CU_EVENT_WAIT_EXTERNAL)
                     : rig_add_wait(rig_in_order(stream), moment->event);
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

CUresult cuEventElapsedTime(float *ms, CUevent begun, CUevent ended)
{
    struct moment *first = moment_of(begun), *last = moment_of(ended);
    CUresult result = CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&rig_streams_lock);
    if (first->capture || last->capture)
        result = CUDA_ERROR_CAPTURED_EVENT;
    else if (first->stamp && last->stamp) {
        bool done = reached(first->event) && reached(last->event);
        /* The clock of a paced machine is as slow as all the rest of it. */
        *ms = done ? (float)((last->stamp->ms - first->stamp->ms) / pace_slower()) : 0;
        result = done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    }
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

/* As real drivers have it for programs of before CUDA 13. */
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUevent begun, CUevent ended);
SAYS(cuEventElapsedTime, (float *ms, CUevent begun, CUevent ended),
     cuEventElapsedTime_v2(ms, begun, ended));

CUresult cuEventQuery(CUevent event)
{
    pthread_mutex_lock(&rig_streams_lock);
    CUresult result = rig_safe(NULL, moment_of(event));
    if (result == CUDA_SUCCESS && !reached(moment_of(event)->event))
        result = CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

CUresult cuEventSynchronize(CUevent event)
{
    pthread_mutex_lock(&rig_streams_lock);
    CUresult result = rig_safe(NULL, moment_of(event));
    if (result == CUDA_SUCCESS)
        await(moment_of(event)->event);
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}
