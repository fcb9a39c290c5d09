/* outcome.c: the message PLAN, as the plugin gets it. */
#include "client/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/frame.h"
#include "client/message.h"

static const char *const state_names[] = {"off", "applied", "fallback", "nothing-to-do"};

const char *tccl_state_name(enum tccl_state state)
{
    return state_names[state];
}

int tccl_state_parse(const char *name, struct tccl_error *err)
{
    for (int i = 0; i < (int)(sizeof(state_names) / sizeof(*state_names)); i++)
        if (strcmp(name, state_names[i]) == 0)
            return i;
    return tccl_fail(err, "state: \"%.32s\" is unknown", name);
}

json_t *tccl_plan_to_json(const struct tccl_plan *plan)
{
    cleanup_json json_t *json = tccl_message_new("plan");
    if (json_object_set_new(json, "state", json_string(tccl_state_name(plan->state))) != 0 ||
        json_object_set_new(json, "gbps", json_real(plan->gbps)) != 0 ||
        json_object_set_new(json, "baseline_gbps", json_real(plan->baseline_gbps)) != 0 ||
        tccl_put_text(json, "reason", plan->reason, sizeof(plan->reason) - 1) != 0 ||
        tccl_put_text(json, "path", plan->path, sizeof(plan->path) - 1) != 0 ||
        tccl_put_text(json, "policy", plan->policy, TCCL_POLICY_NAME) != 0 ||
        tccl_put_text(json, "ring", plan->ring, TCCL_FRAME_UNIX / 2) != 0)
        return NULL;
    return tccl_steal(json);
}

int tccl_plan_from_json(const json_t *json, struct tccl_plan *plan, struct tccl_error *err)
{
    const char *state, *reason, *path, *policy, *ring;
    memset(plan, 0, sizeof(*plan));
    if (tccl_get_text(json, "state", 32, &state, err) != 0 ||
        tccl_get_text(json, "reason", sizeof(plan->reason) - 1, &reason, err) != 0 ||
        tccl_get_text(json, "path", sizeof(plan->path) - 1, &path, err) != 0 ||
        tccl_get_optional_text(json, "policy", TCCL_POLICY_NAME, &policy, err) != 0 ||
        tccl_get_optional_text(json, "ring", TCCL_FRAME_UNIX, &ring, err) != 0 ||
        tccl_get_number(json, "gbps", &plan->gbps, err) != 0 ||
        tccl_get_number(json, "baseline_gbps", &plan->baseline_gbps, err) != 0)
        return tccl_fail_in(err, "PLAN");
    int parsed = tccl_state_parse(state, err);
    if (parsed < 0)
        return tccl_fail_in(err, "PLAN");
    plan->state = (enum tccl_state)parsed;
    strcpy(plan->reason, reason);
    strcpy(plan->path, path);
    strcpy(plan->policy, policy ? policy : "");
    if (ring && !(plan->ring = strdup(ring)))
        return tccl_fail(err, "out of memory");
    return 0;
}

void tccl_plan_clear(struct tccl_plan *plan)
{
    free(plan->ring);
    memset(plan, 0, sizeof(*plan));
}
