/* test-symmetry.c: symmetries found by measuring a machine: few measurements, no wrong exchange
 * that leads to a wrong ring. */
#include "search/symmetry.h"

#include "enumerate.h"
#include "nccl/baseline.h"
#include "noisy-meter.h"
#include "random-model.h"

static bool random_set(unsigned long *state, const struct tccl_machine *machine, int members,
                       bool nics, struct tccl_set *set)
{
    set->count = 0;
    for (int tries = 0; tries < 10000 && set->count < members; tries++) {
        tccl_transfer transfer = random_below(state, TCCL_TRANSFERS);
        if (tccl_transfer_valid(transfer) && tccl_machine_allows(machine, transfer, NULL) == 0 &&
            (nics || tccl_transfer_initiator(transfer).kind != TCCL_NIC))
            tccl_set_add(set, transfer);
    }
    return set->count > 0;
}

/* The largest ratio by which sets differ from their images. */
static double worst_image(const struct tccl_symmetry *symmetry, const struct tccl_model *model,
                          unsigned long *state, int rounds)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    double worst = 1;
    for (int round = 0; round < rounds; round++) {
        struct tccl_set set, image;
        double own, other;
        if (!random_set(state, machine, 1 + random_below(state, 6), round % 2, &set))
            continue;
        tccl_model_measure(model, &set, &own, NULL, NULL, NULL);
        for (int e = 0; e < tccl_symmetry_exchanges(symmetry, &set, false); e++) {
            tccl_symmetry_exchange(symmetry, &set, false, e, &image);
            CHECK_INT(tccl_model_measure(model, &image, &other, NULL, NULL, NULL), 0);
            worst = fmax(worst, fmax(own / other, other / own));
        }
    }
    return worst;
}

static int count_exchanges(const struct tccl_symmetry *symmetry, bool nics)
{
    struct tccl_device gpu = {TCCL_GPU, 0}, memory = {TCCL_MEMORY, 0}, nic = {TCCL_NIC, 0};
    struct tccl_set set = {1, {tccl_transfer_make(nics ? nic : gpu, false, memory)}};
    return tccl_symmetry_exchanges(symmetry, &set, false);
}

/* On the models, measuring finds what their numbers say. */
TEST(machines)
{
    unsigned long seed = check_seed();
    for (int which = 0; which < MACHINE_NAMES; which++) {
        const struct tccl_model *model = load_machine(machine_names[which]);
        cleared_by(noisy_clear) struct noisy_meter noisy = {.model = model};
        owned(symmetry) struct tccl_symmetry *known = tccl_symmetry_of_model(model);
        owned(symmetry) struct tccl_symmetry *found = measure_symmetry(&noisy);
        unsigned long state = seed + which;
        printf("%s: %zu sets measured; exchanges %d + %d with NICs, in truth %d + %d\n",
               machine_names[which], noisy.asked.count, count_exchanges(found, false),
               count_exchanges(found, true), count_exchanges(known, false),
               count_exchanges(known, true));
        /* Sockets that only sets of many transfers tell apart are taken for equal. */
        bool alike = strcmp(machine_names[which], "epyc-nps4-4a100") == 0;
        for (int nics = 0; nics < 2; nics++)
            CHECK(alike ? count_exchanges(found, nics) > count_exchanges(known, nics)
                        : count_exchanges(found, nics) == count_exchanges(known, nics));
        CHECK(worst_image(found, model, &state, 400) < (alike ? 1.5 : 1 + 1e-9));
        CHECK(tccl_symmetry_assumed(found) && !tccl_symmetry_assumed(known));
    }
}

/* What a walk over a GPU set's images found. */
struct found_images {
    const struct tccl_model *model;
    const struct tccl_set *set; /* of transfers between these GPUs and memories */
    double gbps;
    uint32_t gpus, masks[1 << 8];
    int n;
};

static struct tccl_device moved(const struct tccl_exchange *move, struct tccl_device device)
{
    device.index = device.kind == TCCL_GPU ? move->image[TCCL_GPU][device.index]
                                           : move->image[TCCL_MEMORY][device.index];
    return device;
}

