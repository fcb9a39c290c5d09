/* users.h: users as tccl.conf names them. */
#ifndef TCCL_USERS_H
#define TCCL_USERS_H

#include <sys/types.h>

#include "error.h"

/* The uid of a user's name, or of a uid written in digits. what: the key, for err. Returns 0, or -1
 * with err: there is no such user here. */
int tccl_user_find(const char *what, const char *name, uid_t *uid, struct tccl_error *err);

#endif
