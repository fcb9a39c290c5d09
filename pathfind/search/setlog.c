/* setlog.c: sets.jsonl, the append-only log of measured transfer sets. */
#include "search/setlog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/fileio.h"
#include "base/hash.h"

enum { MAX_LINE = 8192, SUM_DIGITS = 16, MAX_SOURCE = 64 };
static const off_t MAX_LOG = 1 << 30;      /* bytes: millions of sets */
static const off_t MAX_TOGETHER = 8 << 20; /* of those that tccld reads between its answers */
static const double MAX_SKEW = 1e9;        /* microseconds */

struct tccl_setlog {
    int fd;
    off_t end; /* where the next line goes; what lies behind it is the rest of a failed append */
    char source[MAX_SOURCE];
    char path[PATH_MAX];
};

const char *tccl_mark_name(unsigned mark)
{
    static const char *const names[TCCL_MARKS] = {"mig", "mps", "busy", "stand-in"};
    for (int i = 0; i < TCCL_MARKS; i++)
        if (mark == 1U << i)
            return names[i];
    return "";
}

/* Reading. */

/* The JSON of "JSON checksum"; NULL with err: the checksum is that of another text, or it is none.
 */
static json_t *line_json(const char *line, size_t size, struct tccl_error *err)
{
    char sum[SUM_DIGITS + 1];
    json_error_t why;
    size_t length = size < SUM_DIGITS + 3 ? 0 : size - SUM_DIGITS - 1;
    snprintf(sum, sizeof(sum), "%016llx", (unsigned long long)tccl_hash64(line, length));
    if (length == 0 || line[length] != ' ' || memcmp(sum, line + length + 1, SUM_DIGITS) != 0)
        return tccl_fail_null(err, "checksum does not match");
    json_t *json = json_loadb(line, length, JSON_REJECT_DUPLICATES, &why);
    if (!json)
        tccl_fail(err, "%s", why.text);
    return json;
}

static int parse_flag(const json_t *json, const char *name, bool *flag, struct tccl_error *err)
{
    const json_t *value = json_object_get(json, name);
    *flag = json_is_true(value);
    return !value || json_is_boolean(value) ? 0
                                            : tccl_fail(err, "%s is neither true nor false", name);
}

