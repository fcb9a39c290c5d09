/* journal-internal.h: a journal as its parts know it. */
#pragma once

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "client/key.h"
#include "tccld/journal/journal.h"
#include "tccld/main/daemon.h"
#include "tccld/main/run-dir.h"

/* believed.c: what time it is, as far as records go by it. */

struct believed {
    int64_t now;    /* unix time; 0: not known yet */
    int64_t at_ms;  /* of CLOCK_MONOTONIC: when that was so */
    int64_t newest; /* start of the newest record whose time is believed; 0: there is none */
};

enum {
    BELIEVED_DAY = 24 * 3600,
    BELIEVED_FAR = 30 * BELIEVED_DAY,   /* a record of that long after now, */
    BELIEVED_LONG = 366 * BELIEVED_DAY, /* or so long before KeepRecords=, is misdated */
    BELIEVED_RATE = 3,                  /* seconds a second by which it comes up with the clock */
};

/* What is known at the start: what was believed last (0: nothing yet), the newest record, the
 * clock's time. */
void believed_begin(struct believed *believed, int64_t last, int64_t newest, int64_t clock,
                    int64_t now_ms);
/* A look at the clock and at the newest record. */
void believed_look(struct believed *believed, int64_t newest, int64_t clock, int64_t now_ms);
/* The time now, without a look. */
int64_t believed_now(const struct believed *believed, int64_t now_ms);

/* Records of steps that started before that are too old for so many days of keeping them; 0: none
 * is (days is 0, or there are no records). */
int64_t believed_oldest(const struct believed *believed, int days, int64_t clock, int64_t now_ms);
/* Is a record that comes now dated so far off that its time can't be right? */
bool believed_misdated(const struct believed *believed, int64_t start, int days, int64_t now_ms);

/* losses.c: how many records of this node are on no disk: those that wait to be, and those that
 * were lost, however tccld ended. */

enum { LOSSES_LEDGER = 16 /* hexadecimal digits */ };

struct losses {
    char ledger[LOSSES_LEDGER + 1]; /* its number */
    struct run_dir *run_dir;
    int fd;              /* of the ledger; -1: there is none, and the numbers end with tccld */
    int64_t pending;     /* records that neither a disk nor another node has yet */
    int64_t count;       /* records that were lost */
    int64_t first, last; /* when, unix time; 0: none was */
};

/* Opens the ledger, a file in RunDir (by which it is written), or makes it. What was pending when
 * the tccld before was killed is lost. Returns how many records that were. */
int64_t losses_open(struct losses *losses, struct run_dir *run_dir, const char *path, int64_t now);
void losses_close(struct losses *losses);

/* A record has come, or (-1) has got where it is safe. */
void losses_pend(struct losses *losses, int change);
/* Records are lost; pending: how many of them were. */
void losses_count(struct losses *losses, int64_t count, int pending, int64_t now);

struct disk_task;

/* Questions about records: QUERY, or SUMMARY. */
struct questions {
    struct threads *pool;
    struct fair_queue *waiting; /* tasks */
    struct reader *readers;
    int n_readers;
    struct event *watch; /* time to look for who has hung up, while a question is under way */
};

struct journal {
    struct daemon *daemon;
    struct threads *disk;       /* its one thread alone uses store and outbox */
    char folder[PATH_MAX];      /* StateDir */
    char path[PATH_MAX + 16];   /* of the store */
    atomic_bool own;            /* nobody else can change what is in the folder */
    int lock;                   /* on the folder; -1: not held */
    struct tccl_records *store; /* NULL: it can't be used now, */
    struct tccl_error why;      /* for this reason; of the disk's thread as well */
    struct tccl_error closed;   /* the same as the event loop knows it; empty: it is open */
    struct tccl_outbox *outbox; /* NULL: likewise */
    struct event *opening;      /* time to try again; */
    int64_t opening_ms;         /* after so long; 0: nothing is wrong */
    atomic_int opened;          /* how often the store was */
    int64_t waiting;            /* records in the outbox, as far as the event loop knows */
    int64_t behind;             /* the id in it behind which the next batch begins; 0: the oldest */
    bool delivering;            /* some of them, or of those in memory, are on their way */
    bool by_memory;             /* the last ones were */
    bool away;                  /* the other node has not taken the last ones */
    struct delivery *delivery;  /* to another node; NULL: none is under way */
    int64_t next_ms;            /* when the next batch may be sent, if it is small; */
    struct event *pace;         /* time to */
    struct questions queries, summaries;
    struct event *retry;           /* pending only while outbox or memory holds records */
    int64_t retry_ms;              /* 0: the first time */
    int64_t tried_ms;              /* when it was last, in vain */
    bool newer;                    /* a record has come since */
    atomic_bool closing;           /* it ends: the store that is being opened is given up */
    json_t *memory;                /* [[record, its bytes as text], …] */
    size_t memory_bytes;           /* of its records, as text */
    struct event *retention;       /* time to look for records that are too old */
    int64_t n_removed;             /* removed since that began */
    TAILQ_HEAD(, disk_task) inbox; /* records for the disk */
    int n_inbox;                   /* how many, */
    size_t inbox_bytes;            /* as text */
    bool storing;                  /* a batch of them is under way; the others wait */
    struct believed believed;
    struct losses losses;
    int64_t told, said;   /* of those: what the records' home has heard, and is being told */
    struct link *telling; /* NULL: it is not being told now */
    struct event *tell;   /* time to tell it; */
    int64_t tell_ms;      /* after so long, as it was not heard; 0: it was */
    struct log_limit trouble, lost, misdated, refused, expired, late, abandoned;
};

