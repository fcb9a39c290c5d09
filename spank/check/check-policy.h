/* check-policy.h: "tccl-check policy": which site policy holds for a job step, and why. */
#ifndef TCCL_CHECK_POLICY_H
#define TCCL_CHECK_POLICY_H

/* argv[0] is the word "policy". Prints the answer, or what is wrong; returns the exit status. */
int check_policy(int argc, char **argv);

#endif
