/* spank-option.c: registers --tccl in every context. */
#include "plugin/spank-parts.h"

#include <stdlib.h>
#include <string.h>

#include "client/policy.h"

/* Slurm's: --tccl of sbatch and salloc, for the steps inside. */
#define TCCL_OPTION_FORWARDED "SLURM_SPANK__SLURM_SPANK_OPTION_tccl_tccl"

static int given = POLICY_NOT_GIVEN;

/* Called once for each source of the option (environment, command line, launch message); the last
 * one counts. */
static int take_option(int value UNUSED, const char *argument, int remote)
{
    struct tccl_error err = {""};
    /* Without an argument Slurm passes NULL, "" or "(null)", depending on how the option was given.
     */
    int mode = (!argument || !*argument || strcmp(argument, "(null)") == 0)
                   ? (int)TCCL_MODE_ON
                   : tccl_mode_parse(argument, &err);
    if (mode >= 0) {
        given = mode;
        return ESPANK_SUCCESS;
    }
    const char *handed = getenv(TCCL_OPTION_FORWARDED);
    bool is_own = !remote && (!handed || strcmp(handed, argument) != 0);
    if (is_own)
        slurm_error("tccl: --tccl: %s", err.text);
    else if (!remote) /* of another version's sbatch */
        slurm_spank_log("tccl: --tccl of the job is ignored: %s", err.text);
    return is_own ? ESPANK_BAD_ARG : ESPANK_SUCCESS;
}

int option_register(spank_t spank)
{
    struct spank_option option = {
        .name = (char *)"tccl",
        .arginfo = (char *)"[off|auto|on|require]",
        .usage = (char *)"measured ring for NCCL (no argument: on); see tccl(7)",
        .has_arg = 2,
        .cb = take_option,
    };
    return spank_option_register(spank, &option);
}

int option_mode(void)
{
    return given;
}

int option_environment(const char *own, const char *handed, struct tccl_error *err)
{
    int mode = own && *own ? tccl_mode_parse(own, err) : -1;
    if (mode < 0 && handed && *handed) {
        if (own && strcmp(own, handed) == 0)
            *err = (struct tccl_error){""};
        mode = tccl_mode_parse(handed, NULL);
    }
    return mode < 0 ? POLICY_NOT_GIVEN : mode;
}
