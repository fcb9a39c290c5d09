#include "tccld/join/outcome.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "chain/chain.h"
#include "client/key.h"
#include "client/message.h"
#include "client/outcome.h"
#include "client/step-fields.h"
#include "tccld/net/links.h"

enum {
    FORMAT_NODES = 2048, /* rings of more nodes are not written out */
    OUTCOME_GPUS = TCCL_MAX_NODES * TCCL_MAX_GPUS
};
#define OUTCOME_LATEST 253402300799 /* the end of the year 9999 */

void outcome_clear(struct outcome *outcome)
{
    free(outcome->ring);
    free(outcome->choices);
    memset(outcome, 0, sizeof(*outcome));
}

/* At the root */

__attribute__((format(printf, 2, 3))) static void fall_back(struct outcome *outcome,
                                                            const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(outcome->reason, sizeof(outcome->reason), fmt, args);
    va_end(args);
    outcome->state = TCCL_STATE_FALLBACK;
}

/* NCCL is as fast as the ring by itself, or faster: with more than one ring at once it may be. */
static void leave_to_nccl(struct outcome *outcome, const struct tccl_ring *ring)
{
    outcome->state = TCCL_STATE_NOTHING;
    if (ring->baseline_gbps > ring->gbps * (1 + ring->noise) * (1 + 1e-9))
        snprintf(outcome->reason, sizeof(outcome->reason),
                 "NCCL's own choice is faster (%.1f GB/s, the best ring found %.1f)",
                 ring->baseline_gbps, ring->gbps);
    else
        snprintf(outcome->reason, sizeof(outcome->reason), "NCCL's own ring is as fast (%.1f GB/s)",
                 ring->baseline_gbps);
}

/* Too small a gain for the policy? */
static bool gains_enough(struct outcome *outcome, const struct tccl_ring *ring,
                         const struct tccl_step *join)
{
    double own = ring->baseline_gbps;
    bool named = outcome->policy[0];
    if (!(own > 0) || !(join->min_gain > 1) || ring->gbps >= own * join->min_gain * (1 - 1e-9))
        return true;
    outcome->state = TCCL_STATE_NOTHING;
    snprintf(outcome->reason, sizeof(outcome->reason),
             "policy%s%s%s: the ring is only %.2fx NCCL's own choice (%.1f GB/s, %.1f), MinGain is "
             "%.4gx",
             named ? " '" : "", outcome->policy, named ? "'" : "", ring->gbps / own, ring->gbps,
             own, join->min_gain);
    return false;
}

static void take_ring(struct outcome *outcome, struct tccl_ring *ring, const struct tccl_run *runs,
                      int n_runs, const struct tccl_step *join)
{
    outcome->baseline_gbps = ring->baseline_gbps;
    outcome->bound_gbps = isfinite(ring->bound) ? ring->bound : 0;
    if (!(ring->gbps > 0)) {
        fall_back(outcome, "no ring can be closed over these nodes");
        return;
    }
    if (!tccl_ring_gains(ring)) {
        leave_to_nccl(outcome, ring);
        return;
    }
    if (!gains_enough(outcome, ring, join))
        return;
    outcome->state = TCCL_STATE_APPLIED;
    outcome->gbps = ring->gbps;
    if (ring->n_nodes <= FORMAT_NODES)
        outcome->ring = tccl_ring_format(runs, n_runs, ring, (const char *const *)join->nodes);
    outcome->choices = tccl_steal(ring->choices);
    outcome->n_choices = ring->n_nodes;
}

void outcome_solve(struct outcome *outcome, const struct merge *merge, const struct tccl_step *join)
{
    cleanup_free struct tccl_run *runs = merge_runs(merge);
    struct tccl_ring ring = {0};
    struct tccl_error err = {0};
    long gpus = merge_gpus(merge);
    snprintf(outcome->policy, sizeof(outcome->policy), "%s", join->policy);
    outcome->first = 0;
    outcome->step_gpus = gpus;
    strcpy(outcome->source, merge->kinds[0]->kind->source);
    for (int i = 1; i < merge->n_kinds; i++)
        if (strcmp(merge->kinds[i]->kind->source, outcome->source) != 0)
            strcpy(outcome->source, "mixed");
    if (join->mode == TCCL_MODE_AUTO && gpus < join->min_gpus) {
        fall_back(outcome, "policy: %ld GPUs in this step, MinGpus is %d", gpus, join->min_gpus);
        return;
    }
    int nothing =
        runs ? tccl_ring_solve(runs, merge->n_runs, &ring, &err) : tccl_fail(&err, "out of memory");
    if (nothing > 0)
        outcome->state = TCCL_STATE_NOTHING;
    else if (nothing < 0)
        fall_back(outcome, "%s", err.text);
    else
        take_ring(outcome, &ring, runs, merge->n_runs, join);
    tccl_ring_clear(&ring);
}

