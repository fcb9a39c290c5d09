/* acct-drawn.c: what is drawn of a record's ring: title, lines, bars and cards. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acct/acct.h"
#include "base/cleanup.h"
#include "base/fields.h"
#include "base/state.h"
#include "client/hostlist.h"

const char *acct_drawn_field(struct acct_drawn *drawn, const json_t *record, const char *name)
{
    struct acct_clock clock = {.now = time(NULL), .format = getenv("SLURM_TIME_FORMAT")};
    const struct acct_field *field = acct_field_find(name);
    cleanup_free char *text = acct_field_text(field, record, &clock);
    if (!text || (!json_object_get(drawn->shown, name) &&
                  json_object_set_new(drawn->shown, name, json_string(text)) != 0))
        return "";
    return tccl_text_of(drawn->shown, name);
}

static void add_line(struct tccl_sheet *sheet, char *text)
{
    sheet->lines[sheet->n_lines++] = text;
}

static void add_size(const json_t *record, struct acct_drawn *drawn)
{
    const struct acct_ring *ring = &drawn->ring;
    long long nodes = tccl_number_of(record, "n_nodes"), gpus = tccl_number_of(record, "gpus");
    double gbps = tccl_real_of(record, "gbps");
    char rings[96] = "";
    if (!ring->cut || nodes < ring->n_nodes)
        nodes = ring->n_nodes;
    if (!ring->cut || gpus < ring->n_gpus)
        gpus = ring->n_gpus;
    if (ring->n_rings > 1 && gbps > 0)
        snprintf(rings, sizeof(rings), "%d rings of %.2f GB/s, together %.2f, ", ring->n_rings,
                 gbps / ring->n_rings, gbps);
    else if (ring->n_rings > 1)
        snprintf(rings, sizeof(rings), "%d rings at once, ", ring->n_rings);
    add_line(&drawn->sheet,
             acct_field_print("%lld node%s, %lld GPU%s, %sstarted %s", nodes, ending(nodes), gpus,
                              ending(gpus), rings, acct_drawn_field(drawn, record, "Start")));
}

/* What NCCL built, in words: of a line, and before a prediction. One row for each word of the
 * record
 * ("built"). */
static const struct built {
    const char *word, *line, *before;
    bool behind_state; /* the line follows the step's state */
} builts[] = {
    {"yes", "planned, and built by NCCL", "", false},
    {"partly", "planned, and NCCL built a part of it", "Planned, but built only in part: ", false},
    {"no", "planned, but NCCL did not build it", "Planned, but not built: ", false},
    {TCCL_NO_CALL, "planned; no call of NCCL was seen", "Planned: ", false},
    {"unknown", "; what NCCL built is not known", "Predicted: ", true},
    {"", "; what NCCL built is not reported yet", "Predicted: ", true},
};

static const struct built *built_of(const json_t *record)
{
    const struct built *built = builts;
    while (*built->word && strcmp(built->word, tccl_text_of(record, "built")) != 0)
        built++;
    return built;
}

static void add_source(const json_t *record, struct acct_drawn *drawn)
{
    const char *source = tccl_text_of(record, "source"),
               *took = acct_drawn_field(drawn, record, "SolveTime");
    const char *what = !strcmp(source, "model") ? "from a model of the machines"
                       : !strcmp(source, "host")
                           ? "from measurements with CPU cores in place of GPUs"
                       : !strcmp(source, "cuda") ? "from measurements"
                       : *source                 ? source
                                                 : "of unknown source";
    if (*source || *took)
        add_line(&drawn->sheet,
                 acct_field_print("bandwidths %s%s%s", what, *took ? "; solved in " : "", took));
}

/* A text that can't be read is as none. */
static void read_nccl(const json_t *record, struct acct_drawn *drawn)
{
    const struct acct_ring *ring = &drawn->ring;
    const char *text = tccl_text_of(record, "baseline_rings");
    if (!*text || tccl_named_rings_parse(text, &drawn->nccl, NULL) != 0) {
        drawn->nccl.n = 0;
        return;
    }
    struct tccl_memory_load nccl = tccl_memory_busiest(drawn->nccl.chains, drawn->nccl.n);
    struct tccl_memory_load ours = tccl_memory_busiest(ring->sets[0].chains, ring->n_rings);
    if (nccl.copies * ring->n_rings > ours.copies * drawn->nccl.n) /* each a part of the data */
        drawn->sheet.busy = nccl;
}

