/* test-narrowed.c: rings of a profile on links that carry less than when it was made, against a
 * fresh search on the machine as it is now: a model whose own capacities for that link were cut. */
#include "machines.h"
#include "owned.h"
#include "ring/narrowed.h"
#include "ring/neighbours.h"
#include "ring/reach.h"
#include "search/model-table.h"
#include "search/symmetry.h"

OWNED(tables, struct tccl_model_tables, tccl_model_tables_free)

#define WANTED 0.95
/* That P2P may read is not seen where the link was measured slower by reads. */
#define UNREAD 0.93

/* A link of a machine: of a GPU or a switch, and the resources of the model that stand for it. */
struct link {
    struct tccl_narrow narrow;
    char prefix[TCCL_NAME + 8]; /* "g3 " */
};

/* GPUs and NICs below a switch. */
static void gather(const struct tccl_machine *machine, int above, struct tccl_narrow *narrow)
{
    for (int i = 0; i < machine->n_gpus; i++)
        for (int k = machine->gpus[i].parent; k >= 0; k = machine->switches[k].parent)
            narrow->gpus |= k == above ? UINT32_C(1) << i : 0;
    for (int i = 0; i < machine->n_nics; i++)
        for (int k = machine->nics[i].parent; k >= 0; k = machine->switches[k].parent)
            narrow->nics |= k == above ? UINT32_C(1) << i : 0;
}

static int list_links(const struct tccl_machine *machine, struct link *links)
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

static double by_model(void *context, const struct tccl_set *set)
{
    double gbps;
    return tccl_model_slowest(context, set->transfers, set->count, &gbps, NULL) == 0 ? gbps : 0;
}

/* "g3 out" is the link's, "g3 to memory 1" what it has beyond it. */
static bool is_way(const char *name)
{
    static const char *const ways[] = {"out", "in", "both ways", "up", "down", "send", "receive"};
    for (size_t i = 0; i < COUNT(ways); i++)
        if (strcmp(name, ways[i]) == 0)
            return true;
    return false;
}

/* The machine as it is now, without what is tested: the resources whose names begin like the link's
 * have a part of their capacity. */
static struct tccl_model *cut(const char *name, const struct link *link, double part)
{
    struct tccl_model *model = NULL;
    cleanup_json json_t *json = json_load_file(machine_file(name), 0, NULL);
    size_t i;
    json_t *resource;
    int found = 0;
    json_array_foreach(json_object_get(json, "resources"), i, resource)
    {
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

/* What an all-reduce of what was chosen reaches on the machine as it is. */
static double reach_of(const struct tccl_model *model, const struct tccl_table *table,
                       double *promised)
{
    struct tccl_beside nobody = {.machine = tccl_model_machine(model)};
    struct tccl_launched launch;
    if (tccl_launch_choose(&nobody, table, TCCL_CHAIN_RINGS, &launch, ERR) != 0)
        return -1;
    *promised = launch.gbps;
    return launch.side.count == 0
               ? 0
               : launch.gbps * side_gbps(model, &launch.side) / launch.side.alone;
}

/* With what a search by the product's own model adds. reads: may P2P read by that model? */
static const struct tccl_table *search(const char *name, struct tccl_table *table,
                                       const struct tccl_narrowed *narrowed, bool *reads)
{
    owned(model) struct tccl_model *model = NULL;
    cleanup_json json_t *json = json_load_file(machine_file(name), 0, NULL);
    MUST(tccl_narrowed_model(json, machine_of(name), narrowed, &model, ERR));
    owned(tables) struct tccl_model_tables *tables = tccl_model_tables_new(model, NULL);
    const struct tccl_table *found = tccl_model_tables_get(tables, table->gpus, ERR);
    CHECK(found != NULL);
    *reads = found && tccl_table_reads(found);
    if (found)
        tccl_narrowed_add(table, found, model);
    return table;
}

static double least;
static int cases, below, searched;

static void compare(const char *name, uint32_t gpus, const struct tccl_table *healthy,
                    const struct tccl_model *now, struct tccl_model_tables *fresh,
                    const struct link *link, double part)
{
    const struct tccl_narrowed narrowed = {.n = 1, .links = {link->narrow}};
    uint32_t felt;
    double told, best;
    owned(table) struct tccl_table *ours =
        tccl_narrowed_table(healthy, tccl_model_machine(now), &narrowed, now, &felt);
    const struct tccl_table *wanted = tccl_model_tables_get(fresh, gpus, ERR);
    CHECK(ours && wanted);
    if (!ours || !wanted)
        return;
    double has = reach_of(now, ours, &told), could = reach_of(now, wanted, &best);
    cases++;
    if (could > 0 && has / could < least)
        least = has / could;
    bool suffices = tccl_narrowed_suffices(ours, WANTED);
    bool reads;
    if (!suffices) {
        has = reach_of(now, search(name, ours, &narrowed, &reads), &best);
        CHECK(has >= (!reads && tccl_table_reads(wanted) ? UNREAD : WANTED) * could);
    }
    searched += !suffices;
    below += suffices && has < WANTED * could;
    if (getenv("TCCL_VERBOSE") || (suffices && has < WANTED * could))
        printf("%s %08x %sx%g: %.2f (told %.2f) of %.2f: %.3f\n", name, gpus, link->prefix, part,
               has, told, could, has / could);
}

static void try_machine(const char *name, const double *parts, int n_parts)
{
    const struct tccl_model *model = load_machine(name);
    const struct tccl_machine *machine = tccl_model_machine(model);
    const uint32_t all = (UINT32_C(1) << machine->n_gpus) - 1;
    const uint32_t sets[] = {all, all >> machine->n_gpus / 2, all & 0x5555,
                             1 | UINT32_C(1) << machine->n_gpus / 2};
    struct link links[TCCL_MAX_GPUS + TCCL_MAX_NICS + TCCL_MAX_SWITCHES];
    const int n = list_links(machine, links);
    owned(tables) struct tccl_model_tables *tables = tccl_model_tables_new(model, NULL);
    least = INFINITY, cases = below = searched = 0;
    for (int i = 0; i < n; i++)
        for (int p = 0; p < n_parts; p++) {
            owned(model) struct tccl_model *now = cut(name, &links[i], parts[p]);
            if (!now)
                continue;
            tccl_narrow_rate(&links[i].narrow, machine, parts[p], by_model, (void *)model);
            owned(tables) struct tccl_model_tables *fresh = tccl_model_tables_new(now, NULL);
            for (size_t s = 0; s < COUNT(sets); s++) {
                const struct tccl_table *healthy = tccl_model_tables_get(tables, sets[s], ERR);
                if (healthy)
                    compare(name, sets[s], healthy, now, fresh, &links[i], parts[p]);
            }
        }
    printf("%s: %d cases, least %.3f, to be searched %d, below %g: %d\n", name, cases, least,
           searched, WANTED, below);
    CHECK(cases > 0);
    CHECK_INT(below, 0);
}

TEST(rings)
{
    static const double parts[] = {0.5, 0.125};
    static const char *const names[] = {"quad-8gpu", "turin-pex890", "amd-4gpu",       "intel-4gpu",
                                        "dual-8gpu", "h100-8gpu",    "epyc-nps4-4a100"};
    for (size_t i = 0; i < COUNT(names); i++)
        try_machine(names[i], parts, COUNT(parts));
}
