/* test-store.c: stores of other versions, records that get too old, and what is found by what. */
#include <sys/resource.h>
#include <sys/time.h>

#include "client/step-fields.h"
#include "records/outbox.h"
#include "records/store.h"
#include "stores.h"

static char path[128];

static struct tccl_records *new_store(void)
{
    return new_store_at(path);
}

static int64_t number(const char *sql)
{
    return store_sql(path, sql);
}

static void check_sound(void)
{
    CHECK_INT(number("SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
}

static void check_jobs(struct tccl_records *records, const char *filter, const char *jobs)
{
    char got[1000] = "";
    cleanup_json json_t *found = find_records(records, json_loads(filter, 0, NULL), -1, 1 << 20);
    for (size_t i = 0; i < json_array_size(found); i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%lld", i ? " " : "",
                 (long long)json_integer_value(json_object_get(json_array_get(found, i), "job")));
    if (strcmp(got, jobs) != 0)
        fprintf(stderr, "filter %s:\n", filter);
    CHECK_STR(got, jobs);
}

/* Closes it, and looks that its file is sound. */
static void end_store(struct tccl_records *records)
{
    tccl_records_close(records);
    check_sound();
}

/* Stores of other versions */

/* Is refused in one line that says what to do, and left as it is. */
static void check_refused(const char *sql, const char *why)
{
    struct tccl_records *records;
    remove_store_at(path);
    number(sql);
    int64_t version = number("PRAGMA user_version");
    CHECK_INT(tccl_records_open(path, NULL, &records, ERR), -1);
    CHECK(records == NULL && strstr(check_err.text, why) != NULL && !strchr(check_err.text, '\n'));
    CHECK_SAYS(summary_of(path, NULL, -1, ERR) == NULL, why);
    CHECK_INT(number("PRAGMA user_version"), version);
    CHECK_INT(number("SELECT count(*) FROM sqlite_master"), 1);
}

TEST(other_versions)
{
    check_refused("PRAGMA user_version = 10; CREATE TABLE x (y)", "not one of tccl's records");
    check_refused("PRAGMA application_id = 1952670572; PRAGMA user_version = 5;"
                  "CREATE TABLE records (job)",
                  "records of another version (schema 5, this one has 10); move it away");
    check_refused("PRAGMA application_id = 1952670572; PRAGMA user_version = 99;"
                  "CREATE TABLE records (job)",
                  "records of another version (schema 99, this one has 10); move it away");
}

/* Each column of the table of a step's members, but those that other indexes than that of facts
 * have, is as if it were new. */
TEST(new_columns)
{
    static const char *const indexed[] = {"uid", "start", "het_job", "array_job_id",
                                          "array_task_id"};
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        struct tccl_records *records = NULL;
        char drop[128];
        bool has = false;
        for (size_t j = 0; j < COUNT(indexed); j++)
            has = has || strcmp(field->name, indexed[j]) == 0;
        if (has || !(field->use & (TCCL_IN_RECORD | TCCL_IN_CONFIRMATION)) ||
            field->use & TCCL_IN_KEY)
            continue;
        bool built = !(field->use & TCCL_IN_RECORD);
        records = new_store();
        put_record(records, step_record(1, "planned", 1001));
        tccl_records_close(records);
        snprintf(drop, sizeof(drop),
                 "DROP INDEX records_facts;"
                 "ALTER TABLE records DROP COLUMN %s",
                 field->name);
        number(drop);
        snprintf(drop, sizeof(drop), "ALTER TABLE builds DROP COLUMN %s", field->name);
        if (built)
            number(drop);
        CHECK_SAYS(tccl_records_open_reader(path, &records, ERR) == -1,
                   "records of an older version: start");
        records = open_store_at(path);
        put_record(records, step_record(2, "planned", 1002));
        put_record(records, built_record(2, "differs", "why", 1002));
        check_jobs(records, "{}", "1 2");
        check_jobs(records, "{\"states\": [\"no\"]}", "2");
        tccl_records_close(records);
        records = open_store_at(path);
        end_store(records);
    }
}

/* A store with the two indexes of facts of an earlier version, and without two columns. */
static void make_earlier(int count)
{
    struct tccl_records *records = new_store();
    CHECK_OK(tccl_records_begin(records, ERR));
    for (int job = 1; job <= count; job++) {
        put_record(records, step_record(job, job % 5 ? "planned" : "failed", 1000 + job));
        if (job % 3)
            put_record(records,
                       built_record(job, job % 2 ? "applied" : "differs", "why", 1000 + job));
    }
    CHECK_OK(tccl_records_commit(records, ERR));
    tccl_records_close(records);
    number("DROP INDEX records_facts;"
           "ALTER TABLE records DROP COLUMN nccl; ALTER TABLE records DROP COLUMN nccl_gbps;"
           "CREATE INDEX records_facts ON records (start, id);"
           "CREATE INDEX records_measured ON records (start, id) WHERE achieved_gbps > 0");
}

static atomic_bool given_up;

static void give_up(int signal)
{
    atomic_store(&given_up, true);
}

/* Gives the opening up after some time. */
static void open_for(int ms)
{
    struct tccl_records *records;
    const struct itimerval time = {.it_value.tv_usec = 1000 * ms + 1};
    atomic_store(&given_up, false);
    signal(SIGALRM, give_up);
    setitimer(ITIMER_REAL, &time, NULL);
    int rc = tccl_records_open(path, &given_up, &records, ERR);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    CHECK(rc == 0 || strstr(check_err.text, "are taken over at the next start"));
    CHECK(rc == 0 || ms > 0 || atomic_load(&given_up));
    tccl_records_close(records);
    check_sound();
}

/* Whoever takes it over is killed at any moment, or gives it up, and loses nothing. */
TEST(taken_over)
{
    enum { COUNT_OF = 9000, KILLS = 12 };
    make_earlier(COUNT_OF);
    CHECK_SAYS(summary_of(path, NULL, -1, ERR) == NULL, "records of an older version: start");
    for (int i = 0; i < KILLS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct tccl_records *records;
            _exit(tccl_records_open(path, NULL, &records, NULL) != 0);
        }
        usleep(3000 * (unsigned)i);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        check_sound();
        open_for(i);
    }
    tccl_records_close(open_store_at(path)); /* goes on where they were */
    cleanup_json json_t *summary = summary_of(path, NULL, -1, ERR), *states = NULL;
    states = json_incref(json_object_get(summary, "states"));
    const json_t *built = json_object_get(summary, "built");
    int differ = 0, fell = COUNT_OF / 5;
    for (int job = 1; job <= COUNT_OF; job++)
        differ += job % 5 && job % 3 && job % 2 == 0;
    CHECK_INT(json_integer_value(json_object_get(built, "no")), differ);
    CHECK_INT(json_integer_value(json_object_get(states, "failed")), fell);
    CHECK_INT(json_integer_value(json_object_get(states, "planned")), COUNT_OF - fell);
    CHECK_INT(number("SELECT count(*) FROM records WHERE built = ''"), COUNT_OF / 3);
    CHECK_INT(number("SELECT count(*) FROM sqlite_master WHERE name = 'records_measured'"), 0);
    check_sound();
}