static int parse_marks(const json_t *json, unsigned *marks, struct tccl_error *err)
{
    json_t *list = NULL;
    *marks = 0;
    if (tccl_field_list(json, "marks", 0, TCCL_MARKS, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        int mark = 0;
        while (mark < TCCL_MARKS && !(name && strcmp(name, tccl_mark_name(1U << mark)) == 0))
            mark++;
        if (mark == TCCL_MARKS)
            return tccl_fail(err, "\"marks\" has an unknown mark");
        *marks |= 1U << mark;
    }
    return 0;
}

/* What only some lines have. */
static int parse_rest(const json_t *json, struct tccl_measurement *measurement,
                      struct tccl_error *err)
{
    if (tccl_field_number(json, "skew", 0, 0, MAX_SKEW, &measurement->skew, err) < 0 ||
        tccl_field_number(json, "overlap", 0, 0, 1, &measurement->overlap, err) < 0 ||
        parse_marks(json, &measurement->marks, err) != 0 ||
        parse_flag(json, "noisy", &measurement->noisy, err) != 0 ||
        parse_flag(json, "failed", &measurement->failed, err) != 0)
        return -1;
    if (measurement->failed && measurement->gbps > 0)
        return tccl_fail(err, "a load that failed has a bandwidth");
    return 0;
}

static int line_parse(const char *line, size_t size, struct tccl_set *set,
                      struct tccl_measurement *measurement, struct tccl_error *err)
{
    cleanup_json json_t *json = line_json(line, size, err);
    const char *text;
    double gbps, spread;
    json_error_t why;
    if (!json)
        return -1;
    if (json_unpack_ex(json, &why, 0, "{s:s, s:F, s:F}", "set", &text, "gbps", &gbps, "spread",
                       &spread) != 0)
        return tccl_fail(err, "%s", why.text);
    if (!(gbps >= 0) || !(spread >= 0))
        return tccl_fail(err, "gbps or spread is out of range");
    *measurement = (struct tccl_measurement){.gbps = gbps, .spread = spread};
    return parse_rest(json, measurement, err) != 0 ? -1 : tccl_set_parse_repeats(text, set, err);
}

/* The transfers of a side as they run, repeats stay. Returns 0, or -1 with err. */
static int parse_side(const char *text, struct tccl_side *side, struct tccl_error *err)
{
    *side = (struct tccl_side){.rings = 1};
    while (*(text += strspn(text, " "))) {
        size_t length = strcspn(text, " ");
        struct tccl_set one = {0};
        char name[16];
        if (length >= sizeof(name) || side->count == TCCL_MAX_SIDE)
            return tccl_fail(err, "a side: a list of at most %d transfers is expected",
                             TCCL_MAX_SIDE);
        memcpy(name, text, length);
        name[length] = '\0';
        if (tccl_set_parse(name, &one, err) != 0)
            return -1;
        if (one.count != 1)
            return tccl_fail(err, "\"%s\" is no transfer", name);
        side->transfers[side->count++] = one.transfers[0];
        text += length;
    }
    return side->count > 0 ? 0 : tccl_fail(err, "a side has no transfers");
}

static int parse_joint(const char *line, size_t size, struct tccl_joint *joint,
                       struct tccl_error *err)
{
    cleanup_json json_t *json = line_json(line, size, err);
    const json_t *sides = json_object_get(json, "sides"), *gbps = json_object_get(json, "gbps"),
                 *alone = json_object_get(json, "alone");
    size_t n = json_array_size(sides);
    *joint = (struct tccl_joint){0};
    if (!json)
        return -1;
    if (n < 2 || n > TCCL_MAX_SIDES || json_array_size(gbps) != n ||
        (alone && json_array_size(alone) != n))
        return tccl_fail(err, "sides and gbps are not lists of 2 to %d each", TCCL_MAX_SIDES);
    joint->n = (int)n;
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(sides, i));
        joint->gbps[i] = json_number_value(json_array_get(gbps, i));
        if (!(joint->gbps[i] > 0 && joint->gbps[i] < 1e6))
            return tccl_fail(err, "gbps is out of range");
        if (parse_side(text ? text : "", &joint->sides[i], err) != 0)
            return -1;
        joint->sides[i].alone = json_number_value(json_array_get(alone, i));
        if (!(joint->sides[i].alone >= 0 && joint->sides[i].alone < 1e6))
            return tccl_fail(err, "alone is out of range");
    }
    if (tccl_field_number(json, "spread", 0, 0, 1e6, &joint->spread, err) < 0 ||
        tccl_field_number(json, "foretold", 0, 0, 1e6, &joint->foretold, err) < 0)
        return -1;
    return parse_marks(json, &joint->marks, err);
}

/* Reads one line into line (without its newline). Returns its length; -1 at the end of the file; -2
 * if it is too long; *torn says whether the newline is missing. */
static long line_read(FILE *file, char line[static MAX_LINE], bool *torn)
{
    long size = 0;
    int c;
    *torn = false;
    while ((c = getc_unlocked(file)) != EOF && c != '\n') {
        if (size == MAX_LINE)
            return -2;
        line[size++] = c;
    }
    *torn = c == EOF;
    return c == EOF && size == 0 ? -1 : size;
}

/* Opens a regular file of at most that many bytes for reading; NULL with err, or with errno ENOENT
 * when there is none. */
static FILE *open_to_read(const char *path, off_t most, struct tccl_error *err)
{
    struct tccl_error why = {""};
    struct stat st;
    cleanup_close int fd = tccl_open_regular(path, &why);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > most) {
        errno = EFBIG;
        return tccl_fail_null(err, "%s: has %jd bytes, more than %jd; remove it to measure anew",
                              path, (intmax_t)st.st_size, (intmax_t)most);
    }
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (file)
        fd = -1;
    else if (errno != ENOENT)
        tccl_fail(err, "%s", fd < 0 ? why.text : strerror(errno));
    return file;
}

/* Who is called for each line: with a set, or with a joint. */
struct reader {
    int (*each_set)(void *context, const struct tccl_set *set,
                    const struct tccl_measurement *measurement);
    int (*each_joint)(void *context, const struct tccl_joint *joint);
    void *context;
    off_t most; /* bytes of the file */
};

