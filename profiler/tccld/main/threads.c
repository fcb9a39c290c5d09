/* A pool of threads with one queue. What is done comes back through an eventfd: all callbacks run
 * on the event loop, and nothing else there needs a lock. */
#include "tccld/main/threads.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { STACK = 512 * 1024 };

struct task {
    void (*run)(void *task);
    void (*done)(void *task);
    void *context;
    struct task *next;
};

struct queue {
    struct task *first, **last;
    int count;
};

struct threads {
    pthread_mutex_t lock;
    pthread_cond_t wake;     /* for threads: there is a task */
    struct queue todo, done; /* guarded by lock */
    pthread_t *threads;
    int n_threads, idle, limit, queue, nice;
    bool stop;
    int busy; /* tasks given and not yet done(), of the event loop's thread only */
    int wake_fd;
    struct event *event;
};

static void queue_put(struct queue *queue, struct task *task)
{
    task->next = NULL;
    *queue->last = task;
    queue->last = &task->next;
    queue->count++;
}

static struct task *queue_take(struct queue *queue)
{
    struct task *task = queue->first;
    if (!task)
        return NULL;
    queue->first = task->next;
    if (!queue->first)
        queue->last = &queue->first;
    queue->count--;
    return task;
}

static void *worker(void *argument)
{
    struct threads *pool = argument;
    id_t self = (id_t)gettid(); /* on Linux a priority is of the thread alone */
    if (getpriority(PRIO_PROCESS, self) < pool->nice)
        setpriority(PRIO_PROCESS, self, pool->nice);
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct task *task = queue_take(&pool->todo);
        if (!task && pool->stop)
            break;
        if (!task) {
            pool->idle++;
            pthread_cond_wait(&pool->wake, &pool->lock);
            pool->idle--;
            continue;
        }
        pthread_mutex_unlock(&pool->lock);
        task->run(task->context);
        pthread_mutex_lock(&pool->lock);
        queue_put(&pool->done, task);
        eventfd_write(pool->wake_fd, 1);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void finish(evutil_socket_t fd, short what UNUSED, void *argument)
{
    struct threads *pool = argument;
    eventfd_t count;
    eventfd_read(fd, &count);
    for (;;) {
        pthread_mutex_lock(&pool->lock);
        struct task *task = queue_take(&pool->done);
        pthread_mutex_unlock(&pool->lock);
        if (!task)
            return;
        pool->busy--;
        task->done(task->context);
        free(task);
    }
}

struct threads *threads_new(struct event_base *base, int threads, int queue, struct tccl_error *err)
{
    struct threads *pool = calloc(1, sizeof(*pool));
    if (pool)
        pool->threads = calloc((size_t)threads, sizeof(*pool->threads));
    if (!pool || !pool->threads) {
        tccl_fail(err, "out of memory");
        free(pool);
        return NULL;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->todo.last = &pool->todo.first;
    pool->done.last = &pool->done.first;
    pool->limit = threads;
    pool->nice = PRIO_MIN;
    pool->queue = queue;
    pool->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pool->event = event_new(base, pool->wake_fd, EV_READ | EV_PERSIST, finish, pool);
    if (pool->wake_fd < 0 || !pool->event || event_add(pool->event, NULL) != 0)
        return tccl_fail_null(err, "eventfd: %s", strerror(errno));
    return pool;
}

void threads_be_nice(struct threads *pool, int nice)
{
    pool->nice = nice;
}

/* Signals are for the event loop's thread. */
static int start_thread(struct threads *pool)
{
    pthread_attr_t attributes;
    sigset_t all, old;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&pool->threads[pool->n_threads], &attributes, worker, pool);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    if (code == 0)
        pool->n_threads++;
    return code ? -1 : 0;
}

int threads_submit(struct threads *pool, void (*run)(void *task), void (*done)(void *task),
                   void *context)
{
    struct task *task = malloc(sizeof(*task));
    if (!task)
        return -1;
    *task = (struct task){.run = run, .done = done, .context = context};
    pthread_mutex_lock(&pool->lock);
    int failed = pool->todo.count >= pool->queue;
    if (!failed && pool->idle <= pool->todo.count && pool->n_threads < pool->limit)
        failed = start_thread(pool) != 0 && pool->n_threads == 0;
    if (!failed) {
        queue_put(&pool->todo, task);
        pool->busy++;
        pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->lock);
    if (failed)
        free(task);
    return failed ? -1 : 0;
}

int threads_busy(const struct threads *pool)
{
    return pool->busy;
}

int threads_wait(struct threads *pool, int wait_ms)
{
    int64_t deadline = tccl_now_ms() + wait_ms;
    while (pool->busy > 0 && tccl_now_ms() < deadline) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        finish(pool->wake_fd, EV_READ, pool);
    }
    return pool->busy > 0;
}

int threads_free(struct threads *pool, int wait_ms)
{
    if (!pool)
        return 0;
    int stuck = threads_wait(pool, wait_ms);
    event_free(pool->event);
    if (stuck)
        return 1; /* what is stuck uses the rest until the process ends */
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    close(pool->wake_fd);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
    return 0;
}
