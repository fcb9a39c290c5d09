/* monitor-serve.c: the monitor: root, with the two capabilities for files of others in /dev/shm,
 * and nothing but its sockets to tccld and munged's. Whoever has taken over tccld can ask it
 * anything, so it does four things, with numbers for arguments and messages of one form. */
#include "tccld/rights/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "client/credential.h"
#include "client/frame.h"
#include "tccld/main/daemon.h"

enum { TRANSFER_MS = 10000, STACK = 512 * 1024 };

bool monitor_is_message(const char *data, size_t size)
{
    static const char begin[] = "{\"v\":";
    if (size < sizeof(begin) || memcmp(data, begin, sizeof(begin) - 1) != 0 ||
        data[size - 1] != '}')
        return false;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)data[i] < ' ')
            return false;
    return true;
}

/* ---- credentials ---- */

struct channel {
    const char *munge_socket;
    int fd;
};

/* The answer's text, allocated; NULL with err. */
static char *encode(const struct channel *channel, const struct monitor_question *question,
                    const char *data, size_t size, size_t *made, struct tccl_error *err)
{
    char *cred = NULL;
    if (question->reader == (uid_t)TCCL_CRED_ANYONE || !monitor_is_message(data, size))
        tccl_fail(err, "munge: not a message of tccl's for one user");
    else if (tccl_cred_encode(channel->munge_socket, question->reader, data, size,
                              question->deadline, &cred, err) == 0)
        *made = strlen(cred);
    return cred;
}

static char *decode(const struct channel *channel, const struct monitor_question *question,
                    const char *cred, uid_t *uid, size_t *made, struct tccl_error *err)
{
    cleanup_free char *data = NULL;
    if (!tccl_cred_has_form(cred))
        return tccl_fail_null(err, "munge: not a credential");
    if (tccl_cred_decode(channel->munge_socket, cred, question->deadline, uid, &data, made, err) !=
        0)
        return NULL;
    if (monitor_is_message(data, *made))
        return tccl_steal(data);
    return tccl_fail_null(err, "munge: the credential holds no message of tccl's");
}

/* Returns 0, or -1: the channel is of no more use. */
static int answer(const struct channel *channel, const struct monitor_answer *head,
                  const char *text, size_t size)
{
    cleanup_free char *frame = malloc(sizeof(*head) + size);
    if (!frame)
        return -1;
    memcpy(frame, head, sizeof(*head));
    memcpy(frame + sizeof(*head), text, size);
    return tccl_frame_write(channel->fd, frame, sizeof(*head) + size, MONITOR_FRAME,
                            tccl_now_ms() + TRANSFER_MS, NULL);
}

static int serve_question(const struct channel *channel)
{
    cleanup_free char *frame = NULL, *made = NULL;
    struct monitor_question question;
    struct monitor_answer head = {0};
    struct tccl_error err = {0};
    size_t size, length = 0;
    uid_t uid = (uid_t)-1;
    if (tccl_frame_read(channel->fd, MONITOR_FRAME, tccl_now_ms() + TRANSFER_MS, &frame, &size,
                        NULL) != 0 ||
        size < sizeof(question))
        return -1;
    memcpy(&question, frame, sizeof(question));
    const char *data = frame + sizeof(question);
    if (question.act == MONITOR_ENCODE)
        made = encode(channel, &question, data, size - sizeof(question), &length, &err);
    else if (question.act == MONITOR_DECODE)
        made = decode(channel, &question, data, &uid, &length, &err);
    else
        return -1;
    head.failed = made ? 0 : -1;
    head.uid = uid;
    return made ? answer(channel, &head, made, length)
                : answer(channel, &head, err.text, strlen(err.text));
}

static void *serve_channel(void *argument)
{
    const struct channel *channel = argument;
    struct pollfd pollfd = {.fd = channel->fd, .events = POLLIN};
    while (poll(&pollfd, 1, -1) > 0 || errno == EINTR)
        if (pollfd.revents && serve_question(channel) != 0)
            break;
    close(channel->fd);
    return NULL;
}

/* ---- files ---- */

static int serve_file(int files)
{
    struct monitor_file asked;
    ssize_t size = recv(files, &asked, sizeof(asked), 0);
    if (size < 0 && errno == EINTR)
        return 0;
    if (size != sizeof(asked))
        return -1; /* tccld has ended */
    if (asked.act == MONITOR_MAKE)
        shared_file_make(&asked.file);
    else if (asked.act == MONITOR_REMOVE)
        shared_file_remove(&asked.file);
    else
        return -1;
    return send(files, &asked.number, sizeof(asked.number), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
                   errno != EAGAIN
               ? -1
               : 0;
}

/* ---- the process ---- */

static bool is_ours(const struct monitor_service *service, int fd)
{
    bool ours = fd == service->files || fd == STDERR_FILENO;
    for (int i = 0; i < MONITOR_CHANNELS; i++)
        ours = ours || fd == service->channels[i];
    return ours;
}

static int start_channels(const struct monitor_service *service,
                          struct channel channels[static MONITOR_CHANNELS])
{
    pthread_attr_t attributes;
    pthread_t thread;
    int failed =
        pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, STACK) != 0;
    for (int i = 0; i < MONITOR_CHANNELS && !failed; i++) {
        channels[i] = (struct channel){service->munge_socket, service->channels[i]};
        failed = pthread_create(&thread, &attributes, serve_channel, &channels[i]) != 0;
    }
    return failed ? -1 : 0;
}

void monitor_serve(const struct monitor_service *service)
{
    struct channel channels[MONITOR_CHANNELS];
    struct tccl_error err = {0};
    /* systemd sends these to all of a unit; it ends when tccld does, which may still need it. */
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGQUIT};
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        signal(signals[i], SIG_IGN);
    struct rlimit limit = {.rlim_cur = 1024};
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 0; fd < (int)limit.rlim_cur && fd < 65536; fd++)
        if (!is_ours(service, fd))
            close(fd);
    while (open("/dev/null", O_RDWR) >= 0) /* 0 and 1 */
        if (fcntl(STDOUT_FILENO, F_GETFD) >= 0)
            break;
    prctl(PR_SET_NAME, "tccld-monitor");
    umask(077);
    if (chdir("/") != 0 || drop_to_monitor(&err) != 0 || start_channels(service, channels) != 0) {
        log_line("tccld's monitor can't start: %s", err.text[0] ? err.text : strerror(errno));
        _exit(1);
    }
    while (serve_file(service->files) == 0)
        ;
    _exit(0);
}