/* PLAN */

/* [[entry NIC, exit NIC, nodes], …] */
static json_t *choices_to_json(const struct tccl_ring_choice *choices, int count)
{
    cleanup_json json_t *array = json_array();
    for (int i = 0, same; i < count; i += same) {
        for (same = 1; i + same < count && choices[i + same].entry_nic == choices[i].entry_nic &&
                       choices[i + same].exit_nic == choices[i].exit_nic;)
            same++;
        if (json_array_append_new(
                array, json_pack("[iii]", choices[i].entry_nic, choices[i].exit_nic, same)) != 0)
            return NULL;
    }
    return tccl_steal(array);
}

json_t *outcome_to_json(const struct outcome *outcome, const struct tccl_step_key *key, int first,
                        int end)
{
    bool applied = outcome->state == TCCL_STATE_APPLIED;
    bool short_ring = outcome->ring && strlen(outcome->ring) <= OUTCOME_RING;
    cleanup_json json_t *json = tccl_message_new("plan");
    cleanup_json json_t *choices =
        applied ? choices_to_json(outcome->choices + (first - outcome->first), end - first)
                : json_array();
    cleanup_json json_t *rest =
        json_pack("{s:o,s:s,s:b,s:s,s:f,s:f,s:f,s:I,s:I,s:O}", "key", tccl_key_to_json(key),
                  "state", tccl_state_name(outcome->state), "recorded", outcome->recorded, "source",
                  outcome->source, "gbps", outcome->gbps, "baseline_gbps", outcome->baseline_gbps,
                  "bound_gbps", outcome->bound_gbps, "step_gpus", (json_int_t)outcome->step_gpus,
                  "start", (json_int_t)outcome->start, "choices", choices);
    if (json_object_update(json, rest) != 0 ||
        tccl_put_text(json, "reason", outcome->reason, sizeof(outcome->reason) - 1) != 0 ||
        tccl_put_text(json, "policy", outcome->policy, TCCL_POLICY_NAME) != 0 ||
        tccl_put_text(json, "ring", short_ring ? outcome->ring : NULL, OUTCOME_RING) != 0)
        return NULL;
    return tccl_steal(json);
}

static int read_choices(struct outcome *outcome, const json_t *json, struct tccl_error *err)
{
    int filled = 0;
    outcome->choices = calloc((size_t)outcome->n_choices, sizeof(*outcome->choices));
    if (!outcome->choices)
        return tccl_fail(err, "out of memory");
    for (size_t i = 0; i < json_array_size(json); i++) {
        int entry, exit, count;
        if (json_unpack(json_array_get(json, i), "[iii!]", &entry, &exit, &count) != 0 ||
            entry < -1 || exit < -1 || entry >= TCCL_MAX_NICS || exit >= TCCL_MAX_NICS ||
            count < 1 || count > outcome->n_choices - filled)
            return tccl_fail(err, "choices: entry %zu is not one", i);
        while (count-- > 0)
            outcome->choices[filled++] =
                (struct tccl_ring_choice){.entry_nic = entry, .exit_nic = exit};
    }
    return filled == outcome->n_choices
               ? 0
               : tccl_fail(err, "choices: for %d nodes instead of %d", filled, outcome->n_choices);
}

static int read_texts(struct outcome *outcome, const json_t *json, struct tccl_error *err)
{
    const char *state, *reason, *source, *policy, *ring;
    if (tccl_get_text(json, "state", 32, &state, err) != 0 ||
        tccl_get_text(json, "reason", sizeof(outcome->reason) - 1, &reason, err) != 0 ||
        tccl_get_text(json, "source", sizeof(outcome->source) - 1, &source, err) != 0 ||
        tccl_get_optional_text(json, "policy", TCCL_POLICY_NAME, &policy, err) != 0 ||
        tccl_get_optional_text(json, "ring", OUTCOME_RING, &ring, err) != 0)
        return -1;
    int parsed = tccl_state_parse(state, err);
    if (parsed < 0)
        return -1;
    outcome->state = (enum tccl_state)parsed;
    strcpy(outcome->reason, reason);
    strcpy(outcome->source, source);
    strcpy(outcome->policy, policy ? policy : "");
    outcome->ring = ring ? strdup(ring) : NULL;
    return 0;
}

