/* What steps reach beside each other, by what was measured: against the model that stands behind
 * the measuring back end. Bounds are never above the truth. */
#include "fill/fill.h"
#include "profiles.h"
#include "random-model.h"
#include "report/report.h"
#include "ring/neighbours.h"
#include "rough.h"

OWNED(backend, struct tccl_backend, tccl_backend_close)
OWNED(together, struct tccl_together, tccl_together_free)

enum { ROUNDS = CHECK_ROUNDS(3000), MOST_SIDES = 4 };

/* ---- the store, and bounds ---- */

/* A side over some transfers that two GPUs of its own start; repeats as two rings make them. */
static struct tccl_side random_side(unsigned long *state, const struct tccl_machine *machine,
                                    int first)
{
    struct tccl_side side = {.rings = 1 + random_below(state, 2)};
    int count = 1 + random_below(state, 4);
    for (int i = 0; i < count; i++) {
        struct tccl_device gpu = {TCCL_GPU, (uint8_t)(first + random_below(state, 2))};
        struct tccl_device memory = {TCCL_MEMORY,
                                     (uint8_t)random_below(state, machine->n_memories)};
        side.transfers[side.count++] = tccl_transfer_make(gpu, random_below(state, 2), memory);
        if (side.rings > 1 && random_below(state, 2)) {
            side.transfers[side.count] = side.transfers[side.count - 1];
            side.count++;
        }
    }
    return side;
}

/* The rates of the slowest transfers, and whether a rule caps one of them: bounds don't know of
 * rules between steps. Worked out here. */
static bool truth(const struct tccl_model *model, const struct tccl_side *const *sides, int n,
                  double *slowest)
{
    tccl_transfer members[TCCL_MAX_RUNNING] = {0};
    double rates[TCCL_MAX_RUNNING];
    const char *limits[TCCL_MAX_RUNNING];
    int count = 0, at = 0;
    bool capped = false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < sides[i]->count; k++)
            members[count++] = sides[i]->transfers[k];
    CHECK_INT(tccl_model_rates(model, members, count, rates, limits, NULL), 0);
    for (int i = 0; i < n; i++) {
        slowest[i] = INFINITY;
        for (int k = 0; k < sides[i]->count; k++, at++) {
            slowest[i] = fmin(slowest[i], rates[at]);
            capped = capped || strncmp(limits[at], "rule", 4) == 0;
        }
    }
    return capped;
}

static void add_joint(struct tccl_together *together, const struct tccl_model *model,
                      const struct tccl_side *const *sides, int n)
{
    struct tccl_joint joint = {.n = n};
    truth(model, sides, n, joint.gbps);
    for (int i = 0; i < n; i++)
        joint.sides[i] = *sides[i];
    CHECK_INT(tccl_together_add(together, &joint), 0);
}

/* Three sides beside each other, of which some parts, and more with a fourth, were measured. */
static void check_random(unsigned long *state)
{
    owned(model) struct tccl_model *model = random_model(state, 8, 3, 0);
    const struct tccl_machine *machine = tccl_model_machine(model);
    owned(together) struct tccl_together *together = tccl_together_new();
    struct tccl_side memory[MOST_SIDES];
    const struct tccl_side *sides[MOST_SIDES];
    const struct tccl_rates rates = {.together = together}, nothing = {0};
    double wanted[MOST_SIDES], got[MOST_SIDES], plain[MOST_SIDES];
    enum tccl_basis basis;
    for (int i = 0; i < MOST_SIDES; i++) {
        memory[i] = random_side(state, machine, 2 * i);
        sides[i] = &memory[i];
        truth(model, &sides[i], 1, &wanted[i]);
        memory[i].alone = memory[i].rings * wanted[i];
    }
    bool capped = truth(model, sides, 3, wanted);
    CHECK_INT(tccl_rates_sides(&nothing, sides, 3, plain, &basis, NULL), 0);
    CHECK_INT(basis, TCCL_BASIS_BOUNDS);
    if (random_below(state, 2))
        add_joint(together, model, sides, 2);
    if (random_below(state, 2))
        add_joint(together, model, sides + 1, 2);
    if (random_below(state, 3) == 0)
        add_joint(together, model, sides, 4);
    CHECK(!tccl_together_has(together, sides, 3));
    CHECK_INT(tccl_rates_sides(&rates, sides, 3, got, &basis, NULL), 0);
    /* Single transfers that a rule caps refute the bounds: they collapse. */
    bool collapse = basis == TCCL_BASIS_MEASURED;
    CHECK(collapse ? capped : basis == TCCL_BASIS_BOUNDS);
    for (int i = 0; i < 3; i++) {
        CHECK(got[i] > 0 && (collapse || got[i] >= plain[i] * (1 - 1e-9))); /* more is known */
        CHECK(got[i] <= memory[i].alone * (1 + 1e-9));
        if (!capped)
            CHECK(got[i] <= memory[i].rings * wanted[i] * (1 + 1e-9));
    }
    add_joint(together, model, sides, 3);
    int first = random_below(state, 3);
    sides[0] = &memory[first];
    sides[first] = &memory[0];
    truth(model, sides, 3, wanted);
    CHECK(tccl_together_has(together, sides, 3));
    CHECK_INT(tccl_rates_sides(&rates, sides, 3, got, &basis, NULL), 0);
    CHECK_INT(basis, TCCL_BASIS_MEASURED);
    for (int i = 0; i < 3; i++)
        CHECK(fabs(got[i] - sides[i]->rings * wanted[i]) < 1e-9);
    memory[1].alone = 0; /* of one nothing is known: no bound */
    memory[1].transfers[memory[1].count++] = memory[1].transfers[0];
    CHECK_INT(tccl_rates_sides(&nothing, sides, 3, got, &basis, NULL), 0);
    CHECK(got[0] == 0 && got[1] == 0 && got[2] == 0);
}