/* Retention */

static int purge_all(struct tccl_records *records, int64_t before, int most)
{
    int times = 0;
    for (int removed; (removed = tccl_records_purge(records, before, before, most, NULL)) != 0;
         times++)
        if (removed < 0 || removed > most)
            return -1;
    return times;
}

TEST(purge)
{
    struct tccl_records *records = new_store();
    for (int job = 1; job <= 25; job++) {
        put_record(records, step_record(job, "planned", 1000 + job));
        put_record(records, built_record(job, "applied", "why", 1000 + job));
    }
    put_record(records, built_record(99, "applied", "why", 1001)); /* of a record that never came */
    CHECK_INT(tccl_records_purge(records, 1001, 1001, 10, NULL), 0);
    CHECK_INT(tccl_records_purge(records, 1021, 1021, 7, NULL), 7);
    check_jobs(records, "{\"limit\": 100, \"end\": 1010}", "8 9 10");
    CHECK_INT(purge_all(records, 1021, 7), 2);
    check_jobs(records, "{}", "21 22 23 24 25");
    tccl_records_close(records);
    CHECK_INT(number("SELECT count(*) FROM builds"), 5);
    check_sound();
}

/* What is dated far off goes by the time at which it came, and keeps nothing else. */
TEST(misdated)
{
    int64_t believed, newest;
    struct tccl_records *records = new_store();
    CHECK_INT(tccl_records_time(records, &believed, &newest, NULL), 0);
    CHECK_INT(believed, 0);
    CHECK_INT(newest, 0);
    for (int job = 1; job <= 5; job++) {
        put_record(records, step_record(job, "planned", 1000 + job));
        put_record(records, built_record(job, "applied", "why", 1000 + job));
    }
    static const int starts[] = {3, 99000000};
    for (int i = 0; i < 2; i++) {
        cleanup_json json_t *json = step_record(50 + i, "planned", starts[i]);
        CHECK_INT(tccl_records_put_misdated(records, json, 1004, NULL), 0);
        put_record(records, built_record(50 + i, "applied", "why", starts[i]));
    }
    CHECK_INT(tccl_records_set_time(records, 1234, NULL), 0);
    CHECK_INT(tccl_records_time(records, &believed, &newest, NULL), 0);
    CHECK_INT(believed, 1234);
    CHECK_INT(newest, 1005);
    CHECK(purge_all(records, 1004, 2) > 0);
    check_jobs(records, "{}", "50 4 5 51");
    CHECK_INT(number("SELECT count(*) FROM builds"), 4);
    cleanup_json json_t *found = find_records(records, json_loads("{}", 0, NULL), -1, 1 << 20);
    CHECK_INT(json_integer_value(json_object_get(json_array_get(found, 0), "arrived")), 1004);
    CHECK(!json_object_get(json_array_get(found, 1), "arrived"));
    /* The right time comes after all. */
    put_record(records, step_record(50, "planned", 1004));
    CHECK(purge_all(records, 1005, 2) > 0);
    check_jobs(records, "{}", "5");
    tccl_records_close(records);
    CHECK_INT(number("SELECT count(*) FROM builds"), 1);
    check_sound();
}

