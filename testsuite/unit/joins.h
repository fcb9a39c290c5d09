/* joins.h: a row of tccld in a rig (rig.h), with profiles of two kinds of machine, and what tests
 * do with them: JOINs, LEAVEs, and what is on record. */
#ifndef TCCL_JOINS_H
#define TCCL_JOINS_H

#include "base/fileio.h"
#include "check.h"
#include "client/client.h"
#include "machines.h"
#include "nccl/baseline.h"
#include "owned.h"
#include "profile/cache.h"
#include "rig.h"

/* JOIN_MS is what a step gives tccld that all come to; what is to end without one of them says
 * less. */
enum { NODES = 20, WAIT_MS = 150000, JOIN_MS = 60000, ALL_GPUS = 0xf };

static char node_text[NODES][8];
static char *node_names[NODES];

/* Profiles */

/* A table whose ring and chain are those of the baseline, as the model measures them; but the
 * baseline is said to be half as fast, so that there is something to be gained. */
static struct tccl_table *make_table(const struct tccl_model *model, uint32_t gpus)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_table *table = tccl_table_new(machine, gpus);
    struct tccl_set set;
    strcpy(table->source, "model");
    for (int closed = 0; closed < 2; closed++) {
        struct tccl_baseline *baseline = &table->baselines[closed][TCCL_NEWEST];
        if (tccl_baseline_find(machine, gpus, closed, TCCL_NEWEST, baseline, NULL, ERR) != 0)
            continue;
        tccl_chain_set(&baseline->set.rings[0], &set);
        if (tccl_model_measure(model, &set, &baseline->gbps, NULL, NULL, ERR) != 0)
            fprintf(stderr, "%s\n", check_err.text);
    }
    double ring_gbps = table->baselines[1][TCCL_NEWEST].gbps,
           chain_gbps = table->baselines[0][TCCL_NEWEST].gbps;
    if (table->baselines[1][TCCL_NEWEST].set.n > 0)
        *tccl_table_ring(table) =
            (struct tccl_result){.gbps = ring_gbps,
                                 .bound = ring_gbps,
                                 .chain = table->baselines[1][TCCL_NEWEST].set.rings[0]};
    const struct tccl_chain *chain = &table->baselines[0][TCCL_NEWEST].set.rings[0];
    for (int i = 0; i < tccl_table_pairs(table); i++)
        if (memcmp(&table->ports[i / table->n_ports], &chain->entry, sizeof(chain->entry)) == 0 &&
            memcmp(&table->ports[i % table->n_ports], &chain->exit, sizeof(chain->exit)) == 0)
            table->results[i] =
                (struct tccl_result){.gbps = chain_gbps, .bound = chain_gbps, .chain = *chain};
    table->baselines[1][TCCL_NEWEST].gbps /= 2;
    table->baselines[0][TCCL_NEWEST].gbps /= 2;
    for (int i = 0; i < TCCL_NEWEST; i++) {
        table->baselines[1][i] = table->baselines[1][TCCL_NEWEST];
        table->baselines[0][i] = table->baselines[0][TCCL_NEWEST];
    }
    return table;
}

static void make_profile(int node, const char *name)
{
    static const uint32_t masks[] = {1, 3, ALL_GPUS};
    char path[256];
    const struct tccl_model *model = load_machine(name);
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_profile *profile = NULL;
    cleanup_json json_t *description = tccl_machine_to_json(machine);
    rig_path(path, "machine.json", node);
    CHECK_INT(tccl_write_json(path, 0644, description, ERR), 0);
    rig_path(path, "cache", node);
    char file[4096];
    snprintf(file, sizeof(file), "%s/%s.json", getenv("TCCL_MACHINES"), name);
    cleanup_json json_t *json = tccl_read_json(file, 1 << 20, ERR);
    MUST(tccl_profile_create(path, machine, "model", json, &profile, ERR));
    for (size_t i = 0; i < COUNT(masks); i++) {
        cleanup_table struct tccl_table *table = make_table(model, masks[i]);
        strcpy(table->machine, tccl_profile_id(profile));
        if (tccl_profile_put(profile, table, ERR) != 0)
            fprintf(stderr, "%s\n", check_err.text);
    }
    tccl_profile_close(profile);
}

/* The rig */

/* Every node's Port= comes from [peers], so each has a configuration of its own. */
static void make_nodes(void)
{
    char path[256];
    for (int i = 1; i <= NODES; i++) {
        snprintf(node_text[i - 1], sizeof(node_text[i - 1]), "n%d", i);
        node_names[i - 1] = node_text[i - 1];
        rig.port[i] = rig_port();
        rig_path(path, "", i);
        mkdir(path, 0755);
        make_profile(i, i % 2 ? "amd-4gpu" : "intel-4gpu");
    }
    rig_write_conf(NODES, "n1");
}