/* Returns 0; 1: it was to stop here; -1 with err: a bad line. */
static int take_line(const struct reader *reader, const char *line, size_t size,
                     struct tccl_error *err)
{
    if (reader->each_joint) {
        struct tccl_joint joint;
        return parse_joint(line, size, &joint, err) != 0          ? -1
               : reader->each_joint(reader->context, &joint) != 0 ? 1
                                                                  : 0;
    }
    struct tccl_set set = {0};
    struct tccl_measurement measurement;
    return line_parse(line, size, &set, &measurement, err) < 0          ? -1
           : reader->each_set(reader->context, &set, &measurement) != 0 ? 1
                                                                        : 0;
}

static long read_log(const char *path, const struct reader *reader, int *dropped,
                     struct tccl_error *err)
{
    if (dropped)
        *dropped = 0;
    cleanup_file FILE *file = open_to_read(path, reader->most, err);
    if (!file)
        return errno == ENOENT ? 0 : -1;
    char line[MAX_LINE];
    bool torn;
    long n = 0, size;
    while ((size = line_read(file, line, &torn)) != -1) {
        struct tccl_error why = {""};
        if (size >= 0 && torn) {
            if (dropped)
                *dropped = 1;
            break;
        }
        int rc = size < 0 ? -1 : take_line(reader, line, (size_t)size, &why);
        if (rc < 0)
            return tccl_fail(err, "%s:%ld: %s; remove the line, or the file to measure anew", path,
                             n + 1, size < 0 ? "line too long" : why.text);
        n++;
        if (rc > 0)
            return tccl_fail(err, "%s:%ld: reading was stopped here", path, n);
    }
    if (ferror(file))
        return tccl_fail(err, "%s: %s", path, strerror(errno));
    return n;
}

long tccl_setlog_read(const char *path,
                      int (*each)(void *context, const struct tccl_set *set,
                                  const struct tccl_measurement *measurement),
                      void *context, int *dropped, struct tccl_error *err)
{
    const struct reader reader = {.each_set = each, .context = context, .most = MAX_LOG};
    return read_log(path, &reader, dropped, err);
}

long tccl_setlog_read_joints(const char *path,
                             int (*each)(void *context, const struct tccl_joint *joint),
                             void *context, int *dropped, struct tccl_error *err)
{
    const struct reader reader = {.each_joint = each, .context = context, .most = MAX_LOG};
    return read_log(path, &reader, dropped, err);
}

static int keep_joint(void *together, const struct tccl_joint *joint)
{
    return !joint->marks && tccl_together_add(together, joint) < 0 ? -1 : 0;
}

struct tccl_together *tccl_setlog_read_together(const char *path, struct tccl_error *err)
{
    struct tccl_together *together = tccl_together_new();
    if (!together)
        return tccl_fail_null(err, "out of memory");
    const struct reader reader = {
        .each_joint = keep_joint, .context = together, .most = MAX_TOGETHER};
    if (read_log(path, &reader, NULL, err) >= 0)
        return together;
    tccl_together_free(together);
    return NULL;
}

/* Writing. */

/* Where the last complete line ends. Returns -1 with err if the torn rest is longer than a line. */
static off_t find_end(int fd, off_t size, struct tccl_error *err)
{
    char tail[MAX_LINE + 1];
    size_t want = size < (off_t)sizeof(tail) ? (size_t)size : sizeof(tail);
    ssize_t got = pread(fd, tail, want, size - want);
    if (got != (ssize_t)want)
        return tccl_fail(err, "%s",
                         got < 0 ? strerror(errno) : "the file became shorter while it was read");
    const char *newline = memrchr(tail, '\n', want);
    if (newline)
        return size - (off_t)want + (newline - tail) + 1;
    if (size < (off_t)sizeof(tail))
        return 0;
    return tccl_fail(err, "its last line is too long: not a log of loads");
}