/* Its transfers, moved, are among the GPUs of the image, and as fast. */
static bool note_image(void *context, uint32_t image, const struct tccl_exchange *move)
{
    struct found_images *found = context;
    struct tccl_set set = {.count = 0};
    double gbps;
    for (int i = 0; i < found->n; i++)
        if (found->masks[i] == image)
            return false;
    CHECK(found->n > 0 || image == found->gpus);
    found->masks[found->n++] = image;
    CHECK_INT(__builtin_popcount(image), __builtin_popcount(found->gpus));
    for (int i = 0; i < found->set->count; i++) {
        tccl_transfer transfer = found->set->transfers[i];
        struct tccl_device initiator = moved(move, tccl_transfer_initiator(transfer));
        struct tccl_device target = moved(move, tccl_transfer_target(transfer));
        CHECK(image >> initiator.index & 1);
        CHECK(target.kind == TCCL_MEMORY || image >> target.index & 1);
        tccl_set_add(&set, tccl_transfer_make(initiator, tccl_transfer_reads(transfer), target));
    }
    CHECK_INT(set.count, found->set->count);
    if (set.count == 0)
        return true;
    CHECK_INT(tccl_model_measure(found->model, &set, &gbps, NULL, NULL, NULL), 0);
    CHECK(fabs(gbps - found->gbps) <= 1e-9 * gbps);
    return true;
}

TEST(images)
{
    unsigned long seed = check_seed();
    for (int which = 0; which < MACHINE_NAMES; which++) {
        const struct tccl_model *model = load_machine(machine_names[which]);
        owned(symmetry) struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
        const struct tccl_machine *machine = tccl_model_machine(model);
        unsigned long state = seed + which;
        int most = 0;
        for (int round = 0; round < 20; round++) {
            struct tccl_set set;
            struct found_images found = {.model = model, .set = &set};
            if (!random_set(&state, machine, 1 + random_below(&state, 6), false, &set))
                continue;
            for (int i = 0; i < set.count; i++) {
                struct tccl_device to = tccl_transfer_target(set.transfers[i]);
                found.gpus |= 1u << tccl_transfer_initiator(set.transfers[i]).index;
                found.gpus |= to.kind == TCCL_GPU ? 1u << to.index : 0;
            }
            tccl_model_measure(model, &set, &found.gbps, NULL, NULL, NULL);
            /* The images of an image are those of the set: so each set that is like it is found. */
            tccl_symmetry_images(symmetry, found.gpus, note_image, &found);
            for (int i = 0; i < found.n; i++) {
                struct found_images back = {.set = &(struct tccl_set){.count = 0},
                                            .gpus = found.masks[i]};
                tccl_symmetry_images(symmetry, back.gpus, note_image, &back);
                CHECK_INT(back.n, found.n);
            }
            most = found.n > most ? found.n : most;
            found.n = 0;
            tccl_symmetry_images(NULL, found.gpus, note_image, &found);
            CHECK_INT(found.n, 1);
        }
        CHECK(count_exchanges(symmetry, false) == 0 || most > 1);
    }
}

/* No set is measured twice, and noise refutes nothing that is true. */
TEST(noise)
{
    unsigned long seed = check_seed();
    const struct tccl_model *model = load_machine("dual-8gpu");
    owned(symmetry) struct tccl_symmetry *known = tccl_symmetry_of_model(model);
    cleared_by(noisy_clear) struct noisy_meter noisy = {
        .model = model, .noise = 0.04, .state = seed, .once = true};
    owned(symmetry) struct tccl_symmetry *found = measure_symmetry(&noisy);
    CHECK_INT(count_exchanges(found, false), count_exchanges(known, false));
    CHECK_INT(count_exchanges(found, true), count_exchanges(known, true));
    CHECK(noisy.asked.count > 0 && noisy.asked.count <= 4000);
}

/* By its description alone, and with a meter that can't go on. */
static int breaks(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                  struct tccl_error *err)
{
    return tccl_fail(err, "the meter broke");
}

TEST(without_meter)
{
    const struct tccl_model *model = load_machine("dual-8gpu-unequal");
    owned(symmetry) struct tccl_symmetry *described =
        tccl_symmetry_of_machine(tccl_model_machine(model), NULL, 0, NULL);
    struct tccl_meter broken = {.measure = breaks, .context = NULL};
    CHECK(count_exchanges(described, false) > 0);
    CHECK(tccl_symmetry_of_machine(tccl_model_machine(model), &broken, 0.05, ERR) == NULL);
    CHECK_STR(check_err.text, "the meter broke");
}

/* As many devices beside each other on one NUMA node as there may be. */
TEST(crowded)
{
    static const struct tccl_machine machine = {
        .n_gpus = TCCL_MAX_GPUS,
        .n_memories = 1,
        .n_nics = TCCL_MAX_NICS,
        .n_switches = TCCL_MAX_SWITCHES,
    };
    struct tccl_machine crowded = machine;
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        crowded.gpus[i].parent = -1;
    for (int i = 0; i < TCCL_MAX_NICS; i++)
        crowded.nics[i].parent = -1;
    for (int i = 0; i < TCCL_MAX_SWITCHES; i++)
        crowded.switches[i].parent = -1;
    owned(symmetry) struct tccl_symmetry *symmetry =
        tccl_symmetry_of_machine(&crowded, NULL, 0, NULL);
    CHECK(symmetry && count_exchanges(symmetry, true) > 0);
}

