/* hand-over.c: root goes through folders to which the user has no right yet, or only a part. In a
 * folder of the user's, what root owns may be a second name of anybody's file, so files are given
 * in folders of root's alone, and a folder after what is in it. A folder of root's can't be moved
 * or have a second name. */
#include "tccld/rights/monitor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "tccld/main/daemon.h"

enum { DEEPEST = 8 };

struct heir {
    uid_t uid;
    gid_t gid;
};

/* A group that root has given a file (the job's, of a plan) stays. */
static gid_t group_of(const struct heir *heir, const struct stat *stat)
{
    return stat->st_gid == 0 ? heir->gid : (gid_t)-1;
}

static int give_folder(int parent, const char *name, const struct heir *heir, int depth);

/* In a folder of root's alone (roots), or of the heir's. Returns 0, or -1 with errno. */
static int give_entry(int folder, const char *name, bool roots, const struct heir *heir, int depth)
{
    struct stat stat;
    if (fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -1;
    if (S_ISDIR(stat.st_mode))
        return give_folder(folder, name, heir, depth + 1);
    if (!roots || stat.st_uid != 0 || stat.st_nlink != 1)
        return 0;
    return fchownat(folder, name, heir->uid, group_of(heir, &stat), AT_SYMLINK_NOFOLLOW);
}

static int give_entries(int fd, bool roots, const struct heir *heir, int depth)
{
    cleanup_dir DIR *folder = fdopendir(dup(fd));
    const struct dirent *entry;
    int failed = folder ? 0 : -1;
    while (folder && (entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            give_entry(fd, entry->d_name, roots, heir, depth) != 0)
            failed = -1;
    return failed;
}

/* Returns 0, also of a folder that is left to somebody else; or -1 with errno. */
static int give_folder(int parent, const char *name, const struct heir *heir, int depth)
{
    struct stat stat;
    cleanup_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || depth > DEEPEST || fstat(fd, &stat) != 0)
        return -1;
    bool roots = stat.st_uid == 0 && !(stat.st_mode & (S_IWGRP | S_IWOTH));
    if (!roots && stat.st_uid != heir->uid)
        return 0;
    if (give_entries(fd, roots, heir, depth) != 0)
        return -1;
    return roots ? fchown(fd, heir->uid, group_of(heir, &stat)) : 0;
}

/* tccl.conf may name a folder that is not tccld's alone, such as /run: nothing of it is given away
 * then. */
static bool is_tcclds(const char *name)
{
    static const char *const begin[] = {"tccld.",  "records",   "slurm-gpus", "slurmd-G",    "hung",
                                        "printed", "outbox.db", "metrics",    "machine.json"};
    enum { ID = 32 };
    for (size_t i = 0; i < sizeof(begin) / sizeof(*begin); i++)
        if (strncmp(name, begin[i], strlen(begin[i])) == 0)
            return true;
    size_t digits = strspn(name, "0123456789");
    return (digits > 0 && name[digits] == '.') || strspn(name, "0123456789abcdef") == ID;
}

/* Is there something else? Its name; "": no. */
static void find_stranger(int parent, const char *name, char found[static NAME_MAX + 1])
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_dir DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    *found = '\0';
    while (folder && !*found && (entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !is_tcclds(entry->d_name))
            strcpy(found, entry->d_name);
}

static void give(const char *path, mode_t mode, const struct heir *heir)
{
    char above[PATH_MAX], stranger[NAME_MAX + 1];
    struct tccl_error err = {0};
    struct stat stat;
    snprintf(above, sizeof(above), "%s", path);
    char *slash = strrchr(above, '/');
    if (!slash || slash == above)
        return; /* of the root folder nothing is given away */
    *slash = '\0';
    if (access(path, F_OK) != 0 && tccl_make_folder(path, mode, &err) != 0)
        log_line("%s", err.text);
    if (lstat(path, &stat) != 0)
        return;
    if (tccl_folder_check_own(above, 0, &err) != 0) {
        if (stat.st_uid == 0)
            log_line("%s stays root's: %s", path, err.text);
        return;
    }
    cleanup_close int parent = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    find_stranger(parent, slash + 1, stranger);
    if (*stranger && stat.st_uid == 0)
        log_line("%s stays root's, as %s in it is not tccld's: choose another folder, or chown it "
                 "to uid %u",
                 path, stranger, heir->uid);
    else if (!*stranger && give_folder(parent, slash + 1, heir, 0) != 0)
        log_line("%s can't be given to uid %u: %s", path, heir->uid, strerror(errno));
}

void hand_over(const struct tccl_conf *conf, uid_t uid)
{
    const struct passwd *user = getpwuid(uid);
    struct heir heir = {.uid = uid, .gid = user ? user->pw_gid : (gid_t)uid};
    char socket[PATH_MAX];
    snprintf(socket, sizeof(socket), "%s", conf->socket);
    char *slash = strrchr(socket, '/');
    if (slash)
        *slash = '\0';
    give(conf->run_dir, 0711, &heir);
    give(conf->state_dir, 0711, &heir);
    give(conf->cache_dir, 0755, &heir);
    if (strcmp(socket, conf->run_dir) != 0)
        give(socket, 0711, &heir);
}
