/* Where a record goes: into the store here, or into the outbox, from which AccountingHost has it,
 * and into memory while no disk takes it. */
#include "tccld/journal/journal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "records/outbox.h"
#include "records/records.h"
#include "tccld/journal/disk-task.h"
#include "tccld/journal/journal-internal.h"
#include "tccld/main/metrics.h"

enum {
    CLOSE_MS = 15000,        /* what a disk has not taken by then is lost */
    ASKED_MS = 2000,         /* for answers; who asked asks again */
    MEMORY = 1024,           /* records kept in memory while no disk takes them, */
    MEMORY_BYTES = 64 << 20, /* and as text, of which those of large steps have much */
};

const char *journal_home(const struct journal *journal)
{
    const struct tccl_conf *conf = journal->daemon->conf;
    bool here = !*conf->accounting_host || strcmp(conf->accounting_host, conf->node) == 0;
    return here ? NULL : conf->accounting_host;
}

void journal_step_text(const json_t *record, char text[static TCCL_KEY_TEXT])
{
    struct tccl_step_key key;
    cleanup_json json_t *whole = json_pack("{s:s, s:i, s:i, s:i, s:i}", "cluster", "", "het_job", 0,
                                           "het_offset", 0, "restart", 0, "run", 0);
    json_object_update(whole, (json_t *)record); /* which has no members that are 0 */
    if (tccl_key_from_json(whole, &key, NULL) == 0)
        tccl_key_format(&key, text);
    else
        strcpy(text, "?");
}

void journal_retry_later(struct journal *journal)
{
    if (journal->closing || evtimer_pending(journal->retry, NULL))
        return;
    int64_t ms = journal->retry_ms ? 2 * journal->retry_ms : JOURNAL_RETRY_MS;
    journal->retry_ms = ms < JOURNAL_RETRY_MOST_MS ? ms : JOURNAL_RETRY_MOST_MS;
    journal->tried_ms = tccl_now_ms();
    daemon_set(journal->retry, journal->retry_ms);
    if (journal->newer)
        journal_retry_early(journal);
}

void journal_retry_early(struct journal *journal)
{
    journal->newer = true; /* than what is under way, if nothing waits */
    if (journal->retry_ms > JOURNAL_EARLY_MS && evtimer_pending(journal->retry, NULL))
        daemon_set(journal->retry, journal->tried_ms + JOURNAL_EARLY_MS - tccl_now_ms());
}

void journal_hold(struct journal *journal, json_t *record, size_t bytes)
{
    json_array_append_new(journal->memory, json_pack("[O, I]", record, (json_int_t)bytes));
    journal->memory_bytes += bytes;
}

json_t *journal_take_held(struct journal *journal, size_t most, size_t bytes)
{
    json_t *taken = json_array(), *each;
    size_t used = 0;
    while (json_array_size(taken) < most && (each = json_array_get(journal->memory, 0)) != NULL) {
        size_t size = (size_t)json_integer_value(json_array_get(each, 1));
        if (used > 0 && used + size > bytes)
            break;
        json_array_append(taken, json_array_get(each, 0));
        json_array_remove(journal->memory, 0);
        used += size;
    }
    journal->memory_bytes -= used;
    return taken;
}

static void show_losses(const struct journal *journal)
{
    metrics_records(journal->daemon->metrics, journal->losses.count, journal->losses.pending);
}

void journal_expect(struct journal *journal, int change)
{
    losses_pend(&journal->losses, change);
    show_losses(journal);
}

void journal_lose(struct journal *journal, const json_t *record, int64_t count, int pending,
                  const char *why)
{
    char step[TCCL_KEY_TEXT];
    losses_count(&journal->losses, count, pending, time(NULL));
    show_losses(journal);
    journal_step_text(record, step);
    log_limited(&journal->lost, "step %s: its record is lost: %s; %" PRId64 " are lost by now",
                step, why, journal->losses.count);
    telling_look(journal);
}

void journal_keep_in_memory(struct journal *journal, json_t *record, const char *why)
{
    char step[TCCL_KEY_TEXT];
    size_t bytes = json_dumpb(record, NULL, 0, JSON_COMPACT);
    if (json_array_size(journal->memory) >= MEMORY ||
        journal->memory_bytes + bytes > MEMORY_BYTES) {
        journal_lose(journal, record, 1, 1, why);
        return;
    }
    journal_step_text(record, step);
    log_limited(&journal->trouble,
                "step %s: its record stays in memory until the disk takes it: %s", step, why);
    journal_hold(journal, record, bytes);
    journal_retry_later(journal);
}

