/* records.h: the store of step records: one per job step, in SQLite, on the accounting host.
 *
 * A record is a flat JSON object. The names below are those of the wire, of the table's columns and
 * of `tcclacct --json`:
 *
 *   key         cluster (text), job, het_job (leader's job id, 0 if not heterogeneous), het_offset,
 *               step (Slurm's number), restart
 *   who         uid, user, account, partition, job_name
 *   where       nodes (hostlist text "n[1-4]"; an array of names is taken too, and stored as that
 *               text), first_node, n_nodes, gpus (number of them in the step)
 *   what        mode (off auto on require), state (off applied fallback nothing-to-do partial
 *               differs), reason, gbps, baseline_gbps, ratio, bound_gbps (GB/s, proven upper
 * bound), solve_us (first JOIN to the answer at the root, microseconds), ring (notation), source
 * (model host cuda) when        start (unix time, seconds) reporter    index of the node that sent
 * it
 *
 * cluster, job, step, uid, state, start and reporter must be there; others default to "" and 0.
 * first_node, n_nodes and ratio are worked out where they are absent. Numbers out of bounds, wrong
 * types and unknown names are refused. Texts that are too long are cut at a character and end in
 * "…"; they are stored as they are, so whoever prints them must escape them. */
#ifndef TCCL_RECORDS_H
#define TCCL_RECORDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "error.h"

/* Bounds of a record's texts, in bytes, and of a query's lists. */
enum {
    TCCL_RECORD_NAME = 255,   /* cluster, user, account, partition, job_name, first_node */
    TCCL_RECORD_REASON = 511, /* reason */
    TCCL_RECORD_WORD = 31,    /* mode, state, source */
    TCCL_RECORD_RING = 65535, /* ring */
    TCCL_RECORD_NODES = 262144 /* nodes; also the most names */,
    TCCL_FILTER_JOBS = 256,
    TCCL_FILTER_USERS = 256,
    TCCL_FILTER_STATES = 16,
    TCCL_FILTER_NODES = 65536
};

/* Checks a record that came from outside and brings it into the form that is stored: all names
 * there, in the order above, cut and worked out as above. A new reference, or NULL with err, which
 * names the field. */
json_t *tccl_record_normal(const json_t *record, struct tccl_error *err);

/* The six fields of a record's key as one line, "cluster/job/het_job/het_offset/step/restart".
 * Returns 0, or -1 with err. */
enum { TCCL_RECORD_KEY = TCCL_RECORD_NAME + 5 * 11 + 1 };
int tccl_record_key(const json_t *record, char key[static TCCL_RECORD_KEY], struct tccl_error *err);

struct tccl_records;

/* Opens the store, makes it (mode 0600, the folder must be there), or brings an older one up to
 * date. One thread uses it. Returns 0, or -1 with err (not a store, a newer version's store, no
 * access); the file is then untouched. The caller closes it. */
int tccl_records_open(const char *path, struct tccl_records **records, struct tccl_error *err);
void tccl_records_close(struct tccl_records *records); /* NULL is fine */

/* Stores a record. One that is there with the same key is replaced if it came from the same or a
 * higher reporter, else kept, so that delivering a record again changes nothing.
 * Returns 0 when the store holds it (or a better one); 1 with err when the record itself is not
 * acceptable (never try again); -1 with err when it could not be stored now (full disk, busy, input
 * or output error): the store is as before, and the caller spools the record (spool.h). */
int tccl_records_put(struct tccl_records *records, const json_t *record, struct tccl_error *err);

/* Asks for records, oldest first (by start, then in the order of arrival). filter is an object or
 * NULL, all of it optional, and what is there must all be met:
 *   jobs    [{"job":N,"step":M|null,"het_offset":K|null}]: N the job or the leader of its het job
 *   users   [uid]
 *   start, end   unix time: start <= record's start <= end
 *   nodes   [names]: the step ran on one of them
 *   states  [names of states]
 *   limit   at most so many records in this page
 *   after   as *next of the page before gave it
 * uid >= 0: only that user's records, whatever the filter says; -1: no such restriction.
 * A page also ends before its text (compact JSON) would exceed max_bytes (but it holds one record
 * at least), and after a bounded number of rows looked at, so it may be empty and not be the last.
 * *next is a new reference to the filter that asks for the next page, or NULL after the last one.
 * Returns a new reference to an array, or NULL with err (bad filter, store can't be read). */
json_t *tccl_records_query(struct tccl_records *records, const json_t *filter, int64_t uid,
                           size_t max_bytes, json_t **next, struct tccl_error *err);

#endif
