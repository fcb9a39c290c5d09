/* policy-env.h: Environment= of policies in a step's environment. Pure functions over an
 * environment array; spank-remote.c applies what they compute. Steps that a job script starts
 * inherit what was set for the script: POLICY_ENV_LIST tells what that was. */
#ifndef TCCL_POLICY_ENV_H
#define TCCL_POLICY_ENV_H

#include "client/policy.h"

#define POLICY_ENV_LIST "TCCL_ENVIRONMENT" /* "NAME=value;NAME=value": what a policy has set */

/* Which variables of a rule are to be set: those that env does not have. *list is allocated, in the
 * form of POLICY_ENV_LIST, or NULL: none. Returns 0, or -1 without memory. */
int policy_env_choose(char *const *env, const struct policy_rule *rule, char **list);

/* Which variables a policy has set, and nobody has changed since: *names is allocated, with ';'
 * between them, or NULL: none. Returns 0, or -1 without memory. */
int policy_env_inherited(char *const *env, char **names);

#endif
