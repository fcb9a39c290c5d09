/* acct-ring-svg.h: the drawing of a ring as a part of a page. */
#ifndef TCCL_ACCT_RING_SVG_H
#define TCCL_ACCT_RING_SVG_H

#include <stdio.h>

#include "acct/acct-ring-facts.h"

/* Writes what acct_ring_svg does without the facts above the drawing, for a page on which they
 * stand already. Returns 0, or -1 with err: out of memory, and nothing is written. Errors of out
 * are left to ferror. */
int acct_ring_draw(FILE *out, const struct acct_ring *ring, const struct acct_ring_facts *facts,
                   struct tccl_error *err);

#endif
