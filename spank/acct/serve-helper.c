/* serve-helper.c: a process for each answer that takes time. */
#include "acct/serve-helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "base/clock.h"

enum { QUESTIONS = 64 /* remembered at most */, DESCRIPTORS = 1024, CHUNK = 1 << 16 };

struct waiter {
    struct waiter *next;
    serve_told *told;
    void *who;
};

enum state { QUEUED, RUNNING, DONE };

struct question {
    struct question *next; /* the latest first */
    struct serve_helpers *helpers;
    struct serve_request request;
    enum state state;
    pid_t pid;
    int fd;
    struct event *readable, *late;
    struct evbuffer *answer; /* of a helper: status (int), body */
    int64_t done;
    struct waiter *waiters;
};

struct serve_helpers {
    struct event_base *base;
    serve_work *work;
    void *context;
    struct question *questions;
    int running, count;
};

static const char late_body[] = "{\"error\":\"no answer in time: the page asks again\"}";
static const char lost_body[] = "{\"error\":\"the helper process ended without an answer: "
                                "see tcclacct's standard error\"}";

static void run_next(struct serve_helpers *helpers);

struct serve_helpers *serve_helpers_new(struct event_base *base, serve_work *work, void *context)
{
    struct serve_helpers *helpers = calloc(1, sizeof(*helpers));
    if (helpers)
        *helpers = (struct serve_helpers){.base = base, .work = work, .context = context};
    return helpers;
}

/* In the helper */

static void close_others(int keep)
{
    for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS; fd++)
        if (fd != keep)
            close(fd);
}

__attribute__((noreturn)) static void help(const struct question *question, int fd)
{
    const struct serve_helpers *helpers = question->helpers;
    sigset_t none;
    char *body = NULL;
    size_t size = 0;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* the terminal's; the parent ends its helpers */
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_others(fd);
    FILE *out = open_memstream(&body, &size), *pipe = fdopen(fd, "w");
    if (!out || !pipe)
        _exit(1);
    int status = helpers->work(helpers->context, &question->request, out);
    if (fclose(out) != 0 || fwrite(&status, sizeof(status), 1, pipe) != 1 ||
        fwrite(body, 1, size, pipe) != size || fclose(pipe) != 0)
        _exit(1);
    _exit(0);
}

/* In the server */

/* What the helper left: its status, or the one of a helper that failed. */
static int take_status(struct question *question)
{
    int status;
    if (evbuffer_get_length(question->answer) >= sizeof(status) &&
        evbuffer_remove(question->answer, &status, sizeof(status)) == sizeof(status) &&
        status >= 200 && status <= 599)
        return status;
    evbuffer_drain(question->answer, evbuffer_get_length(question->answer));
    return 0;
}

static void put_answer(struct question *question, int status, const char *body)
{
    evbuffer_drain(question->answer, evbuffer_get_length(question->answer));
    evbuffer_add(question->answer, &status, sizeof(status));
    evbuffer_add(question->answer, body, strlen(body));
}

static void stop(struct question *question)
{
    if (question->state != RUNNING)
        return;
    kill(question->pid, SIGKILL);
    close(question->fd);
    event_free(question->readable);
    event_free(question->late);
    question->state = DONE;
    question->done = tccl_now_ms();
    question->helpers->running--;
}

/* Tells those who wait. The answer stays, status in front, for who asks next. */
static void tell(struct question *question)
{
    size_t size = evbuffer_get_length(question->answer);
    const char *all = (const char *)evbuffer_pullup(question->answer, -1);
    int status = 500;
    if (all && size >= sizeof(status))
        memcpy(&status, all, sizeof(status));
    while (question->waiters) {
        struct waiter *waiter = question->waiters;
        question->waiters = waiter->next;
        if (all && size >= sizeof(status))
            waiter->told(waiter->who, status, all + sizeof(status), size - sizeof(status));
        else
            waiter->told(waiter->who, 500, lost_body, strlen(lost_body));
        free(waiter);
    }
}

static void finish(struct question *question)
{
    struct serve_helpers *helpers = question->helpers;
    stop(question);
    tell(question);
    run_next(helpers);
}

/* Puts the status in front back, checked. */
static void on_end(struct question *question)
{
    int status = take_status(question);
    if (status == 0)
        put_answer(question, 500, lost_body);
    else
        evbuffer_prepend(question->answer, &status, sizeof(status));
    finish(question);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
    struct question *question = context;
    (void)what;
    int got = evbuffer_read(question->answer, fd, CHUNK);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        on_end(question);
    else if (evbuffer_get_length(question->answer) > SERVE_ANSWER_MOST) {
        put_answer(question, 500, lost_body);
        finish(question);
    }
}

