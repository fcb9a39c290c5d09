/* firstsets.h: the transfer sets that a person wants to know of any machine: each transfer alone,
 * and the natural pairs. */
#ifndef TCCL_FIRSTSETS_H
#define TCCL_FIRSTSETS_H

#include "machine/machine.h"

enum { TCCL_FIRST_SETS = 600 };

/* Lists them, what says most first: GPUs and NICs with their own memory, GPUs among each other; a
 * GPU writing and reading at once, two GPUs on one memory, both ways between two GPUs and at a NIC;
 * then the memories farther away. Of large machines the first TCCL_FIRST_SETS. Returns how many
 * and *sets (the caller's), or -1 with err. */
int tccl_first_sets(const struct tccl_machine *machine, struct tccl_set **sets,
                    struct tccl_error *err);

#endif
