/* test-records.c: step records: what is taken, how often, and what is found again. */
#include <sys/resource.h>

#include "records/store.h"
#include "stores.h"

enum { ALL = 1 << 20 };

static char path[128];

static json_t *record(int job, int step, int reporter, const char *state)
{
    json_t *json = json_pack("{s:s, s:i, s:i, s:i, s:i, s:s, s:s, s:i, s:i, s:f, s:f}", "cluster",
                             "c", "job", job, "step", step, "uid", 1000 + job % 2, "gpus", 8,
                             "state", state, "nodes", "n[1-4]", "start", 1000000 + job, "reporter",
                             reporter, "gbps", 12.5, "baseline_gbps", 5.0);
    CHECK(json != NULL);
    return json;
}

static void check_count(struct tccl_records *records, const char *filter, int64_t uid, int count)
{
    cleanup_json json_t *found = find_records(records, json_loads(filter, 0, NULL), uid, ALL);
    if ((int)json_array_size(found) != count)
        fprintf(stderr, "filter %s, uid %lld:\n", filter, (long long)uid);
    CHECK_INT((long long)json_array_size(found), count);
}

static const char *state_of(struct tccl_records *records, int job, char state[32])
{
    cleanup_json json_t *found = find_records(
        records, json_loads(check_printf("{\"jobs\":[{\"job\":%d}]}", job), 0, NULL), -1, ALL);
    CHECK_INT((long long)json_array_size(found), 1);
    const char *text = json_string_value(json_object_get(json_array_get(found, 0), "state"));
    snprintf(state, 32, "%s", text ? text : "");
    return state;
}

TEST(one_per_step)
{
    char state[32];
    owned(records) struct tccl_records *records = new_store_at(path);
    put_record(records, record(7, 0, 3, "failed"));
    CHECK_STR(state_of(records, 7, state), "failed");
    put_record(records, record(7, 0, 5, "off"));
    CHECK_STR(state_of(records, 7, state), "failed");
    put_record(records, record(7, 0, 0, "planned"));
    CHECK_STR(state_of(records, 7, state), "planned");
    put_record(records, record(7, 0, 0, "planned"));
    put_record(records, record(7, 0, 3, "failed"));
    CHECK_STR(state_of(records, 7, state), "planned");
    json_t *without = record(7, 0, 0, "planned"); /* a node has no part of it */
    json_object_set_new(without, "reason", json_string("n2: no plan"));
    put_record(records, without);
    check_count(records, "{\"classes\":[\"other\"]}", -1, 1);
    put_record(records, record(7, 0, 0, "planned")); /* sent before, arrived later */
    check_count(records, "{\"classes\":[\"other\"]}", -1, 1);
    static const char *const others[] = {"cluster", "het_job", "het_offset",
                                         "step",    "restart", "run"};
    for (int i = 0; i < 6; i++) {
        json_t *other = record(7, 0, 0, "planned");
        json_object_set_new(other, others[i], i ? json_integer(9) : json_string("d"));
        put_record(records, other);
        check_count(records, "{}", -1, i + 2);
    }
}

static void check_shown(const char *state, const char *reason, const char *built,
                        const char *built_reason, const char *class, const char *shown,
                        const char *why)
{
    struct tccl_facts facts = {.state = state,
                               .reason = reason,
                               .reason_class = *reason ? "unknown NCCL" : "",
                               .reason_node = "launch",
                               .built = built,
                               .built_reason = built_reason,
                               .built_class = class,
                               .built_node = "shim"};
    struct tccl_facts_shown got = tccl_facts_shown(&facts);
    if (*why)
        CHECK_STR(got.node, strcmp(got.reason, reason) == 0 ? "launch" : "shim");
    CHECK_INT(got.cause, !*why                          ? TCCL_REASON_NONE
                         : strcmp(shown, "failed") == 0 ? TCCL_REASON_UNKNOWN_NCCL
                                                        : TCCL_REASON_BUILT_DIFFERENTLY);
    CHECK_STR(got.state, shown);
    CHECK_STR(got.reason, why);
}

/* An NCCL that is not known: as the launch foresaw, as only the shim found, or as was foreseen and
 * then was another one. */
