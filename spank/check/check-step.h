/* check-step.h: "tccl-check step": has the plugin spoken for a job step on a node? */
#ifndef TCCL_CHECK_STEP_H
#define TCCL_CHECK_STEP_H

/* argv[0] is the word "step". Prints the answer, or an error. Returns the exit status. */
int check_step(int argc, char **argv);

#endif
