/* fileio.c: files read within a bound and written whole. */
#include "base/fileio.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"

/* Reads until the end or until size bytes are there. Returns how many, or -1 with errno. */
static ssize_t read_all(int fd, char *data, size_t size)
{
    size_t have = 0;

    while (have < size) {
        ssize_t got = read(fd, data + have, size - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

/* Writes all bytes. Returns 0, or -1 with errno. */
static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t put = write(fd, data, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        data += put;
        size -= (size_t)put;
    }
    return 0;
}

/* As tccl_fail, with the meaning of errno at the end, which stays as it is. */
static int fail_errno(struct tccl_error *err, const char *path, const char *what)
{
    int saved = errno;

    tccl_fail(err, "%s: %s: %s", path, what, strerror(saved));
    errno = saved;
    return -1;
}

static int fail_as(int number, struct tccl_error *err, const char *path, const char *what)
{
    tccl_fail(err, "%s: %s", path, what);
    errno = number;
    return -1;
}

int tccl_read_file(const char *path, size_t max, char **data, size_t *size, struct tccl_error *err)
{
    struct stat status;

    /* O_NONBLOCK: a FIFO in the place of the file must not hold us up. */
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) < 0)
        return fail_errno(err, path, "can't be read");
    if (!S_ISREG(status.st_mode))
        return fail_as(EINVAL, err, path, "is not a regular file");
    if (status.st_size < 0 || (uintmax_t)status.st_size > max) {
        tccl_fail(err, "%s: has %jd bytes, more than the %zu allowed", path,
                  (intmax_t)status.st_size, max);
        errno = EFBIG;
        return -1;
    }
    size_t room = (size_t)status.st_size;
    cleanup_free char *buffer = malloc(room + 1);
    if (!buffer)
        return fail_errno(err, path, "can't be read");
    ssize_t got = read_all(fd, buffer, room);
    if (got < 0)
        return fail_errno(err, path, "can't be read");
    buffer[got] = '\0';
    *size = (size_t)got;
    *data = tccl_steal(buffer);
    return 0;
}

/* Makes changes to the names in the file's folder last. Returns 0, or -1 with errno. */
static int sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');

    if (!slash)
        strcpy(folder, ".");
    else if (slash == path)
        strcpy(folder, "/");
    else
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    cleanup_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -1 : fsync(fd);
}

/* Fills the new file and puts it in the place of the old one. Returns 0, or -1 with errno. */
static int fill_and_rename(int fd, const char *temporary, const char *path, mode_t mode,
                           const void *data, size_t size)
{
    if (fchmod(fd, mode) < 0 || write_all(fd, data, size) < 0 || fsync(fd) < 0)
        return -1;
    return rename(temporary, path);
}

/* The owner of the first part of the path that is not root's; 0: there is none, as far as it is
 * there. */
static uid_t owner_of(const char *path, gid_t *gid)
{
    char part[PATH_MAX];
    struct stat status;

    *gid = 0;
    if (strlen(path) >= sizeof(part))
        return 0;
    if (path[0] != '/' && lstat(".", &status) == 0 && status.st_uid != 0) {
        *gid = status.st_gid;
        return status.st_uid;
    }
    strcpy(part, path);
    for (char *at = part; *at; at++) {
        bool end = at[1] == '/' || at[1] == '\0';
        char kept = at[1];
        if (!end || *at == '/')
            continue;
        at[1] = '\0';
        if (lstat(part, &status) != 0)
            return 0;
        at[1] = kept;
        *gid = status.st_gid;
        if (status.st_uid != 0)
            return status.st_uid;
    }
    return *gid = 0;
}

static uid_t begin_as(uid_t uid, gid_t gid)
{
    if (uid == 0)
        return (uid_t)-1;
    setfsgid(gid);
    return (uid_t)setfsuid(uid);
}

uid_t tccl_begin_as_owner(const char *path)
{
    gid_t gid = 0;
    uid_t uid = geteuid() == 0 ? owner_of(path, &gid) : 0;

    return begin_as(uid, gid);
}

void tccl_end_as_owner(uid_t before)
{
    if (before == (uid_t)-1)
        return;
    setfsuid(before);
    setfsgid(getegid());
}

