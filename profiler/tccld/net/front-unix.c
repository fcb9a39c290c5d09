/* The unix socket: the kernel says who is there, and a frame is a message. One tccld serves a
 * socket: whoever holds the lock beside it. */
#include "tccld/net/front.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "client/frame.h"
#include "client/message.h"

#define SUFFIX ".new"

struct unix_socket {
    struct daemon *daemon;
    struct connections *all;
    char path[PATH_MAX];
    int lock;
    bool listens;
};

static int meet(int fd, const struct sockaddr *address UNUSED, socklen_t size UNUSED,
                struct asker *asker)
{
    struct ucred ucred;
    socklen_t length = sizeof(ucred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ucred, &length) != 0)
        return -1;
    asker->uid = ucred.uid;
    asker->pid = ucred.pid;
    snprintf(asker->place, sizeof(asker->place), "uid %u (pid %d)", ucred.uid, ucred.pid);
    return 0;
}

static void open_frame(struct daemon *daemon UNUSED, struct connection *connection, char *data,
                       size_t size)
{
    connection_hear(connection, connection_uid(connection), data, size);
}

static void answer(struct daemon *daemon UNUSED, struct connection *connection, json_t *message)
{
    cleanup_free char *text = tccl_message_text(message);
    if (text)
        connection_send(connection, text, strlen(text));
    else
        connection_close(connection);
}

const struct front front_unix = {
    .from = FROM_UNIX,
    .frame = TCCL_FRAME_UNIX,
    .untrusted = 64 << 10,
    .buffered = 24 << 20,
    .most = 2048,
    .each = 128,
    .first_ms = 1000,
    .next_ms = 10000,
    .forgiving = true,
    .meet = meet,
    .open = open_frame,
    .answer = answer,
};

static int take_lock(struct unix_socket *own, struct tccl_error *err)
{
    char path[PATH_MAX + 8], pid[32] = "";
    snprintf(path, sizeof(path), "%s.lock", own->path);
    own->lock = tccl_open_own(path, O_RDWR | O_CREAT, 0644, err);
    if (own->lock < 0)
        return -1;
    if (flock(own->lock, LOCK_EX | LOCK_NB) != 0) {
        ssize_t size = pread(own->lock, pid, sizeof(pid) - 1, 0);
        pid[size > 0 ? strcspn(pid, "\n") : 0] = '\0';
        return tccl_fail(err, "tccld is already running (pid %s, %s)", *pid ? pid : "unknown",
                         own->path);
    }
    int size = snprintf(pid, sizeof(pid), "%d\n", getpid());
    if (ftruncate(own->lock, 0) != 0 || pwrite(own->lock, pid, (size_t)size, 0) != size)
        return tccl_fail(err, "%s: %s", path, strerror(errno));
    return 0;
}

static int connects(const struct sockaddr_un *address)
{
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    return connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN;
}

/* May the socket's place be taken? A dead tccld's socket is replaced; anything else there stays. */
static int check_place(const struct sockaddr_un *address, struct tccl_error *err)
{
    struct stat stat;
    if (lstat(address->sun_path, &stat) != 0)
        return errno == ENOENT ? 0 : tccl_fail(err, "%s: %s", address->sun_path, strerror(errno));
    if (!S_ISSOCK(stat.st_mode))
        return tccl_fail(err, "%s is not a socket: remove it, or set Socket=", address->sun_path);
    return connects(address)
               ? tccl_fail(err, "%s: another process listens there", address->sun_path)
               : 0;
}

/* Makes it beside its place and moves it there when it answers everybody: who connects meanwhile
 * finds the one before or none, never one that refuses him. */
static int make_socket(struct unix_socket *own, const struct sockaddr_un *beside,
                       struct tccl_error *err)
{
    char name[NAME_MAX + 16];
    cleanup_leave struct tccl_folder folder;
    if (tccl_folder_enter(&folder, own->path, "the socket can't be made", err) != 0)
        return -1;
    snprintf(name, sizeof(name), "%s" SUFFIX, folder.name);
    if ((unlinkat(folder.fd, name, 0) != 0 && errno != ENOENT) ||
        connections_listen(own->all, (const struct sockaddr *)beside, sizeof(*beside)) != 0 ||
        fchmodat(folder.fd, name, 0666, 0) != 0 ||
        renameat(folder.fd, name, folder.fd, folder.name) != 0)
        return tccl_folder_fail(&folder, err, own->path, "the socket can't be made");
    return 0;
}

int unix_socket_listen(struct unix_socket *own, struct tccl_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(own->path) + sizeof(SUFFIX) > sizeof(address.sun_path))
        return tccl_fail(err, "Socket=%s: a socket's path has at most %zu bytes", own->path,
                         sizeof(address.sun_path) - sizeof(SUFFIX));
    strcpy(address.sun_path, own->path);
    if (check_place(&address, err) != 0)
        return -1;
    strcat(address.sun_path, SUFFIX);
    own->all = connections_new(own->daemon, &front_unix, tccld_requests);
    if (!own->all)
        return tccl_fail(err, "out of memory");
    if (make_socket(own, &address, err) != 0)
        return -1;
    own->listens = true;
    return 0;
}

struct unix_socket *unix_socket_new(struct daemon *daemon, struct tccl_error *err)
{
    struct unix_socket *own = calloc(1, sizeof(*own));
    if (!own)
        return tccl_fail_null(err, "out of memory");
    own->daemon = daemon;
    strcpy(own->path, daemon->conf->socket);
    own->lock = -1;
    if (take_lock(own, err) == 0)
        return own;
    unix_socket_free(own);
    return NULL;
}

void unix_socket_free(struct unix_socket *own)
{
    if (!own)
        return;
    if (own->listens)
        tccl_remove_file(own->path, NULL);
    connections_free(own->all);
    if (own->lock >= 0)
        close(own->lock); /* the file stays: removing it would let two locks exist */
    free(own);
}
