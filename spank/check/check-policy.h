/* check-policy.h: "tccl-check policy": which site policy applies to a job step, and why. */
#ifndef TCCL_CHECK_POLICY_H
#define TCCL_CHECK_POLICY_H

/* argv[0] is the word "policy". Prints the answer or an error. Returns the exit status. */
int check_policy(int argc, char **argv);

#endif
