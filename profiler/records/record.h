/* record.h: the record of a job step: the step with its outcome.
 *
 * A record is a flat JSON object. Its members are those of client/step-fields.c, which are also the
 * columns of the store and the members of `tcclacct --json`. Some are specific to records:
 *
 *   nodes       is a hostlist text, "n[1-4]"; an array of names is accepted and converted
 *   first_node, n_nodes, ratio   are derived if absent
 *   state       is a word of PLAN
 *   reporter    index of the node that sent it
 *   built       what NCCL built: a word of tccl_built_word; with built_reason. Both
 *               come from confirmations, never from the record itself
 *
 * Optional members default to "" or 0 (null counts as absent). Numbers out of bounds and wrong
 * types are refused; unknown members are dropped. Texts that are too long are cut at a character
 * and end in "…" (node lists: cut after a name). Texts are stored as they are: escape them when
 * printing. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "client/outcome.h"
#include "client/step-fields.h"

enum { TCCL_RECORD_WORD = 31 /* bytes of a state, and of what was built */ };

/* Checks a record from outside and brings it into its stored form: all members present, in the
 * order of the table, cut and derived as above. A new reference, or NULL with err naming the field.
 */
json_t *tccl_record_normal(const json_t *record, struct tccl_error *err);

/* A confirmation says what NCCL built. It is an object with key and start of the record that it
 * belongs to, built and built_reason, and no state. It may arrive before or after the record. Of
 * several, the one of the highest rank counts. */
bool tccl_record_confirms(const json_t *record);
/* Checks a confirmation from outside, like tccl_record_normal: these members and no others. */
json_t *tccl_confirmation_normal(const json_t *record, struct tccl_error *err);

/* What a step's large collectives reached (GB/s) over what was foretold of what it ran with: of the
 * ring, if the measured communicator was given it (with: "rings") and NCCL built it, else of that
 * NCCL's own, or, as long as its version is not known, of the newest NCCL's. 0 where that is not
 * known, or more than TCCL_SHARE_MOST: no machine is that much faster than its profile says, but
 * any process of the user's can say so. */
#define TCCL_SHARE_MOST 4
double tccl_achieved_share(double achieved, const char *with, const char *built, double gbps,
                           double nccl_gbps, double baseline_gbps);

/* A record's key as one line, its members with '/' between them. Returns 0, or -1 with err. */
enum { TCCL_RECORD_KEY = TCCL_KEY_CLUSTER + 5 * 11 + 16 + 1 };
int tccl_record_key(const json_t *record, char key[static TCCL_RECORD_KEY], struct tccl_error *err);
