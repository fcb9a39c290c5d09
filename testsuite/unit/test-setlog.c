/* sets.jsonl: what was appended is read back, whatever happened to the process that appended. */
#include "check.h"

#include <sys/resource.h>

#include "base/fileio.h"
#include "sample.h"
#include "search/setlog.h"

static const char *path;

enum { MAX_LINES = 4096 };
struct lines {
    int n;
    struct tccl_set sets[MAX_LINES];
    struct tccl_measurement measurements[MAX_LINES];
};

static struct lines lines; /* what a test has written */

BEFORE
{
    lines.n = 0;
}

static int collect(void *context, const struct tccl_set *set,
                   const struct tccl_measurement *measurement)
{
    struct lines *lines = context;
    if (lines->n == MAX_LINES)
        return 1;
    lines->sets[lines->n] = *set;
    lines->measurements[lines->n++] = *measurement;
    return 0;
}

static struct tccl_set random_set(void)
{
    struct tccl_set set = {0};
    for (int i = rand() % 12 + 1; i > 0; i--) {
        struct tccl_device gpu = {TCCL_GPU, rand() % 8}, memory = {TCCL_MEMORY, rand() % 4};
        tccl_set_add_again(&set, tccl_transfer_make(gpu, rand() % 2, memory));
        if (rand() % 4 == 0) /* it runs twice */
            tccl_set_add_again(&set, set.transfers[0]);
    }
    return set;
}

static void fill(struct lines *lines, int n)
{
    struct tccl_setlog *log = tccl_setlog_open(path, "model", ERR);
    CHECK(log != NULL);
    for (int i = 0; log && i < n; i++) {
        struct tccl_set set = random_set();
        struct tccl_measurement measurement = random_measurement();
        CHECK_OK(tccl_setlog_append(log, &set, &measurement, ERR));
        collect(lines, &set, &measurement);
    }
    CHECK(log && tccl_setlog_sync(log, ERR) == 0);
    CHECK_STR(check_err.text, "");
    tccl_setlog_close(log);
}

/* Reads the log; its first lines must be these. Returns how many there are. */
static long check_read(const struct lines *expected, int n, int torn)
{
    static struct lines lines;
    int dropped = -1;
    lines.n = 0;
    long count = tccl_setlog_read(path, collect, &lines, &dropped, ERR);
    CHECK_STR(check_err.text, "");
    CHECK(count >= n);
    CHECK_INT(dropped, torn);
    for (int i = 0; i < n && i < lines.n; i++) {
        CHECK(tccl_set_equal(&lines.sets[i], &expected->sets[i]));
        CHECK(lines.measurements[i].gbps == expected->measurements[i].gbps);
        CHECK(lines.measurements[i].spread == expected->measurements[i].spread);
        CHECK(lines.measurements[i].skew == expected->measurements[i].skew);
        CHECK(lines.measurements[i].overlap == expected->measurements[i].overlap);
        CHECK_INT(lines.measurements[i].marks, expected->measurements[i].marks);
        CHECK_INT(lines.measurements[i].noisy, expected->measurements[i].noisy);
        CHECK_INT(lines.measurements[i].failed, expected->measurements[i].failed);
    }
    return count;
}

TEST(roundtrip)
{
    CHECK_INT(check_read(&lines, 0, 0), 0); /* no file: an empty log */
    fill(&lines, 200);
    fill(&lines, 100);
    CHECK_INT(check_read(&lines, 300, 0), 300);
}

TEST(one_writer)
{
    struct tccl_setlog *first = tccl_setlog_open(path, "model", NULL);
    CHECK_SAYS(tccl_setlog_open(path, "model", ERR) == NULL, "another process");
    tccl_setlog_close(first);
    first = tccl_setlog_open(path, "model", NULL);
    CHECK(first != NULL);
    tccl_setlog_close(first);
}

