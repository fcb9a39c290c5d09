/* records.h: the store of step records (record.h) in SQLite, on the accounting host. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "records/record.h"

/* Bounds of a query's lists. */
enum {
    TCCL_FILTER_JOBS = 256,
    TCCL_FILTER_USERS = 256,
    TCCL_FILTER_STATES = 16,
    TCCL_FILTER_NODES = 1024,
    TCCL_FILTER_NAMES = 64 /* of all others each */
};

struct tccl_records;

/* Opens the store, or creates it (mode 0600; the folder must exist). For use by one thread. One
 * with fewer columns, or other indexes, is taken over, which is given up soon after *stop (NULL:
 * never), and begins anew when it is opened again. Returns 0, or -1 with err (not a store, another
 * version's store, no access: the file is then untouched; given up). The caller closes it. */
int tccl_records_open(const char *path, const atomic_bool *stop, struct tccl_records **records,
                      struct tccl_error *err);
void tccl_records_close(struct tccl_records *records); /* NULL is fine */

/* Opens an existing store for questions alone, beside its writer, which waits for none of them. For
 * use by one thread at a time. Returns 0, or -1 with err; closed as above. */
int tccl_records_open_reader(const char *path, struct tccl_records **records,
                             struct tccl_error *err);

/* Bounds each question from now on: it fails when it has taken that many ms (0: any time), or soon
 * after *stop (NULL: never), which another thread may set and must outlive the questions. */
void tccl_records_bound(struct tccl_records *records, int most_ms, const atomic_bool *stop);
/* Has that ended the last question? */
bool tccl_records_gave_up(const struct tccl_records *records);

/* Stores a record. A record with the same key is replaced if it came from the same or a higher
 * reporter, else kept, so that delivering a record again changes nothing. A planned
 * step of which a node was without its plan (it has a reason) is not replaced by the record that
 * preceded it if that arrives later.
 * A confirmation (record.h) is stored beside the record, whichever arrives first; of several, the
 * one of the highest rank is kept. A planned ring that was built differently is then shown
 * with that reason. Returns 0 when the store holds it (or a better one) safely
 * on disk; 1 with err if the record is not acceptable (do not retry); -1 with err if it could not
 * be stored now (disk full, busy, I/O error): the store is unchanged, and the caller keeps the
 * record (outbox.h). */
int tccl_records_put(struct tccl_records *records, const json_t *record, struct tccl_error *err);

/* The same for a record whose start can't be right: it is marked with the time at which it arrived,
 * and purged by that. */
int tccl_records_put_misdated(struct tccl_records *records, const json_t *record, int64_t arrived,
                              struct tccl_error *err);

/* Puts between these two are one transaction, safely on disk when commit returns 0. Each returns 0,
 * or -1 with err; if commit fails, everything put since begin is undone. */
int tccl_records_begin(struct tccl_records *records, struct tccl_error *err);
int tccl_records_commit(struct tccl_records *records, struct tccl_error *err);

/* Takes over all records of another store (path), as they are there; those that are here already
 * stay as they are. Returns 0, or -1 with err: none is taken over. */
int tccl_records_copy(struct tccl_records *records, const char *path, struct tccl_error *err);

/* The time that is believed (unix; 0: nothing is known of it yet), which the store keeps for the
 * journal, and the start of the newest record that is not misdated (0: there is none). Both return
 * 0, or -1 with err. */
int tccl_records_time(struct tccl_records *records, int64_t *believed, int64_t *newest,
                      struct tccl_error *err);
int tccl_records_set_time(struct tccl_records *records, int64_t believed, struct tccl_error *err);

/* Removes records, and what was built, of steps that started before that time (unix), the oldest
 * first, and misdated ones that arrived before another (0: none), at most that many per call. Free
 * space is reused, and what exceeds a quarter of the file is returned to the file system. Returns
 * how many were removed, 0 if none are left to remove; -1 with err. */
int tccl_records_purge(struct tccl_records *records, int64_t before, int64_t arrived, int most,
                       struct tccl_error *err);

/* Asks for records, oldest first (by start, then in the order of arrival). filter is an object or
 * NULL, all members are optional, and all given ones must match:
 *   jobs    [{"job":N,"step":M|null,"het_offset":K|null,"raw":true|null}]: N the job, the leader of
 *           its het job, or the array that it is a task of; with raw the job's own id only. Or
 *           [{"array_job":N,"first":A,"last":B,"step":M|null}]: tasks A to B of the array N
 *   users   [uid]
 *   start, end   unix time: start <= record's start <= end
 *   nodes   [names]: the step ran on one of them
 *   states  [words of State or Built that people read (base/state.h)]
 *   partitions, accounts, policies   [names]
 *   names   [names of jobs]; of these, and others like them, client/step-fields.c has the list
 *   min_nodes, max_nodes   of the step
 *   classes [words of base/error.h]
 *   order   "oldest" or "newest": which comes first
 *   limit   at most that many records in this page
 *   after   from *next of the previous page
 * uid >= 0: only that user's records, whatever the filter says; -1: no such restriction.
 * A page also ends before its text (compact JSON) would exceed max_bytes (but has at least one
 * record), and after a bounded search time, so it may be empty without being the last.
 * *next is a new reference to the filter that asks for the next page, or NULL after the last one.
 * Returns a new reference to an array, or NULL with err (bad filter, store can't be read). */
json_t *tccl_records_query(struct tccl_records *records, const json_t *filter, int64_t uid,
                           size_t max_bytes, json_t **next, struct tccl_error *err);

/* Summarizes the records that match a filter (limit, order and after are ignored): see
 * profiler/client/README.md, SUMMARY. Takes half a second for a million records, and as long
 * again where all of them were measured. Returns a new reference to an object, or NULL with err. */
json_t *tccl_records_summary(struct tccl_records *records, const json_t *filter, int64_t uid,
                             struct tccl_error *err);

/* ---- lost: how many records are lost, as the nodes say that had them. */

enum {
    TCCL_LOST_LEDGER = 16,   /* hexadecimal digits of a ledger's number */
    TCCL_LOST_ROWS = 1 << 16 /* ledgers in a store; those of more are refused */
};

/* What one node says, or all of them together. */
struct tccl_lost {
    int64_t records;     /* at most so many: what a tccld was killed with may have arrived */
    int64_t nodes;       /* of so many nodes */
    int64_t first, last; /* when, unix time */
};

/* A node's count by one of its ledgers, of which it has a new one after each boot: saying it again
 * changes nothing, and of two counts the higher one holds. now: as the store believes; nothing is
 * lost later. Returns 0; 1 with err if it is not acceptable (do not retry); -1 with err. */
int tccl_records_put_lost(struct tccl_records *records, const char *node, const char *ledger,
                          const struct tccl_lost *lost, int64_t now, struct tccl_error *err);

/* The sum over all nodes. Returns 0, or -1 with err. */
int tccl_records_lost(struct tccl_records *records, struct tccl_lost *lost, struct tccl_error *err);

/* {"records", "nodes", "first", "last"}. A new reference, or NULL without memory. */
json_t *tccl_lost_to_json(const struct tccl_lost *lost);
