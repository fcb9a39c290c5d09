/* acct-output.h: output and exit status of tcclacct's commands, and what the terminal can show. */
#ifndef TCCL_ACCT_OUTPUT_H
#define TCCL_ACCT_OUTPUT_H

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"

/* Writes JSON on stdout, indented, in ASCII. Returns 0, or -1 with err. */
int acct_print_json(const json_t *json, struct tccl_error *err);

/* Ends a command: flushes stdout, and reports rc != 0 or a write error on stderr. A closed pipe is
 * not reported. Returns the exit status. */
int acct_end(int rc, struct tccl_error *err);

/* Width of the output in columns: COLUMNS, else that of the terminal, else 80. */
int acct_terminal_columns(void);
/* May colours be used: stdout is a terminal, TERM is not dumb, and NO_COLOR is not set? */
bool acct_terminal_colour(void);
/* Does the environment's locale (LC_ALL, LC_CTYPE, LANG) use UTF-8? */
bool acct_terminal_utf8(void);

#endif
