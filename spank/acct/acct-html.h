/* acct-html.h: what the pages of tcclacct have in common (draw/html.h has the frame). */
#ifndef TCCL_ACCT_HTML_H
#define TCCL_ACCT_HTML_H

#include <stdbool.h>
#include <stdio.h>

/* Writes a text of a record: without what could act on the page or turn the direction of writing
 * (acct_escape), cut to so many columns, and by itself, so that no direction of writing leaves it.
 */
void acct_html_text(const char *text, int columns, FILE *out);

/* What was asked for, by whom: it stands at the end of a page. */
struct acct_asked {
    char *const *argv; /* the command's, from its name ("ring") on */
    int argc;
    bool complete; /* false: only this node's records were to be had */
};
void acct_html_asked(const struct acct_asked *asked, FILE *out);

#endif
