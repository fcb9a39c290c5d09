/* tccl-profile report. */
#include "profile-command.h"

int profile_report(const struct profile_options *options)
{
    struct tccl_error err = {0};

    (void)options;
    tccl_fail(&err, "report: to come");
    return profile_complain(&err);
}
