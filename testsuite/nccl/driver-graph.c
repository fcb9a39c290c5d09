/* driver-graph.c: CUDA graphs of the stand-in driver. A stream that captures adds nodes in place of
 * doing something; an instance has the nodes in lanes, each of which is a stream of its own when it
 * is launched. What CUDA forbids while a stream is captured is an error here, too, which ends the
 * capture, so that a test sees who does it. Other kinds of nodes than those below are refused, and
 * so is what looks into a graph or changes one (driver-lookup.c). */
#include "driver-stream.h"

#include <stdlib.h>
#include <string.h>

/* What the nodes of a graph are, for it and its instances: until the last of these is gone, and
 * nothing of them runs. */
struct body {
    int references;
    struct node *first, **end;
    size_t n;
    struct retained *retained;
};

enum kind { EMPTY, WORK, RECORD, WAIT };

struct node {
    enum kind kind;
    struct work work;
    struct moment *moment; /* RECORD, WAIT */
    bool captured;         /* not added by the program */
    struct nodes needs;
    struct node *next; /* as they were made */
    int state;         /* of a walk: 0, not come to yet; WALKING, WALKED */
    size_t number;     /* in an instance's order */
};
enum { WALKING = 1, WALKED };

struct graph {
    struct body *body;
};

struct capture {
    unsigned long long id;
    struct graph *graph;
    struct stream *origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool failed;
    struct capture *next;
};

/* Something of the program's that lives as long as graphs need it. */
struct object {
    int references;
    CUhostFn destroy;
    void *data;
};

struct retained {
    struct object *object;
    int references;
    struct retained *next;
};

static struct capture *captures;
static unsigned long long captures_begun;
static __thread CUstreamCaptureMode thread_mode;

/* ---- nodes ---- */

int rig_add_nodes(struct nodes *to, struct nodes from)
{
    struct node **all;
    if (from.n == 0)
        return 0;
    all = realloc(to->all, (to->n + from.n) * sizeof(*all));
    if (!all)
        return -1;
    to->all = all;
    for (size_t i = 0, n = to->n; i < from.n; i++) {
        size_t at = 0;
        while (at < n && all[at] != from.all[i])
            at++;
        if (at == n)
            all[to->n++] = from.all[i];
    }
    return 0;
}

void rig_clear_nodes(struct nodes *nodes)
{
    free(nodes->all);
    *nodes = (struct nodes){0};
}

/* Takes the work over, and a reference to the moment, if it succeeds. */
static struct node *new_node(struct body *body, const struct node *wanted, struct nodes needs)
{
    struct node *node = malloc(sizeof(*node));
    if (!node)
        return NULL;
    *node = *wanted;
    if (rig_add_nodes(&node->needs, needs) != 0) {
        free(node);
        return NULL;
    }
    if (node->moment)
        node->moment->references++;
    *(body->end ? body->end : &body->first) = node;
    body->end = &node->next;
    body->n++;
    return node;
}

static struct body *new_body(void)
{
    struct body *body = calloc(1, sizeof(*body));
    if (body)
        body->references = 1;
    return body;
}

/* Its last reference: nobody has the lock, since a program's functions may be called. */
static void free_body(struct body *body)
{
    for (struct node *node = body->first, *next; node; node = next) {
        next = node->next;
        if (node->work.drop)
            node->work.drop(node->work.data);
        if (node->moment) {
            pthread_mutex_lock(&rig_streams_lock);
            rig_drop_moment(node->moment);
            pthread_mutex_unlock(&rig_streams_lock);
        }
        rig_clear_nodes(&node->needs);
        free(node);
    }
    for (struct retained *one = body->retained, *next; one; one = next) {
        next = one->next;
        cuUserObjectRelease((CUuserObject)(void *)one->object, (unsigned)one->references);
        free(one);
    }
    free(body);
}

static void drop_body(void *data)
{
    struct body *body = data;
    pthread_mutex_lock(&rig_streams_lock);
    bool last = --body->references == 0;
    pthread_mutex_unlock(&rig_streams_lock);
    if (last)
        free_body(body);
}

static void nothing(void *data)
{
}

/* ---- captures; with the lock, but where a program calls ---- */

static CUresult spoil(struct capture *capture, CUresult why)
{
    capture->failed = true;
    return why;
}

/* A capture that has what a default stream would have to wait for, which is not there yet. */
static struct capture *in_the_way(const struct stream *stream)
{
    for (struct stream *other = rig_streams(); other; other = other->next)
        if (other->capture && other->blocking && other->device == stream->device &&
            stream == rig_default(stream->device))
            return other->capture;
    return NULL;
}

