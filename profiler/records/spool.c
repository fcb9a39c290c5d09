/* spool.c: undelivered records, a file for each batch. */
#include "records/spool.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fileio.h"

#define HEAD "tccl-spool 1 "
enum {
    HEAD_SIZE = sizeof(HEAD) - 1 + 16 + 1, /* with checksum and end of line */
    FILE_MAX = 1 << 20,                    /* bytes of one file */
    FOLDER_MAX = PATH_MAX - 320,
};

struct tccl_spool {
    char folder[FOLDER_MAX];
    size_t count, bad;
    uintmax_t bytes;
    DIR *round; /* NULL between rounds */
};

static bool is_name(const char *text)
{
    return strlen(text) == TCCL_SPOOL_NAME - 1 &&
           strspn(text, "0123456789abcdef") == TCCL_SPOOL_NAME - 1;
}

/* NAME.XXXXXX, left by an interrupted write. */
static bool is_temporary(const char *text)
{
    return strspn(text, "0123456789abcdef") == TCCL_SPOOL_NAME - 1 &&
           text[TCCL_SPOOL_NAME - 1] == '.' && strlen(text) == TCCL_SPOOL_NAME + 6;
}

static void path_of(const struct tccl_spool *spool, const char *name, char path[static PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", spool->folder, name);
}

/* The size of a file in bytes, -1 if there is none. */
static intmax_t size_of(const struct tccl_spool *spool, const char *name)
{
    char path[PATH_MAX];
    struct stat status;
    path_of(spool, name, path);
    return lstat(path, &status) == 0 ? (intmax_t)status.st_size : -1;
}

/* Updates the counts when a file changed from one size to another (-1: absent). */
static void account(struct tccl_spool *spool, intmax_t before, intmax_t after)
{
    if (before >= 0) {
        spool->count--;
        spool->bytes -= (uintmax_t)before;
    }
    if (after >= 0) {
        spool->count++;
        spool->bytes += (uintmax_t)after;
    }
}

static int take_stock(struct tccl_spool *spool, struct tccl_error *err)
{
    char path[PATH_MAX];
    cleanup_dir DIR *dir = opendir(spool->folder);
    if (!dir)
        return tccl_fail(err, "%s: can't be read: %s", spool->folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));) {
        path_of(spool, entry->d_name, path);
        if (is_name(entry->d_name))
            account(spool, -1, size_of(spool, entry->d_name));
        else if (is_temporary(entry->d_name))
            unlink(path);
    }
    return 0;
}

static int count_bad(struct tccl_spool *spool, struct tccl_error *err)
{
    char path[PATH_MAX];
    path_of(spool, "bad", path);
    if (tccl_make_folder(path, 0700, err) != 0)
        return -1;
    cleanup_dir DIR *dir = opendir(path);
    if (!dir)
        return tccl_fail(err, "%s: can't be read: %s", path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));)
        spool->bad += is_name(entry->d_name);
    return 0;
}

int tccl_spool_open(const char *folder, struct tccl_spool **spool, struct tccl_error *err)
{
    *spool = NULL;
    if (strlen(folder) >= FOLDER_MAX)
        return tccl_fail(err, "%.80s…: the path of the spool is too long", folder);
    cleanup_free struct tccl_spool *new = calloc(1, sizeof(*new));
    if (!new)
        return tccl_fail(err, "out of memory for the spool %s", folder);
    strcpy(new->folder, folder);
    if (tccl_make_folder(folder, 0700, err) != 0 || count_bad(new, err) != 0 ||
        take_stock(new, err) != 0)
        return -1;
    *spool = tccl_steal(new);
    return 0;
}

void tccl_spool_close(struct tccl_spool *spool)
{
    if (!spool)
        return;
    tccl_cleanup_dir(&spool->round);
    free(spool);
}

