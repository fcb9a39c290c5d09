/* acct-users.h: whose records they are. */
#ifndef TCCL_ACCT_USERS_H
#define TCCL_ACCT_USERS_H

#include <jansson.h>

/* Gives each of an array of records the name of its uid as its user, where this machine knows one,
 * as ls(1) would: what the record has is the word of the step's environment, which its user may
 * set, and "" of a batch step. Asks for each uid once. */
void acct_name_users(json_t *records);

#endif
