/* record.h: what is kept of one job step: the step with its outcome.
 *
 * A record is a flat JSON object. Its members are those of client/step-fields.c, which are also the
 * columns of the store and the members of `tcclacct --json`. Some are in records alone:
 *
 *   nodes       is a hostlist text, "n[1-4]"; an array of names is taken too, and becomes that text
 *   first_node, n_nodes, ratio   are worked out where they are absent
 *   state       is a word of PLAN, or partial or differs
 *   reporter    index of the node that sent it
 *   built       what NCCL made of the ring: "" (not known), or one of tccl_built_name; and
 *               built_reason. Both come from confirmations, never from a record itself
 *
 * What need not be there is "" or 0 by default (null counts as not there). Numbers out of bounds
 * and wrong types are refused; unknown names are left out. Texts that are too long are cut at a
 * character and end in "…" (node lists: cut behind a name). Texts are kept as they are, so whoever
 * prints them must escape them. */
#ifndef TCCL_RECORD_H
#define TCCL_RECORD_H

#include <stdbool.h>

#include <jansson.h>

#include "client/outcome.h"
#include "client/step-fields.h"

enum { TCCL_RECORD_WORD = 31 /* bytes of a state, and of what was built */ };

/* Checks a record that came from outside and brings it into the form that is stored: all names
 * there, in the order of the table, cut and worked out as above. A new reference, or NULL with err,
 * which names the field. */
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

/* A record's key as one line, its members with '/' between them. Returns 0, or -1 with err. */
enum { TCCL_RECORD_KEY = TCCL_KEY_CLUSTER + 5 * 11 + 16 + 1 };
int tccl_record_key(const json_t *record, char key[static TCCL_RECORD_KEY], struct tccl_error *err);

#endif
