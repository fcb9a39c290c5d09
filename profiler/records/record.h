/* record.h: what is kept of one job step.
 *
 * A record is a flat JSON object. The names below are those of the wire, of the store's columns and
 * of `tcclacct --json`:
 *
 *   key         cluster (text), job, het_job (leader's job id, 0 if not heterogeneous), het_offset,
 *               step (Slurm's number), restart, run (of a batch step, which knows no restart
 *               count: its start, unix time in milliseconds; else 0)
 *   array       array_job_id (the job array that the job is a task of, by its first id; 0: none),
 *               array_task_id
 *   who         uid, user, account, partition, job_name
 *   where       nodes (hostlist text "n[1-4]"; an array of names is taken too, and becomes that
 *               text), first_node, n_nodes, gpus (number of them in the step)
 *   what        mode (off auto on require), policy (name of the site's rule that held, "" none),
 *               state (off applied fallback nothing-to-do partial
 *               differs), reason, gbps, baseline_gbps, ratio, bound_gbps (GB/s, proven upper
 *               bound), solve_us (first JOIN to the answer at the root, microseconds), ring
 *               (notation), source (model host cuda)
 *   when        start (unix time, seconds)
 *   reporter    index of the node that sent it
 *   built       what NCCL made of the ring: "" (not known), or one of tccl_built_name; and
 *               built_reason. Both come from confirmations, never from a record itself
 *
 * job, step, uid, state, start and reporter must be there; others default to "" and 0
 * (null counts as not there). first_node, n_nodes and ratio are worked out where they are absent.
 * Numbers out of bounds and wrong types are refused; unknown names are left out. Texts that are too
 * long are cut at a character and end in "…" (node lists: cut behind a name). Texts are kept as
 * they are, so whoever prints them must escape them. */
#ifndef TCCL_RECORD_H
#define TCCL_RECORD_H

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"

/* Bounds of a record's texts, in bytes. */
enum {
    TCCL_RECORD_NAME = 255,    /* cluster, user, account, partition, job_name, first_node, policy */
    TCCL_RECORD_REASON = 511,  /* reason, built_reason */
    TCCL_RECORD_WORD = 31,     /* mode, state, source, built */
    TCCL_RECORD_RING = 65535,  /* ring */
    TCCL_RECORD_NODES = 262144 /* nodes; also the most names */
};

/* Checks a record that came from outside and brings it into the form that is stored: all names
 * there, in the order above, cut and worked out as above. A new reference, or NULL with err, which
 * names the field. */
json_t *tccl_record_normal(const json_t *record, struct tccl_error *err);

/* A confirmation is an object with a record's key, its start, built and built_reason, and without a
 * state: what is known, later or earlier, of the record with that key and start. Ranks tell which
 * of several counts most: the highest. */
enum {
    TCCL_BUILT_NOTHING,
    TCCL_BUILT_NOT_USED,
    TCCL_BUILT_UNKNOWN,
    TCCL_BUILT_APPLIED,
    TCCL_BUILT_DIFFERS
};
int tccl_built_rank(const char *name); /* -1: no such word */
const char *tccl_built_name(int rank); /* "" "not used" "unknown" "applied" "differs" */
bool tccl_record_confirms(const json_t *record);
/* Checks one that came from outside, as tccl_record_normal: those members, and no others. */
json_t *tccl_confirmation_normal(const json_t *record, struct tccl_error *err);

/* The first fields, a record's key, as one line, "cluster/job/het_job/het_offset/step/restart/run".
 * Returns 0, or -1 with err. */
enum { TCCL_RECORD_KEY_FIELDS = 7, TCCL_RECORD_KEY = TCCL_RECORD_NAME + 5 * 11 + 16 + 1 };
int tccl_record_key(const json_t *record, char key[static TCCL_RECORD_KEY], struct tccl_error *err);

/* The fields, in the order above, for what goes through all of them. */
enum tccl_record_type { TCCL_RECORD_TEXT, TCCL_RECORD_INT, TCCL_RECORD_REAL };
struct tccl_record_field {
    const char *name;
    enum tccl_record_type type;
    bool must;
    long long min, max; /* of texts: bytes; longer ones are cut */
};
enum {
    TCCL_RECORD_FIELDS = 33,
    TCCL_RECORD_OWN = 31 /* the first of them: all but built and built_reason */
};
extern const struct tccl_record_field tccl_record_fields[TCCL_RECORD_FIELDS];

#endif
