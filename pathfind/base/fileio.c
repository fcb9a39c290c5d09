/* fileio.c: files read within a bound and written whole. */
#include "base/fileio.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fields.h"
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

int tccl_write_all(int fd, const char *data, size_t size)
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
    cleanup_close int fd = tccl_open_regular(path, err);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) != 0)
        return fail_errno(err, path, "can't be read");
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

/* Makes a file of a name that is not taken: the file's own with six letters behind it, in
 * temporary. Returns its descriptor, or -1 with errno. */
static int make_temporary(const struct tccl_folder *folder, char temporary[static NAME_MAX + 16])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
    uint8_t random[6];
    for (int tries = 0; tries < 100; tries++) {
        if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
            return -1;
        size_t length = (size_t)sprintf(temporary, "%s.", folder->name);
        for (size_t i = 0; i < sizeof(random); i++)
            temporary[length + i] = letters[random[i] % 32];
        temporary[length + sizeof(random)] = '\0';
        int fd =
            openat(folder->fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* What is there and can't be replaced by a file, such as a device or a pipe. */
static bool is_special(const struct tccl_folder *folder)
{
    struct stat status;
    return fstatat(folder->fd, folder->name, &status, 0) == 0 && !S_ISREG(status.st_mode) &&
           !S_ISDIR(status.st_mode);
}

int tccl_write_file(const char *path, mode_t mode, const void *data, size_t size,
                    struct tccl_error *err)
{
    static const char what[] = "can't be written";
    cleanup_leave struct tccl_folder folder;
    char temporary[NAME_MAX + 16];
    if (tccl_folder_enter(&folder, path, what, err) != 0)
        return -1;
    if (is_special(&folder))
        return fail_as(EINVAL, err, path, "can't be written: is not a regular file");
    cleanup_close int fd = make_temporary(&folder, temporary);
    if (fd < 0)
        return tccl_folder_fail(&folder, err, path, what);
    if (fchmod(fd, mode) != 0 || tccl_write_all(fd, data, size) != 0 || fsync(fd) != 0 ||
        renameat(folder.fd, temporary, folder.fd, folder.name) != 0) {
        tccl_folder_fail(&folder, err, path, what);
        int saved = errno;
        unlinkat(folder.fd, temporary, 0);
        errno = saved;
        return -1;
    }
    if (tccl_folder_sync(&folder) != 0)
        return tccl_folder_fail(&folder, err, path, "is written, but may not outlast a crash");
    return 0;
}

int tccl_remove_file(const char *path, struct tccl_error *err)
{
    static const char what[] = "can't be removed";
    cleanup_leave struct tccl_folder folder;
    if (tccl_folder_enter(&folder, path, what, err) != 0)
        return -1;
    return unlinkat(folder.fd, folder.name, 0) == 0 ? 0
                                                    : tccl_folder_fail(&folder, err, path, what);
}

/* The file that a link leads to; NULL: none, yet. By way of the open file, so that it is one which
 * the kernel lets us write through that link: in a folder of everybody's it may be a trap. Returns
 * 0, or -1 with err. */
static int follow_link(const struct tccl_folder *folder, const char *path, char **target,
                       struct tccl_error *err)
{
    static const char what[] = "can't be written";
    char self[64];
    cleanup_close int fd =
        openat(folder->fd, folder->name, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT || errno == EISDIR ? 0 : tccl_folder_fail(folder, err, path, what);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    *target = realpath(self, NULL);
    return *target ? 0 : tccl_folder_fail(folder, err, path, what);
}

/* A pipe is not waited for until somebody reads from it, only while he does. Returns 1, or -1 with
 * err. */
static int put_special(const struct tccl_folder *folder, const char *path, const void *data,
                       size_t size, struct tccl_error *err)
{
    int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    cleanup_close int fd = openat(folder->fd, folder->name, flags);
    if (fd < 0 && errno == ENXIO)
        return fail_as(ENXIO, err, path, "can't be written: nobody reads from this pipe or device");
    if (fd < 0 || fcntl(fd, F_SETFL, 0) < 0 || tccl_write_all(fd, data, size) != 0)
        return tccl_folder_fail(folder, err, path, "can't be written");
    return 1;
}

/* Writes into what is there and is no file, or finds out where a link leads: one such as
 * /dev/stdout stays a link. Returns 1 if it has been written, 0 with *target, or -1 with err. */
static int write_special(const char *path, const void *data, size_t size, char **target,
                         struct tccl_error *err)
{
    cleanup_leave struct tccl_folder folder;
    struct stat status;
    if (tccl_folder_enter(&folder, path, "can't be written", err) != 0)
        return -1;
    if (fstatat(folder.fd, folder.name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return 0; /* writing the file finds the same, and says so */
    bool link = S_ISLNK(status.st_mode);
    if ((link || S_ISFIFO(status.st_mode)) &&
        tccl_folder_check_link(&folder, &status, path, err) != 0)
        return -1;
    if (is_special(&folder))
        return put_special(&folder, path, data, size, err);
    return link ? follow_link(&folder, path, target, err) : 0;
}

int tccl_write_output(const char *path, const void *data, size_t size, struct tccl_error *err)
{
    cleanup_free char *target = NULL;
    if (!path || strcmp(path, "-") == 0)
        return fwrite(data, 1, size, stdout) == size && fflush(stdout) == 0
                   ? 0
                   : fail_errno(err, "standard output", "can't be written");
    int rc = write_special(path, data, size, &target, err);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
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

json_t *tccl_read_json(const char *path, size_t max, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size = 0;
    json_error_t where;
    if (tccl_read_file(path, max, &text, &size, err) != 0)
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
    cleanup_free char *text = json_dumps(json, JSON_INDENT(1) | TCCL_JSON_DIGITS);
    if (!text)
        return fail_as(ENOMEM, err, path, "can't be written: out of memory");
    size_t length = strlen(text);
    text[length] = '\n'; /* in the place of the NUL */
    return tccl_write_file(path, mode, text, length + 1, err);
}

int tccl_json_hash(const json_t *json, char hash[static TCCL_JSON_HASH])
{
    cleanup_free char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | TCCL_JSON_DIGITS);
    if (!text)
        return -1;
    snprintf(hash, TCCL_JSON_HASH, "%016" PRIx64, tccl_hash64(text, strlen(text)));
    return 0;
}