TEST(unknown_nccl)
{
    const char *why = "NCCL 2.33.1: not known (2.21 to 2.32 are)", *silent = "nobody used it";
    check_shown("failed", why, "", "", "", "failed", why);
    check_shown("failed", why, "not used", why, "", "failed", why);
    check_shown("failed", why, "not used", silent, "", "failed", why);
    check_shown("planned", "", "not used", why, "", "failed", why);
    check_shown("planned", "", "not used", silent, "", "planned", "");
    /* By its class, whatever the text says. */
    check_shown("planned", "", "not used", silent, "unknown NCCL", "failed", silent);
    check_shown("planned", "", "not used", why, "no call", "planned", "");
    check_shown("failed", why, "applied", "", "", "planned", "");
    check_shown("failed", why, "unknown", silent, "", "planned", "");
    check_shown("failed", why, "differs", "another", "", "planned", "another");
    check_shown("failed", why, "fewer", "1 of 3 rings", "", "planned", "1 of 3 rings");
}

/* What was achieved, of what was foretold of what ran: worked out where a record is shown. Of what
 * no machine does nothing is said. */
TEST(achieved_share)
{
    static const struct {
        const char *with, *built;
        double achieved, nccl, share;
    } steps[] = {
        {"rings", "applied", 9.0, 6.0, 0.9},     {"rings", "applied", 41.0, 6.0, 0},
        {"rings", "fewer", 9.0, 6.0, 0},         {"rings", "unknown", 9.0, 6.0, 0},
        {"own", "not used", 9.0, 6.0, 1.5},      {"own", "not used", 4.0, 0, 0.8},
        {"own", "not used", 25.0, 6.0, 0},       {"", "applied", 9.0, 6.0, 0},
        {"others", "applied", 9.0, 6.0, 0},      {"rings", "applied", 0, 6.0, 0},
        {"rings", "applied", 1e-12, 6.0, 1e-13},
    };
    owned(records) struct tccl_records *records = new_store_at(path);
    for (int i = 0; i < (int)COUNT(steps); i++) {
        json_t *record = step_record(1 + i, "planned", 1000 + i);
        json_object_update_new(record, json_pack("{s:f, s:f}", "gbps", 10.0, "baseline_gbps", 5.0));
        put_record(records, record);
        json_t *built = built_record(1 + i, steps[i].built, "", 1000 + i);
        json_object_update_new(built, json_pack("{s:s, s:f, s:f, s:i}", "achieved_with",
                                                steps[i].with, "achieved_gbps", steps[i].achieved,
                                                "nccl_gbps", steps[i].nccl, "sent_bytes", 1 << 20));
        put_record(records, built);
    }
    cleanup_json json_t *found = find_records(records, json_object(), -1, 1 << 20);
    CHECK_INT((int)json_array_size(found), (int)COUNT(steps));
    for (int i = 0; i < (int)COUNT(steps); i++) {
        double share =
            json_number_value(json_object_get(json_array_get(found, (size_t)i), "achieved_share"));
        CHECK(fabs(share - steps[i].share) <= 1e-12 * fmax(1, share));
    }
}

/* Figures replace others if they are of more; what was measured is before what was only sent. */
TEST(more_figures)
{
    static const struct {
        int samples, sent, captured;
        bool stands; /* of all up to here it is that on record */
        bool rings;
    } said[] = {{0, 0, 1, true},  {0, 100, 1, true},  {0, 100, 0, false},    {0, 100, 2, true},
                {3, 50, 0, true}, {0, 999, 9, false}, {4, 40, 0, false},     {5, 50, 1, true},
                {6, 50, 1, true}, {7, 49, 99, false}, {8, 9, 0, true, true}, {9, 99, 0, false}};
    owned(records) struct tccl_records *records = new_store_at(path);
    int stands = 0;
    put_record(records, step_record(1, "planned", 1000));
    put_record(records, built_record(1, "applied", "", 1000));
    for (int i = 0; i < (int)COUNT(said); i++) {
        json_t *built = built_record(1, "applied", "", 1000);
        json_object_update_new(built,
                               json_pack("{s:i, s:i, s:i, s:s}", "samples", said[i].samples,
                                         "sent_bytes", said[i].sent, "captured", said[i].captured,
                                         "achieved_with", said[i].rings ? "rings" : "own"));
        put_record(records, built);
        stands = said[i].stands ? i : stands;
        cleanup_json json_t *found = find_records(records, json_object(), -1, 1 << 20);
        const json_t *one = json_array_get(found, 0);
        CHECK_INT(json_integer_value(json_object_get(one, "samples")), said[stands].samples);
        CHECK_INT(json_integer_value(json_object_get(one, "sent_bytes")), said[stands].sent);
        CHECK_INT(json_integer_value(json_object_get(one, "captured")), said[stands].captured);
    }
}