/* Where records go: a node, or NULL, which is this one. */
const char *journal_home(const struct journal *journal);

/* The step that a record is of, for logs: as tccl_key_format, or "?". */
void journal_step_text(const json_t *record, char text[static TCCL_KEY_TEXT]);

/* Has what the outbox and the memory hold looked at again, later each time. */
void journal_retry_later(struct journal *journal);
/* The same for a new record: soon, whatever the others wait for. */
void journal_retry_early(struct journal *journal);
/* Records are lost, which is counted, told to the records' home, and logged. record: one of them,
 * borrowed, or NULL; pending: how many were. */
void journal_lose(struct journal *journal, const json_t *record, int64_t count, int pending,
                  const char *why);

/* Into memory goes a record (borrowed) of so many bytes as text; out of it come the oldest ones, at
 * most so many and so many bytes, but one if there is one: a new reference to an array. */
void journal_hold(struct journal *journal, json_t *record, size_t bytes);
json_t *journal_take_held(struct journal *journal, size_t most, size_t bytes);
/* What is in memory goes to the disk, if that takes it. */
void journal_save_memory(struct journal *journal);

/* Keeps a record (borrowed) that no disk takes, for a reason; beyond a bound it is lost, with a
 * line in the log. */
void journal_keep_in_memory(struct journal *journal, json_t *record, const char *why);

/* opening.c: store and outbox are opened, and opened again where they can't be used. */

enum { OPENING_FIRST_MS = 2000, OPENING_RETRY_MS = 1000, OPENING_RETRY_MOST_MS = 60000 };

/* Opens what StateDir holds. Where that can't be done, it says so and tries again from time to
 * time: meanwhile journal->store, or the outbox too, is NULL, and rings are served all the same. */
void opening_begin(struct journal *journal);
/* Callback of journal->opening. */
void opening_on_time(evutil_socket_t fd, short what, void *journal);

/* In the disk's thread: the store has failed with this error. It is closed, and opened anew when
 * opening_again has been called on the event loop, with the same error. */
void opening_lost(struct journal *journal, const struct tccl_error *why);
void opening_again(struct journal *journal, const struct tccl_error *why);

/* After the outbox was used, in the disk's thread: what it holds; a damaged one is closed, and made
 * anew later. Then on the event loop: what was in that is lost. */
void opening_look_at_outbox(struct disk_task *task);
void opening_after_outbox(struct disk_task *task);

/* In the disk's thread: is there a store? Returns 0, or -1 with err: why there is none. */
int opening_check(const struct journal *journal, struct tccl_error *err);

/* delivery.c: records out of memory or the outbox, to the node that keeps them, AccountingHost as a
 * rule, or into the store here. */

/* Takes a new record (borrowed) for another node. Returns 0, or -1: it has to go to the disk first.
 */
int delivery_add(struct journal *journal, json_t *record);

/* Delivers what waits in the outbox, or in memory, unless that is under way. What is not taken
 * stays there, and is tried again later. */
void delivery_look(struct journal *journal);

/* The timer for records that wait for others. */
void delivery_on_time(evutil_socket_t fd, short what, void *journal);

/* Ends what is under way; what is in no outbox is in memory again. */
void delivery_cancel(struct journal *journal);

/* retention.c: records that are older than KeepRecords, out of the store. */

enum { RETENTION_FIRST_MS = 2000 };

/* Looks for them after so many milliseconds, and then each hour. */
void retention_look(struct journal *journal, int64_t ms);
/* Callback of journal->retention. */
void retention_on_time(evutil_socket_t fd, short what, void *journal);

/* telling.c: the node that keeps the records hears how many of this node's are lost. */

/* Tells it soon, if there is something that it has not heard. */
void telling_look(struct journal *journal);
/* The same, as if it had heard nothing: it may be another node now. */
void telling_again(struct journal *journal);
/* Callback of journal->tell. */
void telling_on_time(evutil_socket_t fd, short what, void *journal);
/* At the end. */
void telling_cancel(struct journal *journal);

/* questions.c: questions about records: each in a thread beside the one that writes, and of a user
 * one at a time. */

/* Returns 0, or -1 with err; closed in either case. */
int questions_open(struct journal *journal, struct tccl_error *err);
/* Drops those that wait and ends those under way, for which it waits that long. Returns 0; 1: one
 * is stuck, and uses the journal until the end of the process. */
int questions_close(struct journal *journal, int wait_ms);

/* fair-queue.c: what waits to be done one after the other, so that all users get their turn,
 * however much one of them asks for. */

struct fair_queue;

/* For at most that many things, of them at most that many of one user. NULL without memory. */
struct fair_queue *fair_queue_new(int most, int most_of_one);
/* Nothing may wait in it. NULL is fine. */
void fair_queue_free(struct fair_queue *queue);

/* Puts what in, behind all that the user (anything that tells users apart) has in there. unbounded:
 * no bound holds for this user. Returns 0, or -1 when there are too many, or without memory. */
int fair_queue_add(struct fair_queue *queue, uid_t user, int unbounded, void *what);
/* Takes out what is next, NULL if there is nothing: users take turns, and of a user the oldest
 * comes first. */
void *fair_queue_take(struct fair_queue *queue);
/* The same, but nothing of users who have to wait. */
void *fair_queue_take_unless(struct fair_queue *queue,
                             int (*has_to_wait)(const void *context, uid_t user),
                             const void *context);
