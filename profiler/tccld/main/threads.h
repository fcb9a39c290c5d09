/* threads.h: a few threads for calls that block (munge, getaddrinfo, the disk), so that the event
 * loop never does. */
#pragma once

#include <event2/event.h>

#include "base/error.h"

struct threads;

/* A pool of at most that many threads, started when first needed, with at most queue tasks waiting.
 * Returns NULL with err. */
struct threads *threads_new(struct event_base *base, int threads, int queue,
                            struct tccl_error *err);

/* Threads that start from now on leave the processor to others first: nice, as in setpriority(2).
 */
void threads_be_nice(struct threads *pool, int nice);

/* Has run(task) called in a thread, then done(task) on the event loop. Returns 0, or -1 when the
 * queue is full (nothing is called then). */
int threads_submit(struct threads *pool, void (*run)(void *task), void (*done)(void *task),
                   void *task);

/* Tasks given and not yet done. */
int threads_busy(const struct threads *pool);

/* Lets the queue run empty for at most wait_ms, calling done for what is ready. Returns 0; 1: more
 * is under way. */
int threads_wait(struct threads *pool, int wait_ms);

/* The same, and ends the threads; what is stuck beyond that is left to the end of the process. NULL
 * is fine. Returns 0; 1: something is stuck. */
int threads_free(struct threads *pool, int wait_ms);
