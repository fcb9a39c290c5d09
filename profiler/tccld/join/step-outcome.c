/* The ring over all nodes at the root: is there one, is it worth it, and what is said if not. At
 * each node: the plan for its place in the ring. */
#include "tccld/join/step-outcome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/lines.h"
#include "base/numberset.h"
#include "chain/beside-text.h"
#include "chain/ring-set.h"
#include "client/key.h"
#include "client/message.h"
#include "client/outcome.h"
#include "client/step-fields.h"
#include "tccld/join/chain-lines.h"
#include "tccld/join/evidence.h"
#include "tccld/join/own.h"

enum { FORMAT_NODES = 2048 /* rings of more nodes are not written out */ };

/* At the root */

static void fall_back(struct tccl_outcome *outcome, enum tccl_reason cause, const char *why)
{
    tccl_outcome_say(outcome, cause, "%s", why);
    outcome->state = TCCL_STATE_FAILED;
}

/* There is no ring of all GPUs; groups of them may have chains. */
static void leave_whole(struct tccl_outcome *outcome, enum tccl_reason cause, const char *why)
{
    fall_back(outcome, cause, why);
    outcome->groups = true;
}

/* The first NIC without a link of these nodes; NULL: none. Sets *node to whose it is. */
static const char *find_no_link(const struct tccl_run *runs, int n_runs, int *node)
{
    for (int run = *node = 0; run < n_runs; *node += runs[run++].count)
        for (int i = 0; i < runs[run].class->n_nics; i++)
            if (strncmp(runs[run].class->nics[i].fabric, OWN_NO_LINK, strlen(OWN_NO_LINK)) == 0)
                return runs[run].class->nics[i].name;
    return NULL;
}

/* Beside others it has little of what it has alone: its copies and theirs do more
 * than share what is slow, and no ring found avoids it. */
static void say_collapse(struct tccl_outcome *outcome, const struct tccl_ring *ring,
                         const struct tccl_step *join)
{
    char why[TCCL_OUTCOME_REASON + 1];
    outcome->alone_gbps = outcome->neighbours ? ring->alone : 0;
    if (!tccl_outcome_collapses(outcome, fmax(outcome->baseline_gbps, ring->gbps)))
        return;
    snprintf(why, sizeof(why), "%s", outcome->reason);
    tccl_outcome_say(outcome, TCCL_REASON_COLLAPSE,
                     "%.250s; alone %.1f%s%.64s: copies of this step and of those beside "
                     "it " TCCL_OUTCOME_COLLAPSE,
                     why, ring->alone, join->n_nodes == 1 ? " on " : "",
                     join->n_nodes == 1 ? join->nodes[0] : "");
}

/* The rings are not worth it. */
static void leave_to_nccl(struct tccl_outcome *outcome, const struct tccl_ring *ring,
                          const struct tccl_step *join)
{
    const struct tccl_decision_case asked = tccl_ring_case(ring, TCCL_NEWEST, join->min_gain);
    const struct tccl_decision decision = tccl_decide(&asked); /* as compare_baselines */
    const char *name = outcome->policy;
    const double reach = tccl_ring_reach(ring), own = outcome->baseline_gbps;
    char why[TCCL_DECISION_TEXT];
    outcome->state = TCCL_STATE_LEFT;
    outcome->groups = decision.decided != TCCL_BELOW_POLICY;
    tccl_decision_say(&asked, &decision, why);
    if (decision.decided == TCCL_BELOW_POLICY)
        tccl_outcome_say(
            outcome, TCCL_REASON_POLICY,
            "policy%s%s%s: the ring is only %.2fx NCCL's own choice (%.1f GB/s, %.1f), "
            "MinGain is %.4gx",
            *name ? " '" : "", name, *name ? "'" : "", reach / own, reach, own, join->min_gain);
    else
        tccl_outcome_say(outcome, TCCL_REASON_NO_GAIN, "%s", why);
    say_collapse(outcome, ring, join);
}