/* Cut at every byte of the last two lines: reading and opening lose no more than the torn line. */
TEST(torn)
{
    cleanup_free char *data = NULL;
    size_t size = 0;
    unlink(path);
    fill(&lines, 4);
    CHECK_INT(tccl_read_file(path, 1 << 20, &data, &size, NULL), 0);
    for (size_t cut = size; cut > 0; cut--) {
        int whole = 0;
        for (size_t i = 0; i < cut; i++)
            whole += data[i] == '\n';
        CHECK_INT(truncate(path, cut), 0);
        CHECK_INT(check_read(&lines, whole, data[cut - 1] != '\n'), whole);
    }
    for (size_t cut = 1; cut <= size; cut += 7) {
        FILE *file = fopen(path, "w");
        CHECK(file && fwrite(data, 1, cut, file) == cut && fclose(file) == 0);
        int whole = 0;
        for (size_t i = 0; i < cut; i++)
            whole += data[i] == '\n';
        struct lines more = {0};
        fill(&more, 1);
        CHECK_INT(check_read(&lines, whole, 0), whole + 1);
    }
}

TEST(altered)
{
    cleanup_free char *data = NULL;
    size_t size = 0;
    char place[600];
    unlink(path);
    fill(&lines, 2);
    CHECK_INT(tccl_read_file(path, 1 << 20, &data, &size, NULL), 0);
    size_t second = strchr(data, '\n') - data + 1;
    snprintf(place, sizeof(place), "%s:2: ", path);
    for (size_t i = second; i < size - 1; i++) {
        data[i] ^= 1;
        FILE *file = fopen(path, "w");
        CHECK(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
        data[i] ^= 1;
        lines.n = 0;
        CHECK_INT(tccl_setlog_read(path, collect, &lines, NULL, ERR), -1);
        CHECK(strstr(check_err.text, place) == check_err.text);
        CHECK_INT(lines.n, 1);
    }
}

/* Other content with a right checksum, and what is no log at all. */
TEST(foreign)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"set\":\"g0>g1\",\"gbps\":1}",
        "{\"set\":\"x\",\"gbps\":1,\"spread\":0}",
        "{\"set\":\"g0>g1\",\"gbps\":-1,\"spread\":0}",
        "{\"set\":\"g0>g1\",\"gbps\":\"1\",\"spread\":0}",
        "{\"set\":3,\"gbps\":1,\"spread\":0}",
        "{\"set\":\"g0>g1\",\"gbps\":1,\"spread\":0,\"skew\":-1}",
        "{\"set\":\"g0>g1\",\"gbps\":1,\"spread\":0,\"skew\":\"1\"}",
        "{\"set\":\"g0>g1\",\"gbps\":1,\"spread\":0,\"overlap\":1.1}",
        "{\"set\":\"g0>g1\",\"gbps\":1,\"spread\":0,\"noisy\":1}",
        "{\"set\":\"g0>g1\",\"gbps\":1,\"spread\":0,\"failed\":true}",
        "{\"set\":\"g0>g1\",\"gbps\":1,\"spread\":0,\"marks\":\"mps\"}",
        "{\"set\":\"g0>g1\",\"gbps\":1,\"spread\":0,\"marks\":[\"mps\",\"fog\"]}",
        "{\"set\":\"g0>g1\",\"gbps\":1,\"spread\":0,\"marks\":[1]}",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct tccl_error err = {""};
        FILE *file = fopen(path, "w");
        fprintf(file, "%s %016llx\n", texts[i],
                (unsigned long long)tccl_hash64(texts[i], strlen(texts[i])));
        fclose(file);
        CHECK_INT(tccl_setlog_read(path, collect, &lines, NULL, &err), -1);
        CHECK(strstr(err.text, ":1: ") != NULL);
    }
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 100000; i++)
        fputc('x', file);
    fclose(file);
    struct tccl_error err = {""};
    CHECK_INT(tccl_setlog_read(path, collect, &lines, NULL, &err), -1);
    CHECK(tccl_setlog_open(path, "model", NULL) == NULL);
    struct stat st;
    CHECK(stat(path, &st) == 0 && st.st_size == 100000); /* nothing of it was cut off */
}