/* That others began beside a step, and slowed it down, stays, whatever is said of what was built
 * before or afterwards, or of what it achieved. */
TEST(slowed)
{
    static const char *const words[] = {"", "applied", "not used"};
    const char *text = "n1: a step began later on GPUs 1,6";
    for (int before = 0; before < 3; before++)
        for (int after = 0; after < 3; after++) {
            owned(records) struct tccl_records *records = new_store_at(path);
            const char *built[] = {words[before], "not used", words[after]};
            put_record(records, step_record(1, "planned", 1000));
            for (int i = 0; i < 3; i++) {
                json_t *said = *built[i] ? built_record(1, built[i], "", 1000) : NULL;
                if (said && i == 1)
                    json_object_update_new(said,
                                           json_pack("{s:s, s:i}", "slowed", text, "later", 2));
                if (said && i == 2)
                    json_object_update_new(said, json_pack("{s:i}", "sent_bytes", 1 << 20));
                if (said)
                    put_record(records, said);
            }
            cleanup_json json_t *found = find_records(records, json_object(), -1, 1 << 20);
            const json_t *one = json_array_get(found, 0);
            CHECK_STR(json_string_value(json_object_get(one, "slowed")), text);
            CHECK_INT(json_integer_value(json_object_get(one, "later")), 2);
            CHECK((before == 1 || after == 1) ==
                  (strcmp(json_string_value(json_object_get(one, "built")), "yes") == 0));
        }
}

TEST(without_a_class)
{
    struct tccl_facts facts = {.state = "failed",
                               .reason = "n2: something",
                               .reason_class = "",
                               .reason_node = "",
                               .built = "applied",
                               .built_reason = "",
                               .built_class = "",
                               .built_node = ""};
    CHECK_INT(tccl_facts_shown(&facts).cause, TCCL_REASON_OTHER);
    CHECK_STR(tccl_facts_shown(&facts).state, "failed");
    facts.reason_class = "new word";
    CHECK_INT(tccl_facts_shown(&facts).cause, TCCL_REASON_OTHER);
    facts.state = "planned", facts.reason = facts.reason_class = "";
    CHECK_INT(tccl_facts_shown(&facts).cause, TCCL_REASON_NONE);
}

TEST(reopen)
{
    char state[32];
    struct stat status;
    struct tccl_records *records = new_store_at(path);
    put_record(records, record(8, 0, 0, "planned"));
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
    tccl_records_close(records);
    records = open_store_at(path);
    CHECK_STR(state_of(records, 8, state), "planned");
    tccl_records_close(records);
}

/* All names are there, with what follows from others. */
TEST(normal)
{
    cleanup_json json_t *given = record(9, 2, 0, "planned");
    json_object_set_new(given, "unknown", json_true());
    json_object_set_new(given, "account", json_null());
    json_object_set_new(given, "nodes", json_pack("[s,s,s]", "n1", "n2", "m4"));
    cleanup_json json_t *normal = tccl_record_normal(given, ERR);
    int fields = 0;
    for (int i = 0; i < tccl_n_step_fields; i++)
        fields += (tccl_step_fields[i].use & (TCCL_IN_RECORD | TCCL_IN_CONFIRMATION)) != 0;
    CHECK_INT((long long)json_object_size(normal), fields);
    CHECK_STR(json_string_value(json_object_get(normal, "nodes")), "n[1-2],m4");
    CHECK_STR(json_string_value(json_object_get(normal, "first_node")), "n1");
    CHECK_STR(json_string_value(json_object_get(normal, "account")), "");
    CHECK_INT(json_integer_value(json_object_get(normal, "n_nodes")), 3);
    CHECK(json_real_value(json_object_get(normal, "ratio")) == 2.5);
    cleanup_json json_t *again = tccl_record_normal(normal, ERR);
    CHECK(json_equal(normal, again));
    owned(records) struct tccl_records *records = new_store_at(path);
    put_record(records, json_incref(given));
    cleanup_json json_t *found = find_records(records, json_loads("{}", 0, NULL), -1, ALL);
    json_object_set_new(normal, "achieved_share", json_real(0)); /* of what is shown alone */
    CHECK(json_equal(json_array_get(found, 0), normal));
}

