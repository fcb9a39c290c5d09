/* test-spool.c: undelivered records: kept, handed out, and never for ever when they are no good. */
#include <dirent.h>
#include <sys/resource.h>

#include "check.h"
#include "records/records.h"
#include "records/spool.h"

static char folder[128];

static json_t *record(int job, const char *state)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:s, s:i, s:i}", "cluster", "c", "job", job, "step", 0,
                     "uid", 1, "state", state, "start", 5, "reporter", 0);
}

/* Of one file: those of so many jobs, from one on. */
static json_t *batch(int job, int count, const char *state)
{
    json_t *records = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(records, record(job + i, state));
    return records;
}

static struct tccl_spool *open_spool(void)
{
    struct tccl_spool *spool;
    CHECK_OK(tccl_spool_open(folder, &spool, ERR));
    return spool;
}

static void put(struct tccl_spool *spool, int job, const char *state)
{
    cleanup_json json_t *json = batch(job, 1, state);
    CHECK_OK(tccl_spool_put(spool, json, ERR));
}

/* Goes through a round; counts good and bad ones. Removes the good ones if told so. */
static void round_of(struct tccl_spool *spool, bool remove, int good, int bad)
{
    char name[TCCL_SPOOL_NAME];
    int rc, got_good = 0, got_bad = 0;
    json_t *json;
    struct tccl_error err = {0};
    while ((rc = tccl_spool_next(spool, name, &json, &err)) != 1) {
        CHECK((rc == 0) == (json != NULL) && (rc == 0) == (err.text[0] == '\0'));
        CHECK(rc == 0 || strstr(err.text, "bad/"));
        rc == 0 ? got_good++ : got_bad++;
        err = (struct tccl_error){0};
        if (rc == 0 && remove)
            CHECK_INT(tccl_spool_remove(spool, name, &err), 0);
        json_decref(json);
    }
    CHECK_INT(got_good, good);
    CHECK_INT(got_bad, bad);
}

static int files_in(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_type == DT_REG;
    if (dir)
        closedir(dir);
    return count;
}

TEST(round)
{
    struct tccl_spool *spool = open_spool();
    for (int job = 1; job <= 20; job++)
        put(spool, job, "applied");
    put(spool, 20, "differs");
    put(spool, 20, "differs"); /* the same once more is the same file */
    CHECK_INT((long long)tccl_spool_count(spool), 21);
    round_of(spool, false, 21, 0);
    round_of(spool, false, 21, 0);
    tccl_spool_close(spool);
    spool = open_spool();
    CHECK_INT((long long)tccl_spool_count(spool), 21);
    round_of(spool, true, 21, 0);
    CHECK_INT((long long)tccl_spool_count(spool), 0);
    round_of(spool, true, 0, 0);
    CHECK_INT(files_in(folder), 0);
    tccl_spool_close(spool);
}

/* What comes out is what went in. */
TEST(content)
{
    char name[TCCL_SPOOL_NAME];
    struct tccl_error err = {0};
    struct tccl_spool *spool = open_spool();
    cleanup_json json_t *given = batch(4, 200, "applied"), *got = NULL;
    json_t *first = json_array_get(given, 0);
    json_object_set_new(first, "job_name", json_string("a\nb\x1b[31m \"é\""));
    json_object_set_new(first, "gbps", json_real(1.0 / 3));
    CHECK_INT(tccl_spool_put(spool, given, &err), 0);
    CHECK_INT((long long)tccl_spool_count(spool), 1);
    CHECK_INT(tccl_spool_next(spool, name, &got, &err), 0);
    CHECK(json_equal(got, given));
    CHECK_INT(tccl_spool_remove(spool, name, &err), 0);
    CHECK_INT(tccl_spool_remove(spool, "../../etc/passwd", &err), -1);
    CHECK(strstr(err.text, "is not the name of a file of the spool") != NULL);
    tccl_spool_close(spool);
}

