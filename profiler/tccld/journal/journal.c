#include "tccld/journal/journal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "records/records.h"
#include "tccld/journal/journal-flight.h"
#include "tccld/journal/journal-internal.h"
#include "tccld/journal/journal-old.h"
#include "tccld/journal/journal-query.h"
#include "tccld/journal/journal-spool.h"
#include "tccld/journal/journal-store.h"

enum {
    CLOSE_MS = 15000, /* what a disk has not taken by then is lost */
    MEMORY = 1024,    /* records kept in memory while no disk takes them */
    DAY = 24 * 3600,
};

int64_t journal_oldest(const struct journal *journal)
{
    int days = journal->daemon->conf->keep_days;
    return days ? (int64_t)time(NULL) - (int64_t)days * DAY : 0;
}

const char *journal_home(const struct journal *journal)
{
    const struct tccl_conf *conf = journal->daemon->conf;
    bool here = !*conf->accounting_host || strcmp(conf->accounting_host, conf->node) == 0;
    return here ? NULL : conf->accounting_host;
}

void journal_retry_later(struct journal *journal)
{
    if (journal->closing || evtimer_pending(journal->retry, NULL))
        return;
    int64_t ms = journal->retry_ms ? 2 * journal->retry_ms : JOURNAL_RETRY_MS;
    journal->retry_ms = ms < JOURNAL_RETRY_MOST_MS ? ms : JOURNAL_RETRY_MOST_MS;
    struct timeval wait = daemon_in(journal->retry_ms);
    evtimer_add(journal->retry, &wait);
}

void journal_keep_in_memory(struct journal *journal, json_t *record, const char *why)
{
    if (json_array_size(journal->memory) >= MEMORY) {
        log_limited(&journal->trouble, "a record is lost: neither store nor spool takes it: %s",
                    why);
        return;
    }
    log_limited(&journal->trouble, "a record is kept in memory until the disk takes it: %s", why);
    json_array_append(journal->memory, record);
    journal_retry_later(journal);
}

void journal_put(struct journal *journal, json_t *record)
{
    if (!journal_home(journal))
        store_add(journal, record);
    else if (journal->n_flights >= JOURNAL_FLIGHT ||
             flight_send(journal, record, journal_home(journal), "", false) != 0)
        spooled_put(journal, record);
    json_decref(record);
}

void journal_put_at(struct journal *journal, json_t *record, const char *node)
{
    if (journal_home(journal) || *journal->daemon->conf->accounting_host || !node) {
        journal_put(journal, record);
        return;
    }
    if (journal->n_flights < JOURNAL_FLIGHT)
        flight_send(journal, record, node, "", true);
    json_decref(record);
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
        spooled_next(journal);
}

void journal_reloaded(struct journal *journal)
{
    old_look(journal, 0);
}

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
    journal->old = evtimer_new(daemon->base, old_on_time, journal);
    journal->disk = pool_new(daemon->base, 1, POOL_QUEUE, err);
    journal->reader = journal->disk ? pool_new(daemon->base, 1, 1, err) : NULL;
    if (!journal->reader || questions_open(journal, err) != 0 || open_files(journal, err) != 0) {
        journal_close(journal);
        return NULL;
    }
    old_look(journal, JOURNAL_OLD_FIRST_MS);
    if (journal->spooled)
        spooled_next(journal);
    return journal;
}

void journal_close(struct journal *journal)
{
    size_t i;
    json_t *record;
    if (!journal)
        return;
    journal->closing = true;
    flight_cancel_all(journal);
    questions_drop(journal);
    int stuck = pool_free(journal->disk, CLOSE_MS) + pool_free(journal->reader, CLOSE_MS);
    store_empty_inbox(journal);
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
    questions_close(journal);
    json_decref(journal->memory);
    free(journal);
}
