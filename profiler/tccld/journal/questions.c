/* QUERY and SUMMARY. Queries are answered by the disk's thread between records; summaries read the
 * whole store, and have a thread of their own. */
#include "tccld/journal/questions.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "client/message.h"
#include "records/records.h"
#include "tccld/journal/disk-task.h"
#include "tccld/journal/fair-queue.h"

/* Questions that wait, and of them those of a user who sees no others' records. */
enum { QUERIES = 512, QUERIES_EACH = 128, SUMMARIES = 64, SUMMARIES_EACH = 4 };

static void run_query(struct disk_task *task)
{
    cleanup_json json_t *next = NULL;
    cleanup_json json_t *page = tccl_records_query(task->journal->store, task->record, task->uid,
                                                   JOURNAL_PAGE, &next, &task->err);
    if (!page)
        return;
    task->answer = tccl_message_new("records");
    json_object_set(task->answer, "records", page);
    json_object_set_new(task->answer, "version", json_string(TCCL_VERSION));
    json_object_set(task->answer, "next", next ? next : json_null());
}

/* Answers whoever has asked. */
static void then_answer(struct disk_task *task)
{
    if (!task->answer)
        task->answer = journal_error_message(task->err.text, true);
    connection_answer(task->connection, task->answer);
    connection_drop(task->connection);
}

static void run_summary(struct disk_task *task)
{
    json_t *summary =
        tccl_records_summary(task->journal->path, task->record, task->uid, &task->err);
    if (!summary)
        return;
    task->answer = tccl_message_new("summary");
    json_object_set_new(task->answer, "summary", summary);
}

/* Nobody hears the answer. */
static void let_go(struct disk_task *task)
{
    connection_drop(task->connection);
    json_decref(task->record);
    free(task);
}

static void ask_next(struct questions *questions)
{
    struct disk_task *task;
    while (!questions->busy && (task = fair_queue_take(questions->waiting)) != NULL) {
        if (connection_closed(task->connection)) {
            let_go(task);
        } else if (pool_submit(questions->pool, disk_task_run, disk_task_done, task) == 0) {
            questions->busy = true;
        } else {
            tccl_fail(&task->err, "the disk does not keep up");
            task->then = then_answer;
            disk_task_done(task);
        }
    }
}

static void then_next(struct disk_task *task)
{
    then_answer(task);
    task->questions->busy = false;
    ask_next(task->questions);
}

static void refuse(struct connection *connection)
{
    cleanup_json json_t *message =
        journal_error_message("too many questions about records at a time", false);
    connection_answer(connection, message);
}

/* Has a question about records answered in its turn. */
static void ask(struct journal *journal, struct questions *questions,
                void (*run)(struct disk_task *), struct connection *connection,
                const json_t *message)
{
    uid_t uid = connection_uid(connection);
    bool all = daemon_shows_all(journal->daemon, uid);
    struct disk_task *task = malloc(sizeof(*task));
    if (!task || fair_queue_add(questions->waiting, uid, all, task) != 0) {
        free(task);
        refuse(connection);
        return;
    }
    *task = (struct disk_task){.journal = journal,
                               .questions = questions,
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

int questions_open(struct journal *journal, struct tccl_error *err)
{
    journal->queries =
        (struct questions){.pool = journal->disk, .waiting = fair_queue_new(QUERIES, QUERIES_EACH)};
    journal->summaries = (struct questions){.pool = journal->reader,
                                            .waiting = fair_queue_new(SUMMARIES, SUMMARIES_EACH)};
    return journal->queries.waiting && journal->summaries.waiting ? 0
                                                                  : tccl_fail(err, "out of memory");
}

void questions_drop(struct journal *journal)
{
    struct questions *const kinds[] = {&journal->queries, &journal->summaries};
    struct disk_task *task;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        while (kinds[i]->waiting && (task = fair_queue_take(kinds[i]->waiting)) != NULL)
            let_go(task);
}

void questions_close(struct journal *journal)
{
    fair_queue_free(journal->queries.waiting);
    fair_queue_free(journal->summaries.waiting);
}
