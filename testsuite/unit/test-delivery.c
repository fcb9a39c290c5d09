/* test-delivery.c: records on their way to another node, which is the test itself: what it takes is
 * removed, what it does not take comes again, wherever records are to go meanwhile. The journal is
 * real, with its disk. */
#include <sqlite3.h>

#include "base/clock.h"
#include "check.h"
#include "client/message.h"
#include "records/outbox.h"
#include "records/records.h"
#include "tccld/journal/disk-task.h"
#include "tccld/main/metrics.h"
#include "tccld/net/link.h"

enum { PATIENCE_MS = 20000 };

/* What the journal talks to. */
struct link {
    void (*done)(void *context, json_t *answer, const struct tccl_error *err);
    void *context;
    json_t *message;
};
static struct link asked;
static int tries; /* to deliver */
static int told;  /* how many are lost, which nobody hears */

struct link *link_ask(struct daemon *daemon, const char *node, json_t *message, int64_t deadline,
                      void (*done)(void *context, json_t *answer, const struct tccl_error *err),
                      void *context)
{
    CHECK(daemon && deadline > tccl_now_ms() && !asked.done);
    CHECK_STR(node, "home");
    if (strcmp(tccl_message_type(message), "record") != 0) {
        told++;
        return NULL;
    }
    asked = (struct link){done, context, json_incref(message)};
    tries++;
    return &asked;
}
void link_cancel(struct link *link)
{
    json_decref(link->message);
    *link = (struct link){0};
}
bool link_connected(const struct link *link)
{
    return link->message != NULL;
}
void metrics_works(struct metrics *metrics, enum metrics_part part, bool works)
{
}
void metrics_records(struct metrics *metrics, long long lost, long long pending)
{
}
struct connection *connection_hold(struct connection *connection)
{
    return connection;
}
void connection_drop(struct connection *connection)
{
}
void connection_answer(struct connection *connection, json_t *message)
{
}
void connection_answer_ok(struct connection *connection)
{
}
bool connection_closed(const struct connection *connection)
{
    return false;
}
bool connection_trusted(const struct connection *connection)
{
    return false;
}
const char *connection_node(const struct connection *connection)
{
    return "n1";
}
uid_t connection_uid(const struct connection *connection)
{
    return 0;
}

/* Where it is slow, the store is opened for as long as it may be. */
static bool slow_store;
int __real_tccl_records_open(const char *path, const atomic_bool *stop,
                             struct tccl_records **records, struct tccl_error *err);
int __wrap_tccl_records_open(const char *path, const atomic_bool *stop,
                             struct tccl_records **records, struct tccl_error *err);
int __wrap_tccl_records_open(const char *path, const atomic_bool *stop,
                             struct tccl_records **records, struct tccl_error *err)
{
    int64_t end = tccl_now_ms() + PATIENCE_MS;
    if (!slow_store)
        return __real_tccl_records_open(path, stop, records, err);
    while (!atomic_load(stop) && tccl_now_ms() < end)
        usleep(1000);
    return tccl_fail(err, "given up");
}

/* The node "n1", whose records are another's or its own. */
static struct tccl_conf conf = {.node = "n1"};
static struct daemon node = {.conf = &conf};
static struct journal *journal;

static void set_home(const char *host)
{
    strcpy(conf.accounting_host, host);
}

static void begin_journal(const char *home)
{
    check_remove(check_folder());
    snprintf(conf.state_dir, sizeof(conf.state_dir), "%s/state", check_folder());
    snprintf(conf.run_dir, sizeof(conf.run_dir), "%s", check_folder());
    set_home(home);
    tries = 0;
    node.base = event_base_new();
    journal = node.journal = journal_open(&node, ERR);
    CHECK_STR(check_err.text, "");
}

static void begin(const char *home)
{
    begin_journal(home);
    for (int i = 0; i < 100 && journal_trouble(journal); i++)
        event_base_loop(node.base, EVLOOP_ONCE);
}

static void end(void)
{
    journal_close(journal);
    event_base_free(node.base);
}

static void put(int job)
{
    journal_put(journal, json_pack("{s:s, s:i, s:i, s:i, s:s, s:I, s:i}", "cluster", "c", "job",
                                   job, "step", 0, "uid", 1, "state", "planned", "start",
                                   (json_int_t)time(NULL), "reporter", 0));
}

/* Goes on until that holds. */
#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        for (int64_t end_ = tccl_now_ms() + PATIENCE_MS; !(condition) && tccl_now_ms() < end_;) {  \
            event_base_loop(node.base, EVLOOP_NONBLOCK);                                           \
            usleep(1000);                                                                          \
        }                                                                                          \
        CHECK(condition);                                                                          \
    } while (0)

/* Those under way: so many, from one job on? */
static bool under_way(int job, size_t count)
{
    const json_t *records = json_object_get(asked.message, "records");
    return asked.done && json_array_size(records) == count &&
           json_integer_value(json_object_get(json_array_get(records, 0), "job")) == job;
}

/* AccountingHost takes them, but the refused one (-1: all), or can't be reached. */
static void answer(bool there, int refused)
{
    struct link link = asked;
    if (!link.done)
        return; /* a check has failed */
    cleanup_json json_t *ok = json_pack("{s:s}", "type", "ok");
    asked = (struct link){0};
    if (refused >= 0)
        json_object_set_new(ok, "refused",
                            json_pack("[{s:i, s:s}]", "record", refused, "text", "no good"));
    link.done(link.context, there ? ok : NULL,
              &(struct tccl_error){.text = "home: connection refused"});
    json_decref(link.message);
}