/* What is gained, and by what; as long as NCCL has not said that it built the ring, a prediction.
 */
static void add_gain(const json_t *record, struct acct_drawn *drawn)
{
    double gbps = tccl_real_of(record, "gbps"), own = tccl_real_of(record, "baseline_gbps"),
           ratio = tccl_real_of(record, "ratio");
    bool left = !strcmp(tccl_text_of(record, "state"), "left");
    struct tccl_sheet *sheet = &drawn->sheet;
    char cause[TCCL_LOAD_TEXT] = "";
    if (!(gbps > 0) || !(own > 0))
        return;
    if (sheet->busy.memory >= 0 && gbps > own)
        tccl_memory_load_say(&sheet->busy, "NCCL", cause);
    sheet->lead = acct_field_print("%s%s%.2f in place of %.2f GB/s%s%s",
                                   left ? "Planned, but not built: " : built_of(record)->before,
                                   drawn->bounds ? "at least " : "", gbps, own,
                                   *cause ? ". Why ours is faster: " : "", cause);
    if (ratio > 0)
        add_line(sheet, acct_field_print("%s%.2f times as fast as the baseline",
                                         sheet->built ? "" : "predicted to be ", ratio));
}

/* What its large collectives reached. NULL: not known, or out of memory. */
static char *achieved_text(const json_t *record)
{
    double achieved = tccl_real_of(record, "achieved_gbps"),
           share = tccl_real_of(record, "achieved_share");
    long long samples = tccl_number_of(record, "samples");
    bool own = !strcmp(tccl_text_of(record, "achieved_with"), "own");
    char of[64] = "";
    if (!(achieved > 0))
        return NULL;
    if (share > 0)
        snprintf(of, sizeof(of), ", %.0f %% of what was predicted%s", 100 * share,
                 own ? " of these" : "");
    return acct_field_print("achieved %.2f GB/s%s%s: the best tenth of %lld large collective%s",
                            achieved, own ? " with NCCL's own rings" : "", of, samples,
                            ending(samples));
}

/* What it has beside others, of what it would have alone, and by what that is known, unless that is
 * what its other bandwidths are from; and who can't be drawn: those that copy between GPUs and
 * memory only, or whose chains were too long. A text that can't be read is as none. */
static void add_beside(const json_t *record, struct acct_drawn *drawn)
{
    long long others = tccl_number_of(record, "neighbours"), left;
    double gbps = tccl_real_of(record, "gbps"), alone = tccl_real_of(record, "alone_gbps");
    bool each = others > 1 && tccl_number_of(record, "n_nodes") > 1;
    const char *by = drawn->bounds ? " (by bounds)"
                     : !strcmp(tccl_text_of(record, "neighbours_by"), "measured")
                         ? " (measured together)"
                     : !strcmp(tccl_text_of(record, "neighbours_by"), "foretold")
                         ? " (foretold by others that were measured together)"
                         : "";
    drawn->beside = calloc(TCCL_MAX_BESIDE, sizeof(*drawn->beside));
    if (drawn->beside)
        drawn->n_beside = tccl_beside_parse(tccl_text_of(record, "beside"), drawn->beside, NULL);
    drawn->n_beside = drawn->n_beside > 0 ? drawn->n_beside : 0;
    left = others - drawn->n_beside;
    if (others <= 0)
        return;
    if (alone > 0)
        add_line(&drawn->sheet,
                 acct_field_print(
                     "%s%.2f GB/s beside %lld other step%s%s that ran when it began%s, %.2f "
                     "alone: %s%.0f %% lost",
                     drawn->bounds ? "at least " : "", gbps, others, ending(others),
                     each ? " (counted on each node)" : "", by, alone,
                     drawn->bounds ? "at most " : "", fmax(0, 100 * (1 - gbps / alone))));
    else
        add_line(&drawn->sheet,
                 acct_field_print("%lld other step%s%s ran beside it when it began", others,
                                  ending(others), each ? " (counted on each node)" : ""));
    if (left > 0)
        add_line(&drawn->sheet,
                 acct_field_print(
                     "%lld of the steps beside it %s not drawn: the record has no chains of %s",
                     left, left == 1 ? "is" : "are", left == 1 ? "it" : "them"));
}

