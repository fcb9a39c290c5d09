/* tccl-profile check. */
#include "profile-command.h"

int profile_check(const struct profile_options *options)
{
    struct tccl_error err = {0};

    (void)options;
    tccl_fail(&err, "check: to come");
    return profile_complain(&err);
}
