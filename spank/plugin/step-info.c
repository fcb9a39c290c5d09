/* step-info.c: reads the properties of a step on this node from SPANK items and the environment. */
#include "plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
#include "base/numberset.h"
#include "client/key.h"
#include "client/step-fields.h"

#define cleanup_hosts __attribute__((cleanup(tccl_hosts_clear)))

enum {
    HET_COMPONENTS = 128,      /* MAX_HET_JOB_COMPS of Slurm */
    ARRAY_TASK_MOST = 4000000, /* MaxArraySize is at most one more */
};

enum step_kind step_kind(uint32_t step)
{
    switch (step) {
    case TCCL_STEP_BATCH:
        return STEP_BATCH;
    case TCCL_STEP_INTERACTIVE:
        return STEP_SHELL;
    case TCCL_STEP_EXTERN:
        return STEP_CONTAINER;
    default:
        return STEP_TASKS;
    }
}

static enum step_daemon daemon_of(const char *program)
{
    static const struct {
        const char *name;
        enum step_daemon daemon;
    } daemons[] = {{"orted", STEP_DAEMON_BELOW},            /* Open MPI 4 */
                   {"prted", STEP_DAEMON_BELOW},            /* Open MPI 5, PRRTE */
                   {"hydra_pmi_proxy", STEP_DAEMON_ALL},    /* MPICH, MVAPICH */
                   {"hydra_bstrap_proxy", STEP_DAEMON_ALL}, /* Intel MPI */
                   {"pmi_proxy", STEP_DAEMON_ALL} /* older MPICH */};
    const char *slash = program ? strrchr(program, '/') : NULL;
    const char *name = slash ? slash + 1 : program;
    for (size_t i = 0; name && i < sizeof(daemons) / sizeof(*daemons); i++)
        if (strcmp(name, daemons[i].name) == 0)
            return daemons[i].daemon;
    return STEP_DAEMON_NONE;
}

/* Finds the component whose variable, prefix and number, holds this job's id. The variables are the
 * user's, so they are believed only where they can be true: slurmctld numbers the components of a
 * job in ascending order, without gaps. */
static bool find_component(char *const *env, const char *prefix, struct tccl_step_key *key)
{
    char name[64];
    uint32_t size = job_env_number(env, "SLURM_HET_SIZE", 0), leader = 0;
    for (uint32_t i = 0; i < size && i < HET_COMPONENTS; i++) {
        snprintf(name, sizeof(name), "%s%u", prefix, i);
        uint32_t job = job_env_number(env, name, 0);
        if (i == 0)
            leader = job;
        if (job != key->job || !leader || job != leader + i)
            continue;
        key->het_job = leader;
        key->het_offset = i;
        return true;
    }
    return false;
}

static bool is_array_task(const struct step_items *items)
{
    return items->array_job && items->array_task <= ARRAY_TASK_MOST;
}

static bool variable_agrees(char *const *env, const char *name, uint32_t item)
{
    return !job_env_get(env, name) || job_env_number(env, name, ~item) == item;
}

/* For steps started by srun, slurmstepd takes these items from the user's environment, with atoi.
 * Values that are not numbers or cannot be true are ignored. Slurm assigns ids in ascending order,
 * to the array first. */
static void read_array(const struct step_items *items, char *const *env, struct tccl_step *step)
{
    if (!is_array_task(items) || items->array_job > items->job || step->key.het_job ||
        job_env_number(env, STEP_NO_ARRAY, 0) == items->job ||
        !variable_agrees(env, "SLURM_ARRAY_JOB_ID", items->array_job) ||
        !variable_agrees(env, "SLURM_ARRAY_TASK_ID", items->array_task))
        return;
    step->array_job = items->array_job;
    step->array_task = items->array_task;
}

bool step_info_needs_no_array(const struct step_items *items, char *const *env)
{
    return step_kind(items->step) == STEP_BATCH && !is_array_task(items) &&
           job_env_get(env, "SLURM_ARRAY_JOB_ID");
}

/* SLURM_TOPOLOGY_ADDR is "switch.….node"; node names may contain dots, too. */
static bool address_is_of(const char *address, const char *name)
{
    size_t length = strlen(address), tail = strlen(name);
    return tail && tail <= length && strcmp(address + length - tail, name) == 0 &&
           (tail == length || address[length - tail - 1] == '.');
}

