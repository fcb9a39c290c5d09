/* run-place.c: what a launcher's environment and the command line say of where a command runs. */
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin.h"

/* How launchers tell a rank how many there are, here and in all, and which it is. */
static const struct {
    const char *all, *here, *rank, *name;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI"},
    {"PMI_SIZE", "MPI_LOCALNRANKS", "PMI_RANK", "MPI"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_RANK", "MVAPICH"},
    {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "RANK", "a launcher"},
};

/* How batch systems tell a job of how many machines it is. */
static const char *const machines[] = {"SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES",
                                       "PBS_NUM_NODES", "FLUX_JOB_NNODES"};

/* Options of programs that start ranks on several machines. */
static const char *const options[] = {"--nnodes", "--num_machines", "--num_nodes", "--num-nodes"};

/* The greatest number of "2", "1:4"; 0: it is none. */
static long most(const char *text)
{
    const char *colon = strchr(text, ':');
    return strtol(colon ? colon + 1 : text, NULL, 10);
}

static bool starts_elsewhere(char *const *command, char *text, size_t size)
{
    for (; *command; command++)
        for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
            size_t length = strlen(options[i]);
            if (strncmp(*command, options[i], length) != 0)
                continue;
            const char *value = (*command)[length] == '='    ? *command + length + 1
                                : (*command)[length] == '\0' ? command[1]
                                                             : NULL;
            if (!value || most(value) < 2)
                continue;
            snprintf(text, size, "%s %ld: without Slurm it is for one machine", options[i],
                     most(value));
            return true;
        }
    return false;
}

bool run_place_refuse(char *const *env, char *const *command, char *text, size_t size, bool *silent)
{
    *silent = false;
    if (job_env_get(env, "TCCL_STATE") || job_env_get(env, "TCCL_PLAN")) {
        snprintf(text, size, "this Slurm step, or tccl-run before, has seen to it");
        *silent = true;
        return true;
    }
    for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); i++) {
        uint32_t all = job_env_number(env, launchers[i].all, 0);
        if (all < 2)
            continue;
        uint32_t here = job_env_number(env, launchers[i].here, all);
        if (here < all)
            snprintf(text, size,
                     "%u ranks of %s on several machines: without Slurm it is for one machine", all,
                     launchers[i].name);
        else
            snprintf(text, size,
                     "this is one of %u ranks of %s: tccl-run goes in front of the command that "
                     "starts them all",
                     all, launchers[i].name);
        *silent = job_env_number(env, launchers[i].rank, 0) != 0;
        return true;
    }
    for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++) {
        uint32_t n = job_env_number(env, machines[i], 0);
        if (n > 1) {
            snprintf(text, size, "a job of %u machines: without Slurm's plugin it is for one", n);
            return true;
        }
        if (n == 1)
            break;
    }
    return starts_elsewhere(command, text, size);
}