static void add_bars(const json_t *record, struct acct_drawn *drawn)
{
    const struct {
        const char *name, *label;
    } known[TCCL_SHEET_BARS] = {{"gbps", drawn->ring.n_rings > 1 ? "these rings" : "this ring"},
                                {"achieved_gbps", "achieved"},
                                {"baseline_gbps", "baseline"},
                                {"alone_gbps", "ring alone"},
                                {"placed_gbps", "best GPUs"},
                                {"bound_gbps", "proven bound"}};
    for (int i = 0; i < TCCL_SHEET_BARS; i++) {
        double gbps = tccl_real_of(record, known[i].name);
        int n = drawn->sheet.n_bars;
        if (!(gbps > 0) || (i == 1 && strcmp(tccl_text_of(record, "achieved_with"), "rings") != 0))
            continue;
        drawn->sheet.bars[n].label = known[i].label;
        if (i == 5)
            add_line(&drawn->sheet, strdup("proven bound: what no rings of these GPUs can exceed"));
        drawn->sheet.bars[n].ours = i == 0;
        drawn->sheet.bars[n].gbps = gbps;
        drawn->sheet.n_bars++;
    }
}

/* ---- cards ---- */

void acct_drawn_place(const struct acct_drawn *drawn, int node, char text[static ACCT_PLACE])
{
    if (node < drawn->ring.n_nodes)
        snprintf(text, ACCT_PLACE, "%.40s", drawn->ring.names[node]);
    else
        snprintf(text, ACCT_PLACE, "node %d", node);
}

bool acct_drawn_least(const struct acct_drawn *drawn, int neighbour)
{
    return drawn->bounds || drawn->beside[neighbour].node > 0;
}

/* The nodes at place (0 to n_runs - 1) of a group, with their names in Slurm's bracket form. */
static void add_nodes(const struct acct_group *group, int place, double gbps,
                      struct acct_drawn *drawn)
{
    const struct acct_run *run = &drawn->ring.runs[group->first + place];
    struct tccl_card *card = &drawn->sheet.cards[drawn->sheet.n_cards++];
    cleanup_free const char **names = calloc((size_t)(group->times * run->count), sizeof(*names));
    *card = (struct tccl_card){.first = drawn->ring.names[run->first],
                               .rings = &drawn->ring.sets[run->set],
                               .gbps = gbps,
                               .least = drawn->bounds,
                               .turn = place,
                               .turns = group->n_runs,
                               .times = group->times};
    for (int i = 0; names && i < group->times; i++)
        for (int k = 0; k < run->count; k++)
            names[card->nodes++] = drawn->ring.names[run[i * group->n_runs].first + k];
    card->head = names ? tccl_hosts_fold(names, (size_t)card->nodes) : NULL;
}

static void add_cards(const json_t *record, struct acct_drawn *drawn)
{
    struct tccl_sheet *sheet = &drawn->sheet;
    double gbps = tccl_real_of(record, "gbps"), own = tccl_real_of(record, "baseline_gbps");
    char place[ACCT_PLACE];
    sheet->cards =
        calloc((size_t)(drawn->ring.n_runs + 1 + drawn->n_beside), sizeof(*sheet->cards));
    if (!sheet->cards)
        return;
    for (int i = 0; i < drawn->ring.n_groups; i++)
        for (int k = 0; k < drawn->ring.groups[i].n_runs; k++)
            add_nodes(&drawn->ring.groups[i], k, gbps, drawn);
    sheet->n_ours = sheet->n_cards;
    if (drawn->nccl.n > 0) {
        acct_drawn_place(drawn, 0, place);
        sheet->n_nccl = 1;
        sheet->cards[sheet->n_cards++] =
            (struct tccl_card){.kind = TCCL_CARD_NCCL,
                               .head = acct_field_print("NCCL's own on %s: %.2f GB/s", place, own),
                               .rings = &drawn->nccl,
                               .gbps = own};
    }
    for (int i = 0; i < drawn->n_beside; i++) {
        const struct tccl_neighbour *other = &drawn->beside[i];
        bool named = drawn->ring.n_nodes > 1 || other->node > 0, least = acct_drawn_least(drawn, i);
        acct_drawn_place(drawn, other->node, place);
        sheet->cards[sheet->n_cards++] = (struct tccl_card){
            .kind = TCCL_CARD_OTHER,
            .head = acct_field_print("beside it%s%s: %s%.2f of %.2f GB/s%s", named ? " on " : "",
                                     named ? place : "", least ? "at least " : "", other->gbps,
                                     other->alone,
                                     other->nccl          ? ", NCCL's own"
                                     : other->rings.n > 1 ? ""
                                                          : ", a ring"),
            .rings = &other->rings,
            .gbps = other->gbps,
            .least = least};
    }
}

