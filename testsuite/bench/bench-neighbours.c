/* bench-neighbours.c: two steps with half of a node's GPUs each, one ring each, at the same time:
 * what an all-reduce of the slower one reaches, by the way in which their rings were planned. By
 * models, in rounds as NCCL runs them. */
#include <math.h>

#include "bench.h"
#include "machines.h"
#include "nccl/baseline.h"
#include "owned.h"
#include "ring/neighbours.h"
#include "ring/reach.h"
#include "ring/ring.h"
#include "search/beside.h"
#include "search/model-table.h"
#include "search/place.h"

enum { STEPS = 2, ROUNDS = 6, SPLITS = 12, BENCH_OTHERS = 150, BENCH_SETS = 300, PAIRS = 128 };

/* Sets of GPUs whose bandwidths differ by no more are equal to who places a step: as tccl-path
 * place. */
#define PLACE_NOISE 0.03

struct machine {
    const struct tccl_model *model;
    const struct tccl_machine *machine;
    struct tccl_search_options options;
};

/* A step: its best ring alone, what a stock NCCL builds, and its chain table. Steps of several
 * nodes have the same GPUs of nodes that are like this one in all, also in what else runs there. */
struct step {
    uint32_t gpus;
    bool across; /* several nodes: chains between NICs; else rings only */
    double gbps, nccl_gbps;
    struct tccl_table *table;
    struct tccl_side ours, nccl;
};

/* The slower of both, GB/s, by the way to plan them. */
enum way { ALONE, EACH, TABLE, SECOND, JOINT, BEST, NCCL, WAYS };
static const char *const ways[WAYS] = {"alone_gbps",        "planned_alone_gbps", "by_table_gbps",
                                       "second_knows_gbps", "jointly_gbps",       "best_gbps",
                                       "nccl_gbps"};

static void add_chain(struct tccl_side *side, const struct tccl_chain *chain)
{
    MUST(tccl_side_add_chain(side, chain));
}

/* b NULL: nobody is beside a. */
static double slower(const struct machine *machine, const struct tccl_side *a,
                     const struct tccl_side *b)
{
    const struct tccl_side *sides[STEPS] = {a, b};
    double gbps[STEPS];
    MUST(tccl_model_rounds(machine->model, sides, b ? STEPS : 1, gbps, ERR));
    return b ? fmin(gbps[0], gbps[1]) : gbps[0];
}

/* The ring of some GPUs beside another step (NULL: nobody). Returns what it reaches alone. */
static double plan(const struct machine *machine, uint32_t gpus, const struct tccl_side *other,
                   double other_alone, struct tccl_side *side)
{
    struct tccl_beside beside = {
        .model = machine->model, .n = other != NULL, .others = {other}, .alone = {other_alone}};
    struct tccl_result best;
    struct tccl_worth worth;
    MUST(tccl_beside_ring(&beside, gpus, &machine->options, &best, &worth, ERR) < 0);
    *side = (struct tccl_side){0};
    add_chain(side, &best.chain);
    return best.bound;
}

enum { CHAINS_BUDGET = 500 };

/* As tccl-profile run makes it, without ring sets; where it is not for several nodes, without
 * chains between NICs. */
static struct tccl_table *make_chains(const struct machine *machine, uint32_t gpus, bool across,
                                      long others)
{
    struct tccl_machine alone = *machine->machine;
    struct tccl_search_options options = machine->options;
    alone.n_nics = across ? alone.n_nics : 0;
    options.budget = across ? CHAINS_BUDGET : options.budget;
    options.others = others;
    struct tccl_table *table = tccl_table_new(&alone, gpus);
    owned(search) struct tccl_search *search =
        tccl_search_new(&alone, tccl_model_meter(machine->model), NULL);
    MUST(!table || !search || tccl_search_table(search, table, &options, ERR) < 0);
    MUST(others && tccl_beside_replies(machine->model, table, &machine->options, ERR));
    return table;
}

static struct tccl_table *make_table(const struct machine *machine, uint32_t gpus, bool across)
{
    struct tccl_table *table = make_chains(machine, gpus, across, BENCH_OTHERS);
    const struct tccl_table_sets_options sets = {.gap = 0.03, .budget = BENCH_SETS};
    MUST(tccl_table_find_sets(machine->model, table, &sets, ERR));
    return table;
}

/* What tccld gives a step of one node beside these: its rings, or what NCCL builds where that is as
 * good. Returns what that reaches alone. */