/* Misdated records go by a time of their own, and no others. */
TEST(purge_misdated)
{
    struct tccl_records *records = new_store();
    put_record(records, step_record(1, "planned", 1001));
    for (int job = 50; job < 60; job++) {
        cleanup_json json_t *json = step_record(job, "planned", job % 2 ? 3 : 99000000);
        CHECK_INT(tccl_records_put_misdated(records, json, 1000 + job, NULL), 0);
        put_record(records, built_record(job, "applied", "why", job % 2 ? 3 : 99000000));
    }
    CHECK_INT(tccl_records_purge(records, 0, 1050, 10, NULL), 0);
    CHECK_INT(tccl_records_purge(records, 0, 1054, 3, NULL), 3);
    CHECK_INT(tccl_records_purge(records, 0, 1054, 3, NULL), 1);
    check_jobs(records, "{}", "55 57 59 1 54 56 58");
    CHECK_INT(number("SELECT count(*) FROM builds"), 6);
    CHECK_INT(tccl_records_purge(records, 0, 9999, 100, NULL), 6);
    check_jobs(records, "{}", "1");
    tccl_records_close(records);
    CHECK_INT(number("SELECT count(*) FROM builds"), 0);
    check_sound();
}

static int say_lost(struct tccl_records *records, const char *node, const char *ledger, int count,
                    int first, int last)
{
    struct tccl_lost lost = {.records = count, .first = first, .last = last};
    int rc = tccl_records_put_lost(records, node, ledger, &lost, 5000, ERR);
    CHECK((rc == 0) == (check_err.text[0] == '\0'));
    return rc;
}

