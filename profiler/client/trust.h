/* trust.h: whom a program takes the other end of a connection for: users whom munge names. */
#ifndef TCCL_TRUST_H
#define TCCL_TRUST_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct tccl_trust {
    bool anybody;    /* nobody has to prove anything, and the rest doesn't count */
    char munge[108]; /* munged's socket; "": munge's own default */
    uid_t users[3];
    int n_users;
};

/* Trusts root, the caller's own user and MungeUser (a name, or a uid in digits). Returns 0, or -1
 * with err: there is no such user here, or the socket's path is too long. */
int tccl_trust_fill(struct tccl_trust *trust, const char *munge, const char *munge_user,
                    struct tccl_error *err);

bool tccl_trust_has(const struct tccl_trust *trust, uid_t uid);

#endif
