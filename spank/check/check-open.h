/* check-open.h: may every user read a file, as the programs of users' jobs must? */
#ifndef TCCL_CHECK_OPEN_H
#define TCCL_CHECK_OPEN_H

#include <limits.h>
#include <stdbool.h>

/* Are the file, and all directories of its path (links followed), accessible to all users? Looks at
 * mode bits only, because access() always succeeds for root. Returns true, also if there is no such
 * file; or false, with the first directory or file that is closed. */
bool check_open_to_all(const char *path, char closed[static PATH_MAX]);

#endif
