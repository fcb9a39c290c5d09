/* way.h: a chain as a part of a page that is as narrow as it must be: devices one after the other,
 * with what leads from each to the next, in lines that wrap. For phones, where a drawing would be
 * cut, and for whoever hears the page. */
#ifndef TCCL_WAY_H
#define TCCL_WAY_H

#include <stdbool.h>
#include <stdio.h>

#include "chain/chain-text.h"

/* gbps: of each arrow of the chain (tccl_named_arrows), 0: not known; slow: is it one of
 * those that hold each other back; both may be NULL. Names are escaped. Errors are left to ferror.
 */
void tccl_way_write(const struct tccl_named_chain *chain, const double *gbps, const bool *slow,
                    FILE *out);

#endif