static void on_late(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    put_answer(context, 504, late_body);
    finish(context);
}

/* Returns 0, or -1 with errno. */
static int start_helper(struct question *question)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    question->pid = fork();
    if (question->pid == 0)
        help(question, ends[1]);
    close(ends[1]);
    if (question->pid < 0) {
        close(ends[0]);
        return -1;
    }
    question->fd = ends[0];
    fcntl(question->fd, F_SETFL, O_NONBLOCK);
    return 0;
}

static void run(struct question *question)
{
    struct serve_helpers *helpers = question->helpers;
    const struct timeval most = {.tv_sec = SERVE_HELPER_MS / 1000};
    if (start_helper(question) != 0) {
        put_answer(question, 503, lost_body);
        question->state = DONE;
        question->done = tccl_now_ms();
        tell(question);
        return;
    }
    question->state = RUNNING;
    helpers->running++;
    question->readable =
        event_new(helpers->base, question->fd, EV_READ | EV_PERSIST, on_readable, question);
    question->late = evtimer_new(helpers->base, on_late, question);
    event_add(question->readable, NULL);
    evtimer_add(question->late, &most);
}

/* The one that has waited longest. Nobody waits for it any more: it is not run. */
static void run_next(struct serve_helpers *helpers)
{
    struct question *first = NULL;
    for (struct question *each = helpers->questions; each; each = each->next)
        if (each->state == QUEUED && each->waiters)
            first = each;
    if (first && helpers->running < SERVE_HELPERS)
        run(first);
}

static void drop(struct question **at)
{
    struct question *question = *at;
    *at = question->next;
    question->helpers->count--;
    stop(question);
    evbuffer_free(question->answer);
    free(question);
}

void serve_helpers_free(struct serve_helpers *helpers)
{
    while (helpers && helpers->questions) {
        while (helpers->questions->waiters)
            serve_helpers_forget(helpers, helpers->questions->waiters->who);
        drop(&helpers->questions);
    }
    free(helpers);
}

/* Forgets what nobody waits for, beginning with the oldest, until there is room for one more. */
static int make_room(struct serve_helpers *helpers)
{
    while (helpers->count >= QUESTIONS) {
        struct question **oldest = NULL;
        for (struct question **at = &helpers->questions; *at; at = &(*at)->next)
            if (!(*at)->waiters)
                oldest = at;
        if (!oldest)
            return -1;
        drop(oldest);
    }
    return 0;
}

static struct question *find(struct serve_helpers *helpers, const struct serve_request *request,
                             int keep_ms)
{
    for (struct question *each = helpers->questions; each; each = each->next)
        if (strcmp(each->request.path, request->path) == 0 &&
            strcmp(each->request.query, request->query) == 0 &&
            (each->state == RUNNING || (each->state == QUEUED && each->waiters) ||
             (each->state == DONE && tccl_now_ms() - each->done < keep_ms)))
            return each;
    return NULL;
}

static struct question *add(struct serve_helpers *helpers, const struct serve_request *request)
{
    struct question *question = make_room(helpers) == 0 ? calloc(1, sizeof(*question)) : NULL;
    struct evbuffer *answer = question ? evbuffer_new() : NULL;
    if (!answer) {
        free(question);
        return NULL;
    }
    *question = (struct question){.next = helpers->questions,
                                  .helpers = helpers,
                                  .request = *request,
                                  .fd = -1,
                                  .answer = answer};
    helpers->questions = question;
    helpers->count++;
    return question;
}

int serve_helpers_ask(struct serve_helpers *helpers, const struct serve_request *request,
                      int keep_ms, serve_told *told, void *who)
{
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    struct question *question = waiter ? find(helpers, request, keep_ms) : NULL;
    if (waiter && !question)
        question = add(helpers, request);
    if (!question) {
        free(waiter);
        return -1;
    }
    *waiter = (struct waiter){.next = question->waiters, .told = told, .who = who};
    question->waiters = waiter;
    if (question->state == DONE)
        tell(question);
    else
        run_next(helpers);
    return 0;
}

void serve_helpers_forget(struct serve_helpers *helpers, const void *who)
{
    for (struct question *each = helpers->questions; each; each = each->next)
        for (struct waiter **at = &each->waiters; *at;) {
            struct waiter *waiter = *at;
            if (waiter->who != who) {
                at = &waiter->next;
                continue;
            }
            *at = waiter->next;
            free(waiter);
        }
}

void serve_helpers_reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}
