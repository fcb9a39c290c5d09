/* What came of a step: solved at the root, cut for each range, read again below. */
#include "tccld/join/step-outcome.h"

#include "client/key.h"
#include "client/outcome.h"
#include "client/step-fields.h"
#include "merges.h"
#include "tccld/join/evidence.h"

enum { NODES = 50 };

static char names_text[NODES][8];
static char *names[NODES];
static const struct tccl_step_key key = {.cluster = "c", .job = 7};
static const struct tccl_step join = {.nodes = names, .policy = "gpu"};

static struct merge *random_merge(int nodes, const char *source)
{
    struct merge *merge = merge_new(0);
    for (int i = 0; i < nodes; i++) {
        owned(shared_class) struct shared_class *class = make_class(rand() % 4, source);
        CHECK_INT(merge_add(merge, class, 1, NULL), 0);
    }
    return merge;
}

TEST(ranges)
{
    owned(merge) struct merge *merge = random_merge(NODES, "model");
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {0};
    outcome_solve(&outcome, merge, &join, TCCL_CHAIN_RINGS);
    CHECK_INT(outcome.state, TCCL_STATE_PLANNED);
    CHECK_STR(outcome.source, "model");
    CHECK(outcome.gbps > 0 && outcome.ring != NULL);
    for (int round = 0; round < 100; round++) {
        struct tccl_outcome read = {0};
        int first = rand() % NODES, end = first + 1 + rand() % (NODES - first);
        cleanup_json json_t *json = outcome_to_json(&outcome, &key, first, end);
        CHECK_OK(tccl_plan_from_json(json, &key, first, end, &read, ERR));
        CHECK(read.gbps == outcome.gbps);
        CHECK_STR(read.policy, "gpu");
        for (int node = first; node < end; node++) {
            CHECK_INT(read.choices[node - first].entry[0], outcome.choices[node].entry[0]);
            CHECK_INT(read.choices[node - first].exit[0], outcome.choices[node].exit[0]);
        }
        tccl_outcome_clear(&read);
        CHECK_INT(tccl_plan_from_json(json, &key, first, end + 1, &read, ERR), -1);
    }
}

/* Chains of a class, between NICs, as many as rings. */
static struct tccl_seen set_of(const int (*nics)[2], int rings, double gbps)
{
    struct tccl_seen set = {.gbps = gbps, .bound = 100};
    for (int r = 0; r < rings; r++)
        set.set.rings[set.set.n++] =
            (struct tccl_chain){.n_gpus = 2,
                                .gpus = {(uint8_t)(r % 2), (uint8_t)(1 - r % 2)},
                                .entry = {(uint8_t)nics[r][0], {.kind = TCCL_MEMORY}},
                                .exit = {(uint8_t)nics[r][1], {.kind = TCCL_MEMORY}}};
    return set;
}

static const int crossed[][2] = {{0, 1}, {1, 0}}, alike[][2] = {{0, 0}, {0, 0}};

/* What a node makes of its place: the set that has these NICs, ring by ring in the order of the
 * PLAN; or nothing, where it has no such set. */
static void check_part(const struct tccl_node_class *class, const char *choices, int rings,
                       const int (*nics)[2], double alone)
{
    struct tccl_outcome outcome = {.state = TCCL_STATE_PLANNED, .rings = rings}, read = {0};
    struct tccl_node_nics none[1] = {0};
    struct outcome_part part;
    outcome.choices = none;
    cleanup_json json_t *json = tccl_plan_to_json(&outcome, &key, 0, 1);
    json_object_set_new(json, "choices", json_loads(choices, 0, NULL));
    CHECK_OK(tccl_plan_from_json(json, &key, 0, 1, &read, ERR));
    CHECK_INT(outcome_part(&read, &join, class, &part), nics ? 0 : -1);
    CHECK(!nics || (part.set.n == rings && part.alone == alone));
    for (int r = 0; nics && r < rings; r++)
        CHECK(part.set.rings[r].entry.nic == nics[r][0] &&
              part.set.rings[r].exit.nic == nics[r][1]);
    cleanup_json json_t *again = tccl_plan_to_json(&read, &key, 0, 1);
    CHECK(json_equal(json_object_get(again, "choices"), json_object_get(json, "choices")));
    tccl_outcome_clear(&read);
}

