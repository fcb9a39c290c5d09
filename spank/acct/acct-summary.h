/* acct-summary.h: the summary of many records, for people. */
#ifndef TCCL_ACCT_SUMMARY_H
#define TCCL_ACCT_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "acct/acct-html.h"

/* Writes a summary (profiler/client/README.md, SUMMARY) for a terminal of that many columns (at
 * least 72), in UTF-8 or ASCII. Names and reasons are escaped. Errors are left to ferror. */
void acct_summary_text(FILE *out, const json_t *summary, int columns, bool utf8);

/* Writes it as an HTML page. Errors are left to ferror. */
void acct_summary_page(FILE *out, const json_t *summary, const struct acct_asked *asked);

#endif
