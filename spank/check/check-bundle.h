/* check-bundle.h: what somebody elsewhere needs to see what is wrong with an installation, in one
 * file. */
#ifndef TCCL_CHECK_BUNDLE_H
#define TCCL_CHECK_BUNDLE_H

#include "base/error.h"
#include "check/check-site.h"

/* Writes path, a tar.gz (mode 0600) of what tccl-check finds (in at most seconds), configuration,
 * versions, devices, log and summary of the records, as far as the calling user may see them. What
 * can't be had is in it with the reason. Runs tar and the programs that are asked; changes nothing
 * else. Says on standard error what it waits for where that is a terminal. Returns how many files
 * are in it, or -1 with err. */
int check_bundle(const struct check_options *options, int seconds, const char *path,
                 struct tccl_error *err);

#endif