static double launch(struct tccl_beside *beside, const struct step *step, struct tccl_side *side)
{
    struct tccl_launched got;
    MUST(tccl_launch_choose(beside, step->table, TCCL_CHAIN_RINGS, &got, ERR));
    *side = got.side;
    return got.side.alone;
}

/* The same of one of several nodes. */
static double launch_across(const struct machine *machine, struct tccl_beside *beside,
                            const struct step *step, struct tccl_side *side)
{
    cleanup_class struct tccl_node_class *class =
        beside->n ? tccl_beside_class(beside, step->table, false, false, ERR)
                  : tccl_node_class_from_table(step->table, machine->machine, TCCL_VIEW_JOB);
    struct tccl_run run = {.class = class, .count = 2};
    struct tccl_ring_set set;
    cleared_by(tccl_ring_clear) struct tccl_ring ring = {0};
    int rings;
    MUST(!class || tccl_ring_choose(&run, 1, TCCL_CHAIN_RINGS, &ring, &rings, ERR));
    bool gains = tccl_ring_gains(&ring, TCCL_NEWEST);
    double alone = gains ? ring.alone : step->nccl_gbps;
    *side = (struct tccl_side){0};
    tccl_ring_set_of(&ring, class, 0, &set);
    if (gains)
        tccl_ring_set_side(&set, side);
    else
        *side = step->nccl;
    return alone;
}

static void begin(const struct machine *machine, uint32_t gpus, struct step *step)
{
    struct tccl_baseline own;
    struct tccl_set set;
    double gbps;
    *step = (struct step){.gpus = gpus};
    step->gbps = plan(machine, gpus, NULL, 0, &step->ours);
    step->table = make_table(machine, gpus, false);
    MUST(tccl_baseline_find(machine->machine, gpus, true, TCCL_NEWEST, &own, ERR));
    MUST(tccl_baseline_set(&own, &set, ERR));
    MUST(tccl_model_measure(machine->model, &set, &gbps, NULL, NULL, ERR));
    step->nccl_gbps = own.gbps = own.set.n * gbps;
    for (int i = 0; i < TCCL_GENERATIONS; i++) /* the table is of a machine without NICs */
        step->table->baselines[1][i] = own;
    tccl_table_ends(step->table, machine->model);
    MUST(tccl_ring_set_side(&own.set, &step->nccl));
}

/* One of several nodes: its best chain as if it were alone, whatever NCCL has. */
static void begin_across(const struct machine *machine, uint32_t gpus, struct step *step)
{
    *step = (struct step){.gpus = gpus, .across = true, .table = make_table(machine, gpus, true)};
    tccl_table_ends(step->table, machine->model);
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(step->table, machine->machine, TCCL_VIEW_JOB);
    const struct tccl_run run = {.class = class, .count = 2};
    cleared_by(tccl_ring_clear) struct tccl_ring ring = {0};
    struct tccl_ring_set set;
    MUST(!class || tccl_ring_solve(&run, 1, 1, &ring, ERR));
    tccl_ring_set_of(&ring, class, 0, &set);
    tccl_ring_set_side(&set, &step->ours);
    step->gbps = ring.gbps;
    step->nccl_gbps = ring.baseline_gbps[TCCL_NEWEST];
    MUST(tccl_ring_set_side(&step->table->baselines[0][TCCL_NEWEST].set, &step->nccl));
}

/* Each in turn plans its ring anew beside that of the other; the best that was met. */
static double reply(const struct machine *machine, const struct step steps[static STEPS],
                    struct tccl_side sides[static STEPS])
{
    double best = slower(machine, &sides[0], &sides[1]);
    for (int i = 0; i < ROUNDS; i++) {
        int own = i % STEPS, other = 1 - own;
        plan(machine, steps[own].gpus, &sides[other], steps[other].gbps, &sides[own]);
        best = fmax(best, slower(machine, &sides[0], &sides[1]));
    }
    return best;
}

/* All rings of two GPUs that NCCL can be made to build. Returns how many. */
static int list_pairs(const struct machine *machine, uint32_t gpus,
                      struct tccl_side sides[static PAIRS])
{
    int first = __builtin_ctz(gpus), n = 0, kinds = machine->machine->n_memories + 1;
    for (int i = 0; i < kinds * kinds; i++) {
        struct tccl_chain ring = {.n_gpus = 2, .closed = true};
        ring.gpus[0] = (uint8_t)first;
        ring.gpus[1] = (uint8_t)__builtin_ctz(gpus & (gpus - 1));
        for (int end = 0; end < 2; end++) {
            int kind = end ? i % kinds : i / kinds; /* a memory, or P2P */
            bool p2p = kind == kinds - 1;
            ring.edges[end] = (struct tccl_edge){.kind = p2p ? TCCL_P2P_WRITE : TCCL_BOUNCE,
                                                 .memory = p2p ? 0 : (uint8_t)kind};
        }
        if (n == PAIRS || tccl_chain_check(&ring, machine->machine, NULL) != 0 ||
            tccl_expressible(machine->machine, &ring, 1, NULL) != 0)
            continue;
        sides[n] = (struct tccl_side){0};
        add_chain(&sides[n++], &ring);
    }
    return n;
}