/* What is foretold counts where nothing was measured, until it is taken back; no bound is made of
 * it. */
TEST(foretold)
{
    owned(together) struct tccl_together *together = tccl_together_new();
    struct tccl_joint joint = {.n = 2, .gbps = {9, 8}, .foretold = 0.05};
    struct tccl_set set = parse_set("g0>m0 g0<m0 g1>m0 g1<m0 g2>m0 g2<m0");
    struct tccl_side third = {.rings = 1, .alone = 10}, *sides = joint.sides;
    const struct tccl_side *all[] = {&sides[0], &sides[1], &third};
    const struct tccl_rates rates = {.together = together};
    double gbps[3];
    enum tccl_basis basis;
    for (int i = 0; i < set.count; i++) {
        struct tccl_side *side = i < 2 ? &sides[0] : i < 4 ? &sides[1] : &third;
        *side = (struct tccl_side){.rings = 1, .alone = 10, .count = side->count};
        side->transfers[0] = set.transfers[i & ~1];
        side->transfers[side->count++] = set.transfers[i];
    }
    CHECK_INT(tccl_together_add(together, &joint), 0);
    CHECK_INT(tccl_rates_sides(&rates, all, 2, gbps, &basis, ERR), 0);
    CHECK(basis == TCCL_BASIS_FORETOLD && gbps[0] == 9 && gbps[1] == 8);
    CHECK(!tccl_together_has(together, all, 2));
    CHECK_INT(tccl_rates_sides(&rates, all, 3, gbps, &basis, ERR), 0);
    CHECK(basis == TCCL_BASIS_BOUNDS && fabs(gbps[0] - 10. / 3) < 1e-9);
    joint.foretold = 1;
    CHECK_INT(tccl_together_add(together, &joint), 0);
    CHECK_INT(tccl_rates_sides(&rates, all, 2, gbps, &basis, ERR), 0);
    CHECK(basis == TCCL_BASIS_BOUNDS && gbps[0] == 5);
    CHECK_INT(tccl_together_by(together, TCCL_BASIS_FORETOLD), 0);
    joint = (struct tccl_joint){
        .n = 2, .gbps = {7, 6}, .sides = {joint.sides[0], joint.sides[1]}, .foretold = 0};
    CHECK_INT(tccl_together_add(together, &joint), 0);
    joint.foretold = 0.01;
    joint.gbps[0] = 9;
    CHECK_INT(tccl_together_add(together, &joint), 0);
    CHECK_INT(tccl_rates_sides(&rates, all, 2, gbps, &basis, ERR), 0);
    CHECK(basis == TCCL_BASIS_MEASURED && gbps[0] == 7 && gbps[1] == 6);
    CHECK_INT(tccl_together_by(together, TCCL_BASIS_MEASURED), 1);
}

/* ---- splits ---- */

