/* step-json.h: the members of a step in JSON, by their table (step-fields.h), and the message JOIN.
 * Format: profiler/client/README.md. */
#ifndef TCCL_STEP_JSON_H
#define TCCL_STEP_JSON_H

#include <jansson.h>

#include "client/step-fields.h"

/* Adds the members that are used there (one of TCCL_IN_*) to an object; those that need not be
 * there are left out where they are "" or 0. Returns 0, or -1 without memory. */
int tccl_step_put(json_t *json, enum tccl_use use, const struct tccl_step *step);
/* Reads them; what is absent becomes "" or 0. Returns 0, or -1 with err, which names the member:
 * the step is then to be cleared all the same. */
int tccl_step_get(const json_t *json, enum tccl_use use, struct tccl_step *step,
                  struct tccl_error *err);

/* JOIN: a new reference, or NULL with err. */
json_t *tccl_join_to_json(const struct tccl_step *step, struct tccl_error *err);
/* Allocated; NULL with err. */
struct tccl_step *tccl_join_from_json(const json_t *json, struct tccl_error *err);

#endif
