/* What steps reach beside each other, foretold by what others reached: profiles measured with and
 * without noise, against the model behind them, which nobody who foretells has seen. Of models some
 * have a limit of which nothing in the description tells. */
#include "base/fields.h"
#include "fill/fill.h"
#include "fill/run-meter.h"
#include "machines.h"
#include "owned.h"
#include "random-model.h"
#include "ring/neighbours.h"
#include "search/foretell.h"
#include "search/oddity.h"

static char cache[64];

/* ---- a run ---- */

/* What became of the combinations, without single transfers that collapse beside each other: pairs,
 * measured or foretold of one that is alike. */
struct count {
    int all, measured, foretold, unknown, wrong, pairs[2], pairs_wrong;
    double most; /* what is foretold is off, at most */
};

struct look {
    const struct tccl_model *model;
    struct tccl_together *seen;
    struct count *count;
    double noise;
};

static int look_at(void *context, const struct tccl_joint *joint)
{
    struct look *look = context;
    const struct tccl_side *sides[TCCL_MAX_SIDES];
    double truth[TCCL_MAX_SIDES], alone[TCCL_MAX_SIDES], most = 0, time = 0;
    const bool told = joint->foretold > 0;
    bool singles = true;
    for (int i = 0; i < joint->n; i++) {
        sides[i] = &joint->sides[i];
        singles = singles && joint->sides[i].count == 1;
    }
    CHECK_INT(tccl_together_add(look->seen, joint), 0);
    look->count->measured += !singles && !(joint->foretold > 0);
    look->count->all -= singles && !told;
    look->count->pairs[told] += singles;
    if (singles && told) { /* a pair is only said to collapse if it does */
        CHECK_INT(tccl_model_sides(look->model, sides, joint->n, truth, ERR), 0);
        for (int i = 0; i < joint->n; i++) {
            CHECK_INT(tccl_model_sides(look->model, &sides[i], 1, &alone[i], ERR), 0);
            time += 1 / alone[i];
        }
        for (int i = 0; i < joint->n; i++)
            most = fmax(most, fabs(joint->gbps[i] / truth[i] - 1));
        look->count->pairs_wrong += !(fmin(truth[0], truth[1]) < TCCL_COLLAPSED / time) ||
                                    most > TCCL_FORETOLD_WITHIN + 2 * look->noise;
    }
    if (singles || !(joint->foretold > 0) || joint->foretold > TCCL_FORETOLD_WITHIN)
        return 0;
    CHECK_INT(tccl_model_sides(look->model, sides, joint->n, truth, ERR), 0);
    for (int i = 0; i < joint->n; i++)
        most = fmax(most, fabs(joint->gbps[i] / truth[i] - 1));
    look->count->most = fmax(look->count->most, most);
    look->count->wrong += most > TCCL_FORETOLD_WITHIN;
    return 0;
}

static void fill(struct tccl_backend *backend, struct tccl_profile *profile, const char *splits,
                 struct count *count)
{
    struct tccl_fill_options what = {.gap = 0.03, .budget = 1000, .pairs = 4};
    cleanup_free struct tccl_split *list = NULL;
    cleanup_free uint32_t *sets = NULL;
    struct tccl_fill_progress end;
    what.n_splits = tccl_splits_parse(splits, backend->machine->n_gpus, &list, ERR);
    what.n_sets = tccl_splits_sets(list, what.n_splits, &sets);
    what.splits = list;
    what.sets = sets;
    CHECK_INT(tccl_fill(backend, profile, &what, &end, ERR), TCCL_FILL_DONE);
    CHECK_INT(tccl_fill_together(backend, profile, &what, &end, ERR), TCCL_FILL_DONE);
    *count = (struct count){.all = end.together_total, .foretold = end.foretold};
    count->unknown = end.together_total - end.together - end.foretold;
    CHECK_INT(tccl_fill_together(backend, profile, &what, &end, ERR), TCCL_FILL_DONE);
    CHECK_INT(end.together, end.together_before); /* nothing is measured twice, */
    CHECK_INT(end.foretold, count->foretold);     /* or foretold otherwise */
}

