/* QUERY and SUMMARY. Each is answered in a thread with a connection of its own to the store, beside
 * the thread that writes there, and of a user one of a kind at a time: so that neither records nor
 * other users wait for what one of them asks. A question is bounded in time, and ends when whoever
 * has asked hangs up. */

#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "client/message.h"
#include "records/records.h"
#include "tccld/journal/disk-task.h"
#include "tccld/journal/journal-internal.h"

/* Questions that wait, and of them those of a user who sees no others' records. */
enum { QUERIES = 512, QUERIES_EACH = 128, SUMMARIES = 64, SUMMARIES_EACH = 4 };
enum {
    QUERY_READERS = 4,
    SUMMARY_READERS = 2,
    MOST_MS = 1000,      /* for a question of a user, */
    ALL_MOST_MS = 10000, /* and of one who sees all records */
    NICE = 5,            /* steps and records have the processor first */
    LOOK_MS = 50,        /* between two looks for who has hung up */
};

struct reader {
    struct questions *questions;
    int opened;                   /* journal->opened at that time */
    struct tccl_records *records; /* NULL: not opened yet; of its task's thread */
    struct disk_task *task;       /* under way, or NULL */
    uid_t user;                   /* who has asked */
    atomic_bool stop;
};

/* The store, with the bounds of a question. NULL with err. */
static struct tccl_records *open_store(struct disk_task *task)
{
    struct reader *reader = task->reader;
    int opened = atomic_load(&task->journal->opened);
    if (!atomic_load(&task->journal->own))
        return tccl_fail_null(
            &task->err, "no store of records: %s is not there, or others than root may change it",
            task->journal->folder);
    if (reader->records && reader->opened != opened) { /* it may be another file now */
        tccl_records_close(reader->records);
        reader->records = NULL;
    }
    reader->opened = opened;
    if (!reader->records &&
        tccl_records_open_reader(task->journal->path, &reader->records, &task->err) != 0)
        return NULL;
    tccl_records_bound(reader->records, task->uid < 0 ? ALL_MOST_MS : MOST_MS, &reader->stop);
    return reader->records;
}

/* After a question that has failed the store is opened anew: it may be another file by then. */
static void fail_question(struct disk_task *task)
{
    json_decref(task->answer);
    task->answer = NULL;
    task->given_up = task->reader->records && tccl_records_gave_up(task->reader->records);
    tccl_records_close(task->reader->records);
    task->reader->records = NULL;
}

/* How many records are lost. Returns 0, or -1 with err. */
static int put_lost(struct disk_task *task, struct tccl_records *store, json_t *answer)
{
    struct tccl_lost lost;
    if (tccl_records_lost(store, &lost, &task->err) != 0)
        return -1;
    return json_object_set_new(answer, "lost", tccl_lost_to_json(&lost)) == 0
               ? 0
               : tccl_fail(&task->err, "out of memory");
}

static void run_query(struct disk_task *task)
{
    cleanup_json json_t *next = NULL;
    struct tccl_records *store = open_store(task);
    cleanup_json json_t *page =
        store ? tccl_records_query(store, task->record, task->uid, JOURNAL_PAGE, &next, &task->err)
              : NULL;
    task->answer = tccl_message_new("records");
    if (!page || (!next && put_lost(task, store, task->answer) != 0)) {
        fail_question(task);
        return;
    }
    json_object_set(task->answer, "records", page);
    json_object_set_new(task->answer, "version", json_string(TCCL_VERSION));
    json_object_set(task->answer, "next", next ? next : json_null());
}

static void run_summary(struct disk_task *task)
{
    struct tccl_records *store = open_store(task);
    json_t *summary =
        store ? tccl_records_summary(store, task->record, task->uid, &task->err) : NULL;
    task->answer = tccl_message_new("summary");
    json_object_set_new(task->answer, "summary", summary);
    if (!summary || put_lost(task, store, summary) != 0)
        fail_question(task);
}

/* Answers whoever has asked. */
static void then_answer(struct disk_task *task)
{
    if (task->given_up)
        log_limited(connection_closed(task->connection) ? &task->journal->abandoned
                                                        : &task->journal->late,
                    "a question of uid %u about records: %s", connection_uid(task->connection),
                    task->err.text);
    const struct tccl_error *closed = &task->journal->closed;
    if (*closed->text && task->answer)
        tccl_put_text(task->answer, "trouble", closed->text, 511);
    if (task->answer) {
        connection_answer(task->connection, task->answer);
    } else {
        if (*closed->text && !task->given_up) {
            task->err = *closed;
            tccl_fail_in(&task->err, "no store of records");
        }
        tccl_fail_in(&task->err, "%s", task->journal->daemon->conf->node);
        journal_refuse(task->connection, task->err.text, true);
    }
    connection_drop(task->connection);
}

/* Nobody hears the answer. */
static void let_go(struct disk_task *task)
{
    connection_drop(task->connection);
    json_decref(task->record);
    free(task);
}

