/* Filling a profile: which GPU sets and in which order; that nothing is measured twice, however
 * often it is interrupted; that a table says what the model says. */
#include "fill/fill.h"

#include "machines.h"
#include "sample.h"

OWNED(profile, struct tccl_profile, tccl_profile_close)

static const char *cache;
static struct tccl_backend *backend;

TEST(order)
{
    static const uint32_t eight[] = {0xff, 0x0f, 0xf0, 0x03, 0x0c, 0x30, 0xc0, 0x01, 0x02};
    uint32_t *sets, seen = 0;
    CHECK_INT(tccl_gpusets_all(8, &sets, ERR), 255);
    CHECK(memcmp(sets, eight, sizeof(eight)) == 0);
    free(sets);
    CHECK_INT(tccl_gpusets_all(4, &sets, ERR), 15);
    for (int i = 0; i < 15; i++)
        seen |= UINT32_C(1) << sets[i];
    CHECK_INT(seen, 0xfffe);
    free(sets);
    CHECK_INT(tccl_gpusets_all(1, &sets, ERR), 1);
    CHECK_INT(sets[0], 1);
    free(sets);
    int count = tccl_gpusets_all(16, &sets, ERR);
    CHECK(count > 16 && count < 100);
    CHECK_INT(sets[0], 0xffff);
    CHECK_INT(sets[1], 0x00ff);
    free(sets);
}

static void check_refused(const char *text, const char *why)
{
    uint32_t *sets;
    CHECK_SAYS(tccl_gpusets_parse(text, 8, &sets, ERR) == -1, why);
}

TEST(parse)
{
    uint32_t *sets;
    CHECK_INT(tccl_gpusets_parse("0-3 4-7; 0,5  0-3", 8, &sets, ERR), 3);
    CHECK_INT(sets[0], 0x0f);
    CHECK_INT(sets[1], 0xf0);
    CHECK_INT(sets[2], 0x21);
    free(sets);
    CHECK_INT(tccl_gpusets_parse("all", 3, &sets, ERR), 7);
    free(sets);
    CHECK_STR(check_err.text, "");
    check_refused("0-3 7-9", "GPUs \"7-9\"");
    check_refused("", "no GPUs are named");
    check_refused(" ; ", "no GPUs are named");
    check_refused("x", "GPUs \"x\"");
}

struct stop {
    long at; /* stop when so many sets are measured; -1: never */
    double fraction;
    int calls;
};

static int progress(void *context, const struct tccl_fill_progress *now)
{
    struct stop *stop = context;
    CHECK(now->fraction >= stop->fraction - 1e-9 && now->fraction <= 1 + 1e-9);
    CHECK(now->done <= now->total && now->kept <= now->done);
    stop->fraction = now->fraction;
    stop->calls++;
    return stop->at >= 0 && now->measured >= stop->at;
}

static struct tccl_profile *open_profile(void)
{
    struct tccl_profile *profile;
    CHECK_OK(tccl_profile_create(cache, backend->machine, "model", backend->model, &profile, ERR));
    return profile;
}

static int fill(long stop_at, int pairs, struct tccl_fill_progress *end)
{
    cleanup_free uint32_t *sets = NULL;
    struct stop stop = {.at = stop_at};
    owned(profile) struct tccl_profile *profile = open_profile();
    struct tccl_fill_options options = {
        .gap = 0.03, .pairs = pairs, .progress = progress, .context = &stop};
    options.n_sets = tccl_gpusets_all(backend->machine->n_gpus, &sets, ERR);
    options.sets = sets;
    int rc = tccl_fill(backend, profile, &options, end, ERR);
    CHECK_STR(check_err.text, "");
    CHECK(stop.calls > 0);
    return rc;
}

struct known {
    struct tccl_set *sets;
    long count;
};

