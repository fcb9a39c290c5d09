/* measured.h: all that a profile has measured, in memory, to be asked for sets. */
#pragma once

#include "profile/cache.h"
#include "search/setmap.h"

/* Zero-initialise; tccl_measured_clear frees. */
struct tccl_measured {
    struct tccl_setmap sets;
    const struct tccl_model *model; /* answers for what was not measured; NULL: nobody does */
    long lines;                     /* of the log: sets measured again count again */
    int dropped;                    /* its last line was torn */
};

enum tccl_answer { TCCL_NO_ANSWER, TCCL_ANSWER_MEASURED, TCCL_ANSWER_MODEL };

/* Reads the log, but for sets with repeats, which are ring sets'. Of a set measured several times
 * the largest bandwidth counts, as for the search. Where the profile is of a model, the model is
 * borrowed from the profile. Returns 0, or -1 with err. */
int tccl_measured_load(struct tccl_profile *profile, struct tccl_measured *measured,
                       struct tccl_error *err);
void tccl_measured_clear(struct tccl_measured *measured);

/* What is known of the set: where it comes from, and *value (all 0 without an answer). A
 * measurement that failed is an answer too. */
enum tccl_answer tccl_measured_ask(const struct tccl_measured *measured, const struct tccl_set *set,
                                   struct tccl_measurement *value);