_Static_assert((int)TCCL_GENERATIONS <= (int)TCCL_OUTCOME_BASELINES,
               "PLAN has room for the generations of NCCL");

/* NCCL's own choice by generations, and with which of them the ring is used. Returns with how many.
 */
static int compare_baselines(struct tccl_outcome *outcome, const struct tccl_ring *ring,
                             const struct tccl_step *join)
{
    int taken = 0;
    outcome->n_baselines = TCCL_GENERATIONS;
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        bool take = tccl_ring_decide(ring, i, join->min_gain).decided == TCCL_TAKE;
        taken += take;
        outcome->baselines[i] =
            (struct tccl_outcome_baseline){.first = tccl_generation(i)->first,
                                           .gbps = tccl_ring_baseline_reach(ring, i),
                                           .better = !take};
    }
    return taken;
}

_Static_assert((int)TCCL_NODE_NICS == (int)TCCL_MAX_NICS &&
                   (int)TCCL_NODE_RINGS == (int)TCCL_CHAIN_RINGS,
               "PLAN has room for the NICs of a node, and for the rings of a set");

static const struct tccl_node_class *class_of(const struct tccl_run *runs, int node)
{
    while (node >= runs->count)
        node -= runs++->count;
    return runs->class;
}

static void take_choices(struct tccl_outcome *outcome, const struct tccl_ring *ring,
                         const struct tccl_run *runs)
{
    outcome->choices = calloc((size_t)ring->n_nodes, sizeof(*outcome->choices));
    outcome->n_choices = ring->n_nodes;
    if (!outcome->choices)
        fall_back(outcome, TCCL_REASON_OVERLOAD, "out of memory");
    for (int i = 0; outcome->choices && i < ring->n_nodes; i++) {
        struct tccl_ring_set set;
        int in[TCCL_CHAIN_RINGS] = {0}, out[TCCL_CHAIN_RINGS] = {0};
        tccl_ring_set_of(ring, class_of(runs, i), i, &set);
        tccl_set_nics(&set, in, out);
        for (int r = 0; r < set.n && r < TCCL_NODE_RINGS; r++) {
            outcome->choices[i].entry[r] = (int8_t)in[r];
            outcome->choices[i].exit[r] = (int8_t)out[r];
        }
    }
}

/* The NICs of NCCL's own rings on a node of this class, with any version; all, if they are not
 * known. */
static uint32_t own_nics(const struct tccl_node_class *class)
{
    uint32_t nics = 0;
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        const struct tccl_class_baseline *own = &class->baselines[i];
        if (own->n_chains == 0)
            return UINT32_MAX;
        for (int k = 0; k < own->n_chains; k++)
            nics |= UINT32_C(1) << own->entry_nics[k] | UINT32_C(1) << own->exit_nics[k];
    }
    return nics;
}

/* Are the NICs of the rings, and of NCCL's own, on one fabric? Then each node meets those beside it
 * whichever of them it builds. */
static bool is_on_one_fabric(const struct tccl_outcome *outcome, const struct tccl_run *runs,
                             int n_runs)
{
    const char *fabric = NULL;
    for (int run = 0, first = 0; run < n_runs; first += runs[run++].count) {
        const struct tccl_node_class *class = runs[run].class;
        uint32_t nics = own_nics(class);
        for (int node = first; node < first + runs[run].count; node++)
            for (int r = 0; r < outcome->rings; r++)
                nics |= UINT32_C(1) << outcome->choices[node].entry[r] |
                        UINT32_C(1) << outcome->choices[node].exit[r];
        for (int i = 0; i < class->n_nics; i++) {
            if (!(nics >> i & 1))
                continue;
            if (fabric && strcmp(class->nics[i].fabric, fabric) != 0)
                return false;
            fabric = class->nics[i].fabric;
        }
    }
    return true;
}

/* What a step may have. */
struct limits {
    int rings, rings_of_best; /* at once: at most, and in the best ring set of all nodes */
};

/* Which node leaves fewer rings at once than others, or all, would have by themselves, or fewer
 * NICs to as many. */