static struct count run(const char *path, const char *splits, double noise, unsigned long seed)
{
    struct tccl_backend_options options = {.model = path, .noise = noise, .seed = seed};
    struct tccl_backend *backend;
    struct tccl_profile *profile;
    struct tccl_model *model;
    struct count count = {0};
    MUST(tccl_backend_open("noisy", &options, &backend, ERR));
    MUST(tccl_profile_create(cache, backend->machine, "noisy", NULL, &profile, ERR));
    MUST(tccl_model_read(path, &model, ERR));
    fill(backend, profile, splits, &count);
    struct look look = {model, tccl_together_new(), &count, noise};
    CHECK(tccl_profile_joints(profile, look_at, &look, NULL, ERR) >= 0);
    CHECK_INT(tccl_together_by(look.seen, TCCL_BASIS_FORETOLD), count.foretold + count.pairs[1]);
    CHECK_INT(tccl_together_by(tccl_profile_together(profile, ERR), TCCL_BASIS_FORETOLD),
              count.foretold + count.pairs[1]);
    printf(
        "%s, noise %g, seed %lu: of %d %d measured, %d foretold, %d unknown; %d wrong, %.1f %% off "
        "at most; single transfers: %d pairs measured, %d foretold\n",
        tccl_model_machine(model)->name, noise, seed, count.all, count.measured, count.foretold,
        count.unknown, count.wrong, 100 * count.most, count.pairs[0], count.pairs[1]);
    tccl_together_free(look.seen);
    tccl_model_free(model);
    tccl_profile_close(profile);
    tccl_backend_close(backend);
    check_remove(cache);
    return count;
}

static void add(struct count *sum, const struct count *one)
{
    sum->all += one->all;
    sum->measured += one->measured;
    sum->foretold += one->foretold;
    sum->unknown += one->unknown;
    sum->wrong += one->wrong;
    sum->pairs[1] += one->pairs[1];
    sum->pairs_wrong += one->pairs_wrong;
}

/* ---- all machines ---- */

static const struct {
    const char *name, *splits;
} cases[] = {
    {"amd-4gpu", NULL},
    {"intel-4gpu", NULL},
    {"epyc-nps4-4a100", NULL},
    {"dual-8gpu", NULL},
    {"dual-8gpu-unequal", NULL},
    {"quad-8gpu", NULL},
    {"lopsided-8gpu", NULL},
    {"g5-48xlarge", NULL},
    {"h100-8gpu", "0-1/2-3,0-1/4-5,2-3/6-7,0-3/4-7"},
    {"epyc-8gpu", "0-1/2-3,0-1/4-5,2-3/6-7"},
    {"epyc-8gpu-unequal", "0-1/2-3,0-1/4-5,2-3/6-7"},
    {"turin-pex890", NULL},
    {"wrx90-16gpu", "0-1/2-3,0-1/4-5,0-1/8-9,4-5/12-13"},
};

/* The same machine by its description, but for one switch, or for one pair of its GPUs, whose
 * writes do not collapse: no pair is said to that does not (look_at). */
TEST(unlike)
{
    static const char *const without[] = {"posted writes of vs3", "posted writes of vs1"};
    for (size_t i = 0; i < COUNT(without); i++) {
        cleanup_json json_t *json = json_load_file(machine_file("turin-pex890"), 0, NULL);
        json_t *rules = json_object_get(json, "rules");
        char path[128];
        for (size_t k = json_array_size(rules); k-- > 0;)
            if (strncmp(tccl_text_of(json_array_get(rules, k), "name"), without[i],
                        strlen(without[i])) == 0)
                json_array_remove(rules, k);
        snprintf(cache, sizeof(cache), "%s", check_at("unlike"));
        snprintf(path, sizeof(path), "%s.json", cache);
        CHECK_INT(json_dump_file(json, path, 0), 0);
        const struct count count = run(path, "0-1/2-3,0-1/4-5", 0.01 * (double)i, 7 + i);
        CHECK_INT(count.pairs[0] + count.pairs[1], 36 - 8); /* all others are */
        CHECK(count.pairs[1] > 0 && count.pairs_wrong == 0);
        unlink(path);
    }
}

static int stop_in_pairs(void *context, const struct tccl_fill_progress *progress)
{
    int *left = context;
    return progress->phase == TCCL_FILL_PAIRS && (*left)-- <= 0;
}

/* GPUs of one switch collapse less than those that are like them, and runs end before all pairs
 * were measured: what they foretell all the same is right. */
