#include "users.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

int tccl_user_find(const char *what, const char *name, uid_t *uid, struct tccl_error *err)
{
    char *end;
    errno = 0;
    const struct passwd *user = getpwnam(name);
    if (user) {
        *uid = user->pw_uid;
        return 0;
    }
    int code = errno;
    unsigned long number = strtoul(name, &end, 10);
    if (*name >= '0' && *name <= '9' && *end == '\0' && number < (uid_t)-1) {
        *uid = (uid_t)number;
        return 0;
    }
    return tccl_fail(err, "%s=%s: %s", what, name,
                     code ? strerror(code) : "there is no such user here");
}
