/* gres-links.h: a profile's bandwidths as numbers for Links= of gres.conf, by which Slurm chooses
 * GPUs. */
#pragma once

#include "profile/cache.h"

/* From 0 to TCCL_LINKS_MOST: pairs of GPUs that are as good as the best one have the most. Slurm
 * scales what is larger down to 4. */
enum { TCCL_LINKS_MOST = 4 };

/* Does this Slurm take the best linked GPUs, whatever the job asks with? Slurm up to 23.11 does;
 * from 24.05 on the least linked ones are taken for --gres and --gpus-per-node, and the best linked
 * ones for --gpus, so that no numbers serve both. */
bool tccl_links_serve(int year, int month);

/* How well each pair of GPUs goes together: the tier of the pair among all pairs of the empty node
 * (search/place.h), -1 of a GPU with itself. progress: as in search/place.h, with its context; may
 * be NULL. Returns 0; 1 with err: a pair was not measured, or all are equally good; -1 with err. */
int tccl_links_from_profile(struct tccl_profile *profile,
                            void (*progress)(void *context, int done, int total), void *context,
                            int links[static TCCL_MAX_GPUS][TCCL_MAX_GPUS], struct tccl_error *err);

/* Has one of these texts of Links= links, and not only zeros? */
bool tccl_links_said(const char *const *texts, int count);

/* Of count GPUs in the order of gres.conf (gpus: their positions in the machine), each with its
 * Links=: the first whose numbers are others than these, or missing while some have links; -1 if
 * there is none. Where no text has links (tccl_links_said), there is none. */
int tccl_links_differ(const int links[TCCL_MAX_GPUS][TCCL_MAX_GPUS], const int *gpus, int count,
                      const char *const *texts);