static void check_lost(struct tccl_records *records, int count, int nodes, int first, int last)
{
    struct tccl_lost lost;
    CHECK_INT(tccl_records_lost(records, &lost, NULL), 0);
    CHECK_INT(lost.records, count);
    CHECK_INT(lost.nodes, nodes);
    CHECK_INT(lost.first, first);
    CHECK_INT(lost.last, last);
}

/* What nodes say that they have lost adds up, however often they say it; bad numbers don't. */
TEST(lost)
{
    static const char one[] = "0123456789abcdef", two[] = "fedcba9876543210";
    struct tccl_records *records = new_store();
    check_lost(records, 0, 0, 0, 0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(say_lost(records, "n1", one, 5, 100, 200), 0);
    check_lost(records, 5, 1, 100, 200);
    CHECK_INT(say_lost(records, "n1", one, 7, 150, 300), 0);
    CHECK_INT(say_lost(records, "n1", one, 6, 1, 900), 0); /* late: it has said 7 */
    check_lost(records, 7, 1, 100, 300);
    CHECK_INT(say_lost(records, "n1", two, 1, 400, 400), 0);  /* after a boot */
    CHECK_INT(say_lost(records, "n2", one, 10, 50, 9000), 0); /* its clock is ahead */
    check_lost(records, 18, 2, 50, 5000);
    CHECK_INT(say_lost(records, "n3/..", one, 1, 1, 1), 1);
    CHECK_INT(say_lost(records, "", one, 1, 1, 1), 1);
    CHECK_INT(say_lost(records, "n3", "0123", 1, 1, 1), 1);
    CHECK_INT(say_lost(records, "n3", "0123456789abcdeG", 1, 1, 1), 1);
    CHECK_INT(say_lost(records, "n3", one, 0, 1, 1), 1);
    CHECK_INT(say_lost(records, "n3", one, -1, 1, 1), 1);
    CHECK_INT(say_lost(records, "n3", one, 1, 2, 1), 1);
    check_lost(records, 18, 2, 50, 5000);
    put_record(records, step_record(1, "planned", 4000));
    CHECK_INT(purge_all(records, 350, 2), 0);
    check_lost(records, 11, 2, 50, 5000);
    number("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 65534)"
           " INSERT INTO lost SELECT 'm' || i, '0123456789abcdef', 1, 1, 1 FROM n");
    CHECK_INT(say_lost(records, "n4", one, 1, 1, 1), 1); /* more rows are not made, */
    CHECK_INT(number("SELECT count(*) FROM lost"), 65536);
    CHECK_INT(say_lost(records, "n2", one, 11, 50, 60), 0); /* but those that are there go up */
    check_lost(records, 65534 + 12, 65536, 1, 400);
    end_store(records);
}

/* What old records took is given back. */
TEST(shrink)
{
    struct stat full, empty;
    struct tccl_records *records = new_store();
    cleanup_free char *ring = malloc(60001);
    memset(ring, 'x', 60000);
    ring[60000] = '\0';
    for (int job = 1; job <= 100; job++) {
        json_t *json = step_record(job, "planned", 1000 + job);
        json_object_set_new(json, "ring", json_string(ring));
        put_record(records, json);
    }
    tccl_records_close(records);
    CHECK_INT(stat(path, &full), 0);
    records = open_store_at(path);
    CHECK(purge_all(records, 1091, 5) > 0);
    tccl_records_close(records);
    CHECK_INT(stat(path, &empty), 0);
    CHECK(empty.st_size < full.st_size / 3);
    check_sound();
}

/* Whose array is it? Steps of few users, jobs and times, against each of which each is held. */
enum { OWNED = 300 };

struct owned {
    int job, uid, array, start;
};

static bool is_hidden(const struct owned *all, const struct owned *one)
{
    const int month = 30 * 86400;
    for (int i = 0; i < OWNED; i++)
        if (all[i].job == one->array && all[i].uid != one->uid &&
            abs(all[i].start - one->start) <= month)
            return true;
    return false;
}

TEST(owners)
{
    struct owned all[OWNED];
    owned(records) struct tccl_records *records = new_store();
    for (int i = 0; i < OWNED; i++) {
        all[i] =
            (struct owned){1 + rand() % 20, 1000 + rand() % 3, rand() % 2 ? 1 + rand() % 20 : 0,
                           1700000000 + rand() % 40 * 10 * 86400};
        json_t *json = step_record(all[i].job, "planned", all[i].start);
        json_object_update_new(json, json_pack("{s:i, s:i, s:i}", "uid", all[i].uid, "step", i,
                                               "array_job_id", all[i].array));
        put_record(records, json);
    }
    for (int array = 1; array <= 20; array++) {
        char filter[200];
        size_t expected = 0;
        snprintf(filter, sizeof(filter),
                 "{\"jobs\":[{\"array_job\":%d},{\"array_job\":%d,\"x\":1},{\"array_job\":%d}]}",
                 array, array, array);
        cleanup_json json_t *found = find_records(records, json_loads(filter, 0, NULL), -1, 2000);
        for (int i = 0; i < OWNED; i++)
            expected += all[i].array == array && !is_hidden(all, &all[i]);
        CHECK_INT(json_array_size(found), expected);
    }
}

/* Runs of a step under one key */

TEST(later_run)
{
    struct tccl_records *records = new_store();
    put_record(records, step_record(1, "planned", 2000));
    put_record(records, step_record(1, "failed", 1000)); /* from the outbox, of the run before */
    check_jobs(records, "{\"states\": [\"planned\"]}", "1");
    put_record(records, step_record(1, "failed", 3000));
    check_jobs(records, "{\"states\": [\"failed\"], \"start\": 3000}", "1");
    check_jobs(records, "{\"end\": 2999}", "");
    put_record(records, built_record(1, "differs", "why",
                                     2000)); /* of a run that is not on record any more */
    put_record(records, step_record(1, "planned", 3000));
    check_jobs(records, "{\"states\": [\"planned\"]}", "1");
    put_record(records, built_record(1, "differs", "why", 3000));
    check_jobs(records, "{\"states\": [\"no\"]}", "1");
    put_record(records, step_record(1, "planned", 4000));
    check_jobs(records, "{\"states\": [\"planned\"]}", "1");
    end_store(records);
}

/* Records that are stored together */

/* Puts the jobs in one go; no file may grow beyond limit bytes then. Returns what commit says. */
static int put_batch(struct tccl_records *records, int first, int last, rlim_t limit)
{
    struct rlimit before, full;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    full = before;
    full.rlim_cur = limit;
    CHECK_INT(tccl_records_begin(records, ERR), 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &full) == 0);
    for (int job = first; job <= last; job++) {
        cleanup_json json_t *json = step_record(job, "planned", 1000 + job);
        cleanup_json json_t *built = built_record(job, "applied", "why", 1000 + job);
        tccl_records_put(records, json, NULL);
        tccl_records_put(records, built, NULL);
    }
    int rc = tccl_records_commit(records, ERR);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK_STR(rc == 0 ? check_err.text : "", "");
    return rc;
}