/* A child that writes without pause is killed; whatever it said to have written is there. */
TEST(kill)
{
    for (int round = 0; round < 20; round++) {
        int told[2];
        unlink(path);
        CHECK_INT(pipe(told), 0);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            struct tccl_setlog *log = tccl_setlog_open(path, "model", NULL);
            for (;;) {
                struct tccl_set set = random_set();
                struct tccl_measurement measurement = random_measurement();
                if (!log || tccl_setlog_append(log, &set, &measurement, NULL) < 0 ||
                    write(told[1], ".", 1) != 1)
                    _exit(1);
            }
        }
        char byte;
        int n = 1 + rand() % 200;
        close(told[1]);
        for (int i = 0; i < n; i++)
            CHECK_INT(read(told[0], &byte, 1), 1);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(told[0], &byte, 1) == 1)
            n++;
        close(told[0]);
        lines.n = 0;
        fill(&lines, 1); /* the lock is free again, a torn line is cut */
        CHECK(check_read(&lines, 0, 0) >= n + 1);
    }
}

/* The file may not grow: as on a full disk. */
TEST(full_disk)
{
    struct stat st;
    unlink(path);
    fill(&lines, 3);
    CHECK_INT(stat(path, &st), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct tccl_set set = random_set();
        struct tccl_measurement measurement = {.gbps = 1};
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {st.st_size + 20, RLIM_INFINITY};
        struct tccl_setlog *log = tccl_setlog_open(path, "model", NULL);
        setrlimit(RLIMIT_FSIZE, &limit);
        CHECK_INT(tccl_setlog_append(log, &set, &measurement, ERR), -1);
        CHECK(strstr(check_err.text, path) == check_err.text);
        struct stat after;
        CHECK(stat(path, &after) == 0 && after.st_size == st.st_size);
        limit.rlim_cur = RLIM_INFINITY;
        setrlimit(RLIMIT_FSIZE, &limit);
        CHECK_INT(tccl_setlog_append(log, &set, &measurement, NULL), 0);
        tccl_setlog_close(log);
        fflush(NULL);
        _exit(check_result());
    }
    CHECK_INT(check_exit(child), 0);
    CHECK_INT(check_read(&lines, 3, 0), 4);
}

static long long lines_with(const char *text)
{
    cleanup_free char *data = NULL;
    size_t size = 0;
    long long n = 0;
    CHECK_INT(tccl_read_file(path, 1 << 20, &data, &size, NULL), 0);
    for (const char *at = data; at && (at = strstr(at, text)); at++)
        n++;
    return n;
}

/* What has nothing to say isn't written, and what can't be read again neither. */
TEST(members)
{
    static const struct tccl_measurement bad[] = {
        {.gbps = -1},
        {.gbps = NAN},
        {.gbps = 1, .spread = NAN},
        {.gbps = 1, .skew = -1},
        {.gbps = 1, .skew = INFINITY},
        {.gbps = 1, .overlap = 1.5},
        {.gbps = 1, .failed = true},
    };
    struct tccl_set set = random_set();
    unlink(path);
    struct tccl_setlog *log = tccl_setlog_open(path, "host", NULL);
    CHECK_INT(tccl_setlog_append(log, &set, &(struct tccl_measurement){.gbps = 1}, NULL), 0);
    CHECK_INT(lines_with("skew") + lines_with("noisy") + lines_with("marks"), 0);
    struct tccl_measurement marked = {.gbps = 1, .marks = TCCL_MARK_MPS, .noisy = true};
    CHECK_INT(tccl_setlog_append(log, &set, &marked, NULL), 0);
    CHECK_INT(lines_with("\"noisy\":true,\"marks\":[\"mps\"]}"), 1);
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK_INT(tccl_setlog_append(log, &set, &bad[i], NULL), -1);
    tccl_setlog_close(log);
    CHECK_INT(lines_with("gbps"), 2);
}

TEST(no_file)
{
    CHECK(tccl_setlog_open("/dev/full", "model", ERR) == NULL);
    CHECK(strstr(check_err.text, "/dev/full: ") == check_err.text);
    CHECK_INT(tccl_setlog_read("/dev/zero", collect, NULL, NULL, NULL), -1);
    CHECK(tccl_setlog_open("/nonexistent/sets.jsonl", "model", NULL) == NULL);
}

SETUP
{
    path = check_at("sets.jsonl");
}

TEARDOWN
{
    unlink(path);
    check_nothing_left();
}