static int find_by_address(const struct tccl_hosts *hosts, const char *address)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (address_is_of(address, hosts->names[i]))
            return (int)i;
    return -1;
}

/* Copies the names of count nodes; node is the index of this one. Returns 0, or -1 with err. */
static int set_nodes(const struct tccl_hosts *hosts, size_t count, int node, struct tccl_step *step,
                     struct step_place *place, struct tccl_error *err)
{
    if (tccl_step_set_nodes(step, (const char *const *)hosts->names, count) != 0)
        return tccl_fail(err, "out of memory");
    step->node = node;
    snprintf(place->name, sizeof(place->name), "%s", hosts->names[node]);
    place->first = node == 0;
    return 0;
}

/* Components that one srun starts together are separate steps with a common node list. */
static int read_span(const struct step_items *items, char *const *env, struct tccl_step *step,
                     struct step_place *place, struct tccl_error *err)
{
    place->spans = job_env_number(env, "SLURM_STEP_NUM_NODES", 0) > items->n_nodes;
    place->speaks = place->spans && items->node == 0 && (place->first || step->key.het_job);
    /* Without variables for the components, the first node belongs to the leader. */
    if (place->spans && place->first && !step->key.het_job)
        step->key.het_job = step->key.job;
    return place->spans ? tccl_fail_as(err, TCCL_REASON_HET_STEP,
                                       "the step spans components of a heterogeneous job: give "
                                       "srun one of them (--het-group=0)")
                        : 0;
}

static int find_by_name(const struct tccl_hosts *hosts, const char *name)
{
    for (size_t i = 0; name && i < hosts->count; i++)
        if (strcmp(hosts->names[i], name) == 0)
            return (int)i;
    return -1;
}

/* mpirun of Open MPI in a job script starts its daemons by srun, which passes the environment on:
 * there SLURMD_NODENAME is the script's node. Where no daemon is started there, it is put in front
 * of the step's nodes: its ranks are mpirun's own children. Returns 0, or -1 with err. */
static int add_script_node(char *const *env, const struct tccl_hosts *hosts, struct tccl_step *step,
                           struct tccl_error *err)
{
    cleanup_hosts struct tccl_hosts job = {0};
    const char *name = job_env_get(env, "SLURMD_NODENAME");
    const char *list = job_env_get(env, "SLURM_JOB_NODELIST");
    if (!name || !list || find_by_name(hosts, name) >= 0)
        return 0;
    if (tccl_hosts_expand(list, TCCL_MAX_NODES, &job, err) != 0)
        return tccl_fail_in(err, "SLURM_JOB_NODELIST");
    if (find_by_name(&job, name) < 0 || hosts->count >= TCCL_MAX_NODES)
        return 0;
    const char **names = malloc((hosts->count + 1) * sizeof(*names));
    if (!names)
        return tccl_fail(err, "out of memory");
    names[0] = name;
    memcpy(names + 1, hosts->names, hosts->count * sizeof(*names));
    int failed = tccl_step_set_nodes(step, names, hosts->count + 1);
    free(names);
    if (failed)
        return tccl_fail(err, "out of memory");
    step->node++;
    step->launch = TCCL_LAUNCH_BELOW;
    return 0;
}

static int read_nodes(const struct step_items *items, char *const *env, struct tccl_step *step,
                      struct step_place *place, struct tccl_error *err)
{
    cleanup_hosts struct tccl_hosts hosts = {0};
    const char *list = job_env_get(env, "SLURM_STEP_NODELIST");
    place->first = items->node == 0;
    if (!list)
        return tccl_fail(err, "SLURM_STEP_NODELIST is not set");
    if (tccl_hosts_expand(list, TCCL_MAX_NODES, &hosts, err) != 0)
        return tccl_fail_in(err, "SLURM_STEP_NODELIST");
    /* SLURMD_NODENAME is of no use here: in the steps of a job script it is the batch host's. */
    const char *address = job_env_get(env, "SLURM_TOPOLOGY_ADDR");
    int node = items->node < hosts.count ? (int)items->node : -1;
    if (address && (node < 0 || !address_is_of(address, hosts.names[node])))
        node = find_by_address(&hosts, address);
    if (node < 0)
        return tccl_fail(err, "this node is not in SLURM_STEP_NODELIST (%.80s)", list);
    if (set_nodes(&hosts, hosts.count, node, step, place, err) != 0 ||
        read_span(items, env, step, place, err) != 0)
        return -1;
    if (hosts.count != items->n_nodes)
        return tccl_fail(err, "SLURM_STEP_NODELIST (%.80s) has %zu nodes, the step %u", list,
                         hosts.count, items->n_nodes);
    enum step_daemon daemon = daemon_of(items->program);
    if (daemon != STEP_DAEMON_NONE)
        step->launch = TCCL_LAUNCH_DAEMONS;
    return daemon == STEP_DAEMON_BELOW ? add_script_node(env, &hosts, step, err) : 0;
}

