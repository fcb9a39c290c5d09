/* bench-search.c: how many transfer sets the search measures: against plain best-first search, for
 * whole 8-GPU nodes, and as machines grow. */
#include "search/search.h"

#include "bench.h"
#include "machines.h"
#include "owned.h"
#include "plain-search.h"
#include "ring/ring.h"
#include "toy-model.h"

enum {
    PLAIN_LIMIT = 200000,
    SECONDS = 10,
    TABLE_SECONDS = 15,
    DRAWS = 5,
    PAIRS = 16,
    BUDGET = 5000
};
static const double GAP = 0.05;

static int disagreements, exceeded, exceeded_kinder;

/* Against plain search */

struct contest {
    long ours, plain; /* sets measured */
    long kinder; /* by plain search that takes the more complete of equals first; -1: cut off */
    bool ours_cut, plain_cut;
    bool agree; /* of results that were not cut off */
};

/* Stops our search after some processor time. */
static int in_time(void *context, const struct tccl_search_progress *now)
{
    (void)now;
    return bench_cpu() > *(double *)context;
}

static struct contest contest(const struct tccl_model *model)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    uint32_t gpus = (1u << machine->n_gpus) - 1;
    owned(symmetry) struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    owned(search) struct tccl_search *search =
        tccl_search_new(machine, tccl_model_meter(model), symmetry);
    double gbps, end = bench_cpu() + SECONDS;
    struct tccl_search_options options = {.progress = in_time, .context = &end};
    struct tccl_result result;
    int status = tccl_search_ring(search, gpus, &options, &result, ERR);
    MUST(status < 0);
    struct contest contest = {.ours = tccl_search_measured(search), .ours_cut = status > 0};
    contest.plain = plain_ring(model, gpus, PLAIN_LIMIT, false, &gbps);
    contest.plain_cut = contest.plain < 0;
    if (contest.plain_cut)
        contest.plain = PLAIN_LIMIT;
    else
        contest.agree = contest.ours_cut
                            ? result.gbps <= gbps * (1 + 1e-9) && result.bound >= gbps * (1 - 1e-9)
                            : fabs(gbps - result.gbps) <= 1e-9 * gbps;
    contest.kinder = plain_ring(model, gpus, PLAIN_LIMIT, true, &gbps);
    exceeded_kinder += contest.kinder >= 0 && contest.ours > contest.kinder;
    disagreements += !contest.agree && !contest.plain_cut;
    exceeded += contest.ours > contest.plain;
    return contest;
}

static double ratio(struct contest contest)
{
    return (double)contest.plain / (double)contest.ours;
}

/* Several machines of one kind: the counts of the one with the median ratio, and the spread of the
 * ratios. */
static void contest_row(const char *what, const struct contest *contests, int count,
                        const char *aim)
{
    double ratios[DRAWS];
    int ours_cut = 0, plain_cut = 0, agree = 0;
    const struct contest *shown = contests;
    for (int i = 0; i < count; i++) {
        ratios[i] = ratio(contests[i]);
        agree += contests[i].agree;
        ours_cut += contests[i].ours_cut;
        plain_cut += contests[i].plain_cut;
    }
    double low = bench_quantile(ratios, count, 0), middle = bench_quantile(ratios, count, 0.5),
           high = bench_quantile(ratios, count, 1);
    for (int i = 0; i < count; i++)
        if (ratio(contests[i]) == middle)
            shown = &contests[i];
    if (bench_rows)
        json_array_append_new(bench_rows,
                              json_pack("{s:s s:I s:I s:I s:f s:f s:f s:i s:i s:i s:i s:s}", "what",
                                        what, "measured", (json_int_t)shown->ours, "plain",
                                        (json_int_t)shown->plain, "kinder",
                                        (json_int_t)shown->kinder, "min", low, "median", middle,
                                        "max", high, "machines", count, "cut_off", ours_cut,
                                        "plain_cut_off", plain_cut, "agree", agree, "aim", aim));
    else
        printf("  %-30s %s%8ld %s%8ld %9ld %9.2f %9.2f %9.2f  %d of %d  %s\n", what,
               shown->ours_cut ? ">" : " ", shown->ours, shown->plain_cut ? ">" : " ", shown->plain,
               shown->kinder, low, middle, high, agree, count, aim);
}

static void contest_machine(const char *name)
{
    const struct tccl_model *model = load_machine(name);
    struct contest only = contest(model);
    contest_row(name, &only, 1, ">= 1");
}