/* The best of all pairs of rings of two GPUs each; 0: there are more GPUs. */
static double try_all(const struct machine *machine, uint32_t a, uint32_t b)
{
    struct tccl_side one[PAIRS], other[PAIRS];
    double best = 0;
    if (__builtin_popcount(a) != 2 || __builtin_popcount(b) != 2)
        return 0;
    int n = list_pairs(machine, a, one), m = list_pairs(machine, b, other);
    for (int i = 0; i < n * m; i++)
        best = fmax(best, slower(machine, &one[i / m], &other[i % m]));
    return best;
}

static void rate_split(const struct machine *machine, uint32_t a, uint32_t b, double gbps[WAYS])
{
    struct step steps[STEPS];
    struct tccl_side sides[STEPS];
    begin(machine, a, &steps[0]);
    begin(machine, b, &steps[1]);
    gbps[ALONE] =
        fmin(slower(machine, &steps[0].ours, NULL), slower(machine, &steps[1].ours, NULL));
    gbps[EACH] = slower(machine, &steps[0].ours, &steps[1].ours);
    gbps[NCCL] = slower(machine, &steps[0].nccl, &steps[1].nccl);
    struct tccl_beside beside = {.model = machine->model};
    beside.alone[0] = launch(&beside, &steps[0], &sides[0]);
    beside.others[beside.n++] = &sides[0];
    launch(&beside, &steps[1], &sides[1]);
    gbps[TABLE] = slower(machine, &sides[0], &sides[1]);
    sides[0] = steps[0].ours;
    plan(machine, b, &sides[0], steps[0].gbps, &sides[1]);
    gbps[SECOND] = slower(machine, &sides[0], &sides[1]);
    gbps[JOINT] = fmax(gbps[SECOND], reply(machine, steps, sides));
    sides[0] = steps[0].nccl;
    plan(machine, b, &sides[0], steps[0].gbps, &sides[1]);
    gbps[JOINT] = fmax(gbps[JOINT], reply(machine, steps, sides));
    gbps[BEST] = try_all(machine, a, b);
}

static void text_of(uint32_t gpus, char text[static 64])
{
    char *at = text;
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (gpus >> i & 1)
            at += sprintf(at, "%s%d", at == text ? "" : ",", i);
}

static void print_row(const char *name, uint32_t a, uint32_t b, const double gbps[WAYS])
{
    char first[64], second[64], split[140];
    text_of(a, first);
    text_of(b, second);
    snprintf(split, sizeof(split), "%s + %s", first, second);
    if (!bench_rows) {
        printf("  %-18s %-18s", name, split);
        for (int way = 0; way < WAYS; way++)
            if (gbps[way] > 0)
                printf(" %8.2f", gbps[way]);
            else
                printf(" %8s", "");
        printf("  %5.2f %5.2f\n", gbps[TABLE] / gbps[EACH], gbps[TABLE] / gbps[NCCL]);
        return;
    }
    json_t *row = json_pack("{s:s, s:s}", "machine", name, "split", split);
    for (int way = 0; way < WAYS; way++)
        json_object_set_new(row, ways[way], gbps[way] > 0 ? json_real(gbps[way]) : json_null());
    json_array_append_new(bench_rows, row);
}

/* All splits of four GPUs; of eight the sockets, every other one, and some of the others, always
 * the same ones. */
static bool is_shown(uint32_t gpus, int n)
{
    unsigned number = gpus * 2654435761u >> 28;
    return (gpus & 1) && (n < 8 || gpus == 0x0f || gpus == 0x55 || number < 3);
}

static struct machine open_machine(const char *name)
{
    struct machine machine = {.model = load_machine(name)};
    machine.machine = tccl_model_machine(machine.model);
    bool large = machine.machine->n_gpus > 5;
    machine.options.gap = large ? 0.03 : 0;
    machine.options.budget = large ? 5000 : 0;
    return machine;
}

