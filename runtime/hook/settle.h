/* settle.h: what all ranks of a communicator on this node are answered. */
#ifndef SHIM_SETTLE_H
#define SHIM_SETTLE_H

#include "hook/decide.h"

/* Decides for the entry, if nobody has; waits for who does. Returns SHIM_USE (the answer is in the
 * entry) or SHIM_ASIDE; why it is ASIDE is logged once. */
enum shim_decision shim_decide(const struct shim_plan *plan, struct shim_registry *registry,
                               struct shim_entry *entry, const struct shim_comm *comm);

/* Makes the entry ASIDE, which is logged once; too late if it is SHIM_USE. Returns what stands. */
enum shim_decision shim_decide_aside(struct shim_entry *entry, const struct shim_comm *comm,
                                     const struct shim_why *why);

#endif
