/* monitor.c: tccld's side of the monitor. A munge thread takes a channel for itself for one
 * question. */
#include "tccld/rights/monitor.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/credential.h"
#include "client/frame.h"

/* munge's library waits for a munged that hangs for some 20 s, whatever the deadline. */
enum { HANGS_MS = 60000 };

struct monitor {
    pthread_mutex_t lock, file_lock; /* of busy; of files */
    bool busy[MONITOR_CHANNELS];
    int channels[MONITOR_CHANNELS]; /* -1: given up */
    int files;
    uint32_t number; /* of the last file that was asked for */
    pid_t pid;
    struct event *event;
    void (*lost)(void *context);
    void *context;
};

/* ---- start and end ---- */

static void close_all(const int *fds, int files)
{
    for (int i = 0; i < MONITOR_CHANNELS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (files >= 0)
        close(files);
}

/* Both ends of all sockets. */
static int make_sockets(struct monitor *monitor, struct monitor_service *service)
{
    int pair[2];
    for (int i = 0; i < MONITOR_CHANNELS; i++)
        monitor->channels[i] = service->channels[i] = -1;
    monitor->files = service->files = -1;
    for (int i = 0; i < MONITOR_CHANNELS; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            return -1;
        monitor->channels[i] = pair[0];
        service->channels[i] = pair[1];
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    monitor->files = pair[0];
    service->files = pair[1];
    return 0;
}

struct monitor *monitor_start(const char *munge_socket, struct tccl_error *err)
{
    struct monitor *monitor = calloc(1, sizeof(*monitor));
    struct monitor_service service = {.munge_socket = munge_socket};
    if (!monitor)
        return tccl_fail_null(err, "out of memory");
    int failed = make_sockets(monitor, &service);
    monitor->pid = failed ? -1 : fork();
    if (monitor->pid == 0)
        monitor_serve(&service);
    if (monitor->pid < 0)
        tccl_fail(err, "tccld's monitor can't start: %s", strerror(errno));
    close_all(service.channels, service.files);
    pthread_mutex_init(&monitor->lock, NULL);
    pthread_mutex_init(&monitor->file_lock, NULL);
    if (monitor->pid > 0)
        return monitor;
    monitor_free(monitor);
    return NULL;
}

static void on_event(evutil_socket_t fd, short what UNUSED, void *argument)
{
    struct monitor *monitor = argument;
    uint32_t number;
    ssize_t size = recv(fd, &number, sizeof(number), MSG_DONTWAIT);
    if (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR)))
        return; /* an answer that came too late */
    event_del(monitor->event);
    monitor->lost(monitor->context);
}

int monitor_watch(struct monitor *monitor, struct event_base *base, void (*lost)(void *context),
                  void *context, struct tccl_error *err)
{
    monitor->lost = lost;
    monitor->context = context;
    monitor->event = event_new(base, monitor->files, EV_READ | EV_PERSIST, on_event, monitor);
    if (monitor->event && event_add(monitor->event, NULL) == 0)
        return 0;
    return tccl_fail(err, "out of memory");
}

void monitor_free(struct monitor *monitor)
{
    if (!monitor)
        return;
    if (monitor->event)
        event_free(monitor->event);
    close_all(monitor->channels, monitor->files);
    pthread_mutex_destroy(&monitor->lock);
    pthread_mutex_destroy(&monitor->file_lock);
    free(monitor);
}

/* ---- credentials ---- */

/* A channel whose answer is missing is of no more use; and that the monitor hangs, the event loop
 * is told by the end of the other socket. */
static void give_channel(struct monitor *monitor, int i, bool good)
{
    pthread_mutex_lock(&monitor->lock);
    monitor->busy[i] = false;
    if (!good) {
        close(monitor->channels[i]);
        monitor->channels[i] = -1;
        shutdown(monitor->files, SHUT_RDWR);
    }
    pthread_mutex_unlock(&monitor->lock);
}

