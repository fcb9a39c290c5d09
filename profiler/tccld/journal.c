#include "journal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "cleanup.h"
#include "link.h"
#include "log.h"
#include "records.h"
#include "spool.h"
#include "wire.h"

enum {
    CLOSE_MS = 3000,
    MEMORY = 1024,            /* records kept in memory while no disk takes them */
    QUERIES = POOL_QUEUE / 2, /* at a time: users who ask must not keep records out */
    SUMMARIES = 64,           /* at a time: each takes up to a second, one after the other */
    BATCH = 64,               /* records that are stored together */
    SUMMARIES_EACH = 4,       /* of them of a user who sees no others' records */
    ROUND = 32,               /* records of the spool that are under way at a time */
    OLD_ROWS = 500,           /* removed at a time, so that nobody waits long for the disk, */
    OLD_PAUSE_MS = 50,        /* and between two times */
    OLD_FIRST_MS = 2000,
    OLD_EACH_MS = 3600 * 1000,
    DAY = 24 * 3600,
};

/* A record on its way to AccountingHost. */
struct flight {
    LIST_ENTRY(flight) link;
    struct journal *journal;
    json_t *record;
    struct link *ask;
    char name[TCCL_SPOOL_NAME]; /* its file in the spool; "" if it has none */
    bool once;                  /* never into the spool */
};

struct journal {
    struct daemon *daemon;
    struct pool *disk;        /* its one thread alone uses store and spool */
    struct pool *reader;      /* of summaries, beside it */
    char path[PATH_MAX + 16]; /* of the store */
    struct tccl_records *store;
    struct tccl_spool *spool;
    LIST_HEAD(, flight) flights;
    int n_flights, n_queries, n_summaries;
    struct event *retry; /* pending only while the spool or memory holds records */
    int64_t retry_ms;    /* 0: the first time */
    bool round, closing; /* round: going through the spool now */
    int round_flights;   /* of those under way */
    bool round_failed;   /* one of them could not be delivered */
    bool spooled;        /* the spool may hold something */
    json_t *memory;
    struct event *old;         /* time to look for records that are too old */
    int64_t n_old;             /* removed since that began */
    int64_t askers[SUMMARIES]; /* of the summaries under way: uids, -1 of those who see all */
    TAILQ_HEAD(, chore) inbox; /* records for the store here, which wait for the batch under way */
    int n_inbox;
    bool storing; /* it is under way */
    struct log_limit trouble, refused, late;
};

/* Something to do in the disk's thread, and then on the event loop. */
struct chore {
    TAILQ_ENTRY(chore) link; /* in the inbox or in a batch */
    TAILQ_HEAD(, chore) batch;
    struct journal *journal;
    struct pool *pool; /* NULL: disk */
    void (*run)(struct chore *chore);
    void (*then)(struct chore *chore);
    json_t *record, *answer;
    int64_t since; /* records of steps that started before are not kept */
    int n_late;    /* those that came */
    size_t count;  /* what the spool holds */
    char name[TCCL_SPOOL_NAME];
    char reason[128];
    int64_t uid;
    int result; /* of the store */
    int kept;   /* of the spool: 0 it is there, -1 it is not */
    struct tccl_error err, spool_err;
    struct peer *peer;
    struct local *local;
};

static void run_chore(void *task)
{
    struct chore *chore = task;
    chore->run(chore);
}

static void done_chore(void *task)
{
    struct chore *chore = task;
    if (chore->then)
        chore->then(chore);
    json_decref(chore->record);
    json_decref(chore->answer);
    free(chore);
}

/* KeepRecords= as a time. */
static int64_t oldest(const struct journal *journal)
{
    int days = journal->daemon->conf->keep_days;
    return days ? (int64_t)time(NULL) - (int64_t)days * DAY : 0;
}

