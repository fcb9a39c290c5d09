/* fill.h: fills a profile: searches the chains of one GPU set after the other. */
#ifndef TCCL_FILL_H
#define TCCL_FILL_H

#include "backend.h"
#include "cache.h"

struct tccl_fill_progress {
    uint32_t gpus;   /* the set at work */
    long known;      /* sets measured by earlier runs */
    long measured;   /* sets measured now */
    long shared;     /* answered by a known or symmetric set */
    int done, total; /* tables */
    int kept;        /* of those done: were there already */
    double fraction; /* of all the work, roughly; 0 to 1 */
};

struct tccl_fill_options {
    const uint32_t *sets;
    int n_sets;
    double gap;  /* stop each search when proven within this ratio */
    long budget; /* transfer sets to measure for one GPU set at most; 0: no limit */
    int pairs;   /* port pairs to search to the end; 0: all */
    /* Called often, may be NULL; non-zero stops: what was measured is kept. */
    int (*progress)(void *context, const struct tccl_fill_progress *progress);
    void *context;
};

/* Measures and writes what is missing in the profile (opened with tccl_profile_create for this back
 * end). Each measured set is in the log before the next is measured; a table that is there, good,
 * and as far proven as asked is kept. Returns 0; 1 if progress stopped it; -1 with err. *end is how
 * far it came, in any case. */
int tccl_fill(struct tccl_backend *backend, struct tccl_profile *profile,
              const struct tccl_fill_options *options, struct tccl_fill_progress *end,
              struct tccl_error *err);

/* Is the table proven as far as asked, or was its budget used up? */
bool tccl_fill_complete(const struct tccl_table *table, const struct tccl_fill_options *options);

#endif
