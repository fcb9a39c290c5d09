#include "journal.h"

#include "cleanup.h"
#include "journal-chore.h"
#include "records.h"
#include "wire.h"

enum {
    QUERIES = POOL_QUEUE / 2, /* at a time: users who ask must not keep records out */
    SUMMARIES_EACH = 4,       /* at a time, of a user who sees no others' records */
};

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

static void then_query(struct chore *chore)
{
    chore->journal->n_queries--;
    then_answer(chore);
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

/* Of the summaries under way, those of one user: how many, and the place of one of them. */
static int summaries_of(const struct journal *journal, int64_t uid, int *place)
{
    int count = 0;
    for (int i = 0; i < journal->n_summaries; i++) {
        if (journal->askers[i] != uid)
            continue;
        *place = i;
        count++;
    }
    return count;
}

static void then_summary(struct chore *chore)
{
    struct journal *journal = chore->journal;
    int place;
    if (summaries_of(journal, chore->uid, &place) > 0)
        journal->askers[place] = journal->askers[--journal->n_summaries];
    then_answer(chore);
}

/* Has a question about records answered, to one of the two. Returns 0, or -1: there are too many.
 */
static int ask(struct daemon *daemon, uid_t uid, struct chore chore, const json_t *message)
{
    chore.journal = daemon->journal;
    chore.record = json_deep_copy(json_object_get(message, "filter"));
    chore.uid = daemon_shows_all(daemon, uid) ? -1 : (int64_t)uid;
    return chore_submit(chore);
}

static int query(struct daemon *daemon, uid_t uid, const json_t *message, struct peer *peer,
                 struct local *local)
{
    struct chore chore = {.run = run_query, .then = then_query, .peer = peer, .local = local};
    if (daemon->journal->n_queries >= QUERIES || ask(daemon, uid, chore, message) != 0)
        return -1;
    daemon->journal->n_queries++;
    return 0;
}

static int summarise(struct daemon *daemon, uid_t uid, const json_t *message, struct peer *peer,
                     struct local *local)
{
    struct journal *journal = daemon->journal;
    struct chore chore = {.pool = journal->reader,
                          .run = run_summary,
                          .then = then_summary,
                          .peer = peer,
                          .local = local};
    int64_t asker = daemon_shows_all(daemon, uid) ? -1 : (int64_t)uid;
    int place, own = summaries_of(journal, asker, &place);
    if (journal->n_summaries >= JOURNAL_SUMMARIES || (asker >= 0 && own >= SUMMARIES_EACH) ||
        ask(daemon, uid, chore, message) != 0)
        return -1;
    journal->askers[journal->n_summaries++] = asker;
    return 0;
}

static const char too_many[] = "too many questions about records at a time";

static void refuse_peer(struct peer *peer)
{
    cleanup_json json_t *busy = chore_error_message(too_many, false);
    peer_answer(peer, busy);
}

static void refuse_local(struct local *local)
{
    local_refuse(local, too_many);
    local_drop(local);
}

void journal_query_peer(struct daemon *daemon, struct peer *peer, json_t *message)
{
    if (query(daemon, peer_uid(peer), message, peer_hold(peer), NULL) != 0)
        refuse_peer(peer);
}

void journal_query_local(struct daemon *daemon, struct local *local, json_t *message)
{
    if (query(daemon, local_uid(local), message, NULL, local_hold(local)) != 0)
        refuse_local(local);
}

void journal_summary_peer(struct daemon *daemon, struct peer *peer, json_t *message)
{
    if (summarise(daemon, peer_uid(peer), message, peer_hold(peer), NULL) != 0)
        refuse_peer(peer);
}

void journal_summary_local(struct daemon *daemon, struct local *local, json_t *message)
{
    if (summarise(daemon, local_uid(local), message, NULL, local_hold(local)) != 0)
        refuse_local(local);
}