TEST(batches)
{
    signal(SIGXFSZ, SIG_IGN);
    struct tccl_records *records = new_store();
    CHECK_INT(put_batch(records, 1, 5, RLIM_INFINITY), 0);
    check_jobs(records, "{}", "1 2 3 4 5");
    CHECK_INT(tccl_records_begin(records, NULL), 0);
    put_record(records, step_record(6, "planned", 1006));
    cleanup_json json_t *bad = json_object();
    CHECK_INT(tccl_records_put(records, bad, NULL), 1);
    put_record(records, step_record(7, "planned", 1007));
    CHECK_INT(tccl_records_commit(records, NULL), 0); /* one that is refused keeps no other out */
    check_jobs(records, "{\"jobs\": [{\"job\": 6}, {\"job\": 7}]}", "6 7");
    CHECK_INT(put_batch(records, 1000, 4000, 120000), -1);
    check_jobs(records, "{}", "1 2 3 4 5 6 7");
    CHECK_INT(put_batch(records, 8, 9, RLIM_INFINITY), 0);
    tccl_records_close(records);
    records = open_store_at(path);
    check_jobs(records, "{}", "1 2 3 4 5 6 7 8 9");
    end_store(records);
}

/* Filters */

static void put_with(struct tccl_records *records, int job, const char *more)
{
    json_t *json = step_record(job, "failed", 1000 + job);
    cleanup_json json_t *rest = json_loads(more, 0, NULL);
    CHECK(rest && json_object_update(json, rest) == 0);
    put_record(records, json);
}