/* The path of the only spooled file. */
static void only_file(char path[static 512])
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_type == DT_REG)
            snprintf(path, 512, "%s/%s", folder, entry->d_name);
    if (dir)
        closedir(dir);
}

static void check_damage(void (*damage)(const char *path), const char *said)
{
    char path[512] = "", aside[512], reason[600] = "";
    struct tccl_spool *spool = open_spool();
    put(spool, 5, "applied");
    only_file(path);
    damage(path);
    round_of(spool, false, 0, 1);
    round_of(spool, false, 0, 0);
    CHECK_INT((long long)tccl_spool_count(spool), 0);
    snprintf(aside, sizeof(aside), "%.128s/bad/%.32s.reason", folder, strrchr(path, '/') + 1);
    cleanup_file FILE *file = fopen(aside, "r");
    CHECK(file && fgets(reason, sizeof(reason), file));
    if (!strstr(reason, said)) {
        fprintf(stderr, "got '%s', expected '%s'\n", reason, said);
        check_failures++;
    }
    tccl_spool_close(spool);
}

static void cut_off(const char *path)
{
    CHECK(truncate(path, 60) == 0);
}

static void empty(const char *path)
{
    CHECK(truncate(path, 0) == 0);
}

static void enlarge(const char *path)
{
    CHECK(truncate(path, 3 << 20) == 0);
}

static void alter(const char *path)
{
    cleanup_close int fd = open(path, O_WRONLY);
    CHECK(pwrite(fd, "Z", 1, 50) == 1);
}

static void exchange(const char *path)
{
    char other[600];
    snprintf(other, sizeof(other), "%s/other", check_folder());
    CHECK(rename(path, other) == 0);
    struct tccl_spool *spool = open_spool();
    put(spool, 6, "applied");
    tccl_spool_close(spool);
    char six[512] = "";
    only_file(six);
    CHECK(rename(six, path) == 0);
    unlink(other);
}

/* Refused ones are put aside, each with its reason; at most so many. */
TEST(refused)
{
    char path[300], line[100] = "";
    struct tccl_spool *spool = open_spool();
    int before;
    snprintf(path, sizeof(path), "%s/bad", folder);
    before = files_in(path);
    for (int job = 7; job < 9; job++) {
        cleanup_json json_t *json = record(job, "applied");
        CHECK_INT(tccl_spool_put_aside(spool, json, "record: refused", ERR), 0);
        CHECK_INT(tccl_spool_put_aside(spool, json, "record: refused", ERR), 0);
    }
    CHECK_INT(files_in(path), before + 4);
    round_of(spool, false, 0, 0);
    snprintf(path, sizeof(path), "cat %s/bad/*.reason | grep -c '^record: refused$'", folder);
    FILE *pipe = popen(path, "r");
    CHECK(pipe && fgets(line, sizeof(line), pipe));
    pclose(pipe);
    CHECK_STR(line, "2\n");
    tccl_spool_close(spool);
    for (int i = 0; i < TCCL_SPOOL_BAD; i++) {
        snprintf(path, sizeof(path), "%s/bad/%032x", folder, i);
        close(open(path, O_WRONLY | O_CREAT, 0600));
    }
    spool = open_spool();
    cleanup_json json_t *more = record(9, "applied");
    CHECK_INT(tccl_spool_put_aside(spool, more, "record: refused", ERR), 0);
    snprintf(path, sizeof(path), "%s/bad", folder);
    CHECK_INT(files_in(path), before + 4 + TCCL_SPOOL_BAD);
    cleanup_json json_t *long_one = batch(1, 1, "applied");
    json_object_set_new(json_array_get(long_one, 0), "ring", json_sprintf("%0*d", 1 << 20, 0));
    CHECK_FAILS(tccl_spool_put(spool, long_one, ERR), "1 records are too long for the spool");
    tccl_spool_close(spool);
    snprintf(path, sizeof(path), "rm %s/bad/*", folder);
    CHECK_INT(system(path), 0);
}

