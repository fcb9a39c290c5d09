/* What runs on a node, and a step seen beside it: the class that alongside_see gives is the one
 * that the neighbour's own transfers make, whether that is a ring of ours, or NCCL's own because
 * the step has no plan, or because its NCCL has not built the ring. A tccld that is started again
 * knows the same. */
#include <event2/event.h>

#include "base/clock.h"
#include "base/fileio.h"
#include "base/lines.h"
#include "chain/beside-text.h"
#include "profiles.h"
#include "ring/reach.h"
#include "tccld/join/alongside.h"
#include "tccld/join/planfile.h"
#include "tccld/join/running.h"
#include "tccld/join/step-outcome.h"
#include "tccld/main/daemon.h"

OWNED(groups, struct tccl_groups, tccl_groups_free)
OWNED(merge, struct merge, merge_free)
OWNED(shared_class, struct shared_class, shared_class_drop)

enum { FIRST = 9, SECOND = 6, PAIRS = 2, SETS = 4 }; /* GPUs 0 and 3; 1 and 2; 1; 2 */

static const uint32_t masks[SETS] = {FIRST, SECOND, 2, 4};
static const struct tccl_step_key first_key = {.cluster = "c", .job = 1},
                                  second_key = {.cluster = "c", .job = 2},
                                  third_key = {.cluster = "c", .job = 3};
static char folder[PATH_MAX];
static struct tccl_conf conf;
static struct daemon daemon_ = {.conf = &conf};
static const struct tccl_model *model;
static struct tccl_table *tables[SETS];

/* Our own process is as good as a slurmstepd. */
static void begin(const struct tccl_step *join)
{
    char stepd[STEPD_TEXT];
    stepd_name(getpid(), stepd);
    CHECK(running_begin(daemon_.running, join, stepd) != NULL);
}

static struct running_step *find(const struct tccl_step_key *key)
{
    struct running_step *step = running_find(daemon_.running, key);
    CHECK(step != NULL);
    return step;
}

static void end(const struct tccl_step_key *key)
{
    struct running_step *step = find(key);
    planfile_remove(conf.run_dir, key, NULL);
    CHECK_INT(access(check_printf("%.200s/%s", folder, step->folder), F_OK), -1);
    running_end(daemon_.running, step);
}

/* In place of slurm-gpus.c: no slurmd, so GPUs are counted. */
int slurm_gpus_get(const struct slurm_gpus *gpus, const struct tccl_gres **list,
                   struct tccl_error *err)
{
    tccl_fail(err, "no slurmd");
    return 1;
}

static void make_own_profile(void)
{
    owned(profile) struct tccl_profile *profile = NULL;
    model = load_machine("amd-4gpu");
    const struct tccl_machine *machine = tccl_model_machine(model);
    cleanup_json json_t *json = tccl_read_json(machine_file("amd-4gpu"), 1 << 20, ERR);
    cleanup_json json_t *description = tccl_machine_to_json(machine);
    snprintf(conf.machine, sizeof(conf.machine), "%.200s/machine.json", folder);
    snprintf(conf.cache_dir, sizeof(conf.cache_dir), "%.200s", folder);
    snprintf(conf.run_dir, sizeof(conf.run_dir), "%.200s", folder);
    CHECK_OK(tccl_write_json(conf.machine, 0644, description, ERR));
    CHECK_OK(tccl_profile_create(folder, machine, "model", json, &profile, ERR));
    for (int i = 0; i < SETS; i++) {
        tables[i] = table_of(model, masks[i], false, &(struct tccl_search_options){.others = 150});
        for (int k = 0; k < TCCL_GENERATIONS; k++) /* so slow that ours are worth it */
            tables[i]->baselines[1][k].gbps /= 2;
        tccl_table_ends(tables[i], model);
        strcpy(tables[i]->source, "model");
        strcpy(tables[i]->machine, tccl_profile_id(profile));
        CHECK_OK(tccl_profile_put(profile, tables[i], ERR));
    }
}

