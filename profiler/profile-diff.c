/* tccl-profile diff. */
#include "profile-command.h"

int profile_diff(const struct profile_options *options)
{
    struct tccl_error err = {0};

    (void)options;
    tccl_fail(&err, "diff: to come");
    return profile_complain(&err);
}
