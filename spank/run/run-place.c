/* run-place.c: what a launcher's environment and the command line say of where a command runs. */
#include "run/run.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fileio.h"
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

/* Programs that start ranks on the hosts of a list, or of a file. */
static const char *const starters[] = {"mpirun",  "mpiexec",    "mpiexec.hydra", "orterun",
                                       "prterun", "horovodrun", "deepspeed"};
static const char *const lists[] = {"-H", "-host", "--host", "-hosts", "--hosts"};
static const char *const files[] = {"-hostfile", "--hostfile", "-machinefile", "--machinefile",
                                    "-f"};

enum { HOSTS_FILE = 1 << 16, HOST = 256 };

static bool has(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}
#define HAS(names, name) has(names, sizeof(names) / sizeof(*(names)), name)

/* Under any of its names. */
static bool is_this_machine(const char *host)
{
    char own[HOST] = "";
    gethostname(own, sizeof(own) - 1);
    size_t length = strcspn(own, ".");
    return strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 ||
           (*own && strncmp(host, own, length) == 0 && (!host[length] || host[length] == '.'));
}

/* Does the list ("n1:4,n2") have two hosts, or the lines of a file ("n1 slots=4", "# …")? usual:
 * none where one is not like this; NULL: each may be as it is. */
static bool has_hosts(const char *text, const char *between, const regex_t *usual)
{
    char first[HOST] = "", host[HOST];
    bool several = false;
    while (*text) {
        size_t length = strcspn(text, between);
        snprintf(host, sizeof(host), "%.*s", (int)(length < HOST ? length : HOST - 1), text);
        if (usual && regexec(usual, host, 0, NULL, 0) != 0)
            return false;
        host[strcspn(host, ": \t\r")] = '\0';
        if (is_this_machine(host))
            strcpy(host, "localhost");
        several |= *host && *host != '#' && *first && strcmp(host, first) != 0;
        if (*host && *host != '#')
            strcpy(first, host);
        text += length + (text[length] != '\0');
    }
    return several;
}

/* One with other lines is the program's own: "lr: 0.1". */
static bool file_has_hosts(const char *path)
{
    static const char line[] =
        "^([A-Za-z0-9._@-]+(:[0-9][^ \t]*)?([ \t]+[A-Za-z_-]+=[^ \t]*)*)?[ \t\r]*(#.*)?$";
    cleanup_free char *text = NULL;
    size_t size;
    regex_t usual;
    if (tccl_read_file(path, HOSTS_FILE, &text, &size, NULL) != 0 ||
        regcomp(&usual, line, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    bool has = has_hosts(text, "\n", &usual);
    regfree(&usual);
    return has;
}

/* Of "mpirun -H n1,n2 …". */
static bool names_hosts(char *const *command)
{
    const char *slash = strrchr(command[0], '/');
    if (!HAS(starters, slash ? slash + 1 : command[0]))
        return false;
    for (; *command; command++) {
        char option[32];
        size_t length = strcspn(*command, "=");
        const char *value = (*command)[length] ? *command + length + 1 : command[1];
        snprintf(option, sizeof(option), "%.*s", length < 32 ? (int)length : 0, *command);
        if (value && ((HAS(lists, option) && has_hosts(value, ",", NULL)) ||
                      (HAS(files, option) && file_has_hosts(value))))
            return true;
    }
    return false;
}

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
    if (!names_hosts(command))
        return starts_elsewhere(command, text, size);
    snprintf(text, size, "%s on several machines: without Slurm it is for one machine", command[0]);
    return true;
}