static void check_refused(const char *field, json_t *value, const char *said)
{
    owned(records) struct tccl_records *records = open_store_at(path);
    cleanup_json json_t *given = record(10, 0, 0, "planned");
    if (value)
        json_object_set_new(given, field, value);
    else
        json_object_del(given, field);
    CHECK_INT(tccl_records_put(records, given, ERR), 1);
    CHECK_NO(!strstr(check_err.text, field) || !strstr(check_err.text, said),
             "%s: got '%s', expected '%s'\n", field, check_err.text, said);
    check_count(records, "{\"jobs\":[{\"job\":10}]}", -1, 0);
}

TEST(bad_records)
{
    static const char *const needed[] = {"job", "step", "uid", "state", "start", "reporter"};
    for (int i = 0; i < 6; i++)
        check_refused(needed[i], NULL, "missing");
    check_refused("job", json_integer(0), "must be from 1 to");
    check_refused("job", json_integer(1LL << 32), "must be from 1 to 4294967295");
    check_refused("job", json_string("10"), "must be a whole number");
    check_refused("step", json_integer(-1), "must be from 0");
    check_refused("start", json_integer(INT64_MAX), "must be from 0");
    check_refused("gbps", json_real(-1), "must be from 0");
    check_refused("gbps", json_real(1e300), "must be from 0");
    check_refused("gbps", json_true(), "must be a number");
    check_refused("state", json_string(""), "is empty");
    check_refused("account", json_integer(1), "must be a text");
    check_refused("nodes", json_pack("[s]", "a/../b"), "not the name of a node");
    check_refused("nodes", json_string("n[1-"), "is not a node list");
    check_refused("nodes", json_string("n[0-99999999]"), "more than");
    cleanup_json json_t *array = json_array();
    CHECK(tccl_record_normal(array, ERR) == NULL);
    CHECK_STR(check_err.text, "a record must be an object");
}

/* Texts are cut within a bound, at a character, and stored as they are otherwise. */
TEST(texts)
{
    static const char hostile[] = "'); DROP TABLE records; -- \x1b[31m\n\"é";
    char many[1001] = "";
    for (int i = 0; i < 500; i++)
        strcat(many, "é");
    cleanup_json json_t *given = record(11, 0, 0, "planned");
    json_object_set_new(given, "job_name", json_string(hostile));
    json_object_set_new(given, "account", json_string(many));
    owned(records) struct tccl_records *records = new_store_at(path);
    CHECK_INT(tccl_records_put(records, given, ERR), 0);
    cleanup_json json_t *found = find_records(records, json_loads("{}", 0, NULL), -1, ALL);
    const json_t *stored = json_array_get(found, 0);
    CHECK_STR(json_string_value(json_object_get(stored, "job_name")), hostile);
    const char *account = json_string_value(json_object_get(stored, "account"));
    CHECK_INT((long long)strlen(account), 255);
    CHECK_STR(account + 252, "…");
}

TEST(long_nodes)
{
    cleanup_json json_t *given = record(12, 0, 0, "planned"), *names = json_array();
    for (int i = 0; i < 30000; i++) {
        json_array_append_new(
            names, json_string(check_printf("a-long-name-of-a-node-%d-x%c", i * 2, "yz"[i % 2])));
    }
    json_object_set(given, "nodes", names);
    json_object_set_new(given, "n_nodes", json_integer(30000));
    cleanup_json json_t *normal = tccl_record_normal(given, ERR);
    const char *nodes = json_string_value(json_object_get(normal, "nodes"));
    CHECK(nodes && strlen(nodes) <= TCCL_MAX_NODE_LIST && strlen(nodes) > TCCL_MAX_NODE_LIST - 64);
    CHECK(nodes && strchr("yz", nodes[strlen(nodes) - 1]) != NULL);
    CHECK_STR(json_string_value(json_object_get(normal, "first_node")),
              "a-long-name-of-a-node-0-xy");
    CHECK_INT(json_integer_value(json_object_get(normal, "n_nodes")), 30000);
}

