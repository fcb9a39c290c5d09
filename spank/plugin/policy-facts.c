/* policy-facts.c: collects on the node what the conditions of policies refer to. */
#include "plugin/policy-facts.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

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

/* The GPU with this index in Slurm; -1: none. */
static int find_gpu(const struct tccl_machine *machine, enum tccl_gres_order order, int index)
{
    if (order == TCCL_GRES_PCI)
        return index < machine->n_gpus ? index : -1;
    for (int i = 0; i < machine->n_gpus; i++)
        if (machine->gpus[i].minor == index)
            return i;
    return -1;
}

static int read_models(const struct tccl_conf *conf, const struct tccl_step *step,
                       struct step_facts *facts, struct tccl_error *err)
{
    facts->machine = malloc(sizeof(*facts->machine));
    if (!facts->machine)
        return tccl_fail(err, "out of memory");
    if (tccl_machine_read(conf->machine, facts->machine, err) != 0)
        return -1;
    for (int i = 0; i < step->n_gres; i++) {
        int gpu = find_gpu(facts->machine, conf->gres_order, step->gres[i]);
        if (gpu < 0)
            return tccl_fail(err, "GPU %d is not in %s", step->gres[i], conf->machine);
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
    if (policy_needs_user(conf))
        read_user(step->uid, facts->user);
    return policy_needs_models(conf) ? read_models(conf, step, facts, err) : 0;
}

void step_facts_clear(struct step_facts *facts)
{
    free(facts->machine);
    *facts = (struct step_facts){.machine = NULL};
}
