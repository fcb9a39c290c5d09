/* acct.h: what the commands of tcclacct share, and these themselves. */
#ifndef TCCL_ACCT_H
#define TCCL_ACCT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "base/error.h"

/* Each is called with its own name ("ring"; records are listed without one) as argv[0], followed by
 * its arguments. It writes to stdout, reports an error in one line on stderr, and returns the exit
 * status. getopt has not been used before; LC_CTYPE is C.UTF-8. */
int list_main(int argc, char **argv);
int purge_main(int argc, char **argv);
int ring_main(int argc, char **argv);
int summary_main(int argc, char **argv);

/* Replaces "user" of each record by the name of its uid, where this machine knows one, as ls(1)
 * does: the recorded name comes from the step's environment, which the user may set, and is "" for
 * a batch step. Looks up each uid once. */
void acct_name_users(json_t *records);

/* Should step a stand for the job rather than step b? Order: applied, fallback, nothing-to-do, off;
 * then the step on more nodes; then the later one. */
bool acct_fold_prefers(const json_t *a, const json_t *b);
/* Folds step records into one record per job (or component of a heterogeneous job; requeues
 * included), in the order of first steps. Each is the record of the job's preferred step, without
 * "step" and with "steps", the number of steps. A new reference; NULL if out of memory. */
json_t *acct_fold(const json_t *records);

/* Writes JSON on stdout, indented, in ASCII. Returns 0, or -1 with err. */
int acct_print_json(const json_t *json, struct tccl_error *err);
/* Ends a command: flushes stdout, and reports rc != 0 or a write error on stderr. A closed pipe is
 * not reported. Returns the exit status. */
int acct_end(int rc, struct tccl_error *err);

/* The command line and its user, for the end of a page. */
struct acct_asked {
    char *const *argv; /* from the command's name ("ring") on */
    int argc;
    bool complete;    /* false: only this node's records were available */
    const char *lost; /* a line about lost records; NULL: none */
};
void acct_html_asked(const struct acct_asked *asked, FILE *out);

/* Writes a summary (profiler/client/README.md, SUMMARY) for a terminal of that many columns (at
 * least 72), in UTF-8 or ASCII; and as an HTML page. Names and reasons are escaped. Errors are left
 * to ferror. */
void acct_summary_text(FILE *out, const json_t *summary, int columns, bool utf8);
void acct_summary_page(FILE *out, const json_t *summary, const struct acct_asked *asked);

#endif