TEST(parts)
{
    static const int turned[][2] = {{1, 0}, {0, 1}};
    owned(shared_class) struct shared_class *shared = make_class(1, "model");
    struct tccl_node_class *class = shared->class;
    strcpy(class->nics[1].fabric, "other"); /* sets are told apart by fabrics */
    struct tccl_seen two = set_of(crossed, 2, 12), same = set_of(alike, 2, 9);
    CHECK_INT(tccl_node_class_add_set(class, &two), 0);
    CHECK_INT(tccl_node_class_add_set(class, &same), 0);
    check_part(class, "[[0,1,1,0,1]]", 2, crossed, 12);
    check_part(class, "[[1,0,0,1,1]]", 2, turned, 12);
    check_part(class, "[[0,0,0,0,1]]", 2, alike, 9);
    check_part(class, "[[0,0,1,1,1]]", 2, NULL, 0);
    check_part(class, "[[0,1,1,0,0,1,1]]", 3, NULL, 0);
    check_part(class, "[[-1,-1,-1,-1,1]]", 2, NULL, 0);
    check_part(class, "[[0,1,1]]", 1, crossed, 10);
}

/* Two nodes of a class with sets have two rings; with a node that has none there is one, and the
 * record says whose fault that is. */
TEST(fewer)
{
    owned(shared_class) struct shared_class *two = make_class(1, "model"),
                                            *one = make_class(2, "model");
    struct tccl_seen set = set_of(crossed, 2, 20);
    CHECK_INT(tccl_node_class_add_set(two->class, &set), 0);
    for (int round = 0; round < 3; round++) {
        owned(merge) struct merge *merge = merge_new(0);
        struct tccl_outcome outcome = {0}, read = {0};
        struct outcome_part part;
        CHECK_INT(merge_add(merge, two, 2, NULL), 0);
        if (round == 1)
            CHECK_INT(merge_add(merge, one, 1, NULL), 0);
        if (round == 2) { /* each on a network of its own; one way remains */
            strcpy(two->class->nics[1].fabric, "other");
            two->class->seen[1].gbps = two->class->seen[2].gbps = 0;
            two->class->seen[5].set.rings[1].entry.nic = 0;
        }
        outcome_solve(&outcome, merge, &join, TCCL_CHAIN_RINGS);
        CHECK_INT(outcome.state, TCCL_STATE_PLANNED);
        CHECK_INT(outcome.rings, round == 0 ? 2 : 1);
        CHECK_INT(outcome.agreed, round == 2); /* where nodes might not meet */
        CHECK_STR(outcome.fewer_rings,
                  round == 0   ? ""
                  : round == 1 ? "n3: its NICs limit the step to 1 ring; other nodes would have 2"
                               : "the NICs of these nodes share no fabric for 2 rings");
        CHECK(round != 0 || (outcome.gbps == 20 && strstr(outcome.ring, " | ")));
        cleanup_json json_t *json = outcome_to_json(&outcome, &key, 1, 2);
        CHECK_OK(tccl_plan_from_json(json, &key, 1, 2, &read, ERR));
        struct tccl_step second = {.nodes = names, .node = 1};
        CHECK_INT(outcome_part(&read, &second, two->class, &part), 0);
        CHECK_INT(part.set.n, outcome.rings);
        tccl_outcome_clear(&read);
        tccl_outcome_clear(&outcome);
    }
}

/* A ring of many nodes is sent down whole, the chains of equal nodes once. */
TEST(long_ring)
{
    static const int four[][2] = {{0, 1}, {1, 0}, {0, 1}, {1, 0}};
    owned(shared_class) struct shared_class *class = make_class(1, "model");
    struct tccl_seen set = set_of(four, 4, 20);
    owned(merge) struct merge *merge = merge_new(0);
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {0}, read = {0};
    CHECK_INT(tccl_node_class_add_set(class->class, &set), 0);
    CHECK_INT(merge_add(merge, class, NODES, NULL), 0);
    outcome_solve(&outcome, merge, &join, TCCL_CHAIN_RINGS);
    CHECK_INT(outcome.rings, 4);
    CHECK(outcome.ring && strlen(outcome.ring) < OUTCOME_RING && strstr(outcome.ring, " | ") &&
          strstr(outcome.ring, " n50[= n1]"));
    cleanup_json json_t *json = outcome_to_json(&outcome, &key, 1, 2);
    CHECK_INT(tccl_plan_from_json(json, &key, 1, 2, &read, ERR), 0);
    CHECK_STR(read.ring, outcome.ring);
}

