/* folder.c: root goes to a folder without following what others have put in the way, and acts there
 * as its owner: with that user's rights to files (setfsuid) it can do no more than the user could.
 */
#include "base/fileio.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { FOLDER = O_PATH | O_DIRECTORY | O_CLOEXEC, LINKS = 40, NOGROUP = 65534 };

/* setfsuid says nothing: who we are now does. Returns 0, or -1. */
static int act_as(uid_t uid, gid_t gid)
{
    setfsgid(gid);
    setfsuid(uid);
    return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid ? 0 : -1;
}

/* Root's groups may have rights that a user has not. By the system call, as libc would change all
 * threads. They come back when the folder is left. Returns 0, or -1. */
static int drop_groups(struct tccl_folder *folder)
{
    int count = folder->groups ? 0 : getgroups(0, NULL);
    if (count <= 0)
        return count;
    folder->groups = malloc((size_t)count * sizeof(*folder->groups));
    folder->n_groups = folder->groups ? getgroups(count, folder->groups) : -1;
    if (folder->n_groups > 0 && syscall(SYS_setgroups, (size_t)0, NULL) == 0)
        return 0;
    free(folder->groups);
    folder->groups = NULL;
    return -1;
}

/* A user's group would have to be looked up, and the folder's may be one that he is not in. */
static void become(struct tccl_folder *folder, uid_t uid)
{
    if (folder->looks) {
        folder->uid = uid;
        return;
    }
    bool kept = uid != 0 && drop_groups(folder) != 0;
    folder->denied = act_as(uid, uid == 0 ? getegid() : NOGROUP) != 0 || kept;
    folder->uid = (uid_t)setfsuid((uid_t)-1);
}

/* May others than root put something there in the place of something else? */
static bool is_open(const struct stat *status)
{
    bool group = (status->st_mode & S_IWGRP) && status->st_gid != 0;
    return (group || status->st_mode & S_IWOTH) && !(status->st_mode & S_ISVTX);
}

static void become_owner(struct tccl_folder *folder)
{
    struct stat status;
    if (!folder->careful || folder->bound)
        return;
    if (fstat(folder->fd, &status) != 0) {
        folder->denied = true;
        return;
    }
    folder->others |= (status.st_uid != 0 && status.st_uid != folder->also) || is_open(&status);
    become(folder, status.st_uid);
}

/* Takes the next name of the way. Returns 0, or -1 with errno. */
static int next_name(struct tccl_folder *folder)
{
    const char *at = folder->rest + strspn(folder->rest, "/");
    size_t length = strcspn(at, "/");
    if (length > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder->name, at, length);
    folder->name[length] = '\0';
    memmove(folder->rest, at + length, strlen(at + length) + 1);
    return 0;
}

static void move_to(struct tccl_folder *folder, int fd)
{
    close(folder->fd);
    folder->fd = fd;
    become_owner(folder);
}

/* Puts what the link says before the rest of the way. Returns 0, or -1 with errno. */
static int put_before(struct tccl_folder *folder, int link)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(link, "", target, sizeof(target));
    if (length < 0)
        return -1;
    if (length == 0 || (size_t)length + strlen(folder->rest) + 2 > sizeof(folder->rest) ||
        ++folder->links > LINKS) {
        errno = ELOOP;
        return -1;
    }
    memmove(folder->rest + length + 1, folder->rest, strlen(folder->rest) + 1);
    folder->rest[length] = '/';
    memcpy(folder->rest, target, (size_t)length);
    if (target[0] != '/')
        return next_name(folder);
    int fd = open("/", FOLDER);
    if (fd < 0)
        return -1;
    move_to(folder, fd);
    return next_name(folder);
}

