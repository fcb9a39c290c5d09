/* slurm-gpus.h: slurmd's list of this node's GPUs, read by a thread, and always the one by which
 * the running slurmd counts. */
#pragma once

#include "gres/gres.h"
#include "tccld/main/daemon.h"

/* Starts to read the list. heard is called on the event loop after each look at it. NULL with err.
 */
struct slurm_gpus *slurm_gpus_new(struct daemon *daemon,
                                  void (*heard)(struct daemon *daemon, unsigned look),
                                  struct tccl_error *err);
void slurm_gpus_free(struct slurm_gpus *gpus); /* NULL is fine */

/* Is the list still that of the running slurmd? Returns the number of the look that will tell:
 * heard is called with it, or a later one. 0: none could be begun, and there is no list. */
unsigned slurm_gpus_look(struct slurm_gpus *gpus);

/* What the last look has found. Returns 0; 1: no slurmd runs on this node; 2: there is no Slurm, so
 * GPUs are counted as the machine's description has them; -1 with err: there is no list that can be
 * trusted, and why. */
int slurm_gpus_get(const struct slurm_gpus *gpus, const struct tccl_gres **list,
                   struct tccl_error *err);
