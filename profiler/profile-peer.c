/* tccl-profile peer. */
#include "profile-command.h"

int profile_peer(const struct profile_options *options)
{
    struct tccl_error err = {0};

    (void)options;
    tccl_fail(&err, "peer: to come");
    return profile_complain(&err);
}
