/* acct-ring.h: the ring of a step, drawn from its record (record.h). */
#ifndef TCCL_ACCT_RING_H
#define TCCL_ACCT_RING_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "acct/acct-html.h"
#include "base/error.h"

/* All return 0, or -1 with err that says why there is nothing to draw: the record has no ring
 * (with the record's own reason), its text can't be read, or out of memory; nothing has been
 * written then. A ring whose text was cut in the record is drawn as far as it is there, and the
 * drawing says so. What names in the record hold is escaped. Errors of out are left to ferror. */

/* As SVG: one element <svg> with all that it needs inside. */
int acct_ring_svg(FILE *out, const json_t *record, struct tccl_error *err);

/* As a page for browsers. */
int acct_ring_page(FILE *out, const json_t *record, const struct acct_asked *asked,
                   struct tccl_error *err);

/* For a terminal of so many columns (fewer than 40 count as 40), in UTF-8 where the environment's
 * locale (LC_ALL, LC_CTYPE, LANG) has it, else in ASCII. colour: with the terminal's colours.
 * LC_CTYPE must be set to a UTF-8 locale, for the width of characters. */
int acct_ring_text(FILE *out, const json_t *record, int columns, bool colour,
                   struct tccl_error *err);

#endif
