/* test-built.c: confirmations of what was built, and the records they belong to. */
#include "stores.h"

static char path[128];

static const char *const words[] = {"not used", "unknown", "applied", "differs"};
enum { WORDS = 4 };

/* The one record of a job, or NULL where there is none. */
static json_t *find(struct tccl_records *records, int job, const char *state)
{
    cleanup_json json_t *next = NULL;
    cleanup_json json_t *filter =
        json_pack("{s:[{s:i}], s:[s]}", "jobs", "job", job, "states", state);
    cleanup_json json_t *page = tccl_records_query(records, filter, -1, 65536, &next, NULL);
    CHECK(json_array_size(page) <= 1);
    return json_incref(json_array_get(page, 0));
}

static void check_shown(struct tccl_records *records, int job, const char *state,
                        const char *reason, const char *built, const char *built_reason)
{
    cleanup_json json_t *found = find(records, job, state);
    CHECK(found != NULL);
    CHECK_STR(json_string_value(json_object_get(found, "state")), state);
    CHECK_STR(json_string_value(json_object_get(found, "reason")), reason);
    CHECK_STR(json_string_value(json_object_get(found, "built")), built);
    CHECK_STR(json_string_value(json_object_get(found, "built_reason")), built_reason);
}

/* Whatever the order and however often: the highest word counts, and the record may come anywhere
 * between. */
static void test_orders(struct tccl_records *records)
{
    for (int job = 1; job <= 200; job++) {
        int highest = -1, record_at = rand() % 6;
        for (int i = 0; i < 6; i++) {
            int word = rand() % WORDS;
            if (i == record_at)
                put_record(records, step_record(job, "planned", 5000));
            put_record(records, built_record(job, words[word], words[word], 5000));
            highest = word > highest ? word : highest;
        }
        put_record(records, step_record(job, "planned", 5000));
        check_shown(records, job, "planned", highest == 3 ? "differs" : "",
                    tccl_built_name(tccl_built_rank(words[highest])), words[highest]);
    }
}

static void put_step(struct tccl_records *records, json_t *json, int64_t step)
{
    json_object_set_new(json, "step", json_integer(step));
    put_record(records, json);
}

/* Nobody has said anything of it; a store of before says so in the text alone. */
static json_t *silent_record(int job)
{
    json_t *record = built_record(job, "not used", "nobody has", 5000);
    json_object_set_new(record, "built_class", json_string("no call"));
    return record;
}

static int64_t states_of(struct tccl_records *records, const char *state)
{
    cleanup_json json_t *filter =
        json_pack("{s:[{s:i},{s:i},{s:i}]}", "jobs", "job", 8400, "job", 8401, "job", 8402);
    cleanup_json json_t *summary = tccl_records_summary(records, filter, -1, NULL);
    return json_integer_value(json_object_get(json_object_get(summary, "states"), state));
}

/* A job script that used no GPUs together had nothing to do, in lists, filters and summaries; one
 * of which a communicator was made, and every other step, has not used its ring. */
static void test_scripts(struct tccl_records *records)
{
    const int64_t script = 0xfffffffb;
    put_step(records, step_record(8400, "planned", 5000), script);
    put_step(records, silent_record(8400), script);
    check_shown(records, 8400, "left", "the job script used no GPUs together", "", "");
    CHECK(!find(records, 8400, "planned"));
    put_step(records, step_record(8401, "planned", 5000), script);
    put_step(records, built_record(8401, "not used", "a file of the user's", 5000), script);
    check_shown(records, 8401, "planned", "", "no", "a file of the user's");
    put_record(records, step_record(8402, "planned", 5000));
    put_record(records, silent_record(8402));
    check_shown(records, 8402, "planned", "", "no call", "nobody has");
    const char *before = "no communicator over the step's GPUs was made with this plan";
    put_record(records, step_record(8403, "planned", 5000));
    put_record(records, built_record(8403, "not used", before, 5000));
    check_shown(records, 8403, "planned", "", "no call", before);
    CHECK_INT(states_of(records, "planned"), 2);
    CHECK_INT(states_of(records, "left"), 1);
}

/* Job numbers that begin anew are other steps. */
static void test_states(struct tccl_records *records)
{
    put_record(records, step_record(302, "planned", 5000));
    put_record(records, built_record(302, "differs", "n2: x", 5000));
    put_record(records, step_record(302, "planned", 9000));
    check_shown(records, 302, "planned", "", "", "");
    put_record(records, built_record(303, "applied", "", 5000)); /* a record never comes */
    cleanup_json json_t *none = find(records, 303, "planned");
    CHECK(none == NULL);
}

static void refused(struct tccl_records *records, json_t *json, const char *said)
{
    CHECK_SAYS(tccl_records_put(records, json, ERR) == 1, said);
    json_decref(json);
}

static void test_bad(struct tccl_records *records)
{
    refused(records, built_record(400, "splendid", "", 5000), "built: unknown word");
    refused(records, built_record(400, "", "", 5000), "built: unknown word");
    refused(records, built_record(0, "applied", "", 5000), "job: must be");
    refused(records, built_record(400, "applied", "", -1), "start: must be");
    refused(records, json_pack("{s:i, s:s}", "job", 1, "built", "applied"), "step: is missing");
    refused(records, json_pack("{s:i, s:i, s:i, s:i}", "job", 1, "step", 0, "start", 1, "built", 4),
            "built: must be a text");
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    put_record(records, step_record(401, "planned", 5000));
    put_record(records, built_record(401, "unknown", text, 5000));
    cleanup_json json_t *found = find(records, 401, "planned");
    CHECK_INT(json_string_length(json_object_get(found, "built_reason")), TCCL_OUTCOME_REASON);
}

TEST(built)
{
    snprintf(path, sizeof(path), "%s", check_at("records.db"));
    owned(records) struct tccl_records *records = open_store_at(path);
    test_orders(records);
    test_scripts(records);
    /* What was found out first of the same weight stays. */
    put_record(records, step_record(300, "planned", 5000));
    check_shown(records, 300, "planned", "", "", "");
    put_record(records, built_record(300, "differs", "n2: one", 5000));
    put_record(records, built_record(300, "differs", "n3: two", 5000));
    check_shown(records, 300, "planned", "n2: one", "no", "n2: one");
    cleanup_json json_t *none = find(records, 300, "yes");
    CHECK(none == NULL);
    test_states(records);
    test_bad(records);
    /* A record can't bring its own. */
    json_t *own = step_record(402, "planned", 5000);
    json_object_set_new(own, "built", json_string("applied"));
    put_record(records, own);
    check_shown(records, 402, "planned", "", "", "");
}
