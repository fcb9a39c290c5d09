/* step-fields.c: the table of the members of steps, outcomes and records, and what struct tccl_step
 * owns. */
#include "client/step-fields.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/outcome.h"

/* Words for what is used together. */
enum {
    KEY = TCCL_IN_KEY | TCCL_IN_RECORD | TCCL_IN_CONFIRMATION,
    KEY_MUST = KEY | TCCL_MUST_RECORD,
    JOIN = TCCL_IN_JOIN,
    JOIN_MUST = TCCL_IN_JOIN | TCCL_MUST_JOIN,
    PLAN = TCCL_IN_PLAN,
    PLAN_MUST = TCCL_IN_PLAN | TCCL_MUST_PLAN,
    RECORD = TCCL_IN_RECORD,
    RECORD_MUST = TCCL_IN_RECORD | TCCL_MUST_RECORD,
    CONFIRMATION = TCCL_IN_CONFIRMATION,
    MEASURED = TCCL_IN_CONFIRMATION | TCCL_MEASURED,
};
#define COUNT 1000000000
#define GBPS 1000000000
#define MICROSECONDS 1000000000000
#define LATEST 253402300799 /* the end of the year 9999 */

#define STEP(member)                                                                               \
    TCCL_OF_STEP, offsetof(struct tccl_step, member), sizeof(((struct tccl_step *)NULL)->member)
#define OUTCOME(member)                                                                            \
    TCCL_OF_OUTCOME, offsetof(struct tccl_outcome, member),                                        \
        sizeof(((struct tccl_outcome *)NULL)->member)
#define RECORD_ONLY TCCL_OF_RECORD, 0, 0