TEST(arrays)
{
    owned(records) struct tccl_records *records = new_store_at(path);
    put_record(records, record(21, 0, 0, "failed"));
    for (int task = 0; task < 4; task++) { /* the last one has the array's own id */
        json_t *json = record(task < 3 ? 31 + task : 30, 0, 0, "planned");
        json_object_update_new(json,
                               json_pack("{s:i, s:i, s:i, s:i}", "array_job_id", 30,
                                         "array_task_id", task, "uid", 1000, "start", 1000030));
        put_record(records, json);
    }
    check_count(records, "{\"jobs\":[{\"job\":30}]}", -1, 4);
    check_count(records, "{\"jobs\":[{\"job\":30,\"step\":0}]}", -1, 4);
    check_count(records, "{\"jobs\":[{\"job\":30,\"step\":1}]}", -1, 0);
    check_count(records, "{\"jobs\":[{\"job\":30,\"raw\":true}]}", -1, 1);
    check_count(records, "{\"jobs\":[{\"job\":30,\"het_offset\":0}]}", -1, 1);
    check_count(records, "{\"jobs\":[{\"job\":32}]}", -1, 1);
    check_count(records, "{\"jobs\":[{\"array_job\":30}]}", -1, 4);
    check_count(records, "{\"jobs\":[{\"array_job\":30,\"first\":1,\"last\":2}]}", -1, 2);
    check_count(records, "{\"jobs\":[{\"array_job\":30,\"first\":0,\"last\":0,\"step\":0}]}", -1,
                1);
    check_count(records, "{\"jobs\":[{\"array_job\":30,\"first\":1,\"last\":1},{\"job\":21}]}", -1,
                2);
    check_count(records, "{\"jobs\":[{\"array_job\":31}]}", -1, 0);
    check_count(records, "{\"jobs\":[{\"array_job\":30}],\"order\":\"newest\"}", 1001, 0);
    /* One who says that he is of this array, or of job 21; and one of an array of long after. */
    json_t *claim = record(41, 0, 0, "planned"), *later = record(51, 0, 0, "planned");
    json_object_update_new(claim, json_pack("{s:i, s:i}", "array_job_id", 30, "array_task_id", 1));
    json_object_update_new(later, json_pack("{s:i, s:i, s:i}", "array_job_id", 30, "array_task_id",
                                            1, "start", 99000000));
    put_record(records, claim);
    put_record(records, later);
    json_t *component = record(42, 0, 0, "planned");
    json_object_update_new(component, json_pack("{s:i, s:i}", "het_job", 21, "het_offset", 1));
    put_record(records, component);
    check_count(records, "{\"jobs\":[{\"job\":30}]}", -1, 5);
    check_count(records, "{\"jobs\":[{\"array_job\":30,\"first\":1,\"last\":1}]}", -1, 2);
    check_count(records, "{\"jobs\":[{\"array_job\":30}]}", 1001, 1);
    check_count(records, "{\"jobs\":[{\"job\":41}]}", -1, 1);
    check_count(records, "{\"jobs\":[{\"job\":21}]}", -1, 1);
    check_count(records, "{\"jobs\":[{\"job\":42}]}", -1, 1);
}

