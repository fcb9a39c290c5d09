/* planlist.h: the plans that this tccld has written. */
#ifndef TCCL_PLANLIST_H
#define TCCL_PLANLIST_H

#include "client/client.h"

enum { PLANLIST_MOST = 4096 /* plans remembered; beyond, a plan's age alone protects it */ };

struct planlist;

struct planlist *planlist_new(void);       /* NULL without memory */
void planlist_free(struct planlist *list); /* NULL is fine */

/* The step's plan has been written; it has been removed. */
void planlist_add(struct planlist *list, const struct tccl_step_key *key);
/* That step has no plugin here: its plan goes with the job script that takes part in it. */
void planlist_add_of_script(struct planlist *list, const struct tccl_step_key *key);
/* Some step with such a plan of the script's job. False: there is none. */
bool planlist_next_of_script(const struct planlist *list, const struct tccl_step_key *script,
                             struct tccl_step_key *key);
void planlist_remove(struct planlist *list, const struct tccl_step_key *key);

/* Has a plan with that folder been written, and not removed? */
bool planlist_has(const struct planlist *list, const char *folder);

#endif
