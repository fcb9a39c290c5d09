/* alongside.c: who runs beside whom. Numbers of GPUs get a meaning only when somebody asks:
 * slurmd's list may come later than the step. */
#include "tccld/join/alongside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/numberset.h"
#include "chain/beside-text.h"
#include "ring/neighbours.h"
#include "ring/reach.h"
#include "tccld/join/running.h"
#include "tccld/join/step-outcome.h"

enum { PLACE_MS = 10, READ_MS = 100, LOOK_MS = 1000, SEEN = TCCL_MAX_SIDES - 1 };

void alongside_plan(struct running *running, struct running_step *step,
                    const struct tccl_outcome *outcome, const struct tccl_step *join,
                    const struct tccl_node_class *class)
{
    const struct tccl_machine *machine = own_machine(running->daemon->own);
    struct tccl_named_rings named;
    struct outcome_part part;
    char text[TCCL_RINGS_TEXT];
    step->plan = true;
    step->ring = outcome->state == TCCL_STATE_PLANNED;
    step->measure = outcome->measure;
    step->subject = outcome->neighbours ? 0 : outcome->subject;
    step->promised = outcome->promised;
    snprintf(step->what, sizeof(step->what), "%s", outcome->node_class);
    step->start = outcome->start;
    step->n_gpus = 0;
    for (int i = 0; machine && i < machine->n_gpus; i++)
        if (class->gpus >> i & 1 &&
            tccl_bus_parse(machine->gpus[i].busid, &step->gpus[step->n_gpus]) == 0)
            step->n_gpus++;
    step->gbps = outcome->gbps;
    step->n_baselines = outcome->n_baselines;
    memcpy(step->baselines, outcome->baselines, sizeof(step->baselines));
    free(tccl_steal(step->rings));
    if (!step->ring || outcome_part(outcome, join, class, &part) != 0)
        return;
    named.n = part.set.n;
    for (int i = 0; i < part.set.n; i++)
        tccl_chain_name(&part.set.rings[i], machine, false, &named.chains[i]);
    tccl_named_rings_format(&named, text);
    step->rings = strdup(text);
    step->alone = part.alone;
}

/* What was measured together here; NULL: nothing, or it can't be read, which is said. */
static const struct tccl_together *read_together(struct running *running)
{
    struct tccl_error err = {""};
    const struct tccl_together *known = own_together(running->daemon->own, &err);
    if (err.text[0])
        log_limited(
            &running->trouble,
            "steps beside others are planned by bounds: can't read what was measured together: %s",
            err.text);
    return known;
}

/* Steps that come beside those that run will ask for it; reading it takes some milliseconds, for
 * which none of them should wait. */
void alongside_read_ahead(struct running *running)
{
    struct own *own = running->daemon->own;
    if (own && !TAILQ_EMPTY(&running->live) && !own_model(own))
        read_together(running);
}

/* What the best GPUs give is found out between the answers, one set of them after the other. */
void alongside_on_place(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct running *running = argument;
    if (running->daemon->own && own_look_at_place(running->daemon->own))
        daemon_set(running->place, PLACE_MS);
}

/* ---- seen beside them ---- */

/* The others that run, each with GPUs of its own. */
struct alongside {
    struct tccl_side sides[SEEN];
    struct running_step *who[SEEN];
    uint32_t own[SEEN]; /* GPUs of each */
    uint32_t gpus;      /* of all of them, and the step's own */
    struct tccl_beside beside;
    struct tccl_neighbour *named; /* of each, what the record says; NULL: nobody asks */
};

/* Returns whether there is anything that counts. */
static bool put_side(struct alongside *seen, double alone)
{
    struct tccl_beside *beside = &seen->beside;
    if (seen->sides[beside->n].count == 0 || !(alone > 0))
        return false;
    seen->sides[beside->n].alone = alone;
    beside->others[beside->n] = &seen->sides[beside->n];
    beside->alone[beside->n++] = alone;
    return true;
}

