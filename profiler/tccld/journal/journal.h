/* journal.h: where records of steps go: into this node's store, or into its outbox,
 * out of which they are sent to AccountingHost. */
#pragma once

#include "tccld/main/daemon.h"
#include "tccld/net/connection.h"

enum {
    JOURNAL_SEND_MS = 5000,        /* for a batch of records to be taken by AccountingHost */
    JOURNAL_RETRY_MS = 1000,       /* until what waits is tried again; */
    JOURNAL_RETRY_MOST_MS = 60000, /* doubled up to this while they can't be delivered, */
    JOURNAL_EARLY_MS = 5000,       /* but no longer than this when a new record has come */
    JOURNAL_PAGE = 400 * 1024      /* bytes of records in one answer */
};

/* Opens store and outbox in conf's StateDir, or tries again later. Returns NULL with err: no
 * memory, no thread. */
struct journal *journal_open(struct daemon *daemon, struct tccl_error *err);
/* Lets what is being written be written, for a bounded time. NULL is fine. */
void journal_close(struct journal *journal);

/* Keeps a record (taken over) of a step. Never fails for the caller: what goes wrong is logged. */
void journal_put(struct journal *journal, json_t *record);

/* A record is on no disk yet, or will be put later (1); it is safe, or will not be (-1): it counts
 * as lost if tccld is killed meanwhile. */
void journal_expect(struct journal *journal, int change);

/* Why no records are stored here; NULL: they are. */
const char *journal_trouble(const struct journal *journal);

/* The configuration was read again: what is too old now goes soon. */
void journal_reloaded(struct journal *journal);

/* Handlers of RECORD, LOST, QUERY and SUMMARY. */
request_handler journal_receive, journal_hear_lost, journal_query, journal_summary;