static struct tccl_step join_of(struct tccl_step_key key, uint32_t gpus)
{
    static char *names[] = {"n1"};
    struct tccl_step join = {.key = key, .n_nodes = 1, .nodes = names, .mode = TCCL_MODE_ON};
    for (int i = 0; i < 4; i++)
        if (gpus >> i & 1)
            join.gres[join.n_gres++] = i;
    return join;
}

static struct shared_class *class_of(const struct tccl_step *join)
{
    struct shared_class *class =
        own_class(daemon_.own, &conf, NULL, join->gres, join->n_gres, false, ERR);
    CHECK_STR(check_err.text, "");
    return class;
}

/* The first step gets its ring, as tccld gives one. */
static void give_ring(const struct tccl_step *join, struct shared_class *class)
{
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {0};
    owned(merge) struct merge *merge = merge_new(0);
    CHECK_INT(merge_add(merge, class, 1, NULL), 0);
    outcome_solve(&outcome, merge, join, TCCL_CHAIN_RINGS);
    CHECK_INT(outcome.state, TCCL_STATE_PLANNED);
    alongside_plan(daemon_.running, find(&join->key), &outcome, join, class->class);
    running_save_soon(daemon_.running, find(&join->key));
}

/* One neighbour, which has these transfers, and as much alone. */
static void check_named(const char *text, const struct tccl_side *side, double alone)
{
    static struct tccl_neighbour list[TCCL_MAX_BESIDE];
    struct tccl_side named = {0};
    CHECK_INT(tccl_beside_parse(text ? text : "", list, NULL), 1);
    CHECK(fabs(list[0].alone - alone) < 0.01 && list[0].gbps == list[0].alone);
    for (int i = 0; i < list[0].rings.n; i++) {
        struct tccl_chain chain;
        char one[TCCL_CHAIN_TEXT];
        tccl_named_format(&list[0].rings.chains[i], one);
        CHECK_INT(tccl_chain_parse(one, tccl_model_machine(model), &chain, NULL), 0);
        CHECK_INT(tccl_side_add_chain(&named, &chain), 0);
    }
    for (int i = 0; i < side->count; i++) { /* equal chains are named once */
        bool there = false;
        for (int k = 0; k < named.count; k++)
            there |= named.transfers[k] == side->transfers[i];
        CHECK(there);
    }
}

/* The second step is seen beside this side. */
static void check_beside(const struct tccl_side *first, double alone)
{
    struct tccl_step join = join_of(second_key, SECOND);
    struct tccl_beside beside = {.model = model, .n = 1, .others = {first}, .alone = {alone}};
    cleanup_class struct tccl_node_class *wanted =
        tccl_beside_class(&beside, tables[1], true, false, ERR);
    owned(shared_class) struct shared_class *got =
        alongside_see(daemon_.running, &second_key, class_of(&join), true, false);
    CHECK_STR(check_err.text, "");
    CHECK_INT(got->class->neighbours, 1);
    check_named(got->class->beside, first, alone);
    wanted->beside = strdup(got->class->beside ? got->class->beside : "");
    CHECK(tccl_node_class_equal(got->class, wanted));
}

static void check_beside_nccl(int generation)
{
    const struct tccl_baseline *own = &tables[0]->baselines[1][generation];
    struct tccl_side side = {0};
    CHECK_INT(tccl_ring_set_side(&own->set, &side), 0);
    check_beside(&side, own->gbps);
}

static void check_beside_ring(void)
{
    struct tccl_side side = {0};
    CHECK_INT(tccl_side_add_chain(&side, &tccl_table_ring(tables[0])->chain), 0);
    check_beside(&side, tccl_table_ring(tables[0])->gbps);
}

/* tccld ends, and is started again. */
static void start_again(void)
{
    running_free(daemon_.running);
    daemon_.running = running_new(&daemon_);
}

static json_t *read_record(const struct tccl_step_key *key)
{
    char name[TCCL_KEY_TEXT];
    tccl_key_folder(key, name);
    return planfile_read_record(folder, name);
}

