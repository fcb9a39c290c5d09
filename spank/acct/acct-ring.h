/* acct-ring.h: the ring of a step, drawn from its record (record.h). */
#ifndef TCCL_ACCT_RING_H
#define TCCL_ACCT_RING_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "acct/acct-html.h"
#include "base/error.h"

/* All return 0, or -1 with err saying why there is nothing to draw: the record has no ring (with
 * the record's own reason), its text can't be read, or out of memory. Nothing has been written
 * then. If the record holds only the beginning of the ring, that is drawn, and the drawing says so.
 * Names from the record are escaped. Errors of out are left to ferror. */

/* As SVG: one self-contained <svg> element. */
int acct_ring_svg(FILE *out, const json_t *record, struct tccl_error *err);

/* As a page for browsers. */
int acct_ring_page(FILE *out, const json_t *record, const struct acct_asked *asked,
                   struct tccl_error *err);

/* For a terminal of that many columns (at least 40), in UTF-8 if the environment's locale (LC_ALL,
 * LC_CTYPE, LANG) uses it, else in ASCII. colour: with terminal colours. LC_CTYPE must be a UTF-8
 * locale, for the width of characters. */
int acct_ring_text(FILE *out, const json_t *record, int columns, bool colour,
                   struct tccl_error *err);

#endif
