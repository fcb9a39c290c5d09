/* printed.h: RunDir/printed, which messages the steps of a job have printed on this node, so that a
 * job of many steps prints each of them once. */
#ifndef TCCL_PRINTED_H
#define TCCL_PRINTED_H

#include <stdbool.h>

#include "client/key.h"

/* As root; makes the file if need be. Returns a descriptor for printed_before, which the caller
 * closes, or -1: nothing is known. */
int printed_open(const char *run_dir);

/* Has another step of this run of the job printed the same line on this node? Remembers it. False
 * also if that can't be told (fd -1, a full disk), and for the job script: there is one in each
 * run, and it isn't told which run that is. As any user. */
bool printed_before(int fd, const struct tccl_step_key *key, const char *line);

#endif