static void write_record(const struct tccl_step_key *key, const json_t *record)
{
    char name[TCCL_KEY_TEXT];
    cleanup_free char *text = json_dumps(record, 0);
    tccl_key_folder(key, name);
    CHECK_OK(planfile_record(folder, name, text, ERR));
}

TEST(life)
{
    struct tccl_step join = join_of(first_key, FIRST);
    owned(shared_class) struct shared_class *class = class_of(&join);
    begin(&join);
    check_beside_nccl(TCCL_NEWEST);
    give_ring(&join, class);
    check_beside_ring();
    running_built(daemon_.running, find(&first_key), 0, 22105);
    check_beside_nccl(TCCL_NCCL_2_21);
    start_again();
    check_beside_nccl(TCCL_NCCL_2_21);
    running_built(daemon_.running, find(&first_key), TCCL_CHAIN_RINGS, 22907);
    check_beside_ring();
    end(&first_key);
    join = join_of(second_key, SECOND);
    owned(shared_class) struct shared_class *alone =
        alongside_see(daemon_.running, &second_key, class_of(&join), true, 0);
    CHECK_INT(alone->class->neighbours, 0);
}

/* Behind a plan, which stays for the step's processes when something changes. */
TEST(behind_plan)
{
    static const char plan[] = "tccl-plan 1\nword x\nend\n";
    struct tccl_step join = join_of(first_key, FIRST);
    owned(shared_class) struct shared_class *class = class_of(&join);
    begin(&join);
    give_ring(&join, class);
    cleanup_free char *record = running_text(find(&first_key)), *file = NULL, *whole = NULL;
    const char *step = find(&first_key)->folder;
    char at[PATH_MAX];
    size_t size;
    snprintf(at, sizeof(at), "%.200s/%s/plan", folder, step);
    CHECK(asprintf(&whole, "%s%s", plan, record) > 0);
    running_save(daemon_.running, find(&first_key));
    running_free(daemon_.running);
    CHECK_OK(tccl_write_file(at, 0600, whole, strlen(whole), ERR));
    daemon_.running = running_new(&daemon_);
    check_beside_ring();
    running_built(daemon_.running, find(&first_key), 0, 22105);
    start_again(); /* which writes it down */
    check_beside_nccl(TCCL_NCCL_2_21);
    CHECK_OK(tccl_read_file(at, 65536, &file, &size, ERR));
    CHECK(file && strncmp(file, plan, strlen(plan)) == 0 && file[strlen(plan)] == '{');
    end(&first_key);
}

/* The record of a step that is left to NCCL says what NCCL's own have while nobody else runs. */
TEST(left_to_nccl)
{
    struct tccl_step join = join_of(first_key, FIRST), second = join_of(second_key, SECOND);
    const struct tccl_baseline *own = &tables[1]->baselines[1][TCCL_NEWEST];
    double alone = own->gbps * 2 / (1 + own->ends / 100.0); /* of two GPUs (test-reach.c) */
    begin(&join);
    owned(shared_class) struct shared_class *class =
        alongside_see(daemon_.running, &second_key, class_of(&second), true, false);
    struct tccl_outcome outcome = {
        .state = TCCL_STATE_LEFT, .neighbours = 1, .baseline_gbps = alone / 2};
    alongside_describe(daemon_.running, &second, class->class, &outcome);
    CHECK(alone > 0 && fabs(outcome.alone_gbps - alone) < 1e-9 && !outcome.beside);
    second.n_nodes = 2; /* other nodes count, too */
    outcome.alone_gbps = 0;
    alongside_describe(daemon_.running, &second, class->class, &outcome);
    CHECK(outcome.alone_gbps == 0);
    second.n_nodes = 1;
    outcome.neighbours = 0;
    alongside_describe(daemon_.running, &second, class->class, &outcome);
    CHECK(outcome.alone_gbps == 0);
    outcome.state = TCCL_STATE_FAILED;
    outcome.neighbours = 1;
    alongside_describe(daemon_.running, &second, class->class, &outcome);
    CHECK(outcome.alone_gbps == 0);
    end(&first_key);
}

