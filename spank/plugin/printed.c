/* printed.c: the file is a table of fixed size for the lines of all jobs, so nothing has to be
 * removed after a job: the hash of a line says in which row it is, and in a full row a new line
 * takes the place of the oldest. A line is found only under the number of its job, so no user can
 * silence another's. The file is root's: it is opened in init_post_opt, and used in user_init with
 * the rights of the user. */
#include "plugin/plugin.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fileio.h"
#include "base/hash.h"

enum { ROWS = 512, LINES = 8 /* in a row */, LOCK_TRIES = 20 /* 1 ms each */ };

struct printed {
    uint32_t job, restart;
    uint64_t hash; /* of cluster and line */
};

int printed_open(const char *run_dir)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/printed", run_dir) >= PATH_MAX)
        return -1;
    return tccl_open_own(path, O_RDWR | O_CREAT, 0600, NULL);
}

/* Steps that start together ask at the same time; the lock is held for microseconds. */
static bool lock(int fd)
{
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        poll(NULL, 0, 1);
    }
    return false;
}

/* Is it in its row? If not, it is put in front. */
static bool find_or_put(int fd, const struct printed *entry)
{
    struct printed row[LINES] = {0};
    off_t at = (off_t)((entry->hash ^ entry->job) % ROWS * sizeof(row));
    if (pread(fd, row, sizeof(row), at) < 0)
        return false;
    for (int i = 0; i < LINES; i++)
        if (memcmp(&row[i], entry, sizeof(*entry)) == 0)
            return true;
    memmove(row + 1, row, sizeof(row) - sizeof(*row));
    row[0] = *entry;
    ssize_t put = pwrite(fd, row, sizeof(row), at); /* else it is printed again */
    (void)put;
    return false;
}

bool printed_before(int fd, const struct tccl_step_key *key, const char *line)
{
    char text[TCCL_KEY_CLUSTER + 2 + 2048];
    int size = snprintf(text, sizeof(text), "%s\n%s", key->cluster, line);
    size_t used = (size_t)size < sizeof(text) ? (size_t)size : sizeof(text) - 1;
    struct printed entry = (struct printed){key->job, key->restart, tccl_hash64(text, used)};
    if (fd < 0 || !lock(fd))
        return false;
    bool before = find_or_put(fd, &entry);
    flock(fd, LOCK_UN);
    return before && key->run == 0;
}