TEST(splits)
{
    static const char *const bad[] = {"0-1",      "0-1/1-2",  "0-1/8",    "",      ",",    "a/b",
                                      "0-1/2-3/", "/0-1/2-3", "0-1//2-3", "0+0/1", "0 / 1"};
    struct tccl_split *splits;
    uint32_t *sets;
    CHECK_INT(tccl_splits_parse(NULL, 4, &splits, NULL), 1 + 4 + 6 + 2 + 1);
    CHECK(splits[0].n == 2 && splits[0].parts[0] == 3 && splits[0].parts[1] == 12);
    CHECK_INT(tccl_splits_sets(splits, 1, &sets), 2);
    free(sets);
    free(splits);
    int count = tccl_splits_parse(NULL, 8, &splits, NULL);
    for (int i = 0; i < count; i++)
        for (int k = 0, seen = 0; k < splits[i].n; k++) {
            CHECK(!(seen & (int)splits[i].parts[k]));
            seen |= (int)splits[i].parts[k];
        }
    CHECK_INT(tccl_splits_sets(splits, count, &sets), 6);
    free(sets);
    free(splits);
    CHECK_INT(tccl_splits_parse("0+3/1-2,0-1/2/3", 4, &splits, ERR), 2);
    CHECK(splits[0].parts[0] == 9 && splits[0].parts[1] == 6 && splits[1].n == 3);
    free(splits);
    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK_SAYS(tccl_splits_parse(bad[i], 8, &splits, ERR) == -1, "--splits");
    }
}

/* ---- measured by a back end ---- */

static const char *cache;
static int stop_at; /* measured together, after which it is stopped; 0: never */
static const struct tccl_split halves[] = {{2, {3, 12}}, {2, {9, 6}}};
static const uint32_t parts[] = {3, 12, 9, 6};

static int progress(void *context, const struct tccl_fill_progress *now)
{
    CHECK(now->together <= now->together_total);
    return stop_at > 0 && now->together >= stop_at;
}

static struct tccl_profile *open_rough(struct tccl_backend *backend)
{
    struct tccl_profile *profile;
    CHECK_INT(tccl_profile_create(cache, backend->machine, "rough", NULL, &profile, NULL), 0);
    CHECK_INT(tccl_profile_claim(profile, backend->conditions, NULL), 0);
    return profile;
}

static int run(struct tccl_fill_progress *end, struct tccl_error *err)
{
    owned(backend) struct tccl_backend *backend = rough_begin();
    owned(profile) struct tccl_profile *profile = open_rough(backend);
    const struct tccl_fill_options chains = {.sets = parts, .n_sets = 4, .gap = 0.01};
    const struct tccl_fill_options options = {
        .splits = halves, .n_splits = 2, .progress = progress};
    *err = (struct tccl_error){""};
    int rc = tccl_fill(backend, profile, &chains, end, err);
    if (rc == TCCL_FILL_DONE)
        rc = tccl_fill_together(backend, profile, &options, end, err);
    return rc;
}

struct lines {
    int n;
    const struct tccl_model *model;
    struct tccl_together *seen;
};

/* Each line is what the model says, or near it where it was foretold, and no two are the same. */
static int check_line(void *context, const struct tccl_joint *joint)
{
    struct lines *lines = context;
    const struct tccl_side *sides[TCCL_MAX_SIDES];
    double wanted[TCCL_MAX_SIDES];
    for (int i = 0; i < joint->n; i++)
        sides[i] = &joint->sides[i];
    truth(lines->model, sides, joint->n, wanted);
    for (int i = 0; i < joint->n; i++)
        CHECK(fabs(joint->gbps[i] / wanted[i] - 1) <
              (joint->foretold > 0 ? TCCL_FORETOLD_WITHIN : 1e-9));
    CHECK(!tccl_together_has(lines->seen, sides, joint->n));
    CHECK_INT(tccl_together_add(lines->seen, joint), 0);
    lines->n++;
    return 0;
}

static int check_lines(struct tccl_profile *profile, const struct tccl_model *model)
{
    struct lines lines = {.model = model, .seen = tccl_together_new()};
    CHECK_INT((int)tccl_profile_joints(profile, check_line, &lines, NULL, ERR), lines.n);
    CHECK_STR(check_err.text, "");
    tccl_together_free(lines.seen);
    return lines.n;
}