/* A step of one GPU has no ring, and is nobody's neighbour. */
TEST(one)
{
    struct tccl_step join = join_of(first_key, FIRST & 1), second = join_of(second_key, SECOND);
    begin(&join);
    owned(shared_class) struct shared_class *got =
        alongside_see(daemon_.running, &second_key, class_of(&second), true, false);
    CHECK_INT(got->class->neighbours, 0);
    end(&first_key);
}

/* A step of one GPU, which has no rings, and is named nowhere, came after one with a ring: that is
 * still on record as a ring, not as NCCL's own. */
TEST(one_between)
{
    static struct tccl_neighbour list[TCCL_MAX_BESIDE];
    struct tccl_step join = join_of(first_key, FIRST), single = join_of(third_key, 4),
                     second = join_of(second_key, 2);
    owned(shared_class) struct shared_class *class = class_of(&join);
    begin(&join);
    give_ring(&join, class);
    begin(&single);
    owned(shared_class) struct shared_class *got =
        alongside_see(daemon_.running, &second_key, class_of(&second), false, false);
    CHECK_INT(got->class->neighbours, 1);
    CHECK_INT(tccl_beside_parse(got->class->beside ? got->class->beside : "", list, NULL), 1);
    CHECK(!list[0].nccl && list[0].rings.n == 1);
    end(&first_key);
    end(&third_key);
}

/* A shell on the same GPUs (--overlap), or on one of them, which came later: the ring counts. */
TEST(shell)
{
    static const uint32_t shells[] = {FIRST, 1};
    struct tccl_step join = join_of(first_key, FIRST);
    owned(shared_class) struct shared_class *class = class_of(&join);
    begin(&join);
    give_ring(&join, class);
    for (int i = 0; i < 2; i++) {
        struct tccl_step shell = join_of(third_key, shells[i]);
        begin(&shell);
        check_beside_ring();
        end(&third_key);
    }
    end(&first_key);
}

/* Of two rings NCCL has built the first one (it had no channels for more): that runs, by itself. */
TEST(fewer)
{
    static const char two[] = "0 -m0> 3 -m0> 0 | 0 -m2> 3 -m2> 0";
    const struct tccl_rates rates = {.model = model};
    struct tccl_step join = join_of(first_key, FIRST);
    struct tccl_ring_set set;
    struct tccl_side sides[2] = {0};
    enum tccl_basis basis;
    double alone[2];
    begin(&join);
    running_free(daemon_.running);
    CHECK_OK(tccl_ring_set_parse(two, tccl_model_machine(model), &set, ERR));
    for (int i = 0; i < 2; i++) {
        const struct tccl_side *side = &sides[i];
        set.n = 2 - i;
        tccl_ring_set_side(&set, &sides[i]);
        CHECK_OK(tccl_rates_sides(&rates, &side, 1, &alone[i], &basis, ERR));
    }
    cleanup_json json_t *record = read_record(&first_key);
    json_object_update_new(record, json_pack("{s:s, s:f}", "rings", two, "alone_gbps", alone[0]));
    write_record(&first_key, record);
    daemon_.running = running_new(&daemon_);
    check_beside(&sides[0], alone[0]);
    running_built(daemon_.running, find(&first_key), 1, 22907);
    CHECK(alone[1] < 0.95 * alone[0]);
    check_beside(&sides[1], alone[1]);
    start_again();
    check_beside(&sides[1], alone[1]);
    running_built(daemon_.running, find(&first_key), TCCL_CHAIN_RINGS, 22907);
    check_beside(&sides[0], alone[0]);
    end(&first_key);
}

/* tccld is started again with this record in RunDir. */
static void start_with(json_t *record)
{
    running_free(daemon_.running);
    write_record(&first_key, record);
    daemon_.running = running_new(&daemon_);
}