static void say_fewer(struct tccl_outcome *outcome, const struct tccl_ring *ring,
                      const struct limits *limits, const struct tccl_run *runs, int n_runs,
                      char *const *nodes)
{
    int most = 0, least = TCCL_CHAIN_RINGS + 1, who = 0;
    for (int run = 0, node = 0; run < n_runs; node += runs[run++].count) {
        int rings = tccl_class_best_rings(runs[run].class);
        rings = rings > limits->rings ? limits->rings : rings;
        most = rings > most ? rings : most;
        who = rings < least ? node : who;
        least = rings < least ? rings : least;
    }
    int without;
    const char *no_link = find_no_link(runs, n_runs, &without);
    if (n_runs == 1 && runs->count == 1)
        return;
    if (no_link)
        snprintf(outcome->fewer_rings, sizeof(outcome->fewer_rings), "%.160s: %s has no link",
                 nodes[without], no_link);
    else if (limits->rings_of_best >= most)
        return;
    else if (least < most)
        snprintf(outcome->fewer_rings, sizeof(outcome->fewer_rings),
                 "%.160s: its NICs limit the step to %d ring%s; other nodes would have %d",
                 nodes[who], least, least == 1 ? "" : "s", most);
    else if (!(ring->closes >> most & 1))
        snprintf(outcome->fewer_rings, sizeof(outcome->fewer_rings),
                 "the NICs of these nodes share no fabric for %d rings", most);
}

/* The neighbours of one node, as many as there is room for: each has its share at least. */
static void add_beside(const struct tccl_outcome *outcome, const struct tccl_step *join, int node,
                       const struct tccl_node_class *class, struct tccl_neighbour *list, int *n)
{
    cleanup_free struct tccl_neighbour *there = calloc(TCCL_MAX_BESIDE, sizeof(*there));
    struct tccl_step at = {.node = node, .n_nodes = join->n_nodes};
    struct outcome_part part;
    if (!there || !class->beside || outcome_part(outcome, &at, class, &part) != 0)
        return;
    int count = tccl_beside_parse(class->beside, there, NULL);
    for (int i = 0; i < count && *n < TCCL_MAX_BESIDE; i++) {
        list[*n] = there[i];
        list[*n].node = node;
        list[(*n)++].gbps = there[i].alone * part.share;
    }
}

/* Those of all nodes but the first, which knows better (running.h). */
static void say_beside(struct tccl_outcome *outcome, const struct tccl_run *runs, int n_runs,
                       const struct tccl_step *join)
{
    cleanup_free struct tccl_neighbour *list =
        outcome->neighbours ? calloc(TCCL_MAX_BESIDE, sizeof(*list)) : NULL;
    int n = 0;
    if (!list || !outcome->choices)
        return;
    for (int run = 0, first = 0; run < n_runs; first += runs[run++].count)
        for (int k = 0; k < runs[run].count && n < TCCL_MAX_BESIDE && runs[run].class->beside; k++)
            if (first + k > 0)
                add_beside(outcome, join, first + k, runs[run].class, list, &n);
    if (n > 0)
        outcome->beside = tccl_beside_format(list, n);
}

void outcome_measure_own(struct tccl_outcome *outcome)
{
    free(tccl_steal(outcome->ring));
    free(tccl_steal(outcome->beside));
    free(tccl_steal(outcome->choices));
    outcome->n_choices = 0;
    outcome->rings = 0;
    outcome->gbps = outcome->alone_gbps = 0;
    *outcome->fewer_rings = '\0';
    outcome->agreed = false;
    outcome->state = TCCL_STATE_LEFT;
    outcome->measure = true;
}

/* What is promised: by the profiles of the nodes, to these GPUs of them, for these chains. Another
 * measurement promises something else. */