TEST(filters)
{
    owned(records) struct tccl_records *records = new_store();
    put_with(records, 1, "{\"partition\": \"gpu\", \"account\": \"a\", \"policy\": \"big\"}");
    put_with(records, 2,
             "{\"partition\": \"gpu\", \"account\": \"b\", \"nodes\": \"m1\","
             " \"job_name\": \"it's\", \"n_nodes\": 3,"
             " \"reason\": \"n1: why\", \"reason_class\": \"no answer in time\"}");
    put_with(records, 3,
             "{\"partition\": \"cpu\", \"account\": \"a\", \"uid\": 1001,"
             " \"reason\": \"n1: something\"}");
    put_with(records, 4,
             "{\"partition\": \"gpu\", \"account\": \"a\", \"policy\": \"big\","
             " \"reason\": \"other\", \"reason_class\": \"policy\"}");
    check_jobs(records, "{\"order\": \"newest\"}", "4 3 2 1");
    check_jobs(records, "{\"order\": \"oldest\"}", "1 2 3 4");
    check_jobs(records, "{\"order\": \"newest\", \"limit\": 1}", "4 3 2 1"); /* pages of one */
    check_jobs(records, "{\"partitions\": [\"gpu\"]}", "1 2 4");
    check_jobs(records, "{\"partitions\": [\"gp\"]}", "");
    check_jobs(records, "{\"partitions\": []}", "");
    check_jobs(records, "{\"partitions\": null}", "1 2 3 4");
    check_jobs(records, "{\"accounts\": [\"b\", \"c\"]}", "2");
    check_jobs(records, "{\"policies\": [\"big\"], \"order\": \"newest\"}", "4 1");
    check_jobs(records, "{\"policies\": [\"\"]}", "2 3");
    check_jobs(records, "{\"classes\": [\"no answer in time\", \"policy\"]}", "2 4");
    check_jobs(records, "{\"classes\": [\"other\"]}", "3");
    check_jobs(records, "{\"classes\": [\"\"]}", "1");
    check_jobs(records, "{\"users\": [1001]}", "3");
    check_jobs(records, "{\"names\": [\"it's\", \"x\"]}", "2");
    check_jobs(records, "{\"names\": [\"it\"]}", "");
    check_jobs(records, "{\"names\": [\"it's\"], \"jobs\": [{\"job\": 2}, {\"job\": 3}]}", "2");
    check_jobs(records, "{\"names\": [\"it's\"], \"users\": [1001]}", "");
    check_jobs(records, "{\"min_nodes\": 3}", "2");
    check_jobs(records, "{\"max_nodes\": 2, \"order\": \"newest\"}", "4 3 1");
    check_jobs(records, "{\"min_nodes\": 3, \"max_nodes\": 3}", "2");
    check_jobs(records, "{\"users\": [1001, 1000], \"accounts\": [\"a\"]}", "1 3 4");
    check_jobs(records, "{\"nodes\": [\"m1\"], \"partitions\": [\"gpu\"]}", "2");
    check_jobs(records, "{\"jobs\": [{\"job\": 1}, {\"job\": 3}], \"partitions\": [\"gpu\"]}", "1");
    check_jobs(records, "{\"jobs\": [{\"job\": 1}, {\"job\": 4}], \"order\": \"newest\"}", "4 1");
}

