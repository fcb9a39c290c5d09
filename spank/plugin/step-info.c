#include "plugin/step-info.h"

#include <stdio.h>
#include <string.h>

#include <slurm/slurm.h>

#include "base/numbers.h"
#include "client/key.h"
#include "client/step-fields.h"
#include "plugin/job-env.h"

enum {
    HET_COMPONENTS = 128,      /* MAX_HET_JOB_COMPS of Slurm */
    ARRAY_TASK_MOST = 4000000, /* MaxArraySize is at most one more */
};

enum step_kind step_kind(uint32_t step)
{
    switch (step) {
    case SLURM_BATCH_SCRIPT:
        return STEP_BATCH;
    case SLURM_INTERACTIVE_STEP:
        return STEP_SHELL;
    case SLURM_EXTERN_CONT:
        return STEP_CONTAINER;
    default:
        return STEP_TASKS;
    }
}

static void copy_text(char *text, size_t size, char *const *env, const char *name)
{
    const char *value = job_env_get(env, name);
    snprintf(text, size, "%s", value ? value : "");
}

/* Finds this job by one of the names that Slurm gives component i. */
static bool find_component(char *const *env, const char *prefix, struct tccl_step_key *key)
{
    char name[64];
    uint32_t size = job_env_number(env, "SLURM_HET_SIZE", 0), leader = 0;
    for (uint32_t i = 0; i < size && i < HET_COMPONENTS; i++) {
        snprintf(name, sizeof(name), "%s%u", prefix, i);
        uint32_t job = job_env_number(env, name, 0);
        if (i == 0)
            leader = job;
        if (job != key->job || !leader)
            continue;
        key->het_job = leader;
        key->het_offset = i;
        return true;
    }
    return false;
}

/* The place of this job among the components of a heterogeneous job. The variables may also be left
 * from a surrounding job: then none of them names this one. A job of srun's own has only the older
 * names (22.05). */
static void read_component(char *const *env, struct tccl_step_key *key)
{
    if (!find_component(env, "SLURM_JOB_ID_HET_GROUP_", key))
        find_component(env, "SLURM_JOB_ID_PACK_GROUP_", key);
}

static bool is_array_task(const struct step_items *items)
{
    return items->array_job && items->array_task <= ARRAY_TASK_MOST;
}

static bool variable_agrees(char *const *env, const char *name, uint32_t item)
{
    return !job_env_get(env, name) || job_env_number(env, name, ~item) == item;
}

/* In steps that srun started slurmstepd takes the items from the user's environment, with atoi:
 * what is no number, or can't be true, is left out. Slurm gives ids out upwards, that of the array
 * first.
 */
static void read_array(const struct step_items *items, char *const *env, struct step_info *info)
{
    if (!is_array_task(items) || items->array_job > items->job || info->key.het_job ||
        job_env_number(env, STEP_NO_ARRAY, 0) == items->job ||
        !variable_agrees(env, "SLURM_ARRAY_JOB_ID", items->array_job) ||
        !variable_agrees(env, "SLURM_ARRAY_TASK_ID", items->array_task))
        return;
    info->array_job = items->array_job;
    info->array_task = items->array_task;
}

bool step_info_needs_no_array(const struct step_items *items, char *const *env)
{
    return step_kind(items->step) == STEP_BATCH && !is_array_task(items) &&
           job_env_get(env, "SLURM_ARRAY_JOB_ID");
}

/* Up to Slurm 24.11 S_SLURM_RESTART_COUNT is always 0, and the variable reaches only the steps that
 * a job script starts: the script's own step is told from that of the run before by its start. */
static void read_key(const struct step_items *items, char *const *env, struct tccl_step_key *key)
{
    copy_text(key->cluster, sizeof(key->cluster), env, "SLURM_CLUSTER_NAME");
    key->job = items->job;
    key->step = items->step;
    key->restart = items->restart ? items->restart : job_env_number(env, "SLURM_RESTART_COUNT", 0);
    key->run = step_kind(items->step) == STEP_BATCH ? items->now : 0;
    read_component(env, key);
}

