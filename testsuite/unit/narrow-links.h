/* narrow-links.h: the links of a machine, and the machine as it is when one of them carries less: a
 * model whose own capacities for it were cut. */
#pragma once

#include "machines.h"
#include "owned.h"
#include "ring/narrowed.h"
#include "ring/neighbours.h"
#include "ring/reach.h"

/* A link of a machine: of a GPU or a switch, and the resources of the model that stand for it. */
struct link {
    struct tccl_narrow narrow;
    char prefix[TCCL_NAME + 8]; /* "g3 " */
};

/* GPUs and NICs below a switch. */
static inline void gather(const struct tccl_machine *machine, int above, struct tccl_narrow *narrow)
{
    for (int i = 0; i < machine->n_gpus; i++)
        for (int k = machine->gpus[i].parent; k >= 0; k = machine->switches[k].parent)
            narrow->gpus |= k == above ? UINT32_C(1) << i : 0;
    for (int i = 0; i < machine->n_nics; i++)
        for (int k = machine->nics[i].parent; k >= 0; k = machine->switches[k].parent)
            narrow->nics |= k == above ? UINT32_C(1) << i : 0;
}

static inline int list_links(const struct tccl_machine *machine, struct link *links)
{
    int n = 0;
    for (int i = 0; i < machine->n_gpus; i++, n++) {
        links[n] = (struct link){.narrow = {.gpus = UINT32_C(1) << i}};
        snprintf(links[n].prefix, sizeof(links[n].prefix), "g%d ", i);
    }
    for (int i = 0; i < machine->n_nics; i++, n++) {
        links[n] = (struct link){.narrow = {.nics = UINT32_C(1) << i}};
        snprintf(links[n].prefix, sizeof(links[n].prefix), "n%d ", i);
    }
    for (int i = 0; i < machine->n_switches; i++, n++) {
        links[n] = (struct link){0};
        gather(machine, i, &links[n].narrow);
        snprintf(links[n].prefix, sizeof(links[n].prefix), "%s ", machine->switches[i].name);
    }
    return n;
}

/* "g3 out" is the link's, "g3 to memory 1" what it has beyond it. */
static inline bool is_way(const char *name)
{
    static const char *const ways[] = {"out", "in", "both ways", "up", "down", "send", "receive"};
    for (size_t i = 0; i < COUNT(ways); i++)
        if (strcmp(name, ways[i]) == 0)
            return true;
    return false;
}

/* The machine as it is now, without what is tested: the resources whose names begin like the link's
 * have a part of their capacity. */
static inline struct tccl_model *cut(const char *name, const struct link *link, double part)
{
    struct tccl_model *model = NULL;
    cleanup_json json_t *json = json_load_file(machine_file(name), 0, NULL);
    int found = 0;
    EACH_OF(resource, json_object_get(json, "resources")) {
        const char *own = json_string_value(json_object_get(resource, "name"));
        if (strncmp(own, link->prefix, strlen(link->prefix)) != 0 ||
            !is_way(own + strlen(link->prefix)))
            continue;
        json_t *gbps = json_object_get(resource, "gbps");
        json_object_set_new(resource, "gbps", json_real(part * json_number_value(gbps)));
        found++;
    }
    if (found > 0)
        MUST(tccl_model_from_json(json, &model, ERR));
    return model;
}

/* Does the side run these rings? */
static inline bool runs(const struct tccl_side *side, const struct tccl_chain *rings, int n)
{
    struct tccl_side own = {0};
    for (int i = 0; i < n; i++)
        tccl_side_add_chain(&own, &rings[i]);
    return own.count == side->count &&
           memcmp(own.transfers, side->transfers, (size_t)own.count * sizeof(*own.transfers)) == 0;
}

/* The ends of the round (reach.h) of what was chosen of a table, in truth. */
static inline uint8_t ends_of(const struct tccl_model *model, const struct tccl_table *table,
                              const struct tccl_launched *launch)
{
    const struct tccl_ring_set *nccl = &table->baselines[1][TCCL_NEWEST].set;
    for (int i = 0; i < table->n_results; i++) {
        const struct tccl_result *own = &table->results[i];
        const struct tccl_chain *rings = own->set ? own->set->rings : &own->chain;
        const int n = own->set ? own->set->n : own->chain.n_gpus > 0;
        if (n > 0 && own->chain.closed && runs(&launch->side, rings, n))
            return tccl_ends(model, rings, n);
    }
    CHECK(runs(&launch->side, nccl->rings, nccl->n));
    return tccl_ends(model, nccl->rings, nccl->n);
}

/* What an all-reduce of what was chosen reaches on the machine as it is. */
static inline double reach_of(const struct tccl_model *model, const struct tccl_table *table,
                              double *promised)
{
    struct tccl_beside nobody = {.machine = tccl_model_machine(model)};
    struct tccl_launched launch;
    double gbps;
    *promised = 0;
    if (tccl_launch_choose(&nobody, table, TCCL_CHAIN_RINGS, &launch, ERR) != 0)
        return -1;
    *promised = launch.gbps;
    const struct tccl_side *sides[] = {&launch.side};
    if (launch.side.count == 0)
        return 0;
    MUST(tccl_model_sides(model, sides, 1, &gbps, ERR));
    return gbps * tccl_reach(ends_of(model, table, &launch), __builtin_popcount(table->gpus));
}
