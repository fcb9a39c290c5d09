#include "tccld/journal/journal-query.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "client/message.h"
#include "records/records.h"
#include "tccld/journal/fair-queue.h"
#include "tccld/journal/journal-chore.h"

/* Questions that wait, and of them those of a user who sees no others' records. */
enum { QUERIES = 512, QUERIES_EACH = 128, SUMMARIES = 64, SUMMARIES_EACH = 4 };

static void run_query(struct chore *chore)
{
    cleanup_json json_t *next = NULL;
    cleanup_json json_t *page = tccl_records_query(chore->journal->store, chore->record, chore->uid,
                                                   JOURNAL_PAGE, &next, &chore->err);
    if (!page)
        return;
    chore->answer = tccl_message_new("records");
    json_object_set(chore->answer, "records", page);
    json_object_set_new(chore->answer, "version", json_string(TCCL_VERSION));
    json_object_set(chore->answer, "next", next ? next : json_null());
}

/* Answers whoever has asked. */
static void then_answer(struct chore *chore)
{
    if (!chore->answer)
        chore->answer = chore_error_message(chore->err.text, true);
    connection_answer(chore->connection, chore->answer);
    connection_drop(chore->connection);
}

static void run_summary(struct chore *chore)
{
    json_t *summary =
        tccl_records_summary(chore->journal->path, chore->record, chore->uid, &chore->err);
    if (!summary)
        return;
    chore->answer = tccl_message_new("summary");
    json_object_set_new(chore->answer, "summary", summary);
}

/* Nobody hears the answer. */
static void let_go(struct chore *chore)
{
    connection_drop(chore->connection);
    json_decref(chore->record);
    free(chore);
}

static void ask_next(struct questions *questions)
{
    struct chore *chore;
    while (!questions->busy && (chore = turns_take(questions->waiting)) != NULL) {
        if (connection_closed(chore->connection)) {
            let_go(chore);
        } else if (pool_submit(questions->pool, chore_run, chore_done, chore) == 0) {
            questions->busy = true;
        } else {
            tccl_fail(&chore->err, "the disk does not keep up");
            chore->then = then_answer;
            chore_done(chore);
        }
    }
}

static void then_next(struct chore *chore)
{
    then_answer(chore);
    chore->questions->busy = false;
    ask_next(chore->questions);
}

static void refuse(struct connection *connection)
{
    cleanup_json json_t *message =
        chore_error_message("too many questions about records at a time", false);
    connection_answer(connection, message);
}

/* Has a question about records answered in its turn. */
static void ask(struct journal *journal, struct questions *questions, void (*run)(struct chore *),
                struct connection *connection, const json_t *message)
{
    uid_t uid = connection_uid(connection);
    bool all = daemon_shows_all(journal->daemon, uid);
    struct chore *chore = malloc(sizeof(*chore));
    if (!chore || turns_add(questions->waiting, uid, all, chore) != 0) {
        free(chore);
        refuse(connection);
        return;
    }
    *chore = (struct chore){.journal = journal,
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
        (struct questions){.pool = journal->disk, .waiting = turns_new(QUERIES, QUERIES_EACH)};
    journal->summaries = (struct questions){.pool = journal->reader,
                                            .waiting = turns_new(SUMMARIES, SUMMARIES_EACH)};
    return journal->queries.waiting && journal->summaries.waiting ? 0
                                                                  : tccl_fail(err, "out of memory");
}

void questions_drop(struct journal *journal)
{
    struct questions *const kinds[] = {&journal->queries, &journal->summaries};
    struct chore *chore;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        while (kinds[i]->waiting && (chore = turns_take(kinds[i]->waiting)) != NULL)
            let_go(chore);
}

void questions_close(struct journal *journal)
{
    turns_free(journal->queries.waiting);
    turns_free(journal->summaries.waiting);
}