/* What an interrupted write left is swept; other people's files are not. */
TEST(leftovers)
{
    static const char *const names[] = {"0123456789abcdef0123456789abcdef.Ab1c2D", "README"};
    char paths[2][300];
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", folder, names[i]);
        cleanup_file FILE *file = fopen(paths[i], "w");
        CHECK(file != NULL);
    }
    struct tccl_spool *spool = open_spool();
    CHECK_INT((long long)tccl_spool_count(spool), 0);
    CHECK(access(paths[0], F_OK) != 0 && access(paths[1], F_OK) == 0);
    round_of(spool, false, 0, 0);
    unlink(paths[1]);
    tccl_spool_close(spool);
}

TEST(full_disk)
{
    struct rlimit limit, none;
    struct tccl_spool *spool = open_spool();
    put(spool, 8, "applied");
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    none = limit;
    none.rlim_cur = 10;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    for (int job = 8; job < 10; job++) {
        struct tccl_error err = {0};
        cleanup_json json_t *json = batch(job, 1, "differs");
        CHECK_INT(tccl_spool_put(spool, json, &err), -1);
        CHECK(strstr(err.text, folder) != NULL);
    }
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK_INT((long long)tccl_spool_count(spool), 1);
    CHECK_INT(files_in(folder), 1);
    round_of(spool, true, 1, 0);
    tccl_spool_close(spool);
}

/* A spool at its bound of bytes (sparse files stand for records) refuses more, and loses nothing.
 */
TEST(bounds)
{
    char path[300];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%032x", folder, i);
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT, 0600);
        CHECK(ftruncate(fd, TCCL_SPOOL_BYTES / 2 - 100) == 0);
    }
    struct tccl_error err = {0};
    struct tccl_spool *spool = open_spool();
    CHECK_INT((long long)tccl_spool_count(spool), 2);
    cleanup_json json_t *json = batch(9, 1, "applied");
    json_object_set_new(json_array_get(json, 0), "reason", json_sprintf("%0300d", 0));
    CHECK_INT(tccl_spool_put(spool, json, &err), -1);
    CHECK(strstr(err.text, "is full (2 files") != NULL);
    CHECK_INT((long long)tccl_spool_count(spool), 2);
    round_of(spool, false, 0, 2);
    err = (struct tccl_error){0};
    CHECK_INT(tccl_spool_put(spool, json, &err), 0);
    round_of(spool, true, 1, 0);
    tccl_spool_close(spool);
}

/* Put, restart, deliver, die before the removal, deliver again: one record in the store. */
TEST(delivered_once)
{
    char path[300], name[TCCL_SPOOL_NAME];
    struct tccl_records *records;
    snprintf(path, sizeof(path), "%s/records.db", check_folder());
    CHECK_INT(tccl_records_open(path, &records, ERR), 0);
    struct tccl_spool *spool = open_spool();
    put(spool, 1, "applied");
    put(spool, 2, "applied");
    for (int round = 0; round < 2; round++) {
        json_t *json;
        while (tccl_spool_next(spool, name, &json, ERR) == 0) {
            CHECK_INT(tccl_records_put(records, json_array_get(json, 0), ERR), 0);
            json_decref(json);
        }
        tccl_spool_close(spool);
        spool = open_spool();
    }
    json_t *next;
    cleanup_json json_t *all = tccl_records_query(records, NULL, -1, 1 << 20, &next, ERR);
    CHECK_INT((long long)json_array_size(all), 2);
    CHECK(next == NULL);
    round_of(spool, true, 2, 0);
    tccl_spool_close(spool);
    tccl_records_close(records);
}

SETUP
{
    snprintf(folder, sizeof(folder), "%s", check_at("spool"));
}

TEST(damage)
{
    check_damage(cut_off, "truncated");
    check_damage(empty, "truncated");
    check_damage(enlarge, "more than");
    check_damage(alter, "checksum is wrong");
    check_damage(exchange, "name is not that of its records");
}
