/* planlist.h: which plan files belong to steps that live, and the sweeping of those forgotten. */
#ifndef TCCL_PLANLIST_H
#define TCCL_PLANLIST_H

#include "client/client.h"

enum {
    PLANLIST_MOST = 4096,       /* plans remembered; beyond, a plan's age alone protects it */
    PLANLIST_SWEEP_MS = 3600000 /* between looks for forgotten plan files */
};

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

/* Removes plan files that are too old (planfile_sweep), at most once in PLANLIST_SWEEP_MS. Returns
 * how many. */
int planlist_sweep(struct planlist *list, const char *run_dir);

#endif
