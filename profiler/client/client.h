/* client.h: what the plugin and the tools say to tccld. Every wait has a deadline; nothing here
 * logs. Messages and limits: profiler/client/README.md. */
#ifndef TCCL_CLIENT_H
#define TCCL_CLIENT_H

#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/error.h"
#include "client/conf.h"

/* Job step, unique over requeues and het components. */
struct tccl_step_key {
    char cluster[64];
    uint32_t job;     /* SLURM job id (of the component) */
    uint32_t het_job; /* leader's job id, 0 if not heterogeneous */
    uint32_t het_offset;
    uint32_t step;    /* Slurm's number; SLURM_BATCH_SCRIPT and others as they are */
    uint32_t restart; /* SLURM_RESTART_COUNT */
    uint64_t run;     /* of a batch step, which is not told its restart count: when it started (unix
                         time, milliseconds); else 0 */
};

/* What a node says when a step starts. Pointers are borrowed for the call. */
struct tccl_join {
    struct tccl_step_key key;
    int node; /* index i of this node in the step */
    int n_nodes;
    const char *const *nodes; /* all node names, in NCCL's order */
    const int *gres;          /* GRES indices of the step's GPUs on this node */
    int n_gres;
    enum tccl_mode mode; /* OFF: only a record is wanted, no answer */
    uid_t uid;
    gid_t gid;
    int timeout_ms;
    int min_nodes, min_gpus; /* of the site policy; looked at in mode auto */
    double min_gain;         /* times NCCL's own choice; 0 or 1: any gain will do */
    const char *policy;      /* the site's rule for this step; NULL or "": none */
    const char *user, *partition, *job_name, *account; /* may be NULL */
    uint32_t array_job, array_task;                    /* of a task of a job array, else 0 */
    const char *reason; /* non-NULL: this node can't take part; why */
};

enum tccl_state { TCCL_STATE_OFF, TCCL_STATE_APPLIED, TCCL_STATE_FALLBACK, TCCL_STATE_NOTHING };
const char *tccl_state_name(enum tccl_state state); /* "off" "applied" "fallback" "nothing-to-do" */

/* tccld's answer. */
struct tccl_plan {
    enum tccl_state state;
    char reason[512];                  /* why not applied; "" when applied */
    double gbps;                       /* the ring's bandwidth, GB/s */
    double baseline_gbps;              /* NCCL's own choice, GB/s; 0 if unknown */
    char path[4096];                   /* plan file; "" if none */
    char policy[TCCL_POLICY_NAME + 1]; /* node 0's rule: its Environment is that of all nodes */
    char *ring; /* notation, up to 4 KiB; else this node's chain and "…"; NULL if none */
};
void tccl_plan_clear(struct tccl_plan *plan);

/* Connects to a tccld's unix socket. Returns a close-on-exec, non-blocking descriptor, or -1 with
 * err. */
int tccl_client_connect(const char *socket, int timeout_ms, struct tccl_error *err);
/* Returns 0, or -1 with err. */
int tccl_client_join(int fd, const struct tccl_join *join, int timeout_ms, struct tccl_error *err);
/* Waits for the plan. Returns 0; 1 when the time is over; -1 with err. */
int tccl_client_wait_plan(int fd, int timeout_ms, struct tccl_plan *plan, struct tccl_error *err);

/* What a job's prolog knows of its steps to come: a join with TCCL_NO_STEP (wire.h) in its key;
 * mode and minimums are not looked at. No answer is awaited. Returns 0, or -1 with err. */
int tccl_client_announce(int fd, const struct tccl_join *join, int timeout_ms,
                         struct tccl_error *err);

/* The step's end on this node (remove its plan files), or, with
 * TCCL_NO_STEP, the job's. Returns 0 or -1. */
int tccl_client_leave(int fd, const struct tccl_step_key *key, int timeout_ms,
                      struct tccl_error *err);

/* Asks the records' home (AccountingHost over munge, else this node's tccld over its socket) for
 * records: filter is a JSON object (profiler/client/README.md, QUERY). Returns a new reference to
 * an array of records in the filter's order, or NULL with err. *complete = 0 when only this node's
 * records are seen. */
json_t *tccl_client_query(const struct tccl_conf *conf, const json_t *filter, int timeout_ms,
                          int *complete, struct tccl_error *err);

/* The same for a list that may be long, and comes in many answers: timeout_ms is for each of them.
 */
json_t *tccl_client_query_long(const struct tccl_conf *conf, const json_t *filter, int timeout_ms,
                               int *complete, struct tccl_error *err);

/* Asks them what the records that a filter finds have in common (profiler/client/README.md,
 * SUMMARY). Returns a new reference to an object, or NULL with err. */
json_t *tccl_client_summary(const struct tccl_conf *conf, const json_t *filter, int timeout_ms,
                            int *complete, struct tccl_error *err);

#endif
