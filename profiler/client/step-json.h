/* step-json.h: steps and outcomes in JSON, by the table of their members (step-fields.h).
 * Format: profiler/client/README.md. */
#pragma once

#include <jansson.h>

#include "client/outcome.h"
#include "client/step-fields.h"

/* Adds the members that are used there (one of TCCL_IN_*) and are of that owner, which is a struct
 * tccl_step or tccl_outcome; those that need not be there are left out where they are "" or 0.
 * Returns 0, or -1 if out of memory. */
int tccl_fields_put(json_t *json, enum tccl_use use, enum tccl_owner owner, const void *object);
/* Reads them; what is absent becomes "" or 0. Returns 0, or -1 with err, which names the member:
 * the object is then to be cleared all the same. */
int tccl_fields_get(const json_t *json, enum tccl_use use, enum tccl_owner owner, void *object,
                    struct tccl_error *err);

/* The same of one member, of this or another table. must: it is there also where it is "" or 0. */
int tccl_field_put(json_t *json, const struct tccl_field *field, bool must, const void *object);
int tccl_field_get(const json_t *json, const struct tccl_field *field, bool must, void *object,
                   struct tccl_error *err);

/* JOIN: a new reference, or NULL with err. */
json_t *tccl_join_to_json(const struct tccl_step *step, struct tccl_error *err);
/* Allocated; NULL with err. */
struct tccl_step *tccl_join_from_json(const json_t *json, struct tccl_error *err);

/* A record of a step (records/record.h): a new reference, or NULL if out of memory. */
json_t *tccl_record_to_json(const struct tccl_step *step, const struct tccl_outcome *outcome);
