/* acct-users.h: user names of records. */
#ifndef TCCL_ACCT_USERS_H
#define TCCL_ACCT_USERS_H

#include <jansson.h>

/* Replaces "user" of each record by the name of its uid, where this machine knows one, as ls(1)
 * does: the recorded name comes from the step's environment, which the user may set, and is "" for
 * a batch step. Looks up each uid once. */
void acct_name_users(json_t *records);

#endif
