/* policy-facts.c: collects on the node what the conditions of policies refer to. */
#include "plugin/plugin.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gres/gres.h"

enum { PASSWD_SIZE = 16384 };

/* By the uid: SLURM_JOB_USER in the environment can be forged by the user. */
static void read_user(uid_t uid, char name[static TCCL_STEP_TEXT + 1])
{
    char *buffer = malloc(PASSWD_SIZE);
    struct passwd entry, *found = NULL;
    if (buffer)
        getpwuid_r(uid, &entry, buffer, PASSWD_SIZE, &found);
    if (found)
        snprintf(name, TCCL_STEP_TEXT + 1, "%s", found->pw_name);
    else
        snprintf(name, TCCL_STEP_TEXT + 1, "%lu", (unsigned long)uid);
    free(buffer);
}

static bool all_the_same(const struct tccl_machine *machine)
{
    for (int i = 1; i < machine->n_gpus; i++)
        if (strcmp(machine->gpus[i].model, machine->gpus[0].model) != 0)
            return false;
    return true;
}

/* slurmd's list, as tccld has left it in RunDir; where all GPUs are of one model it isn't needed.
 */
static int read_list(const struct tccl_conf *conf, const struct tccl_machine *machine,
                     struct tccl_gres *list, struct tccl_error *err)
{
    char path[PATH_MAX];
    int64_t started;
    int pid;
    list->count = 0;
    if (all_the_same(machine))
        return 0;
    snprintf(path, sizeof(path), "%.*s/" TCCL_GRES_NAME, PATH_MAX - 64, conf->run_dir);
    return tccl_gres_load(list, path, &pid, &started, err);
}

static int read_models(const struct tccl_conf *conf, const struct tccl_step *step,
                       struct step_facts *facts, struct tccl_error *err)
{
    struct tccl_gres list;
    facts->machine = malloc(sizeof(*facts->machine));
    if (!facts->machine)
        return tccl_fail(err, "out of memory");
    if (tccl_machine_read(conf->machine, facts->machine, err) != 0)
        return -1;
    if (read_list(conf, facts->machine, &list, err) != 0)
        return -1;
    for (int i = 0; i < step->n_gres; i++) {
        int gpu = list.count ? tccl_gres_find(&list, facts->machine, false, step->gres[i], err) : 0;
        if (gpu < 0)
            return -1;
        facts->models[i] = facts->machine->gpus[gpu].model;
    }
    facts->facts.n_gpu_models = step->n_gres;
    return 0;
}

int step_facts_read(const struct tccl_conf *conf, const struct tccl_step *step,
                    struct step_facts *facts, struct tccl_error *err)
{
    *facts = (struct step_facts){.machine = NULL};
    facts->facts = (struct policy_facts){
        .partition = step->partition,
        .account = step->account,
        .qos = step->qos,
        .user = facts->user,
        .job_name = step->job_name,
        .nodes = (const char *const *)step->nodes,
        .n_nodes = step->n_nodes,
        .gpus = step->n_gres * step->n_nodes,
        .gpu_models = facts->models,
    };
    if (policy_asks(conf, POLICY_OF_USER))
        read_user(step->uid, facts->user);
    return policy_asks(conf, POLICY_OF_MODELS) ? read_models(conf, step, facts, err) : 0;
}

void step_facts_clear(struct step_facts *facts)
{
    free(facts->machine);
    *facts = (struct step_facts){.machine = NULL};
}
