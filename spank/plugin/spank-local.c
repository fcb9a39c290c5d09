/* spank-local.c: the plugin in srun, sbatch and salloc: rejects invalid modes before submission. */
#include "plugin/spank-local.h"

#include <stdlib.h>

#include "client/policy.h"
#include "plugin/spank-option.h"

int local_init_post_opt(void)
{
    struct tccl_error err = {""};
    const char *text = getenv("TCCL");
    if (!text || !*text || option_mode() != POLICY_NOT_GIVEN || tccl_mode_parse(text, &err) >= 0)
        return 0;
    slurm_error("tccl: environment variable TCCL: %s", err.text);
    exit(1);
}
