/* profile-machine.h: which machine do the options of tccl-profile mean? */
#ifndef TCCL_PROFILE_MACHINE_H
#define TCCL_PROFILE_MACHINE_H

#include "command/profile-command.h"
#include "discover/discover.h"

/* That of --model, of --topology, cores with --backend host; else this machine. Of a model only the
 * machine is filled in. Returns 0, or -1 with err. */
int profile_machine(const struct profile_options *options, struct tccl_found *found,
                    struct tccl_error *err);

/* As if only the description were known. */
void profile_machine_only(const struct tccl_machine *machine, struct tccl_found *found);

#endif