static void check_nobody(void)
{
    struct tccl_step join = join_of(second_key, SECOND);
    owned(shared_class) struct shared_class *alone =
        alongside_see(daemon_.running, &second_key, class_of(&join), true, false);
    CHECK_INT(alone->class->neighbours, 0);
}

/* A record with members, or values, that this version doesn't know is not read. */
TEST(record)
{
    struct tccl_step join = join_of(first_key, FIRST);
    owned(shared_class) struct shared_class *class = class_of(&join);
    begin(&join);
    give_ring(&join, class);
    running_free(daemon_.running);
    daemon_.running = NULL;
    cleanup_json json_t *record = read_record(&first_key);
    const struct {
        const char *name;
        json_t *value;
    } bad[] = {{"of_tomorrow", json_true()},
               {"built", json_integer(-1)},
               {"order", json_integer(-1)},
               {"built", json_integer(TCCL_CHAIN_RINGS + 1)},
               {"node", json_integer(1)},
               {"launch", json_integer(9)},
               {"gpus", json_pack("[s]", "1:2")},
               {"key", json_string("7")},
               {"baselines", json_pack("[i]", 1)},
               {"gres", json_pack("[i, I]", 0, (json_int_t)3 + (INT64_C(1) << 32))},
               {"gres", json_pack("[i, s]", 0, "3")},
               {"gres", json_string("0,3")}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        cleanup_json json_t *copy = json_deep_copy(record);
        json_object_set_new(copy, bad[i].name, bad[i].value);
        start_with(copy);
        check_nobody();
    }
    start_with(record);
    check_beside_ring();
    end(&first_key);
}

/* More steps at once than are kept, all of another user: the ring still counts. */
TEST(many)
{
    struct tccl_step join = join_of(first_key, FIRST);
    owned(shared_class) struct shared_class *class = class_of(&join);
    begin(&join);
    give_ring(&join, class);
    for (uint32_t i = 0; i <= RUNNING_MOST; i++) {
        struct tccl_step other = join_of(third_key, 1);
        other.key.step = i;
        other.uid = 1;
        begin(&other);
    }
    check_beside_ring();
    struct running_step *step;
    while ((step = TAILQ_FIRST(&daemon_.running->live))->key.job == third_key.job)
        running_end(daemon_.running, step);
    end(&first_key);
}

static struct running_step *begin_as(uid_t user, uint32_t job, uint32_t number)
{
    struct tccl_step join = join_of(third_key, 1);
    join.uid = user;
    join.key.job = job;
    join.key.step = number;
    begin(&join);
    return find(&join.key);
}

static void end_all(void)
{
    while (!TAILQ_EMPTY(&daemon_.running->live))
        running_end(daemon_.running, TAILQ_FIRST(&daemon_.running->live));
}

static bool is_past(const char *name)
{
    bool past;
    CHECK(!running_folder(daemon_.running, name, &past));
    return past;
}

/* Steps are known in the order in which they came, whenever tccld was started again. */
TEST(order)
{
    enum { STEPS = 12 };
    for (uint32_t i = 0; i < STEPS; i++) {
        begin_as(1, 7, i);
        if (i % 4 == 3)
            start_again();
    }
    uint32_t left = STEPS;
    struct running_step *step;
    TAILQ_FOREACH(step, &daemon_.running->live, link)
    CHECK_INT(step->key.step, --left);
    CHECK_INT(left, 0);
    while ((step = TAILQ_FIRST(&daemon_.running->live)))
        end(&step->key);
}