/* The file's content, and its name. Allocated; NULL with err. */
static char *write_text(const json_t *records, size_t *size, char name[static TCCL_SPOOL_NAME],
                        struct tccl_error *err)
{
    cleanup_free char *json = json_dumps(records, JSON_COMPACT);
    size_t length = json ? strlen(json) : 0;
    if (!json || length > FILE_MAX - HEAD_SIZE - 1) {
        tccl_fail(err, json ? "%zu records are too long for the spool" : "out of memory",
                  json_array_size(records));
        return NULL;
    }
    char *text = NULL;
    int all = asprintf(&text, HEAD "%016" PRIx64 "\n%s\n", tccl_hash64(json, length), json);
    if (all < 0) {
        tccl_fail(err, "out of memory for the spool");
        return NULL;
    }
    tccl_hash128_hex(json, length, name);
    *size = (size_t)all;
    return text;
}

/* Is there room to replace a file of before bytes by one of size bytes? */
static int check_room(const struct tccl_spool *spool, intmax_t before, size_t size,
                      struct tccl_error *err)
{
    size_t count = spool->count + (before < 0);
    uintmax_t bytes = spool->bytes + size - (before < 0 ? 0 : (uintmax_t)before);
    if (count <= TCCL_SPOOL_FILES && bytes <= TCCL_SPOOL_BYTES)
        return 0;
    return tccl_fail(err, "%s: is full (%zu files, %ju bytes); find out why nothing is delivered",
                     spool->folder, spool->count, spool->bytes);
}

int tccl_spool_put(struct tccl_spool *spool, const json_t *records, struct tccl_error *err)
{
    char name[TCCL_SPOOL_NAME], path[PATH_MAX];
    size_t size = 0;
    cleanup_free char *text = write_text(records, &size, name, err);
    if (!text)
        return -1;
    intmax_t before = size_of(spool, name);
    if (check_room(spool, before, size, err) != 0)
        return -1;
    path_of(spool, name, path);
    int rc = tccl_write_file(path, 0600, text, size, err);
    account(spool, before, size_of(spool, name));
    return rc;
}

/* The records in a file's content. A new reference, or NULL with err. */
static json_t *parse_text(const char *name, const char *text, size_t size, struct tccl_error *err)
{
    char head[HEAD_SIZE + 1], proper[TCCL_SPOOL_NAME];
    json_error_t where;
    if (size < HEAD_SIZE + 1 || strlen(text) != size || text[size - 1] != '\n') {
        tccl_fail(err, "the file is truncated or not text");
        return NULL;
    }
    const char *json = text + HEAD_SIZE;
    size_t length = size - HEAD_SIZE - 1;
    snprintf(head, sizeof(head), HEAD "%016" PRIx64 "\n", tccl_hash64(json, length));
    if (strncmp(text, head, HEAD_SIZE) != 0) {
        tccl_fail(err, "the checksum is wrong");
        return NULL;
    }
    tccl_hash128_hex(json, length, proper);
    if (strcmp(name, proper) != 0) {
        tccl_fail(err, "the file's name is not that of its records");
        return NULL;
    }
    json_t *records = json_loadb(json, length, JSON_REJECT_DUPLICATES, &where);
    if (json_array_size(records) > 0)
        return records;
    tccl_fail(err, "no records: %s at %d", records ? "another value" : where.text,
              records ? 0 : where.position);
    json_decref(records);
    return NULL;
}

/* Reads and checks one file. A new reference, or NULL with err and *number: ENOENT if it is gone, 0
 * if its content is bad, else the errno of reading it. */
static json_t *read_records(const struct tccl_spool *spool, const char *name, int *number,
                            struct tccl_error *err)
{
    char path[PATH_MAX];
    cleanup_free char *text = NULL;
    size_t size;
    path_of(spool, name, path);
    if (tccl_read_file(path, FILE_MAX, &text, &size, err) != 0) {
        *number = errno == EINVAL || errno == EFBIG ? 0 : errno;
        return NULL;
    }
    *number = 0;
    return parse_text(name, text, size, err);
}