static int sql(const char *file, const char *text)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int number = -1;
    if (sqlite3_open(check_at("%s", file), &db) == SQLITE_OK &&
        sqlite3_busy_timeout(db, 5000) == 0 &&
        sqlite3_prepare_v2(db, text, -1, &statement, NULL) == SQLITE_OK)
        number = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int(statement, 0) : 0;
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

static int waiting(void)
{
    return sql("state/outbox.db", "SELECT count(*) FROM waiting");
}

static int stored(void)
{
    return sql("state/records.db", "SELECT count(*) FROM records");
}

/* Two of AccountingHost's that it has not taken are in the outbox, and tried again. */
static void leave_two(void)
{
    put(1);
    AWAIT(under_way(1, 1));
    put(2);
    answer(false, -1);
    AWAIT(waiting() == 2 && journal->waiting == 2);
    AWAIT(under_way(1, 2));
}

/* What was taken can't be removed: the store here stays open, what was refused is lost once, and
 * all of it comes again. */
TEST(failing_remove)
{
    begin("home");
    leave_two();
    CHECK_INT(sql("state/outbox.db", "CREATE TRIGGER stuck BEFORE DELETE ON waiting BEGIN SELECT "
                                     "RAISE(ABORT, 'stuck'); END"),
              0);
    for (int round = 0; round < 2; round++) {
        answer(true, 1);
        journal->retry_ms = 0; /* not later each time, for this test's sake */
        AWAIT(under_way(1, 2));
        CHECK_INT(journal->losses.count, 0);
        CHECK(journal->store && !journal_trouble(journal));
    }
    CHECK_INT(sql("state/outbox.db", "DROP TRIGGER stuck"), 0);
    answer(true, 1);
    AWAIT(journal->losses.count == 1 && journal->waiting == 0);
    CHECK_INT(waiting(), 0);
    CHECK_INT(sql("state/outbox.db", "SELECT count(*) FROM aside"), 1);
    CHECK_INT(journal->losses.pending, 0);
    put(3); /* to AccountingHost, and at once */
    AWAIT(under_way(3, 1));
    answer(true, -1);
    CHECK_INT(journal->losses.pending, 0);
    end();
}

/* SIGHUP: records that wait in memory for a node that is not AccountingHost any more are stored
 * here, and so is what was under way to it. */
TEST(home_becomes_this_node)
{
    begin("home");
    put(1);
    AWAIT(under_way(1, 1));
    for (int job = 2; job < 5; job++)
        put(job);
    CHECK_INT((long long)json_array_size(journal->memory), 3);
    set_home("n1");
    journal_reloaded(journal);
    AWAIT(stored() == 3);
    answer(false, -1);
    AWAIT(stored() == 4 && journal->losses.pending == 0);
    CHECK_INT(tries, 1);
    end();
    CHECK_INT(waiting(), 0);
}

/* SIGHUP: records that no disk here has taken go to the new AccountingHost out of memory. */
TEST(home_becomes_another)
{
    begin("n1");
    AWAIT(journal->store && journal->outbox);
    tccl_records_close(tccl_steal(journal->store));
    tccl_outbox_close(tccl_steal(journal->outbox));
    put(1);
    put(2);
    AWAIT(json_array_size(journal->memory) == 2);
    evtimer_del(journal->retry);
    evtimer_del(journal->opening);
    set_home("home");
    journal_reloaded(journal);
    AWAIT(under_way(1, 2));
    answer(true, -1);
    CHECK_INT(journal->losses.pending, 0);
    CHECK_INT((long long)json_array_size(journal->memory), 0);
    CHECK_INT((long long)journal->memory_bytes, 0);
    end();
}

/* It was not there, nor for so long before. */
static void stay_away(void)
{
    answer(false, -1);
    journal->tried_ms -= JOURNAL_EARLY_MS - 500;
}

/* Once AccountingHost has been away for long it is tried seldom; a new record has it tried early,
 * but not with each one. */
TEST(early)
{
    begin("home");
    leave_two();
    journal->retry_ms = JOURNAL_RETRY_MOST_MS;
    stay_away();
    int64_t since_ms = tccl_now_ms();
    int before = tries;
    for (int job = 3; job < 8; job++)
        put(job);
    AWAIT(asked.done != NULL);
    CHECK_INT(tries, before + 1);
    CHECK(tccl_now_ms() - since_ms >= 400);
    stay_away();
    CHECK(journal->retry_ms == JOURNAL_RETRY_MOST_MS && !journal->newer);
    put(8);
    AWAIT(asked.done != NULL);
    put(9); /* while it is being tried: that counts, too */
    answer(false, -1);
    for (int left = 9; left > 0; left -= journal->waiting > 0 ? 0 : left) {
        AWAIT(asked.done != NULL || journal->waiting == 0);
        if (asked.done)
            answer(true, -1);
    }
    CHECK_INT(waiting(), 0);
    end();
}

/* Where it is not heard how many are lost, that is said again soon, later each time. */
TEST(told_again)
{
    begin("home");
    told = 0;
    journal_lose(journal, NULL, 1, 0, "a test");
    AWAIT(told == 2);
    CHECK_INT(journal->tell_ms, 4000);
    end();
}

/* tccld ends while its store is taken over, which takes any time: that is given up, and records are
 * in the outbox. */
TEST(ends_while_opening)
{
    slow_store = true;
    begin_journal("n1");
    for (int job = 1; job < 4; job++)
        put(job);
    end();
    slow_store = false;
    CHECK_INT(waiting(), 3);
    CHECK_INT(sql("state/outbox.db", "SELECT count(*) FROM aside"), 0);
}

/* What is in memory at the end is in the outbox, and what was under way. */
TEST(ends)
{
    begin("home");
    put(1);
    AWAIT(under_way(1, 1));
    for (int job = 2; job < 5; job++)
        put(job);
    end();
    CHECK_INT(waiting(), 4);
}