/* Stopped after some, tried in vain, and gone on with: nothing is lost, nothing measured twice. */
static void check_stops(void)
{
    struct tccl_fill_progress end;
    stop_at = 5;
    CHECK_INT(run(&end, ERR), TCCL_FILL_STOPPED);
    CHECK(end.together == 5 && end.together_total > 20);
    stop_at = 0;
    rough.bad = "";
    CHECK_INT(run(&end, ERR), -1); /* nothing works */
    CHECK_HOLDS(check_err.text, "in a row");
    rough.bad = "g0>m0"; /* some don't */
    CHECK_INT(run(&end, ERR), TCCL_FILL_DONE);
    CHECK(end.together > 5 && end.together <= end.together_total);
    CHECK(end.failed > 0 && strstr(end.why.text, "g0>m0")); /* though the last ones worked */
    rough.bad = NULL;
    CHECK_INT(run(&end, ERR), TCCL_FILL_DONE);
    CHECK_INT(end.together + end.foretold, end.together_total);
    CHECK(end.foretold > end.together_total / 4);
    long calls = rough.calls;
    CHECK_INT(run(&end, ERR), TCCL_FILL_DONE);
    CHECK(end.together_before == end.together && end.measured == 0);
    CHECK_INT(end.together + end.foretold, end.together_total);
    CHECK(rough.calls <= calls);
}

static bool near(double a, double b, double off)
{
    return fabs(a - b) <= off * b + 1e-6;
}

/* A ring of a profile without a model, beside one on the other GPUs: what the model says of it, or
 * near it where it was foretold. basis BOUNDS: if nothing was measured together. */
static void check_class(struct tccl_profile *profile, const struct tccl_model *model, uint32_t gpus,
                        uint32_t others, enum tccl_basis basis)
{
    const double off = basis == TCCL_BASIS_BOUNDS ? 0 : TCCL_FORETOLD_WITHIN;
    const struct tccl_table *table = tccl_profile_table(profile, others, NULL);
    struct tccl_side side = {0}, own = {0};
    const struct tccl_side *sides[] = {&own, &side};
    double wanted[2];
    CHECK_INT(tccl_side_add_chain(&side, &tccl_table_ring(table)->chain), 0);
    side.alone = tccl_table_ring(table)->gbps;
    struct tccl_beside beside = {
        .machine = tccl_profile_machine(profile),
        .together = basis == TCCL_BASIS_BOUNDS ? NULL : tccl_profile_together(profile, NULL),
        .n = 1,
        .others = {&side},
        .alone = {side.alone}};
    table = tccl_profile_table(profile, gpus, NULL);
    cleanup_class struct tccl_node_class *class =
        tccl_beside_class(&beside, table, true, false, NULL);
    const struct tccl_seen *ring = class ? tccl_class_ring(class) : NULL;
    CHECK(ring && ring->set.rings[0].n_gpus);
    CHECK(ring->basis == basis || (off > 0 && ring->basis == TCCL_BASIS_FORETOLD));
    CHECK_INT(tccl_side_add_chain(&own, &ring->set.rings[0]), 0);
    truth(model, sides, 2, wanted);
    CHECK(ring->gbps <= wanted[0] * (1 + off) + 1e-9 && ring->gbps > 0);
    CHECK(ring->share * side.alone <= wanted[1] * (1 + off) + 1e-9);
    if (basis != TCCL_BASIS_BOUNDS)
        CHECK(near(ring->gbps, fmin(wanted[0], ring->alone),
                   ring->basis == TCCL_BASIS_MEASURED ? 0 : off));
    double nccl = class->baselines[TCCL_NEWEST].gbps[1];
    CHECK(nccl > 0 && nccl <= table->baselines[1][TCCL_NEWEST].gbps + 1e-9);
    /* With all that is known, about what a model would have answered. */
    beside.model = basis == TCCL_BASIS_BOUNDS ? NULL : model;
    if (beside.model) {
        cleanup_class struct tccl_node_class *by_model =
            tccl_beside_class(&beside, table, true, false, NULL);
        CHECK(by_model && tccl_class_ring(by_model)->basis == TCCL_BASIS_MODEL);
        CHECK(near(nccl, by_model->baselines[TCCL_NEWEST].gbps[1], off));
        CHECK(near(wanted[0], tccl_class_ring(by_model)->gbps, 2 * off));
    }
}

