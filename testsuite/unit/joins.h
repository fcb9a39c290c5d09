/* joins.h: a row of NODES tccld in a rig (rig.h), with profiles, and what tests do with them:
 * JOINs, LEAVEs, and what is on record. NODES is whoever includes it to say. */
#pragma once

#include "base/clock.h"
#include "base/fileio.h"
#include "client/client.h"
#include "client/frame.h"
#include "machines.h"
#include "nccl/baseline.h"
#include "owned.h"
#include "profile/cache.h"
#include "rig.h"

OWNED(profile, struct tccl_profile, tccl_profile_close)

/* JOIN_MS is what a step gives tccld that all come to; what is to end without one of them says
 * less. */
enum { WAIT_MS = 150000, JOIN_MS = 60000 };

static char node_text[NODES][8];
static char *node_names[NODES];

/* A model's profile with these tables, for a node. */
static inline void put_profile(int node, const char *name, struct tccl_table *const *tables, int n)
{
    const struct tccl_machine *machine = machine_of(name);
    owned(profile) struct tccl_profile *profile = NULL;
    cleanup_json json_t *description = tccl_machine_to_json(machine),
                        *json = tccl_read_json(machine_file(name), 1 << 22, ERR);
    MUST(tccl_write_json(rig_at("machine.json", node), 0644, description, ERR));
    MUST(tccl_profile_create(rig_at("cache", node), machine, "model", json, &profile, ERR));
    for (int i = 0; i < n; i++) {
        strcpy(tables[i]->source, "model");
        strcpy(tables[i]->machine, tccl_profile_id(profile));
        MUST(tccl_profile_put(profile, tables[i], ERR));
    }
}

/* The rig. Every node's Port= comes from [peers], so each has a configuration of its own. */
static inline void make_nodes(void (*make_profile)(int node), const char *home)
{
    for (int i = 1; i <= NODES; i++) {
        snprintf(node_text[i - 1], sizeof(node_text[i - 1]), "n%d", i);
        node_names[i - 1] = node_text[i - 1];
        rig.port[i] = rig_port();
        mkdir(rig_at("", i), 0755);
        make_profile(i);
    }
    rig_write_conf(NODES, home);
    for (int i = 1; i <= NODES; i++)
        rig_start_tccld(i);
}

/* Other copies of a test may run, whose files in shared memory are other ones. */
static inline struct tccl_step_key new_key(void)
{
    static uint32_t job;
    job = job > 0 ? job : (uint32_t)getpid() % 1000000 * 1000;
    return (struct tccl_step_key){.cluster = "test", .job = ++job};
}

static inline struct tccl_step new_join(struct tccl_step_key key, int node, int n_nodes)
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

/* To the tccld of a node, from 1 on. */
static inline int connect_to(int node)
{
    int fd = tccl_frame_connect(rig_at("tccld.sock", node), tccl_now_ms() + WAIT_MS, ERR);
    if (fd < 0)
        fprintf(stderr, "%s\n", check_err.text);
    return fd;
}

/* By the tccld of another node than that which the step names. */
static inline int join_by(int node, const struct tccl_step *join)
{
    int fd = connect_to(node);
    CHECK_OK(tccl_client_join(fd, join, WAIT_MS, ERR));
    return fd;
}

static inline int start_join(const struct tccl_step *join)
{
    return join_by(join->node + 1, join);
}

static inline struct tccl_outcome end_join(int fd)
{
    struct tccl_outcome plan;
    int late = tccl_client_wait_plan(fd, WAIT_MS, &plan, ERR);
    CHECK_NO(late != 0, "no plan (%d): %s\n", late, check_err.text);
    close(fd);
    return plan;
}

static inline struct tccl_outcome join_once(const struct tccl_step *join)
{
    return end_join(start_join(join));
}

static inline void leave(int node, const struct tccl_step_key *key)
{
    cleanup_close int fd = connect_to(node + 1);
    CHECK_INT(tccl_client_leave(fd, key, WAIT_MS, ERR), 0);
}

static inline json_t *ask(int node, json_t *filter, int *complete)
{
    cleared_by(tccl_conf_clear) struct tccl_conf conf = {0};
    CHECK_INT(tccl_conf_read(rig_at("tccl.conf", 0), node_names[node], &conf, ERR), 0);
    json_t *records = tccl_client_query(&conf, filter, WAIT_MS, true, complete, NULL, ERR);
    if (!records)
        fprintf(stderr, "query: %s\n", check_err.text);
    json_decref(filter);
    return records;
}

/* All records of a job, as node sees them. */
static inline json_t *records_of(int node, uint32_t job)
{
    int complete;
    return ask(node, json_pack("{s:[{s:i}]}", "jobs", "job", (int)job), &complete);
}

/* The record of a step, as soon as it is there. */
static inline json_t *record_of(int node, uint32_t job)
{
    for (int ms = 0; ms < RIG_PATIENCE_MS; ms += 20) {
        cleanup_json json_t *records = records_of(node, job);
        if (json_array_size(records) > 0) {
            CHECK_INT(json_array_size(records), 1);
            return json_incref(json_array_get(records, 0));
        }
        poll(NULL, 0, 20);
    }
    CHECK_NO(true, "no record of job %u\n", job);
    return json_object();
}
