/* trial.c: jobs are drawn by their numbers. */
#include "tccld/join/trial.h"

#include <stdio.h>

#include "base/hash.h"

bool trial_draws(const struct tccl_step_key *key, const char *what, int share)
{
    char text[TCCL_KEY_CLUSTER + 64];
    int length = snprintf(text, sizeof(text), "%.32s %s %u", what, key->cluster,
                          key->het_job ? key->het_job : key->job);
    return (int)(tccl_hash64(text, (size_t)length) % TRIAL_WHOLE) < share;
}
