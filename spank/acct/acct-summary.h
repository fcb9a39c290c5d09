/* acct-summary.h: what many records have in common, for people. */
#ifndef TCCL_ACCT_SUMMARY_H
#define TCCL_ACCT_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "acct/acct-html.h"

/* Writes a summary (profiler/client/README.md, SUMMARY) for a terminal of so many columns (fewer
 * than 72 count as 72), in UTF-8 or in ASCII. What names and reasons hold is escaped. Errors are
 * left to ferror. */
void acct_summary_text(FILE *out, const json_t *summary, int columns, bool utf8);

/* Writes it as a page for browsers. Errors are left to ferror. */
void acct_summary_page(FILE *out, const json_t *summary, const struct acct_asked *asked);

#endif
