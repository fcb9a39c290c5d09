/* step-info.h: the properties of a step on this node, from SPANK items and the job's environment.
 */
#ifndef TCCL_STEP_INFO_H
#define TCCL_STEP_INFO_H

#include <stdbool.h>

#include "client/hostlist.h"
#include "client/step-fields.h"

enum { STEP_MAX_GPUS = 32 };

/* The SPANK items in slurmstepd; 0 if SPANK has none (S_JOB_NNODES of a batch step). */
struct step_items {
    uint32_t job, step, n_nodes, node, restart;
    uint32_t array_job,
        array_task; /* array_task is above the maximum if the job is not of an array */
    uint64_t now;   /* not SPANK's: unix time, milliseconds */
    uid_t uid;
    gid_t gid;
    const char *program; /* argv[0] of the tasks; NULL: not known */
};

/* Which daemon of an MPI launcher a step starts, by its argv[0] (may be NULL). */
enum step_daemon {
    STEP_DAEMON_NONE,
    STEP_DAEMON_BELOW, /* on all nodes that take part but the launcher's own, where ranks are its
                          children */
    STEP_DAEMON_ALL    /* on all nodes that take part */
};
enum step_daemon step_info_daemon(const char *program);

enum step_kind {
    STEP_TASKS,     /* of srun */
    STEP_BATCH,     /* the job script: its own step on one node */
    STEP_SHELL,     /* salloc's interactive step: gets no ring of its own */
    STEP_CONTAINER, /* Slurm's extern step: no program of the user in it */
};

/* The place of this node in the step. */
struct step_place {
    char name[TCCL_HOST_NAME + 1]; /* this node's Slurm name; "" if unknown */
    bool first;                    /* the first node of the step, which prints its messages */
    bool placed;   /* nodes and node are valid: other nodes can be told about this one */
    bool spans;    /* one of several heterogeneous components that srun started together */
    bool speaks;   /* if spans: this node is the first of its component, and records it */
    int job_nodes; /* of the job; 0: not known */
    bool has_gpus; /* set even if they cannot be read, and n_gres is 0 */
};

/* A job submitted from within an array task inherits SLURM_ARRAY_JOB_ID and the like, and
 * slurmstepd uses them for its steps. In the script's own step slurmctld's data are used, so there
 * it is known that the job is not an array task: this variable is set to the job's id, and its
 * steps inherit it.
 */
#define STEP_NO_ARRAY "TCCL_NO_ARRAY"
/* In a batch step: must STEP_NO_ARRAY be set? */
bool step_info_needs_no_array(const struct step_items *items, char *const *env);

/* By the step id (S_JOB_STEPID). */
enum step_kind step_kind(uint32_t step);

/* Reads a step of any kind but STEP_CONTAINER, except mode, timeouts and minimums. Borrows
 * nothing from env. Returns 0, or -1 with err, the reason why this step cannot have a ring; name
 * and first are set as far as known. A step without GPUs is no error. tccl_step_clear frees. */
int step_info_read(const struct step_items *items, char *const *env, struct tccl_step *step,
                   struct step_place *place, struct tccl_error *err);

#endif