/* Random machines look more alike than they are. */
TEST(random)
{
    unsigned long seed = check_seed();
    int kept = 0, wrong = 0, rings_off = 0;
    double worst_ring = 1, worst_set = 1;
    long probes = 0;
    int rounds = getenv("ROUNDS") ? atoi(getenv("ROUNDS")) : 60;
    for (int round = 0; round < rounds; round++) {
        unsigned long state = seed + round;
        int gpus = 3 + random_below(&state, 2), memories = 1 + random_below(&state, 2);
        owned(model) struct tccl_model *model =
            random_model(&state, gpus, memories, random_below(&state, 2));
        cleared_by(noisy_clear) struct noisy_meter noisy = {.model = model};
        owned(symmetry) struct tccl_symmetry *found = measure_symmetry(&noisy);
        owned(search) struct tccl_search *search =
            tccl_search_new(tccl_model_machine(model), tccl_model_meter(model), found);
        struct tccl_search_options options = {0};
        struct tccl_result result;
        uint32_t mask = (1u << gpus) - 1;
        int exchanges = count_exchanges(found, false);
        double worst = exchanges ? worst_image(found, model, &state, 300) : 1;
        probes += (long)noisy.asked.count;
        kept += exchanges > 0;
        wrong += worst > 1 + 1e-9;
        worst_set = fmax(worst_set, worst);
        CHECK_INT(tccl_search_ring(search, mask, &options, &result, NULL), 0);
        double best = enumerate_ring(model, mask, false, NULL);
        rings_off += result.gbps < best * (1 - 1e-9);
        worst_ring = fmax(worst_ring, best / result.gbps);
        struct tccl_set set;
        double gbps;
        tccl_chain_set(&result.chain, &set);
        tccl_model_measure(model, &set, &gbps, NULL, NULL, NULL);
        CHECK(fabs(gbps - result.gbps) < 1e-9);
    }
    printf("%d random machines: %ld sets measured each; exchanges on %d, wrong on %d (sets differ "
           "by up to %.2f); rings too slow %d (by up to %.2f)\n",
           rounds, probes / rounds, kept, wrong, worst_set, rings_off, worst_ring);
}

static bool is_off(const struct tccl_model *model, const struct tccl_result *result)
{
    struct tccl_side side = {0};
    if (result->set)
        tccl_ring_set_side(result->set, &side);
    else
        MUST(tccl_side_add_chain(&side, &result->chain));
    double gbps = side_gbps(model, &side);
    return fabs(gbps - result->gbps) > 1e-9 * gbps;
}

/* Against a model, and NCCL's search over the set itself. */
static void check_moved(const struct tccl_model *model, const struct tccl_table *table)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_baseline own[TCCL_GENERATIONS];
    MUST(tccl_table_check(table, machine, ERR));
    int n = 0;
    for (const struct tccl_result *own = NULL;
         (own = tccl_table_next(table, own, TCCL_SINGLES | TCCL_SETS)); n++)
        CHECK(!is_off(model, own));
    CHECK(n > 0);
    for (int closed = machine->n_nics ? 0 : 1; closed < 2; closed++) {
        MUST(tccl_baseline_find_all(machine, table->gpus, closed, own, ERR));
        for (int i = 0; i < TCCL_GENERATIONS; i++) {
            own[i].gbps = table->baselines[closed][i].gbps;
            CHECK(own[i].gbps == 0 || tccl_baseline_equal(&own[i], &table->baselines[closed][i]));
        }
    }
}

/* A table that is moved to another set is one of that set: its chains are as fast as they say, and
 * NCCL's own are what its search finds there. */
