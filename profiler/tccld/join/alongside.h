/* alongside.h: steps beside each other on this node's GPUs: all that run here, those without a ring
 * of ours included. New steps get their rings beside them. */
#pragma once

#include "client/outcome.h"
#include "client/step-fields.h"
#include "ring/groups.h"
#include "tccld/join/own.h"
#include "tccld/join/running.h"

/* A step's plan, or none for groups alone (ring), is about to be given out: its record gets all
 * that is asked of it. */
void alongside_plan(struct running *running, struct running_step *step,
                    const struct tccl_outcome *outcome, const struct tccl_step *join,
                    const struct tccl_node_class *class);

/* The class of this node for a step, seen beside the others that run here; the same class where
 * nobody does. Takes the class over; the caller drops what it gets. closed: the step has this node
 * alone. */
struct shared_class *alongside_see(struct running *running, const struct tccl_step_key *key,
                                   struct shared_class *class, bool closed, enum tccl_view view);

/* The chains of n groups of a step, chosen jointly beside the other steps that run here
 * (tccl_groups_choose). Returns 0, or -1: there is no table of one of them, and nothing was chosen.
 */
int alongside_choose(struct running *running, const struct tccl_step_key *key,
                     const uint32_t *groups, int n, bool closed, enum tccl_view view,
                     struct tccl_group_choice *choices);

/* A step has its answer, and with it its start: a second later those before it are looked at. They
 * are told (built_later); one whose copies collapse beside it is told that, too, and so is the log.
 */
void alongside_began(struct running *running, const struct running_step *step);
void alongside_on_look(evutil_socket_t fd, short what, void *running);

/* A step has begun with its mode off: where copies of NCCL's own rings for it are known to collapse
 * beside those of steps that run (tccl_beside_collapses), the log says so. */
void alongside_warn(struct running *running, const struct running_step *step);

/* For the record of a step with a ring: what NCCL builds here by itself, who runs beside it here,
 * with what each takes, before those of other nodes that the outcome names, and what other GPUs
 * would have given. Of a step on one node that is left to NCCL ("left"): what that has
 * here alone, and what other GPUs would have given. class: as alongside_see gave it. */
void alongside_describe(struct running *running, const struct tccl_step *join,
                        const struct tccl_node_class *class, struct tccl_outcome *outcome);

/* Steps that come beside those that run will ask for what was measured together; reading it takes
 * some milliseconds, for which none of them should wait. */
void alongside_read_ahead(struct running *running);
/* The best GPUs, which records name, are looked for between the answers. */
void alongside_on_place(evutil_socket_t fd, short what, void *running);