static int prepare(struct tccl_setlog *log, const struct tccl_folder *folder,
                   struct tccl_error *err)
{
    struct stat st;
    if (flock(log->fd, LOCK_EX | LOCK_NB) != 0)
        return tccl_fail(err, "%s",
                         errno == EWOULDBLOCK ? "another process is measuring into it; wait for it"
                                              : strerror(errno));
    if (fstat(log->fd, &st) != 0)
        return tccl_fail(err, "%s", strerror(errno));
    /* Is it still there by its name? The folder may have been replaced before the file was locked.
     */
    struct stat named;
    if (!(stat(log->path, &named) == 0 && named.st_dev == st.st_dev && named.st_ino == st.st_ino))
        return tccl_fail(err, "was replaced at this moment; try again");
    log->end = find_end(log->fd, st.st_size, err);
    if (log->end < 0)
        return -1;
    if (log->end < st.st_size && ftruncate(log->fd, log->end) != 0)
        return tccl_fail(err, "cannot remove its incomplete last line: %s", strerror(errno));
    if (st.st_size == 0)
        tccl_folder_sync(folder); /* a new file's name is on the disk only then */
    return 0;
}

static int open_log(struct tccl_setlog *log, struct tccl_error *err)
{
    cleanup_leave struct tccl_folder folder;
    struct tccl_error why = {""};
    if (tccl_folder_enter(&folder, log->path, "can't be opened", err) != 0)
        return -1;
    log->fd = tccl_folder_open(&folder, log->path, O_RDWR | O_CREAT | O_APPEND, 0644, err);
    if (log->fd < 0)
        return -1;
    if (prepare(log, &folder, &why) == 0)
        return 0;
    close(log->fd);
    return tccl_fail(err, "%s: %s", log->path, why.text);
}

struct tccl_setlog *tccl_setlog_open(const char *path, const char *source, struct tccl_error *err)
{
    struct tccl_setlog *log = calloc(1, sizeof(*log));
    if (!log || strlen(path) >= sizeof(log->path) || strlen(source) >= sizeof(log->source)) {
        tccl_fail(err, "%s: %s", path, log ? "name too long" : "out of memory");
        free(log);
        return NULL;
    }
    strcpy(log->path, path);
    strcpy(log->source, source);
    if (open_log(log, err) == 0)
        return log;
    free(log);
    return NULL;
}

static int most_digits(const struct tccl_measurement *measurement)
{
    const double values[] = {measurement->gbps, measurement->spread, measurement->skew,
                             measurement->overlap};
    int most = 0;
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        int digits = tccl_digits(values[i]);
        most = digits > most ? digits : most;
    }
    return most;
}

static json_t *list_of_marks(unsigned marks)
{
    json_t *list = json_array();
    for (int i = 0; i < TCCL_MARKS; i++)
        if (marks >> i & 1)
            json_array_append_new(list, json_string(tccl_mark_name(1U << i)));
    return list;
}

/* The line with its newline and checksum; -1 if it can't be written. */
static int line_seal(const json_t *json, int digits, char line[static MAX_LINE])
{
    cleanup_free char *dump = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(digits));
    if (!dump)
        return -1;
    unsigned long long sum = tccl_hash64(dump, strlen(dump));
    int size = snprintf(line, MAX_LINE, "%s %016llx\n", dump, sum);
    return size < MAX_LINE ? size : -1;
}

static int line_format(const struct tccl_setlog *log, const struct tccl_set *set,
                       const struct tccl_measurement *measurement, char line[static MAX_LINE])
{
    char text[TCCL_SET_TEXT];
    tccl_set_format(set, text);
    cleanup_json json_t *json =
        json_pack("{s:s, s:f, s:f, s:s, s:I}", "set", text, "gbps", measurement->gbps, "spread",
                  measurement->spread, "source", log->source, "time", (json_int_t)time(NULL));
    if (!json)
        return -1;
    /* Members that say something only for some measurements. */
    int rc = 0;
    if (measurement->skew > 0)
        rc |= json_object_set_new(json, "skew", json_real(measurement->skew));
    if (measurement->overlap > 0)
        rc |= json_object_set_new(json, "overlap", json_real(measurement->overlap));
    if (measurement->noisy)
        rc |= json_object_set_new(json, "noisy", json_true());
    if (measurement->failed)
        rc |= json_object_set_new(json, "failed", json_true());
    if (measurement->marks)
        rc |= json_object_set_new(json, "marks", list_of_marks(measurement->marks));
    if (rc < 0)
        return -1;
    return line_seal(json, most_digits(measurement), line);
}