/* Takes the references of first over, also when it fails. Returns 0 or -1. */
static int submit(struct chore first)
{
    struct chore *chore = malloc(sizeof(*chore));
    struct pool *pool = first.pool ? first.pool : first.journal->disk;
    if (chore) {
        *chore = first;
        chore->since = oldest(first.journal);
        if (pool_submit(pool, run_chore, done_chore, chore) == 0)
            return 0;
    }
    free(chore);
    json_decref(first.record);
    json_decref(first.answer);
    return -1;
}

static const char *home(const struct journal *journal)
{
    const struct tccl_conf *conf = journal->daemon->conf;
    bool here = !*conf->accounting_host || strcmp(conf->accounting_host, conf->node) == 0;
    return here ? NULL : conf->accounting_host;
}

static void retry_later(struct journal *journal)
{
    if (journal->closing || evtimer_pending(journal->retry, NULL))
        return;
    int64_t ms = journal->retry_ms ? 2 * journal->retry_ms : JOURNAL_RETRY_MS;
    journal->retry_ms = ms < JOURNAL_RETRY_MOST_MS ? ms : JOURNAL_RETRY_MOST_MS;
    struct timeval wait = daemon_in(journal->retry_ms);
    evtimer_add(journal->retry, &wait);
}

static void keep_in_memory(struct journal *journal, json_t *record, const char *why)
{
    if (json_array_size(journal->memory) >= MEMORY) {
        log_limited(&journal->trouble, "a record is lost: neither store nor spool takes it: %s",
                    why);
        return;
    }
    log_limited(&journal->trouble, "a record is kept in memory until the disk takes it: %s", why);
    json_array_append(journal->memory, record);
    retry_later(journal);
}

/* Into the spool */

static void run_spool(struct chore *chore)
{
    chore->kept = tccl_spool_put(chore->journal->spool, chore->record, &chore->spool_err);
}

static void then_spool(struct chore *chore)
{
    struct journal *journal = chore->journal;
    if (chore->kept != 0) {
        keep_in_memory(journal, chore->record, chore->spool_err.text);
        return;
    }
    journal->spooled = true;
    retry_later(journal);
}

static void spool(struct journal *journal, json_t *record)
{
    struct chore chore = {
        .journal = journal, .run = run_spool, .then = then_spool, .record = json_incref(record)};
    if (submit(chore) != 0)
        keep_in_memory(journal, record, "the disk does not keep up");
}

/* Into the store of this node */

/* As tccl_records_put; what came so late that it would be removed at once is not stored. */
static int put(struct chore *chore, const json_t *record)
{
    const json_t *start = json_object_get(record, "start");
    if (json_is_integer(start) && json_integer_value(start) < chore->since) {
        chore->n_late++;
        return 0;
    }
    return tccl_records_put(chore->journal->store, record, &chore->err);
}

static void log_late(struct chore *chore)
{
    if (chore->n_late)
        log_limited(&chore->journal->late,
                    "dropped %d record%s: older than KeepRecords=%dd when it was delivered",
                    chore->n_late, chore->n_late > 1 ? "s" : "",
                    chore->journal->daemon->conf->keep_days);
}

static void then_store(struct chore *chore)
{
    log_late(chore);
    if (chore->result > 0)
        log_limited(&chore->journal->refused, "a record is not stored: %s", chore->err.text);
    if (chore->result < 0) {
        log_limited(&chore->journal->trouble, "a record waits in the spool: %s", chore->err.text);
        then_spool(chore);
    }
}

/* All of a batch, with one wait for the disk. */
static void run_batch(struct chore *chore)
{
    struct tccl_records *store = chore->journal->store;
    struct chore *each;
    struct tccl_error err = {0};
    int failed = tccl_records_begin(store, &err);
    TAILQ_FOREACH(each, &chore->batch, link)
    each->result = failed ? -1 : put(each, each->record);
    failed = failed || tccl_records_commit(store, &err) != 0;
    TAILQ_FOREACH(each, &chore->batch, link)
    {
        if (failed && each->result <= 0) {
            each->result = -1;
            if (!each->err.text[0])
                each->err = err;
        }
        if (each->result < 0 && !each->peer)
            run_spool(each);
    }
}

