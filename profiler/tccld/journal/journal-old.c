#include "tccld/journal/journal-old.h"

#include "records/records.h"
#include "tccld/journal/journal-chore.h"

enum {
    OLD_ROWS = 500,    /* removed at a time, so that nobody waits long for the disk, */
    OLD_PAUSE_MS = 50, /* and between two times */
    OLD_EACH_MS = 3600 * 1000,
};

void old_look(struct journal *journal, int64_t ms)
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
        old_look(journal, OLD_PAUSE_MS);
        return;
    }
    if (chore->result < 0)
        log_limited(&journal->trouble, "old records are not removed: %s", chore->err.text);
    if (journal->n_old)
        log_line("removed %lld record%s older than KeepRecords=%dd", (long long)journal->n_old,
                 journal->n_old > 1 ? "s" : "", journal->daemon->conf->keep_days);
    journal->n_old = 0;
    old_look(journal, OLD_EACH_MS);
}

void old_on_time(evutil_socket_t fd, short what, void *argument)
{
    struct chore chore = {.journal = argument, .run = run_old, .then = then_old};
    (void)fd;
    (void)what;
    if (chore_submit(chore) != 0)
        old_look(argument, JOURNAL_OLD_FIRST_MS);
}