/* A changed byte is seen, a torn line dropped, and a file that is gone is nothing measured. */
static void check_file(struct tccl_profile *profile)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/together.jsonl", tccl_profile_folder(profile));
    int n = tccl_together_count(tccl_profile_together(profile, NULL));
    bool stale;
    CHECK(n > 20);
    CHECK_INT(tccl_together_count(tccl_profile_together_read(profile, &stale)), n);
    CHECK(!stale);
    FILE *file = fopen(path, "a");
    CHECK(file && fputs("{\"sides\":[\"g0>", file) >= 0 && fclose(file) == 0);
    const struct tccl_together *together = tccl_profile_together_read(profile, &stale);
    CHECK(stale && tccl_together_count(together) == n); /* as it was */
    together = tccl_profile_together(profile, ERR);
    CHECK_INT(tccl_together_count(together), n);
    tccl_profile_together_read(profile, &stale);
    CHECK(!stale);
    file = fopen(path, "r+");
    CHECK(file && fseek(file, 12, SEEK_SET) == 0 && fputc('?', file) == '?' && fclose(file) == 0);
    CHECK_SAYS(!tccl_profile_together(profile, ERR), "together.jsonl:1: checksum does not match");
    CHECK_INT(truncate(path, (8 << 20) + 1), 0); /* tccld would read it while steps wait */
    CHECK_SAYS(!tccl_profile_together(profile, ERR),
               "together.jsonl: has 8388609 bytes, more than 8388608");
    CHECK_INT(unlink(path), 0);
    CHECK(!tccl_profile_together_read(profile, &stale) && stale);
    CHECK(!tccl_profile_together(profile, ERR));
    CHECK_STR(check_err.text, "");
}

/* One result more than a profile has room for, as earlier versions could leave: the others count,
 * and no run adds to them. */
static void check_full(struct tccl_profile *profile)
{
    struct tccl_joint joint = {.n = 2, .gbps = {1, 2}};
    struct tccl_set set = parse_set("g0>m0 g0>m1 g0>m2 g0>m3 g0<m0 g0<m1 g0<m2 g0<m3 g1>m0 g1>m1 "
                                    "g1>m2 g1>m3 g1<m0 g2>m0");
    joint.sides[1] =
        (struct tccl_side){.rings = 1, .count = 1, .transfers = {set.transfers[set.count - 1]}};
    for (int i = 1; i <= TCCL_MAX_JOINTS + 1; i++) {
        joint.sides[0] = (struct tccl_side){.rings = 1};
        for (int bit = 0; bit < set.count - 1; bit++)
            if (i >> bit & 1)
                joint.sides[0].transfers[joint.sides[0].count++] = set.transfers[bit];
        CHECK_OK(tccl_profile_append_joint(profile, &joint, ERR));
    }
    CHECK_INT(tccl_together_count(tccl_profile_together(profile, ERR)), TCCL_MAX_JOINTS);
    CHECK_STR(check_err.text, "");
}

static int count_line(void *context, const struct tccl_joint *joint)
{
    return 0;
}

static void check_full_run(void)
{
    struct tccl_fill_progress end;
    CHECK_SAYS(run(&end, ERR) == -1, "room for 4096 results");
    owned(backend) struct tccl_backend *backend = rough_begin();
    owned(profile) struct tccl_profile *profile = open_rough(backend);
    CHECK_INT((int)tccl_profile_joints(profile, count_line, NULL, NULL, NULL), TCCL_MAX_JOINTS + 1);
}

static void check_measured(const char *name)
{
    const struct tccl_model *model = load_machine(name);
    cache = check_at("%s", name);
    rough = (struct rough){.machine = name};
    check_stops();
    struct tccl_backend *backend = rough_begin();
    struct tccl_profile *profile = open_rough(backend);
    CHECK_INT(check_lines(profile, model),
              tccl_together_count(tccl_profile_together(profile, NULL)));
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            check_class(profile, model, halves[i].parts[k], halves[i].parts[!k],
                        TCCL_BASIS_MEASURED);
            check_class(profile, model, halves[i].parts[k], halves[i].parts[!k], TCCL_BASIS_BOUNDS);
        }
    check_file(profile);
    check_full(profile);
    tccl_profile_close(profile);
    tccl_backend_close(backend);
    check_full_run();
    check_remove(cache);
}

/* ---- transfers that collapse ---- */