/* By GPU numbers. All rings of a set, those that are alike too; of NCCL's own each once. */
static void name_set(const struct tccl_machine *machine, const struct tccl_ring_set *set, bool nccl,
                     struct tccl_neighbour *neighbour)
{
    struct tccl_named_rings *rings = &neighbour->rings;
    neighbour->nccl = nccl;
    rings->n = 0;
    for (int i = 0; i < set->n; i++) {
        bool again = false;
        for (int k = 0; k < i && nccl && !again; k++)
            again = tccl_chain_equal(&set->rings[k], &set->rings[i]);
        if (!again)
            tccl_chain_name(&set->rings[i], machine, true, &rings->chains[rings->n++]);
    }
}

/* What the first rings of a set have alone: as the model says; else each what it has beside the
 * rest, at least. */
static double alone_of_first(struct running *running, const struct running_step *step, int planned,
                             const struct tccl_side *side)
{
    const struct tccl_rates rates = {.model = own_model(running->daemon->own)};
    enum tccl_basis basis;
    double gbps;
    if (rates.model && tccl_rates_sides(&rates, &side, 1, &gbps, &basis, NULL) == 0)
        return gbps;
    return step->alone * side->rings / planned;
}

static bool see_ring(struct running *running, const struct running_step *step,
                     struct alongside *seen)
{
    const struct tccl_machine *machine = own_machine(running->daemon->own);
    struct tccl_side *side = &seen->sides[seen->beside.n];
    struct tccl_ring_set set;
    if (tccl_ring_set_parse(step->rings, machine, &set, NULL) != 0)
        return false;
    int planned = set.n;
    if (step->built < planned)
        set.n = step->built;
    tccl_ring_set_side(&set, side);
    if (seen->named)
        name_set(machine, &set, false, &seen->named[seen->beside.n]);
    return put_side(seen,
                    set.n < planned ? alone_of_first(running, step, planned, side) : step->alone);
}

static void see_nccl(struct running *running, const struct running_step *step, uint32_t gpus,
                     struct alongside *seen)
{
    struct own *own = running->daemon->own;
    const struct tccl_table *table = own_table(own, gpus);
    const struct tccl_baseline *baseline;
    int generation = step->nccl > 0 ? tccl_generation_of(step->nccl) : TCCL_NEWEST;
    if (!table)
        return;
    baseline = &table->baselines[step->n_nodes == 1][generation];
    if (seen->named)
        name_set(own_machine(own), &baseline->set, true, &seen->named[seen->beside.n]);
    if (tccl_ring_set_side(&baseline->set, &seen->sides[seen->beside.n]) == 0)
        put_side(seen, baseline->gbps);
}

/* GPUs that a step before this one has, in part at least, are not seen twice. */
static void see_step(struct running *running, struct running_step *step, struct alongside *seen)
{
    struct daemon *daemon = running->daemon;
    uint32_t gpus;
    if (seen->beside.n == SEEN ||
        own_gpus(daemon->own, daemon->gpus, step->gres, step->n_gres, &gpus) != 0 ||
        (gpus & seen->gpus))
        return;
    seen->gpus |= gpus;
    seen->who[seen->beside.n] = step;
    seen->own[seen->beside.n] = gpus;
    seen->sides[seen->beside.n] = (struct tccl_side){0};
    if (step->rings && step->built > 0 && see_ring(running, step, seen))
        return;
    seen->sides[seen->beside.n] = (struct tccl_side){0};
    see_nccl(running, step, gpus, seen);
}

/* Steps of one job may have the same GPUs (--overlap), and those of its script: one with a ring
 * counts, rather than a shell or a monitor beside it; else the latest one; last of all a script. */
enum { RINGS, OTHERS, SCRIPTS, RANKS };

static int rank_of(const struct running *running, const struct running_step *step)
{
    const struct running_step *script =
        step->by_script ? running_script(running, &step->key) : NULL;
    if ((step->by_script && !(script && script->launch == TCCL_LAUNCH_SCRIPT_ONLY)) ||
        step->launch == TCCL_LAUNCH_SCRIPT_ONLY || step->n_gres == 0)
        return RANKS; /* it has none, or another record has them: the script's, if that has a ring
                       */
    if (step->by_script || script_is(&step->key)) /* known to have begun, not to have ended */
        return SCRIPTS;
    return step->rings && step->built > 0 ? RINGS : OTHERS;
}

