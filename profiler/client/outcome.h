/* outcome.h: what comes of a step, and the message PLAN that carries it. */
#ifndef TCCL_CLIENT_OUTCOME_H
#define TCCL_CLIENT_OUTCOME_H

#include <jansson.h>

#include "client/conf.h"

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

json_t *tccl_plan_to_json(const struct tccl_plan *plan);
int tccl_plan_from_json(const json_t *json, struct tccl_plan *plan, struct tccl_error *err);
int tccl_state_parse(const char *name, struct tccl_error *err);

#endif
