/* metrics-profile.h: the profile of this node's machine, counted. */
#ifndef TCCL_METRICS_PROFILE_H
#define TCCL_METRICS_PROFILE_H

#include "profile/stamp.h"
#include "tccld/main/metrics.h"

/* What was counted last, and of which files: zero-initialise, and keep between calls. */
struct metrics_count {
    struct tccl_stamp described, sets, chains;
    struct metrics_profile profile;
};

/* Counts again, if machine.json or the profile has changed. It reads the whole log of sets: not for
 * the event loop. Where there is no profile, or it can't be read, count->profile is all 0; it says
 * why in the place where it matters, to the steps that ask. */
void metrics_count_profile(struct metrics_count *count, const char *machine, const char *cache_dir);

#endif
