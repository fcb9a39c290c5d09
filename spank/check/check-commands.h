/* check-commands.h: the commands of tccl-check. Each prints its answer, or an error, and returns
 * the exit status. */
#ifndef TCCL_CHECK_COMMANDS_H
#define TCCL_CHECK_COMMANDS_H

#include "check/check-site.h"

/* "tccl-check policy": which site policy applies to a job step, and why. */
int check_policy(const struct check_options *options);

/* "tccl-check step": has the plugin spoken for a job step on a node? */
int check_step(const struct check_options *options);
/* Reads JOB.STEP, the operand of that. Returns 0; -1: it is no step, or --node is missing. */
int check_step_named(const char *text, struct check_options *options);

/* "tccl-check --bundle": writes options->bundle, a tar.gz (mode 0600) of what somebody elsewhere
 * needs to see what is wrong: what tccl-check finds, configuration, versions, devices, log and
 * summary of the records, as far as the calling user may see them. What can't be had is in it with
 * the reason. Runs tar and the programs that are asked; changes nothing else. Says on standard
 * error what it waits for where that is a terminal. */
int check_bundle(const struct check_options *options);

#endif