TEST(alike)
{
    static const char *const names[] = {"dual-8gpu", "turin-pex890", "g5-48xlarge"};
    unsigned long state = check_seed();
    for (size_t which = 0; which < COUNT(names); which++) {
        const struct tccl_model *model = load_machine(names[which]);
        const struct tccl_machine *machine = tccl_model_machine(model);
        owned(symmetry) struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
        owned(search) struct tccl_search *search =
            tccl_search_new(machine, tccl_model_meter(model), symmetry);
        const struct tccl_search_options options = {.gap = 0.03,
                                                    .budget = 500,
                                                    .every_nccl = true,
                                                    .trees = true,
                                                    .hosts = 50,
                                                    .others = 50,
                                                    .sets = 50};
        struct tccl_alike alike, again;
        tccl_symmetry_alike(symmetry, machine, &alike);
        cleanup_json json_t *json = tccl_alike_to_json(&alike);
        MUST(tccl_alike_from_json(json, machine, &again, ERR));
        CHECK_INT(again.n, alike.n);
        CHECK(alike.n > 0 && memcmp(again.exchanges, alike.exchanges,
                                    sizeof(*alike.exchanges) * (size_t)alike.n) == 0);
        for (int left = 6; left > 0;) {
            uint32_t gpus = random_below(&state, 1 << machine->n_gpus);
            struct tccl_exchange move;
            uint32_t first = tccl_alike_first(&alike, gpus, &move);
            CHECK_INT(tccl_exchange_gpus(&move, first), gpus);
            if (first == gpus || __builtin_popcount(gpus) < 2 || __builtin_popcount(gpus) > 4)
                continue;
            owned(table) struct tccl_table *table = tccl_table_new(machine, first);
            CHECK(tccl_search_table(search, table, &options, ERR) >= 0);
            owned(table) struct tccl_table *moved = tccl_alike_table(table, machine, &move, ERR);
            CHECK(moved && moved->gpus == gpus && moved->n_results == table->n_results);
            check_moved(model, moved);
            tccl_table_keep_other(moved, &(struct tccl_chain){.n_gpus = 1}, 1); /* as any other */
            CHECK_INT(moved->n_results, table->n_results + 1);
            left--;
        }
    }
}

TEST(alike_refused)
{
    static const char *const bad[] = {
        "{\"noise\": 0}",
        "{\"noise\": -1, \"exchanges\": []}",
        "{\"noise\": 0, \"exchanges\": [1]}",
        "{\"noise\": 0, \"exchanges\": [\"g0=g0\"]}",
        "{\"noise\": 0, \"exchanges\": [\"g0=m1\"]}",
        "{\"noise\": 0, \"exchanges\": [\"g0=g1 g1=g2\"]}",
        "{\"noise\": 0, \"exchanges\": [\"g0=g9\"]}",
        "{\"noise\": 0, \"exchanges\": [\"g0=g-1\"]}",
        "{\"noise\": 0, \"exchanges\": [\"n0=n1\"]}",
        "{\"noise\": 0, \"exchanges\": [\"g0=g1,\"]}",
        "{\"noise\": 0, \"exchanges\": [\"g0=g4\"]}", /* on another socket */
    };
    struct tccl_alike alike;
    for (size_t i = 0; i < COUNT(bad); i++) {
        cleanup_json json_t *json = json_loads(bad[i], 0, NULL);
        CHECK_SAYS(tccl_alike_from_json(json, machine_of("dual-8gpu"), &alike, ERR) == -1,
                   "\"alike\"");
        CHECK_INT(alike.n, 0);
    }
    CHECK_INT(tccl_alike_from_json(NULL, machine_of("dual-8gpu"), &alike, ERR), 0);
}

/* Of 16 GPUs, measured with noise, one has a slower way out, by less than one would see at a
 * glance: it stands for no other, and no other for it; all the others do. */
TEST(nearly_alike)
{
    cleanup_json json_t *json = json_load_file(machine_file("wrx90-16gpu"), 0, NULL);
    owned(model) struct tccl_model *model = NULL;
    struct tccl_exchange move;
    struct tccl_alike alike;
    json_t *slow = NULL;
    EACH_OF(one, json_object_get(json, "resources"))
        if (strcmp(json_string_value(json_object_get(one, "name")), "g6 out") == 0)
            slow = one;
    CHECK(slow != NULL);
    json_object_set_new(slow, "gbps",
                        json_real(json_real_value(json_object_get(slow, "gbps")) * 0.92));
    MUST(tccl_model_from_json(json, &model, ERR));
    cleared_by(noisy_clear) struct noisy_meter noisy = {
        .model = model, .noise = 0.01, .state = check_seed()};
    owned(symmetry) struct tccl_symmetry *found = measure_symmetry(&noisy);
    tccl_symmetry_alike(found, tccl_model_machine(model), &alike);
    CHECK(alike.n > 8);
    for (int k = 0; k < alike.n; k++)
        CHECK_INT(alike.exchanges[k].image[TCCL_GPU][6], 6);
    CHECK_INT(tccl_alike_first(&alike, 0xa0, &move), 0x30); /* 5 and 7: 4 and 5 */
    CHECK_INT(tccl_alike_first(&alike, 0x60, &move), 0x50); /* 5 and 6: 4 and 6 */
    CHECK_INT(tccl_alike_first(&alike, 0xc0, &move), 0xc0); /* 6 and 7: another order */
}
