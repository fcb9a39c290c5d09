/* acct.h: what the commands of tcclacct share, and these themselves. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "acct/acct-request.h"
#include "acct/acct-table.h"

/* The command line and its user, for the end of a page. */
struct acct_asked {
    char *const *argv; /* from the command's name ("ring") on */
    int argc;
    bool complete;    /* false: only this node's records were available */
    const char *lost; /* a line about lost records; NULL: none */
};

/* The command line. */
struct acct_line {
    struct acct_request request;
    struct acct_asked asked;
    bool json;
    const char *html; /* the page's file; NULL: none is asked for */
    /* of a list */
    struct acct_layout layout;
    char *fields;       /* of all -o, with commas; NULL: none given */
    const char *preset; /* of -l or -b */
    bool fold, no_header, list_fields;
    /* of a ring */
    bool svg;
    const char *svg_file; /* NULL: standard output */
};

/* The commands, with their operands. Each writes to stdout. Returns 0, or -1 with err. */
int acct_list(struct acct_line *line, int count, char **words, struct tccl_error *err);
int acct_draw(struct acct_line *line, int count, char **words, struct tccl_error *err);
int acct_summarize(struct acct_line *line, int count, char **words, struct tccl_error *err);

/* Replaces "user" of each record by the name of its uid, where this machine knows one, as ls(1)
 * does: the recorded name comes from the step's environment, which the user may set, and is "" for
 * a batch step. Looks up each uid once. */
void acct_name_users(json_t *records);

/* Should step a stand for the job rather than step b? Order: planned, failed, left, off;
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

/* The end of a page. */
void acct_html_asked(const struct acct_asked *asked, FILE *out);

/* Writes a summary (profiler/client/README.md, SUMMARY) for a terminal of that many columns (at
 * least 72), in UTF-8 or ASCII; and as an HTML page. Names and reasons are escaped. Errors are left
 * to ferror. */
void acct_summary_text(FILE *out, const json_t *summary, int columns, bool utf8);
void acct_summary_page(FILE *out, const json_t *summary, const struct acct_asked *asked);
