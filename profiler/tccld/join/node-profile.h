/* node-profile.h: this node: its description, its profile, and the class it is with some of its
 * GPUs. */
#ifndef TCCL_NODE_PROFILE_H
#define TCCL_NODE_PROFILE_H

#include "base/source.h"
#include "client/conf.h"
#include "machine/machine.h"
#include "tccld/join/merge.h"
#include "tccld/join/slurm-gpus.h"

struct own;

/* Knows nothing yet. NULL without memory. */
struct own *own_new(void);
void own_free(struct own *own); /* NULL is fine */

/* The class of this node with those GPUs (numbers of Slurm's, by its list in slurm); hidden:
 * without P2P, for tasks that see only their own. background: as measured beside that, or plain
 * where this node has no such chains; the source of the class says which. The machine's description
 * and its profile are read at first use and again when they have changed on disk. The caller drops
 * what it gets. NULL with err, without the node's name: no profile, an unknown GPU, no GPU at all.
 */
struct shared_class *own_class(struct own *own, const struct tccl_conf *conf,
                               const struct slurm_gpus *slurm, const int *gres, int n_gres,
                               bool hidden, enum tccl_background background,
                               struct tccl_error *err);

/* The same, of GPUs by their bus ids. */
struct shared_class *own_kind_busids(struct own *own, const struct tccl_conf *conf,
                                     const tccl_bus *buses, int count, bool hidden,
                                     enum tccl_background background, struct tccl_error *err);

/* The machine that the last class was made for; NULL before that. */
const struct tccl_machine *own_machine(const struct own *own);

#endif
