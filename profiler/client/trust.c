/* trust.c: root, MungeUser and the caller's own user. */
#include "client/trust.h"

#include <stdio.h>
#include <unistd.h>

#include "client/users.h"

int tccl_trust_fill(struct tccl_trust *trust, const char *munge, const char *munge_user,
                    struct tccl_error *err)
{
    *trust = (struct tccl_trust){.users = {0, geteuid()}, .n_users = 3};
    if (snprintf(trust->munge, sizeof(trust->munge), "%s", munge) >= (int)sizeof(trust->munge))
        return tccl_fail(err, "MungeSocket: the path is too long: at most %zu bytes",
                         sizeof(trust->munge) - 1);
    return tccl_user_find("MungeUser", munge_user, &trust->users[2], err);
}

bool tccl_trust_has(const struct tccl_trust *trust, uid_t uid)
{
    for (int i = 0; i < trust->n_users; i++)
        if (trust->users[i] == uid)
            return true;
    return false;
}