static void contest_toys(int gpus, int memories, bool equal)
{
    struct contest contests[DRAWS];
    int draws = equal ? 1 : DRAWS;
    char what[64];
    for (int i = 0; i < draws; i++) {
        owned(model) struct tccl_model *model =
            toy_model((struct toy){gpus, memories, 0, equal ? 0 : 1000UL + (unsigned long)i});
        contests[i] = contest(model);
    }
    snprintf(what, sizeof(what), "%d GPUs, %d memories, %s", gpus, memories,
             equal ? "equal" : "unequal");
    contest_row(what, contests, draws, equal ? ">= 5" : ">= 1");
}

static void contest_all(void)
{
    bench_title(
        "Sets measured until the best ring of a node is proven (gap 0), by our search and by\n"
        "plain best-first search, which measures at insertion. Ratios plain : ours, over 5\n"
        "machines where links are unequal. The paper does not say which of equal sets goes\n"
        "first: plain takes the older, kinder the more complete (-1: cut off). >: cut off (ours "
        "after 10 s, plain at 200,000).");
    if (!bench_rows)
        printf("  %-30s %9s %9s %9s %9s %9s %9s  %s %s\n", "machine", "ours", "plain", "kinder",
               "min", "median", "max", "agree", "aim");
    contest_machine("amd-4gpu");
    contest_machine("intel-4gpu");
    for (int equal = 1; equal >= 0; equal--)
        for (int gpus = 2; gpus <= 6; gpus++)
            for (int memories = 1; memories <= 4; memories++)
                contest_toys(gpus, memories, equal);
    if (!bench_rows)
        printf("  Rings that differ: %d. Machines where plain search measured fewer: %d; where the "
               "kinder\n"
               "  one did: %d.\n",
               disagreements, exceeded, exceeded_kinder);
}

/* Whole nodes */

struct progress {
    long until_best; /* sets measured when PAIRS pairs were proven; 0: not yet */
    double end;      /* processor time to stop at */
};

static int follow(void *context, const struct tccl_search_progress *now)
{
    struct progress *progress = context;
    if (progress->until_best == 0 && now->pairs_total > 1 && now->pairs_done >= PAIRS)
        progress->until_best = now->measured;
    return bench_cpu() > progress->end;
}

struct filled {
    struct tccl_table *table;
    long measured, until_best;
    bool stopped;
    double seconds;
};

static struct filled fill_table(const struct tccl_model *model, uint32_t gpus, long budget)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct progress progress = {.end = bench_cpu() + TABLE_SECONDS};
    struct tccl_search_options options = {
        .gap = GAP, .budget = budget, .pairs = PAIRS, .progress = follow, .context = &progress};
    struct filled filled = {.table = tccl_table_new(machine, gpus)};
    double start = bench_cpu();
    owned(symmetry) struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    owned(search) struct tccl_search *search =
        tccl_search_new(machine, tccl_model_meter(model), symmetry);
    int status = tccl_search_table(search, filled.table, &options, ERR);
    MUST(status < 0);
    filled.seconds = bench_cpu() - start;
    filled.stopped = status > 0;
    filled.measured = tccl_search_measured(search);
    filled.until_best = progress.until_best;
    strcpy(filled.table->source, "model");
    tccl_machine_id(machine, filled.table->machine);
    return filled;
}

static int faster(const void *a, const void *b)
{
    const struct tccl_result *x = a, *y = b;
    return (x->gbps < y->gbps) - (x->gbps > y->gbps);
}

/* Of the PAIRS best pairs the largest gap; of all others the largest bound over the PAIRS-th best
 * bandwidth. Both as ratios above 1. */
static void gaps(const struct tccl_table *table, double *gap, double *others)
{
    size_t count = (size_t)table->n_ports * (size_t)table->n_ports;
    cleanup_free struct tccl_result *pairs = malloc(count * sizeof(*pairs));
    if (!pairs)
        exit(1);
    memcpy(pairs, table->results, count * sizeof(*pairs));
    qsort(pairs, count, sizeof(*pairs), faster);
    *gap = *others = 0;
    for (size_t i = 0; i < count; i++) {
        if (i < PAIRS)
            *gap = fmax(*gap, pairs[i].bound / pairs[i].gbps - 1);
        else
            *others = fmax(*others, pairs[i].bound / pairs[PAIRS - 1].gbps - 1);
    }
}

static struct tccl_ring two_nodes(const struct tccl_table *table,
                                  const struct tccl_machine *machine)
{
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    struct tccl_run run = {class, 2};
    struct tccl_ring ring = {0};
    MUST(!class || tccl_ring_solve(&run, 1, 0, &ring, ERR));
    return ring;
}