static void name_subject(struct tccl_outcome *outcome, const struct tccl_ring *ring,
                         const struct tccl_run *runs, int n_runs)
{
    struct {
        uint64_t before, machine, source, chains;
        uint32_t gpus;
        int32_t count, seen, rings;
        double alone;
    } part = {.rings = ring->rings};
    char text[TCCL_RINGS_TEXT];
    for (int run = 0, node = 0; run < n_runs; node += runs[run++].count) {
        const struct tccl_node_class *class = runs[run].class;
        part.machine = tccl_hash64(class->machine, strlen(class->machine));
        part.source = tccl_hash64(class->source, strlen(class->source));
        part.gpus = class->gpus;
        part.count = runs[run].count;
        part.seen = ring->choices[node].seen;
        part.alone = class->seen[part.seen].alone;
        tccl_class_format(class, &class->seen[part.seen].set, text);
        part.chains = tccl_hash64(text, strlen(text));
        part.before = tccl_hash64(&part, sizeof(part));
    }
    outcome->subject = (int64_t)(part.before >> 1) | 1;
    outcome->promised = tccl_ring_reach(ring);
}

static void take_ring(struct tccl_outcome *outcome, const struct tccl_ring *ring,
                      const struct limits *limits, const struct tccl_run *runs, int n_runs,
                      const struct tccl_step *join)
{
    outcome->baseline_gbps = tccl_ring_baseline_reach(ring, TCCL_NEWEST);
    outcome->bound_gbps = isfinite(ring->bound) ? ring->bound : 0;
    snprintf(outcome->neighbours_by, sizeof(outcome->neighbours_by), "%s",
             outcome->neighbours ? tccl_basis_name(ring->basis) : "");
    if (!(ring->gbps > 0)) {
        leave_whole(outcome, TCCL_REASON_NO_RING, "no ring can be closed over these nodes");
        return;
    }
    if (compare_baselines(outcome, ring, join) == 0) {
        leave_to_nccl(outcome, ring, join);
        return;
    }
    name_subject(outcome, ring, runs, n_runs);
    if (evidence_draws(&join->key, "trial", join->trial)) {
        outcome_measure_own(outcome);
        tccl_outcome_say(outcome, TCCL_REASON_TRIAL,
                         "trial: NCCL's own choice in place of a ring of %.1f GB/s, to compare "
                         "them (Trial=%g%%)",
                         tccl_ring_reach(ring), join->trial / 1000.0);
        return;
    }
    outcome->state = TCCL_STATE_PLANNED;
    outcome->gbps = tccl_ring_reach(ring);
    outcome->alone_gbps = outcome->neighbours ? tccl_ring_reach_alone(ring) : 0;
    /* The text for the record, and if it isn't too long for that, for the job. */
    if (ring->n_nodes <= FORMAT_NODES)
        outcome->ring =
            tccl_ring_format(runs, n_runs, ring, (const char *const *)join->nodes, OUTCOME_RING);
    if (outcome->ring && strlen(outcome->ring) > TCCL_OUTCOME_RING) {
        free(outcome->ring);
        outcome->ring = NULL;
    }
    outcome->rings = ring->rings;
    say_fewer(outcome, ring, limits, runs, n_runs, join->nodes);
    tccl_outcome_say(outcome, *join->foreseen ? TCCL_REASON_UNKNOWN_NCCL : TCCL_REASON_NONE, "%s",
                     join->foreseen);
    take_choices(outcome, ring, runs);
    outcome->agreed =
        outcome->choices && ring->n_nodes > 1 && !is_on_one_fabric(outcome, runs, n_runs);
    say_beside(outcome, runs, n_runs, join);
}

/* Which node lacks something of what was measured there. */
static void say_degraded(struct tccl_outcome *outcome, const struct tccl_run *runs, int n_runs,
                         char *const *nodes)
{
    int worse = 0, first = -1;
    const char *what = "";
    for (int run = 0, node = 0; run < n_runs; node += runs[run++].count) {
        if (!*runs[run].class->worse)
            continue;
        worse += runs[run].count;
        if (first < 0) {
            first = node;
            what = runs[run].class->worse;
        }
    }
    if (worse == 0)
        return;
    int end =
        snprintf(outcome->degraded, sizeof(outcome->degraded), "%.64s: %s", nodes[first], what);
    if (worse > 1)
        snprintf(outcome->degraded + end, sizeof(outcome->degraded) - (size_t)end,
                 "; %d more nodes", worse - 1);
}

