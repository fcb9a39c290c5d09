/* tccl-profile export. */
#include "numberset.h"
#include "profile-command.h"

int profile_export(const struct profile_options *options)
{
    struct tccl_profile *profile;
    struct tccl_error err = {0};
    uint32_t gpus = 0;

    if (!options->gpus)
        tccl_fail(&err, "export: --gpus SET is needed");
    if (!options->gpus || profile_choose(options, &profile, &err) < 0)
        return profile_complain(&err);
    const struct tccl_machine *machine = tccl_profile_machine(profile);
    const struct tccl_table *table = NULL;
    if (tccl_numberset_parse(options->gpus, TCCL_MAX_GPUS, &gpus, &err) == 0)
        table = tccl_profile_table(profile, gpus, &err);
    int rc = table ? profile_print(tccl_table_to_json(table, machine)) : profile_complain(&err);
    tccl_profile_close(profile);
    return rc;
}