/* A job script runs on one node, usually the first of the job. */
static int read_batch_node(char *const *env, struct tccl_step *step, struct step_place *place,
                           struct tccl_error *err)
{
    cleanup_hosts struct tccl_hosts hosts = {0};
    const char *list = job_env_get(env, "SLURM_JOB_NODELIST");
    const char *address = job_env_get(env, "SLURM_TOPOLOGY_ADDR");
    if (!list || !*list)
        return tccl_fail(err, "SLURM_JOB_NODELIST is not set");
    if (tccl_hosts_expand(list, TCCL_MAX_NODES, &hosts, err) != 0)
        return tccl_fail_in(err, "SLURM_JOB_NODELIST");
    int own = address ? find_by_address(&hosts, address) : 0;
    if (own < 0 || hosts.count == 0)
        return tccl_fail(err, "this node is not in SLURM_JOB_NODELIST (%.80s)", list);
    place->job_nodes = (int)hosts.count;
    if (hosts.count > 1)
        step->launch = TCCL_LAUNCH_SCRIPT;
    struct tccl_hosts one = {.names = hosts.names + own, .count = 1};
    return set_nodes(&one, 1, 0, step, place, err);
}

static int read_gpus(const char *variable, char *const *env, struct tccl_step *step,
                     struct step_place *place, struct tccl_error *err)
{
    const char *text = job_env_get(env, variable);
    uint32_t mask = 0;
    if (!text || !*text)
        return 0;
    place->has_gpus = true;
    if (tccl_numberset_parse(text, STEP_MAX_GPUS, &mask, err) != 0) {
        tccl_fail_because(err, TCCL_REASON_UNKNOWN_GPU);
        return tccl_fail_in(err, "%s", variable);
    }
    for (int i = 0; i < STEP_MAX_GPUS; i++)
        if (mask >> i & 1)
            step->gres[step->n_gres++] = i;
    return 0;
}

int step_info_read(const struct step_items *items, char *const *env, struct tccl_step *step,
                   struct step_place *place, struct tccl_error *err)
{
    bool batch = step_kind(items->step) != STEP_TASKS;
    *step = (struct tccl_step){.uid = items->uid, .gid = items->gid};
    *place = (struct step_place){.first = false};
    /* Fields that are copied from Slurm's variables unchanged. */
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        if (field->variable) {
            const char *value = job_env_get(env, field->variable);
            snprintf((char *)step + field->at, field->size, "%s", value ? value : "");
        }
    }
    /* Up to Slurm 24.11 S_SLURM_RESTART_COUNT is always 0, and only steps started by a job script
     * have the variable. The script's own step is told from that of an earlier run by its start
     * time. */
    step->key.job = items->job;
    step->key.step = items->step;
    step->key.restart =
        items->restart ? items->restart : job_env_number(env, "SLURM_RESTART_COUNT", 0);
    step->key.run = step_kind(items->step) == STEP_BATCH ? items->now : 0;
    /* The position of this job among the components of a heterogeneous job. If the variables were
     * inherited from an outer job, none of them names this job. In a job that srun itself submits,
     * only the older names are set (22.05). */
    if (!find_component(env, "SLURM_JOB_ID_HET_GROUP_", &step->key))
        find_component(env, "SLURM_JOB_ID_PACK_GROUP_", &step->key);
    read_array(items, env, step);
    int gpus = read_gpus(batch ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS", env, step, place, err);
    struct tccl_error *rest = gpus ? NULL : err;
    int nodes =
        batch ? read_batch_node(env, step, place, rest) : read_nodes(items, env, step, place, rest);
    place->placed = nodes == 0;
    return gpus || nodes ? -1 : 0;
}