static void store_next(struct journal *journal);

static void then_batch(struct chore *chore)
{
    struct chore *each;
    chore->journal->storing = false;
    while ((each = TAILQ_FIRST(&chore->batch)) != NULL) {
        TAILQ_REMOVE(&chore->batch, each, link);
        done_chore(each);
    }
    store_next(chore->journal);
}

/* Moves what waits into a batch, if none is under way. */
static void store_next(struct journal *journal)
{
    struct chore *chore, *each;
    if (journal->storing || TAILQ_EMPTY(&journal->inbox) || !(chore = calloc(1, sizeof(*chore))))
        return;
    *chore = (struct chore){.journal = journal, .run = run_batch, .then = then_batch};
    TAILQ_INIT(&chore->batch);
    for (int i = 0; i < BATCH && (each = TAILQ_FIRST(&journal->inbox)) != NULL; i++) {
        TAILQ_REMOVE(&journal->inbox, each, link);
        TAILQ_INSERT_TAIL(&chore->batch, each, link);
        journal->n_inbox--;
    }
    journal->storing = true;
    if (pool_submit(journal->disk, run_chore, done_chore, chore) == 0)
        return;
    journal->storing = false;
    TAILQ_FOREACH(each, &chore->batch, link)
    {
        each->result = each->kept = -1;
        tccl_fail(&each->err, "the disk does not keep up");
        each->spool_err = each->err;
    }
    then_batch(chore);
    free(chore);
}

/* Takes the references of first over, also when it fails. Returns 0 or -1. */
static int into_store(struct chore first)
{
    struct journal *journal = first.journal;
    struct chore *chore = journal->n_inbox < POOL_QUEUE ? malloc(sizeof(*chore)) : NULL;
    if (!chore) {
        json_decref(first.record);
        return -1;
    }
    *chore = first;
    chore->since = oldest(journal);
    TAILQ_INSERT_TAIL(&journal->inbox, chore, link);
    journal->n_inbox++;
    store_next(journal);
    return 0;
}

static void store(struct journal *journal, json_t *record)
{
    struct chore chore = {.journal = journal, .then = then_store, .record = json_incref(record)};
    if (into_store(chore) != 0)
        keep_in_memory(journal, record, "the disk does not keep up");
}

/* To AccountingHost */

static void next_spooled(struct journal *journal);
static void end_batch(struct journal *journal);

static void run_forget(struct chore *chore)
{
    if (chore->name[0])
        tccl_spool_remove(chore->journal->spool, chore->name, &chore->err);
    else
        tccl_spool_forget(chore->journal->spool, chore->record, &chore->err);
}

static void run_reject(struct chore *chore)
{
    tccl_spool_reject(chore->journal->spool, chore->name, chore->reason, &chore->err);
}

static void then_log(struct chore *chore)
{
    if (chore->err.text[0])
        log_limited(&chore->journal->trouble, "%s", chore->err.text);
}

/* A record from the spool was taken or refused for good: it has to go from there. */
static void settle(struct flight *flight, const char *refused)
{
    struct journal *journal = flight->journal;
    struct chore chore = {.journal = journal,
                          .run = refused ? run_reject : run_forget,
                          .then = then_log,
                          .record = json_incref(flight->record)};
    strcpy(chore.name, flight->name);
    if (refused)
        log_limited(&journal->refused, "%s refuses a record: %s", home(journal), refused);
    if (refused)
        snprintf(chore.reason, sizeof(chore.reason), "%s", refused);
    if (flight->name[0] || (journal->spooled && !refused))
        submit(chore);
    else
        json_decref(chore.record);
}

static void end_flight(struct flight *flight)
{
    LIST_REMOVE(flight, link);
    flight->journal->n_flights--;
    json_decref(flight->record);
    free(flight);
}