/* Is that a link which only root can have put there? */
static bool is_link_of_root(int folder, const char *name)
{
    struct stat above, link;

    return fstat(folder, &above) == 0 && above.st_uid == 0 &&
           fstatat(folder, name, &link, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(link.st_mode) &&
           link.st_uid == 0;
}

/* The folder that the file is in, if all links on the way there are root's; else -1. */
static int open_folder_of(const char *path)
{
    enum { HOW = O_PATH | O_DIRECTORY | O_CLOEXEC };
    char part[PATH_MAX], *rest;

    if (strlen(path) >= sizeof(part))
        return -1;
    strcpy(part, path);
    char *end = strrchr(part, '/');
    int fd = open(path[0] == '/' ? "/" : ".", HOW);
    if (!end)
        return fd;
    *end = '\0';
    for (char *name = strtok_r(part, "/", &rest); fd >= 0 && name;
         name = strtok_r(NULL, "/", &rest)) {
        int next = openat(fd, name, HOW | O_NOFOLLOW);
        if (next < 0 && is_link_of_root(fd, name))
            next = openat(fd, name, HOW);
        close(fd);
        fd = next;
    }
    return fd;
}

/* path: where; as: its name in messages. */
static int write_file(const char *path, const char *as, mode_t mode, const void *data, size_t size,
                      struct tccl_error *err)
{
    char temporary[PATH_MAX];
    struct stat status;

    /* A device such as /dev/null must not become a file. */
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        return fail_as(EINVAL, err, as, "can't be written: is not a regular file");
    if (strlen(path) + sizeof ".XXXXXX" > sizeof(temporary))
        return fail_as(ENAMETOOLONG, err, as, "can't be written: the name is too long");
    snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
    cleanup_close int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return fail_errno(err, as, "can't be written");
    if (fill_and_rename(fd, temporary, path, mode, data, size) < 0) {
        fail_errno(err, as, "can't be written");
        int saved = errno;
        unlink(temporary);
        errno = saved;
        return -1;
    }
    if (sync_folder_of(path) < 0)
        return fail_errno(err, as, "is written, but may not outlast a crash");
    return 0;
}

/* In the folder that was reached without links of others, which is nobody's to exchange, as its
 * owner: that may be root again, below a folder of somebody else. */
static int write_in_folder(int folder, const char *path, mode_t mode, const void *data, size_t size,
                           struct tccl_error *err)
{
    char place[PATH_MAX + 32];
    const char *slash = strrchr(path, '/');
    struct stat status;

    if (fstat(folder, &status) < 0)
        return fail_errno(err, path, "can't be written");
    snprintf(place, sizeof(place), "/proc/self/fd/%d/%s", folder, slash ? slash + 1 : path);
    uid_t before = begin_as(status.st_uid, status.st_gid);
    int rc = write_file(place, path, mode, data, size, err), saved = errno;
    tccl_end_as_owner(before);
    errno = saved;
    return rc;
}

int tccl_write_file(const char *path, mode_t mode, const void *data, size_t size,
                    struct tccl_error *err)
{
    bool pinned = geteuid() == 0 && access("/proc/self/fd", X_OK) == 0;
    cleanup_close int folder = pinned ? open_folder_of(path) : -1;

    if (folder >= 0)
        return write_in_folder(folder, path, mode, data, size, err);
    uid_t before = tccl_begin_as_owner(path);
    int rc = write_file(path, path, mode, data, size, err), saved = errno;
    tccl_end_as_owner(before);
    errno = saved;
    return rc;
}

int tccl_remove_file(const char *path)
{
    if (geteuid() != 0)
        return unlink(path);
    cleanup_close int folder = open_folder_of(path);
    const char *slash = strrchr(path, '/');
    struct stat status;

    if (folder < 0 || fstat(folder, &status) < 0)
        return -1;
    uid_t before = begin_as(status.st_uid, status.st_gid);
    int rc = unlinkat(folder, slash ? slash + 1 : path, 0), saved = errno;
    tccl_end_as_owner(before);
    errno = saved;
    return rc;
}

/* To what is there and can't be replaced, such as a device or a pipe. */
static int write_into(const char *path, const void *data, size_t size, struct tccl_error *err)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write_all(fd, data, size) == 0 ? 0
                                                     : fail_errno(err, path, "can't be written");
}

