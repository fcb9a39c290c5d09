/* journal-internal.h: a journal as its parts know it. */
#ifndef TCCL_JOURNAL_INTERNAL_H
#define TCCL_JOURNAL_INTERNAL_H

#include <limits.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "client/key.h"
#include "tccld/journal/believed.h"
#include "tccld/journal/journal.h"
#include "tccld/journal/losses.h"
#include "tccld/main/log.h"

/* Questions about records: QUERY, or SUMMARY. */
struct questions {
    struct pool *pool;
    struct fair_queue *waiting; /* tasks */
    struct reader *readers;
    int n_readers;
    struct event *watch; /* time to look for who has hung up, while a question is under way */
};

struct journal {
    struct daemon *daemon;
    struct pool *disk;          /* its one thread alone uses store and outbox */
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
    bool delivering;            /* some of them, or of those in memory, are on their way */
    bool by_memory;             /* the last ones were */
    bool away;                  /* the other node has not taken the last ones */
    struct delivery *delivery;  /* to another node; NULL: none is under way */
    int64_t next_ms;            /* when the next batch may be sent, if it is small; */
    struct event *pace;         /* time to */
    struct questions queries, summaries;
    struct event *retry; /* pending only while outbox or memory holds records */
    int64_t retry_ms;    /* 0: the first time */
    bool closing;
    json_t *memory;
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
    struct event *tell;   /* time to tell it */
    struct log_limit trouble, lost, misdated, refused, expired, late, abandoned;
};

/* Where records go: a node, or NULL, which is this one. */
const char *journal_home(const struct journal *journal);
/* KeepRecords= as a time: records of steps that started before are not kept; 0: all are. */
int64_t journal_oldest(const struct journal *journal);

/* The step that a record is of, for logs: as tccl_key_format, or "?". */
void journal_step_text(const json_t *record, char text[static TCCL_KEY_TEXT]);

/* Has what the outbox and the memory hold looked at again, later each time. */
void journal_retry_later(struct journal *journal);
/* A record has come that is on no disk yet, or (-1) one is safe. */
void journal_pend(struct journal *journal, int change);
/* Records are lost, which is counted, told to the records' home, and logged. record: one of them,
 * borrowed, or NULL; pending: how many were. */
void journal_lose(struct journal *journal, const json_t *record, int64_t count, int pending,
                  const char *why);

/* What is in memory goes to the disk, if that takes it. */
void journal_save_memory(struct journal *journal);

/* Keeps a record (borrowed) that no disk takes, for a reason; beyond a bound it is lost, with a
 * line in the log. */
void journal_keep_in_memory(struct journal *journal, json_t *record, const char *why);

#endif