/* All pairs of GPUs, and each beside each other one. */
enum { PAIRS = 28 };

static uint32_t pairs_of[PAIRS];
static struct tccl_split apart[2 * PAIRS * PAIRS];

static int list_apart(void)
{
    int n = 0, splits = 0;
    for (int a = 0; a < 8; a++)
        for (int b = a + 1; b < 8; b++)
            pairs_of[n++] = 1u << a | 1u << b;
    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; k < PAIRS; k++)
            if (!(pairs_of[i] & pairs_of[k]))
                apart[splits++] = (struct tccl_split){2, {pairs_of[i], pairs_of[k]}};
    return splits;
}

static double rate_of(const struct tccl_model *model, const char *text)
{
    struct tccl_set set = parse_set(text);
    double gbps = 0;
    CHECK_INT(tccl_model_measure(model, &set, &gbps, NULL, NULL, ERR), 0);
    return gbps;
}

/* Each pair of writes of different GPUs, tried: which of them has less than half of what sharing
 * leaves it; the profile knows these, and no other, as it is but for the noise: measured, or
 * foretold of one that is alike. Returns how many; *measured: of these. */
static int check_pairs(const struct tccl_model *model, const struct tccl_together *together,
                       double noise, int *measured)
{
    const struct tccl_rates rates = {.together = together};
    int found = 0;
    *measured = 0;
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < 8; b++)
            for (int c = a + 1; c < 8; c++)
                for (int d = 0; d < 8; d++) {
                    char one[16], other[16], both[32];
                    struct tccl_side first = {.rings = 1, .count = 1}, second = first;
                    const struct tccl_side *sides[] = {&first, &second};
                    if (a == b || c == d || a == d || b == c || b == d)
                        continue;
                    snprintf(one, sizeof(one), "g%d>g%d", a, b);
                    snprintf(other, sizeof(other), "g%d>g%d", c, d);
                    snprintf(both, sizeof(both), "%s %s", one, other);
                    bool collapses = rate_of(model, both) <
                                     0.5 / (1 / rate_of(model, one) + 1 / rate_of(model, other));
                    struct tccl_set set = parse_set(both);
                    first.transfers[0] = set.transfers[0];
                    second.transfers[0] = set.transfers[1];
                    enum tccl_basis basis;
                    double gbps[2], true_gbps = rate_of(model, both);
                    CHECK_INT(tccl_rates_sides(&rates, sides, 2, gbps, &basis, ERR), 0);
                    CHECK((basis == TCCL_BASIS_MEASURED || basis == TCCL_BASIS_FORETOLD) ==
                          collapses);
                    CHECK(!collapses || fabs(fmin(gbps[0], gbps[1]) / true_gbps - 1) <=
                                            TCCL_FORETOLD_WITHIN + 2 * noise);
                    CHECK(tccl_together_has(together, sides, 2) == (basis == TCCL_BASIS_MEASURED));
                    *measured += basis == TCCL_BASIS_MEASURED;
                    found += collapses;
                }
    return found;
}

/* By the model: what each has of what it has alone, the least of the two. */
static double least_share(const struct tccl_model *model, const struct tccl_side *a,
                          const struct tccl_side *b)
{
    const struct tccl_side *sides[] = {a, b};
    double gbps[2];
    CHECK_INT(tccl_model_sides(model, sides, 2, gbps, ERR), 0);
    return fmin(gbps[0] / side_gbps(model, a), gbps[1] / side_gbps(model, b));
}

static struct tccl_side own_side(struct tccl_profile *profile, uint32_t gpus)
{
    const struct tccl_baseline *own =
        &tccl_profile_table(profile, gpus, ERR)->baselines[1][TCCL_NEWEST];
    struct tccl_side side = {.alone = own->gbps};
    CHECK_INT(tccl_ring_set_side(&own->set, &side), 0);
    return side;
}

/* Who runs already has NCCL's own; the other one begins beside it. */
static void check_begins(struct tccl_profile *profile, const struct tccl_model *model, bool known,
                         const struct tccl_split *split, double least[2])
{
    struct tccl_side first = own_side(profile, split->parts[0]),
                     own = own_side(profile, split->parts[1]);
    struct tccl_beside beside = {.machine = tccl_profile_machine(profile),
                                 .together = known ? tccl_profile_together(profile, NULL) : NULL,
                                 .n = 1,
                                 .others = {&first},
                                 .alone = {first.alone}};
    struct tccl_launched begun;
    const struct tccl_table *table = tccl_profile_table(profile, split->parts[1], ERR);
    CHECK_INT(tccl_launch_choose(&beside, table, 8, &begun, ERR), 0);
    least[0] = fmin(least[0], least_share(model, &first, &own));
    least[1] = fmin(least[1], least_share(model, &first, &begun.side));
}