static void rate_splits(const char *name, const struct machine *machine, unsigned long seed)
{
    int n = machine->machine->n_gpus, shown = 0;
    (void)seed;
    for (uint32_t gpus = 1; gpus < 1u << n && shown < SPLITS; gpus++)
        if (__builtin_popcount(gpus) == n / 2 && is_shown(gpus, n)) {
            double gbps[WAYS];
            uint32_t others = ((1u << n) - 1) & ~gpus;
            rate_split(machine, gpus, others, gbps);
            print_row(name, gpus, others, gbps);
            shown++;
        }
}

/* ---- what a JOIN pays for it ---- */

enum { LOOKS = 200 };

/* GPUs 4 to 7 beside four steps of several nodes with a GPU each. closed: their ring; else their
 * chains. Milliseconds. */
static double look_ms(const struct tccl_table *table, bool closed, struct tccl_beside *beside)
{
    double ms[LOOKS];
    for (int i = 0; i < LOOKS; i++) {
        double start = bench_clock();
        cleanup_class struct tccl_node_class *class =
            tccl_beside_class(beside, table, closed, false, ERR);
        ms[i] = (bench_clock() - start) * 1e3;
        MUST(!class);
    }
    return bench_quantile(ms, LOOKS, 0.5);
}

/* As many results of steps measured together as a profile may have. */
static struct tccl_together *fill_up(const struct tccl_beside *beside)
{
    struct tccl_together *together = tccl_together_new();
    struct tccl_joint joint = {.n = 2, .gbps = {1, 1}};
    for (int i = 0; together && i < TCCL_MAX_JOINTS; i++) {
        joint.sides[0] = *beside->others[i % beside->n];
        joint.sides[1] = *beside->others[(i + 1) % beside->n];
        joint.sides[0].transfers[joint.sides[0].count++] = (tccl_transfer)i;
        if (tccl_together_add(together, &joint) != 0)
            break;
    }
    return together;
}

static void rate_looks(const char *name, const struct machine *machine, unsigned long seed)
{
    struct tccl_side sides[4] = {0};
    struct tccl_beside beside = {.model = machine->model, .n = 4};
    (void)seed;
    if (machine->machine->n_gpus < 8)
        return;
    for (int i = 0; i < 4; i++) {
        struct tccl_table *other = make_chains(machine, 1u << i, true, BENCH_OTHERS);
        add_chain(&sides[i], &other->results[0].chain);
        beside.others[i] = &sides[i];
        beside.alone[i] = sides[i].alone = other->results[0].gbps;
        tccl_table_free(other);
    }
    owned(table) struct tccl_table *table = make_chains(machine, 0xf0, true, BENCH_OTHERS);
    double ring = look_ms(table, true, &beside);
    double chains = look_ms(table, false, &beside);
    beside.together = fill_up(&beside);
    beside.machine = machine->machine;
    beside.model = NULL;
    double measured_ring = look_ms(table, true, &beside);
    double measured_chains = look_ms(table, false, &beside);
    tccl_together_free((struct tccl_together *)beside.together);
    if (bench_rows)
        json_array_append_new(bench_rows,
                              json_pack("{s:s, s:f, s:f, s:f, s:f}", "machine", name, "ring_ms",
                                        ring, "chains_ms", chains, "measured_ring_ms",
                                        measured_ring, "measured_chains_ms", measured_chains));
    else
        printf("  %-18s %8.3f %8.3f %8.3f %8.3f\n", name, ring, chains, measured_ring,
               measured_chains);
}

/* ---- the other chains that a table keeps for steps beside others ---- */

/* A table, and what may run on the rest of the GPUs. */
struct kept {
    const struct machine *machine;
    const struct tccl_table *table;
    struct tccl_node_class *alone; /* of the table */
    bool closed;                   /* rings of one node; else chains of one of several */
    int n;
    struct tccl_side beside[TCCL_MAX_NICS * TCCL_MAX_NICS + BENCH_OTHERS];
};

/* Of all tables of a machine: the most others, the most that are needed, and the smallest part of a
 * share that is left without any. */
struct need {
    int kept, needed;
    double left;
};

static int n_cells(const struct kept *kept)
{
    return kept->closed ? 1 : kept->alone->n_nics * kept->alone->n_nics;
}

static const struct tccl_seen *cell_of(const struct kept *kept, const struct tccl_node_class *class,
                                       int i)
{
    return kept->closed ? tccl_class_ring(class) : &class->seen[i];
}

