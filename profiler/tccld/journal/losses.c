/* A ledger of one line, whose length never changes: it is written in place whenever a record comes
 * or is safe, without waiting for a disk (RunDir is in memory as a rule), and holds also when the
 * disk is full or tccld is killed. */
#include "tccld/journal/journal-internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fileio.h"

#define LINE                                                                                       \
    "tccl-records 1 ledger %s pending %019" PRId64 " lost %019" PRId64 " first %019" PRId64        \
    " last %019" PRId64 "\n"
enum { SIZE = 160 };

struct writing {
    int fd, size;
    char line[SIZE];
};

static void put_line(void *task)
{
    const struct writing *writing = task;
    if (pwrite(writing->fd, writing->line, (size_t)writing->size, 0) != writing->size)
        return; /* the numbers in memory hold all the same */
}

static void write_line(const struct losses *losses)
{
    struct writing writing = {.fd = losses->fd};
    writing.size = snprintf(writing.line, sizeof(writing.line), LINE, losses->ledger,
                            losses->pending, losses->count, losses->first, losses->last);
    if (losses->fd >= 0)
        run_dir_do(losses->run_dir, put_line, NULL, &writing, sizeof(writing), NULL);
}

static void read_line(struct losses *losses)
{
    struct losses found = {0};
    char line[SIZE] = "";
    if (pread(losses->fd, line, sizeof(line) - 1, 0) <= 0 ||
        sscanf(line,
               "tccl-records 1 ledger %16[0-9a-f] pending %" SCNd64 " lost %" SCNd64
               " first %" SCNd64 " last %" SCNd64,
               found.ledger, &found.pending, &found.count, &found.first, &found.last) != 5 ||
        strlen(found.ledger) != LOSSES_LEDGER || found.pending < 0 || found.count < 0)
        return;
    found.fd = losses->fd;
    found.run_dir = losses->run_dir;
    *losses = found;
}

static void add_lost(struct losses *losses, int64_t count, int64_t now)
{
    if (losses->count == 0)
        losses->first = now;
    losses->count += count;
    losses->last = now;
}

int64_t losses_open(struct losses *losses, struct run_dir *run_dir, const char *path, int64_t now)
{
    *losses = (struct losses){.run_dir = run_dir,
                              .fd = tccl_open_own(path, O_RDWR | O_CREAT, 0600, NULL)};
    if (losses->fd >= 0)
        read_line(losses);
    if (!losses->ledger[0]) {
        uint64_t number = 0;
        if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
            number = (uint64_t)tccl_now_us();
        snprintf(losses->ledger, sizeof(losses->ledger), "%016" PRIx64, number);
    }
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

void losses_count(struct losses *losses, int64_t count, int pending, int64_t now)
{
    losses->pending -= pending;
    add_lost(losses, count, now);
    write_line(losses);
}
