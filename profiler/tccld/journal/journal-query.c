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
    if (chore->peer) {
        peer_answer(chore->peer, chore->answer);
    } else {
        local_answer(chore->local, chore->answer);
        local_drop(chore->local);
    }
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

static bool has_gone(const struct chore *chore)
{
    return chore->peer ? peer_closed(chore->peer) : local_closed(chore->local);
}

/* Nobody hears the answer. */
static void let_go(struct chore *chore)
{
    if (chore->peer)
        peer_drop(chore->peer);
    else
        local_drop(chore->local);
    json_decref(chore->record);
    free(chore);
}

static void ask_next(struct questions *questions)
{
    struct chore *chore;
    while (!questions->busy && (chore = turns_take(questions->waiting)) != NULL) {
        if (has_gone(chore)) {
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

/* Has a question about records answered. Returns 0, or -1: there are too many, or no store yet. */
static int ask(struct daemon *daemon, uid_t uid, struct chore first, const json_t *message)
{
    struct chore *chore = daemon->journal->upgrade.pending ? NULL : malloc(sizeof(*chore));
    bool all = daemon_shows_all(daemon, uid);
    if (!chore || turns_add(first.questions->waiting, uid, all, chore) != 0) {
        free(chore);
        return -1;
    }
    *chore = first;
    chore->journal = daemon->journal;
    chore->then = then_next;
    chore->record = json_deep_copy(json_object_get(message, "filter"));
    chore->uid = all ? -1 : (int64_t)uid;
    ask_next(chore->questions);
    return 0;
}

static int query(struct daemon *daemon, uid_t uid, const json_t *message, struct peer *peer,
                 struct local *local)
{
    struct chore chore = {
        .questions = &daemon->journal->queries, .run = run_query, .peer = peer, .local = local};
    return ask(daemon, uid, chore, message);
}

static int summarise(struct daemon *daemon, uid_t uid, const json_t *message, struct peer *peer,
                     struct local *local)
{
    struct chore chore = {
        .questions = &daemon->journal->summaries, .run = run_summary, .peer = peer, .local = local};
    return ask(daemon, uid, chore, message);
}

static const char *why_refused(const struct daemon *daemon)
{
    return daemon->journal->upgrade.pending
               ? "records of an older version are being brought up to date: ask again in a minute"
               : "too many questions about records at a time";
}

static void refuse_peer(struct daemon *daemon, struct peer *peer)
{
    cleanup_json json_t *busy = chore_error_message(why_refused(daemon), false);
    peer_answer(peer, busy);
}

static void refuse_local(struct daemon *daemon, struct local *local)
{
    local_refuse(local, why_refused(daemon));
    local_drop(local);
}

void journal_query_peer(struct daemon *daemon, struct peer *peer, json_t *message)
{
    if (query(daemon, peer_uid(peer), message, peer_hold(peer), NULL) != 0)
        refuse_peer(daemon, peer);
}

void journal_query_local(struct daemon *daemon, struct local *local, json_t *message)
{
    if (query(daemon, local_uid(local), message, NULL, local_hold(local)) != 0)
        refuse_local(daemon, local);
}

void journal_summary_peer(struct daemon *daemon, struct peer *peer, json_t *message)
{
    if (summarise(daemon, peer_uid(peer), message, peer_hold(peer), NULL) != 0)
        refuse_peer(daemon, peer);
}

void journal_summary_local(struct daemon *daemon, struct local *local, json_t *message)
{
    if (summarise(daemon, local_uid(local), message, NULL, local_hold(local)) != 0)
        refuse_local(daemon, local);
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