TEST(stopped)
{
    cleanup_json json_t *json = json_load_file(machine_file("turin-pex890"), 0, NULL);
    unsigned long state = check_seed();
    EACH_OF(rule, json_object_get(json, "rules")) {
        if (strncmp(tccl_text_of(rule, "name"), "posted writes of vs2", 20) == 0)
            json_object_set_new(rule, "gbps",
                                json_real(1.5 * json_number_value(json_object_get(rule, "gbps"))));
    }
    snprintf(cache, sizeof(cache), "%s", check_at("stopped"));
    const char *path = check_intern(check_at("stopped.json"));
    CHECK_INT(json_dump_file(json, path, 0), 0);
    struct count sum = {0};
    for (int round = 0; round < 12; round += CHECK_PART) {
        int left = 20 + 20 * round + random_below(&state, 20);
        struct tccl_fill_options what = {.progress = stop_in_pairs, .context = &left};
        struct count count = {0};
        struct look look = {NULL, tccl_together_new(), &count, 0};
        struct tccl_backend *backend;
        struct tccl_profile *profile;
        struct tccl_model *model;
        struct tccl_fill_progress end;
        uint32_t all = 0xff;
        cleanup_free struct tccl_split *splits = NULL;
        MUST(tccl_backend_open("noisy", &(struct tccl_backend_options){.model = path}, &backend,
                               ERR));
        MUST(tccl_profile_create(cache, backend->machine, "noisy", NULL, &profile, ERR));
        MUST(tccl_model_read(path, &model, ERR));
        look.model = model;
        what.n_splits = tccl_splits_parse("0-1/2-3", 8, &splits, ERR);
        what.splits = splits;
        what.sets = &all;
        what.n_sets = 1;
        CHECK(tccl_fill(backend, profile, &what, &end, ERR) >= 0);
        what.progress = NULL;
        CHECK_INT(tccl_fill_together(backend, profile, &what, &end, ERR), TCCL_FILL_DONE);
        CHECK(tccl_profile_joints(profile, look_at, &look, NULL, ERR) >= 0);
        add(&sum, &count);
        tccl_together_free(look.seen);
        tccl_model_free(model);
        tccl_profile_close(profile);
        tccl_backend_close(backend);
        check_remove(cache);
    }
    printf("stopped: %d pairs foretold, %d wrong\n", sum.pairs[1], sum.pairs_wrong);
    CHECK(sum.pairs[1] > 0);
    CHECK_INT(sum.pairs_wrong, 0);
    unlink(path);
}

TEST(machines)
{
    unsigned long state = check_seed();
    struct count sum = {0};
    snprintf(cache, sizeof(cache), "%s", check_at("machines"));
    for (size_t i = state % CHECK_PART; i < COUNT(cases); i += CHECK_PART) {
        double noise = 0.01 * random_below(&state, 6);
        unsigned long seed = 1 + random_below(&state, 1000000);
        for (int times = 0; times < 2; times++, noise = 0) {
            struct count count = run(machine_file(cases[i].name), cases[i].splits, noise, seed);
            add(&sum, &count);
            if (noise == 0)
                CHECK(count.foretold > count.all / 3);
        }
    }
    printf("all: of %d %d measured, %d foretold, %d unknown; %d wrong\n", sum.all, sum.measured,
           sum.foretold, sum.unknown, sum.wrong);
    CHECK(sum.wrong * 50 <= sum.foretold);
    CHECK_INT(sum.pairs_wrong, 0);
}

/* ---- a limit that no description tells of ---- */

/* What GPUs of several jobs share, at random: a resource that some transfers of three GPUs use; or
 * two transfers of different GPUs that collapse. */
static void hide(unsigned long *state, json_t *model, int gpus)
{
    int a = random_below(state, gpus), b = (a + 1 + random_below(state, gpus - 1)) % gpus;
    int c = random_below(state, gpus);
    char users[3][32], name[] = "nobody knows";
    const char *ways[] = {"->", ">", "<"}, *way = ways[random_below(state, 3)];
    double gbps = 4 + random_below(state, 24);
    snprintf(users[0], sizeof(users[0]), "g%d%s*", a, way);
    snprintf(users[1], sizeof(users[1]), "g%d%s*", b, way);
    snprintf(users[2], sizeof(users[2]), "g%d%s*", c, way);
    if (random_below(state, 2)) {
        json_array_append_new(json_object_get(model, "resources"),
                              json_pack("{s:s s:f s:[s s s]}", "name", name, "gbps", gbps, "users",
                                        users[0], users[1], users[2]));
        return;
    }
    if (!json_object_get(model, "rules"))
        json_object_set_new(model, "rules", json_array());
    json_array_append_new(
        json_object_get(model, "rules"),
        json_pack("{s:s s:[s s] s:f}", "name", name, "when", users[0], users[1], "gbps", gbps / 4));
}