/* An NCCL that isn't known: all nodes have the ring and the reason, and are told that there is
 * none. */
TEST(foreseen)
{
    owned(merge) struct merge *merge = random_merge(3, "model");
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {0}, read = {0};
    struct tccl_step warned = {.nodes = names, .n_nodes = 3, .foreseen = "NCCL 2.33.1: not known"};
    outcome_solve(&outcome, merge, &warned, TCCL_CHAIN_RINGS);
    cleanup_json json_t *json = outcome_to_json(&outcome, &key, 1, 3);
    CHECK_INT(tccl_plan_from_json(json, &key, 1, 3, &read, ERR), 0);
    CHECK_INT(read.state, TCCL_STATE_PLANNED);
    CHECK_STR(read.reason, "NCCL 2.33.1: not known");
    CHECK_INT(tccl_outcome_told(&read), TCCL_STATE_FAILED);
    read.reason[0] = '\0';
    CHECK_INT(tccl_outcome_told(&read), TCCL_STATE_PLANNED);
}

TEST(policy)
{
    owned(merge) struct merge *merge = random_merge(3, "model");
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {0};
    struct tccl_step few = {.nodes = names, .mode = TCCL_MODE_AUTO, .min_gpus = 7};
    outcome_solve(&outcome, merge, &few, TCCL_CHAIN_RINGS);
    CHECK_INT(outcome.state, TCCL_STATE_FAILED);
    CHECK_STR(outcome.reason, "policy: 6 GPUs in this step, MinGpus is 7");
    CHECK(!outcome.groups);
}

/* Who runs beside the second node of three, and the third: with their nodes, and the shares that
 * the chains there leave them. The first node's are for those who know more of it. */
TEST(beside)
{
    static const char *const others[] = {"10.00/10.00 ring: 2 -m1> 3 -m1> 2",
                                         "8.00/8.00 nccl: 2 -m1> 3 -m1> 2"};
    owned(merge) struct merge *merge = merge_new(0);
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {.neighbours = 0};
    for (int i = 0; i < 3; i++) {
        owned(shared_class) struct shared_class *class = make_class(1, "model");
        if (i != 1) /* two nodes whose rates are equal, but for their neighbours */
            class->class->beside = strdup(others[i / 2]);
        class->class->neighbours = i != 1;
        for (int k = 0; k < 4 && i == 2; k++)
            class->class->seen[k].share = 0.5;
        cleanup_json json_t *json = tccl_node_class_to_json(class->class);
        struct tccl_node_class *read = tccl_node_class_from_json(json, NULL);
        CHECK(read && tccl_node_class_equal(read, class->class));
        if (read && i != 1) {
            read->beside[0] = '2';
            CHECK(!tccl_node_class_equal(read, class->class));
        }
        tccl_node_class_free(read);
        json_object_set_new(json, "beside", json_string("nobody"));
        CHECK(!tccl_node_class_from_json(json, NULL));
        CHECK_INT(merge_add(merge, class, 1 + i, NULL), 0); /* 1, 2 and 3 nodes */
    }
    outcome_solve(&outcome, merge, &join, 1);
    CHECK_INT(outcome.state, TCCL_STATE_PLANNED);
    CHECK_INT(outcome.neighbours, 4);
    CHECK_STR(outcome.beside, "@3 4.00/8.00 nccl: 2 -m1> 3 -m1> 2; @4 4.00/8.00 nccl: 2 -m1> 3 "
                              "-m1> 2; @5 4.00/8.00 nccl: 2 -m1> 3 -m1> 2");
}

/* Two nodes, of whose best ring NCCL's own choice has this part. *ring: that ring's GB/s. */
static struct merge *make_pair(double own, double *ring)
{
    struct merge *merge = merge_new(0);
    default_gbps = *ring = 0;
    for (int i = 0; i < 2; i++) {
        owned(shared_class) struct shared_class *class = make_class(1, "cuda");
        for (int k = 0; k < 4; k++)
            *ring = fmax(*ring, class->class->seen[k].gbps);
        default_gbps = own * *ring;
        if (i == 1)
            CHECK_INT(merge_add(merge, class, 2, NULL), 0);
    }
    return merge;
}

