/* bench-offload.c: rings and chains beside jobs that offload, which copy between each GPU and its
 * memory all the time: NCCL's own, those planned as if nothing ran, and those planned beside it. */
#include "bench.h"
#include "machine/background.h"
#include "nccl/baseline.h"
#include "search/search.h"

enum { PATH = 4096, BUDGET = 5000, PAIRS = 16 };

static const char *const names[] = {"amd-4gpu",  "intel-4gpu",        "epyc-8gpu",
                                    "dual-8gpu", "epyc-8gpu-unequal", "dual-8gpu-unequal"};

/* Who plans. */
enum way { NCCL, PLAIN, PLANNED, WAYS };
static const char *const ways[WAYS] = {"nccl_gbps", "plain_gbps", "planned_gbps"};

static void fail(const struct tccl_error *err)
{
    fprintf(stderr, "tccl: bench: %s\n", err->text);
    exit(1);
}

static int measure_beside(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                          struct tccl_error *err)
{
    return tccl_model_beside(context, TCCL_BACKGROUND_OFFLOAD, UINT32_MAX, set, &out->gbps, err);
}

static struct tccl_table *search(struct tccl_model *model, struct tccl_meter meter)
{
    const struct tccl_search_options options = {.gap = 0.03, .budget = BUDGET, .pairs = PAIRS};
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    struct tccl_search *search = tccl_search_new(machine, meter, symmetry);
    struct tccl_table *table = tccl_table_new(machine, (1u << machine->n_gpus) - 1);
    struct tccl_error err = {""};
    if (tccl_search_table(search, table, &options, &err) < 0)
        fail(&err);
    tccl_search_free(search);
    tccl_symmetry_free(symmetry);
    return table;
}

static const struct tccl_result *best_of(const struct tccl_table *table, bool closed)
{
    const struct tccl_result *best = &table->pairs[0];
    for (int i = 1; i < table->n_ports * table->n_ports; i++)
        if (table->pairs[i].gbps > best->gbps)
            best = &table->pairs[i];
    return closed ? &table->ring : best;
}

/* The slowest copy beside the set, GB/s. */
static double slowest_copy(const struct tccl_model *model, const struct tccl_set *set)
{
    struct tccl_side own = {0}, copies = {0};
    const struct tccl_side *const sides[] = {&own, &copies};
    struct tccl_error err = {""};
    double gbps[2];
    tccl_side_add(&own, set);
    tccl_background_add(tccl_model_machine(model), TCCL_BACKGROUND_OFFLOAD, UINT32_MAX, &copies);
    if (tccl_model_sides(model, sides, 2, gbps, &err) != 0)
        fail(&err);
    return gbps[1];
}

struct row {
    double alone[WAYS], beside[WAYS], copies[WAYS];
};

static void rate(const struct tccl_model *model, enum way way, const struct tccl_set *set,
                 int chains, struct row *row)
{
    struct tccl_error err = {""};
    if (tccl_model_beside(model, TCCL_BACKGROUND_NONE, 0, set, &row->alone[way], &err) != 0 ||
        tccl_model_beside(model, TCCL_BACKGROUND_OFFLOAD, UINT32_MAX, set, &row->beside[way],
                          &err) != 0)
        fail(&err);
    row->alone[way] *= chains;
    row->beside[way] *= chains;
    row->copies[way] = slowest_copy(model, set);
}

static void print_row(const char *name, bool closed, const struct row *row)
{
    if (!bench_rows) {
        printf("  %-18s %-6s", name, closed ? "ring" : "chain");
        for (int way = 0; way < WAYS; way++)
            printf(" %7.2f", row->beside[way]);
        printf("  %5.2f %5.2f", row->beside[PLANNED] / row->beside[PLAIN],
               row->beside[PLANNED] / row->beside[NCCL]);
        for (int way = 0; way < WAYS; way++)
            printf(" %7.2f", row->copies[way]);
        printf("  %7.2f %7.2f\n", row->alone[PLAIN], row->alone[NCCL]);
        return;
    }
    json_t *json = json_pack("{s:s, s:b}", "machine", name, "ring", closed);
    for (int way = 0; way < WAYS; way++) {
        char copies[32];
        snprintf(copies, sizeof(copies), "copies_%s", ways[way]);
        json_object_set_new(json, ways[way], json_real(row->beside[way]));
        json_object_set_new(json, copies, json_real(row->copies[way]));
    }
    json_object_set_new(json, "plain_alone_gbps", json_real(row->alone[PLAIN]));
    json_object_set_new(json, "nccl_alone_gbps", json_real(row->alone[NCCL]));
    json_array_append_new(bench_rows, json);
}

static void rate_model(const char *name)
{
    struct tccl_error err = {""};
    struct tccl_model *model;
    char path[PATH];
    snprintf(path, sizeof(path), "%s/%s.json", getenv("TCCL_MACHINES"), name);
    if (tccl_model_read(path, &model, &err) < 0)
        fail(&err);
    struct tccl_table *plain = search(model, tccl_model_meter(model));
    struct tccl_table *planned =
        search(model, (struct tccl_meter){.measure = measure_beside, .context = model});
    for (int closed = 1; closed >= 0; closed--) {
        const struct tccl_baseline *own =
            closed ? &plain->baseline_ring[TCCL_NEWEST] : &plain->baseline_chain[TCCL_NEWEST];
        struct tccl_set set;
        struct row row;
        if (tccl_baseline_set(own, &set, &err) != 0)
            fail(&err);
        rate(model, NCCL, &set, own->n_chains, &row);
        tccl_chain_set(&best_of(plain, closed)->chain, &set);
        rate(model, PLAIN, &set, 1, &row);
        tccl_chain_set(&best_of(planned, closed)->chain, &set);
        rate(model, PLANNED, &set, 1, &row);
        print_row(name, closed, &row);
    }
    tccl_table_free(plain);
    tccl_table_free(planned);
    tccl_model_free(model);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    if (!getenv("TCCL_MACHINES")) {
        fputs("tccl: bench: TCCL_MACHINES is not set: start it by testsuite/bench/run\n", stderr);
        return 1;
    }
    bench_title("Rings of one node and chains of one of several, over all GPUs, beside offload: "
                "GB/s");
    if (!bench_rows)
        printf("  %-18s %-6s %7s %7s %7s  %11s %23s  %15s\n"
               "  %-18s %-6s %7s %7s %7s  %5s %5s %7s %7s %7s  %7s %7s\n",
               "", "", "", "", "", "planned:", "the slowest copy by", "without copies", "machine",
               "", "NCCL", "plain", "planned", "plain", "NCCL", "NCCL", "plain", "planned", "plain",
               "NCCL");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        rate_model(names[i]);
    return bench_end();
}
