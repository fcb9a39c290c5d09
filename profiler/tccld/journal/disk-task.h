/* disk-task.h: what the journal does in the disk's thread, and then on the event loop. */
#pragma once

#include <stdbool.h>

#include "tccld/journal/journal-internal.h"

struct disk_task {
    TAILQ_ENTRY(disk_task) link; /* in the inbox or in a batch */
    TAILQ_HEAD(, disk_task) batch;
    struct journal *journal;
    struct reader *reader; /* of a question */
    bool given_up;         /* it took too long, or nobody waits for it any more */
    void (*run)(struct disk_task *task);
    void (*then)(struct disk_task *task);
    json_t *record, *answer; /* record: or an array of them */
    int n_expired;           /* those that came */
    struct believed believed;
    int keep_days, keep_misdated;
    int n_lost;      /* records that were put aside: damaged, or too long */
    int n_misdated;  /* records that came and whose start can't be right */
    bool elsewhere;  /* they are kept by another node */
    bool kept;       /* they are in the outbox; else: */
    bool box_failed; /* it is damaged, or of no use as it was open, and was closed */
    int64_t n_boxed; /* records that were in it */
    bool store_failed;
    int most;        /* records that are taken out of it, */
    int64_t behind;  /* which have higher ids */
    int64_t waiting; /* what it holds */
    size_t bytes;    /* of record, as text; 0: nothing waited before it */
    int64_t uid;
    int result; /* of the store */
    struct tccl_error err, box_err;
    struct connection *connection; /* who has asked, or brought the record */
};

/* Sets what a task goes by when it looks at the age of records. */
void disk_task_set_time(struct disk_task *task);

/* Has a copy of first done. Takes its references over, also when it fails. Returns 0 or -1. */
int disk_task_submit(struct disk_task first);

/* The same in two steps, for a pool: run in the thread, then the rest and an end of it. */
void disk_task_run(void *argument);
void disk_task_done(void *argument);

/* Answers who has asked: an ERROR; refused: asking again is of no use. */
void journal_refuse(struct connection *connection, const char *text, bool refused);

/* inbox.c: records on their way to the disk: those of this node into its store, or, for another
 * node, into the outbox; those that other nodes send into the store. */

/* Takes a record of this node (borrowed). What the disk does not take stays in memory. */
void inbox_add(struct journal *journal, json_t *record);

/* In the disk's thread: as tccl_records_put; what came so late that it would be removed at once is
 * not stored. */
int inbox_store(struct disk_task *task, const json_t *record);
/* Logs how much of that there was, and of records whose start can't be right. */
void inbox_log_dates(struct disk_task *task);

/* What no batch has taken goes into memory; peers hear nothing, and send it again. */
void inbox_empty(struct journal *journal);