static void check_collapse(double noise)
{
    const struct tccl_model *model = load_machine("turin-pex890");
    int measured;
    double least[] = {1, 1}, blind[] = {1, 1};
    struct tccl_fill_progress end;
    int n = list_apart();
    cache = check_at("turin");
    rough = (struct rough){.machine = "turin-pex890", .noise = noise};
    owned(backend) struct tccl_backend *backend = rough_begin();
    owned(profile) struct tccl_profile *profile = open_rough(backend);
    const struct tccl_fill_options options = {.sets = pairs_of,
                                              .n_sets = PAIRS,
                                              .gap = 0.03,
                                              .splits = apart, /* of which none is measured, but
                                                                * what collapses */
                                              .n_splits = 0};
    CHECK_INT(tccl_fill(backend, profile, &options, &end, ERR), TCCL_FILL_DONE);
    CHECK_INT(tccl_fill_together(backend, profile, &options, &end, ERR), TCCL_FILL_DONE);
    long calls = rough.calls;
    CHECK_INT(end.together, end.together_total);
    CHECK_INT(check_pairs(model, tccl_profile_together(profile, NULL), noise, &measured), 32);
    printf("of 32 pairs that collapse %d were measured\n", measured);
    CHECK(measured <= 12);
    for (int i = 0; i < n; i++) {
        check_begins(profile, model, true, &apart[i], least);
        check_begins(profile, model, false, &apart[i], blind);
    }
    printf("turin-pex890, noise %g: %d steps of two GPUs beside another's: least share %.3f with "
           "NCCL's own, %.3f with ours, %.3f with ours where no pairs were measured\n",
           noise, n, least[0], least[1], blind[1]);
    CHECK(least[0] < 0.1 && least[1] > 0.25);
    CHECK_INT(tccl_fill(backend, profile, &options, &end, ERR), TCCL_FILL_DONE);
    CHECK_INT(tccl_fill_together(backend, profile, &options, &end, ERR), TCCL_FILL_DONE);
    CHECK_INT(rough.calls, calls); /* nothing is measured twice */
    check_remove(cache);
}

TEST(collapse)
{
    check_collapse(0);
    check_collapse(0.03);
}

/* A transfer that is slow unless another one runs: the run says so, and so does a report of the
 * profile, whoever reads it later. */
TEST(faster)
{
    static const uint32_t sets[] = {0x11, 0x06, 0x17};
    struct tccl_fill_progress end;
    struct tccl_report report;
    cache = check_at("faster");
    rough = (struct rough){
        .machine = "turin-pex890", .noise = 0.01, .slow = "g0>g4", .company = "g1>g2"};
    owned(backend) struct tccl_backend *backend = rough_begin();
    const struct tccl_fill_options options = {
        .sets = sets, .n_sets = 3, .gap = 0.03, .splits = apart};
    for (int run = 0; run < 2; run++) {
        owned(profile) struct tccl_profile *profile = open_rough(backend);
        CHECK_INT(tccl_fill(backend, profile, &options, &end, ERR), TCCL_FILL_DONE);
        CHECK(end.faster >= 1);
        CHECK_HOLDS(end.most.text, "g0>g4 reaches 1");
        CHECK_HOLDS(end.most.text, "with g1>g2 beside it");
        CHECK_INT(tccl_report_make(profile, 0.9, &report, ERR), 0);
        CHECK_INT(report.n_faster, end.faster);
        CHECK(fabs(report.faster[0].part_gbps / 19.15 - 1) < 0.05);
        CHECK(fabs(report.faster[0].whole_gbps / 38.3 - 1) < 0.05);
        tccl_report_free(&report);
    }
    rough.slow = NULL;
    check_remove(cache);
}

TEST(random)
{
    unsigned long state = check_seed();
    for (int i = 0; i < ROUNDS; i++)
        check_random(&state);
}

TEST(measured)
{
    check_measured("amd-4gpu");
    check_measured("intel-4gpu");
}
