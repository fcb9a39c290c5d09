/* step-fields.c: the table of a step's members, and the struct that holds them. */
#include "client/step-fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
    KEY = TCCL_IN_KEY | TCCL_IN_RECORD,
    KEY_MUST = KEY | TCCL_MUST_RECORD,
    JOIN = TCCL_IN_JOIN,
    JOIN_MUST = TCCL_IN_JOIN | TCCL_MUST_JOIN,
    TERM = TCCL_IN_JOIN | TCCL_IN_TERMS,
    TERM_MUST = TERM | TCCL_MUST_JOIN,
    RECORD = TCCL_IN_RECORD,
    RECORD_MUST = TCCL_IN_RECORD | TCCL_MUST_RECORD,
};

#define AT(member) offsetof(struct tccl_step, member), sizeof(((struct tccl_step *)NULL)->member)

#define TEXT_LINE(member, variable, use, filter, column, width)                                    \
    {#member, TCCL_FIELD_TEXT, use,      0,   TCCL_STEP_TEXT, AT(member), column,                  \
     width,   filter,          variable, NULL},
#define NUMBER_LINE(type, member, use, column, width)                                              \
    {#member, TCCL_FIELD_INT, use, 0, UINT32_MAX, AT(member), column, width, NULL, NULL, NULL},

/* clang-format off */
const struct tccl_field tccl_step_fields[] = {
    TCCL_STEP_FACTS(TEXT_LINE, NUMBER_LINE)
    {.name = "cluster", TCCL_FIELD_TEXT, KEY, 0, 63, AT(key.cluster), "Cluster", 10},
    {.name = "job", TCCL_FIELD_INT, KEY_MUST, 0, UINT32_MAX, AT(key.job)},
    {.name = "het_job", TCCL_FIELD_INT, KEY, 0, UINT32_MAX, AT(key.het_job)},
    {.name = "het_offset", TCCL_FIELD_INT, KEY, 0, UINT32_MAX, AT(key.het_offset)},
    {.name = "step", TCCL_FIELD_INT, KEY_MUST, 0, UINT32_MAX, AT(key.step)},
    {.name = "restart", TCCL_FIELD_INT, KEY, 0, UINT32_MAX, AT(key.restart), "Restarts", 8},
    {.name = "run", TCCL_FIELD_INT, KEY, 0, TCCL_MAX_RUN, AT(key.run)},
    {.name = "array_job_id", TCCL_FIELD_INT, TCCL_EVERYWHERE, 0, UINT32_MAX, AT(array_job)},
    {.name = "array_task_id", TCCL_FIELD_INT, TCCL_EVERYWHERE, 0, UINT32_MAX, AT(array_task)},
    {.name = "nodes", TCCL_FIELD_NODES, JOIN_MUST | RECORD, 1, TCCL_MAX_NODES, AT(nodes), "NodeList", 15},
    {.name = "n_nodes", TCCL_FIELD_INT, RECORD, 0, INT32_MAX, AT(n_nodes), "NNodes", 6},
    {.name = "node", TCCL_FIELD_INT, JOIN_MUST, 0, TCCL_MAX_NODES - 1, AT(node)},
    {.name = "gres", TCCL_FIELD_NUMBERS, JOIN_MUST, 0, TCCL_MAX_GRES, AT(gres)},
    {.name = "mode", TCCL_FIELD_WORD, TERM_MUST | RECORD, 0, 16, AT(mode), "Mode", 7, .words = tccl_mode_names},
    {.name = "timeout_ms", TCCL_FIELD_INT, JOIN_MUST, 1, TCCL_MAX_TIMEOUT_MS, AT(timeout_ms)},
    {.name = "min_nodes", TCCL_FIELD_INT, TERM, 0, INT32_MAX, AT(min_nodes)},
    {.name = "min_gpus", TCCL_FIELD_INT, TERM, 0, INT32_MAX, AT(min_gpus)},
    {.name = "min_gain", TCCL_FIELD_REAL, TERM, 0, 1000000000, AT(min_gain)},
    {.name = "policy", TCCL_FIELD_TEXT, TERM | RECORD, 0, TCCL_POLICY_NAME, AT(policy), "Policy", 10, "policies"},
    {.name = "reason", TCCL_FIELD_TEXT, JOIN, 0, TCCL_STEP_REASON, AT(reason)},
    {.name = "reporter", TCCL_FIELD_INT, RECORD_MUST, 0, TCCL_MAX_NODES - 1, AT(node), "Reporter", 8},
};
/* clang-format on */
const int tccl_n_step_fields = sizeof(tccl_step_fields) / sizeof(*tccl_step_fields);

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

struct tccl_step *tccl_step_copy(const struct tccl_step *step)
{
    struct tccl_step *copy = malloc(sizeof(*copy));
    if (!copy)
        return NULL;
    *copy = *step;
    copy->nodes = NULL;
    if (tccl_step_set_nodes(copy, (const char *const *)step->nodes, (size_t)step->n_nodes) == 0)
        return copy;
    free(copy);
    return NULL;
}

void tccl_step_clear(struct tccl_step *step)
{
    free(step->nodes);
    memset(step, 0, sizeof(*step));
}

void tccl_step_free(struct tccl_step *step)
{
    if (step)
        tccl_step_clear(step);
    free(step);
}