TEST(bad_filters)
{
    static const char *const bad[] = {
        "{\"partitions\": \"gpu\"}", "{\"accounts\": [1]}", "{\"classes\": {}}",
        "{\"policies\": [null]}",    "{\"order\": 1}",      "{\"order\": \"random\"}",
        "{\"names\": \"x\"}",        "{\"names\": [1]}",    "{\"min_nodes\": -1}",
        "{\"max_nodes\": \"2\"}",
    };
    owned(records) struct tccl_records *records = open_store_at(path);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct tccl_error err = {0};
        json_t *next;
        cleanup_json json_t *filter = json_loads(bad[i], 0, NULL);
        CHECK(tccl_records_query(records, filter, -1, 1000, &next, &err) == NULL);
        CHECK(strstr(err.text, "filter: ") == err.text);
        CHECK(summary_of(path, filter, -1, &err) == NULL);
    }
    char text[1000] = "{\"accounts\": [\"a\"";
    for (int i = 0; i < TCCL_FILTER_NAMES; i++)
        strcat(text, ", \"a\"");
    strcat(text, "]}");
    struct tccl_error err = {0};
    json_t *next;
    cleanup_json json_t *filter = json_loads(text, 0, NULL);
    CHECK(tccl_records_query(records, filter, -1, 1000, &next, &err) == NULL);
    CHECK(strstr(err.text, "accounts must be a list of at most 64") != NULL);
}

/* Pages neither lose nor double a row, either way round, also while others come and go. */
TEST(pages)
{
    enum { JOBS = 300 };
    int seen[JOBS + 1] = {0};
    owned(records) struct tccl_records *records = new_store();
    for (int job = 1; job <= JOBS; job++)
        put_record(records, step_record(job, "planned", 1000 + rand() % 10));
    for (int newest = 0; newest < 2; newest++) {
        json_t *filter = json_pack("{s:s, s:i}", "order", newest ? "newest" : "oldest", "limit", 7);
        int64_t last = newest ? INT64_MAX : 0;
        for (int extra = 1000 * (newest + 1); filter; extra++) {
            json_t *next = NULL;
            cleanup_json json_t *page =
                tccl_records_query(records, filter, -1, 1 + (size_t)rand() % 4000, &next, NULL);
            for (size_t i = 0; i < json_array_size(page); i++) {
                const json_t *one = json_array_get(page, i);
                int64_t job = json_integer_value(json_object_get(one, "job"));
                int64_t start = json_integer_value(json_object_get(one, "start"));
                CHECK(newest ? start <= last : start >= last);
                last = start;
                if (job <= JOBS)
                    seen[job]++;
            }
            put_record(records, step_record(extra, "planned", 1000 + rand() % 10));
            json_decref(filter);
            filter = next;
        }
    }
    for (int job = 1; job <= JOBS; job++)
        CHECK_INT(seen[job], 2);
}

/* Killed at any moment */

static int too_long;

static struct tccl_outbox *open_outbox(void)
{
    struct tccl_outbox *outbox;
    int64_t lost;
    return tccl_outbox_open(check_printf("%.140s.outbox", path), &outbox, &lost, NULL) == 0 ? outbox
                                                                                            : NULL;
}

/* Puts records, two at a time first into the outbox, then into the store, then out of the outbox;
 * says so on a pipe when they are in the outbox. */