/* Others that come all the time, and one that can't be written, keep none from being written. */
TEST(written)
{
    char path[PATH_MAX];
    struct running_step *bad = begin_as(1, 8, 1000), *first = begin_as(1, 8, 0);
    snprintf(path, sizeof(path), "%.200s/%s", folder, bad->folder);
    bad->order = first->order + 1;
    close(open(path, O_CREAT | O_WRONLY, 0600));
    for (uint32_t i = 1; i < 20 && !access(path, F_OK) && first->changed; i++) {
        begin_as(1, 8, i);
        struct timeval time = {.tv_usec = 30000};
        event_base_loopexit(daemon_.base, &time);
        event_base_dispatch(daemon_.base);
    }
    CHECK(!first->changed && bad->changed);
    CHECK_INT(unlink(path), 0);
    bad->changed = false;
    while (!TAILQ_EMPTY(&daemon_.running->live)) {
        planfile_remove(folder, &TAILQ_FIRST(&daemon_.running->live)->key, NULL);
        running_end(daemon_.running, TAILQ_FIRST(&daemon_.running->live));
    }
}

/* A verdict that is awaited stays while another user's steps come, that end at once or run. */
TEST(awaited)
{
    for (int run = 0; run < 2; run++) {
        struct running_step *step = begin_as(1, 9, 0);
        char name[TCCL_KEY_TEXT];
        strcpy(name, step->folder);
        step->plan = step->ring = true;
        step->n_nodes = 2;
        step->start = 5;
        step->said = json_pack("{s:i}", "nccl", 22803); /* as it was once */
        step->nccl = run ? 22900 : 0;
        built_end(daemon_.running, step, false);
        CHECK_INT(step->nccl, run ? 22900 : 22803);
        running_end(daemon_.running, step);
        CHECK(step->verdict && !step->said);
        for (uint32_t i = 0; i <= RUNNING_MOST; i++) {
            struct running_step *other = begin_as(2, 10, i);
            if (!run)
                running_end(daemon_.running, other);
        }
        CHECK(is_past(name));
        built_drop(step);
        end_all();
    }
}

/* All of many users run: the next one comes at once, and what is on disk drives none of them out.
 */
TEST(full)
{
    struct tccl_step_key key = {.cluster = "c", .job = 11};
    char name[TCCL_KEY_TEXT];
    struct running_step *step = begin_as(1, key.job, 0);
    strcpy(name, step->folder);
    running_save(daemon_.running, step);
    running_end(daemon_.running, step);
    for (uint32_t i = 0; i < RUNNING_MOST; i++)
        begin_as(1 + i % 64, 12 + i % 64, i);
    CHECK(!is_past(name));
    CHECK(!running_load(daemon_.running, name) && !running_find(daemon_.running, &key));
    CHECK_INT(daemon_.running->count, RUNNING_MOST);
    int64_t began = tccl_now_us();
    for (uint32_t i = 0; i < 20; i++)
        begin_as(5000, 5000, i);
    printf("a step that drives another one out: %.3f ms\n",
           (double)(tccl_now_us() - began) / 20 / 1000);
    CHECK_INT(daemon_.running->count, RUNNING_MOST);
    end_all();
    CHECK(running_load(daemon_.running, name) != NULL);
    end(&key);
}

/* What began before is told: a job script, also one that another node's word says is slowed down,
 * and what mpirun has started with its GPUs before; that alone, where the script wants no ring. */
TEST(later)
{
    struct tccl_step join = join_of(first_key, FIRST), other = join_of(second_key, SECOND);
    owned(shared_class) struct shared_class *class = class_of(&join);
    CHECK(class);
    for (int i = 0; i < 4; i++) {
        struct running_step *script, *below;
        bool before = i % 2, only = i / 2;
        join.launch = only ? TCCL_LAUNCH_SCRIPT_ONLY : TCCL_LAUNCH_SCRIPT;
        join.key.step = TCCL_STEP_BATCH;
        begin(&join);
        script = find(&join.key);
        if (!before)
            begin(&other);
        join.launch = TCCL_LAUNCH_BELOW;
        join.key.step = 0;
        begin(&join);
        below = find(&join.key);
        if (before)
            begin(&other);
        below->by_script = true;
        script->start = below->start = find(&second_key)->start = 5;
        script->slowed = strdup("n2: a step began later");
        script->node = find(&second_key)->node = 1; /* else it goes on record, of which there is
                                                     * none here */
        alongside_began(daemon_.running, find(&second_key));
        alongside_on_look(-1, 0, daemon_.running);
        CHECK(script->later == !only && below->later == before);
        CHECK(find(&second_key)->later == (only && !before));
        built_drop(below);
        end_all();
    }
}

