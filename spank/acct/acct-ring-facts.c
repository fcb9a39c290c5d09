/* acct-ring-facts.c: the lines and bars that go with the drawing of a ring. */
#include "acct/acct-ring-facts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acct/acct-fields.h"
#include "acct/acct-table.h"
#include "acct/acct-text.h"
#include "base/cleanup.h"
#include "base/fields.h"

char *acct_ring_shown(const json_t *record, const char *name)
{
    struct acct_clock clock = {.now = time(NULL), .format = getenv("SLURM_TIME_FORMAT")};
    const struct acct_field *field = acct_field_find(name);
    cleanup_free char *text = field->text(field, record, &clock);
    return text ? acct_escape(text, NULL) : NULL;
}

static int no_ring(const json_t *record, struct tccl_error *err)
{
    cleanup_free char *job = acct_ring_shown(record, "JobID");
    const char *state = tccl_text_of(record, "state"), *reason = tccl_text_of(record, "reason");
    return tccl_fail(err, "step %s has no ring: %s%s%s", job ? job : "?", state,
                     *reason ? ": " : "", reason);
}

static int read_ring(const json_t *record, struct acct_ring *ring, struct tccl_error *err)
{
    const char *text = tccl_text_of(record, "ring"), *node = tccl_text_of(record, "first_node");
    if (!*text)
        return no_ring(record, err);
    if (acct_ring_read(text, *node ? node : tccl_text_of(record, "nodes"), ring, err) == 0)
        return 0;
    cleanup_free char *job = acct_ring_shown(record, "JobID");
    return tccl_fail_in(err, "the ring of step %s can't be read", job ? job : "?");
}

__attribute__((format(printf, 2, 3))) static int add_line(struct acct_ring_facts *facts,
                                                          const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vasprintf(&facts->lines[facts->n_lines], format, list);
    va_end(list);
    if (length < 0) {
        facts->lines[facts->n_lines] = NULL;
        return -1;
    }
    facts->n_lines++;
    return 0;
}

static int add_title(const json_t *record, struct acct_ring_facts *facts)
{
    cleanup_free char *job = acct_ring_shown(record, "JobID"),
                      *name = acct_ring_shown(record, "JobName"),
                      *user = acct_ring_shown(record, "User");
    if (!job || !name || !user ||
        asprintf(&facts->title, "Step %s%s%s of %s", job, *name ? ": " : "", name, user) < 0) {
        facts->title = NULL;
        return -1;
    }
    return 0;
}

static int add_size(const json_t *record, const struct acct_ring *ring,
                    struct acct_ring_facts *facts)
{
    json_int_t nodes = json_integer_value(json_object_get(record, "n_nodes"));
    json_int_t gpus = json_integer_value(json_object_get(record, "gpus"));
    cleanup_free char *start = acct_ring_shown(record, "Start");
    if (!ring->cut || nodes < ring->n_nodes)
        nodes = ring->n_nodes;
    if (!ring->cut || gpus < ring->n_gpus)
        gpus = ring->n_gpus;
    char rings[32] = "";
    if (ring->n_rings > 1)
        snprintf(rings, sizeof(rings), "%d rings at once, ", ring->n_rings);
    return add_line(facts, "%lld node%s, %lld GPU%s, %sstarted %s", (long long)nodes,
                    nodes == 1 ? "" : "s", (long long)gpus, gpus == 1 ? "" : "s", rings,
                    start ? start : "?");
}

/* The outcome, with what NCCL built where known. */
static int add_state(const json_t *record, struct acct_ring_facts *facts)
{
    cleanup_free char *reason = acct_ring_shown(record, "Reason"),
                      *built_reason = acct_ring_shown(record, "BuiltReason"),
                      *state = acct_ring_shown(record, "State");
    const char *built = tccl_text_of(record, "built");
    if (!reason || !built_reason || !state)
        return -1;
    const char *of_built = *built_reason ? ": " : "";
    if (!strcmp(built, "applied"))
        return add_line(facts, "applied, and NCCL built it");
    if (!strcmp(built, "fewer"))
        return add_line(facts, "NCCL built fewer rings%s%s", of_built, built_reason);
    if (!strcmp(built, "differs"))
        return add_line(facts, "NCCL built something else%s%s", of_built, built_reason);
    if (!strcmp(built, "not used"))
        return add_line(facts, "not used%s%s", of_built, built_reason);
    if (!strcmp(built, "unknown"))
        return add_line(facts, "%s; what NCCL built is not known%s%s", state, of_built,
                        built_reason);
    if (!strcmp(state, "applied"))
        return add_line(facts, "applied; what NCCL built is not reported yet");
    return add_line(facts, "%s%s%s", state, *reason ? ": " : "", reason);
}

