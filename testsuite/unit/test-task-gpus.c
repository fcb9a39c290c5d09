/* Options by which tasks see GPUs of their own: as they are typed, in srun and in slurmstepd, with
 * and without ConstrainDevices. */
#include "plugin/plugin.h"

#include "check.h"

static char slurm_conf[64];

static void put(const char *name, const char *text)
{
    const char *path = check_at("%s", name);
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void check_seen(const char *option, int n_gpus, int seen)
{
    int got = task_gpus_seen(option, n_gpus);
    if (got != seen)
        printf("%s:\n", option);
    CHECK_INT(got, seen);
}

TEST(options)
{
    check_seen("--gpus-per-task=1", 4, 1);
    check_seen("--gpus-per-task=4", 4, 4);
    check_seen("--gpus-per-task=8", 4, 4);
    check_seen("--gpus-per-task=a100:2", 4, 2);
    check_seen("--gpus-per-task=a100", 4, 1);
    check_seen("--gpus-per-task=a100:1,v100:2", 4, 3);
    check_seen("--gpus-per-task=x", 1, 1);
    check_seen("--tres-per-task=gres/gpu:1", 4, 1);
    check_seen("--tres-per-task=cpu:4,gres/gpu:a100=2", 4, 2);
    check_seen("--tres-per-task=cpu=4", 4, 4);
    check_seen("--ntasks-per-gpu=2", 4, 1);
    check_seen("--gpu-bind=single:1", 4, 1);
    check_seen("--gpu-bind=single", 4, 1);
    check_seen("--gpu-bind=verbose,single:2", 4, 1);
    check_seen("--gpu-bind=v,map_gpu:0,1", 4, 1);
    check_seen("--gpu-bind=map_gpu:0,1,2,3", 4, 1);
    check_seen("--gpu-bind=mask_gpu:0xf", 4, 4);
    check_seen("--gpu-bind=mask_gpu:0xf*4", 4, 4);
    check_seen("--gpu-bind=mask_gpu:0x3,0xc", 4, 2);
    check_seen("--gpu-bind=mask_gpu:f,1", 4, 1);
    check_seen("--gpu-bind=per_task:2", 4, 2);
    check_seen("--gpu-bind=none", 4, 4);
    check_seen("--gpu-bind=closest", 4, 4);
    check_seen("--gpu-bind=verbose,closest", 4, 4);
    check_seen("--gpu-bind=verbose", 4, 4);
    check_seen("--tres-bind=gres/gpu:per_task:1", 4, 1);
    check_seen("--tres-bind=gpu:single:1", 4, 1);
    check_seen("--tres-bind=gres/gpu:none", 4, 4);
    check_seen("nonsense", 4, 4);
    check_seen("", 4, 4);
}

static void check_note(const char *line, const char *expected)
{
    char copy[512], *words[32], *rest = copy, *word;
    int count = 0;
    snprintf(copy, sizeof(copy), "%s", line);
    while ((word = strsep(&rest, " ")) && count < 32)
        words[count++] = word;
    task_gpus_note(words, count);
    const char *note = getenv(TASK_GPUS_OPTION);
    CHECK_STR(note ? note : "", expected);
}

TEST(notes)
{
    check_note("srun -N2 --gpus-per-task=1 ./a", "--gpus-per-task=1");
    check_note("srun --gpus-per-task 2 ./a", "--gpus-per-task=2");
    check_note("srun --gpus-per-task=1 --gpu-bind=none ./a", "--gpu-bind=none");
    check_note("srun --gpus-per-node=4 ./a", "");
    check_note("srun -- ./a --gpus-per-task=1", "");
    check_note("srun --gpus-per-t=1 ./a", "--gpus-per-task=1");
    check_note("srun --gpus-per-t 1 ./a", "--gpus-per-task=1");
    check_note("srun --gpu-b=single:1 ./a", "--gpu-bind=single:1");
    check_note("srun --ntasks-per-g=1 ./a", "--ntasks-per-gpu=1");
    check_note("srun --gpus=8 --ntasks=8 ./a", "");
    check_note("srun --gpus 8 --ntasks 8 ./a", "");
    check_note("srun --gpus-per-node=4 --ntasks-per-node=4 ./a", "");
    check_note("srun --tres-per-task=cpu:2 ./a", "");
    check_note("srun --tres-per-task=cpu:2,gres/gpu:1 ./a", "--tres-per-task=cpu:2,gres/gpu:1");
    setenv("SLURM_GPUS_PER_TASK", "1", 1);
    check_note("srun ./a", "--gpus-per-task=1");
    check_note("srun --gpus-per-task=4 ./a", "--gpus-per-task=4");
    unsetenv("SLURM_GPUS_PER_TASK");
    check_note("srun ./a", "");
}

static void check_step(char *const *env, int n_gpus, const char *option)
{
    char hides[TASK_GPUS_TEXT] = "";
    CHECK(task_gpus_hidden(env, n_gpus, slurm_conf, hides) == (*option != '\0'));
    if (*option)
        CHECK_STR(hides, option);
}

static void check_parts(char *const *env, const char *reason)
{
    CHECK_SAYS((task_gpus_check(env, ERR) == 0) == (*reason == '\0'), reason);
}

TEST(steps)
{
    static char note[] = TASK_GPUS_OPTION "=--gpus-per-task=1",
                variable[] = "SLURM_GPU_BIND=single:1", shards[] = "SLURM_SHARDS_ON_NODE=2",
                mps[] = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50",
                none[] = TASK_GPUS_OPTION "=--gpu-bind=none";
    char *const noted[] = {note, NULL}, *const varied[] = {variable, NULL},
                *const both[] = {variable, none, NULL};
    char *const sharded[] = {shards, NULL}, *const shared[] = {mps, NULL}, *const plain[] = {NULL};
    snprintf(slurm_conf, sizeof(slurm_conf), "%s/slurm.conf", check_folder());
    check_step(noted, 4, ""); /* no such files */
    put("slurm.conf", "ClusterName=x\nTaskPlugin=task/affinity,task/cgroup\n");
    check_step(noted, 4, "");
    put("cgroup.conf", "# x\nConstrainDevices = yes # all\n");
    check_step(noted, 4, "--gpus-per-task=1");
    check_step(noted, 1, "");
    check_step(varied, 2, "--gpu-bind=single:1");
    check_step(both, 2, "");
    check_step(plain, 4, "");
    put("cgroup.conf", "ConstrainDevices=no\n");
    check_step(noted, 4, "");
    put("cgroup.conf", "ConstrainDevices=Yes\n");
    put("slurm.conf", "taskplugin=task/none\n");
    check_step(noted, 4, "");
    check_parts(sharded, "shards of GPUs");
    check_parts(shared, "by MPS");
    check_parts(noted, "");
}