/* clang-format off */
#define TEXT_LINE(member, variable, use, filter, column, width) \
    {#member, TCCL_FIELD_TEXT, use, 0, TCCL_STEP_TEXT, STEP(member), column, width, filter, variable, NULL},
#define NUMBER_LINE(type, member, use, column, width) \
    {#member, TCCL_FIELD_INT, use, 0, UINT32_MAX, STEP(member), column, width, NULL, NULL, NULL},

/* The key, then the rest in the order of tcclacct's columns. */
const struct tccl_field tccl_step_fields[] = {
    {.name = "job", TCCL_FIELD_INT, KEY_MUST, 1, UINT32_MAX, STEP(key.job)},
    {.name = "step", TCCL_FIELD_INT, KEY_MUST, 0, UINT32_MAX, STEP(key.step)},
    {.name = "het_job", TCCL_FIELD_INT, KEY, 0, UINT32_MAX, STEP(key.het_job)},
    {.name = "het_offset", TCCL_FIELD_INT, KEY, 0, UINT32_MAX, STEP(key.het_offset)},
    {.name = "restart", TCCL_FIELD_INT, KEY, 0, UINT32_MAX, STEP(key.restart), "Restarts", 8},
    {.name = "run", TCCL_FIELD_INT, KEY, 0, TCCL_MAX_RUN, STEP(key.run)},
    {.name = "cluster", TCCL_FIELD_TEXT, KEY, 0, TCCL_KEY_CLUSTER, STEP(key.cluster), "Cluster", 10},
    TCCL_STEP_FACTS(TEXT_LINE, NUMBER_LINE)
    {.name = "user", TCCL_FIELD_TEXT, 0, 0, TCCL_STEP_TEXT, RECORD_ONLY, "User", 9},
    {.name = "array_job_id", TCCL_FIELD_INT, TCCL_EVERYWHERE, 0, UINT32_MAX, STEP(array_job)},
    {.name = "array_task_id", TCCL_FIELD_INT, TCCL_EVERYWHERE, 0, UINT32_MAX, STEP(array_task)},
    {.name = "node", TCCL_FIELD_INT, JOIN_MUST, 0, TCCL_MAX_NODES - 1, STEP(node)},
    {.name = "n_nodes", TCCL_FIELD_INT, RECORD, 0, COUNT, STEP(n_nodes), "NNodes", 6},
    {.name = "nodes", TCCL_FIELD_NODES, JOIN_MUST | RECORD, 0, TCCL_MAX_NODE_LIST, STEP(nodes), "NodeList", 15},
    {.name = "first_node", TCCL_FIELD_TEXT, RECORD, 0, TCCL_STEP_TEXT, RECORD_ONLY, "FirstNode", 10},
    {.name = "gres", TCCL_FIELD_NUMBERS, JOIN_MUST, 0, TCCL_MAX_GRES, STEP(gres)},
    {.name = "gpus", TCCL_FIELD_COUNT, PLAN | RECORD, 0, COUNT, OUTCOME(gpus), "GPUs", 5},
    {.name = "mode", TCCL_FIELD_WORD, JOIN_MUST | RECORD, 0, 31, STEP(mode), "Mode", 7, .words = tccl_mode_names},
    {.name = "timeout_ms", TCCL_FIELD_INT, JOIN_MUST, 1, TCCL_MAX_TIMEOUT_MS, STEP(timeout_ms)},
    {.name = "waited_ms", TCCL_FIELD_INT, JOIN, 0, TCCL_MAX_TIMEOUT_MS, STEP(waited_ms)},
    {.name = "launch", TCCL_FIELD_INT, JOIN, 0, TCCL_LAUNCH_BELOW, STEP(launch)},
    {.name = "min_nodes", TCCL_FIELD_INT, JOIN, 0, INT32_MAX, STEP(min_nodes)},
    {.name = "min_gpus", TCCL_FIELD_INT, JOIN, 0, INT32_MAX, STEP(min_gpus)},
    {.name = "min_gain", TCCL_FIELD_REAL, JOIN, 0, GBPS, STEP(min_gain)},
    {.name = "trial", TCCL_FIELD_INT, JOIN, 0, 50000, STEP(trial)},
    {.name = "max_rings", TCCL_FIELD_INT, JOIN, 0, TCCL_NODE_RINGS, STEP(max_rings)},
    {.name = "silent", TCCL_FIELD_BOOL, JOIN, 0, 1, STEP(silent)},
    {.name = "hidden", TCCL_FIELD_BOOL, JOIN, 0, 1, STEP(hidden)},
    {.name = "whole", TCCL_FIELD_BOOL, JOIN, 0, 1, STEP(whole)},
    {.name = "by_claims", TCCL_FIELD_BOOL, JOIN, 0, 1, STEP(by_claims)},
    {.name = "foreseen", TCCL_FIELD_TEXT, JOIN, 0, TCCL_STEP_REASON, STEP(foreseen)},
    {.name = "reason", TCCL_FIELD_TEXT, JOIN, 0, TCCL_STEP_REASON, STEP(reason)},
    {.name = "reason_class", TCCL_FIELD_WORD, JOIN, 0, 31, STEP(cause), .words = tccl_reason_words},
    {.name = "state", TCCL_FIELD_WORD, PLAN_MUST | RECORD_MUST, 1, 31, OUTCOME(state), "State", 8, .words = tccl_state_names},
    {.name = "reason", TCCL_FIELD_TEXT, PLAN_MUST | RECORD, 0, TCCL_OUTCOME_REASON, OUTCOME(reason), "Reason", -40},
    {.name = "reason_class", TCCL_FIELD_WORD, PLAN | RECORD, 0, 31, OUTCOME(cause), "Class", 17, .words = tccl_reason_words},
    {.name = "reason_node", TCCL_FIELD_TEXT, PLAN | RECORD, 0, TCCL_HOST_NAME, OUTCOME(reason_node), "ReasonNode", 10},
    {.name = "built", TCCL_FIELD_TEXT, CONFIRMATION, 0, 31, RECORD_ONLY, "Built", 8},
    {.name = "built_reason", TCCL_FIELD_TEXT, CONFIRMATION, 0, TCCL_OUTCOME_REASON, RECORD_ONLY, "BuiltReason", -40},
    {.name = "built_class", TCCL_FIELD_TEXT, CONFIRMATION, 0, 31, RECORD_ONLY},
    {.name = "built_node", TCCL_FIELD_TEXT, CONFIRMATION, 0, TCCL_HOST_NAME, RECORD_ONLY},
    {.name = "later", TCCL_FIELD_COUNT, CONFIRMATION, 0, COUNT, RECORD_ONLY, "Later", 5},
    {.name = "slowed", TCCL_FIELD_TEXT, CONFIRMATION, 0, TCCL_OUTCOME_REASON, RECORD_ONLY, "Slowed", -40},
    {.name = "nccl", TCCL_FIELD_TEXT, CONFIRMATION, 0, 31, RECORD_ONLY, "NCCL", 8},
    {.name = "nccl_gbps", TCCL_FIELD_REAL, CONFIRMATION, 0, GBPS, RECORD_ONLY, "NCCLGBps", 8},
    {.name = "achieved_gbps", TCCL_FIELD_REAL, MEASURED, 0, GBPS, RECORD_ONLY, "AchievedGBps", 12},
    {.name = "achieved_median", TCCL_FIELD_REAL, MEASURED, 0, GBPS, RECORD_ONLY, "AchievedMedian", 14},
    {.name = "achieved_share", TCCL_FIELD_REAL, 0, 0, GBPS, RECORD_ONLY, "AchievedShare", 13},
    {.name = "achieved_with", TCCL_FIELD_TEXT, MEASURED, 0, 31, RECORD_ONLY, "AchievedWith", 12},
    {.name = "achieved_algorithm", TCCL_FIELD_TEXT, MEASURED, 0, 31, RECORD_ONLY, "AchievedAlgorithm", 17},
    {.name = "achieved_from", TCCL_FIELD_COUNT, MEASURED, 0, INT64_MAX, RECORD_ONLY, "AchievedFrom", 12},
    {.name = "samples", TCCL_FIELD_COUNT, MEASURED, 0, INT32_MAX, RECORD_ONLY, "Samples", 7},
    {.name = "sent_bytes", TCCL_FIELD_COUNT, MEASURED, 0, INT64_MAX, RECORD_ONLY, "SentBytes", 12},
    {.name = "captured", TCCL_FIELD_COUNT, MEASURED, 0, UINT32_MAX, RECORD_ONLY, "Captured", 8},
    {.name = "sent_share", TCCL_FIELD_REAL, MEASURED, 0, 1, RECORD_ONLY, "SentShare", 9},
    {.name = "gbps", TCCL_FIELD_REAL, PLAN_MUST | RECORD, 0, GBPS, OUTCOME(gbps), "GBps", 8},
    {.name = "baseline_gbps", TCCL_FIELD_REAL, PLAN_MUST | RECORD, 0, GBPS, OUTCOME(baseline_gbps), "BaselineGBps", 12},
    {.name = "baseline_rings", TCCL_FIELD_LONG, RECORD, 0, TCCL_OUTCOME_BASELINE, OUTCOME(baseline_rings), "BaselineRings", -60},
    {.name = "ratio", TCCL_FIELD_REAL, RECORD, 0, GBPS, RECORD_ONLY, "Ratio", 6},
    {.name = "bound_gbps", TCCL_FIELD_REAL, PLAN_MUST | RECORD, 0, GBPS, OUTCOME(bound_gbps), "BoundGBps", 9},
    {.name = "alone_gbps", TCCL_FIELD_REAL, PLAN | RECORD, 0, GBPS, OUTCOME(alone_gbps), "AloneGBps", 9},
    {.name = "neighbours", TCCL_FIELD_COUNT, PLAN | RECORD, 0, COUNT, OUTCOME(neighbours), "Neighbours", 10},
    {.name = "neighbours_by", TCCL_FIELD_TEXT, PLAN | RECORD, 0, TCCL_OUTCOME_BASIS, OUTCOME(neighbours_by), "NeighboursBy", 12},
    {.name = "beside", TCCL_FIELD_LONG, RECORD, 0, TCCL_OUTCOME_BESIDE, OUTCOME(beside), "Beside", -60},
    {.name = "placed_gbps", TCCL_FIELD_REAL, RECORD, 0, GBPS, OUTCOME(placed_gbps), "PlacedGBps", 10},
    {.name = "solve_us", TCCL_FIELD_MICROSECONDS, RECORD, 0, MICROSECONDS, OUTCOME(solve_us), "SolveTime", 9},
    {.name = "start", TCCL_FIELD_TIME, PLAN | RECORD_MUST | CONFIRMATION, 0, LATEST, OUTCOME(start), "Start", 19},
    {.name = "arrived", TCCL_FIELD_TIME, 0, 0, LATEST, RECORD_ONLY, "Arrived", 19},
    {.name = "node_class", TCCL_FIELD_TEXT, RECORD, 0, TCCL_OUTCOME_CLASS, OUTCOME(node_class), "NodeClass", 15},
    {.name = "source", TCCL_FIELD_TEXT, PLAN_MUST | RECORD, 0, TCCL_OUTCOME_SOURCE, OUTCOME(source), "Source", 6},
    {.name = "rings", TCCL_FIELD_COUNT, PLAN | RECORD, 0, TCCL_NODE_RINGS, OUTCOME(rings), "Rings", 5},
    {.name = "fewer_rings", TCCL_FIELD_TEXT, RECORD, 0, TCCL_OUTCOME_FEWER, OUTCOME(fewer_rings), "FewerRings", -40},
    {.name = "degraded", TCCL_FIELD_TEXT, PLAN | RECORD, 0, TCCL_OUTCOME_DEGRADED, OUTCOME(degraded), "Degraded", -40},
    {.name = "ring", TCCL_FIELD_LONG, PLAN | RECORD, 0, TCCL_OUTCOME_RING, OUTCOME(ring), "Ring", -60},
    {.name = "claimed", TCCL_FIELD_TEXT, RECORD, 0, TCCL_STEP_TEXT, RECORD_ONLY, "Claimed", 10},
    {.name = "reporter", TCCL_FIELD_INT, RECORD_MUST, 0, COUNT, STEP(node), "Reporter", 8},
    {.name = "policy", TCCL_FIELD_TEXT, JOIN | RECORD, 0, TCCL_POLICY_NAME, STEP(policy), "Policy", 10, "policies"},
    {.name = "traffic_class", TCCL_FIELD_TEXT, JOIN | RECORD, 0, TCCL_TRAFFIC_CLASS, STEP(traffic_class), "TrafficClass", 12},
    {.name = "policy", TCCL_FIELD_TEXT, PLAN, 0, TCCL_POLICY_NAME, OUTCOME(policy)},
    {.name = "recorded", TCCL_FIELD_BOOL, PLAN, 0, 1, OUTCOME(recorded)},
    {.name = "required", TCCL_FIELD_BOOL, PLAN, 0, 1, OUTCOME(required)},
    {.name = "groups", TCCL_FIELD_BOOL, PLAN, 0, 1, OUTCOME(groups)},
    {.name = "moved", TCCL_FIELD_BOOL, PLAN, 0, 1, OUTCOME(moved)},
    {.name = "agreed", TCCL_FIELD_BOOL, PLAN, 0, 1, OUTCOME(agreed)},
    {.name = "measure", TCCL_FIELD_BOOL, PLAN, 0, 1, OUTCOME(measure)},
    {.name = "path", TCCL_FIELD_LONG, PLAN, 0, PATH_MAX, OUTCOME(path)},
};
/* clang-format on */
const int tccl_n_step_fields = sizeof(tccl_step_fields) / sizeof(*tccl_step_fields);
_Static_assert(sizeof(tccl_step_fields) / sizeof(*tccl_step_fields) <= TCCL_MOST_FIELDS,
               "room for one more field is needed");

bool tccl_field_is_text(const struct tccl_field *field)
{
    return field->type == TCCL_FIELD_TEXT || field->type == TCCL_FIELD_WORD ||
           field->type == TCCL_FIELD_NODES || field->type == TCCL_FIELD_LONG;
}

int tccl_step_set_nodes(struct tccl_step *step, const char *const *names, size_t count)
{
    size_t size = count * sizeof(char *) + 1;
    for (size_t i = 0; i < count; i++)
        size += strlen(names[i]) + 1;
    char **nodes = malloc(size);
    if (!nodes)
        return -1;
    char *text = (char *)(nodes + count);
    for (size_t i = 0; i < count; i++) {
        nodes[i] = text;
        text = stpcpy(text, names[i]) + 1;
    }
    free(step->nodes);
    step->nodes = nodes;
    step->n_nodes = (int)count;
    return 0;
}

void tccl_step_clear(struct tccl_step *step)
{
    free(step->nodes);
    *step = (struct tccl_step){.n_nodes = 0};
}

void tccl_step_free(struct tccl_step *step)
{
    if (step)
        tccl_step_clear(step);
    free(step);
}
