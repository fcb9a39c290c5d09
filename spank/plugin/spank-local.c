/* spank-local.c: the plugin in srun, sbatch and salloc: rejects invalid modes before submission. */
#include "plugin/spank-local.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/policy.h"
#include "plugin/spank-option.h"
#include "plugin/task-gpus.h"

enum { CMDLINE = 65536 };

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
    if (tccl_mode_parse(text, &err) >= 0) {
        setenv(TCCL_FORWARDED, text, 1);
        return 0;
    }
    slurm_error("tccl: environment variable TCCL: %s", err.text);
    exit(1);
}