/* Sends the question and reads the answer's frame. Returns 0, or -1 with err. */
static int exchange(int fd, const struct monitor_question *question, const char *data, size_t size,
                    char **frame, size_t *length, struct tccl_error *err)
{
    cleanup_free char *sent = malloc(sizeof(*question) + size);
    int64_t deadline = tccl_now_ms() + HANGS_MS;
    struct tccl_error why = {0};
    if (!sent)
        return tccl_fail(err, "munge: out of memory");
    memcpy(sent, question, sizeof(*question));
    memcpy(sent + sizeof(*question), data, size);
    int late = tccl_frame_write(fd, sent, sizeof(*question) + size, MONITOR_FRAME, deadline, &why);
    if (!late)
        late = tccl_frame_read(fd, MONITOR_FRAME, deadline, frame, length, &why);
    if (!late && *length >= sizeof(struct monitor_answer))
        return 0;
    return tccl_fail(err, "munge: tccld's monitor does not answer: %.200s",
                     why.text[0] ? why.text : "no answer in time");
}

/* The answer's text (allocated, with a NUL behind it), and who has made the credential; NULL with
 * err. */
static char *ask(struct monitor *monitor, const struct monitor_question *question, const char *data,
                 size_t size, uid_t *uid, size_t *length, struct tccl_error *err)
{
    cleanup_free char *frame = NULL;
    struct monitor_answer head;
    int channel = -1;
    pthread_mutex_lock(&monitor->lock);
    for (int i = 0; i < MONITOR_CHANNELS && channel < 0; i++)
        if (!monitor->busy[i] && monitor->channels[i] >= 0)
            channel = i;
    if (channel >= 0)
        monitor->busy[channel] = true;
    pthread_mutex_unlock(&monitor->lock);
    if (channel < 0)
        return tccl_fail_null(err, "munge: tccld's monitor does not keep up");
    int failed = exchange(monitor->channels[channel], question, data, size, &frame, length, err);
    give_channel(monitor, channel, !failed);
    if (failed)
        return NULL;
    memcpy(&head, frame, sizeof(head));
    *length -= sizeof(head);
    memmove(frame, frame + sizeof(head), *length + 1);
    if (head.failed)
        return tccl_fail_null(err, "%s", frame);
    *uid = head.uid;
    return tccl_steal(frame);
}

int monitor_encode(struct monitor *monitor, const char *munge_socket, uid_t reader,
                   const char *data, size_t size, int64_t deadline, char **cred,
                   struct tccl_error *err)
{
    struct monitor_question question = {MONITOR_ENCODE, reader, deadline};
    uid_t uid;
    size_t length;
    if (!monitor)
        return tccl_cred_encode(munge_socket, reader, data, size, deadline, cred, err);
    *cred = ask(monitor, &question, data, size, &uid, &length, err);
    return *cred ? 0 : -1;
}

int monitor_decode(struct monitor *monitor, const char *munge_socket, const char *cred,
                   int64_t deadline, uid_t *uid, char **data, size_t *size, struct tccl_error *err)
{
    struct monitor_question question = {MONITOR_DECODE, 0, deadline};
    if (!monitor)
        return tccl_cred_decode(munge_socket, cred, deadline, uid, data, size, err);
    *data = ask(monitor, &question, cred, strlen(cred), uid, size, err);
    return *data ? 0 : -1;
}

/* ---- files ---- */

/* Answers to earlier questions, which came too late, are skipped. */
static void await_number(const struct monitor *monitor)
{
    int64_t deadline = tccl_now_ms() + MONITOR_FILE_MS;
    struct pollfd pollfd = {.fd = monitor->files, .events = POLLIN};
    uint32_t number = monitor->number + 1;
    while (number != monitor->number) {
        int64_t left = deadline - tccl_now_ms();
        if (left <= 0 || poll(&pollfd, 1, (int)left) == 0 ||
            recv(monitor->files, &number, sizeof(number), MSG_DONTWAIT) == 0)
            return; /* the event loop hears of its end */
    }
}

static void ask_file(struct monitor *monitor, enum monitor_act act, const struct shared_file *file)
{
    pthread_mutex_lock(&monitor->file_lock);
    struct monitor_file asked = {.act = act, .number = ++monitor->number, .file = *file};
    if (send(monitor->files, &asked, sizeof(asked), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(asked))
        await_number(monitor);
    pthread_mutex_unlock(&monitor->file_lock);
}

void monitor_make(struct monitor *monitor, const struct shared_file *file)
{
    if (monitor)
        ask_file(monitor, MONITOR_MAKE, file);
    else if (geteuid() == 0 || geteuid() == file->uid)
        shared_file_make(file);
}

void monitor_remove(struct monitor *monitor, const struct shared_file *file)
{
    if (monitor)
        ask_file(monitor, MONITOR_REMOVE, file);
    else if (geteuid() == 0 || geteuid() == file->uid)
        shared_file_remove(file);
}
