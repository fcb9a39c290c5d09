/* Putting an exported profile into the cache, in one step. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "profile/cache-internal.h"
#include "profile/exchange.h"

static const char prefix[] = ".import.";

/* Reads a stream to its end. */
static int read_stream(FILE *in, char **text, size_t *size, struct tccl_error *err)
{
    size_t room = 1 << 16, have = 0;
    cleanup_free char *data = malloc(room);

    while (data && have <= TCCL_EXCHANGE_BYTES) {
        size_t got = fread(data + have, 1, room - have - 1, in);
        have += got;
        if (got == 0)
            break;
        if (have + 1 < room)
            continue;
        char *larger = realloc(data, room *= 2);
        if (!larger)
            return tccl_fail(err, "standard input: out of memory");
        data = larger;
    }
    if (!data || ferror(in))
        return tccl_fail(err, "standard input: %s", data ? strerror(errno) : "out of memory");
    if (have > TCCL_EXCHANGE_BYTES)
        return tccl_fail(err, "standard input: has more than %d MiB", TCCL_EXCHANGE_BYTES >> 20);
    data[have] = '\0';
    *text = tccl_steal(data);
    *size = have;
    return 0;
}

int tccl_exchange_load(const char *path, char **text, size_t *size, struct tccl_error *err)
{
    if (strcmp(path, "-") == 0)
        return read_stream(stdin, text, size, err);
    return tccl_read_file(path, TCCL_EXCHANGE_BYTES, text, size, err);
}

/* Removes the files of a folder, and the folder; not what a link leads to. */
static void remove_flat(int parent, const char *name)
{
    struct dirent **names = NULL;
    cleanup_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int count = fd < 0 ? -1 : scandirat(fd, ".", &names, NULL, NULL);

    for (int i = 0; i < count; i++) {
        unlinkat(fd, names[i]->d_name, 0);
        free(names[i]);
    }
    free(names);
    if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno == ENOTDIR)
        unlinkat(parent, name, 0);
}

void tccl_exchange_remove(const char *folder)
{
    cleanup_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0)
        remove_flat(fd, "chains");
    remove_flat(AT_FDCWD, folder);
}

/* Takes the cache for an import. Returns a descriptor that holds the lock, or -1 with err. */
static int lock_cache(const char *cache_dir, struct tccl_error *err)
{
    cleanup_close int fd = -1;

    if (tccl_make_folder(cache_dir, 0755, err) < 0)
        return -1;
    fd = open(cache_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tccl_fail(err, "%s: %s", cache_dir, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return tccl_fail(err, "%s: another import is at work: try again later", cache_dir);
    int held = fd;
    fd = -1;
    return held;
}

static int is_left_over(const struct dirent *entry)
{
    return strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
}

/* What killed imports left; nobody else is at work. */
static void sweep(const char *cache_dir)
{
    struct dirent **names = NULL;
    char path[PATH_MAX];
    int count = scandir(cache_dir, &names, is_left_over, NULL);

    for (int i = 0; i < count; i++) {
        if (snprintf(path, sizeof(path), "%s/%s", cache_dir, names[i]->d_name) < PATH_MAX)
            tccl_exchange_remove(path);
        free(names[i]);
    }
    free(names);
}

/* Puts the new folder in the place of the old one, which then has the new one's name. */
static int exchange(const char *fresh, const char *place, struct tccl_error *err)
{
    char aside[PATH_MAX];

    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, place, RENAME_EXCHANGE) == 0)
        return 0;
    /* Some file systems can't: then there is no profile for a moment. */
    if (errno != EINVAL && errno != ENOSYS)
        return tccl_fail(err, "%s: can't be replaced: %s", place, strerror(errno));
    snprintf(aside, sizeof(aside), "%.*s.old", FOLDER_MAX, place);
    if (rename(place, aside) < 0)
        return tccl_fail(err, "%s: can't be replaced: %s", place, strerror(errno));
    if (rename(fresh, place) < 0) {
        tccl_fail(err, "%s: can't be replaced: %s", place, strerror(errno));
        rename(aside, place);
        return -1;
    }
    return rename(aside, fresh) == 0 ? 0 : tccl_fail(err, "%s: %s", aside, strerror(errno));
}

/* The old one may not be in the middle of a run. */
static int replace(const char *fresh, const char *place, struct tccl_error *err)
{
    char path[PATH_MAX];

    tccl_profile_path(place, SETS, path);
    struct tccl_setlog *log = tccl_setlog_open(path, "", err);
    if (!log)
        return -1;
    int rc = exchange(fresh, place, err);
    tccl_setlog_close(log);
    return rc;
}

static bool is_profile(const char *folder)
{
    char path[PATH_MAX];

    tccl_profile_path(folder, ABOUT, path);
    if (access(path, F_OK) == 0)
        return true;
    tccl_profile_path(folder, SETS, path);
    return access(path, F_OK) == 0;
}

static int settle(const char *fresh, const char *cache_dir, bool force, struct tccl_exchanged *made,
                  struct tccl_error *err)
{
    char place[PATH_MAX];

    snprintf(place, sizeof(place), "%s/%s", cache_dir, made->id);
    made->replaced = is_profile(place);
    if (made->replaced && !force)
        return tccl_fail(err,
                         "%s: there is a profile of this machine already: --force replaces it, or "
                         "remove it first",
                         place);
    if (chmod(fresh, 0755) < 0)
        return tccl_fail(err, "%s: %s", fresh, strerror(errno));
    if (made->replaced)
        return replace(fresh, place, err);
    if (rename(fresh, place) == 0)
        return 0;
    return tccl_fail(err, "%s: can't be made: %s", place, strerror(errno));
}

int tccl_exchange_import(const char *text, size_t size, const char *cache_dir, bool force,
                         struct tccl_exchanged *made, struct tccl_error *err)
{
    char fresh[PATH_MAX];

    if (snprintf(fresh, sizeof(fresh), "%s/%sXXXXXX", cache_dir, prefix) >=
        FOLDER_MAX - TCCL_HASH_HEX)
        return tccl_fail(err, "%.40s…: the path of the cache is too long", cache_dir);
    cleanup_close int lock = lock_cache(cache_dir, err);
    if (lock < 0)
        return -1;
    sweep(cache_dir);
    if (!mkdtemp(fresh))
        return tccl_fail(err, "%s: %s", cache_dir, strerror(errno));
    int rc = tccl_exchange_unpack(text, size, fresh, made, err);
    if (rc == 0)
        rc = settle(fresh, cache_dir, force, made, err);
    if (rc < 0 || made->replaced)
        tccl_exchange_remove(fresh);
    if (rc == 0 && fsync(lock) < 0)
        rc = tccl_fail(err, "%s: %s", cache_dir, strerror(errno));
    return rc;
}
