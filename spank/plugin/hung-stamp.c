/* hung-stamp.c: the time is that of the kernel since its start, which nobody sets; tccld removes
 * the note when it starts. A file of another user, or what is no file, says nothing. */
#include "plugin/plugin.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fileio.h"

static int stamp_path(const char *run_dir, char path[static PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/hung", run_dir) < PATH_MAX ? 0 : -1;
}

void hung_stamp_put(const char *run_dir, int64_t now)
{
    char path[PATH_MAX], text[32];
    int size = snprintf(text, sizeof(text), "%" PRId64 "\n", now);
    if (stamp_path(run_dir, path) == 0)
        tccl_write_file(path, 0644, text, (size_t)size, NULL);
}

void hung_stamp_remove(const char *run_dir)
{
    char path[PATH_MAX];
    if (stamp_path(run_dir, path) == 0)
        tccl_remove_file(path, NULL);
}

int64_t hung_stamp_age(const char *run_dir, int64_t now)
{
    char path[PATH_MAX], text[32] = "";
    struct stat stat_, folder;
    int64_t then;
    if (stamp_path(run_dir, path) != 0)
        return -1;
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &stat_) != 0 || stat(run_dir, &folder) != 0 ||
        !S_ISREG(stat_.st_mode) || (stat_.st_uid != geteuid() && stat_.st_uid != folder.st_uid) ||
        read(fd, text, sizeof(text) - 1) <= 0 || sscanf(text, "%" SCNd64, &then) != 1)
        return -1;
    return then <= now && now - then < HUNG_MS ? now - then : -1;
}