static void add_beside(struct kept *kept, const struct tccl_chain *chain, double gbps)
{
    if (!(gbps > 0) || chain->closed != kept->closed)
        return;
    kept->beside[kept->n] = (struct tccl_side){.alone = gbps};
    add_chain(&kept->beside[kept->n++], chain);
}

/* The best ring of the rest, or its best chain of each pair of NICs; all that its table keeps as
 * well; NCCL's own. */
static void list_beside(struct kept *kept, const struct tccl_table *rest)
{
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(rest, kept->machine->machine, TCCL_VIEW_JOB);
    const struct tccl_baseline *own = &rest->baselines[kept->closed][TCCL_NEWEST];
    kept->n = 0;
    for (int i = 0; class && i < n_cells(kept); i++)
        add_beside(kept, &cell_of(kept, class, i)->set.rings[0], cell_of(kept, class, i)->gbps);
    int n = 0;
    for (const struct tccl_result *other = NULL;
         n++ < BENCH_OTHERS - 1 && (other = tccl_table_next(rest, other, TCCL_OTHERS));)
        add_beside(kept, &other->chain, other->gbps);
    kept->beside[kept->n] = (struct tccl_side){.alone = own->gbps};
    if (own->gbps > 0 && tccl_ring_set_side(&own->set, &kept->beside[kept->n]) == 0)
        kept->n++;
}

static struct tccl_node_class *see(const struct kept *kept, const struct tccl_table *table,
                                   const struct tccl_side *other)
{
    struct tccl_beside beside = {
        .model = kept->machine->model, .n = 1, .others = {other}, .alone = {other->alone}};
    struct tccl_node_class *class = tccl_beside_class(&beside, table, kept->closed, false, ERR);
    MUST(!class);
    return class;
}

static double share_of(const struct tccl_seen *cell, double alone)
{
    return cell->gbps > 0 ? fmin(cell->gbps / alone, cell->share) : 0;
}

static const struct tccl_result *other_of(const struct tccl_table *table,
                                          const struct tccl_chain *chain)
{
    const struct tccl_result *own = NULL;
    while ((own = tccl_table_next(table, own, TCCL_OTHERS)) &&
           !tccl_chain_equal(&own->chain, chain))
        continue;
    return own;
}

/* The least share with a few of the table's others, as a part of that with all of them, where it is
 * smallest. *missed: which of them gives more there; NULL: none. */
static double compare(const struct kept *kept, const struct tccl_table *few,
                      const struct tccl_result **missed)
{
    double least = 1;
    *missed = NULL;
    for (int i = 0; i < kept->n; i++) {
        cleanup_class struct tccl_node_class *all = see(kept, kept->table, &kept->beside[i]);
        cleanup_class struct tccl_node_class *now = see(kept, few, &kept->beside[i]);
        for (int j = 0; j < n_cells(kept); j++) {
            const struct tccl_seen *best = cell_of(kept, all, j);
            double alone = cell_of(kept, kept->alone, j)->gbps, with = share_of(best, alone),
                   left = with > 0 ? share_of(cell_of(kept, now, j), alone) / with : 1;
            if (left < least * (1 - 1e-9)) {
                least = left;
                *missed = other_of(kept->table, &best->set.rings[0]);
            }
        }
    }
    return least;
}

/* Takes what is missed, one after the other, until no share is less by more than the noise; then
 * leaves out what isn't. */
static void find_needed(const struct kept *kept, struct need *need)
{
    struct tccl_table few = *kept->table;
    const struct tccl_result *missed;
    int n = 0;
    few.results = calloc((size_t)kept->table->n_results, sizeof(*few.results));
    for (int i = 0; i < kept->table->n_results; i++)
        if (kept->table->results[i].part != TCCL_OTHER)
            few.results[n++] = kept->table->results[i];
    few.n_results = n;
    need->left = fmin(need->left, compare(kept, &few, &missed));
    while (few.n_results < kept->table->n_results &&
           compare(kept, &few, &missed) < 1 - PLACE_NOISE && missed)
        few.results[few.n_results++] = *missed;
    for (int i = few.n_results - 1; i >= n; i--) {
        struct tccl_result out = few.results[i];
        few.results[i] = few.results[--few.n_results];
        if (compare(kept, &few, &missed) < 1 - PLACE_NOISE) {
            few.results[few.n_results++] = few.results[i];
            few.results[i] = out;
        }
    }
    need->needed = few.n_results - n > need->needed ? few.n_results - n : need->needed;
    free(few.results);
}