/* Members that came later: 0 from a root that does not send them. */
static int read_later(struct outcome *outcome, const json_t *json, struct tccl_error *err)
{
    json_int_t gpus = 0, start = 0;
    if ((json_object_get(json, "step_gpus") &&
         tccl_get_int(json, "step_gpus", 0, OUTCOME_GPUS, &gpus, err) != 0) ||
        (json_object_get(json, "start") &&
         tccl_get_int(json, "start", 0, OUTCOME_LATEST, &start, err) != 0))
        return -1;
    outcome->step_gpus = (long)gpus;
    outcome->start = (time_t)start;
    return 0;
}

int outcome_from_json(struct outcome *outcome, const json_t *json, const struct tccl_step_key *key,
                      int first, int end, struct tccl_error *err)
{
    struct tccl_step_key theirs;
    struct outcome read = {.first = first, .n_choices = end - first};
    if (tccl_key_from_json(json_object_get(json, "key"), &theirs, err) != 0)
        return -1;
    if (!tccl_key_equal(key, &theirs))
        return tccl_fail(err, "it is the plan of another step");
    read.recorded = json_is_true(json_object_get(json, "recorded"));
    if (read_texts(&read, json, err) != 0 || tccl_get_number(json, "gbps", &read.gbps, err) != 0 ||
        tccl_get_number(json, "baseline_gbps", &read.baseline_gbps, err) != 0 ||
        tccl_get_number(json, "bound_gbps", &read.bound_gbps, err) != 0 ||
        read_later(&read, json, err) != 0 ||
        (read.state == TCCL_STATE_APPLIED &&
         read_choices(&read, json_object_get(json, "choices"), err) != 0)) {
        outcome_clear(&read);
        return -1;
    }
    *outcome = read;
    return 0;
}

/* At each node */

/* The whole ring if it is short, else this node's chain. */
static char *ring_text(const struct outcome *outcome, const struct tccl_step *join,
                       const char *chain)
{
    char *text;
    if (outcome->ring && strlen(outcome->ring) <= OUTCOME_RING)
        return strdup(outcome->ring);
    if (asprintf(&text, "%s[%s] …", join->nodes[join->node], chain) < 0)
        return NULL;
    return text;
}

json_t *outcome_plan(const struct outcome *outcome, const struct tccl_step *join,
                     const struct tccl_kind *kind, const struct tccl_machine *machine,
                     const char *socket, char **ring, struct tccl_error *err)
{
    const struct tccl_cell *cell =
        tccl_ring_cell(kind, outcome->choices[join->node - outcome->first]);
    char text[TCCL_CHAIN_TEXT];
    if (!cell || !cell->chain.n_gpus || !machine) {
        tccl_fail(err, machine ? "the ring chosen does not fit this node"
                               : "the description of this machine has gone meanwhile");
        return NULL;
    }
    if (tccl_chain_check(&cell->chain, machine, err) != 0)
        return NULL;
    tccl_kind_format(kind, &cell->chain, text);
    *ring = ring_text(outcome, join, text);
    json_t *plan = json_pack(
        "{s:i,s:o,s:s,s:i,s:i,s:s,s:f,s:f,s:f,s:s,s:s,s:I,s:s,s:I,s:o,s:I,s:b,s:o,s:o,s:s?}",
        "version", 1, "key", tccl_key_to_json(&join->key), "node", join->nodes[join->node], "index",
        join->node, "n_nodes", join->n_nodes, "state", tccl_state_name(outcome->state), "gbps",
        links_gbps(outcome->gbps), "baseline_gbps", links_gbps(outcome->baseline_gbps),
        "bound_gbps", links_gbps(outcome->bound_gbps), "source", outcome->source, "socket", socket,
        "uid", (json_int_t)join->uid, "root", join->nodes[0], "start", (json_int_t)outcome->start,
        "gpus", links_busids(kind->gpus, machine), "step_gpus", (json_int_t)outcome->step_gpus,
        "one_fabric", links_one_fabric(machine), "links", links_to_json(&cell->chain, machine), "chain",
        tccl_chain_to_json(&cell->chain, machine), "ring", *ring);
    if (!plan)
        tccl_fail(err, "out of memory");
    return plan;
}
