/* check-open.h: may every user read a file, as the programs of users' jobs must? */
#ifndef TCCL_CHECK_OPEN_H
#define TCCL_CHECK_OPEN_H

#include <limits.h>
#include <stdbool.h>

/* By the mode bits alone, so that root can tell, too: is the file readable for all, and can all
 * enter each folder on the way to it, with links followed? Returns true, also where there is no
 * such file; or false, and the first folder or file that is closed. */
bool check_open_to_all(const char *path, char closed[static PATH_MAX]);

#endif
