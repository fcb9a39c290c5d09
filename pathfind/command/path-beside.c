/* path-beside.c: for explain --busy: what the rings of an answer, and NCCL's own, have beside
 * another job on the node, and by what that is known: a model, measured together, foretold, or at
 * least. */
#include "command/path.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/numberset.h"
#include "ring/neighbours.h"
#include "search/model-table.h"

/* The other job's rings, as it gets them alone. */
static int find_other(const struct source *source, uint32_t busy, struct tccl_launched *other,
                      struct tccl_error *err)
{
    struct tccl_beside nobody = {.machine = &source->machine, .model = source->model};
    struct tccl_model_tables *tables = NULL;
    struct tccl_table *own = NULL;
    const struct tccl_table *table = NULL;
    int rc = source->profile ? source_table(source, busy, &own, err) : 0;
    if (rc == 0 && !own && source->model) {
        tables = tccl_model_tables_new(source->model, source->symmetry);
        table = tables ? tccl_model_tables_get(tables, busy, err) : NULL;
        rc = table ? 0 : tccl_fail(err, "out of memory");
    } else if (rc == 0 && !own) {
        rc = tccl_fail(err, "--busy: %s has no chains for these GPUs", source->path);
    }
    if (rc == 0)
        rc = tccl_launch_choose(&nobody, own ? own : table, TCCL_CHAIN_RINGS, other, err);
    if (rc == 0 && other->side.count == 0)
        rc = tccl_fail(err, "--busy: what these GPUs run is not known");
    tccl_model_tables_free(tables);
    tccl_table_free(own);
    return rc;
}

static int add_case(struct tccl_beside *beside, const struct stop *stop, const char *what,
                    json_t *list, struct tccl_error *err)
{
    struct tccl_side side;
    struct tccl_worth worth;
    tccl_ring_set_side(&stop->set, &side);
    side.alone = beside->own = stop->gbps;
    if (tccl_beside_worth(beside, &side, &worth, err) != 0)
        return -1;
    return json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f, s:s, s:b}", "rings", what,
                                                 "gbps", worth.gbps, "alone_gbps", stop->gbps,
                                                 "left_share", worth.left, "by",
                                                 tccl_basis_name(worth.basis), "collapses",
                                                 tccl_beside_collapses(beside, &side, &worth)));
}

int answer_beside(const struct options *options, const struct answer *answer, json_t **json,
                  struct tccl_error *err)
{
    const struct stop *stop = answer->route.stops;
    const struct source *source = answer->route.n == 1 ? stop->class->source : NULL;
    const struct tccl_together *together = NULL;
    struct tccl_launched other;
    uint32_t busy;
    *json = NULL;
    if (!source)
        return tccl_fail(err, "--busy: one node alone is wanted");
    if (tccl_numberset_parse(options->busy, source->machine.n_gpus, &busy, err) != 0)
        return tccl_fail_in(err, "--busy %.60s", options->busy);
    if (!busy || (busy & stop->class->gpus))
        return tccl_fail(err, "--busy %.60s: GPUs that are not among those of --gpus are wanted",
                         options->busy);
    if (find_other(source, busy, &other, err) != 0 ||
        (!source->model && source_together(source, &together, err) != 0))
        return -1;
    struct tccl_beside beside = {.machine = &source->machine,
                                 .model = source->model,
                                 .together = together,
                                 .n = 1,
                                 .others = {&other.side},
                                 .alone = {other.side.alone}};
    json_t *cases = json_array();
    int rc = add_case(&beside, stop, answer->is_baseline ? "baseline" : "these", cases, err);
    if (rc == 0 && answer->baseline.n == 1)
        rc = add_case(&beside, answer->baseline.stops, "baseline", cases, err);
    *json = json_pack("{s:s, s:f, s:b, s:o}", "busy", options->busy, "alone_gbps", other.side.alone,
                      "ours", other.ours, "cases", cases);
    return rc;
}

void answer_beside_print(const json_t *json)
{
    static const char *const by[][2] = {{"model", "by the model"},
                                        {"measured", "measured together"},
                                        {"foretold", "foretold within 10 %"},
                                        {"bounds", "at least: nobody measured it"}};
    const json_t *one;
    size_t i;
    printf("\nBeside a job on GPUs %s with %s (%.2f GB/s alone)\n", tccl_text_of(json, "busy"),
           json_is_true(json_object_get(json, "ours")) ? "its best rings" : "NCCL's own rings",
           json_real_value(json_object_get(json, "alone_gbps")));
    json_array_foreach(json_object_get(json, "cases"), i, one)
    {
        const char *how = "";
        for (size_t k = 0; k < sizeof(by) / sizeof(*by); k++)
            how = strcmp(tccl_text_of(one, "by"), by[k][0]) == 0 ? by[k][1] : how;
        printf("  %-10s %6.2f GB/s of %.2f, it keeps %.0f %%, %s%s\n",
               strcmp(tccl_text_of(one, "rings"), "these") == 0 ? "these" : "NCCL's own",
               json_real_value(json_object_get(one, "gbps")),
               json_real_value(json_object_get(one, "alone_gbps")),
               100 * json_real_value(json_object_get(one, "left_share")), how,
               json_is_true(json_object_get(one, "collapses"))
                   ? ": copies of both slow each other down"
                   : "");
    }
}