/* key: of one that does not count; NULL: all do. */
static void see_all(struct running *running, const struct tccl_step_key *key,
                    struct alongside *seen)
{
    struct running_step *step;
    for (int rank = 0; rank < RANKS; rank++) {
        TAILQ_FOREACH(step, &running->live, link)
        if (rank_of(running, step) == rank && (!key || !tccl_key_equal(&step->key, key)))
            see_step(running, step, seen);
    }
}

/* What was measured together here, as it was read last; NULL: nothing. */
static const struct tccl_together *together(struct running *running)
{
    bool stale;
    const struct tccl_together *known = own_together_read(running->daemon->own, &stale);
    if (known && stale) /* read it once nobody waits */
        running_save_in(running, READ_MS);
    return known || !stale ? known : read_together(running);
}

/* What a model says of them, or what was measured. */
static void know(struct running *running, struct tccl_beside *beside)
{
    struct own *own = running->daemon->own;
    beside->model = own_model(own);
    if (beside->model)
        return;
    beside->machine = own_machine(own);
    beside->together = together(running);
}

struct shared_class *alongside_see(struct running *running, const struct tccl_step_key *key,
                                   struct shared_class *class, bool closed, enum tccl_view view)
{
    struct own *own = running->daemon->own;
    struct tccl_error err = {""};
    cleanup_free struct tccl_neighbour *named = calloc(SEEN, sizeof(*named));
    struct alongside seen = {.gpus = class->class->gpus, .named = named};
    running_sweep(running);
    see_all(running, key, &seen);
    if (seen.beside.n == 0)
        return class;
    know(running, &seen.beside);
    const struct tccl_table *table = own_table(own, class->class->gpus);
    struct tccl_node_class *beside =
        table ? tccl_beside_class(&seen.beside, table, closed, view, &err) : NULL;
    if (beside) {
        beside->neighbours = seen.beside.n;
        memcpy(beside->worse, class->class->worse, sizeof(beside->worse));
        /* Those that run, with what each has alone. */
        for (int i = 0; i < seen.beside.n && named; i++)
            named[i].gbps = named[i].alone = seen.beside.alone[i];
        beside->beside = named ? tccl_beside_format(named, seen.beside.n) : NULL;
    }
    struct shared_class *shared = beside ? shared_class_new(beside) : NULL;
    if (!shared) {
        log_limited(&running->trouble, "a step is planned as if it were alone: %s",
                    err.text[0] ? err.text : "out of memory");
        return class;
    }
    shared_class_drop(class);
    return shared;
}

void alongside_warn(struct running *running, const struct running_step *step)
{
    struct daemon *daemon = running->daemon;
    struct alongside seen = {0};
    struct tccl_worth worth;
    uint32_t gpus;
    char own[64], others[64];
    if (!daemon->own || step->n_gres < 2 ||
        own_gpus(daemon->own, daemon->gpus, step->gres, step->n_gres, &gpus) != 0)
        return;
    const struct tccl_table *table = own_table(daemon->own, gpus);
    const struct tccl_baseline *nccl =
        table ? &table->baselines[step->n_nodes == 1][TCCL_NEWEST] : NULL;
    struct tccl_side side = {.alone = nccl ? nccl->gbps : 0};
    seen.gpus = gpus;
    see_all(running, &step->key, &seen);
    know(running, &seen.beside);
    struct tccl_beside *beside = &seen.beside;
    beside->own = side.alone;
    if (beside->n == 0 || !(side.alone > 0) || tccl_ring_set_side(&nccl->set, &side) != 0 ||
        tccl_beside_worth(beside, &side, &worth, NULL) != 0 ||
        !tccl_beside_collapses(beside, &side, &worth))
        return;
    tccl_numberset_format(gpus, own, sizeof(own));
    tccl_numberset_format(seen.gpus & ~gpus, others, sizeof(others));
    log_limited(&running->collapsed,
                "step %s, TCCL off: copies of its GPUs %s and those of steps on GPUs %s slow each "
                "other down: %.1f of %.1f GB/s: with --tccl=on, or on other GPUs, they may not "
                "(tccl-path place --gpus %d --busy %s)",
                step->folder, own, others, worth.gbps, side.alone, step->n_gres, others);
}

