/* bench-robust.c: what planned rings reach, as a part of what NCCL's own reach, if the model by
 * which they were planned is wrong. */
#include <math.h>

#include "altered.h"
#include "bench.h"

enum { SEEDS = 60, BUDGET = 5000, RULES = 6 };

static const struct {
    double by;
    bool drop;
    const char *what;
} kinds[] = {{0.05, false, "5 %"},
             {0.10, false, "10 %"},
             {0.15, false, "15 %"},
             {0, true, "a rule less"},
             {0.10, true, "10 %, a rule less"}};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

/* How many limits hold the side back, or would if they were a few percent lower. */
static int count_near(const char *name, const struct tccl_side *side)
{
    cleanup_json json_t *json = altered_json(name);
    const json_t *lists[] = {json_object_get(json, "resources"), json_object_get(json, "rules")};
    struct tccl_model *model = altered_model(name, json);
    double gbps = side_gbps(model, side);
    int count = 0;
    tccl_model_free(model);
    for (int list = 0; list < 2; list++)
        EACH_OF(limit, lists[list]) {
            double was = json_number_value(json_object_get(limit, "gbps"));
            json_object_set_new(limit, "gbps", json_real(was * 0.9));
            model = altered_model(name, json);
            count += side_gbps(model, side) < gbps * 0.95;
            tccl_model_free(model);
            json_object_set_new(limit, "gbps", json_real(was));
        }
    return count;
}

static void print_row(const char *name, int nodes, const char *altered,
                      const struct planned *planned, double *ratios, int n, int near)
{
    const struct tccl_ring *ring = &planned->ring;
    double promised = ring->gbps / ring->baseline_gbps[TCCL_NEWEST];
    double worst = bench_quantile(ratios, n, 0), tenth = bench_quantile(ratios, n, 0.1);
    double median = bench_quantile(ratios, n, 0.5);
    if (!bench_rows)
        printf("  %d %-18s %-18s %5d %4d %8.3f %-5s %7.3f %7.3f %7.3f\n", nodes, name, altered,
               ring->rings, near, promised, planned->taken ? "yes" : "no", median, tenth, worst);
    else
        json_array_append_new(
            bench_rows, json_pack("{s:s, s:i, s:s, s:i, s:i, s:f, s:b, s:f, s:f, s:f}", "machine",
                                  name, "nodes", nodes, "altered", altered, "rings", ring->rings,
                                  "near", near, "promised", promised, "taken", planned->taken,
                                  "median", median, "tenth_percentile", tenth, "worst", worst));
}

static void rate_case(const char *name, int nodes, const struct planned *planned,
                      unsigned long seed)
{
    double ratios[SEEDS];
    int near = count_near(name, &planned->ours);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < SEEDS; i++) {
            unsigned long state = seed + (unsigned long)i;
            ratios[i] = alter_ratio(name, kinds[kind].by, kinds[kind].drop, planned, &state);
        }
        print_row(name, nodes, kinds[kind].what, planned, ratios, SEEDS, near);
    }
}

/* Planned without one of the rules: what is reached where it holds. */
static void miss_rules(const char *name, const int *nodes, int n_nodes)
{
    const json_t *all = altered_json(name), *rules = json_object_get(all, "rules");
    const struct tccl_model *right = load_machine(name);
    uint32_t gpus = (UINT32_C(1) << tccl_model_machine(right)->n_gpus) - 1;
    size_t n = json_array_size(rules), step = (n + RULES - 1) / RULES;
    for (size_t i = 0; i < n; i += step) {
        cleanup_json json_t *json = json_deep_copy(all);
        char what[40];
        snprintf(what, sizeof(what), "no rule %d", (int)i + 1);
        json_array_remove(json_object_get(json, "rules"), i);
        owned(model) struct tccl_model *model = altered_model(name, json);
        owned(table) struct tccl_table *table = plan_table(model, gpus, BUDGET);
        for (int k = 0; k < n_nodes; k++) {
            struct planned planned;
            if (plan_nodes(model, table, nodes[k], &planned) != 0)
                continue;
            double ratio = side_gbps(right, &planned.ours) / side_gbps(right, &planned.nccl);
            print_row(name, nodes[k], what, &planned, &ratio, 1, count_near(name, &planned.ours));
        }
    }
    json_decref((json_t *)all);
}

int main(int argc, char **argv)
{
    static const int nodes[] = {1, 2, 4};
    const char *only = getenv("TCCL_MACHINE"), *given = getenv("TCCL_SEED");
    unsigned long seed = given ? strtoul(given, NULL, 10) : 1;
    bench_begin(argc, argv);
    bench_title("Rings planned by a model that is wrong: what they reach, as a part of NCCL's own");
    if (!bench_rows)
        printf("  %-20s %-18s %5s %4s %8s %-5s %7s %7s %7s\n", "nodes", "altered by", "rings",
               "near", "promised", "taken", "median", "10 %", "worst");
    for (int i = 0; i < MACHINE_NAMES; i++) {
        if (only && strcmp(only, machine_names[i]) != 0)
            continue;
        const struct tccl_model *model = load_machine(machine_names[i]);
        uint32_t gpus = (UINT32_C(1) << tccl_model_machine(model)->n_gpus) - 1;
        owned(table) struct tccl_table *table = plan_table(model, gpus, BUDGET);
        for (size_t k = 0; k < sizeof(nodes) / sizeof(*nodes); k++) {
            struct planned planned;
            if (plan_nodes(model, table, nodes[k], &planned) == 0)
                rate_case(machine_names[i], nodes[k], &planned, seed);
        }
        miss_rules(machine_names[i], nodes, 2);
    }
    return bench_end();
}
