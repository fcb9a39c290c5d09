/* driver-stream.h: what streams (driver-stream.c) and graphs (driver-graph.c) of the stand-in
 * driver share. Whatever takes a stream, an event or a capture here is called with the lock. */
#pragma once

#include "driver.h"

#include <pthread.h>

struct task;
struct node;
struct capture;

/* What a stream does: run, as often as it is launched; drop, once it is not needed any more (NULL:
 * nothing). */
struct work {
    void (*run)(void *data);
    void (*drop)(void *data);
    void *data;
};

struct nodes {
    struct node **all;
    size_t n;
};

struct stream {
    int device;
    bool blocking; /* it and the default stream wait for each other */
    bool working, destroyed;
    unsigned long long submitted, done;
    struct task *first, **end;
    struct stream *next;
    struct capture *capture; /* NULL: what it is given is done */
    struct nodes tips;       /* while it captures: what comes next depends on these */
};

struct event { /* until so much of the stream is done; NULL: nothing was recorded */
    struct stream *stream;
    unsigned long long number;
};

/* What programs hold as an event. A time is that at which the stream came to it. */
struct moment {
    int references; /* the program, and each node */
    bool timed;
    struct event event;
    struct stamp *stamp;
    unsigned long long capture; /* recorded in the capture of this number; 0: in none */
    struct nodes nodes;         /* these */
};

extern pthread_mutex_t rig_streams_lock;

/* All streams that are not default ones. */
struct stream *rig_streams(void);
struct stream *rig_stream_of(CUstream named);
struct stream *rig_default(int device);
struct stream *rig_new_stream(int device, bool blocking);
/* The stream, after what it has to wait for has been added. */
struct stream *rig_in_order(struct stream *stream);
CUresult rig_add(struct stream *stream, struct work work);
CUresult rig_add_wait(struct stream *stream, struct event event);
struct event rig_last_of(struct stream *stream);
CUresult rig_record(struct moment *moment, struct stream *stream);
void rig_drop_moment(struct moment *moment);

/* Nodes: a copy, one more of them (0: they are there; -1: no memory), none. */
int rig_add_nodes(struct nodes *to, struct nodes from);
void rig_clear_nodes(struct nodes *nodes);

/* A stream that captures: what it is given becomes a node; an event in it, of the program's own
 * (external) or of the capture; a wait for one. */
CUresult rig_capture_work(struct stream *stream, struct work work);
CUresult rig_capture_record(struct stream *stream, struct moment *moment, bool external);
CUresult rig_capture_wait(struct stream *stream, struct moment *moment, bool external);
/* It is destroyed. */
void rig_capture_leave(struct stream *stream);
/* May the calling thread do what CUDA calls potentially unsafe, or use the stream or event (NULL:
 * none) in a way that a capture forbids? If not, the captures that forbid it have failed. */
CUresult rig_safe(struct stream *stream, const struct moment *moment);
/* May something be added to the stream now? */
CUresult rig_may_add(struct stream *stream);