CUresult rig_may_add(struct stream *stream)
{
    struct capture *other = in_the_way(stream);
    if (stream->capture)
        return stream->capture->failed ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    return other ? spoil(other, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) : CUDA_SUCCESS;
}

CUresult rig_safe(struct stream *stream, const struct moment *moment)
{
    CUresult result = CUDA_SUCCESS;
    for (struct capture *capture = captures; capture; capture = capture->next) {
        bool own = pthread_equal(capture->thread, pthread_self());
        if ((stream && stream->capture == capture) || (moment && moment->capture == capture->id) ||
            (own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
             thread_mode != CU_STREAM_CAPTURE_MODE_RELAXED) ||
            (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
             thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL))
            result = spoil(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (result == CUDA_SUCCESS && stream)
        result = rig_may_add(stream);
    return moment && moment->capture ? CUDA_ERROR_CAPTURED_EVENT : result;
}

CUresult rig_unsafe(void)
{
    pthread_mutex_lock(&rig_streams_lock);
    CUresult result = rig_safe(NULL, NULL);
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

/* Adds a node behind what the stream has captured so far. */
static CUresult capture_node(struct stream *stream, struct node *wanted)
{
    struct capture *capture = stream->capture;
    struct node *node;
    wanted->captured = true;
    node = new_node(capture->graph->body, wanted, stream->tips);
    rig_clear_nodes(&stream->tips);
    if (!node || rig_add_nodes(&stream->tips, (struct nodes){&node, 1}) != 0)
        return spoil(capture, CUDA_ERROR_OUT_OF_MEMORY);
    return CUDA_SUCCESS;
}

CUresult rig_capture_work(struct stream *stream, struct work work)
{
    return capture_node(stream, &(struct node){.kind = WORK, .work = work});
}

CUresult rig_capture_record(struct stream *stream, struct moment *moment, bool external)
{
    if (external)
        return capture_node(stream, &(struct node){.kind = RECORD, .moment = moment});
    moment->capture = stream->capture->id;
    rig_clear_nodes(&moment->nodes);
    return rig_add_nodes(&moment->nodes, stream->tips) == 0
               ? CUDA_SUCCESS
               : spoil(stream->capture, CUDA_ERROR_OUT_OF_MEMORY);
}

static struct capture *capture_of(unsigned long long id)
{
    struct capture *capture = captures;
    while (capture && capture->id != id)
        capture = capture->next;
    return capture;
}

/* One that waits for what is captured is captured, too, from there on. */
CUresult rig_capture_wait(struct stream *stream, struct moment *moment, bool external)
{
    struct capture *capture = stream->capture;
    if (capture && external)
        return capture_node(stream, &(struct node){.kind = WAIT, .moment = moment});
    if (!moment->capture)
        return moment->event.stream ? spoil(capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
                                    : CUDA_SUCCESS;
    if (capture && capture->id != moment->capture)
        return spoil(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    if (!capture)
        capture = capture_of(moment->capture);
    if (!capture)
        return CUDA_ERROR_CAPTURED_EVENT;
    stream->capture = capture;
    return rig_add_nodes(&stream->tips, moment->nodes) == 0
               ? CUDA_SUCCESS
               : spoil(capture, CUDA_ERROR_OUT_OF_MEMORY);
}

void rig_capture_leave(struct stream *stream)
{
    stream->capture = NULL;
    rig_clear_nodes(&stream->tips);
}

static void clear_walk(struct body *body)
{
    for (struct node *node = body->first; node; node = node->next)
        node->state = 0;
}

static void walk_back(struct node *node)
{
    if (node->state == WALKED)
        return;
    node->state = WALKED;
    for (size_t i = 0; i < node->needs.n; i++)
        walk_back(node->needs.all[i]);
}

/* Is what other streams have captured joined by the one with which it began? */
static bool is_joined(struct capture *capture)
{
    bool joined = true;
    clear_walk(capture->graph->body);
    for (size_t i = 0; i < capture->origin->tips.n; i++)
        walk_back(capture->origin->tips.all[i]);
    for (struct stream *stream = rig_streams(); stream; stream = stream->next)
        for (size_t i = 0; stream->capture == capture && i < stream->tips.n; i++)
            joined &= stream->tips.all[i]->state == WALKED || !stream->tips.all[i]->captured;
    return joined;
}

CUresult cuStreamBeginCapture(CUstream named, CUstreamCaptureMode mode)
{
    struct capture *capture = calloc(1, sizeof(*capture));
    CUgraph graph;
    if (!capture || cuGraphCreate(&graph, 0) != CUDA_SUCCESS) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    CUresult result = stream == rig_default(stream->device) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                      : stream->capture                     ? CUDA_ERROR_ILLEGAL_STATE
                                                            : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
        *capture = (struct capture){.id = ++captures_begun,
                                    .graph = (struct graph *)(void *)graph,
                                    .origin = stream,
                                    .mode = mode,
                                    .thread = pthread_self(),
                                    .next = captures};
        captures = stream->capture = capture;
    }
    pthread_mutex_unlock(&rig_streams_lock);
    if (result != CUDA_SUCCESS) {
        cuGraphDestroy(graph);
        free(capture);
    }
    return result;
}

/* With the lock. */
static CUresult end_of(const struct capture *capture, const struct stream *stream)
{
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(capture->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream named, CUgraph *graph)
{
    struct graph *failed = NULL;
    *graph = NULL;
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    struct capture *capture = stream->capture, **at = &captures;
    CUresult result = end_of(capture, stream);
    if (result == CUDA_SUCCESS) {
        result = capture->failed      ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                 : is_joined(capture) ? CUDA_SUCCESS
                                      : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        if (result == CUDA_SUCCESS)
            *graph = (CUgraph)(void *)capture->graph;
        else
            failed = capture->graph;
        for (struct stream *other = rig_streams(); other; other = other->next)
            if (other->capture == capture)
                rig_capture_leave(other);
        while (*at != capture)
            at = &(*at)->next;
        *at = capture->next;
        free(capture);
    }
    pthread_mutex_unlock(&rig_streams_lock);
    if (failed)
        cuGraphDestroy((CUgraph)(void *)failed);
    return result;
}

CUresult cuStreamGetCaptureInfo(CUstream named, CUstreamCaptureStatus *status, cuuint64_t *id,
                                CUgraph *graph, const CUgraphNode **nodes,
                                const CUgraphEdgeData **edges, size_t *count)
{
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    struct capture *capture = stream->capture;
    CUresult result = in_the_way(stream) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
    *status = !capture          ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->failed ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (capture && id)
        *id = capture->id;
    if (capture && graph)
        *graph = (CUgraph)(void *)capture->graph;
    if (capture && nodes)
        *nodes = (const CUgraphNode *)(void *)stream->tips.all;
    if (capture && nodes && count)
        *count = stream->tips.n;
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    return cuStreamGetCaptureInfo(stream, status, NULL, NULL, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream named, CUgraphNode *nodes,
                                           const CUgraphEdgeData *edges, size_t count,
                                           unsigned flags)
{
    CUresult result = CUDA_ERROR_ILLEGAL_STATE;
    struct nodes given = {(struct node **)(void *)nodes, count}, tips = {0};
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    if (stream->capture) {
        result = rig_may_add(stream);
        if ((!(flags & CU_STREAM_SET_CAPTURE_DEPENDENCIES) &&
             rig_add_nodes(&tips, stream->tips) != 0) ||
            rig_add_nodes(&tips, given) != 0)
            result = spoil(stream->capture, CUDA_ERROR_OUT_OF_MEMORY);
        rig_clear_nodes(&stream->tips);
        stream->tips = tips;
    }
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ---- graphs ---- */

static struct body *body_of(CUgraph graph)
{
    return ((struct graph *)(void *)graph)->body;
}

CUresult cuGraphCreate(CUgraph *out, unsigned flags)
{
    struct graph *graph = malloc(sizeof(*graph));
    if (!graph || !(graph->body = new_body())) {
        free(graph);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (CUgraph)(void *)graph;
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    drop_body(body_of(graph));
    free(graph);
    return CUDA_SUCCESS;
}

static CUresult add_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *needs, size_t n,
                         const struct node *wanted)
{
    pthread_mutex_lock(&rig_streams_lock);
    struct node *node =
        new_node(body_of(graph), wanted, (struct nodes){(struct node **)(void *)needs, n});
    pthread_mutex_unlock(&rig_streams_lock);
    *out = (CUgraphNode)(void *)node;
    return node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static struct moment *moment_of(CUevent event)
{
    return (struct moment *)(void *)event;
}

SAYS(cuGraphAddEventRecordNode,
     (CUgraphNode * out, CUgraph graph, const CUgraphNode *needs, size_t n, CUevent event),
     add_node(out, graph, needs, n, &(struct node){.kind = RECORD, .moment = moment_of(event)}));
SAYS(cuGraphAddEventWaitNode,
     (CUgraphNode * out, CUgraph graph, const CUgraphNode *needs, size_t n, CUevent event),
     add_node(out, graph, needs, n, &(struct node){.kind = WAIT, .moment = moment_of(event)}));
SAYS(cuGraphAddHostNode,
     (CUgraphNode * out, CUgraph graph, const CUgraphNode *needs, size_t n,
      const CUDA_HOST_NODE_PARAMS *host),
     add_node(out, graph, needs, n,
              &(struct node){.kind = WORK, .work = {host->fn, NULL, host->userData}}));
SAYS(cuGraphAddEmptyNode, (CUgraphNode * out, CUgraph graph, const CUgraphNode *needs, size_t n),
     add_node(out, graph, needs, n, &(struct node){.kind = EMPTY}));

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                const CUgraphEdgeData *edges, size_t n)
{
    int failed = 0;
    pthread_mutex_lock(&rig_streams_lock);
    for (size_t i = 0; i < n; i++) {
        struct node *needed = (struct node *)(void *)from[i], *node = (struct node *)(void *)to[i];
        failed |= rig_add_nodes(&node->needs, (struct nodes){&needed, 1});
    }
    pthread_mutex_unlock(&rig_streams_lock);
    return failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    size_t n = 0;
    pthread_mutex_lock(&rig_streams_lock);
    for (struct node *node = body_of(graph)->first; node; node = node->next, n++)
        if (nodes && n < *count)
            nodes[n] = (CUgraphNode)(void *)node;
    pthread_mutex_unlock(&rig_streams_lock);
    *count = n;
    return CUDA_SUCCESS;
}

/* ---- what lives with them ---- */

CUresult cuUserObjectCreate(CUuserObject *out, void *data, CUhostFn destroy, unsigned references,
                            unsigned flags)
{
    struct object *object = malloc(sizeof(*object));
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *object = (struct object){(int)references, destroy, data};
    *out = (CUuserObject)(void *)object;
    return CUDA_SUCCESS;
}

static CUresult retain(struct object *object, int references)
{
    pthread_mutex_lock(&rig_streams_lock);
    object->references += references;
    bool last = object->references == 0;
    pthread_mutex_unlock(&rig_streams_lock);
    if (last) {
        object->destroy(object->data);
        free(object);
    }
    return CUDA_SUCCESS;
}

SAYS(cuUserObjectRetain, (CUuserObject object, unsigned references),
     retain((struct object *)(void *)object, (int)references));
SAYS(cuUserObjectRelease, (CUuserObject object, unsigned references),
     retain((struct object *)(void *)object, -(int)references));

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned references,
                                 unsigned flags)
{
    struct retained *one = malloc(sizeof(*one));
    if (!one)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
        cuUserObjectRetain(object, references);
    pthread_mutex_lock(&rig_streams_lock);
    struct body *body = body_of(graph);
    *one = (struct retained){(struct object *)(void *)object, (int)references, body->retained};
    body->retained = one;
    pthread_mutex_unlock(&rig_streams_lock);
    return CUDA_SUCCESS;
}

/* ---- instances ---- */

struct step {
    enum kind kind;
    struct work work;
    struct moment *moment;
    struct stream *lane;
    size_t *needs, n_needs; /* steps before it */
    struct event done;      /* of the last launch */
};

struct instance {
    struct body *body;
    struct step *steps;
    size_t n;
    struct event last; /* launch */
};

/* Each node behind those that it needs. Returns -1 where some need each other. */
static int put_in_order(struct node *node, struct node **order, size_t *n)
{
    if (node->state != 0)
        return node->state == WALKED ? 0 : -1;
    node->state = WALKING;
    for (size_t i = 0; i < node->needs.n; i++)
        if (put_in_order(node->needs.all[i], order, n) != 0)
            return -1;
    node->state = WALKED;
    node->number = *n;
    order[(*n)++] = node;
    return 0;
}

/* The lane of a step that it needs, and that has no other after it, or a new one. */
static struct stream *find_lane(struct instance *instance, size_t number, int device)
{
    struct step *step = &instance->steps[number];
    for (size_t i = 0; i < step->n_needs; i++) {
        struct stream *lane = instance->steps[step->needs[i]].lane;
        bool is_last = true;
        for (size_t after = step->needs[i] + 1; after < number; after++)
            is_last &= instance->steps[after].lane != lane;
        if (is_last)
            return lane;
    }
    return rig_new_stream(device, false);
}

static CUresult fill(struct instance *instance, int device)
{
    struct body *body = instance->body;
    struct node **order = calloc(body->n + 1, sizeof(struct node *));
    CUresult result = CUDA_SUCCESS;
    size_t n = 0;
    instance->steps = calloc(body->n + 1, sizeof(struct step));
    if (!order || !instance->steps)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    clear_walk(body);
    for (struct node *node = body->first; node && result == CUDA_SUCCESS; node = node->next)
        if (put_in_order(node, order, &n) != 0)
            result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
        struct node *node = order[i];
        struct step *step = &instance->steps[i];
        *step = (struct step){node->kind, node->work, node->moment, NULL, NULL, 0, {0}};
        step->needs = calloc(node->needs.n + 1, sizeof(*step->needs));
        for (size_t j = 0; step->needs && j < node->needs.n; j++)
            step->needs[step->n_needs++] = node->needs.all[j]->number;
        if (!step->needs || !(step->lane = find_lane(instance, i, device)))
            result = CUDA_ERROR_OUT_OF_MEMORY;
        instance->n++;
    }
    free(order);
    return result;
}

/* Its lanes are used again when what is in them is done. */
static void free_instance(struct instance *instance)
{
    pthread_mutex_lock(&rig_streams_lock);
    for (size_t i = 0; i < instance->n; i++) {
        if (instance->steps[i].lane)
            instance->steps[i].lane->destroyed = true;
        free(instance->steps[i].needs);
    }
    pthread_mutex_unlock(&rig_streams_lock);
    drop_body(instance->body);
    free(instance->steps);
    free(instance);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    struct instance *instance = calloc(1, sizeof(*instance));
    *out = NULL;
    if (!instance)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&rig_streams_lock);
    instance->body = body_of(graph);
    instance->body->references++;
    CUresult result = fill(instance, rig_current());
    pthread_mutex_unlock(&rig_streams_lock);
    if (result == CUDA_SUCCESS)
        *out = (CUgraphExec)(void *)instance;
    else
        free_instance(instance);
    return result;
}

SAYS(cuGraphInstantiateWithParams,
     (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *given),
     (given->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS,
      cuGraphInstantiateWithFlags(out, graph, given->flags)));
DOES(cuGraphExecDestroy, (CUgraphExec instance),
     free_instance((struct instance *)(void *)instance));
DOES(cuGraphUpload, (CUgraphExec instance, CUstream stream));

/* With the lock. */
static CUresult launch_step(struct instance *instance, struct step *step)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < step->n_needs && result == CUDA_SUCCESS; i++)
        result = rig_add_wait(step->lane, instance->steps[step->needs[i]].done);
    if (result != CUDA_SUCCESS || step->kind == EMPTY)
        return result;
    if (step->kind == WORK)
        return rig_add(step->lane, (struct work){step->work.run, NULL, step->work.data});
    return step->kind == RECORD ? rig_record(step->moment, step->lane)
                                : rig_add_wait(step->lane, step->moment->event);
}

/* One launch of an instance waits for the one before it. */
static CUresult launch(struct instance *instance, struct stream *stream)
{
    CUresult result = CUDA_SUCCESS;
    if (stream->capture)
        return rig_refused("a CUDA graph in another one");
    struct event begin = rig_last_of(rig_in_order(stream));
    for (size_t i = 0; i < instance->n && result == CUDA_SUCCESS; i++) {
        struct step *step = &instance->steps[i];
        if (step->n_needs == 0)
            result = rig_add_wait(step->lane, begin);
        if (step->n_needs == 0 && result == CUDA_SUCCESS)
            result = rig_add_wait(step->lane, instance->last);
        if (result == CUDA_SUCCESS)
            result = launch_step(instance, step);
        step->done = rig_last_of(step->lane);
    }
    for (size_t i = 0; i < instance->n && result == CUDA_SUCCESS; i++)
        result = rig_add_wait(stream, instance->steps[i].done);
    if (result == CUDA_SUCCESS)
        result = rig_add(stream, (struct work){nothing, drop_body, instance->body});
    if (result == CUDA_SUCCESS)
        instance->body->references++;
    instance->last = rig_last_of(stream);
    return result;
}

CUresult cuGraphLaunch(CUgraphExec instance, CUstream named)
{
    pthread_mutex_lock(&rig_streams_lock);
    struct stream *stream = rig_stream_of(named);
    CUresult result = rig_may_add(stream);
    if (result == CUDA_SUCCESS)
        result = launch((struct instance *)(void *)instance, stream);
    pthread_mutex_unlock(&rig_streams_lock);
    return result;
}