static json_t *side_to_json(const struct tccl_side *side)
{
    char text[TCCL_MAX_SIDE * 12 + 1];
    size_t used = 0;
    for (int i = 0; i < side->count; i++) {
        char name[12];
        tccl_transfer_format(side->transfers[i], name);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i > 0 ? " " : "", name);
    }
    return json_stringn(text, used);
}

static int joint_format(const struct tccl_setlog *log, const struct tccl_joint *joint,
                        char line[static MAX_LINE])
{
    json_t *sides = json_array(), *gbps = json_array(), *alone = json_array();
    int digits = tccl_digits(joint->spread);
    for (int i = 0; i < joint->n; i++) {
        if (!(joint->gbps[i] > 0) || !isfinite(joint->gbps[i]))
            digits = -1;
        digits = digits < 0                             ? -1
                 : tccl_digits(joint->gbps[i]) > digits ? tccl_digits(joint->gbps[i])
                                                        : digits;
        json_array_append_new(sides, side_to_json(&joint->sides[i]));
        json_array_append_new(gbps, json_real(joint->gbps[i]));
        json_array_append_new(alone, json_real(joint->sides[i].alone / joint->sides[i].rings));
    }
    cleanup_json json_t *json =
        json_pack("{s:o, s:o, s:o, s:f, s:s, s:I}", "sides", sides, "gbps", gbps, "alone", alone,
                  "spread", joint->spread, "source", log->source, "time", (json_int_t)time(NULL));
    if (!json || digits < 0 ||
        (joint->foretold > 0 &&
         json_object_set_new(json, "foretold", json_real(joint->foretold)) != 0) ||
        (joint->marks && json_object_set_new(json, "marks", list_of_marks(joint->marks)) != 0))
        return -1;
    return line_seal(json, digits, line);
}

/* Would it be read again? */
static bool writable(const struct tccl_measurement *measurement)
{
    return measurement->gbps >= 0 && isfinite(measurement->gbps) && measurement->spread >= 0 &&
           isfinite(measurement->spread) && measurement->skew >= 0 &&
           measurement->skew <= MAX_SKEW && measurement->overlap >= 0 &&
           measurement->overlap <= 1 && !(measurement->failed && measurement->gbps > 0);
}

/* Takes back what a failed append left. */
static int cut(struct tccl_setlog *log)
{
    struct stat st;
    if (fstat(log->fd, &st) != 0)
        return -1;
    return st.st_size == log->end ? 0 : ftruncate(log->fd, log->end);
}

/* size: of the line; -1: there is none. */
static int append(struct tccl_setlog *log, const char *line, int size, struct tccl_error *err)
{
    if (size < 0)
        return tccl_fail(err, "%s: this measurement cannot be written", log->path);
    if (cut(log) != 0)
        return tccl_fail(err, "%s: %s", log->path, strerror(errno));
    if (tccl_write_all(log->fd, line, (size_t)size) != 0) {
        tccl_fail(err, "%s: %s: the latest measurement is lost, all before it are kept", log->path,
                  strerror(errno));
        return cut(log), -1;
    }
    log->end += size;
    return 0;
}

int tccl_setlog_append(struct tccl_setlog *log, const struct tccl_set *set,
                       const struct tccl_measurement *measurement, struct tccl_error *err)
{
    char line[MAX_LINE];
    return append(log, line, writable(measurement) ? line_format(log, set, measurement, line) : -1,
                  err);
}

int tccl_setlog_append_joint(struct tccl_setlog *log, const struct tccl_joint *joint,
                             struct tccl_error *err)
{
    char line[MAX_LINE];
    return append(log, line, joint_format(log, joint, line), err);
}

int tccl_setlog_sync(struct tccl_setlog *log, struct tccl_error *err)
{
    return fdatasync(log->fd) == 0 ? 0 : tccl_fail(err, "%s: %s", log->path, strerror(errno));
}

void tccl_setlog_close(struct tccl_setlog *log)
{
    if (!log)
        return;
    cut(log);
    fsync(log->fd);
    close(log->fd);
    free(log);
}