/* Where the bandwidths of all nodes come from. */
static void name_source(struct tccl_outcome *outcome, const struct merge *merge)
{
    const char *first = merge->classes[0]->class->source;
    bool same = true;
    for (int i = 0; i < merge->n_classes; i++)
        outcome->moved = outcome->moved || merge->classes[i]->class->moved;
    for (int i = 1; i < merge->n_classes; i++)
        same = same && strcmp(merge->classes[i]->class->source, first) == 0;
    snprintf(outcome->source, sizeof(outcome->source), "%.*s", TCCL_OUTCOME_SOURCE,
             same ? first : "mixed");
}

/* Is a class before it of the same machine and GPUs, seen beside other steps? */
static bool is_named(const struct merge *merge, int number)
{
    const struct tccl_node_class *class = merge->classes[number]->class, *before;
    for (int i = 0; i < number; i++)
        if ((before = merge->classes[i]->class)->gpus == class->gpus &&
            strcmp(before->machine, class->machine) == 0)
            return true;
    return false;
}

/* The kinds of nodes that the step is on; what is too long is cut. */
static void name_class(struct tccl_outcome *outcome, const struct merge *merge)
{
    char *at = outcome->node_class, *end = at + sizeof(outcome->node_class);
    for (int i = 0; i < merge->n_classes && at < end; i++) {
        char gpus[96] = "";
        tccl_numberset_format(merge->classes[i]->class->gpus, gpus, sizeof(gpus));
        if (!is_named(merge, i))
            at += snprintf(at, (size_t)(end - at), "%s%.8s:%s", i ? " + " : "",
                           merge->classes[i]->class->machine, gpus);
    }
}

void outcome_solve(struct tccl_outcome *outcome, const struct merge *merge,
                   const struct tccl_step *join, int most_rings)
{
    cleanup_free struct tccl_run *runs = merge_runs(merge);
    struct tccl_ring ring = {0};
    struct limits limits = {most_rings, 1};
    struct tccl_error err = {0};
    long gpus = merge_gpus(merge);
    snprintf(outcome->policy, sizeof(outcome->policy), "%s", join->policy);
    outcome->first = 0;
    outcome->gpus = gpus;
    name_source(outcome, merge);
    name_class(outcome, merge);
    outcome->neighbours = merge_neighbours(merge);
    if (runs)
        say_degraded(outcome, runs, merge->n_runs, join->nodes);
    if (join->mode == TCCL_MODE_AUTO && gpus < join->min_gpus) {
        tccl_outcome_say(outcome, TCCL_REASON_POLICY,
                         "policy: %ld GPUs in this step, MinGpus is %d", gpus, join->min_gpus);
        outcome->state = TCCL_STATE_FAILED;
        return;
    }
    int nothing =
        runs ? tccl_ring_choose(runs, merge->n_runs, most_rings, &ring, &limits.rings_of_best, &err)
             : tccl_fail_as(&err, TCCL_REASON_OVERLOAD, "out of memory");
    if (nothing > 0) {
        outcome->state = TCCL_STATE_LEFT;
        tccl_outcome_say(outcome, TCCL_REASON_NO_GAIN, "the step has one GPU");
    } else if (nothing < 0) {
        /* No ring closes. */
        char why[sizeof(err.text)];
        int node;
        const char *nic = runs ? find_no_link(runs, merge->n_runs, &node) : NULL;
        if (nic)
            snprintf(why, sizeof(why), "%.160s: %.64s has no link, and %.200s", join->nodes[node],
                     nic, err.text);
        leave_whole(outcome, err.reason ? err.reason : TCCL_REASON_NO_RING, nic ? why : err.text);
    } else
        take_ring(outcome, &ring, &limits, runs, merge->n_runs, join);
    tccl_ring_clear(&ring);
}

