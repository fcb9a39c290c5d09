/* acct-output.h: how tcclacct's commands end. */
#ifndef TCCL_ACCT_OUTPUT_H
#define TCCL_ACCT_OUTPUT_H

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"

/* Writes JSON on stdout, indented, in ASCII. Returns 0, or -1 with err. */
int acct_print_json(const json_t *json, struct tccl_error *err);

/* What a command has come to: what is still to be written is, and rc != 0 or a failure to write is
 * said on stderr, but that nobody reads any more. Returns the exit status. */
int acct_end(int rc, struct tccl_error *err);

/* Columns of the terminal that stdout is (COLUMNS goes before); 80 where it is none. */
int acct_terminal_columns(void);
/* May colours be used: stdout is a terminal, TERM is not dumb, and NO_COLOR is not set? */
bool acct_terminal_colour(void);
/* Does it show UTF-8, as the environment's locale has it (LC_ALL, LC_CTYPE, LANG)? */
bool acct_terminal_utf8(void);

#endif