/* The next name of the round. Returns 0, or 1 at its end. */
static int next_name(struct tccl_spool *spool, char name[static TCCL_SPOOL_NAME])
{
    for (struct dirent *entry; (entry = readdir(spool->round));) {
        if (is_name(entry->d_name)) {
            strcpy(name, entry->d_name);
            return 0;
        }
    }
    closedir(spool->round);
    spool->round = NULL;
    return 1;
}

/* Writes the reason beside a file put aside; best effort. */
static void write_reason(const struct tccl_spool *spool, const char *name, const char *reason)
{
    char path[PATH_MAX];
    cleanup_free char *text = NULL;
    int length = asprintf(&text, "%s\n", reason);
    snprintf(path, sizeof(path), "%s/bad/%s.reason", spool->folder, name);
    if (length > 0)
        tccl_write_file(path, 0600, text, (size_t)length, NULL);
}

/* Moves a file that is no good into the folder "bad". Returns 0, or -1 with err. */
static int reject(struct tccl_spool *spool, const char *name, const char *reason,
                  struct tccl_error *err)
{
    char path[PATH_MAX], aside[PATH_MAX];
    if (spool->bad >= TCCL_SPOOL_BAD)
        return tccl_spool_remove(spool, name, err);
    intmax_t before = size_of(spool, name);
    path_of(spool, name, path);
    snprintf(aside, sizeof(aside), "%s/bad/%s", spool->folder, name);
    bool again = access(aside, F_OK) == 0;
    if (rename(path, aside) != 0)
        return tccl_fail(err, "%s: can't be put aside: %s", path, strerror(errno));
    account(spool, before, -1);
    spool->bad += !again;
    write_reason(spool, name, reason);
    return 0;
}

int tccl_spool_next(struct tccl_spool *spool, char name[static TCCL_SPOOL_NAME], json_t **records,
                    struct tccl_error *err)
{
    *records = NULL;
    if (!spool->round && !(spool->round = opendir(spool->folder)))
        return tccl_fail(err, "%s: can't be read: %s", spool->folder, strerror(errno));
    while (next_name(spool, name) == 0) {
        struct tccl_error reason = {0};
        int number;
        if ((*records = read_records(spool, name, &number, &reason)))
            return 0;
        if (number == ENOENT)
            continue;
        if (number)
            return tccl_fail(err, "%s", reason.text);
        tccl_fail(err, "%s/%s: %s; put aside in bad/", spool->folder, name, reason.text);
        return reject(spool, name, reason.text, err), TCCL_SPOOL_PUT_ASIDE;
    }
    return TCCL_SPOOL_END;
}

int tccl_spool_remove(struct tccl_spool *spool, const char *name, struct tccl_error *err)
{
    char path[PATH_MAX];
    if (!is_name(name))
        return tccl_fail(err, "'%.40s' is not the name of a file of the spool", name);
    intmax_t before = size_of(spool, name);
    path_of(spool, name, path);
    if (unlink(path) != 0 && errno != ENOENT)
        return tccl_fail(err, "%s: can't be removed: %s", path, strerror(errno));
    account(spool, before, -1);
    return 0;
}

int tccl_spool_put_aside(struct tccl_spool *spool, const json_t *record, const char *reason,
                         struct tccl_error *err)
{
    char name[TCCL_SPOOL_NAME], path[PATH_MAX];
    size_t size = 0;
    if (spool->bad >= TCCL_SPOOL_BAD)
        return 0;
    cleanup_json json_t *alone = json_pack("[O]", record);
    cleanup_free char *text = write_text(alone, &size, name, err);
    if (!text)
        return -1;
    snprintf(path, sizeof(path), "%s/bad/%s", spool->folder, name);
    bool again = access(path, F_OK) == 0;
    if (tccl_write_file(path, 0600, text, size, err) != 0)
        return -1;
    spool->bad += !again;
    write_reason(spool, name, reason);
    return 0;
}

size_t tccl_spool_count(const struct tccl_spool *spool)
{
    return spool->count;
}
