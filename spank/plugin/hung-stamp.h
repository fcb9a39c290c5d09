/* hung-stamp.h: RunDir/hung, a note that the tccld of this node did not answer a step: those that
 * start within a minute don't wait for it. */
#ifndef TCCL_HUNG_STAMP_H
#define TCCL_HUNG_STAMP_H

#include <stdint.h>

enum { HUNG_MS = 60000 };

/* As root. As far as the disk allows; now: tccl_now_ms. */
void hung_stamp_put(const char *run_dir, int64_t now);
void hung_stamp_remove(const char *run_dir);
/* How long ago that was, milliseconds, less than HUNG_MS. -1: it wasn't, or somebody else says so.
 */
int64_t hung_stamp_age(const char *run_dir, int64_t now);

#endif
