/* A ledger of one line, whose length never changes: it is written in place whenever a record comes
 * or is safe, without waiting for a disk (RunDir is in memory as a rule), and holds also when the
 * disk is full or tccld is killed. */
#include "tccld/journal/losses.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"

#define LINE                                                                                       \
    "tccl-records 1 pending %019" PRId64 " lost %019" PRId64 " first %019" PRId64                  \
    " last %019" PRId64 "\n"
enum { SIZE = 128 };

static void write_line(const struct losses *losses)
{
    char line[SIZE];
    int size = snprintf(line, sizeof(line), LINE, losses->pending, losses->count, losses->first,
                        losses->last);
    if (losses->fd >= 0 && pwrite(losses->fd, line, (size_t)size, 0) != size)
        return; /* the numbers in memory hold all the same */
}

static void read_line(struct losses *losses)
{
    struct losses found = {0};
    char line[SIZE] = "";
    if (pread(losses->fd, line, sizeof(line) - 1, 0) <= 0 ||
        sscanf(line,
               "tccl-records 1 pending %" SCNd64 " lost %" SCNd64 " first %" SCNd64
               " last %" SCNd64,
               &found.pending, &found.count, &found.first, &found.last) != 4 ||
        found.pending < 0 || found.count < 0)
        return;
    found.fd = losses->fd;
    *losses = found;
}

static void add_lost(struct losses *losses, int64_t count, int64_t now)
{
    if (losses->count == 0)
        losses->first = now;
    losses->count += count;
    losses->last = now;
}

int64_t losses_open(struct losses *losses, const char *path, int64_t now)
{
    *losses = (struct losses){.fd = tccl_open_own(path, O_RDWR | O_CREAT, 0600, NULL)};
    if (losses->fd >= 0)
        read_line(losses);
    int64_t lost = losses->pending;
    losses->pending = 0;
    if (lost > 0)
        add_lost(losses, lost, now);
    write_line(losses);
    return lost;
}

void losses_close(struct losses *losses)
{
    if (losses->fd >= 0)
        close(losses->fd);
    losses->fd = -1;
}

void losses_pend(struct losses *losses, int change)
{
    losses->pending += change;
    write_line(losses);
}

void losses_count(struct losses *losses, int64_t now)
{
    losses->pending--;
    add_lost(losses, 1, now);
    write_line(losses);
}
