/* step-signal.c: slurmstepd keeps whoever sends its step a signal (scancel, srun's Ctrl-C, the time
 * limit) waiting until the tasks run, and tells no plugin of it. While a plugin waits, that can be
 * seen by the connection to slurmstepd's socket that stays open: other requests are answered at
 * once. Anybody may connect to that socket, so only connections of slurmd's user count. (Plugins
 * that run in a process of their own, as with ContainSpank, see no new ones.) */
#include "plugin/plugin.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Is it the end, here, of a connection that slurmd has made to the socket? slurmstepd's real user
 * is slurmd's, whoever it acts as. */
static bool is_peer(int fd, const char *socket, uint64_t *inode)
{
    union {
        struct sockaddr any;
        struct sockaddr_un unix_;
        char room[sizeof(struct sockaddr_un) + 1]; /* a path may fill it */
    } address = {.room = ""};
    struct ucred peer = {.pid = 0};
    struct stat status;
    const char *last;
    int listens = 1;
    socklen_t size = sizeof(struct sockaddr_un), peer_size = sizeof(peer), one = sizeof(listens);
    if (getsockname(fd, &address.any, &size) != 0 || address.any.sa_family != AF_UNIX ||
        !(last = strrchr(address.unix_.sun_path, '/')) || strcmp(last, socket) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &one) != 0 || listens ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0 || peer.uid != getuid() ||
        fstat(fd, &status) != 0)
        return false;
    *inode = status.st_ino;
    return true;
}

/* slurmd's connections to the socket that this process has accepted, by their inodes; at most
 * SIGNAL_PEERS. */
static int find_peers(const char *socket, uint64_t inodes[static SIGNAL_PEERS])
{
    DIR *fds = opendir("/proc/self/fd");
    int count = 0;
    for (struct dirent *each; fds && count < SIGNAL_PEERS && (each = readdir(fds));)
        count += is_peer(atoi(each->d_name), socket, &inodes[count]);
    if (fds)
        closedir(fds);
    return count;
}

static bool is_among(uint64_t inode, const uint64_t *inodes, int count)
{
    for (int i = 0; i < count; i++)
        if (inodes[i] == inode)
            return true;
    return false;
}

void signal_watch_begin(struct signal_watch *watch, const char *node, uint32_t job, uint32_t step)
{
    *watch = (struct signal_watch){.since = 0};
    snprintf(watch->socket, sizeof(watch->socket), "/%.255s_%u.%u", node, job, step);
    watch->n_first = find_peers(watch->socket, watch->first);
}

bool signal_watch_look(struct signal_watch *watch, int64_t now)
{
    uint64_t inodes[SIGNAL_PEERS];
    bool held = false;
    if (now < watch->since + SIGNAL_HELD_MS)
        return false;
    int count = find_peers(watch->socket, inodes);
    for (int i = 0; i < count; i++)
        held |= is_among(inodes[i], watch->held, watch->n_held) &&
                !is_among(inodes[i], watch->first, watch->n_first);
    memcpy(watch->held, inodes, (size_t)count * sizeof(*inodes));
    watch->n_held = count;
    watch->since = now;
    return held;
}