int acct_drawn_read(const json_t *record, struct acct_drawn *drawn, struct tccl_error *err)
{
    const char *text = tccl_text_of(record, "ring"), *node = tccl_text_of(record, "first_node");
    struct tccl_sheet *sheet = &drawn->sheet;
    *drawn = (struct acct_drawn){.shown = json_object(), .sheet = {.busy = {.memory = -1}}};
    const char *job = acct_drawn_field(drawn, record, "JobID"),
               *name = acct_drawn_field(drawn, record, "JobName");
    if (!*text) {
        const char *reason = tccl_text_of(record, "reason"), *state = tccl_text_of(record, "state");
        cleanup_free char *achieved = achieved_text(record);
        return tccl_fail(err, "step %s has no ring: %s%s%s%s%s", job, state, *reason ? ": " : "",
                         *reason                 ? reason
                         : !strcmp(state, "off") ? ": none was asked for"
                                                 : "",
                         achieved ? "; " : "", achieved ? achieved : "");
    }
    if (acct_ring_read(text, *node ? node : tccl_text_of(record, "nodes"), &drawn->ring, err) != 0)
        return tccl_fail_in(err, "the ring of step %s can't be read", job);
    sheet->built = !strcmp(tccl_text_of(record, "built"), "yes");
    sheet->cut = drawn->ring.cut;
    drawn->bounds = !strcmp(tccl_text_of(record, "neighbours_by"), "bounds");
    sheet->title = acct_field_print("Step %s%s%s of %s", job, *name ? ": " : "", name,
                                    acct_drawn_field(drawn, record, "User"));
    read_nccl(record, drawn);
    add_size(record, drawn);
    const struct built *built = built_of(record);
    const char *state = acct_drawn_field(drawn, record, "State");
    bool open = !*built->word && strcmp(state, "planned") != 0;
    const char *why = acct_drawn_field(drawn, record, open ? "Reason" : "BuiltReason");
    if (!*built->word && !open)
        why = "";
    add_line(&drawn->sheet, acct_field_print("%s%s%s%s", built->behind_state ? state : "",
                                             open ? "" : built->line, *why ? ": " : "", why));
    add_gain(record, drawn);
    if (tccl_real_of(record, "achieved_gbps") > 0)
        add_line(sheet, achieved_text(record));
    add_beside(record, drawn);
    add_source(record, drawn);
    if (sheet->cut)
        add_line(sheet, acct_field_print(
                            "the record holds only the beginning of the ring: its first %d node%s",
                            drawn->ring.n_nodes, ending(drawn->ring.n_nodes)));
    add_bars(record, drawn);
    add_cards(record, drawn);
    bool whole = sheet->title && sheet->cards;
    for (int i = 0; i < sheet->n_lines; i++)
        whole = whole && sheet->lines[i];
    for (int i = 0; i < sheet->n_cards; i++)
        whole = whole && sheet->cards[i].head;
    return whole ? 0 : tccl_fail(err, "out of memory for a ring");
}

void acct_drawn_clear(struct acct_drawn *drawn)
{
    tccl_sheet_clear(&drawn->sheet);
    acct_ring_clear(&drawn->ring);
    free(drawn->beside);
    json_decref(drawn->shown);
}
