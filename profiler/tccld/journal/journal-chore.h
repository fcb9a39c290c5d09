/* journal-chore.h: what the journal does in the disk's thread, and then on the event loop. */
#ifndef TCCL_JOURNAL_CHORE_H
#define TCCL_JOURNAL_CHORE_H

#include "records/spool.h"
#include "tccld/journal/journal-internal.h"

struct chore {
    TAILQ_ENTRY(chore) link; /* in the inbox or in a batch */
    TAILQ_HEAD(, chore) batch;
    struct journal *journal;
    struct questions *questions; /* that it is one of, or NULL */
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
    struct connection *connection; /* who has asked, or brought the record */
};

/* Has a copy of first done. Takes its references over, also when it fails. Returns 0 or -1. */
int chore_submit(struct chore first);

/* The same in two steps, for a pool: run in the thread, then the rest and an end of it. */
void chore_run(void *task);
void chore_done(void *task);

/* A then: logs err, if there is one. */
void chore_log_error(struct chore *chore);

/* An ERROR for who has asked; refused: asking again is of no use. */
json_t *chore_error_message(const char *text, bool refused);

#endif
