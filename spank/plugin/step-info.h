/* step-info.h: what SPANK and the job's environment say of a step on this node. */
#ifndef TCCL_STEP_INFO_H
#define TCCL_STEP_INFO_H

#include <stdbool.h>

#include "client/hostlist.h"
#include "client/step-fields.h"

enum { STEP_MAX_GPUS = 32 };

/* The items that SPANK gives in slurmstepd; 0 where it has none (S_JOB_NNODES of a batch step). */
struct step_items {
    uint32_t job, step, n_nodes, node, restart;
    uint32_t array_job, array_task; /* array_task is beyond any where the job is of no array */
    uint64_t now;                   /* not SPANK's: unix time, milliseconds */
    uid_t uid;
    gid_t gid;
};

enum step_kind {
    STEP_TASKS,     /* of srun */
    STEP_BATCH,     /* the job script: its own step on one node */
    STEP_SHELL,     /* salloc's interactive step: gets no ring */
    STEP_CONTAINER, /* Slurm's extern step: no program of the user in it */
};

/* How a step lies on its nodes, as this one sees it. */
struct step_place {
    char name[TCCL_HOST_NAME + 1]; /* this node's Slurm name; "" if unknown */
    bool first;                    /* this node speaks for the step: the first of its nodes */
    bool placed;   /* nodes and node are sound: other nodes of the step can be told of this one */
    bool spans;    /* one of several heterogeneous components that srun started together */
    bool speaks;   /* spans: this node puts its component on record: it is the first of that */
    bool has_gpus; /* although n_gres is 0 where they can't be read */
};

/* A job that was submitted from within a task of an array inherits SLURM_ARRAY_JOB_ID and the like,
 * and slurmstepd believes them in its steps, not in its script's own, where slurmctld's word
 * counts. There this variable is set to the job's id, which its steps inherit: it is no task of an
 * array. */
#define STEP_NO_ARRAY "TCCL_NO_ARRAY"
/* In a batch step: must it be set? */
bool step_info_needs_no_array(const struct step_items *items, char *const *env);

/* By the step's number (S_JOB_STEPID). */
enum step_kind step_kind(uint32_t step);

/* Reads a step of kind STEP_TASKS or STEP_BATCH: all but mode, times and minimums. Nothing of env
 * is kept. Returns 0, or -1 with err: why this step can't have a ring, with name and first as far
 * as they are known. No GPUs is no error. tccl_step_clear frees. */
int step_info_read(const struct step_items *items, char *const *env, struct tccl_step *step,
                   struct step_place *place, struct tccl_error *err);

/* The same of a whole job, by the environment of its prolog or epilog on this node (which has no
 * job name), with a key for all its steps: TCCL_NO_STEP. Of items, job, uid and gid are looked at.
 */
int step_info_read_job(const struct step_items *items, char *const *env, struct tccl_step *step,
                       struct step_place *place, struct tccl_error *err);

#endif
