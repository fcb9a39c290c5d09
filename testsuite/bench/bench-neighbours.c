/* bench-neighbours.c: two steps with half of a node's GPUs each, one ring each, at the same time:
 * what the slower one reaches, by the way in which their rings were planned. By models. */
#include <math.h>

#include "bench.h"
#include "nccl/baseline.h"
#include "search/beside.h"

enum { STEPS = 2, ROUNDS = 6, SPLITS = 12, PATH = 4096 };

static const char *const names[] = {"amd-4gpu",  "intel-4gpu",        "epyc-8gpu",
                                    "dual-8gpu", "epyc-8gpu-unequal", "dual-8gpu-unequal"};

struct machine {
    struct tccl_model *model;
    const struct tccl_machine *machine;
    struct tccl_search_options options;
};

/* A step: its best ring alone, and what a stock NCCL builds. */
struct step {
    uint32_t gpus;
    double gbps;
    struct tccl_side ours, nccl;
};

/* The slower of both, GB/s, by the way to plan them. */
enum way { ALONE, EACH, SECOND, JOINT, NCCL, WAYS };
static const char *const ways[WAYS] = {"alone_gbps", "planned_alone_gbps", "second_knows_gbps",
                                       "jointly_gbps", "nccl_gbps"};

static void fail(const struct tccl_error *err)
{
    fprintf(stderr, "tccl: bench: %s\n", err->text);
    exit(1);
}

static void add_chain(struct tccl_side *side, const struct tccl_chain *chain)
{
    struct tccl_error err = {""};
    struct tccl_set set;
    tccl_chain_set(chain, &set);
    if (tccl_side_add(side, &set) < 0) {
        tccl_fail(&err, "more than %d transfers in one step", TCCL_MAX_SET);
        fail(&err);
    }
}

static double slower(const struct machine *machine, const struct tccl_side *a,
                     const struct tccl_side *b)
{
    const struct tccl_side *sides[STEPS] = {a, b};
    struct tccl_error err = {""};
    double gbps[STEPS];
    if (tccl_model_sides(machine->model, sides, STEPS, gbps, &err) < 0)
        fail(&err);
    return fmin(gbps[0], gbps[1]);
}

/* The ring of some GPUs beside another step (NULL: nobody). Returns what it reaches alone. */
static double plan(const struct machine *machine, uint32_t gpus, const struct tccl_side *other,
                   double other_alone, struct tccl_side *side)
{
    struct tccl_error err = {""};
    struct tccl_beside beside = {
        .model = machine->model, .n = other != NULL, .others = {other}, .alone = {other_alone}};
    struct tccl_result best;
    struct tccl_worth worth;
    if (tccl_beside_ring(&beside, gpus, &machine->options, &best, &worth, &err) < 0)
        fail(&err);
    *side = (struct tccl_side){0};
    add_chain(side, &best.chain);
    return best.bound;
}

static void begin(const struct machine *machine, uint32_t gpus, struct step *step)
{
    struct tccl_error err = {""};
    struct tccl_baseline own;
    *step = (struct step){.gpus = gpus};
    step->gbps = plan(machine, gpus, NULL, 0, &step->ours);
    if (tccl_baseline_find(machine->machine, gpus, true, TCCL_NEWEST, &own, NULL, &err) < 0)
        fail(&err);
    for (int i = 0; i < own.n_chains; i++)
        add_chain(&step->nccl, &own.chains[i]);
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

static void rate_split(const struct machine *machine, uint32_t a, uint32_t b, double gbps[WAYS])
{
    struct step steps[STEPS];
    struct tccl_side sides[STEPS];
    begin(machine, a, &steps[0]);
    begin(machine, b, &steps[1]);
    gbps[ALONE] = fmin(steps[0].gbps, steps[1].gbps);
    gbps[EACH] = slower(machine, &steps[0].ours, &steps[1].ours);
    gbps[NCCL] = slower(machine, &steps[0].nccl, &steps[1].nccl);
    sides[0] = steps[0].ours;
    plan(machine, b, &sides[0], steps[0].gbps, &sides[1]);
    gbps[SECOND] = slower(machine, &sides[0], &sides[1]);
    gbps[JOINT] = fmax(gbps[SECOND], reply(machine, steps, sides));
    sides[0] = steps[0].nccl;
    plan(machine, b, &sides[0], steps[0].gbps, &sides[1]);
    gbps[JOINT] = fmax(gbps[JOINT], reply(machine, steps, sides));
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
            printf(" %8.2f", gbps[way]);
        printf("  %5.2f %5.2f\n", gbps[SECOND] / gbps[EACH], gbps[SECOND] / gbps[NCCL]);
        return;
    }
    json_t *row = json_pack("{s:s, s:s}", "machine", name, "split", split);
    for (int way = 0; way < WAYS; way++)
        json_object_set_new(row, ways[way], json_real(gbps[way]));
    json_array_append_new(bench_rows, row);
}

/* All splits of four GPUs; of eight the sockets, every other one, and some of the others, always
 * the same ones. */
static bool is_shown(uint32_t gpus, int n)
{
    unsigned number = gpus * 2654435761u >> 28;
    return (gpus & 1) && (n < 8 || gpus == 0x0f || gpus == 0x55 || number < 3);
}

static void rate_machine(const char *name)
{
    struct tccl_error err = {""};
    struct machine machine = {0};
    char path[PATH];
    snprintf(path, sizeof(path), "%s/%s.json", getenv("TCCL_MACHINES"), name);
    if (tccl_model_read(path, &machine.model, &err) < 0)
        fail(&err);
    machine.machine = tccl_model_machine(machine.model);
    int n = machine.machine->n_gpus, shown = 0;
    machine.options.gap = n > 5 ? 0.03 : 0;
    machine.options.budget = n > 5 ? 5000 : 0;
    for (uint32_t gpus = 1; gpus < 1u << n && shown < SPLITS; gpus++)
        if (__builtin_popcount(gpus) == n / 2 && is_shown(gpus, n)) {
            double gbps[WAYS];
            uint32_t others = ((1u << n) - 1) & ~gpus;
            rate_split(&machine, gpus, others, gbps);
            print_row(name, gpus, others, gbps);
            shown++;
        }
    tccl_model_free(machine.model);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    if (!getenv("TCCL_MACHINES")) {
        fputs("tccl: bench: TCCL_MACHINES is not set: start it by testsuite/bench/run\n", stderr);
        return 1;
    }
    bench_title("Two steps beside each other on one node: the slower one's bandwidth, GB/s");
    if (!bench_rows)
        printf("  %-18s %-18s %8s %8s %8s %8s %8s  %s\n", "machine", "GPUs", "alone", "each",
               "second", "jointly", "NCCL", "second : each, : NCCL");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        rate_machine(names[i]);
    return bench_end();
}