static struct tccl_step_key new_key(void)
{
    static uint32_t job = 100;
    return (struct tccl_step_key){.cluster = "test", .job = ++job};
}

static struct tccl_step new_join(struct tccl_step_key key, int node, int n_nodes)
{
    return (struct tccl_step){.key = key,
                              .node = node,
                              .n_nodes = n_nodes,
                              .nodes = node_names,
                              .gres = {0, 1, 2, 3},
                              .n_gres = 4,
                              .mode = TCCL_MODE_ON,
                              .uid = getuid(),
                              .gid = getgid(),
                              .timeout_ms = JOIN_MS,
                              .account = "tester"};
}

static int start_join(const struct tccl_step *join)
{
    char path[256];
    rig_path(path, "tccld.sock", join->node + 1);
    int fd = tccl_client_connect(path, WAIT_MS, ERR);
    if (fd < 0 || tccl_client_join(fd, join, WAIT_MS, ERR) != 0)
        fprintf(stderr, "%s\n", check_err.text);
    return fd;
}

static struct tccl_outcome end_join(int fd)
{
    struct tccl_outcome plan;
    int late = tccl_client_wait_plan(fd, WAIT_MS, &plan, ERR);
    if (late != 0) {
        fprintf(stderr, "no plan (%d): %s\n", late, check_err.text);
        check_failures++;
    }
    close(fd);
    return plan;
}

static struct tccl_outcome join_once(const struct tccl_step *join)
{
    return end_join(start_join(join));
}

static void leave(int node, const struct tccl_step_key *key)
{
    char path[256];
    rig_path(path, "tccld.sock", node + 1);
    cleanup_close int fd = tccl_client_connect(path, WAIT_MS, ERR);
    CHECK_INT(tccl_client_leave(fd, key, WAIT_MS, ERR), 0);
}

static json_t *ask(int node, json_t *filter, int *complete)
{
    char path[256], name[16];
    struct tccl_conf conf;
    rig_path(path, "tccl.conf", 0);
    snprintf(name, sizeof(name), "n%d", node + 1);
    CHECK_INT(tccl_conf_read(path, name, &conf, ERR), 0);
    json_t *records = tccl_client_query(&conf, filter, WAIT_MS, complete, ERR);
    if (!records)
        fprintf(stderr, "query: %s\n", check_err.text);
    tccl_conf_clear(&conf);
    json_decref(filter);
    return records;
}

/* The record of a step, as soon as it is there, as node sees it. */
static json_t *record_of(int node, uint32_t job)
{
    int complete;
    for (int ms = 0; ms < RIG_PATIENCE_MS; ms += 20) {
        cleanup_json json_t *records =
            ask(node, json_pack("{s:[{s:i}]}", "jobs", "job", (int)job), &complete);
        if (json_array_size(records) > 0) {
            CHECK_INT(json_array_size(records), 1);
            return json_incref(json_array_get(records, 0));
        }
        poll(NULL, 0, 20);
    }
    fprintf(stderr, "no record of job %u\n", job);
    check_failures++;
    return json_object();
}

static void check_record(int node, uint32_t job, const char *state, const char *reason)
{
    cleanup_json json_t *record = record_of(node, job);
    const char *found = json_string_value(json_object_get(record, "reason"));
    CHECK_STR(json_string_value(json_object_get(record, "state")), state);
    CHECK(found && strstr(found, reason) != NULL);
    if (found && !strstr(found, reason))
        fprintf(stderr, "reason: \"%s\", expected \"%s\"\n", found, reason);
}

static void check_fallback(struct tccl_outcome *plan, const char *reason)
{
    CHECK_INT(plan->state, TCCL_STATE_FALLBACK);
    CHECK(strstr(plan->reason, reason) != NULL);
    if (!strstr(plan->reason, reason))
        fprintf(stderr, "reason: \"%s\", expected \"%s\"\n", plan->reason, reason);
    CHECK(plan->path == NULL);
    CHECK(plan->ring == NULL);
    tccl_outcome_clear(plan);
}

static void await_partial(uint32_t job, const char *reason)
{
    for (int ms = 0; ms < RIG_PATIENCE_MS; ms += 20, poll(NULL, 0, 20)) {
        cleanup_json json_t *record = record_of(0, job);
        if (strcmp(json_string_value(json_object_get(record, "state")), "partial") == 0)
            break;
    }
    check_record(0, job, "partial", reason);
}

#endif
