/* spool.c: undelivered records, one file each. */
#include "records/spool.h"

#include <dirent.h>
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
#include "records/record.h"

#define HEAD "tccl-spool 1 "
enum {
    HEAD_SIZE = sizeof(HEAD) - 1 + 16 + 1, /* with checksum and end of line */
    RECORD_MAX = 1 << 20,                  /* bytes of one file */
    FOLDER_MAX = PATH_MAX - 320,
};

struct tccl_spool {
    char folder[FOLDER_MAX];
    size_t count, bad;
    uintmax_t bytes;
    DIR *round; /* NULL between rounds */
};

static void cleanup_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

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
    __attribute__((cleanup(cleanup_dir))) DIR *dir = opendir(spool->folder);
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
    __attribute__((cleanup(cleanup_dir))) DIR *dir = opendir(path);
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
    cleanup_dir(&spool->round);
    free(spool);
}

static int name_of(const json_t *record, char name[static TCCL_SPOOL_NAME], struct tccl_error *err)
{
    char key[TCCL_RECORD_KEY];
    if (tccl_record_key(record, key, err) != 0)
        return -1;
    const char *built =
        tccl_record_confirms(record) ? json_string_value(json_object_get(record, "built")) : NULL;
    json_int_t uid = json_integer_value(json_object_get(record, "uid"));
    char whole[TCCL_RECORD_KEY + TCCL_RECORD_WORD + 32];
    int size = built ? snprintf(whole, sizeof(whole), "%s/%.31s", key, built)
                     : snprintf(whole, sizeof(whole), "%s/uid %" JSON_INTEGER_FORMAT, key, uid);
    tccl_hash128_hex(whole, (size_t)size, name);
    return 0;
}

/* The file's content. Allocated; NULL with err. */
static char *write_text(const json_t *record, size_t *size, struct tccl_error *err)
{
    cleanup_free char *json = json_dumps(record, JSON_COMPACT);
    if (!json || strlen(json) > RECORD_MAX - HEAD_SIZE - 1) {
        tccl_fail(err,
                  json ? "the record is too long for the spool" : "out of memory for the spool");
        return NULL;
    }
    char *text = NULL;
    int length =
        asprintf(&text, HEAD "%016" PRIx64 "\n%s\n", tccl_hash64(json, strlen(json)), json);
    if (length < 0) {
        tccl_fail(err, "out of memory for the spool");
        return NULL;
    }
    *size = (size_t)length;
    return text;
}

/* Is there room to replace a file of before bytes by one of size bytes? */
static int check_room(const struct tccl_spool *spool, intmax_t before, size_t size,
                      struct tccl_error *err)
{
    size_t count = spool->count + (before < 0);
    uintmax_t bytes = spool->bytes + size - (before < 0 ? 0 : (uintmax_t)before);
    if (count <= TCCL_SPOOL_RECORDS && bytes <= TCCL_SPOOL_BYTES)
        return 0;
    return tccl_fail(err, "%s: is full (%zu records, %ju bytes); find out why nothing is delivered",
                     spool->folder, spool->count, spool->bytes);
}

int tccl_spool_put(struct tccl_spool *spool, const json_t *record, struct tccl_error *err)
{
    char name[TCCL_SPOOL_NAME], path[PATH_MAX];
    size_t size = 0;
    if (name_of(record, name, err) != 0)
        return -1;
    cleanup_free char *text = write_text(record, &size, err);
    intmax_t before = size_of(spool, name);
    if (!text || check_room(spool, before, size, err) != 0)
        return -1;
    path_of(spool, name, path);
    int rc = tccl_write_file(path, 0600, text, size, err);
    account(spool, before, size_of(spool, name));
    return rc;
}

/* The record in a file's content. A new reference, or NULL with err. */
static json_t *parse_text(const char *text, size_t size, struct tccl_error *err)
{
    char head[HEAD_SIZE + 1];
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
    json_t *record = json_loadb(json, length, JSON_REJECT_DUPLICATES, &where);
    if (!record)
        tccl_fail(err, "not JSON: %s at %d", where.text, where.position);
    return record;
}

/* Reads and checks one file. A new reference, or NULL with err and *number: ENOENT if it is gone, 0
 * if its content is bad, else the errno of reading it. */
static json_t *read_record(const struct tccl_spool *spool, const char *name, int *number,
                           struct tccl_error *err)
{
    char path[PATH_MAX], proper[TCCL_SPOOL_NAME];
    cleanup_free char *text = NULL;
    size_t size;
    path_of(spool, name, path);
    if (tccl_read_file(path, RECORD_MAX, &text, &size, err) != 0) {
        *number = errno == EINVAL || errno == EFBIG ? 0 : errno;
        return NULL;
    }
    *number = 0;
    cleanup_json json_t *record = parse_text(text, size, err);
    if (!record || name_of(record, proper, err) != 0)
        return NULL;
    if (strcmp(name, proper) != 0) {
        tccl_fail(err, "the file's name is not that of its record");
        return NULL;
    }
    return tccl_steal(record);
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

int tccl_spool_next(struct tccl_spool *spool, char name[static TCCL_SPOOL_NAME], json_t **record,
                    struct tccl_error *err)
{
    *record = NULL;
    if (!spool->round && !(spool->round = opendir(spool->folder)))
        return tccl_fail(err, "%s: can't be read: %s", spool->folder, strerror(errno));
    while (next_name(spool, name) == 0) {
        struct tccl_error reason = {0};
        int number;
        if ((*record = read_record(spool, name, &number, &reason)))
            return 0;
        if (number == ENOENT)
            continue;
        if (number)
            return tccl_fail(err, "%s", reason.text);
        tccl_fail(err, "%s/%s: %s; put aside in bad/", spool->folder, name, reason.text);
        return tccl_spool_reject(spool, name, reason.text, err), TCCL_SPOOL_PUT_ASIDE;
    }
    return TCCL_SPOOL_END;
}

int tccl_spool_remove(struct tccl_spool *spool, const char *name, struct tccl_error *err)
{
    char path[PATH_MAX];
    if (!is_name(name))
        return tccl_fail(err, "'%.40s' is not the name of a spooled record", name);
    intmax_t before = size_of(spool, name);
    path_of(spool, name, path);
    if (unlink(path) != 0 && errno != ENOENT)
        return tccl_fail(err, "%s: can't be removed: %s", path, strerror(errno));
    account(spool, before, -1);
    return 0;
}

int tccl_spool_forget(struct tccl_spool *spool, const json_t *record, struct tccl_error *err)
{
    char name[TCCL_SPOOL_NAME];
    int number;
    if (name_of(record, name, err) != 0)
        return -1;
    cleanup_json json_t *kept = read_record(spool, name, &number, NULL);
    return kept && json_equal(kept, record) ? tccl_spool_remove(spool, name, err) : 0;
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

int tccl_spool_reject(struct tccl_spool *spool, const char *name, const char *reason,
                      struct tccl_error *err)
{
    char path[PATH_MAX], aside[PATH_MAX];
    if (!is_name(name))
        return tccl_fail(err, "'%.40s' is not the name of a spooled record", name);
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

size_t tccl_spool_count(const struct tccl_spool *spool)
{
    return spool->count;
}
