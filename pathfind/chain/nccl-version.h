/* nccl-version.h: which versions of NCCL are known, and what is said of the others. Versions are as
 * ncclGetVersion counts (22907); 0: which one is unknown. libc only. */
#ifndef TCCL_NCCL_VERSION_H
#define TCCL_NCCL_VERSION_H

#include <stdbool.h>

enum { TCCL_NCCL_TEXT = 96 };

bool tccl_nccl_known(unsigned version);
/* "NCCL 2.29.7". */
void tccl_nccl_format(unsigned version, char text[static TCCL_NCCL_TEXT]);
/* Of one that is not known: "NCCL 2.33.1: not known (2.18 to 2.30 are)". */
void tccl_nccl_not_known(unsigned version, char text[static TCCL_NCCL_TEXT]);
/* By which such a text is told from others. */
#define TCCL_NCCL_NOT_KNOWN ": not known ("

#endif
