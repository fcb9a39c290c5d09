/* shared-file.c: everybody may make files in /dev/shm, and their names can be guessed: the runtime
 * shim's is made ahead, after which nobody else can take its place. */
#include "tccld/rights/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { PATH = 96, TRIES = 8 };

static void name_file(const struct shared_file *file, char path[static PATH])
{
    snprintf(path, PATH, SHARED_FOLDER "/tccl-%u-%016" PRIx64 ".%d", file->uid, file->hash,
             file->index);
}

/* Whatever is there, a folder with something in it too. */
static void free_name(const char *path)
{
    char away[PATH + 8];
    if (unlink(path) == 0 || errno == ENOENT)
        return;
    snprintf(away, sizeof(away), "%s.XXXXXX", path);
    if (mkdtemp(away) && rename(path, away) != 0)
        rmdir(away);
}

void shared_file_make(const struct shared_file *file)
{
    char path[PATH];
    name_file(file, path);
    struct stat stat;
    if (lstat(path, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == file->uid &&
        stat.st_nlink == 1 && (stat.st_mode & 07777) == 0600)
        return;
    for (int tries = 0; tries < TRIES; tries++) {
        free_name(path);
        cleanup_close int fd =
            open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 && (fchmod(fd, 0600) != 0 || fchown(fd, file->uid, file->gid) != 0))
            unlink(path);
        if (fd >= 0 || errno != EEXIST)
            return;
    }
}

void shared_file_remove(const struct shared_file *file)
{
    char path[PATH];
    name_file(file, path);
    unlink(path);
}
