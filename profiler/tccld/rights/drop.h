/* drop.h: rights given up for good. */
#ifndef TCCL_DROP_H
#define TCCL_DROP_H

#include <sys/types.h>

#include "base/error.h"

/* From root to a user, in his groups, with no capability left and none to be had by a program that
 * is started. Of a process with one thread. Returns 0, or -1 with err: the process must end then.
 */
int drop_to_user(uid_t uid, struct tccl_error *err);

/* Root keeps his uid, CAP_CHOWN and CAP_FOWNER, and can open unix sockets only, and start no
 * program. For this thread and those that it starts. Returns 0, or -1 with err. */
int drop_to_monitor(struct tccl_error *err);

#endif
