/* subset.h: the best chain of some of a step's GPUs, for the communicators that hold only those. */
#ifndef TCCL_SUBSET_H
#define TCCL_SUBSET_H

#include "machine/machine.h"
#include "ring/groups.h"
#include "tccld/join/merge.h"
#include "tccld/net/connection.h"

/* Handler of CHAIN. */
lines_handler subset_ask;

enum { SUBSET_ANSWER = 4096 /* longest answer, bytes */ };

/* The answer for a class of that GPU set, added to the lines. joint: its chain beside the step's
 * other groups; NULL: the class's own. */
void subset_answer(struct tccl_line_writer *lines, const struct tccl_node_class *class,
                   const struct tccl_machine *machine, const struct tccl_group_choice *joint,
                   bool closed);

#endif
