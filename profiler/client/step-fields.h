/* step-fields.h: the facts of a job step, and the message JOIN that carries them. */
#ifndef TCCL_STEP_FIELDS_H
#define TCCL_STEP_FIELDS_H

#include <sys/types.h>

#include <jansson.h>

#include "client/conf.h"
#include "client/key.h"

enum {
    TCCL_MAX_NODES = 16384,        /* nodes of one step */
    TCCL_MAX_GRES = 64,            /* GRES indices in a JOIN */
    TCCL_MAX_TIMEOUT_MS = 3600000, /* longest wait a message may ask for */
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

/* JOIN. A message read holds all that its join points to. */
struct tccl_join_message {
    struct tccl_join join;
    json_t *json;
    const char **nodes;
    int gres[TCCL_MAX_GRES];
};
json_t *tccl_join_to_json(const struct tccl_join *join, struct tccl_error *err);
/* Returns NULL with err. */
struct tccl_join_message *tccl_join_from_json(json_t *json, struct tccl_error *err);
void tccl_join_free(struct tccl_join_message *message);

#endif
