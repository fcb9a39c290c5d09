/* task-gpus.c: options by which each task sees GPUs of its own. Up to Slurm 22.05 slurmstepd is not
 * told of them before it starts the tasks, and never as they were typed; so srun leaves a note.
 *
 * Without ConstrainDevices they are hidden by CUDA_VISIBLE_DEVICES alone, which NVML doesn't heed:
 * NCCL finds all GPUs, and rings are built. With it, every GPU is number 0 in its task, and only
 * newer NCCLs can be told which is which; P2P to a GPU that a task may not open can fail. So
 * whether a ring is built is not known before NCCL runs, and rings with P2P are not built. */
#include "plugin/plugin.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gres/slurm-conf.h"

/* Options and their variables, in the order in which srun(1) lets them decide. */
static const struct {
    const char *option, *variable;
} options[] = {
    {"--gpu-bind", "SLURM_GPU_BIND"},
    {"--tres-bind", "SLURM_TRES_BIND"},
    {"--gpus-per-task", "SLURM_GPUS_PER_TASK"},
    {"--tres-per-task", "SLURM_TRES_PER_TASK"},
    {"--ntasks-per-gpu", "SLURM_NTASKS_PER_GPU"},
};
enum { OPTIONS = sizeof(options) / sizeof(*options) };

/* ---- in srun ---- */

/* Does a word of length characters name the option? srun takes any unique abbreviation, and would
 * have refused one that isn't; but these two are options of their own. */
static bool is_option(const char *word, size_t length, const char *name)
{
    static const char *const others[] = {"--gpus", "--ntasks"};
    if (length < strlen("--x") || strncmp(word, name, length) != 0)
        return false;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (strlen(others[i]) == length && strncmp(word, others[i], length) == 0)
            return false;
    return true;
}

/* The value of an option on the command line, "--name=value" or "--name value"; NULL. */
static const char *value_of(char *const *words, int count, const char *name)
{
    const char *value = NULL;
    for (int i = 1; i < count && strcmp(words[i], "--") != 0; i++) {
        size_t length = strcspn(words[i], "=");
        if (!is_option(words[i], length, name))
            continue;
        if (words[i][length] == '=')
            value = words[i] + length + 1;
        else if (i + 1 < count)
            value = words[i + 1];
    }
    return value;
}

void task_gpus_note(char *const *words, int count)
{
    char note[TASK_GPUS_TEXT];
    unsetenv(TASK_GPUS_OPTION);
    for (int i = 0; i < OPTIONS; i++) {
        const char *value = value_of(words, count, options[i].option);
        if (!value)
            value = getenv(options[i].variable);
        if (!value || (i > 0 && i != 2 && i != 4 && !strstr(value, "gpu")))
            continue;
        snprintf(note, sizeof(note), "%s=%.150s", options[i].option, value);
        setenv(TASK_GPUS_OPTION, note, 1);
        return;
    }
}

/* ---- in slurmstepd ---- */

/* The fewest GPUs in a list of masks. */
static int fewest(const char *masks, int n_gpus)
{
    int least = n_gpus;
    for (const char *at = masks; at; at = strchr(at, ',')) {
        at += *at == ',';
        unsigned long long value = strtoull(at, NULL, 16);
        int here = __builtin_popcountll(value);
        least = here < least ? here : least;
    }
    return least;
}

/* "verbose,single:2", "gres/gpu:per_task:1". */
static int seen_by_bind(const char *value, int n_gpus)
{
    const char *gpu = strstr(value, "gpu:");
    if (gpu && (gpu == value || gpu[-1] == '/'))
        value = gpu + 4;
    for (const char *comma; (value[0] == 'v' || value[0] == 'q') && (comma = strchr(value, ','));)
        value = comma + 1;
    if (strncmp(value, "single", 6) == 0 || strncmp(value, "map_gpu:", 8) == 0)
        return 1;
    if (strncmp(value, "mask_gpu:", 9) == 0)
        return fewest(value + 9, n_gpus);
    if (strncmp(value, "per_task:", 9) == 0)
        return atoi(value + 9);
    return n_gpus;
}