static void rate_table(const struct machine *machine, const struct tccl_table *table,
                       const struct tccl_table *rest, bool closed, struct need *need)
{
    struct kept kept = {.machine = machine, .table = table, .closed = closed};
    int count = 0;
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_OTHERS));)
        count += own->chain.closed == closed;
    need->kept = count > need->kept ? count : need->kept;
    kept.alone = tccl_node_class_from_table(table, machine->machine, TCCL_VIEW_JOB);
    list_beside(&kept, rest);
    find_needed(&kept, need);
    tccl_node_class_free(kept.alone);
}

static void print_needs(const char *name, const long sets[2], const struct need *ring,
                        const struct need *chain)
{
    if (bench_rows)
        json_array_append_new(bench_rows,
                              json_pack("{s:s, s:I, s:I, s:i, s:i, s:f, s:i, s:i, s:f}", "machine",
                                        name, "sets_without", (json_int_t)sets[0], "sets_with",
                                        (json_int_t)sets[1], "rings_kept", ring->kept,
                                        "rings_needed", ring->needed, "least_without_rings",
                                        ring->left, "chains_kept", chain->kept, "chains_needed",
                                        chain->needed, "least_without_chains", chain->left));
    else
        printf("  %-18s %8ld %8ld %6d %6d %8.2f %6d %6d %8.2f\n", name, sets[0], sets[1],
               ring->kept, ring->needed, ring->left, chain->kept, chain->needed, chain->left);
}

/* Tables of half of the GPUs, beside those of the other half. */
static void rate_others(const char *name, const struct machine *machine, unsigned long seed)
{
    int n = machine->machine->n_gpus;
    uint32_t all = (1u << n) - 1;
    struct need ring = {.left = 1}, chain = {.left = 1};
    long sets[2] = {0};
    (void)seed;
    for (uint32_t gpus = 1; gpus < all; gpus++) {
        if (__builtin_popcount(gpus) != n / 2 || !(is_shown(gpus, n) || is_shown(all & ~gpus, n)))
            continue;
        struct tccl_table *without = make_chains(machine, gpus, true, 0),
                          *table = make_chains(machine, gpus, true, BENCH_OTHERS),
                          *rest = make_chains(machine, all & ~gpus, true, BENCH_OTHERS);
        sets[0] += without->measured;
        sets[1] += table->measured;
        rate_table(machine, table, rest, true, &ring);
        rate_table(machine, table, rest, false, &chain);
        tccl_table_free(without);
        tccl_table_free(table);
        tccl_table_free(rest);
    }
    print_needs(name, sets, &ring, &chain);
}

/* ---- streams ---- */

enum { ARRIVALS = 200, MOST = 8, SETS = 1 << MOST, SEEDS = 4, ACROSS = 4 };

/* How steps are given rings, and GPUs. */
enum manner { OWN, ONE, BESIDE, PLACED, MANNERS };
static const char *const manners[MANNERS] = {"NCCL's own rings", "planned as if alone",
                                             "planned beside others", "and placed by tccl-path"};

struct running {
    uint32_t gpus;
    double end;
    double ours; /* the ring's bandwidth alone; of NCCL's own: as it is */
    bool across;
    struct tccl_side side; /* empty: one GPU of one node */
    double got, time;      /* shares times time */
};

struct stream {
    const struct machine *machine;
    enum manner manner;
    struct running running[MOST];
    int n;
    double now;
    double best[2][MOST + 1]; /* of all sets of a size, alone; of one node, and across */
    bool mixed;               /* with steps of one GPU, and of several nodes */
    double shares[ARRIVALS];
    int ended;
};

/* Kept from one stream to the next: the same sets come again and again. */
static struct step known[2][SETS]; /* of one node, and across */
static uint32_t placed[SETS][MOST + 1];

static const struct step *step_of(const struct machine *machine, uint32_t gpus, bool across)
{
    struct step *step = &known[across][gpus];
    if (!step->gpus && across)
        begin_across(machine, gpus, step);
    else if (!step->gpus)
        begin(machine, gpus, step);
    return step;
}

static double random_part(unsigned long *state)
{
    *state = *state * 6364136223846793005UL + 1442695040888963407UL;
    return (double)(*state >> 11) / (double)(1UL << 53);
}

/* All run on to this time. */
static void pass(struct stream *stream, double until)
{
    const struct tccl_side *sides[MOST];
    struct running *steps[MOST];
    double gbps[MOST], time = until - stream->now;
    int n = 0;
    for (int i = 0; i < stream->n; i++)
        if (stream->running[i].side.count > 0) {
            steps[n] = &stream->running[i];
            sides[n++] = &stream->running[i].side;
        }
    MUST(n && tccl_model_rounds(stream->machine->model, sides, n, gbps, ERR));
    for (int i = 0; i < n; i++) {
        double best = stream->best[steps[i]->across][__builtin_popcount(steps[i]->gpus)];
        steps[i]->got += time * gbps[i] / best;
        steps[i]->time += time;
    }
    stream->now = until;
}