static void write_until_killed(int out, int job)
{
    struct tccl_outbox *outbox = open_outbox();
    struct tccl_records *records = open_store_at(path);
    for (;; job += 2) {
        if (!outbox)
            _exit(1);
        cleanup_json json_t *ids = NULL,
                            *json = json_pack("[o, o]", step_record(job, "planned", 1000 + job),
                                              step_record(job + 1, "planned", 1001 + job));
        int last = job + 1, lost = 0;
        if (tccl_outbox_put(outbox, json, &too_long, NULL) != 0 ||
            write(out, &last, sizeof(last)) != sizeof(last))
            _exit(1);
        for (size_t i = 0; i < 2; i++)
            put_record(records, json_incref(json_array_get(json, i)));
        put_record(records, built_record(job, "differs", "why", 1000 + job));
        cleanup_json json_t *found = tccl_outbox_take(outbox, 0, 10, 1 << 20, &ids, &lost, NULL);
        if (!json_equal(found, json) || tccl_outbox_remove(outbox, ids, NULL, NULL) != 0)
            _exit(1);
    }
    _exit(1);
}

/* What the outbox still holds goes into the store. */
static void deliver(struct tccl_records *records)
{
    struct tccl_outbox *outbox = open_outbox();
    cleanup_json json_t *ids = NULL;
    int lost = 0;
    CHECK(outbox != NULL);
    cleanup_json json_t *found = tccl_outbox_take(outbox, 0, 10, 1 << 20, &ids, &lost, NULL);
    for (size_t i = 0; i < json_array_size(found); i++)
        put_record(records, json_incref(json_array_get(found, i)));
    CHECK_INT(tccl_outbox_remove(outbox, ids, NULL, NULL), 0);
    CHECK_INT(tccl_outbox_count(outbox), 0);
    CHECK_INT(lost, 0);
    tccl_outbox_close(outbox);
}

TEST(killed)
{
    int last = 0;
    tccl_records_close(new_store());
    for (int round = 0; round < 25; round++) {
        int ends[2], job;
        CHECK_INT(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0)
            write_until_killed(ends[1], last + 1);
        close(ends[1]);
        CHECK_INT(read(ends[0], &job, sizeof(job)), sizeof(job));
        usleep((useconds_t)(rand() % 50000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        last = job;
        while (read(ends[0], &job, sizeof(job)) == sizeof(job))
            last = job;
        close(ends[0]);
        struct tccl_records *records = open_store_at(path);
        deliver(records);
        cleanup_json json_t *found = find_records(records, json_loads("{}", 0, NULL), -1, 1 << 24);
        /* Two more may be there: in the outbox, but not yet said. */
        size_t count = json_array_size(found);
        CHECK(count == (size_t)last || count == (size_t)last + 2);
        cleanup_json json_t *summary = summary_of(path, NULL, -1, NULL);
        CHECK_INT(json_integer_value(json_object_get(summary, "steps")), (long long)count);
        for (size_t i = 0; i < count; i++)
            CHECK_INT(json_integer_value(json_object_get(json_array_get(found, i), "job")),
                      (long long)i + 1);
        last = (int)count;
        end_store(records);
    }
    CHECK(last >= 25);
}

/* Where other machines may write, no journal is in shared memory. */
TEST(remote)
{
    CHECK(tccl_store_is_remote(0x6969));
    CHECK(tccl_store_is_remote((long)0xff534d42));
    CHECK(!tccl_store_is_remote(0xef53));     /* ext4 */
    CHECK(!tccl_store_is_remote(0x01021994)); /* tmpfs */
    CHECK(!tccl_store_is_remote(0x58465342)); /* XFS */
}

SETUP
{
    snprintf(path, sizeof(path), "%s", check_at("records.db"));
    /* What SQLite sorts in goes with the folder, whoever is killed. */
    setenv("SQLITE_TMPDIR", check_folder(), 1);
}