static int collect(void *context, const struct tccl_set *set,
                   const struct tccl_measurement *measured)
{
    struct known *known = context;
    for (long i = 0; i < known->count; i++)
        CHECK(!tccl_set_equal(&known->sets[i], set));
    known->sets = realloc(known->sets, (size_t)(known->count + 1) * sizeof(*known->sets));
    known->sets[known->count++] = *set;
    return 0;
}

static void check_result_of(const struct tccl_result *result, const struct tccl_model *model)
{
    struct tccl_set set = {0};
    double gbps;
    if (result->chain.n_gpus == 0)
        return;
    tccl_chain_set(&result->chain, &set);
    CHECK_INT(tccl_model_measure(model, &set, &gbps, NULL, NULL, NULL), 0);
    CHECK(fabs(gbps - result->gbps) < 1e-9 * gbps && result->bound >= result->gbps);
}

static void check_tables(int expected)
{
    cleanup_free uint32_t *masks = NULL;
    owned(profile) struct tccl_profile *profile = open_profile();
    const struct tccl_model *model = tccl_profile_model(profile, ERR);
    int count = tccl_profile_tables(profile, &masks, ERR);
    CHECK_INT(count, expected);
    for (int i = 0; i < count && model; i++) {
        const struct tccl_table *table = tccl_profile_table(profile, masks[i], ERR);
        CHECK_STR(check_err.text, "");
        for (int j = 0; table && j < tccl_table_pairs(table); j++)
            check_result_of(&table->results[j], model);
        if (table)
            check_result_of(tccl_table_ring(table), model);
    }
}

/* Interrupted again and again, then to the end: each set measured once, none lost. */
TEST(resume)
{
    struct tccl_fill_progress end;
    struct known known = {0};
    long measured = 0;
    int rounds = 0;
    while (fill(1 + rand() % 60, 4, &end) == 1) {
        CHECK_INT(end.known, measured);
        measured += end.measured;
        rounds++;
    }
    CHECK(rounds > 1);
    measured += end.measured;
    CHECK_INT(end.done, 15);
    CHECK_INT(fill(-1, 4, &end), 0);
    CHECK_INT(end.measured, 0);
    CHECK_INT(end.kept, 15);
    CHECK_INT(end.known, measured);
    struct tccl_profile *profile = open_profile();
    CHECK_INT(tccl_profile_sets(profile, collect, &known, NULL, ERR), measured);
    tccl_profile_close(profile);
    free(known.sets);
    check_tables(15);
}

/* A larger order is not answered with the smaller one's tables. */
TEST(more)
{
    struct tccl_fill_progress end;
    CHECK_INT(fill(-1, 0, &end), 0);
    CHECK(end.kept < 15);
    CHECK_INT(end.done, 15);
    CHECK_INT(fill(-1, 0, &end), 0);
    CHECK_INT(end.kept, 15);
    check_tables(15);
}

/* One table can't be written: all others are, and the run says so in the end. */
TEST(fault)
{
    const uint32_t sets[] = {0xf, 0x3, 0x1};
    const struct tccl_fill_options options = {.sets = sets, .n_sets = 3, .gap = 0.03, .pairs = 1};
    struct tccl_fill_progress end;
    check_remove(cache);
    owned(profile) struct tccl_profile *profile = open_profile();
    CHECK_INT(system(check_printf("mkdir -p '%s/chains/0000000f.chains/in the way'",
                                  tccl_profile_folder(profile))),
              0);
    CHECK_SAYS(tccl_fill(backend, profile, &options, &end, ERR) == -1,
               "1 of 3 chain tables could not be written; the first: GPUs 0-3: ");
    CHECK(tccl_profile_table(profile, 0x3, ERR) && tccl_profile_table(profile, 0x1, ERR));
}

SETUP
{
    const struct tccl_backend_options options = {.model = machine_file("amd-4gpu")};
    cache = check_at("cache");
    MUST(tccl_backend_open("model", &options, &backend, ERR));
}

TEARDOWN
{
    tccl_backend_close(backend);
    check_remove(cache);
    check_nothing_left();
}