static void end_first(struct stream *stream)
{
    int first = 0;
    for (int i = 1; i < stream->n; i++)
        if (stream->running[i].end < stream->running[first].end)
            first = i;
    pass(stream, stream->running[first].end);
    if (stream->running[first].time > 0)
        stream->shares[stream->ended++] = stream->running[first].got / stream->running[first].time;
    stream->running[first] = stream->running[--stream->n];
}

static uint32_t busy(const struct stream *stream)
{
    uint32_t gpus = 0;
    for (int i = 0; i < stream->n; i++)
        gpus |= stream->running[i].gpus;
    return gpus;
}

static int find_table(void *context, uint32_t gpus, const struct tccl_table **table,
                      struct tccl_error *err)
{
    if (__builtin_popcount(gpus) < 2)
        return tccl_fail(err, "one GPU has no ring");
    *table = step_of(context, gpus, false)->table;
    return 0;
}

/* The GPUs that tccl-path place puts first. */
static uint32_t place(const struct machine *machine, uint32_t used, int size)
{
    const struct tccl_place_source source = {.machine = machine->machine,
                                             .model = machine->model,
                                             .table = find_table,
                                             .context = (void *)machine};
    cleanup_free struct tccl_place *places = NULL;
    int count;
    MUST(tccl_place_rank(&source, used, size, PLACE_NOISE, &places, &count, ERR));
    return places[0].gpus;
}

/* The first free ones; or those that are placed. 0: not so many are free. */
static uint32_t choose(struct stream *stream, int size)
{
    uint32_t used = busy(stream), gpus = 0;
    int n = stream->machine->machine->n_gpus;
    if (n - __builtin_popcount(used) < size)
        return 0;
    for (int i = 0; i < n && __builtin_popcount(gpus) < size; i++)
        gpus |= ~used & 1u << i;
    if (stream->manner != PLACED)
        return gpus;
    if (!placed[used][size])
        placed[used][size] = place(stream->machine, used, size);
    return placed[used][size];
}

/* Its ring beside those that run. */
static void give_ring(struct stream *stream, struct running *step)
{
    struct tccl_beside beside = {.model = stream->machine->model};
    if (!step->across && __builtin_popcount(step->gpus) == 1)
        return;
    const struct step *alone = step_of(stream->machine, step->gpus, step->across);
    step->ours = alone->gbps;
    step->side = stream->manner == OWN ? alone->nccl : alone->ours;
    if (stream->manner < BESIDE)
        return;
    for (int i = 0; i < stream->n; i++)
        if (stream->running[i].side.count > 0) {
            beside.others[beside.n] = &stream->running[i].side;
            beside.alone[beside.n++] = stream->running[i].ours;
        }
    step->ours = step->across ? launch_across(stream->machine, &beside, alone, &step->side)
                              : launch(&beside, alone, &step->side);
}

/* Steps of 2, 4 and 8 GPUs come one after the other, each as soon as there is room for it; or of 1,
 * 2, 4 and 8, of which those with up to 4 have so many of several nodes in two of five cases. */
static void run_stream(struct stream *stream, unsigned long seed)
{
    int n = stream->machine->machine->n_gpus;
    for (int i = 0; i < ARRIVALS; i++) {
        double kind = random_part(&seed), length = -log(1 - random_part(&seed));
        int size = kind < 0.6 ? 2 : kind < 0.9 || n < 8 ? 4 : 8;
        if (stream->mixed && kind < 0.25)
            size = 1;
        bool across = stream->mixed && size <= ACROSS && random_part(&seed) < 0.4;
        uint32_t gpus;
        while (!(gpus = choose(stream, size)))
            end_first(stream);
        struct running step = {.gpus = gpus, .end = stream->now + length, .across = across};
        give_ring(stream, &step);
        stream->running[stream->n++] = step;
    }
    while (stream->n)
        end_first(stream);
}

