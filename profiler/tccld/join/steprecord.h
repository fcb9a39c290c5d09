/* steprecord.h: the record of a step, for the journal (names: records.h). */
#ifndef TCCL_STEPRECORD_H
#define TCCL_STEPRECORD_H

#include "tccld/join/outcome.h"

/* start: unix time; solve_us: first JOIN to the answer, 0 if nothing was solved; gpus: in the step,
 * 0 if unknown. A new reference; NULL without memory. */
json_t *steprecord(const struct tccl_step *join, const struct outcome *outcome, time_t start,
                   int64_t solve_us, long gpus);

#endif
