/* claims.h: the partition, account and QOS that a step claims, where the site's policy depends on
 * them: its first node gives no ring before slurmctld has said that they are the job's. */
#ifndef TCCLD_CLAIMS_H
#define TCCLD_CLAIMS_H

#include "tccld/join/step-internal.h"

/* This node's JOIN; the root has slurmctld asked at once. Returns 0, or -1 with err: another node
 * of the step was told otherwise. */
int claims_take(struct step *step, struct tccl_error *err);
/* The same by a child's MERGE, of its range. */
int claims_hear(struct step *step, const json_t *merge, struct tccl_error *err);
/* Adds those of this range to a MERGE. Returns 0, or -1. */
int claims_put(const struct step *step, json_t *merge);

/* At the root: are they the job's? Returns 0: yes, or it doesn't matter; 1: slurmctld has been
 * asked, and step_advance will be called; -1 with err: no, or it is not known. */
int claims_check(struct step *step, struct tccl_error *err);
/* Does the step wait for slurmctld alone? Then err says so. */
bool claims_are_awaited(const struct step *step, struct tccl_error *err);
void claims_clear(struct step *step);

#endif
