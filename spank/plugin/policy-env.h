/* policy-env.h: Environment= and TrafficClass= of policies in a step's environment. Pure functions
 * over an environment array; spank-remote.c applies what they compute. Steps of a job script
 * inherit what was set for the script; POLICY_ENV_LIST records it, so that it can be removed. */
#ifndef TCCL_POLICY_ENV_H
#define TCCL_POLICY_ENV_H

#include "client/policy.h"

#define POLICY_ENV_LIST "TCCL_ENVIRONMENT" /* "NAME=value;NAME=value": what a policy has set */

/* The variables of a rule that are to be set: those that are not in env. network: NCCL's of
 * TrafficClass=; ring: those of Environment=. *list is allocated, in the form of POLICY_ENV_LIST,
 * or NULL: none. Returns 0, or -1 if out of memory. */
int policy_env_choose(char *const *env, const struct policy_rule *rule, bool network, bool ring,
                      char **list);

/* The class that the packets of a step have: what env says, else what the rule (NULL: none) sets.
 * "106/3", "106", "/3", or "": the default, or something that is not understood. */
void policy_env_class(char *const *env, const struct policy_rule *rule,
                      char text[static TCCL_TRAFFIC_CLASS + 1]);

/* The variables that a policy has set and that are unchanged since. *names is allocated, separated
 * by
 * ';', or NULL: none. Returns 0, or -1 if out of memory. */
int policy_env_inherited(char *const *env, char **names);

#endif
