/* acct-ring-svg.h: the drawing of a ring within a page. */
#ifndef TCCL_ACCT_RING_SVG_H
#define TCCL_ACCT_RING_SVG_H

#include <stdio.h>

#include "acct/acct-ring-facts.h"

/* Like acct_ring_svg, without the facts above the drawing, for a page that shows them already.
 * Returns 0, or -1 with err (out of memory; nothing was written). Errors of out are left to
 * ferror. */
int acct_ring_draw(FILE *out, const struct acct_ring *ring, const struct acct_ring_facts *facts,
                   struct tccl_error *err);

#endif
