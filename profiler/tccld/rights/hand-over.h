/* hand-over.h: the folders that tccld had as root become the user's that it runs as now. */
#ifndef TCCL_HAND_OVER_H
#define TCCL_HAND_OVER_H

#include <sys/types.h>

#include "client/conf.h"

/* Makes the folders of tccl.conf that are not there, and gives what root has in them to the user:
 * as far as nobody but root can change them or the folders above. For root. What can't be given is
 * left, and the log says so. */
void hand_over(const struct tccl_conf *conf, uid_t uid);

#endif
