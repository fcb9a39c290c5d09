/* own.h: this node: its description, its profile, and the class it is with some of its
 * GPUs. */
#pragma once

#include <limits.h>

#include "client/conf.h"
#include "gres/gres.h"
#include "machine/machine.h"
#include "ring/narrowed.h"
#include "tccld/join/merge.h"
#include "tccld/main/daemon.h"

struct nic_links_down;
struct own;
struct tccl_since;

/* Knows nothing yet. NULL without memory. */
struct own *own_new(void);
void own_free(struct own *own); /* NULL is fine */

/* Fabric of a NIC that has no link: this and the node's name, so that it meets nobody. */
#define OWN_NO_LINK "no link: "

/* Which NICs have no link now, for the classes that are made from here on. */
void own_links(struct own *own, const struct nic_links_down *down);

/* What has become worse since the profile was made (doctor/doctor.h), likewise. */
void own_since(struct own *own, const struct tccl_since *since);

/* A GPU set for which a search may find better rings than what the profile has. */
struct own_wanted {
    uint32_t gpus;
    json_t *model; /* the caller's; NULL: the profile was measured, which is in this cache */
    char cache_dir[PATH_MAX];
    struct tccl_machine machine;
    struct tccl_narrowed narrowed;
    unsigned since; /* which state of the machine */
};
/* Is there one that steps have asked for? */
bool own_wants(struct own *own, struct own_wanted *wanted);
/* Is it still? Not after another look at the links, or another profile. */
bool own_is_wanted(struct own *own, const struct own_wanted *wanted);
/* What was found for it; NULL: nothing. It is not wanted again. */
void own_found(struct own *own, const struct own_wanted *wanted, const struct tccl_table *found);

/* Is there a profile that can be used, as it is on disk now? Returns 0, or -1 with err. */
int own_check(struct own *own, const struct tccl_conf *conf, struct tccl_error *err);

/* The class of this node with those GPUs (numbers of Slurm's, by its list in slurm). The machine's
 * description and its profile are read at first use and again when they have changed on disk. The
 * caller drops what it gets. NULL with err, without the node's name: no profile, an unknown GPU, no
 * GPU at all.
 */
struct shared_class *own_class(struct own *own, const struct tccl_conf *conf,
                               const struct slurm_gpus *slurm, const int *gres, int n_gres,
                               enum tccl_view view, struct tccl_error *err);

/* The same, of GPUs by their bus ids. */
struct shared_class *own_kind_busids(struct own *own, const struct tccl_conf *conf,
                                     const tccl_bus *buses, int count, enum tccl_view view,
                                     struct tccl_error *err);

/* The GPUs, as a mask, that Slurm's numbers mean on the machine that the last class was made for.
 * Returns 0, or -1: they mean nothing there. */
int own_gpus(const struct own *own, const struct slurm_gpus *slurm, const int *gres, int n_gres,
             uint32_t *gpus);
/* The same of GPUs by their bus ids. */
int own_mask(const struct own *own, const tccl_bus *buses, int count, uint32_t *gpus);
/* Of that machine: the table of a GPU set, which is valid until the next question; NULL: there is
 * none. The model that its profile is made from; NULL: none, or it can't be read. Both are as the
 * machine is now. What was measured
 * together there: NULL: nothing, or with err. */
const struct tccl_table *own_table(struct own *own, uint32_t gpus);
const struct tccl_model *own_model(struct own *own);
const struct tccl_together *own_together(struct own *own, struct tccl_error *err);
/* Without reading it now: as it was read before. *stale: there is something else to be read. */
const struct tccl_together *own_together_read(struct own *own, bool *stale);
/* What a step on any so many GPUs of that machine gets at best when nobody else runs, by up to so
 * many rings at once or NCCL's own, GB/s. 0: not known, since some set of GPUs has no table, or not
 * yet: it is found out by own_look_at_place. */
double own_placed(struct own *own, int n_gpus, int rings);
/* Looks at one table for what was asked so far, which takes up to half a millisecond. Returns
 * whether there was any to be looked at. */
bool own_look_at_place(struct own *own);

/* The machine that the last class was made for; NULL before that. */
const struct tccl_machine *own_machine(const struct own *own);

/* slurm-gpus.c: slurmd's list of this node's GPUs, read by a thread, and always the one by which
 * the running slurmd counts. */

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