/* ---- those that ran before: beside such as have their plan; what others will have isn't known
 * ---- */

void alongside_began(struct running *running, const struct running_step *step)
{
    if (step->order <= running->looked)
        running->looked = step->order - 1;
    if (running->look && !event_pending(running->look, EV_TIMEOUT, NULL))
        daemon_set(running->look, LOOK_MS);
}

/* Has the one less beside the other than sharing explains? Says so. */
static void look_at(struct running *running, const struct alongside *seen, int one, int other)
{
    struct running_step *step = seen->who[one];
    const struct tccl_side *side = &seen->sides[one];
    struct tccl_beside beside = seen->beside;
    struct tccl_worth worth;
    char own[64], others[64], text[TCCL_OUTCOME_REASON + 1];
    beside.n = 1;
    beside.others[0] = &seen->sides[other];
    beside.alone[0] = seen->beside.alone[other];
    beside.own = side->alone;
    if (tccl_beside_worth(&beside, side, &worth, NULL) != 0 ||
        !tccl_beside_held_up(&beside, side, &worth))
        return;
    tccl_numberset_format(seen->own[one], own, sizeof(own));
    tccl_numberset_format(seen->own[other], others, sizeof(others));
    snprintf(
        text, sizeof(text),
        "%.64s: a step began later on GPUs %s: copies of both slow each other down: %.1f of %.1f "
        "GB/s on GPUs %s",
        running->daemon->conf->node, others, worth.gbps, side->alone, own);
    log_limited(&running->slowed, "step %s is slowed down: %s", step->folder, text);
    built_later(running, step, text);
}

/* Another step began beside it, and beside what mpirun has started with a job script's GPUs. */
static void tell(struct running *running, const struct alongside *seen, int one, int other)
{
    struct running_step *step = seen->who[one];
    struct running_step *below = running_is_script(step) ? script_next_below(running, step) : NULL;
    built_later(running, step, NULL);
    if (below && below->start && below->order < seen->who[other]->order)
        built_later(running, below, NULL);
    if (!step->slowed)
        look_at(running, seen, one, other);
}

void alongside_on_look(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct running *running = argument;
    struct alongside *seen = calloc(1, sizeof(*seen));
    const int64_t looked = running->looked;
    running->looked = running->latest;
    running_sweep(running);
    if (seen && running->daemon->own) {
        see_all(running, NULL, seen);
        know(running, &seen->beside);
    }
    for (int i = 0; seen && i < seen->beside.n; i++)
        for (int k = 0; k < seen->beside.n; k++)
            if (seen->who[i]->start && seen->who[k]->start && seen->who[k]->order > looked &&
                seen->who[k]->order > seen->who[i]->order)
                tell(running, seen, i, k);
    free(seen);
}

/* Tables one after the other: the next question may take the place of the one before. */
static struct tccl_groups *gather_groups(struct running *running, const uint32_t *groups, int n,
                                         bool closed, enum tccl_view view, struct tccl_error *err)
{
    struct own *own = running->daemon->own;
    struct tccl_groups *list = tccl_groups_new(own_machine(own), closed, view);
    for (int i = 0; list && i < n; i++) {
        const struct tccl_table *table = own_table(own, groups[i]);
        if (!table || tccl_groups_add(list, table, err) != 0) {
            tccl_groups_free(list);
            return NULL;
        }
    }
    return list;
}

int alongside_choose(struct running *running, const struct tccl_step_key *key,
                     const uint32_t *groups, int n, bool closed, enum tccl_view view,
                     struct tccl_group_choice *choices)
{
    struct tccl_error err = {""};
    struct alongside seen = {0};
    for (int i = 0; i < n; i++)
        seen.gpus |= groups[i];
    running_sweep(running);
    see_all(running, key, &seen);
    know(running, &seen.beside);
    struct tccl_groups *list = gather_groups(running, groups, n, closed, view, &err);
    int status = list ? tccl_groups_choose(list, &seen.beside, choices, &err) : -1;
    tccl_groups_free(list);
    if (status != 0 && err.text[0])
        log_limited(&running->trouble, "groups of a step are planned each by itself: %s", err.text);
    return status;
}