static int add_source(const json_t *record, struct acct_ring_facts *facts)
{
    const char *source = tccl_text_of(record, "source");
    cleanup_free char *name = acct_ring_shown(record, "Source"),
                      *took = acct_ring_shown(record, "SolveTime");
    if (!name || !took)
        return -1;
    const char *what = !strcmp(source, "model") ? "from a model of the machines"
                       : !strcmp(source, "host")
                           ? "from measurements with CPU cores in place of GPUs"
                       : !strcmp(source, "cuda") ? "from measurements"
                                                 : name;
    return !*what && !*took
               ? 0
               : add_line(facts, "bandwidths %s%s%s", *what ? what : "of unknown source",
                          *took ? "; solved in " : "", took);
}

/* A text that can't be read is as none. */
static void read_nccl(const json_t *record, const struct acct_ring *ring,
                      struct acct_ring_facts *facts)
{
    const char *text = tccl_text_of(record, "baseline_rings");
    facts->busy = (struct tccl_memory_load){.memory = -1};
    if (!*text || tccl_named_rings_parse(text, &facts->nccl, NULL) != 0) {
        facts->nccl.n = 0;
        return;
    }
    struct tccl_memory_load nccl = tccl_memory_busiest(facts->nccl.chains, facts->nccl.n);
    struct tccl_memory_load ours = tccl_memory_busiest(ring->sets[0].chains, ring->n_rings);
    if (nccl.copies * ring->n_rings > ours.copies * facts->nccl.n) /* each a part of the data */
        facts->busy = nccl;
}

/* What is gained, and by what; as long as NCCL has not said that it built the ring, a prediction.
 */
static int add_gain(const json_t *record, struct acct_ring_facts *facts)
{
    double ratio = json_number_value(json_object_get(record, "ratio"));
    const char *built = tccl_text_of(record, "built");
    bool unused =
        !strcmp(built, "not used") || !strcmp(tccl_text_of(record, "state"), "nothing-to-do");
    char cause[TCCL_LOAD_TEXT] = "";
    if (!(facts->gbps > 0) || !(facts->baseline_gbps > 0))
        return 0;
    if (facts->busy.memory >= 0 && facts->gbps > facts->baseline_gbps)
        tccl_memory_load_say(&facts->busy, "NCCL", cause);
    if (asprintf(&facts->lead, "%s%s%.2f in place of %.2f GB/s%s%s",
                 unused                      ? "Planned, but not used: "
                 : !strcmp(built, "fewer")   ? "Planned, but built by NCCL only in part: "
                 : !strcmp(built, "differs") ? "Planned, but not built by NCCL: "
                 : facts->built              ? ""
                                             : "Predicted: ",
                 facts->bounds ? "at least " : "", facts->gbps, facts->baseline_gbps,
                 *cause ? ": " : "", cause) < 0) {
        facts->lead = NULL;
        return -1;
    }
    return ratio > 0 ? add_line(facts, "%s%.2f times as fast as the baseline",
                                facts->built ? "" : "predicted to be ", ratio)
                     : 0;
}

/* What it has beside others, of what it would have alone, and by what that is known, unless that is
 * what its other bandwidths are from. */
static int add_sharing(const json_t *record, json_int_t others, struct acct_ring_facts *facts)
{
    double alone = json_number_value(json_object_get(record, "alone_gbps"));
    bool measured = !strcmp(tccl_text_of(record, "neighbours_by"), "measured");
    const char *s = others == 1 ? "" : "s",
               *each = others > 1 && tccl_number_of(record, "n_nodes") > 1
                           ? " (counted on each node)"
                           : "";
    if (!(alone > 0))
        return add_line(facts, "%lld other step%s%s ran beside it when it began", (long long)others,
                        s, each);
    return add_line(facts,
                    "%s%.2f GB/s beside %lld other step%s%s that ran when it began%s, %.2f alone: "
                    "%s%.0f %% lost",
                    facts->bounds ? "at least " : "", facts->gbps, (long long)others, s, each,
                    facts->bounds ? " (by bounds)"
                    : measured    ? " (measured together)"
                                  : "",
                    alone, facts->bounds ? "at most " : "",
                    fmax(0, 100 * (1 - facts->gbps / alone)));
}

/* Those that can't be drawn: they copy between GPUs and memory only, or their chains were too long.
 */
static int add_beside(const json_t *record, struct acct_ring_facts *facts)
{
    json_int_t others = tccl_number_of(record, "neighbours"), left = others - facts->n_beside;
    if (others <= 0)
        return 0;
    if (add_sharing(record, others, facts) != 0)
        return -1;
    return left > 0 ? add_line(facts,
                               "%lld of the steps beside it %s not drawn: the record has no "
                               "chains of %s",
                               (long long)left, left == 1 ? "is" : "are", left == 1 ? "it" : "them")
                    : 0;
}

/* A text that can't be read is as none: the ring is what was asked for. */
static void read_beside(const json_t *record, struct acct_ring_facts *facts)
{
    facts->beside = calloc(TCCL_MAX_BESIDE, sizeof(*facts->beside));
    int n =
        facts->beside ? tccl_beside_parse(tccl_text_of(record, "beside"), facts->beside, NULL) : 0;
    facts->n_beside = n > 0 ? n : 0;
}