json_t *outcome_to_json(const struct tccl_outcome *outcome, const struct tccl_step_key *key,
                        int first, int end)
{
    struct tccl_outcome sent = *outcome; /* which owns what it points to */
    if (sent.ring && strlen(sent.ring) > OUTCOME_RING)
        sent.ring = NULL;
    return tccl_plan_to_json(&sent, key, first, end);
}

/* At each node */

/* The whole ring if it is short, else this node's chain. */
static char *ring_text(const struct tccl_outcome *outcome, const struct tccl_step *join,
                       const char *chain)
{
    char *text;
    if (outcome->ring && strlen(outcome->ring) <= OUTCOME_RING)
        return strdup(outcome->ring);
    if (asprintf(&text, "%s[%s] …", join->nodes[join->node], chain) < 0)
        return NULL;
    return text;
}

static void put_step(struct tccl_line_writer *writer, const struct tccl_outcome *outcome,
                     const struct tccl_step *join, const char *socket)
{
    tccl_key_put_lines(&join->key, writer);
    tccl_line_put(writer, "socket", "%s", socket);
#define PUT(name, most, value) tccl_line_put(writer, #name, "%lld", (long long)(value));
    TCCL_PLAN_NUMBERS(PUT)
}

int outcome_part(const struct tccl_outcome *outcome, const struct tccl_step *join,
                 const struct tccl_node_class *class, struct outcome_part *part)
{
    const struct tccl_node_nics *nics = &outcome->choices[join->node - outcome->first];
    int rings = outcome->rings > 1 ? (int)outcome->rings : 1;
    int in[TCCL_CHAIN_RINGS] = {0}, out[TCCL_CHAIN_RINGS] = {0};
    uint8_t order[TCCL_CHAIN_RINGS];
    *part = (struct outcome_part){0};
    for (int r = 0; r < rings; r++) {
        in[r] = nics->entry[r];
        out[r] = nics->exit[r];
    }
    const struct tccl_seen *seen = tccl_class_find(class, in, out, rings, order);
    if (!seen)
        return -1;
    for (int r = 0; r < rings; r++)
        part->set.rings[part->set.n++] = seen->set.rings[order[r]];
    part->tree = seen->tree;
    part->alone = seen->alone;
    part->share = seen->alone > 0 ? seen->share : 1;
    return 0;
}

int outcome_plan(const struct tccl_outcome *outcome, const struct tccl_step *join,
                 const struct tccl_node_class *class, const struct tccl_machine *machine,
                 const char *socket, struct tccl_line_writer *plan, char **ring,
                 struct tccl_error *err)
{
    const bool rings = outcome->state == TCCL_STATE_PLANNED; /* else it is for groups alone */
    struct outcome_part part;
    char text[TCCL_RINGS_TEXT];
    *ring = NULL;
    if (!machine)
        return tccl_fail(err,
                         "machine.json of this node was removed meanwhile: run tccl-profile init");
    if (rings && outcome_part(outcome, join, class, &part) != 0)
        return tccl_fail(err, "this node can't build the ring that the first node chose: is tccld "
                              "of one version on all nodes?");
    if (rings && (tccl_ring_set_check(&part.set, machine, err) != 0 ||
                  tccl_expressible(machine, part.set.rings, part.set.n, err) != 0))
        return -1;
    put_step(plan, outcome, join, socket);
    chain_lines_put_gpus(plan, class->gpus, machine);
    if (!rings) {
        tccl_line_put_bool(plan, "ring", false);
        if (outcome->measure)
            tccl_line_put_bool(plan, "groups", false);
        return 0;
    }
    tccl_ring_set_format(&part.set, machine, text);
    *ring = ring_text(outcome, join, text);
    if (outcome->agreed)
        tccl_line_put_bool(plan, "agreed", true);
    chain_lines_put_rates(plan, outcome->gbps, outcome->source);
    for (int i = 0; i < outcome->n_baselines; i++)
        chain_lines_put_baseline(plan, &outcome->baselines[i], class, join->n_nodes == 1);
    chain_lines_put(plan, &part.set, &part.tree, machine);
    return 0;
}
