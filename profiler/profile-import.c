/* tccl-profile import. */
#include "profile-command.h"

int profile_import(const struct profile_options *options)
{
    struct tccl_error err = {0};

    (void)options;
    tccl_fail(&err, "import: to come");
    return profile_complain(&err);
}