/* SLURM_TOPOLOGY_ADDR is "switch.….node"; node names may have dots of their own. */
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

/* SLURMD_NODENAME would be the name, but is the batch host's in the steps of a job script. */
static int find_node(const struct step_items *items, const char *address, struct step_info *info)
{
    const struct tccl_hosts *hosts = &info->hosts;
    info->node = items->node < hosts->count ? (int)items->node : -1;
    if (address && (info->node < 0 || !address_is_of(address, hosts->names[info->node])))
        info->node = find_by_address(hosts, address);
    if (info->node < 0)
        return -1;
    snprintf(info->name, sizeof(info->name), "%s", hosts->names[info->node]);
    info->first = info->node == 0;
    return 0;
}

static int read_nodes(const struct step_items *items, char *const *env, struct step_info *info,
                      struct tccl_error *err)
{
    const char *list = job_env_get(env, "SLURM_STEP_NODELIST");
    info->first = items->node == 0;
    if (!list)
        return tccl_fail(err, "SLURM_STEP_NODELIST is not set");
    if (tccl_hosts_expand(list, TCCL_MAX_NODES, &info->hosts, err) != 0)
        return tccl_fail_in(err, "SLURM_STEP_NODELIST");
    if (find_node(items, job_env_get(env, "SLURM_TOPOLOGY_ADDR"), info) != 0)
        return tccl_fail(err, "this node is not in SLURM_STEP_NODELIST (%.80s)", list);
    /* Each component that srun starts together is a step of its own, under one node list. */
    info->spans = job_env_number(env, "SLURM_STEP_NUM_NODES", 0) > items->n_nodes;
    info->speaks = info->spans && items->node == 0 && (info->first || info->key.het_job);
    /* Where no variable names the components, the first node is the leader's. */
    if (info->spans && info->first && !info->key.het_job)
        info->key.het_job = info->key.job;
    if (info->spans)
        return tccl_fail(err, "step spans heterogeneous components");
    if (info->hosts.count != items->n_nodes)
        return tccl_fail(err, "SLURM_STEP_NODELIST (%.80s) has %zu nodes, the step %u", list,
                         info->hosts.count, items->n_nodes);
    return 0;
}

/* A job script runs on one node, usually the first of the job. */
static int read_batch_node(char *const *env, struct step_info *info, struct tccl_error *err)
{
    const char *list = job_env_get(env, "SLURM_JOB_NODELIST");
    const char *address = job_env_get(env, "SLURM_TOPOLOGY_ADDR");
    struct tccl_hosts *hosts = &info->hosts;
    if (!list || !*list)
        return tccl_fail(err, "SLURM_JOB_NODELIST is not set");
    if (tccl_hosts_expand(list, TCCL_MAX_NODES, hosts, err) != 0)
        return tccl_fail_in(err, "SLURM_JOB_NODELIST");
    int own = address ? find_by_address(hosts, address) : 0;
    if (own < 0 || hosts->count == 0)
        return tccl_fail(err, "this node is not in SLURM_JOB_NODELIST (%.80s)", list);
    char *first = hosts->names[0];
    hosts->names[0] = hosts->names[own];
    hosts->names[own] = first;
    while (hosts->count > 1)
        free(hosts->names[--hosts->count]);
    snprintf(info->name, sizeof(info->name), "%s", hosts->names[0]);
    info->first = true;
    return 0;
}

static int read_gpus(const char *variable, char *const *env, struct step_info *info,
                     struct tccl_error *err)
{
    const char *text = job_env_get(env, variable);
    uint32_t mask = 0;
    if (!text || !*text)
        return 0;
    info->has_gpus = true;
    if (tccl_numberset_parse(text, STEP_MAX_GPUS, &mask, err) != 0)
        return tccl_fail_in(err, "%s", variable);
    for (int i = 0; i < STEP_MAX_GPUS; i++)
        if (mask >> i & 1)
            info->gres[info->n_gres++] = i;
    return 0;
}