TEST(hidden)
{
    static const char *const names[] = {"amd-4gpu", "intel-4gpu", "dual-8gpu", "quad-8gpu",
                                        "turin-pex890"};
    unsigned long state = check_seed();
    struct count sum = {0};
    char path[PATH_MAX];
    snprintf(cache, sizeof(cache), "%s", check_at("hidden"));
    snprintf(path, sizeof(path), "%s", check_at("hidden.json"));
    for (int i = 0; i < 10; i += CHECK_PART) {
        const char *name = names[i % COUNT(names)];
        json_t *model = json_load_file(machine_file(name), 0, NULL);
        CHECK(model != NULL);
        hide(&state, model, machine_of(name)->n_gpus);
        CHECK_INT(json_dump_file(model, path, 0), 0);
        json_decref(model);
        struct count count = run(path, NULL, i % 2 ? 0.01 : 0, 1 + random_below(&state, 1000000));
        add(&sum, &count);
    }
    printf("hidden limits: of %d %d measured, %d foretold, %d unknown; %d wrong\n", sum.all,
           sum.measured, sum.foretold, sum.unknown, sum.wrong);
    CHECK(sum.wrong * 20 <= sum.foretold);
    printf("of %d pairs of single transfers that were foretold to collapse %d are wrong\n",
           sum.pairs[1], sum.pairs_wrong);
    CHECK(sum.pairs_wrong * 2 <= sum.pairs[1]);
}

/* ---- what owners of machines posted ---- */

/* GB/s of all transfers of a set: of the sources, testsuite/machines says which. */
struct posted {
    const char *name, *flows;
    double together;
};
static const struct posted posted[] = {
    {"turin-pex890", "g0>g1", 54.1},
    {"turin-pex890", "g0>g2", 53.8},
    {"turin-pex890", "g0>g1 g2>g3", 108.6},
    {"turin-pex890", "g0>g1 g1>g0 g2>g3 g3>g2", 203.9},
    {"turin-pex890", "g0>g1 g1>g2 g2>g3 g3>g0", 206.6},
    {"turin-pex890", "g0>g4", 37.7},
    {"turin-pex890", "g0>g4 g4>g0", 70},
    {"turin-pex890", "g0>g4 g1>g2", 106.3},
    {"turin-pex890", "g0>g4 g2>g6", 76.4},
    {"turin-pex890", "g0>g4 g1>g5", 40.3},
    {"turin-pex890", "g0>g4 g1>g5 g2>g6 g3>g7", 83.2},
    {"turin-pex890", "g0>g4 g1>g5 g2>g6 g3>g7 g4>g0 g5>g1 g6>g2 g7>g3", 82.2},
    {"turin-pex890", "g4>g0 g6>g1", 51.2},
    {"turin-pex890", "g0>g4 g1>g6", 2.7},
    {"turin-pex890", "g4<g0", 40.1},
    {"turin-pex890", "g4<g0 g6<g2", 44.8},
    {"turin-pex890", "g4<g0 g6<g1", 51.1},
    {"turin-pex890", "g4<g0 g5<g0 g6<g1 g7<g1", 51.3},
    {"wrx90-16gpu", "g0>g4", 52.5},
    {"wrx90-16gpu", "g0>g4 g1>g5", 52.1},
    {"wrx90-16gpu", "g0>g4 g1>g8", 13.5},
    {"wrx90-16gpu", "g0>g4 g1>g8 g2>g12", 12.6},
    {"wrx90-16gpu", "g0>g4 g4>g8 g8>g12 g12>g0", 197.8},
    {"wrx90-16gpu", "g4<g0", 53.4},
    {"wrx90-16gpu", "g4<g0 g5<g1", 53.4},
    {"wrx90-16gpu", "g4<g0 g8<g1", 53.2},
    {"wrx90-16gpu", "g4<g0 g8<g1 g12<g2", 54.3},
    {"wrx90-16gpu", "g0>g1 g1>g2 g2>g3 g3>g4 g4>g5 g5>g6 g6>g7 g7>g0", 401.1},
    {"wrx90-16gpu", "g0>g4 g1>g5 g2>g6 g3>g7 g4>g0 g5>g1 g6>g2 g7>g3", 102},
};

