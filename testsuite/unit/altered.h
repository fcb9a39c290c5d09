/* altered.h: what planned rings and NCCL's own reach if the model by which they were planned is
 * wrong. */
#pragma once

#include "machines.h"
#include "owned.h"
#include "random-model.h"
#include "ring/ring.h"
#include "search/model-table.h"

/* The model's file. The caller drops the reference. */
static json_t *altered_json(const char *name)
{
    const char *folder = getenv("TCCL_MACHINES");
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.json", folder ? folder : "testsuite/machines", name);
    json_t *json = json_load_file(path, 0, NULL);
    if (!json) {
        fprintf(stderr, "%s can't be read\n", path);
        exit(1);
    }
    return json;
}

static struct tccl_model *altered_model(const char *name, const json_t *json)
{
    struct tccl_model *model;
    if (tccl_model_from_json(json, &model, ERR) != 0) {
        fprintf(stderr, "%s: %s\n", name, check_err.text);
        exit(1);
    }
    return model;
}

/* With each capacity and each rule's limit multiplied by a factor of its own, uniform in 1 - by to
 * 1 + by; drop: and one of the rules left out, if there are any. */
static struct tccl_model *alter_model(const char *name, double by, bool drop, unsigned long *state)
{
    cleanup_json json_t *json = altered_json(name);
    json_t *lists[] = {json_object_get(json, "resources"), json_object_get(json, "rules")};
    for (int list = 0; list < 2; list++)
        EACH_OF(limit, lists[list]) {
            double factor = 1 + by * (random_below(state, 20001) / 10000.0 - 1);
            double gbps = json_number_value(json_object_get(limit, "gbps"));
            json_object_set_new(limit, "gbps", json_real(gbps * factor));
        }
    if (drop && json_array_size(lists[1]) > 0)
        json_array_remove(lists[1], (size_t)random_below(state, (int)json_array_size(lists[1])));
    return altered_model(name, json);
}

/* What a job over all GPUs of so many equal nodes gets, by the model. */
struct planned {
    struct tccl_side ours, nccl; /* on each node; without NCCL's own: not known */
    struct tccl_ring ring;       /* its figures; choices are gone */
    bool taken;
};

/* As tccl-profile run makes it, with less work. */
static struct tccl_table *plan_table(const struct tccl_model *model, uint32_t gpus, long budget)
{
    const struct tccl_search_options options = {.gap = 0.03, .budget = budget};
    const struct tccl_table_sets_options sets = {.gap = 0.03, .budget = budget};
    struct tccl_table *table = table_of(model, gpus, false, &options);
    MUST(tccl_table_find_sets(model, table, &sets, ERR) < 0);
    return table;
}

/* Returns 0; else there is no ring. */
static int plan_nodes(const struct tccl_model *model, const struct tccl_table *table, int nodes,
                      struct planned *planned)
{
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, tccl_model_machine(model), TCCL_VIEW_JOB);
    const struct tccl_baseline *own = &table->baselines[nodes == 1][TCCL_NEWEST];
    const struct tccl_run run = {class, nodes};
    struct tccl_ring_set set;
    int rings;
    *planned = (struct planned){.taken = false};
    int status = tccl_ring_choose(&run, 1, TCCL_CHAIN_RINGS, &planned->ring, &rings, NULL);
    if (status == 0) {
        tccl_ring_set_of(&planned->ring, class, 0, &set);
        tccl_ring_set_side(&set, &planned->ours);
        for (int i = 0; i < own->set.n; i++)
            CHECK_INT(tccl_side_add_chain(&planned->nccl, &own->set.rings[i]), 0);
        planned->taken = tccl_ring_gains(&planned->ring, TCCL_NEWEST);
        free(planned->ring.choices);
        planned->ring.choices = NULL;
    }
    return status;
}

/* What ours reach, as a part of what NCCL's own do, by an altered model. */
static double alter_ratio(const char *name, double by, bool drop, const struct planned *planned,
                          unsigned long *state)
{
    owned(model) struct tccl_model *model = alter_model(name, by, drop, state);
    return side_gbps(model, &planned->ours) / side_gbps(model, &planned->nccl);
}
