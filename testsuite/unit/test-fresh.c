/* test-fresh.c: which GPU sets are searched again where a link carries less: those of steps, once
 * each, however many others are looked at for what the best GPUs give. */
#include "base/fileio.h"
#include "doctor/doctor.h"
#include "machines.h"
#include "owned.h"
#include "profile/cache.h"
#include "search/model-table.h"
#include "tccld/join/own.h"

OWNED(own, struct own, own_free)
OWNED(profile, struct tccl_profile, tccl_profile_close)
OWNED(tables, struct tccl_model_tables, tccl_model_tables_free)

/* Tables of all pairs of GPUs, as if they had been measured. */
static void make_profile(struct tccl_conf *conf, const struct tccl_model *model)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    owned(tables) struct tccl_model_tables *tables = tccl_model_tables_new(model, NULL);
    owned(profile) struct tccl_profile *profile = NULL;
    snprintf(conf->cache_dir, sizeof(conf->cache_dir), "%s", check_at("cache"));
    snprintf(conf->machine, sizeof(conf->machine), "%s", check_at("machine.json"));
    snprintf(conf->node, sizeof(conf->node), "n1");
    cleanup_json json_t *json = tccl_machine_to_json(machine);
    MUST(tccl_write_json(conf->machine, 0644, json, ERR));
    MUST(tccl_profile_create(conf->cache_dir, machine, "host", NULL, &profile, ERR));
    for (uint32_t gpus = 1; gpus < UINT32_C(1) << machine->n_gpus; gpus++) {
        if (__builtin_popcount(gpus) != 2)
            continue;
        struct tccl_table *table = (struct tccl_table *)tccl_model_tables_get(tables, gpus, ERR);
        MUST(table ? 0 : -1);
        snprintf(table->source, sizeof(table->source), "host");
        CHECK_INT(tccl_profile_put(profile, table, ERR), 0);
    }
}

/* A step asks for two GPUs. */
static void ask(struct own *own, const struct tccl_conf *conf, const struct tccl_machine *machine,
                int a, int b)
{
    tccl_bus buses[2];
    CHECK_INT(tccl_bus_parse(machine->gpus[a].busid, &buses[0]), 0);
    CHECK_INT(tccl_bus_parse(machine->gpus[b].busid, &buses[1]), 0);
    struct shared_class *class = own_kind_busids(own, conf, buses, 2, TCCL_VIEW_ALL, ERR);
    CHECK(class != NULL);
    shared_class_drop(class);
}

TEST(wanted)
{
    const struct tccl_model *model = load_machine("g5-48xlarge");
    const struct tccl_machine *machine = tccl_model_machine(model);
    cleanup_free struct tccl_conf *conf = calloc(1, sizeof(*conf));
    owned(own) struct own *own = own_new();
    struct tccl_since since = {.narrowed.n = 1}; /* between all GPUs and the memories */
    struct own_wanted wanted;
    make_profile(conf, model);
    tccl_machine_id(machine, since.machine);
    since.narrowed.links[0] = (struct tccl_narrow){
        .gpus = (UINT32_C(1) << machine->n_gpus) - 1, .gbps = {1, 1}, .reads = 1};
    ask(own, conf, machine, 0, 5);
    own_since(own, &since);
    CHECK(!own_wants(own, &wanted));
    ask(own, conf, machine, 0, 5);
    ask(own, conf, machine, 2, 4);
    for (int rings = 1; rings <= 3; rings++)
        CHECK(own_placed(own, 2, rings) == 0);
    while (own_look_at_place(own))
        ;
    CHECK(own_placed(own, 2, 1) > 0 && own_wants(own, &wanted));
    CHECK_INT(wanted.gpus, 1 | 32);
    /* What is found is kept, however many others are looked at. */
    owned(table) struct tccl_table *found = tccl_table_new(machine, wanted.gpus);
    *tccl_table_ring(found) = *tccl_table_ring(own_table(own, wanted.gpus));
    tccl_table_ring(found)->gbps *= 2;
    own_found(own, &wanted, found);
    own_placed(own, 2, 4);
    while (own_look_at_place(own))
        ;
    CHECK(tccl_table_ring(own_table(own, wanted.gpus))->gbps == tccl_table_ring(found)->gbps);
    CHECK(own_wants(own, &wanted));
    CHECK_INT(wanted.gpus, 4 | 16);
    ask(own, conf, machine, 0, 5);
    CHECK(own_is_wanted(own, &wanted));
    CHECK(!own_wants(own, &wanted));
    /* What goes on is wanted no more once links were seen to be otherwise. */
    since.narrowed.links[0].gbps[0] = 2;
    own_since(own, &since);
    CHECK(!own_is_wanted(own, &wanted));
}