/* "2", "a100:2", "a100:1,v100:1", "gres/gpu:2", "cpu=4,gres/gpu:a100=2": the sum,
 * each counted as n_gpus at most. */
static int seen_per_task(const char *value, bool tres, int n_gpus)
{
    int sum = 0;
    for (const char *at = value; at; at = strchr(at, ',')) {
        at += *at == ',';
        size_t length = strcspn(at, ",");
        const char *number = at + length;
        while (number > at && isdigit((unsigned char)number[-1]))
            number--;
        if (tres && !memmem(at, length, "gpu", 3))
            continue;
        bool counted = number < at + length && (number == at || strchr(":=", number[-1]));
        long here = counted ? strtol(number, NULL, 10) : 1;
        sum += here < n_gpus ? (int)here : n_gpus;
    }
    return sum;
}

int task_gpus_seen(const char *option, int n_gpus)
{
    const char *value = strchr(option, '=');
    int seen = n_gpus;
    if (!value)
        return n_gpus;
    value++;
    if (strncmp(option, "--gpu-bind=", 11) == 0 || strncmp(option, "--tres-bind=", 12) == 0)
        seen = seen_by_bind(value, n_gpus);
    else if (strncmp(option, "--gpus-per-task=", 16) == 0)
        seen = seen_per_task(value, false, n_gpus);
    else if (strncmp(option, "--tres-per-task=", 16) == 0)
        seen = seen_per_task(value, true, n_gpus);
    else if (strncmp(option, "--ntasks-per-gpu=", 17) == 0)
        seen = 1;
    return seen > 0 && seen < n_gpus ? seen : n_gpus;
}

/* Are devices hidden by cgroups? Not if TaskPlugin= has no task/cgroup. */
static bool is_constrained(const char *slurm_conf)
{
    struct tccl_slurm_conf conf;
    bool seen;
    if (!slurm_conf || !strchr(slurm_conf, '/'))
        return false;
    seen = tccl_slurm_conf_read(slurm_conf, &conf, NULL) == 0;
    const char *plugins = seen ? tccl_slurm_get(&conf, "TaskPlugin") : NULL;
    bool others = plugins && !strcasestr(plugins, "cgroup");
    tccl_slurm_conf_clear(&conf);
    return !others && tccl_slurm_constrains(slurm_conf, &seen);
}

/* The option that holds here: srun's note; without one (a launcher of another kind) variables. */
static bool find_option(char *const *env, char option[static TASK_GPUS_TEXT])
{
    const char *note = job_env_get(env, TASK_GPUS_OPTION);
    if (note)
        snprintf(option, TASK_GPUS_TEXT, "%s", note);
    for (int i = 0; !note && i < OPTIONS; i++) {
        const char *value = job_env_get(env, options[i].variable);
        if (!value)
            continue;
        snprintf(option, TASK_GPUS_TEXT, "%s=%.150s", options[i].option, value);
        return true;
    }
    return note != NULL;
}

/* Parts of GPUs: others compute on the rest of them, so nothing that was measured holds. */
int task_gpus_check(char *const *env, struct tccl_error *err)
{
    if (job_env_get(env, "SLURM_SHARDS_ON_NODE"))
        return tccl_fail(err,
                         "the step has shards of GPUs (--gres=shard), and rings are over whole "
                         "GPUs: use --gpus-per-node");
    if (job_env_get(env, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"))
        return tccl_fail(err, "the step has a share of a GPU by MPS (--gres=mps), and rings are "
                              "over whole GPUs: use --gpus-per-node");
    return 0;
}

bool task_gpus_hidden(char *const *env, int n_gpus, const char *slurm_conf,
                      char option[static TASK_GPUS_TEXT])
{
    return n_gpus > 1 && find_option(env, option) && task_gpus_seen(option, n_gpus) < n_gpus &&
           is_constrained(slurm_conf);
}