/* A ring that is not faster than NCCL's own choice is not applied. */
TEST(no_gain)
{
    const double own[] = {0.94, 0.98, 1.5, 0.96}; /* of the ring's bandwidth, with 3 % noise */
    for (int i = 0; i < 4; i++) {
        struct tccl_outcome outcome = {0}, read = {0};
        char reason[128];
        double ring;
        owned(merge) struct merge *merge = make_pair(own[i], &ring);
        outcome_solve(&outcome, merge, &join, TCCL_CHAIN_RINGS);
        CHECK_INT(outcome.state, i == 0 ? TCCL_STATE_PLANNED : TCCL_STATE_LEFT);
        CHECK(outcome.baseline_gbps == default_gbps);
        CHECK((outcome.gbps > 0) == (i == 0) && (outcome.choices != NULL) == (i == 0));
        snprintf(reason, sizeof(reason),
                 i == 1   ? "NCCL's own ring is as fast (%.1f GB/s)"
                 : i == 3 ? "NCCL's own choice is kept (%.1f GB/s, the best ring found %.1f: "
                            "a gain below 1.05x is not used)"
                          : "NCCL's own choice is faster (%.1f GB/s, the best ring found %.1f)",
                 default_gbps, ring);
        CHECK_STR(outcome.reason, i == 0 ? "" : reason);
        cleanup_json json_t *json = outcome_to_json(&outcome, &key, 0, 2);
        CHECK_OK(tccl_plan_from_json(json, &key, 0, 2, &read, ERR));
        CHECK_INT(read.state, outcome.state);
        CHECK_STR(read.reason, outcome.reason);
        CHECK_INT(read.groups, i > 0); /* these may gain all the same */
        tccl_outcome_clear(&read);
        tccl_outcome_clear(&outcome);
    }
    default_gbps = 0;
}