void journal_put(struct journal *journal, json_t *record)
{
    journal_expect(journal, 1);
    if (!journal_home(journal) || delivery_add(journal, record) != 0)
        inbox_add(journal, record);
    json_decref(record);
}

void journal_save_memory(struct journal *journal)
{
    cleanup_json json_t *held = journal_take_held(journal, SIZE_MAX, SIZE_MAX);
    size_t i;
    json_t *record;
    json_array_foreach(held, i, record) inbox_add(journal, record);
}

static void on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *journal)
{
    journal_save_memory(journal);
    delivery_look(journal);
}

void journal_reloaded(struct journal *journal)
{
    retention_look(journal, 0);
    telling_again(journal);
    if (!journal_home(journal))
        journal_save_memory(journal);
    delivery_look(journal);
}

struct journal *journal_open(struct daemon *daemon, struct tccl_error *err)
{
    struct journal *journal = calloc(1, sizeof(*journal));
    if (!journal)
        return tccl_fail_null(err, "out of memory");
    journal->daemon = daemon;
    journal->lock = -1;
    strcpy(journal->folder, daemon->conf->state_dir);
    snprintf(journal->path, sizeof(journal->path), "%s/records.db", journal->folder);
    char path[PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/records", journal->daemon->conf->run_dir);
    int64_t lost = losses_open(&journal->losses, journal->daemon->run_dir, path, time(NULL));
    if (lost > 0)
        log_line("up to %" PRId64 " record%s lost: tccld was killed while it had %s in memory",
                 lost, lost == 1 ? " is" : "s are", lost == 1 ? "it" : "them");
    show_losses(journal);
    TAILQ_INIT(&journal->inbox);
    journal->memory = json_array();
    journal->retry = evtimer_new(daemon->base, on_retry, journal);
    journal->pace = evtimer_new(daemon->base, delivery_on_time, journal);
    journal->opening = evtimer_new(daemon->base, opening_on_time, journal);
    journal->retention = evtimer_new(daemon->base, retention_on_time, journal);
    journal->tell = evtimer_new(daemon->base, telling_on_time, journal);
    journal->disk = threads_new(daemon->base, 1, THREADS_QUEUE, err);
    if (!journal->disk || questions_open(journal, err) != 0) {
        journal_close(journal);
        return NULL;
    }
    opening_begin(journal);
    telling_look(journal);
    retention_look(journal, RETENTION_FIRST_MS);
    return journal;
}

/* What is in memory goes to the disk at the end. */
static void save_memory(struct journal *journal, bool stuck)
{
    struct tccl_error err = {0};
    cleanup_json json_t *held = journal_take_held(journal, SIZE_MAX, SIZE_MAX);
    int count = (int)json_array_size(held), lost = 0;
    if (count == 0)
        return;
    if (!stuck && journal->outbox && tccl_outbox_put(journal->outbox, held, &lost, &err) == 0) {
        journal_expect(journal, lost - count);
        if (lost > 0)
            journal_lose(journal, NULL, lost, lost, "it is too long for a message");
    } else
        journal_lose(journal, json_array_get(held, 0), count, count,
                     err.text[0] ? err.text : "the disk does not take it");
}

void journal_close(struct journal *journal)
{
    if (!journal)
        return;
    journal->closing = true;
    telling_cancel(journal);
    delivery_cancel(journal);
    int asked = questions_close(journal, ASKED_MS), stuck = threads_free(journal->disk, CLOSE_MS);
    inbox_empty(journal);
    save_memory(journal, stuck);
    if (journal->losses.count)
        log_line("%" PRId64 " record%s of this node lost, since boot", journal->losses.count,
                 journal->losses.count == 1 ? "" : "s");
    losses_close(&journal->losses);
    event_free(journal->retry);
    event_free(journal->pace);
    event_free(journal->retention);
    event_free(journal->opening);
    event_free(journal->tell);
    if (!stuck) {
        if (journal->store)
            tccl_records_set_time(journal->store, believed_now(&journal->believed, tccl_now_ms()),
                                  NULL);
        tccl_records_close(journal->store);
        tccl_outbox_close(journal->outbox);
        if (journal->lock >= 0)
            close(journal->lock);
    }
    json_decref(journal->memory);
    if (!stuck && !asked)
        free(journal); /* else a thread uses it until the end of the process */
}

const char *journal_trouble(const struct journal *journal)
{
    return *journal->closed.text ? journal->closed.text : NULL;
}
