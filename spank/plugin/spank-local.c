/* spank-local.c: the plugin in srun, sbatch and salloc: hands TCCL= on to the steps, and says in
 * the end that a ring was required and nobody looked. */
#include "plugin/spank-parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/command.h"
#include "client/hostlist.h"
#include "client/policy.h"
#include "client/step-fields.h"
#include "plugin/plugin.h"

enum { CMDLINE = 65536, ASK_MS = 3000 };

/* The step that requires a ring; job 0: none. */
static struct {
    uint32_t job, step;
    int64_t began_ms;
    char node[256]; /* the first */
} required;

/* How many words belong to srun, by where getopt_long has stopped; the program's own may look the
 * same. Components of a heterogeneous job are parsed one by one: all words then. */
static int own_words(char *const *words, int count)
{
    for (int i = 1; i < count; i++)
        if (strcmp(words[i], ":") == 0)
            return count;
    return optind > 0 && optind < count ? optind : count;
}

/* Which option gives tasks GPUs of their own? */
static void note_gpus(void)
{
    cleanup_free char **words = NULL;
    int count = 0;
    cleanup_file FILE *file = fopen("/proc/self/cmdline", "re");
    cleanup_free char *text = malloc(CMDLINE + 1);
    size_t size = file && text ? fread(text, 1, CMDLINE, file) : 0;
    if (size == 0)
        return;
    text[size] = '\0';
    words = calloc(size + 1, sizeof(*words));
    for (char *at = text; words && at < text + size; at += strlen(at) + 1)
        words[count++] = at;
    if (words)
        task_gpus_note(words, own_words(words, count));
}

int local_init_post_opt(void)
{
    struct tccl_error err = {""};
    const char *text = getenv("TCCL");
    note_gpus();
    if (!text || !*text || option_mode() != POLICY_NOT_GIVEN)
        return 0;
    int mode = option_environment(text, getenv(TCCL_FORWARDED), &err);
    bool submits = spank_context() == S_CTX_ALLOCATOR; /* else the step says it, once for a job */
    if (err.text[0] && submits)
        slurm_spank_log("tccl: TCCL is ignored: %s", err.text);
    if (!err.text[0] || (submits && mode == POLICY_NOT_GIVEN))
        setenv(TCCL_FORWARDED, text, 1);
    return 0;
}

/* The first of the step's nodes; srun has set these for the tasks by now. */
static bool find_node(char *node, size_t size)
{
    static const char *const names[] = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST",
                                        "SLURM_NODELIST"};
    struct tccl_hosts hosts;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *list = getenv(names[i]);
        if (!list || tccl_hosts_expand(list, TCCL_MAX_NODES, &hosts, NULL) != 0)
            continue;
        int length = hosts.count ? snprintf(node, size, "%s", hosts.names[0]) : 0;
        tccl_hosts_clear(&hosts);
        return length > 0 && (size_t)length < size;
    }
    return false;
}

int local_user_init(spank_t spank)
{
    struct tccl_error err = {""};
    int mode = option_mode();
    if (mode == POLICY_NOT_GIVEN)
        mode = option_environment(getenv("TCCL"), getenv(TCCL_FORWARDED), &err);
    if (mode != TCCL_MODE_REQUIRE || !find_node(required.node, sizeof(required.node)) ||
        spank_get_item(spank, S_JOB_ID, &required.job) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &required.step) != ESPANK_SUCCESS)
        required.job = 0;
    required.began_ms = tccl_now_ms();
    return 0;
}

/* tccl-check asks, so that srun needs neither munge nor sockets of ours. */
int local_exit(int argc, char **argv)
{
    const char *conf = plugin_conf_path(argc, argv);
    char step[32], since[32];
    const char *const words[] = {"tccl-check",  "step",    step,  "--node",
                                 required.node, "--since", since, conf ? "--config" : NULL,
                                 conf,          NULL};
    cleanup_free struct tccl_command_output *output = calloc(1, sizeof(*output));
    if (!required.job || !output)
        return 0;
    snprintf(step, sizeof(step), "%u.%u", required.job, required.step);
    snprintf(since, sizeof(since), "%ld", (long)((tccl_now_ms() - required.began_ms) / 1000));
    int status = tccl_command_run(words, NULL, tccl_now_ms() + ASK_MS, output);
    output->err[strcspn(output->err, "\n")] = '\0';
    if (status == 1 && strncmp(output->err, "tccl: ", 6) == 0)
        slurm_error("%s", output->err);
    else if (status != 0)
        slurm_verbose("tccl: whether step %s had a ring is not known: %s", step,
                      status > 0 ? output->err : "tccl-check has not answered");
    required.job = 0;
    return 0;
}