/* A gain that is too small for the policy; without NCCL's own choice nothing is known of it. */
TEST(min_gain)
{
    static const struct {
        double own, min_gain; /* of the ring's bandwidth */
        const char *policy, *reason;
    } cases[] = {
        {0.8, 1.25, "big", ""},
        {0.8, 1.251, "big", "policy 'big': the ring is only 1.25x NCCL's own choice ("},
        {0.5, 2.5, "", "policy: the ring is only 2.00x NCCL's own choice ("},
        {0.9, 1, "big", ""},
        {0, 100, "big", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tccl_outcome outcome = {0};
        double ring;
        owned(merge) struct merge *merge = make_pair(cases[i].own, &ring);
        struct tccl_step asks = {.nodes = names, .min_gain = cases[i].min_gain};
        strcpy(asks.policy, cases[i].policy);
        for (int mode = TCCL_MODE_AUTO; mode <= TCCL_MODE_REQUIRE; mode++) {
            asks.mode = (enum tccl_mode)mode;
            outcome_solve(&outcome, merge, &asks, TCCL_CHAIN_RINGS);
            bool enough = cases[i].reason[0] == '\0';
            CHECK_INT(outcome.state, enough ? TCCL_STATE_PLANNED : TCCL_STATE_LEFT);
            CHECK(strncmp(outcome.reason, "policy", 6) != 0 || !outcome.groups); /* it wants none */
            CHECK(strncmp(outcome.reason, cases[i].reason, strlen(cases[i].reason)) == 0);
            CHECK(enough == (outcome.reason[0] == '\0'));
            tccl_outcome_clear(&outcome);
        }
    }
    default_gbps = 0;
}

/* What is said of rings that are left is what people are told of them and of NCCL's own, also where
 * that is not what decides. Of six steps of a round the ends are 1 and 2 of these. */
TEST(told)
{
    static const struct {
        double own; /* of the ring's bandwidth */
        uint8_t ends, told_ends;
        double min_gain;
        const char *reason;
        int trial; /* of 100,000 jobs */
    } cases[] = {
        {0.8, 100, 200, 0, ""},
        {0.8, 100, 200, 0, "trial: NCCL's own choice in place of a ring of %.1f GB/s", 100000},
        {0.9, 100, 200, 0, "NCCL's own choice is faster (%.1f GB/s, the best ring found %.1f)"},
        {0.9, 100, 200, 1.05, "NCCL's own choice is faster (%.1f GB/s, the best ring found %.1f)"},
        {0.75, 200, 100, 1.3, ""}, /* 1.14 by what decides */
        {0.75, 100, 200, 1.3, "policy: the ring is only 1.14x NCCL's own choice ("},
        {0.83, 200, 100, 0,
         "NCCL's own choice is kept (%.1f GB/s, the best ring found %.1f: if steps beside it "
         "never rest that is 1.03x, and a gain below 1.05x is not used)"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {0};
        double ring;
        owned(merge) struct merge *merge = make_pair(cases[i].own, &ring);
        struct tccl_node_class *class = merge->classes[0]->class;
        const struct tccl_step asks = {
            .nodes = names, .n_nodes = 2, .min_gain = cases[i].min_gain, .trial = cases[i].trial};
        char reason[256];
        class->neighbours = 1;
        for (int k = 0; k < 4; k++) {
            class->seen[k].ends = cases[i].ends;
            class->seen[k].told_ends = cases[i].told_ends;
        }
        outcome_solve(&outcome, merge, &asks, TCCL_CHAIN_RINGS);
        const double told = cases[i].told_ends == 200 ? ring * 6 / 7 : ring;
        snprintf(reason, sizeof(reason), cases[i].reason, cases[i].trial ? told : default_gbps,
                 told);
        CHECK_INT(outcome.state, *reason ? TCCL_STATE_LEFT : TCCL_STATE_PLANNED);
        CHECK(strncmp(outcome.reason, reason, strlen(reason)) == 0);
        CHECK(*reason || outcome.reason[0] == '\0');
        CHECK(fabs(outcome.baseline_gbps - default_gbps) < 1e-9);
        CHECK(*reason || fabs(outcome.gbps - told) < 1e-9);
    }
    default_gbps = 0;
}

/* The same jobs whatever the step, about as many as were asked for, and no others where one of two
 * nodes joins with another share. A trial is measured, says so on all nodes, and has no ring. */
TEST(trials)
{
    int drawn = 0;
    default_gbps = 0.5;
    owned(merge) struct merge *merge = random_merge(2, "model");
    for (uint32_t job = 1; job <= 4000; job++) {
        struct tccl_step asks = {.nodes = names, .key = {.cluster = "c", .job = job}};
        struct tccl_outcome outcome = {0}, read = {0};
        asks.trial = 5000;
        asks.key.step = job % 7;
        asks.key.restart = job % 3;
        outcome_solve(&outcome, merge, &asks, TCCL_CHAIN_RINGS);
        bool trial = outcome.cause == TCCL_REASON_TRIAL;
        CHECK_INT(outcome.state, trial ? TCCL_STATE_LEFT : TCCL_STATE_PLANNED);
        CHECK(trial == outcome.measure && trial == !outcome.ring && !(trial && outcome.groups));
        CHECK(trial == (strncmp(outcome.reason, "trial: NCCL's own choice", 24) == 0));
        CHECK(trial == evidence_draws(&(struct tccl_step_key){.cluster = "c", .job = job}, "trial",
                                      asks.trial));
        /* A component of a heterogeneous job is its leader's. */
        CHECK(trial ==
              evidence_draws(&(struct tccl_step_key){.cluster = "c", .job = 99999, .het_job = job},
                             "trial", asks.trial));
        CHECK(!trial ||
              evidence_draws(&asks.key, "trial", 9000)); /* more are the same and others */
        CHECK(!evidence_draws(&asks.key, "trial", 0));
        cleanup_json json_t *json = outcome_to_json(&outcome, &asks.key, 0, 2);
        CHECK_OK(tccl_plan_from_json(json, &asks.key, 0, 2, &read, ERR));
        CHECK(read.measure == trial && read.cause == outcome.cause);
        drawn += trial;
        tccl_outcome_clear(&read);
        tccl_outcome_clear(&outcome);
    }
    CHECK(drawn > 140 && drawn < 260); /* 200 are expected, 14 is the deviation */
    default_gbps = 0;
}

/* Nodes of two sources. */
static void check_sources(const char *one, const char *other, const char *said)
{
    owned(merge) struct merge *a = random_merge(1, one);
    owned(shared_class) struct shared_class *class = make_class(9, other);
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {0};
    CHECK_INT(merge_add(a, class, 1, NULL), 0);
    outcome_solve(&outcome, a, &join, TCCL_CHAIN_RINGS);
    CHECK_STR(outcome.source, said);
}

TEST(sources)
{
    check_sources("model", "cuda", "mixed");
    check_sources("cuda", "cuda", "cuda");
}

static void add_kind(struct merge *merge, const char *machine, uint32_t gpus, int neighbours)
{
    owned(shared_class) struct shared_class *class = make_class(0, "model");
    snprintf(class->class->machine, sizeof(class->class->machine), "%s", machine);
    class->class->gpus = gpus;
    class->class->neighbours = neighbours;
    CHECK_OK(merge_add(merge, class, 1, ERR));
}

/* Which kinds of nodes, each once, however many steps they are seen beside. */
TEST(node_classes)
{
    owned(merge) struct merge *merge = merge_new(0);
    cleared_by(tccl_outcome_clear) struct tccl_outcome two = {0}, many = {0};
    add_kind(merge, "0123456789abcdef0123456789abcdef", 0x3f, 0);
    add_kind(merge, "0123456789abcdef0123456789abcdef", 0x3, 0);
    add_kind(merge, "0123456789abcdef0123456789abcdef", 0x3, 2);
    outcome_solve(&two, merge, &join, TCCL_CHAIN_RINGS);
    CHECK_STR(two.node_class, "01234567:0-5 + 01234567:0-1");
    for (int i = 0; i < 20; i++)
        add_kind(merge, "abcdef01234567890123456789abcdef", 0x5u << i, 0);
    outcome_solve(&many, merge, &join, TCCL_CHAIN_RINGS);
    CHECK_INT((int)strlen(many.node_class), TCCL_OUTCOME_CLASS);
    CHECK(strncmp(many.node_class, "01234567:0-5 + 01234567:0-1 + abcdef01:0,2", 42) == 0);
}

TEST(malformed)
{
    static const struct {
        const char *name, *value;
    } bad[] = {{"choices", "[]"},
               {"choices", "[[0,0]]"},
               {"choices", "[[0,0,4]]"},
               {"choices", "[[0,0,-1]]"},
               {"choices", "[[-2,0,3]]"},
               {"choices", "[[0,16,3]]"},
               {"choices", "[[0,0,3,1]]"},
               {"choices", "[[0,0,0,0,3]]"}, /* of two rings, where there is one */
               {"rings", "2"},
               {"rings", "9"},
               {"rings", "-1"},
               {"choices", "[\"x\"]"},
               {"choices", "7"},
               {"state", "\"best\""},
               {"state", "1"},
               {"gbps", "-1"},
               {"gbps", "\"fast\""},
               {"reason", "7"},
               {"source", "null"},
               {"key", "{}"},
               {"ring", "[]"}};
    owned(merge) struct merge *merge = random_merge(3, "model");
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {0};
    outcome_solve(&outcome, merge, &join, TCCL_CHAIN_RINGS);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct tccl_outcome read = {0};
        cleanup_json json_t *json = outcome_to_json(&outcome, &key, 0, 3);
        json_object_set_new(json, bad[i].name, json_loads(bad[i].value, JSON_DECODE_ANY, NULL));
        CHECK_INT(tccl_plan_from_json(json, &key, 0, 3, &read, ERR), -1);
        CHECK(*check_err.text != '\0' && read.choices == NULL && read.ring == NULL);
    }
    struct tccl_step_key other = key;
    struct tccl_outcome read = {0};
    other.restart = 1;
    cleanup_json json_t *json = outcome_to_json(&outcome, &other, 0, 3);
    CHECK_FAILS(tccl_plan_from_json(json, &key, 0, 3, &read, ERR),
                "it is the plan of another step");
}

SETUP
{
    for (int i = 0; i < NODES; i++) {
        snprintf(names_text[i], sizeof(names_text[i]), "n%d", i + 1);
        names[i] = names_text[i];
    }
}
