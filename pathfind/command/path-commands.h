/* path-commands.h: the commands of tccl-path. */
#ifndef TCCL_PATH_COMMANDS_H
#define TCCL_PATH_COMMANDS_H

#include "command/path-answer.h"

/* Each does its work and prints the result. Returns 0, or -1 with err. */
int command_solve(const struct options *options, struct tccl_error *err);
int command_eval(const struct options *options, struct tccl_error *err);
int command_explain(const struct options *options, struct tccl_error *err);
int command_measure(const struct options *options, struct tccl_error *err);
int command_draw(const struct options *options, struct tccl_error *err);
int command_place(const struct options *options, struct tccl_error *err);

/* Finds the best ring or set of rings for the nodes: from the profiles' tables, else by searching.
 * answer is the caller's to clear in any case. Returns 0, or -1 with err. */
int solve(const struct options *options, struct nodes *nodes, struct answer *answer,
          struct tccl_error *err);

/* Rates the ring of --ring, or without it the baseline. As above. */
int evaluate(const struct options *options, struct nodes *nodes, struct answer *answer,
             struct tccl_error *err);

#endif
