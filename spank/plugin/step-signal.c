/* step-signal.c: slurmstepd keeps whoever sends its step a signal (scancel, srun's Ctrl-C, the time
 * limit) waiting until the tasks run, and tells no plugin of it. While a plugin waits, that can be
 * seen by the connection to slurmstepd's socket that stays open: other requests are answered at
 * once. */
#include "plugin/step-signal.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"

enum { CONNECTED = 3, LINE = 512 };

static bool is_of_socket(const char *path, const char *socket)
{
    const char *last = strrchr(path, '/');
    return last && strcmp(last, socket) == 0;
}

int signal_peers(FILE *table, const char *socket, uint64_t inodes[static SIGNAL_PEERS])
{
    char line[LINE], path[LINE];
    int count = 0;
    while (count < SIGNAL_PEERS && fgets(line, sizeof(line), table)) {
        unsigned state;
        uint64_t inode;
        if (sscanf(line, "%*s %*s %*s %*s %*s %x %" SCNu64 " %511s", &state, &inode, path) == 3 &&
            state == CONNECTED && is_of_socket(path, socket))
            inodes[count++] = inode;
    }
    return count;
}

static bool is_among(uint64_t inode, const uint64_t *inodes, int count)
{
    for (int i = 0; i < count; i++)
        if (inodes[i] == inode)
            return true;
    return false;
}

bool signal_held(struct signal_watch *watch, FILE *table, int64_t now)
{
    uint64_t inodes[SIGNAL_PEERS];
    int count = signal_peers(table, watch->socket, inodes);
    bool held = false;
    if (now < watch->since + SIGNAL_HELD_MS)
        return false;
    for (int i = 0; i < count; i++)
        held |= is_among(inodes[i], watch->held, watch->n_held) &&
                !is_among(inodes[i], watch->first, watch->n_first);
    memcpy(watch->held, inodes, (size_t)count * sizeof(*inodes));
    watch->n_held = count;
    watch->since = now;
    return held;
}

void signal_watch_begin(struct signal_watch *watch, const char *node, uint32_t job, uint32_t step)
{
    cleanup_file FILE *table = fopen("/proc/net/unix", "re");
    *watch = (struct signal_watch){.since = 0};
    snprintf(watch->socket, sizeof(watch->socket), "/%.255s_%u.%u", node, job, step);
    if (table)
        watch->n_first = signal_peers(table, watch->socket, watch->first);
}

bool signal_watch_look(struct signal_watch *watch, int64_t now)
{
    if (now < watch->since + SIGNAL_HELD_MS)
        return false;
    cleanup_file FILE *table = fopen("/proc/net/unix", "re");
    return table && signal_held(watch, table, now);
}