/* ---- on record ---- */

_Static_assert((int)TCCL_OUTCOME_BESIDE == (int)TCCL_BESIDE_TEXT, "a record takes the whole text");

static void describe_others(struct running *running, const struct tccl_step *join,
                            const struct tccl_node_class *class, struct tccl_outcome *outcome)
{
    struct outcome_part part;
    cleanup_free struct tccl_neighbour *named = calloc(TCCL_MAX_BESIDE, sizeof(*named));
    cleanup_free struct tccl_neighbour *others = calloc(TCCL_MAX_BESIDE, sizeof(*others));
    struct alongside seen = {.gpus = class->gpus, .named = named};
    if (!named || !others || outcome_part(outcome, join, class, &part) != 0)
        return;
    see_all(running, &join->key, &seen);
    know(running, &seen.beside);
    int n = seen.beside.n;
    if (n == 0)
        return;
    /* What each reaches while all run. */
    struct tccl_beside *beside = &seen.beside;
    struct tccl_side own = {.alone = part.alone};
    struct tccl_worth worth;
    beside->own = part.alone;
    tccl_ring_set_side(&part.set, &own);
    if (tccl_beside_worth(beside, &own, &worth, NULL) != 0)
        return;
    for (int i = 0; i < beside->n; i++) {
        seen.named[i].alone = beside->alone[i];
        seen.named[i].gbps = fmin(worth.others[i], beside->alone[i]);
    }
    int more = outcome->beside ? tccl_beside_parse(outcome->beside, others, NULL) : 0;
    for (int i = 0; i < more && n < TCCL_MAX_BESIDE; i++)
        named[n++] = others[i];
    free(outcome->beside);
    outcome->beside = tccl_beside_format(named, n);
}

static void describe_baseline(struct running *running, const struct tccl_step *join,
                              const struct tccl_node_class *class, struct tccl_outcome *outcome)
{
    const struct tccl_table *table = own_table(running->daemon->own, class->gpus);
    char text[TCCL_RINGS_TEXT];
    if (!table || !(outcome->baseline_gbps > 0) || outcome->baseline_rings)
        return;
    /* All of its chains, also those that are equal: each carries its part. */
    const struct tccl_ring_set *set = &table->baselines[join->n_nodes == 1][TCCL_NEWEST].set;
    tccl_ring_set_format(set, own_machine(running->daemon->own), text);
    if (set->n > 0 && strlen(text) <= TCCL_OUTCOME_BASELINE)
        outcome->baseline_rings = strdup(text);
}

void alongside_describe(struct running *running, const struct tccl_step *join,
                        const struct tccl_node_class *class, struct tccl_outcome *outcome)
{
    bool ring = outcome->state == TCCL_STATE_PLANNED && outcome->choices;
    bool own = outcome->state == TCCL_STATE_LEFT && join->n_nodes == 1 && class->n_gpus > 1;
    if (ring)
        describe_baseline(running, join, class, outcome);
    if ((ring || own) && join->n_nodes == 1 && !join->hidden) {
        /* 0: not known yet. */
        double gbps =
            own_placed(running->daemon->own, class->n_gpus,
                       join->max_rings ? join->max_rings : running->daemon->conf->max_rings);
        if (!(gbps > 0) && !event_pending(running->place, EV_TIMEOUT, NULL))
            daemon_set(running->place, PLACE_MS);
        outcome->placed_gbps = gbps;
    }
    if (ring && class->neighbours > 0)
        describe_others(running, join, class, outcome);
    /* What NCCL's own have on this node while nobody else runs, of a step that has these. */
    const struct tccl_table *table = own ? own_table(running->daemon->own, class->gpus) : NULL;
    if (table && outcome->neighbours > 0 && outcome->baseline_gbps > 0)
        outcome->alone_gbps = fmax(
            outcome->baseline_gbps,
            table->baselines[1][TCCL_NEWEST].gbps *
                tccl_reach(tccl_baseline_ends(&table->baselines[1][TCCL_NEWEST]), class->n_gpus));
}
