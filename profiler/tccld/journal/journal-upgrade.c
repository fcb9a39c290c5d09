#include "tccld/journal/journal-upgrade.h"

#include <inttypes.h>

#include "base/clock.h"
#include "records/records.h"
#include "tccld/journal/journal-chore.h"

enum { PROGRESS_MS = 10000, AGAIN_MS = 1000, AGAIN_MOST_MS = 60000 };

static void look_in(struct journal *journal, int64_t ms)
{
    struct timeval wait = daemon_in(ms);
    evtimer_add(journal->upgrade.timer, &wait);
}

static double seconds_since(int64_t began)
{
    return (double)(tccl_now_ms() - began) / 1000;
}

static void run_upgrade(struct chore *chore)
{
    struct journal *journal = chore->journal;
    chore->result = tccl_records_open(journal->path, &journal->store, &chore->err);
}

static void then_upgrade(struct chore *chore)
{
    struct journal *journal = chore->journal;
    struct upgrade *upgrade = &journal->upgrade;
    upgrade->running = false;
    if (chore->result == 0) {
        upgrade->pending = false;
        evtimer_del(upgrade->timer);
        log_line("%s: up to date after %.1f s", journal->path, seconds_since(upgrade->began_ms));
        return;
    }
    upgrade->again_ms = upgrade->again_ms ? 2 * upgrade->again_ms : AGAIN_MS;
    if (upgrade->again_ms > AGAIN_MOST_MS)
        upgrade->again_ms = AGAIN_MOST_MS;
    log_limited(&journal->trouble, "records are not brought up to date, tried again: %s",
                chore->err.text);
    if (!journal->closing)
        look_in(journal, upgrade->again_ms);
}

static void begin(struct journal *journal)
{
    struct chore chore = {.journal = journal, .run = run_upgrade, .then = then_upgrade};
    struct upgrade *upgrade = &journal->upgrade;
    upgrade->began_ms = tccl_now_ms();
    upgrade->running = chore_submit(chore) == 0;
    look_in(journal, PROGRESS_MS);
}

static void on_time(evutil_socket_t fd, short what, void *argument)
{
    struct journal *journal = argument;
    (void)fd;
    (void)what;
    if (!journal->upgrade.running) {
        begin(journal);
        return;
    }
    log_line("%s: still being brought up to date, for %.0f s by now", journal->path,
             seconds_since(journal->upgrade.began_ms));
    look_in(journal, PROGRESS_MS);
}

int upgrade_open(struct journal *journal, struct tccl_error *err)
{
    int64_t count;
    int older = tccl_records_older(journal->path, &count, err);
    if (older < 0)
        return -1;
    if (!older)
        return tccl_records_open(journal->path, &journal->store, err);
    if (!(journal->upgrade.timer = evtimer_new(journal->daemon->base, on_time, journal)))
        return tccl_fail(err, "out of memory");
    log_line("%s: %" PRId64 " record%s of an older version are brought up to date%s", journal->path,
             count, count == 1 ? "" : "s",
             count >= 100000 ? ": a minute for a million; steps are served meanwhile" : "");
    journal->upgrade.pending = true;
    begin(journal);
    return 0;
}

void upgrade_close(struct journal *journal)
{
    if (journal->upgrade.timer)
        event_free(journal->upgrade.timer);
    journal->upgrade.timer = NULL;
}

bool upgrade_has_store(const struct journal *journal, struct tccl_error *err)
{
    if (!journal->store)
        tccl_fail(err, "%s is not up to date yet", journal->path);
    return journal->store != NULL;
}