/* Links in /proc lead where no name does. */
static bool in_proc(const struct tccl_folder *folder)
{
    struct statfs status;
    return fstatfs(folder->fd, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

/* The name is that of a link. Whose it is decides as whom it is followed. Returns 0, or -1 with
 * errno. */
static int follow(struct tccl_folder *folder)
{
    struct stat above, link;
    cleanup_close int fd = openat(folder->fd, folder->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &link) != 0 || fstat(folder->fd, &above) != 0)
        return -1;
    if (!S_ISLNK(link.st_mode)) {
        errno = ENOTDIR;
        return -1;
    }
    if (above.st_uid == 0 && link.st_uid == 0 && (above.st_mode & 022) && link.st_nlink != 1) {
        errno = ELOOP; /* one of root's from elsewhere, maybe */
        return -1;
    }
    if (!folder->bound && (above.st_uid != 0 || link.st_uid != 0)) {
        if (above.st_uid == 0)
            become(folder, link.st_uid);
        folder->bound = true;
        folder->others |= folder->uid == 0 || folder->uid != folder->also;
    }
    return put_before(folder, fd);
}

static int open_name(const struct tccl_folder *folder)
{
    bool plain = !folder->careful || in_proc(folder);
    return openat(folder->fd, folder->name, FOLDER | (plain ? 0 : O_NOFOLLOW));
}

/* Goes into the folder of that name. Returns 0, or -1 with errno. */
static int step(struct tccl_folder *folder, mode_t make)
{
    int next = open_name(folder);
    if (next < 0 && errno == ENOENT && make) {
        if (folder->denied) {
            errno = EPERM;
            return -1;
        }
        if (mkdirat(folder->fd, folder->name, make) != 0 && errno != EEXIST)
            return -1;
        next = open_name(folder);
    }
    if (next < 0)
        return folder->careful && (errno == ENOTDIR || errno == ELOOP) ? follow(folder) : -1;
    move_to(folder, next);
    return next_name(folder);
}

static int walk(struct tccl_folder *folder, mode_t make)
{
    while (folder->rest[strspn(folder->rest, "/")])
        if (step(folder, make) != 0)
            return -1;
    return 0;
}

/* Returns 0, or -1 with errno. */
static int reach_from(struct tccl_folder *folder, const char *path, mode_t make)
{
    if (strlen(path) >= sizeof(folder->rest)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(folder->rest, path);
    folder->fd = open(path[0] == '/' ? "/" : ".", FOLDER);
    if (folder->fd < 0)
        return -1;
    become_owner(folder);
    return next_name(folder) != 0 ? -1 : walk(folder, make);
}

static int reach(struct tccl_folder *folder, const char *path, mode_t make, uid_t also)
{
    *folder = (struct tccl_folder){.fd = -1, .careful = geteuid() == 0, .also = also};
    return reach_from(folder, path, make);
}

int tccl_folder_fail(const struct tccl_folder *folder, struct tccl_error *err, const char *path,
                     const char *what)
{
    int saved = errno;
    if (folder->denied)
        tccl_fail(err,
                  "%s: %s: root has to do this as the folder's owner, and lacks CAP_SETUID and "
                  "CAP_SETGID: give it both",
                  path, what);
    else if (folder->careful && folder->uid != 0)
        tccl_fail(err, "%s: %s: %s (as uid %u, the owner of that folder or link)", path, what,
                  strerror(saved), folder->uid);
    else
        tccl_fail(err, "%s: %s: %s", path, what, strerror(saved));
    errno = saved;
    return -1;
}

int tccl_folder_enter(struct tccl_folder *folder, const char *path, const char *what,
                      struct tccl_error *err)
{
    if (reach(folder, path, 0, 0) != 0)
        return tccl_folder_fail(folder, err, path, what);
    if (!folder->denied)
        return 0;
    errno = EPERM;
    return tccl_folder_fail(folder, err, path, what);
}

int tccl_make_folder(const char *path, mode_t mode, struct tccl_error *err)
{
    cleanup_leave struct tccl_folder folder;
    char whole[PATH_MAX + 4], part[PATH_MAX];
    snprintf(whole, sizeof(whole), "%s/.", path);
    if (reach(&folder, whole, mode, 0) == 0)
        return 0;
    size_t rest = folder.links ? strlen("/.") : strlen(folder.rest), length = strlen(whole);
    snprintf(part, sizeof(part), "%.*s", (int)(length > rest ? length - rest : length), whole);
    return tccl_folder_fail(&folder, err, part, "the folder can't be made");
}

void tccl_folder_leave(struct tccl_folder *folder)
{
    int saved = errno;
    if (folder->careful && !folder->looks)
        act_as(0, getegid());
    if (folder->groups) /* if that fails, the thread stays without: it may do less */
        syscall(SYS_setgroups, (size_t)folder->n_groups, folder->groups);
    free(folder->groups);
    folder->groups = NULL;
    if (folder->fd >= 0)
        close(folder->fd);
    errno = saved;
}

int tccl_folder_sync(const struct tccl_folder *folder)
{
    cleanup_close int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -1 : fsync(fd);
}

static int check_own(const struct tccl_folder *folder, int fd, const char *path,
                     struct tccl_error *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return tccl_folder_fail(folder, err, path, "can't be opened");
    errno = EPERM;
    if (!S_ISREG(status.st_mode))
        return tccl_fail(err, "%s: is not a regular file", path);
    if (folder->careful && status.st_uid != folder->uid)
        return tccl_fail(err,
                         "%s: belongs to uid %u, and its folder to uid %u: root opens it only if "
                         "both have one owner: chown it, or remove it",
                         path, status.st_uid, folder->uid);
    if (folder->careful && status.st_nlink != 1)
        return tccl_fail(err,
                         "%s: has another name (a hard link), and may be anybody's file: "
                         "replace it by a copy",
                         path);
    return 0;
}

int tccl_folder_open(const struct tccl_folder *folder, const char *path, int flags, mode_t mode,
                     struct tccl_error *err)
{
    flags |= O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    cleanup_close int fd = openat(folder->fd, folder->name, flags, mode);
    if (fd < 0)
        return tccl_folder_fail(folder, err, path, "can't be opened");
    if (check_own(folder, fd, path, err) != 0)
        return -1;
    int opened = fd;
    fd = -1;
    return opened;
}

int tccl_folder_check_link(const struct tccl_folder *folder, const struct stat *link,
                           const char *path, struct tccl_error *err)
{
    struct stat above;
    if (!folder->careful)
        return 0;
    if (fstat(folder->fd, &above) != 0)
        return tccl_folder_fail(folder, err, path, "can't be looked at");
    bool brought = (above.st_mode & 022) && link->st_nlink != 1;
    bool loose = above.st_uid == 0 && (brought || is_open(&above));
    if ((link->st_uid == 0 || link->st_uid == folder->uid) && !loose)
        return 0;
    tccl_fail(err,
              "%s: is a link or a pipe, and may be of somebody else (it belongs to uid %u, its "
              "folder to uid %u): remove it, or write elsewhere",
              path, link->st_uid, above.st_uid);
    errno = EPERM;
    return -1;
}

int tccl_open_own(const char *path, int flags, mode_t mode, struct tccl_error *err)
{
    cleanup_leave struct tccl_folder folder;
    if (tccl_folder_enter(&folder, path, "can't be opened", err) != 0)
        return -1;
    return tccl_folder_open(&folder, path, flags, mode, err);
}

/* Returns 0 with what is there, all links followed, or -1 with errno. */
static int find_file(struct tccl_folder *folder, bool *plain, struct stat *status)
{
    for (;;) {
        *plain = !folder->careful || in_proc(folder);
        if (fstatat(folder->fd, folder->name, status, *plain ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
            return -1;
        if (!S_ISLNK(status->st_mode))
            return 0;
        if (follow(folder) != 0 || walk(folder, 0) != 0)
            return -1;
    }
}

/* Root that can't become the owner could read what he may not, and his links lead there. So only
 * what he may: his own file, or one that all may read. Returns 0, or -1 with errno. */
static int check_denied(const struct tccl_folder *folder, const struct stat *file)
{
    struct stat above;
    if (!folder->denied)
        return 0;
    if (fstat(folder->fd, &above) == 0 && !folder->bound && file->st_nlink == 1 &&
        (file->st_uid == above.st_uid || file->st_mode & S_IROTH))
        return 0;
    errno = EPERM;
    return -1;
}

int tccl_open_regular(const char *path, struct tccl_error *err)
{
    cleanup_leave struct tccl_folder folder;
    struct stat status;
    bool plain;
    if (reach(&folder, path, 0, 0) != 0 || find_file(&folder, &plain, &status) != 0 ||
        check_denied(&folder, &status) != 0)
        return tccl_folder_fail(&folder, err, path, "can't be read");
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (plain ? 0 : O_NOFOLLOW);
    int fd = S_ISREG(status.st_mode) ? openat(folder.fd, folder.name, flags) : -1;
    if (fd < 0 && S_ISREG(status.st_mode))
        return tccl_folder_fail(&folder, err, path, "can't be read");
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        check_denied(&folder, &status) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    tccl_fail(err, "%s: is not a regular file", path);
    errno = EINVAL;
    return -1;
}

/* looks: as one who is not root. */
static int check_whose(const char *path, uid_t also, bool looks, struct tccl_error *err)
{
    char whole[PATH_MAX + 4];
    cleanup_leave struct tccl_folder folder = {
        .fd = -1, .careful = looks || geteuid() == 0, .looks = looks, .also = also};
    snprintf(whole, sizeof(whole), "%s/.", path);
    if (reach_from(&folder, whole, 0) != 0)
        return looks ? tccl_fail(err, "%s: can't be looked at: %s", path, strerror(errno))
                     : tccl_folder_fail(&folder, err, path, "can't be used");
    if (folder.others)
        return tccl_fail(err,
                         "%s: others than root may change it, or a folder above it: "
                         "make them root's, and writable by root alone",
                         path);
    return 0;
}

int tccl_folder_check_own(const char *path, uid_t also, struct tccl_error *err)
{
    return check_whose(path, also, false, err);
}

int tccl_folder_check_roots(const char *path, uid_t also, struct tccl_error *err)
{
    return check_whose(path, also, geteuid() != 0, err);
}
