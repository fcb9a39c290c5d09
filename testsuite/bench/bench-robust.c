/* bench-robust.c: what planned rings reach, as part of what NCCL's own reach, if the model by which
 * they were planned is wrong. */
#include <math.h>

#include "altered.h"
#include "bench.h"

enum { SEEDS = 60, BUDGET = 5000 };

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

/* Which limits hold the side back, or would with a few percent less: count, by lowering one after
 * the other. */
static int count_tight(const char *name, const struct tccl_side *side, double gbps)
{
    char path[4096];
    int count = 0;
    snprintf(path, sizeof(path), "%s/%s.json", getenv("TCCL_MACHINES"), name);
    json_t *json = json_load_file(path, 0, NULL), *limit;
    json_t *lists[] = {json_object_get(json, "resources"), json_object_get(json, "rules")};
    size_t i;
    for (int list = 0; list < 2; list++)
        json_array_foreach(lists[list], i, limit)
        {
            struct tccl_model *model;
            double was = json_number_value(json_object_get(limit, "gbps"));
            json_object_set_new(limit, "gbps", json_real(was * 0.9));
            if (tccl_model_from_json(json, &model, NULL) == 0) {
                count += rate_side(model, side) < gbps * 0.95;
                tccl_model_free(model);
            }
            json_object_set_new(limit, "gbps", json_real(was));
        }
    json_decref(json);
    return count;
}

static void rate_case(const char *name, int nodes, const struct planned *planned,
                      unsigned long seed)
{
    double ratios[SEEDS];
    const struct tccl_ring *ring = &planned->ring;
    double own = ring->baseline_gbps[TCCL_NEWEST];
    int n_ours = 0, n_own = 0;
    if (!bench_rows) {
        struct tccl_model *model = load_machine(name);
        n_ours = count_tight(name, &planned->ours, rate_side(model, &planned->ours));
        n_own = count_tight(name, &planned->nccl, rate_side(model, &planned->nccl));
        tccl_model_free(model);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < SEEDS; i++) {
            unsigned long state = seed + 1000 * (unsigned long)i + 7;
            struct tccl_model *model = alter_model(name, kinds[kind].by, kinds[kind].drop, &state);
            ratios[i] = rate_side(model, &planned->ours) / rate_side(model, &planned->nccl);
            tccl_model_free(model);
        }
        double low = bench_quantile(ratios, SEEDS, 0), tenth = bench_quantile(ratios, SEEDS, 0.1),
               middle = bench_quantile(ratios, SEEDS, 0.5);
        if (bench_rows)
            json_array_append_new(bench_rows,
                                  json_pack("{s:s, s:i, s:s, s:i, s:f, s:b, s:f, s:f, s:f}",
                                            "machine", name, "nodes", nodes, "altered",
                                            kinds[kind].what, "rings", ring->rings, "promised",
                                            ring->gbps / own, "taken", planned->taken, "median",
                                            middle, "tenth_percentile", tenth, "worst", low));
        else
            printf("  %d %-18s %-18s %2d %8.3f %-5s %7.3f %7.3f %7.3f  tight %d %d\n", nodes, name,
                   kinds[kind].what, ring->rings, ring->gbps / own, planned->taken ? "yes" : "no",
                   middle, tenth, low, n_ours, n_own);
    }
}

int main(int argc, char **argv)
{
    static const int nodes[] = {1, 2, 4};
    const char *only = getenv("TCCL_MACHINE"), *given = getenv("TCCL_SEED");
    unsigned long seed = given ? strtoul(given, NULL, 10) : 1;
    bench_begin(argc, argv);
    bench_title("Rings planned by a model that is wrong: what they reach, as part of NCCL's own");
    if (!bench_rows)
        printf("  %-20s %-18s %2s %8s %-5s %7s %7s %7s\n", "nodes", "altered by", "n", "promised",
               "taken", "median", "10 %", "worst");
    for (int i = 0; i < MACHINE_NAMES; i++) {
        if (only && strcmp(only, machine_names[i]) != 0)
            continue;
        struct tccl_model *model = load_machine(machine_names[i]);
        uint32_t gpus = (UINT32_C(1) << tccl_model_machine(model)->n_gpus) - 1;
        struct tccl_table *table = plan_table(model, gpus, BUDGET);
        for (size_t k = 0; k < sizeof(nodes) / sizeof(*nodes); k++) {
            struct planned planned;
            if (plan_nodes(model, table, nodes[k], &planned) == 0)
                rate_case(machine_names[i], nodes[k], &planned, seed);
        }
        tccl_table_free(table);
        tccl_model_free(model);
    }
    return bench_end();
}