/* Two GPUs each as groups of a step. */
TEST(groups)
{
    struct tccl_group_choice got[2], wanted[2];
    struct tccl_beside beside = {.model = model};
    owned(groups) struct tccl_groups *groups =
        tccl_groups_new(tccl_model_machine(model), true, false);
    CHECK_INT(tccl_groups_add(groups, tables[0], ERR), 0);
    CHECK_INT(tccl_groups_add(groups, tables[1], ERR), 0);
    CHECK_INT(tccl_groups_choose(groups, &beside, wanted, ERR), 0);
    CHECK_INT(alongside_choose(daemon_.running, &first_key, masks, 2, true, false, got), 0);
    for (int i = 0; i < 2; i++) {
        CHECK(tccl_chain_equal(&got[i].cell.set.rings[0], &wanted[i].cell.set.rings[0]));
        CHECK(got[i].cell.gbps == wanted[i].cell.gbps && got[i].cell.gbps > 0);
        for (int k = 0; k < TCCL_GENERATIONS; k++)
            CHECK(got[i].baseline_gbps[k] == wanted[i].baseline_gbps[k] &&
                  got[i].better[k] == wanted[i].better[k]);
    }
}

/* One user makes as many choices as he may in a second: others are still served, until all of them
 * have had what tccld gives in a second. */
TEST(turns)
{
    struct joint_turns turns = {0};
    int64_t now = 5000;
    for (int i = 0; i < 3 * JOINT_USER; i++)
        CHECK(joint_admit(&turns, 1000, now) == (i < JOINT_USER));
    for (uid_t user = 1001; user < 1001 + JOINT_SECOND - JOINT_USER; user++)
        CHECK(joint_admit(&turns, user, now + 900));
    CHECK(!joint_admit(&turns, 1001, now + 900));
    CHECK(joint_admit(&turns, 1000, now + 1000));
    CHECK(joint_admit(&turns, 1001, now + 1000));
}

static const struct tccl_group_choice *choose(uid_t user, uint32_t number)
{
    struct tccl_step join = join_of(first_key, FIRST);
    join.key.job = join.uid = user;
    join.key.step = number;
    if (!running_find(daemon_.running, &join.key))
        begin(&join);
    struct running_step *step = find(&join.key);
    step->n_gpus = 4;
    for (int i = 0; i < 4; i++)
        CHECK_INT(tccl_bus_parse(tccl_model_machine(model)->gpus[i].busid, &step->gpus[i]), 0);
    owned(shared_class) struct shared_class *class = class_of(&join);
    return joint_choice(daemon_.running, step, class->class, true);
}

/* Choices stay as long as their step runs, also while another user asks for his steps as often as
 * he may: his own oldest ones go. */
TEST(others_stay)
{
    enum { SECONDS = JOINT_KEPT / JOINT_USER + 1 };
    const struct tccl_group_choice *mine = choose(1000, 0);
    CHECK(mine != NULL);
    for (uint32_t i = 0; i < SECONDS * JOINT_USER; i++)
        while (!choose(2000, i))
            usleep(10000);
    CHECK(choose(1000, 0) == mine);
    CHECK_INT(daemon_.running->n_joints, JOINT_KEPT);
    end_all();
    CHECK_INT(daemon_.running->n_joints, 0);
}

SETUP
{
    strcpy(folder, check_folder());
    daemon_.base = event_base_new();
    daemon_.own = own_new();
    daemon_.running = running_new(&daemon_);
    make_own_profile();
}

TEARDOWN
{
    running_free(daemon_.running);
    own_free(daemon_.own);
    event_base_free(daemon_.base);
    for (int i = 0; i < SETS; i++)
        tccl_table_free(tables[i]);
}