/* The file that a link leads to; NULL: none, yet. By way of the open file, so that it is one which
 * the kernel lets us write through that link: in a folder of everybody's it may be a trap. Returns
 * 0, or -1 with err. */
static int follow_link(const char *path, char **target, struct tccl_error *err)
{
    char self[64];

    *target = NULL;
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT || errno == EISDIR ? 0 : fail_errno(err, path, "can't be written");
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    *target = realpath(self, NULL);
    return *target ? 0 : fail_errno(err, path, "can't be written");
}

int tccl_write_output(const char *path, const void *data, size_t size, struct tccl_error *err)
{
    struct stat status;

    if (!path || strcmp(path, "-") == 0)
        return fwrite(data, 1, size, stdout) == size && fflush(stdout) == 0
                   ? 0
                   : fail_errno(err, "standard output", "can't be written");
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        return write_into(path, data, size, err);
    /* A link such as /dev/stdout stays one. */
    cleanup_free char *target = NULL;
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode) && follow_link(path, &target, err) < 0)
        return -1;
    return tccl_write_file(target ? target : path, 0644, data, size, err);
}

int tccl_print_output(const char *path,
                      int (*print)(FILE *out, const void *what, struct tccl_error *err),
                      const void *what, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return tccl_fail(err, "out of memory");
    int rc = print(out, what, err);
    bool lost = ferror(out) != 0;
    if ((fclose(out) != 0 || lost) && rc == 0)
        rc = tccl_fail(err, "out of memory");
    return rc == 0 ? tccl_write_output(path, text, size, err) : rc;
}

/* Makes one folder. Returns 0 (also if it is there), or -1 with errno. */
static int make_one(const char *path, mode_t mode)
{
    struct stat status;

    if (mkdir(path, mode) == 0)
        return 0;
    if (errno != EEXIST && errno != EROFS && errno != EACCES)
        return -1;
    int saved = errno;
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return 0;
        saved = ENOTDIR;
    }
    errno = saved;
    return -1;
}

static int make_folders(const char *path, mode_t mode, struct tccl_error *err)
{
    char part[PATH_MAX];

    if (strlen(path) >= sizeof(part))
        return fail_as(ENAMETOOLONG, err, path, "can't be made: the name is too long");
    strcpy(part, path);
    for (char *slash = part; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        if (make_one(part, mode) < 0)
            return fail_errno(err, part, "the folder can't be made");
        *slash = '/';
    }
    if (make_one(part, mode) < 0)
        return fail_errno(err, part, "the folder can't be made");
    return 0;
}

int tccl_make_folder(const char *path, mode_t mode, struct tccl_error *err)
{
    uid_t before = tccl_begin_as_owner(path);
    int rc = make_folders(path, mode, err), saved = errno;

    tccl_end_as_owner(before);
    errno = saved;
    return rc;
}

json_t *tccl_read_json(const char *path, size_t max, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size = 0;
    json_error_t where;

    if (tccl_read_file(path, max, &text, &size, err) < 0)
        return NULL;
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
    if (!json) {
        tccl_fail(err, "%s:%d:%d: not JSON: %s", path, where.line, where.column, where.text);
        errno = EINVAL;
    }
    return json;
}

int tccl_write_json(const char *path, mode_t mode, const json_t *json, struct tccl_error *err)
{
    cleanup_free char *text = json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    if (!text)
        return fail_as(ENOMEM, err, path, "can't be written: out of memory");
    size_t length = strlen(text);
    text[length] = '\n'; /* in the place of the NUL */
    return tccl_write_file(path, mode, text, length + 1, err);
}

int tccl_json_hash(const json_t *json, char hash[static TCCL_JSON_HASH])
{
    cleanup_free char *text =
        json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(12));
    if (!text)
        return -1;
    snprintf(hash, TCCL_JSON_HASH, "%016" PRIx64, tccl_hash64(text, strlen(text)));
    return 0;
}