static struct tccl_set flows_of(const struct posted *figure)
{
    struct tccl_set set = {0};
    CHECK_INT(tccl_set_parse(figure->flows, &set, ERR), 0);
    return set;
}

/* What a transfer has alone, by the figure of one that is like it; 0: there is none. */
static double alone_of(const char *name, const struct tccl_symmetry *symmetry,
                       tccl_transfer transfer)
{
    tccl_transfer wanted, found;
    tccl_symmetry_relabel(symmetry, &transfer, 1, &wanted);
    for (size_t i = 0; i < COUNT(posted); i++) {
        const struct tccl_set set = flows_of(&posted[i]);
        if (set.count != 1 || strcmp(posted[i].name, name) != 0)
            continue;
        tccl_symmetry_relabel(symmetry, set.transfers, 1, &found);
        if (found == wanted)
            return posted[i].together;
    }
    return 0;
}

static bool joint_of(const struct posted *figure, const struct tccl_symmetry *symmetry,
                     struct tccl_joint *joint)
{
    const struct tccl_set set = flows_of(figure);
    *joint = (struct tccl_joint){.n = 2};
    for (int i = 0; i < 2 && set.count == 2; i++) {
        joint->sides[i] =
            (struct tccl_side){.rings = 1, .count = 1, .transfers = {set.transfers[i]}};
        joint->sides[i].alone = alone_of(figure->name, symmetry, set.transfers[i]);
        joint->gbps[i] = figure->together / 2;
    }
    return set.count == 2 && tccl_oddity_is_pair(&set);
}

/* By all figures of the machine but that one. Returns what was foretold. */
static enum tccl_foretelling leave_out(const struct posted *out, struct tccl_joint *joint,
                                       double *error)
{
    const struct tccl_machine *machine = machine_of(out->name);
    struct tccl_symmetry *symmetry = tccl_symmetry_of_machine(machine, NULL, 0, ERR);
    struct tccl_foretell *foretell = tccl_foretell_new(machine, symmetry, 0.01);
    for (int pairs = 0; pairs < 2; pairs++)
        for (size_t i = 0; i < COUNT(posted); i++) {
            const struct tccl_set set = flows_of(&posted[i]);
            struct tccl_joint other;
            if (&posted[i] == out || strcmp(posted[i].name, out->name) != 0 ||
                joint_of(&posted[i], symmetry, &other) != pairs)
                continue;
            CHECK_INT(pairs ? tccl_foretell_joint(foretell, &other)
                            : tccl_foretell_set(foretell, &set, posted[i].together / set.count, 1),
                      0);
        }
    joint_of(out, symmetry, joint);
    enum tccl_foretelling result = tccl_foretell_rates(foretell, joint, error);
    tccl_foretell_free(foretell);
    tccl_symmetry_free(symmetry);
    return result;
}

/* Each pair by all that is posted beside it. Few are posted of a kind, so that most would be tried;
 * what is foretold without is as it was posted. */
TEST(posted)
{
    static const char *const names[] = {"foretold", "untried", "unknown", "surprising"};
    int told[COUNT(names)] = {0}, pairs = 0;
    for (size_t i = 0; i < COUNT(posted); i++) {
        const struct tccl_set set = flows_of(&posted[i]);
        struct tccl_joint joint;
        double error;
        if (set.count != 2 || !tccl_oddity_is_pair(&set))
            continue;
        enum tccl_foretelling result = leave_out(&posted[i], &joint, &error);
        double together = joint.gbps[0] + joint.gbps[1];
        printf("%s, %s: posted %.1f, %s (%.1f, off by %.0f %% at most)\n", posted[i].name,
               posted[i].flows, posted[i].together, names[result], together, 100 * error);
        CHECK(result != TCCL_FORETOLD ||
              fabs(together / posted[i].together - 1) < TCCL_FORETOLD_WITHIN);
        pairs++;
        told[result]++;
    }
    printf("of %d posted pairs %d foretold, %d to be tried first, %d unknown, %d of a kind that "
           "surprised\n",
           pairs, told[0], told[1], told[2], told[3]);
    CHECK(pairs == 12 && told[TCCL_SURPRISING] > 0);
}