static void on_landed(void *context, json_t *answer, const struct tccl_error *err)
{
    struct flight *flight = context;
    struct journal *journal = flight->journal;
    bool from_spool = flight->name[0] != '\0';
    bool taken = answer && strcmp(tccl_message_type(answer), "ok") == 0;
    bool refused = answer && json_is_true(json_object_get(answer, "refused"));
    const char *text = answer ? json_string_value(json_object_get(answer, "text")) : err->text;
    if (flight->once) {
        if (!taken)
            log_limited(&journal->trouble, "what was built of a ring is not on record: %s",
                        text ? text : "?");
    } else if (taken || refused) {
        journal->retry_ms = 0;
        settle(flight, taken ? NULL : text ? text : "no reason given");
    } else {
        log_limited(&journal->trouble, "a record waits in the spool: %s", text ? text : "?");
        if (!from_spool)
            spool(journal, flight->record);
    }
    end_flight(flight);
    if (from_spool) {
        journal->round_flights--;
        journal->round_failed = journal->round_failed || !(taken || refused);
        end_batch(journal);
    } else if (taken && journal->spooled && !journal->round) {
        next_spooled(journal); /* it can be reached again */
    }
}

/* Returns 0, or -1 without memory. */
static int fly(struct journal *journal, json_t *record, const char *to, const char *name)
{
    struct flight *flight = calloc(1, sizeof(*flight));
    cleanup_json json_t *message = tccl_message_new("record");
    if (!flight || json_object_set(message, "record", record) != 0) {
        free(flight);
        return -1;
    }
    flight->journal = journal;
    snprintf(flight->name, sizeof(flight->name), "%s", name);
    flight->ask =
        link_ask(journal->daemon, to, message, tccl_now_ms() + JOURNAL_SEND_MS, on_landed, flight);
    if (!flight->ask) {
        free(flight);
        return -1;
    }
    flight->record = json_incref(record);
    LIST_INSERT_HEAD(&journal->flights, flight, link);
    journal->n_flights++;
    return 0;
}

void journal_put(struct journal *journal, json_t *record)
{
    if (!home(journal))
        store(journal, record);
    else if (journal->n_flights >= JOURNAL_FLIGHT || fly(journal, record, home(journal), "") != 0)
        spool(journal, record);
    json_decref(record);
}

void journal_put_at(struct journal *journal, json_t *record, const char *node)
{
    if (home(journal) || *journal->daemon->conf->accounting_host || !node) {
        journal_put(journal, record);
        return;
    }
    if (journal->n_flights < JOURNAL_FLIGHT && fly(journal, record, node, "") == 0)
        LIST_FIRST(&journal->flights)->once = true;
    json_decref(record);
}

/* Out of the spool */

/* Puts what the spool holds next into the store here. */
static int store_spooled(struct chore *chore, const json_t *record)
{
    struct journal *journal = chore->journal;
    int stored = put(chore, record);
    if (stored == 0)
        tccl_spool_remove(journal->spool, chore->name, NULL);
    else if (stored > 0)
        tccl_spool_reject(journal->spool, chore->name, chore->err.text, NULL);
    return stored < 0 ? -1 : 0;
}

/* Sets result to that of tccl_spool_next, or 2 when the store is here and fails; answer: what is to
 * be sent, if it is elsewhere. */
static void run_next(struct chore *chore)
{
    struct journal *journal = chore->journal;
    bool here = !chore->uid;
    chore->answer = json_array();
    for (int i = 0; i < ROUND && chore->result == 0; i++) {
        cleanup_json json_t *record = NULL;
        chore->result = tccl_spool_next(journal->spool, chore->name, &record, &chore->err);
        if (chore->result != 0)
            break;
        if (!here)
            json_array_append_new(chore->answer, json_pack("[sO]", chore->name, record));
        else if (store_spooled(chore, record) != 0)
            chore->result = 2;
    }
    chore->count = tccl_spool_count(journal->spool);
}

/* All of a batch have been settled: the next one, if that makes sense. */
static void end_batch(struct journal *journal)
{
    if (journal->round_flights > 0)
        return;
    if (!journal->round_failed) {
        next_spooled(journal);
        return;
    }
    journal->round = false;
    retry_later(journal);
}