void acct_ring_place(const struct acct_ring *ring, int node, char text[static ACCT_RING_PLACE])
{
    cleanup_free char *name = node < ring->n_nodes ? acct_escape(ring->names[node], NULL) : NULL;
    if (name)
        snprintf(text, ACCT_RING_PLACE, "%.40s", name);
    else
        snprintf(text, ACCT_RING_PLACE, "node %d", node);
}

bool acct_ring_at_least(const struct acct_ring_facts *facts, int neighbour)
{
    return facts->bounds || facts->beside[neighbour].node > 0;
}

void acct_ring_who(const struct tccl_neighbour *other, int which, char text[static ACCT_RING_WHO])
{
    const char *own = other->nccl ? "NCCL's own" : "";
    if (other->rings.n > 1 && which >= 0)
        snprintf(text, ACCT_RING_WHO, "%s%sring %d of %d", own, *own ? ", " : "", which + 1,
                 other->rings.n);
    else if (other->rings.n > 1 && !*own)
        snprintf(text, ACCT_RING_WHO, "%d rings", other->rings.n);
    else
        snprintf(text, ACCT_RING_WHO, "%s", *own ? own : "a ring");
}

void acct_ring_beside(const struct acct_ring *ring, const struct acct_ring_facts *facts,
                      int neighbour, int which, char text[static ACCT_RING_LABEL])
{
    const struct tccl_neighbour *other = &facts->beside[neighbour];
    char place[ACCT_RING_PLACE], who[ACCT_RING_WHO];
    bool several = ring->n_nodes > 1 || other->node > 0;
    acct_ring_place(ring, other->node, place);
    acct_ring_who(other, which, who);
    snprintf(text, ACCT_RING_LABEL, "beside it%s%s: %s%.2f of %.2f GB/s, %s", several ? " on " : "",
             several ? place : "", acct_ring_at_least(facts, neighbour) ? "at least " : "",
             other->gbps, other->alone, who);
}

void acct_ring_nccl(const struct acct_ring *ring, const struct acct_ring_facts *facts, int i,
                    char text[static ACCT_RING_LABEL])
{
    char which[40] = "";
    if (facts->nccl.n > 1)
        snprintf(which, sizeof(which), ", ring %d of %d", i + 1, facts->nccl.n);
    cleanup_free char *node = acct_escape(ring->names[0], NULL);
    snprintf(text, ACCT_RING_LABEL, "NCCL's own on %.40s: %.2f GB/s%s", node ? node : "?",
             facts->baseline_gbps, which);
}

static void add_bar(const json_t *record, const char *name, const char *label,
                    struct acct_ring_facts *facts)
{
    double gbps = json_number_value(json_object_get(record, name));
    if (!(gbps > 0))
        return;
    facts->bars[facts->n_bars].label = label;
    facts->bars[facts->n_bars].ring = !strcmp(name, "gbps");
    facts->bars[facts->n_bars++].gbps = gbps;
}

/* A truncated ring must not look like the whole. */
static int add_cut(const struct acct_ring *ring, struct acct_ring_facts *facts)
{
    return ring->cut ? add_line(facts,
                                "the record holds only the beginning of the ring: its first "
                                "%d node%s",
                                ring->n_nodes, ring->n_nodes == 1 ? "" : "s")
                     : 0;
}

int acct_ring_facts_read(const json_t *record, struct acct_ring *ring,
                         struct acct_ring_facts *facts, struct tccl_error *err)
{
    memset(ring, 0, sizeof(*ring));
    memset(facts, 0, sizeof(*facts));
    if (read_ring(record, ring, err) != 0)
        return -1;
    facts->gbps = json_number_value(json_object_get(record, "gbps"));
    facts->baseline_gbps = json_number_value(json_object_get(record, "baseline_gbps"));
    facts->built = !strcmp(tccl_text_of(record, "built"), "applied");
    facts->bounds = !strcmp(tccl_text_of(record, "neighbours_by"), "bounds");
    read_nccl(record, ring, facts);
    add_bar(record, "gbps", ring->n_rings > 1 ? "these rings" : "this ring", facts);
    add_bar(record, "baseline_gbps", "baseline", facts);
    add_bar(record, "alone_gbps", "ring alone", facts);
    add_bar(record, "placed_gbps", "best GPUs", facts);
    add_bar(record, "bound_gbps", "proven bound", facts);
    read_beside(record, facts);
    return add_title(record, facts) == 0 && add_size(record, ring, facts) == 0 &&
                   add_state(record, facts) == 0 && add_gain(record, facts) == 0 &&
                   add_beside(record, facts) == 0 && add_source(record, facts) == 0 &&
                   add_cut(ring, facts) == 0
               ? 0
               : tccl_fail(err, "out of memory for a ring");
}

void acct_ring_facts_clear(struct acct_ring *ring, struct acct_ring_facts *facts)
{
    free(facts->title);
    free(facts->lead);
    free(facts->beside);
    for (int i = 0; i < facts->n_lines; i++)
        free(facts->lines[i]);
    memset(facts, 0, sizeof(*facts));
    acct_ring_clear(ring);
}