static void rate_stream(const char *name, struct stream *stream, unsigned long seed)
{
    double sum = 0;
    run_stream(stream, seed);
    for (int i = 0; i < stream->ended; i++)
        sum += stream->shares[i];
    double least = bench_quantile(stream->shares, stream->ended, 0.1), mean = sum / stream->ended;
    if (bench_rows)
        json_array_append_new(bench_rows,
                              json_pack("{s:s, s:s, s:b, s:f, s:f, s:I}", "machine", name, "manner",
                                        manners[stream->manner], "several_nodes",
                                        (int)stream->mixed, "mean_share", mean, "tenth_share",
                                        least, "seed", (json_int_t)seed));
    else
        printf("  %-18s %-24s %4lu %6.3f %6.3f\n", name, manners[stream->manner], seed, mean,
               least);
}

/* What the best set of so many GPUs has alone. */
static void find_best(const struct machine *machine, bool across, double best[static MOST + 1])
{
    for (uint32_t gpus = 1; gpus < 1u << machine->machine->n_gpus; gpus++) {
        int size = __builtin_popcount(gpus);
        bool comes = across ? size <= ACROSS : size > 1;
        if (comes && (size & (size - 1)) == 0)
            best[size] =
                fmax(best[size], slower(machine, &step_of(machine, gpus, across)->ours, NULL));
    }
}

/* The same steps in each manner, then others. */
static void rate_all(const char *name, const struct machine *machine, bool mixed,
                     unsigned long seed)
{
    double best[2][MOST + 1] = {{0}};
    find_best(machine, false, best[0]);
    if (mixed)
        find_best(machine, true, best[1]);
    for (int i = 0; i < SEEDS * MANNERS; i++) {
        struct stream stream = {.machine = machine, .manner = i % MANNERS, .mixed = mixed};
        memcpy(stream.best, best, sizeof(best));
        rate_stream(name, &stream, seed + i / MANNERS);
    }
    for (int across = 0; across < 2; across++)
        for (int gpus = 0; gpus < SETS; gpus++)
            tccl_table_free(known[across][gpus].table);
    memset(known, 0, sizeof(known));
    memset(placed, 0, sizeof(placed));
}

static void rate_streams(const char *name, const struct machine *machine, unsigned long seed)
{
    rate_all(name, machine, false, seed);
}

static void rate_mixed(const char *name, const struct machine *machine, unsigned long seed)
{
    rate_all(name, machine, true, seed);
}

static void each_machine(void (*rate)(const char *name, const struct machine *machine,
                                      unsigned long seed),
                         unsigned long seed)
{
    const char *only = getenv("TCCL_MACHINE");
    for (size_t i = 0; i < MACHINE_NAMES; i++) {
        if (only && strcmp(only, machine_names[i]) != 0)
            continue;
        struct machine machine = open_machine(machine_names[i]);
        rate(machine_names[i], &machine, seed);
    }
}

static void head_streams(const char *what)
{
    if (!bench_rows)
        printf("  %d steps of %s, %d seeds (the first one: TCCL_SEED=)\n  %-18s %-24s %4s %6s "
               "%6s\n",
               ARRIVALS, what, SEEDS, "machine", "rings", "seed", "mean", "10th %");
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    bench_title("Two steps beside each other on one node: the slower one's bandwidth, GB/s");
    if (!bench_rows)
        printf("  %-18s %-18s %8s %8s %8s %8s %8s %8s %8s  %s\n", "machine", "GPUs", "alone",
               "each", "table", "second", "jointly", "best", "NCCL", "table : each, : NCCL");
    each_machine(rate_splits, 0);
    bench_title("A table of 4 GPUs seen beside four steps: what a JOIN takes longer, median, ms");
    if (!bench_rows)
        printf("  %-18s %8s %8s %8s %8s\n", "machine", "ring", "chains", "ring*", "chains*");
    each_machine(rate_looks, 0);
    if (!bench_rows)
        printf("  * by bounds, beside 4,096 results that were measured together\n");
    bench_title("The other chains that tables of half of the GPUs keep: transfer sets measured "
                "without and with them, kept, needed beside the other half, the least share "
                "without any");
    if (!bench_rows)
        printf("  %-18s %8s %8s %6s %6s %8s %6s %6s %8s\n", "machine", "without", "with", "rings",
               "needed", "without", "chains", "needed", "without");
    each_machine(rate_others, 0);
    const char *given = getenv("TCCL_SEED");
    unsigned long seed = given ? strtoul(given, NULL, 0) : 1;
    bench_title(
        "Streams of steps on one node: their bandwidth, of the best that so many GPUs have alone");
    head_streams("2, 4 and 8 GPUs");
    each_machine(rate_streams, seed);
    bench_title("The same with steps of one GPU, and such that have as many of several nodes");
    head_streams("1, 2, 4 and 8 GPUs");
    each_machine(rate_mixed, seed);
    return bench_end();
}
