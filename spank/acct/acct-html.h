/* acct-html.h: the parts that all pages of tcclacct share (draw/html.h has the frame). */
#ifndef TCCL_ACCT_HTML_H
#define TCCL_ACCT_HTML_H

#include <stdbool.h>
#include <stdio.h>

/* Writes a text from a record: escaped (acct_escape), cut to that many columns, and isolated, so
 * that its writing direction does not affect the rest of the page. */
void acct_html_text(const char *text, int columns, FILE *out);

/* The command line and its user, for the end of a page. */
struct acct_asked {
    char *const *argv; /* from the command's name ("ring") on */
    int argc;
    bool complete;    /* false: only this node's records were available */
    const char *lost; /* a line about lost records; NULL: none */
};
void acct_html_asked(const struct acct_asked *asked, FILE *out);

#endif
