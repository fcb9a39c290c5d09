/* proxy-join.h: a late node takes part by proxy: with a JOIN that is made of what its job's prolog
 * has announced (announce.h), until its own JOIN comes. All that has to do with announcements is
 * here and in announce.h. */
#ifndef TCCL_PROXY_JOIN_H
#define TCCL_PROXY_JOIN_H

#include "tccld/join/step-internal.h"

enum { STEP_KEEP_PROXY_MS = 900000 /* how long after closing a node with a proxy may join */ };

/* What a JOIN of this node, or a MERGE (its "announced", which may be NULL), says of announcements.
 */
void proxy_hear_join(struct step *step, const struct tccl_step *message);
void proxy_hear(struct step *step, json_t *announced);
/* Puts that into a MERGE of the range. Returns 0, or -1 without memory. */
int proxy_put_terms(const struct step *step, json_t *message);

/* A late child listens: it is asked to take part by proxy, if all that has come is as announced. */
void proxy_call(struct child *child);
/* This node takes part by proxy if it has not joined, and its job has announced the same here. */
void proxy_take_part(struct step *step);

/* Is the JOIN in the step a proxy? */
bool proxy_stands(const struct step *step);
/* Is a JOIN awaited, here or below, after the step has closed? */
bool proxy_is_awaited(const struct step *step);
/* The JOIN has come (taken over) for which a proxy stood. If it isn't what was announced there is
 * no ring, or none here where one has been given out. */
void proxy_replace(struct step *step, struct tccl_step *message);

/* The job has ended on this node. key: of any step of it. */
void proxy_end_job(struct steps *steps, const struct tccl_step_key *key);

#endif
