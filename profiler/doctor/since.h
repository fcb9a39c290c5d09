/* since.h: what of a machine has become worse since its profile was made: links that carry less,
 * GPUs and NICs that are gone. */
#pragma once

#include "base/hash.h"
#include "doctor/doctor.h"
#include "ring/narrowed.h"

struct tccl_since {
    char machine[TCCL_HASH_HEX]; /* whose; "": nothing is known */
    uint32_t gone, gone_nics;    /* GPUs and NICs that are on the PCI bus no more, as masks */
    struct tccl_narrowed narrowed;
};

/* Compares the machine of a description, whose profile is in that cache, with the machine as it is
 * (/sys below root, NULL: /): a link that is trained at less than while that was measured, or,
 * where nobody knows, than both ends can. Of a GPU only lanes count, since its link is slow while
 * it has nothing to do. How much a link carried follows from what was measured over it. Nothing is
 * worse where nothing can be seen: no description or profile, none of the GPUs in /sys, ends of a
 * link that contradict each other. Reads some hundred files, and the profile's sets where there is
 * something. */
void tccl_since_look(const char *root, const char *machine_path, const char *cache_dir,
                     struct tccl_since *since);

/* Do both say the same? And is a no worse than b: nothing of it is new? */
bool tccl_since_equal(const struct tccl_since *a, const struct tccl_since *b);
bool tccl_since_no_worse(const struct tccl_since *a, const struct tccl_since *b);