int step_info_read(const struct step_items *items, char *const *env, struct step_info *info,
                   struct tccl_error *err)
{
    bool batch = step_kind(items->step) == STEP_BATCH;
    *info = (struct step_info){.uid = items->uid, .gid = items->gid};
    read_key(items, env, &info->key);
    read_array(items, env, info);
    copy_text(info->user, sizeof(info->user), env, "SLURM_JOB_USER");
    copy_text(info->partition, sizeof(info->partition), env, "SLURM_JOB_PARTITION");
    copy_text(info->job_name, sizeof(info->job_name), env, "SLURM_JOB_NAME");
    copy_text(info->account, sizeof(info->account), env, "SLURM_JOB_ACCOUNT");
    copy_text(info->qos, sizeof(info->qos), env, "SLURM_JOB_QOS");
    int gpus = read_gpus(batch ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS", env, info, err);
    struct tccl_error *rest = gpus ? NULL : err;
    int nodes = batch ? read_batch_node(env, info, rest) : read_nodes(items, env, info, rest);
    info->placed = nodes == 0;
    return gpus || nodes ? -1 : 0;
}

static int find_by_name(const struct tccl_hosts *hosts, const char *name)
{
    for (size_t i = 0; name && i < hosts->count; i++)
        if (strcmp(hosts->names[i], name) == 0)
            return (int)i;
    return -1;
}

static int read_job_nodes(char *const *env, struct step_info *info, struct tccl_error *err)
{
    const char *list = job_env_get(env, "SLURM_NODELIST");
    const char *name = job_env_get(env, "SLURMD_NODENAME");
    if (!list)
        list = job_env_get(env, "SLURM_JOB_NODELIST");
    if (!list)
        return tccl_fail(err, "SLURM_NODELIST is not set");
    if (tccl_hosts_expand(list, TCCL_MAX_NODES, &info->hosts, err) != 0)
        return tccl_fail_in(err, "SLURM_NODELIST");
    info->node = find_by_name(&info->hosts, name);
    if (info->node < 0)
        return tccl_fail(err, "SLURMD_NODENAME (%.80s) is not in SLURM_NODELIST (%.80s)",
                         name ? name : "not set", list);
    snprintf(info->name, sizeof(info->name), "%s", name);
    info->first = info->node == 0;
    info->placed = true;
    return 0;
}

int step_info_read_job(const struct step_items *items, char *const *env, struct step_info *info,
                       struct tccl_error *err)
{
    *info = (struct step_info){.uid = items->uid, .gid = items->gid};
    copy_text(info->key.cluster, sizeof(info->key.cluster), env, "SLURM_CLUSTER_NAME");
    info->key.job = items->job;
    info->key.step = TCCL_NO_STEP;
    copy_text(info->user, sizeof(info->user), env, "SLURM_JOB_USER");
    copy_text(info->partition, sizeof(info->partition), env, "SLURM_JOB_PARTITION");
    copy_text(info->account, sizeof(info->account), env, "SLURM_JOB_ACCOUNT");
    return read_gpus("SLURM_JOB_GPUS", env, info, err) || read_job_nodes(env, info, err) ? -1 : 0;
}

void step_info_clear(struct step_info *info)
{
    tccl_hosts_clear(&info->hosts);
    *info = (struct step_info){0};
}

static const char *text_or_null(const char *text)
{
    return *text ? text : NULL;
}

void step_info_join(const struct step_info *info, struct tccl_join *join)
{
    *join = (struct tccl_join){
        .key = info->key,
        .node = info->node,
        .n_nodes = (int)info->hosts.count,
        .nodes = (const char *const *)info->hosts.names,
        .gres = info->gres,
        .n_gres = info->n_gres,
        .uid = info->uid,
        .gid = info->gid,
        .user = text_or_null(info->user),
        .partition = text_or_null(info->partition),
        .job_name = text_or_null(info->job_name),
        .account = text_or_null(info->account),
        .array_job = info->array_job,
        .array_task = info->array_task,
    };
}