static struct reader *idle_reader(struct questions *questions)
{
    for (int i = 0; i < questions->n_readers; i++)
        if (!questions->readers[i].task)
            return &questions->readers[i];
    return NULL;
}

static int is_asking(const void *context, uid_t user)
{
    const struct questions *questions = context;
    for (int i = 0; i < questions->n_readers; i++)
        if (questions->readers[i].task && questions->readers[i].user == user)
            return 1;
    return 0;
}

/* Ends the questions of those who have hung up. */
static void on_watch(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct questions *questions = argument;
    bool asked = false;
    for (int i = 0; i < questions->n_readers; i++) {
        struct reader *reader = &questions->readers[i];
        asked = asked || reader->task;
        if (reader->task && connection_closed(reader->task->connection))
            atomic_store(&reader->stop, true);
    }
    if (asked)
        daemon_set(questions->watch, LOOK_MS);
}

static void ask_next(struct questions *questions)
{
    struct disk_task *task;
    struct reader *reader;
    while ((reader = idle_reader(questions)) &&
           (task = fair_queue_take_unless(questions->waiting, is_asking, questions)) != NULL) {
        if (connection_closed(task->connection)) {
            let_go(task);
            continue;
        }
        reader->task = task;
        reader->user = connection_uid(task->connection);
        atomic_store(&reader->stop, false);
        task->reader = reader;
        if (threads_submit(questions->pool, disk_task_run, disk_task_done, task) == 0) {
            daemon_set(questions->watch, LOOK_MS);
        } else {
            reader->task = NULL;
            tccl_fail(&task->err, "no thread can be started for questions about records");
            task->then = then_answer;
            disk_task_done(task);
        }
    }
}

static void then_next(struct disk_task *task)
{
    struct questions *questions = task->reader->questions;
    then_answer(task);
    task->reader->task = NULL;
    ask_next(questions);
}

/* Has a question about records answered in its turn. */
static void ask(struct journal *journal, struct questions *questions,
                void (*run)(struct disk_task *), struct connection *connection,
                const json_t *message)
{
    uid_t uid = connection_uid(connection);
    bool all = connection_trusted(connection) || daemon_is_admin(journal->daemon, uid);
    struct disk_task *task = malloc(sizeof(*task));
    if (!task || fair_queue_add(questions->waiting, uid, all, task) != 0) {
        free(task);
        journal_refuse(connection, "too many questions about records at a time", false);
        return;
    }
    *task = (struct disk_task){.journal = journal,
                               .run = run,
                               .then = then_next,
                               .record = json_deep_copy(json_object_get(message, "filter")),
                               .uid = all ? -1 : (int64_t)uid,
                               .connection = connection_hold(connection)};
    ask_next(questions);
}

void journal_query(struct daemon *daemon, struct connection *connection, json_t *message)
{
    ask(daemon->journal, &daemon->journal->queries, run_query, connection, message);
}

void journal_summary(struct daemon *daemon, struct connection *connection, json_t *message)
{
    ask(daemon->journal, &daemon->journal->summaries, run_summary, connection, message);
}

static int open_kind(struct journal *journal, struct questions *questions, int readers, int most,
                     int most_each, struct tccl_error *err)
{
    struct event_base *base = journal->daemon->base;
    questions->readers = calloc((size_t)readers, sizeof(*questions->readers));
    questions->waiting = fair_queue_new(most, most_each);
    questions->watch = evtimer_new(base, on_watch, questions);
    if (!questions->readers || !questions->waiting || !questions->watch)
        return tccl_fail(err, "out of memory");
    questions->n_readers = readers;
    for (int i = 0; i < readers; i++)
        questions->readers[i].questions = questions;
    questions->pool = threads_new(base, readers, readers, err);
    if (questions->pool)
        threads_be_nice(questions->pool, NICE);
    return questions->pool ? 0 : -1;
}

int questions_open(struct journal *journal, struct tccl_error *err)
{
    if (open_kind(journal, &journal->queries, QUERY_READERS, QUERIES, QUERIES_EACH, err) != 0)
        return -1;
    return open_kind(journal, &journal->summaries, SUMMARY_READERS, SUMMARIES, SUMMARIES_EACH, err);
}

static void drop_kind(struct questions *questions)
{
    struct disk_task *task;
    while (questions->waiting && (task = fair_queue_take(questions->waiting)) != NULL)
        let_go(task);
    for (int i = 0; i < questions->n_readers; i++)
        atomic_store(&questions->readers[i].stop, true);
}

static int close_kind(struct questions *questions, int wait_ms)
{
    if (threads_free(questions->pool, wait_ms) != 0)
        return 1;
    for (int i = 0; i < questions->n_readers; i++)
        tccl_records_close(questions->readers[i].records);
    free(questions->readers);
    fair_queue_free(questions->waiting);
    daemon_drop(questions->watch);
    return 0;
}

int questions_close(struct journal *journal, int wait_ms)
{
    drop_kind(&journal->queries);
    drop_kind(&journal->summaries);
    return close_kind(&journal->queries, wait_ms) + close_kind(&journal->summaries, wait_ms);
}
