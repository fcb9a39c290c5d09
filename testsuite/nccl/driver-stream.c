/* driver-stream.c: streams and events of the stand-in driver. A stream is a queue, which a thread
 * works off in its order as long as something is in it. There are no graphs. */
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct task {
    void (*run)(void *data);
    void *data;
    struct task *next;
};

struct stream {
    int device;
    bool blocking; /* it and the default stream wait for each other */
    bool working, destroyed;
    unsigned long long submitted, done;
    struct task *first, **end;
    struct stream *next;
};

struct event { /* until so much of the stream is done; NULL: nothing was recorded */
    struct stream *stream;
    unsigned long long number;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stream defaults[RIG_GPUS], *streams;

/* ---- under the lock ---- */

static struct stream *stream_of(CUstream named)
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
        pthread_cond_wait(&changed, &lock);
}

static void *work(void *data)
{
    struct stream *stream = data;
    struct task *task;

    pthread_mutex_lock(&lock);
    while ((task = stream->first)) {
        if (!(stream->first = task->next))
            stream->end = NULL;
        pthread_mutex_unlock(&lock);
        task->run(task->data);
        free(task);
        pthread_mutex_lock(&lock);
        stream->done++;
        pthread_cond_broadcast(&changed);
    }
    stream->working = false;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static CUresult add(struct stream *stream, void (*run)(void *data), void *data)
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
    *task = (struct task){run, data, NULL};
    *(stream->end ? stream->end : &stream->first) = task;
    stream->end = &task->next;
    stream->submitted++;
    return CUDA_SUCCESS;
}

static void await_event(void *data)
{
    pthread_mutex_lock(&lock);
    await(*(struct event *)data);
    pthread_mutex_unlock(&lock);
    free(data);
}

static CUresult add_wait(struct stream *stream, struct event event)
{
    struct event *copy;

    if (event.stream == stream || reached(event))
        return CUDA_SUCCESS;
    copy = malloc(sizeof(*copy));
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = event;
    return add(stream, await_event, copy);
}

static struct event last_of(struct stream *stream)
{
    return (struct event){stream, stream->submitted};
}

/* What comes next in the default stream waits for all that block with it, and what comes next in
 * one of these for the default stream. */
static struct stream *in_order(CUstream named)
{
    struct stream *stream = stream_of(named), *own = &defaults[stream->device];

    if (stream->blocking)
        add_wait(stream, last_of(own));
    for (struct stream *other = streams; stream == own && other; other = other->next)
        if (other->blocking && other->device == stream->device)
            add_wait(stream, last_of(other));
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

CUresult rig_submit(CUstream named, void (*run)(void *data), void *data)
{
    CUresult result;

    pthread_mutex_lock(&lock);
    result = add(in_order(named), run, data);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuStreamQuery(CUstream named)
{
    bool done;

    pthread_mutex_lock(&lock);
    done = reached(last_of(in_order(named)));
    pthread_mutex_unlock(&lock);
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream named)
{
    pthread_mutex_lock(&lock);
    await(last_of(in_order(named)));
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    pthread_mutex_lock(&lock);
    await(last_of(stream_of(NULL)));
    for (struct stream *stream = streams; stream; stream = stream->next)
        if (stream->device == rig_current())
            await(last_of(stream));
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    struct stream *stream;

    pthread_mutex_lock(&lock);
    stream = find_destroyed();
    if (!stream && (stream = calloc(1, sizeof(*stream)))) {
        stream->next = streams;
        streams = stream;
    }
    if (stream) {
        stream->device = rig_current();
        stream->blocking = !(flags & CU_STREAM_NON_BLOCKING);
        stream->destroyed = false;
    }
    pthread_mutex_unlock(&lock);
    *out = (CUstream)(void *)stream;
    return stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What is in it is done all the same. */
CUresult cuStreamDestroy(CUstream stream)
{
    pthread_mutex_lock(&lock);
    stream_of(stream)->destroyed = true;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

SAYS(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority),
     cuStreamCreate(stream, flags));
DOES(cuCtxGetStreamPriorityRange, (int *least, int *greatest), *least = *greatest = 0);
DOES(cuStreamGetId, (CUstream stream, unsigned long long *id),
     *id = (unsigned long long)(size_t)stream);
DOES(cuStreamGetDevice, (CUstream stream, CUdevice *device), *device = rig_current());
SAYS(cuStreamGetCtx, (CUstream stream, CUcontext *context), cuCtxGetCurrent(context));
DOES(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status),
     *status = CU_STREAM_CAPTURE_STATUS_NONE);

/* Of the versions 2 and 3 of the call, too, which differ only in what follows for a stream that
 * captures. */
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                CUgraph *graph, const CUgraphNode **nodes,
                                const CUgraphEdgeData **edges, size_t *count)
{
    return cuStreamIsCapturing(stream, status);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    static __thread CUstreamCaptureMode current;
    CUstreamCaptureMode before = current;

    current = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

SAYS(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data),
     rig_submit(stream, function, data));

/* ---- events ---- */

/* What programs hold. A time is that at which the stream came to it. */
struct moment {
    struct event event;
    bool timed;
    struct stamp *stamp;
};

struct stamp {
    int references;
    double ms;
};

static struct moment *moment_of(CUevent event)
{
    return (struct moment *)(void *)event;
}

/* Called with the lock. */
static void drop_stamp(struct stamp *stamp)
{
    if (stamp && --stamp->references == 0)
        free(stamp);
}

static void take_time(void *data)
{
    struct stamp *stamp = data;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&lock);
    stamp->ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
    drop_stamp(stamp);
    pthread_mutex_unlock(&lock);
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    struct moment *moment = calloc(1, sizeof(*moment));

    if (!moment)
        return CUDA_ERROR_OUT_OF_MEMORY;
    moment->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    *event = (CUevent)(void *)moment;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
    pthread_mutex_lock(&lock);
    drop_stamp(moment_of(event)->stamp);
    pthread_mutex_unlock(&lock);
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream named)
{
    struct moment *moment = moment_of(event);
    struct stamp *stamp = moment->timed ? calloc(1, sizeof(*stamp)) : NULL;
    CUresult result = CUDA_SUCCESS;

    if (moment->timed && !stamp)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    struct stream *stream = in_order(named);
    drop_stamp(moment->stamp);
    moment->stamp = stamp;
    if (stamp) {
        stamp->references = 2;
        result = add(stream, take_time, stamp);
    }
    moment->event = last_of(stream);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuEventElapsedTime(float *ms, CUevent begun, CUevent ended)
{
    struct moment *first = moment_of(begun), *last = moment_of(ended);
    CUresult result = CUDA_ERROR_INVALID_HANDLE;

    pthread_mutex_lock(&lock);
    if (first->stamp && last->stamp) {
        bool done = reached(first->event) && reached(last->event);
        *ms = done ? (float)(last->stamp->ms - first->stamp->ms) : 0;
        result = done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* As real drivers have it for programs of before CUDA 13. */
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUevent begun, CUevent ended);
SAYS(cuEventElapsedTime, (float *ms, CUevent begun, CUevent ended),
     cuEventElapsedTime_v2(ms, begun, ended));

SAYS(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
     cuEventRecord(event, stream));

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    CUresult result;

    pthread_mutex_lock(&lock);
    result = add_wait(in_order(stream), moment_of(event)->event);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuEventQuery(CUevent event)
{
    bool done;

    pthread_mutex_lock(&lock);
    done = reached(moment_of(event)->event);
    pthread_mutex_unlock(&lock);
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event)
{
    pthread_mutex_lock(&lock);
    await(moment_of(event)->event);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}