/* Each of these is sent; what can't be is left where it is. */
static void send_batch(struct journal *journal, const json_t *batch)
{
    size_t i;
    json_t *pair;
    journal->round_failed = false;
    json_array_foreach(batch, i, pair)
    {
        const char *name = json_string_value(json_array_get(pair, 0)), *to = home(journal);
        if (to && fly(journal, json_array_get(pair, 1), to, name) == 0)
            journal->round_flights++;
        else
            journal->round_failed = true;
    }
}

static void then_next(struct chore *chore)
{
    struct journal *journal = chore->journal;
    then_log(chore);
    log_late(chore);
    if (journal->closing) {
        journal->round = false;
    } else if (json_array_size(chore->answer) > 0) {
        send_batch(journal, chore->answer);
        end_batch(journal);
    } else if (chore->result <= 0) {
        next_spooled(journal);
    } else {
        journal->round = false;
        journal->spooled = chore->result != 1 || chore->count > 0;
        if (journal->spooled)
            retry_later(journal);
        else
            journal->retry_ms = 0;
    }
}

static void next_spooled(struct journal *journal)
{
    struct chore chore = {.journal = journal,
                          .run = run_next,
                          .then = then_next,
                          .uid = home(journal) != NULL}; /* uid: for the event loop to send */
    journal->round = true;
    if (!journal->closing && submit(chore) == 0)
        return;
    journal->round = false;
    retry_later(journal);
}

static void on_retry(evutil_socket_t fd, short what, void *argument)
{
    struct journal *journal = argument;
    json_t *memory = journal->memory, *record;
    size_t i;
    (void)fd;
    (void)what;
    journal->memory = json_array();
    json_array_foreach(memory, i, record) journal_put(journal, json_incref(record));
    json_decref(memory);
    if (journal->spooled && !journal->round)
        next_spooled(journal);
}

/* RECORD */

static json_t *error_message(const char *text, bool refused)
{
    json_t *message = tccl_message_new("error");
    tccl_put_text(message, "text", text, 511);
    json_object_set_new(message, "refused", json_boolean(refused));
    return message;
}

static void then_receive(struct chore *chore)
{
    cleanup_json json_t *message = chore->result == 0
                                       ? tccl_message_new("ok")
                                       : error_message(chore->err.text, chore->result > 0);
    log_late(chore);
    if (chore->result != 0)
        log_limited(&chore->journal->refused, "a record from %s is not stored: %s",
                    peer_node(chore->peer), chore->err.text);
    peer_answer(chore->peer, message);
}

void journal_receive(struct daemon *daemon, struct peer *peer, json_t *message)
{
    struct chore chore = {.journal = daemon->journal,
                          .then = then_receive,
                          .record = json_incref(json_object_get(message, "record")),
                          .peer = peer_hold(peer)};
    if (into_store(chore) == 0)
        return;
    cleanup_json json_t *busy = error_message("the disk does not keep up", false);
    peer_answer(peer, busy);
}

/* QUERY */

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
        chore->answer = error_message(chore->err.text, true);
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
    return submit(chore);
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
    if (journal->n_summaries >= SUMMARIES || (asker >= 0 && own >= SUMMARIES_EACH) ||
        ask(daemon, uid, chore, message) != 0)
        return -1;
    journal->askers[journal->n_summaries++] = asker;
    return 0;
}

static const char too_many[] = "too many questions about records at a time";