static void whole_node(const char *name)
{
    const struct tccl_model *model = load_machine(name);
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct filled filled = fill_table(model, 0xff, BUDGET);
    cleared_by(tccl_ring_clear) struct tccl_ring ring = two_nodes(filled.table, machine);
    double gap, others;
    gaps(filled.table, &gap, &others);
    if (bench_rows)
        json_array_append_new(
            bench_rows,
            json_pack("{s:s s:i s:I s:I s:f s:b s:f s:f s:f s:f s:f}", "what", name, "port_pairs",
                      filled.table->n_ports * filled.table->n_ports, "measured_until_16_best",
                      (json_int_t)filled.until_best, "measured", (json_int_t)filled.measured,
                      "seconds", filled.seconds, "stopped", filled.stopped, "gap_of_16_best", gap,
                      "others_bound_over_16th", others, "two_node_ring_gbps", ring.gbps,
                      "two_node_ring_gap", ring.bound / ring.gbps - 1, "default_gbps",
                      ring.baseline_gbps[TCCL_NEWEST]));
    else
        printf("  %-18s %6d %8ld %8ld %8.2f %-4s %7.2f %% %7.2f %% %8.2f %6.2f %% %9.2f\n", name,
               filled.table->n_ports * filled.table->n_ports, filled.until_best, filled.measured,
               filled.seconds, filled.stopped ? "stop" : "end", 100 * gap, 100 * others, ring.gbps,
               100 * (ring.bound / ring.gbps - 1), ring.baseline_gbps[TCCL_NEWEST]);
    tccl_table_free(filled.table);
}

static void whole_nodes(void)
{
    bench_title(
        "8 GPUs, gap 5 %, 16 port pairs, budget 5,000 sets. Aims: the 16 best pairs and the\n"
        "ring of two such nodes proven within 5 % by 5,000 sets; bounds for all others.");
    if (!bench_rows)
        printf("  %-18s %6s %8s %8s %8s %-4s %9s %9s %8s %8s %9s\n"
               "  %-18s %6s %8s %8s %8s %-4s %9s %9s %8s %8s %9s\n",
               "", "port", "sets to", "sets", "", "", "gap of", "others'", "2 nodes", "2 nodes",
               "NCCL's", "machine", "pairs", "16 best", "in all", "seconds", "", "16 best",
               "over 16th", "GB/s", "gap", "GB/s");
    whole_node("dual-8gpu");
    whole_node("dual-8gpu-unequal");
    whole_node("epyc-8gpu");
    whole_node("epyc-8gpu-unequal");
}

/* Growth */

static void growth_row(const char *what, const struct tccl_model *model, uint32_t gpus)
{
    struct filled filled = fill_table(model, gpus, 4 * BUDGET);
    if (bench_rows)
        json_array_append_new(bench_rows,
                              json_pack("{s:s s:i s:I s:I s:f s:b}", "what", what, "port_pairs",
                                        filled.table->n_ports * filled.table->n_ports,
                                        "measured_until_16_best", (json_int_t)filled.until_best,
                                        "measured", (json_int_t)filled.measured, "seconds",
                                        filled.seconds, "stopped", filled.stopped));
    else
        printf("  %-42s %6d %8ld %8ld %8.2f %s\n", what,
               filled.table->n_ports * filled.table->n_ports, filled.until_best, filled.measured,
               filled.seconds, filled.stopped ? "stopped" : "");
    tccl_table_free(filled.table);
}

static void growth_toy(int gpus, int memories, int nics, bool equal)
{
    char what[64];
    owned(model) struct tccl_model *model =
        toy_model((struct toy){gpus, memories, nics, equal ? 0 : 1000});
    snprintf(what, sizeof(what), "%d GPUs, %d memories, %d NICs, %s", gpus, memories, nics,
             equal ? "equal" : "unequal");
    growth_row(what, model, (1u << gpus) - 1);
}

static void growth(void)
{
    bench_title("Growth: a table with gap 5 % and 16 port pairs, stopped at 20,000 sets or 15 s");
    if (!bench_rows)
        printf("  %-42s %6s %8s %8s %8s\n", "", "pairs", "to 16", "sets", "seconds");
    static const char *const names[] = {"epyc-8gpu", "epyc-8gpu-unequal"};
    for (int n = 0; n < 2; n++) {
        const struct tccl_model *model = load_machine(names[n]);
        for (int gpus = 2; gpus <= 8; gpus++) {
            char what[64];
            snprintf(what, sizeof(what), "%s, the first %d GPUs", names[n], gpus);
            growth_row(what, model, (1u << gpus) - 1);
        }
    }
    for (int equal = 1; equal >= 0; equal--) {
        for (int memories = 1; memories <= 8; memories *= 2)
            growth_toy(8, memories, 1, equal);
        for (int nics = 2; nics <= 4; nics *= 2)
            growth_toy(8, 4, nics, equal);
    }
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    contest_all();
    whole_nodes();
    growth();
    bench_end();
    return disagreements > 0;
}
