/* outcome.c: the message PLAN. Its plain members are in the table (step-fields.c). */
#include "client/outcome.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/message.h"
#include "client/step-fields.h"

/* Those beside it may have several rings for one of its own, so that an equal part is no bound; a
 * quarter of that no sharing leaves. */
bool tccl_outcome_collapses(const struct tccl_outcome *outcome, double gbps)
{
    return outcome->neighbours > 0 && gbps > 0 && strcmp(outcome->neighbours_by, "bounds") != 0 &&
           gbps * (double)(outcome->neighbours + 1) < 0.25 * outcome->alone_gbps;
}

void tccl_outcome_clear(struct tccl_outcome *outcome)
{
    free(outcome->path);
    free(outcome->ring);
    free(outcome->beside);
    free(outcome->baseline_rings);
    free(outcome->choices);
    memset(outcome, 0, sizeof(*outcome));
}

void tccl_outcome_say(struct tccl_outcome *outcome, enum tccl_reason cause, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(outcome->reason, sizeof(outcome->reason), fmt, args);
    va_end(args);
    outcome->cause = *outcome->reason && !cause ? TCCL_REASON_OTHER : cause;
    *outcome->reason_node = '\0';
}

enum tccl_state tccl_outcome_told(const struct tccl_outcome *outcome)
{
    bool foreseen = outcome->state == TCCL_STATE_PLANNED && outcome->reason[0];
    return foreseen ? TCCL_STATE_FAILED : outcome->state;
}

/* How many NICs a choice has: those of an older tccld are of one ring. */
static int rings_of(const struct tccl_outcome *outcome)
{
    return outcome->rings > 1 ? (int)outcome->rings : 1;
}

/* [entry NIC, exit NIC, those of the next ring, …, nodes]; NULL if out of memory. */
static json_t *choice_to_json(const struct tccl_node_nics *choice, int rings, int nodes)
{
    cleanup_json json_t *array = json_array();
    int failed = 0;
    for (int i = 0; i < rings; i++) {
        failed |= json_array_append_new(array, json_integer(choice->entry[i]));
        failed |= json_array_append_new(array, json_integer(choice->exit[i]));
    }
    failed |= json_array_append_new(array, json_integer(nodes));
    return failed ? NULL : tccl_steal(array);
}

static json_t *choices_to_json(const struct tccl_node_nics *choices, int rings, int count)
{
    cleanup_json json_t *array = json_array();
    for (int i = 0, same; i < count; i += same) {
        for (same = 1;
             i + same < count && memcmp(&choices[i + same], &choices[i], sizeof(*choices)) == 0;)
            same++;
        if (json_array_append_new(array, choice_to_json(&choices[i], rings, same)) != 0)
            return NULL;
    }
    return tccl_steal(array);
}

TCCL_IS_LIST(struct tccl_outcome, baselines);
static const struct tccl_field baselines = {.name = "baselines",
                                            TCCL_FIELD_BASELINES,
                                            .max = TCCL_OUTCOME_BASELINES,
                                            .at = offsetof(struct tccl_outcome, baselines),
                                            .size = sizeof(((struct tccl_outcome *)0)->baselines)};

json_t *tccl_plan_to_json(const struct tccl_outcome *outcome, const struct tccl_step_key *key,
                          int first, int end)
{
    cleanup_json json_t *json = tccl_message_new("plan");
    if (json_object_set_new(json, "key", tccl_key_to_json(key)) != 0 ||
        tccl_fields_put(json, TCCL_IN_PLAN, TCCL_OF_OUTCOME, outcome) != 0 ||
        tccl_field_put(json, &baselines, false, outcome) != 0)
        return NULL;
    if (outcome->state == TCCL_STATE_PLANNED && first < end &&
        json_object_set_new(json, "choices",
                            choices_to_json(outcome->choices + (first - outcome->first),
                                            rings_of(outcome), end - first)) != 0)
        return NULL;
    return tccl_steal(json);
}

static int read_nic(const json_t *json, int8_t *nic)
{
    json_int_t number = json_is_integer(json) ? json_integer_value(json) : TCCL_NODE_NICS;
    if (number < -1 || number >= TCCL_NODE_NICS)
        return -1;
    *nic = (int8_t)number;
    return 0;
}

/* Returns for how many nodes it is, at most so many; 0: it is none. */
static int read_choice(const json_t *json, int rings, int most, struct tccl_node_nics *choice)
{
    const json_t *nodes = json_array_get(json, 2 * (size_t)rings);
    json_int_t count = json_is_integer(nodes) ? json_integer_value(nodes) : 0;
    if (json_array_size(json) != 2 * (size_t)rings + 1 || count < 1 || count > most)
        return 0;
    for (size_t i = 0; i < (size_t)rings; i++)
        if (read_nic(json_array_get(json, 2 * i), &choice->entry[i]) != 0 ||
            read_nic(json_array_get(json, 2 * i + 1), &choice->exit[i]) != 0)
            return 0;
    return (int)count;
}

static int read_choices(struct tccl_outcome *outcome, const json_t *json, struct tccl_error *err)
{
    int filled = 0;
    outcome->choices = calloc((size_t)outcome->n_choices + 1, sizeof(*outcome->choices));
    if (!outcome->choices)
        return tccl_fail(err, "out of memory");
    for (size_t i = 0; i < json_array_size(json); i++) {
        struct tccl_node_nics choice = {0};
        int count = read_choice(json_array_get(json, i), rings_of(outcome),
                                outcome->n_choices - filled, &choice);
        if (count == 0)
            return tccl_fail(err, "choices: entry %zu can't be read", i);
        while (count-- > 0)
            outcome->choices[filled++] = choice;
    }
    return filled == outcome->n_choices
               ? 0
               : tccl_fail(err, "choices: for %d nodes instead of %d", filled, outcome->n_choices);
}

static int read_plan(const json_t *json, const struct tccl_step_key *key,
                     struct tccl_outcome *outcome, struct tccl_error *err)
{
    struct tccl_step_key theirs;
    if (tccl_key_from_json(json_object_get(json, "key"), &theirs, err) != 0)
        return -1;
    if (key && !tccl_key_equal(key, &theirs))
        return tccl_fail(err, "it is the plan of another step");
    if (tccl_fields_get(json, TCCL_IN_PLAN, TCCL_OF_OUTCOME, outcome, err) != 0 ||
        tccl_field_get(json, &baselines, false, outcome, err) != 0)
        return -1;
    if (outcome->reason[0] && !outcome->cause)
        outcome->cause = TCCL_REASON_OTHER; /* of an older tccld */
    return outcome->state == TCCL_STATE_PLANNED && outcome->n_choices > 0
               ? read_choices(outcome, json_object_get(json, "choices"), err)
               : 0;
}

int tccl_plan_from_json(const json_t *json, const struct tccl_step_key *key, int first, int end,
                        struct tccl_outcome *outcome, struct tccl_error *err)
{
    *outcome = (struct tccl_outcome){.first = first, .n_choices = end - first};
    if (read_plan(json, key, outcome, err) == 0)
        return 0;
    tccl_outcome_clear(outcome);
    return -1;
}