static void refuse_peer(struct peer *peer)
{
    cleanup_json json_t *busy = error_message(too_many, false);
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

/* Old records */

static void look_for_old(struct journal *journal, int64_t ms)
{
    struct timeval wait = daemon_in(ms);
    if (!journal->closing)
        evtimer_add(journal->old, &wait);
}

static void run_old(struct chore *chore)
{
    if (chore->since > 0)
        chore->result =
            tccl_records_purge(chore->journal->store, chore->since, OLD_ROWS, &chore->err);
}

static void then_old(struct chore *chore)
{
    struct journal *journal = chore->journal;
    if (chore->result > 0) {
        journal->n_old += chore->result;
        look_for_old(journal, OLD_PAUSE_MS);
        return;
    }
    if (chore->result < 0)
        log_limited(&journal->trouble, "old records are not removed: %s", chore->err.text);
    if (journal->n_old)
        log_line("removed %lld record%s older than KeepRecords=%dd", (long long)journal->n_old,
                 journal->n_old > 1 ? "s" : "", journal->daemon->conf->keep_days);
    journal->n_old = 0;
    look_for_old(journal, OLD_EACH_MS);
}

static void on_old(evutil_socket_t fd, short what, void *argument)
{
    struct chore chore = {.journal = argument, .run = run_old, .then = then_old};
    (void)fd;
    (void)what;
    if (submit(chore) != 0)
        look_for_old(argument, OLD_FIRST_MS);
}

void journal_reloaded(struct journal *journal)
{
    look_for_old(journal, 0);
}

/* Life */

static int open_files(struct journal *journal, struct tccl_error *err)
{
    const char *folder = journal->daemon->conf->state_dir;
    char path[PATH_MAX + 16];
    snprintf(journal->path, sizeof(journal->path), "%s/records.db", folder);
    if (tccl_records_open(journal->path, &journal->store, err) != 0)
        return -1;
    snprintf(path, sizeof(path), "%s/spool", folder);
    if (tccl_spool_open(path, &journal->spool, err) != 0)
        return -1;
    journal->spooled = tccl_spool_count(journal->spool) > 0;
    return 0;
}

struct journal *journal_open(struct daemon *daemon, struct tccl_error *err)
{
    struct journal *journal = calloc(1, sizeof(*journal));
    if (!journal) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    journal->daemon = daemon;
    LIST_INIT(&journal->flights);
    TAILQ_INIT(&journal->inbox);
    journal->memory = json_array();
    journal->retry = evtimer_new(daemon->base, on_retry, journal);
    journal->old = evtimer_new(daemon->base, on_old, journal);
    journal->disk = pool_new(daemon->base, 1, POOL_QUEUE, err);
    journal->reader = journal->disk ? pool_new(daemon->base, 1, SUMMARIES, err) : NULL;
    if (!journal->reader || open_files(journal, err) != 0) {
        journal_close(journal);
        return NULL;
    }
    look_for_old(journal, OLD_FIRST_MS);
    if (journal->spooled)
        next_spooled(journal);
    return journal;
}

/* What no batch has taken. */
static void empty_inbox(struct journal *journal)
{
    struct chore *each;
    while ((each = TAILQ_FIRST(&journal->inbox)) != NULL) {
        TAILQ_REMOVE(&journal->inbox, each, link);
        if (each->peer)
            peer_drop(each->peer);
        else
            json_array_append(journal->memory, each->record);
        json_decref(each->record);
        free(each);
    }
}

void journal_close(struct journal *journal)
{
    struct flight *flight;
    size_t i;
    json_t *record;
    if (!journal)
        return;
    journal->closing = true;
    while ((flight = LIST_FIRST(&journal->flights)) != NULL) {
        link_cancel(flight->ask);
        if (!flight->name[0] && !flight->once)
            spool(journal, flight->record);
        end_flight(flight);
    }
    int stuck = pool_free(journal->disk, CLOSE_MS) + pool_free(journal->reader, CLOSE_MS);
    empty_inbox(journal);
    json_array_foreach(journal->memory, i, record)
    {
        struct tccl_error err = {0};
        if (stuck || !journal->spool || tccl_spool_put(journal->spool, record, &err) != 0)
            log_line("a record is lost, no disk has taken it: job %lld",
                     (long long)json_integer_value(json_object_get(record, "job")));
    }
    event_free(journal->retry);
    event_free(journal->old);
    if (!stuck) {
        tccl_records_close(journal->store);
        tccl_spool_close(journal->spool);
    }
    json_decref(journal->memory);
    free(journal);
}
