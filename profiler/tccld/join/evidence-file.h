/* evidence-file.h: the table of evidence (evidence.h) of a running tccld: kept in
 * StateDir/evidence.json, used where a step starts, and shown. */
#pragma once

#include <jansson.h>

#include "client/outcome.h"
#include "client/step-fields.h"
#include "tccld/join/evidence.h"
#include "tccld/main/daemon.h"

/* The file's contents: a new reference, NULL without memory; and a table, all zeros before, from
 * them. Returns 0, or -1 with err, and the table may have a part of it. */
json_t *evidence_to_json(const struct evidence_table *table);
int evidence_from_json(const json_t *json, struct evidence_table *table, struct tccl_error *err);

/* Begins to read the file, in a thread: until it is there nothing is known, and steps do not count.
 * One that can't be read is begun anew. NULL with err. */
struct evidence *evidence_new(struct daemon *daemon, struct tccl_error *err);
/* Writes what is new, if the disk takes it soon. NULL is fine. */
void evidence_free(struct evidence *evidence);

/* A step has ended; Evidence=off: it does not count. It is on disk within EVIDENCE_SAVE_MS. */
enum { EVIDENCE_SAVE_MS = 10000 };
void evidence_take(struct daemon *daemon, const struct running_step *step, enum evidence_arm arm,
                   int64_t bytes, double achieved);

/* At the root: a ring that was measured to be slower is left to NCCL's own choice, but for some
 * jobs, by which it is seen whether it still is. */
void evidence_apply(struct daemon *daemon, struct tccl_outcome *outcome,
                    const struct tccl_step *join);

/* For NODE: what is known of each subject, the latest EVIDENCE_SHOWN of them: a new reference, NULL
 * without memory. Who the users are is not said. */
enum { EVIDENCE_SHOWN = 64 };
json_t *evidence_report(const struct daemon *daemon);