TEST(filters)
{
    owned(records) struct tccl_records *records = new_store_at(path);
    for (int job = 1; job <= 10; job++)
        for (int step = 0; step < 2; step++)
            put_record(records, record(job, step, 0, job % 5 ? "planned" : "failed"));
    json_t *het = record(21, 0, 0, "failed");
    json_object_update_new(
        het, json_pack("{s:i, s:i, s:s}", "het_job", 20, "het_offset", 1, "nodes", "m[08-10]"));
    put_record(records, het);
    check_count(records, "{}", -1, 21);
    check_count(records, "{}", 1001, 11);
    check_count(records, "{\"users\":[1000]}", 1001, 0);
    check_count(records, "{\"users\":[1000,1001]}", -1, 21);
    check_count(records, "{\"users\":[]}", -1, 0);
    check_count(records, "{\"jobs\":[]}", -1, 0);
    check_count(records, "{\"jobs\":[{\"job\":3},{\"job\":4,\"step\":1}]}", -1, 3);
    check_count(records, "{\"jobs\":[{\"job\":3,\"step\":null,\"het_offset\":null}]}", -1, 2);
    check_count(records, "{\"jobs\":[{\"job\":20}]}", -1, 1);
    check_count(records, "{\"jobs\":[{\"job\":21}]}", -1, 1);
    check_count(records, "{\"jobs\":[{\"job\":20,\"het_offset\":1}]}", -1, 1);
    check_count(records, "{\"jobs\":[{\"job\":20,\"het_offset\":0}]}", -1, 0);
    check_count(records, "{\"start\":1000009,\"end\":1000010}", -1, 4);
    check_count(records, "{\"nodes\":[\"n4\"]}", -1, 20);
    check_count(records, "{\"nodes\":[\"n5\",\"m09\"]}", -1, 1);
    check_count(records, "{\"nodes\":[\"m9\"]}", -1, 0);
    check_count(records, "{\"states\":[\"failed\"]}", -1, 5);
    check_count(records, "{\"states\":[\"failed\",\"planned\"],\"users\":[1000]}", -1, 10);
    check_count(records, "{\"limit\":3}", -1, 21); /* pages of three */
    cleanup_json json_t *found =
        find_records(records, json_loads("{\"jobs\":[{\"job\":2},{\"job\":1}]}", 0, NULL), -1, ALL);
    for (int i = 0; i < 4; i++)
        CHECK_INT(json_integer_value(json_object_get(json_array_get(found, (size_t)i), "job")),
                  i / 2 + 1);
}

static void check_bad_filter(struct tccl_records *records, const char *text, const char *said)
{
    json_t *next;
    cleanup_json json_t *filter = json_loads(text, 0, NULL);
    CHECK(tccl_records_query(records, filter, -1, ALL, &next, ERR) == NULL);
    CHECK(next == NULL);
    CHECK_NO(!strstr(check_err.text, said), "%s: got '%s', expected '%s'\n", text, check_err.text,
             said);
}

TEST(bad_filters)
{
    owned(records) struct tccl_records *records = open_store_at(path);
    check_bad_filter(records, "[]", "must be an object");
    check_bad_filter(records, "{\"jobs\":3}", "jobs must be a list");
    check_bad_filter(records, "{\"jobs\":[3]}", "an object with a job");
    check_bad_filter(records, "{\"jobs\":[{\"job\":-1}]}", "job must be");
    check_bad_filter(records, "{\"jobs\":[{\"array_job\":0}]}", "an object with a job");
    check_bad_filter(records, "{\"jobs\":[{\"job\":1,\"array_job\":1}]}", "an object with a job");
    check_bad_filter(records, "{\"jobs\":[{\"array_job\":1,\"first\":-1}]}", "first must be");
    check_bad_filter(records, "{\"jobs\":[{\"job\":1,\"step\":\"x\"}]}", "step must be");
    check_bad_filter(records, "{\"users\":[\"root\"]}", "list of uids");
    check_bad_filter(records, "{\"start\":\"now\"}", "start must be");
    check_bad_filter(records, "{\"nodes\":[1]}", "nodes must be a list of names");
    check_bad_filter(records, "{\"states\":\"off\"}", "states must be a list");
    check_bad_filter(records, "{\"limit\":0}", "limit must be");
    check_bad_filter(records, "{\"after\":[1]}", "after must be");
    char text[4000] = "{\"users\":[1";
    for (int i = 0; i < TCCL_FILTER_USERS; i++)
        strcat(text, ",2");
    strcat(text, "]}");
    check_bad_filter(records, text, "users must be a list of at most 256");
}

/* As many jobs as a filter may name, each with all that narrows it. */
TEST(many_jobs)
{
    owned(records) struct tccl_records *records = open_store_at(path);
    char text[TCCL_FILTER_JOBS * 50 + 50] = "{\"jobs\":[";
    for (int job = 1; job <= TCCL_FILTER_JOBS; job++)
        sprintf(text + strlen(text), "%s{\"job\":%d,\"step\":1,\"het_offset\":0}",
                job > 1 ? "," : "", job);
    strcat(text, "],\"users\":[1000,1001]}");
    check_count(records, text, -1, 10);
    check_count(records, text, 1001, 5);
}

/* Small pages and large ones give the same, in the same order, also where starts are equal. */
TEST(pages)
{
    owned(records) struct tccl_records *records = new_store_at(path);
    for (int i = 0; i < 200; i++) {
        json_t *json = record(1 + rand() % 1000, rand() % 3, 0, rand() % 2 ? "off" : "planned");
        json_object_set_new(json, "start", json_integer(1000 + rand() % 20));
        put_record(records, json);
    }
    static const char *const filters[] = {"{}", "{\"states\":[\"off\"]}", "{\"users\":[1001]}"};
    for (int i = 0; i < 3; i++) {
        cleanup_json json_t *all = find_records(records, json_loads(filters[i], 0, NULL), -1, ALL);
        CHECK(json_array_size(all) > 10);
        for (int round = 0; round < 5; round++) {
            cleanup_json json_t *pages = find_records(records, json_loads(filters[i], 0, NULL), -1,
                                                      1 + (size_t)rand() % 8000);
            CHECK(json_equal(all, pages));
        }
    }
}

/* What can't be written is refused, what is there stays, and later all is well. */
TEST(full_disk)
{
    struct tccl_records *records = new_store_at(path);
    put_record(records, record(1, 0, 0, "planned"));
    struct rlimit limit, full = {.rlim_cur = 80000, .rlim_max = RLIM_INFINITY};
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    full.rlim_max = limit.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &full) == 0);
    int stored = 1, refused = 0;
    for (int job = 2; job < 200; job++) {
        cleanup_json json_t *json = record(job, 0, 0, "planned");
        int rc = tccl_records_put(records, json, ERR);
        CHECK(rc == 0 || (rc == -1 && strstr(check_err.text, path)));
        rc == 0 ? stored++ : refused++;
    }
    CHECK(refused > 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    check_count(records, "{}", -1, stored);
    put_record(records, record(1000, 0, 0, "planned"));
    tccl_records_close(records);
    records = open_store_at(path);
    check_count(records, "{}", -1, stored + 1);
    tccl_records_close(records);
}

/* A process that dies in the middle leaves what it was told is stored. */
TEST(killed)
{
    tccl_records_close(new_store_at(path));
    int pipe_ends[2], stored = 0;
    char byte;
    CHECK(pipe(pipe_ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct tccl_records *records = open_store_at(path);
        for (int job = 1;; job++) {
            put_record(records, record(job, 0, 0, "planned"));
            if (write(pipe_ends[1], "x", 1) != 1)
                _exit(1);
        }
    }
    close(pipe_ends[1]);
    while (stored < 50 && read(pipe_ends[0], &byte, 1) == 1)
        stored++;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    while (read(pipe_ends[0], &byte, 1) == 1)
        stored++;
    close(pipe_ends[0]);
    owned(records) struct tccl_records *records = open_store_at(path);
    cleanup_json json_t *found = find_records(records, json_loads("{}", 0, NULL), -1, ALL);
    CHECK((int)json_array_size(found) >= stored);
}

static void check_not_opened(const char *said)
{
    struct tccl_records *records;
    CHECK_INT(tccl_records_open(path, NULL, &records, ERR), -1);
    CHECK(records == NULL);
    CHECK_NO(!strstr(check_err.text, said) || !strstr(check_err.text, path),
             "got '%s', expected '%s'\n", check_err.text, said);
}

static void write_bytes(off_t offset, const void *bytes, size_t size)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(pwrite(fd, bytes, size, offset) == (ssize_t)size);
}

TEST(bad_stores)
{
    static const unsigned char newer[] = {0, 0, 0, 99}, strange[] = {1, 2, 3, 4};
    unlink(path);
    write_bytes(0,
                "this is no database, but longer than a header is, by far and away, honestly!!"
                "…………………………………………",
                100);
    check_not_opened("file is not a database");
    tccl_records_close(new_store_at(path));
    write_bytes(60, newer, 4); /* user_version, see the format of SQLite's header */
    check_not_opened("records of another version (schema 99");
    write_bytes(68, strange, 4); /* application id */
    check_not_opened("not one of tccl's records");
    unlink(path);
    CHECK(mkdir(path, 0700) == 0);
    check_not_opened("can't be opened");
    rmdir(path);
    CHECK(symlink("/tmp/elsewhere", path) == 0);
    check_not_opened("can't be opened");
    unlink(path);
}

SETUP
{
    snprintf(path, sizeof(path), "%s", check_at("records.db"));
}
