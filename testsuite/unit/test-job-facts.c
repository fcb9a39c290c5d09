/* What squeue says of a job: which lines are believed, and what comes of a record by them. */
#include "check.h"
#include "tccld/jobs/jobs.h"

enum { ROUNDS = 20000 };

static int read_job(const char *output, struct tccl_step *facts, struct tccl_error *err)
{
    *err = (struct tccl_error){""};
    return job_facts_read(output, 12, facts, err);
}

TEST(good)
{
    struct tccl_step facts;
    CHECK_INT(read_job("12|1000|12|gpu|normal|physics\n", &facts, ERR), 0);
    CHECK(facts.key.job == 12 && facts.uid == 1000 && !facts.array_job && !facts.key.het_job);
    CHECK_STR(facts.partition, "gpu");
    CHECK_STR(facts.qos, "normal");
    CHECK_STR(facts.account, "physics");
    CHECK_INT(read_job("12|0|12|gpu|(null)|(null)\n", &facts, ERR), 0);
    CHECK(!facts.account[0] && !facts.qos[0]);
    CHECK_INT(read_job("9|5|9_4|a|b|c\n12|5|9_3|p||\n112|5|9_5|a|b|c\n", &facts, ERR), 0);
    CHECK(facts.array_job == 9 && facts.array_task == 3 && !facts.key.het_job);
    CHECK_STR(facts.partition, "p");
    CHECK_INT(read_job("11|5|11+0|a|b|c\n12|5|11+1|p|q|r\n12|5|11+1|p|q|r\n", &facts, ERR), 0);
    CHECK(facts.key.het_job == 11 && facts.key.het_offset == 1 && !facts.array_job);
}

/* An account may be what a user likes: it adds lines, but none that is believed. */
TEST(bad)
{
    static const struct {
        const char *output, *why;
    } cases[] = {
        {"", "does not know it"},
        {"112|0|112|p|q|a\n", "does not know it"},
        {"12|0|13|p|q|a\n", "squeue prints"},
        {"12|0|12|p|q\n", "squeue prints"},
        {"12|x|12|p|q|a\n", "squeue prints"},
        {"12|0|9_[3-4]|p|q|a\n", "squeue prints"},
        {"12|0|12+|p|q|a\n", "squeue prints"},
        {"12|99999999999|12|p|q|a\n", "squeue prints"},
        {"12|7|12|p|q|a\n12|7|12|free|q|a\n", "two different lines"},
    };
    struct tccl_step facts;
    for (size_t i = 0; i < COUNT(cases); i++) {
        CHECK_SAYS(read_job(cases[i].output, &facts, ERR) == -1, cases[i].why);
    }
    CHECK_INT(read_job("12|7|12|p|q|a|b\nx|0|12|free|q|a\n", &facts, ERR), 0);
    CHECK_STR(facts.partition, "p");
    CHECK_STR(facts.account, "a|b");
}

/* Nothing that it may print is read beyond its end; what is believed is a line of it. */
TEST(random)
{
    static const char alphabet[] = "12|0_+[\n-pq";
    struct tccl_step facts;
    int believed = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char text[40];
        size_t length =
            (size_t)snprintf(text, sizeof(text), "%s", random() % 2 ? "12|0|12|p|q" : "");
        while (length + 1 < sizeof(text) && random() % 32)
            text[length++] = alphabet[(size_t)random() % (sizeof(alphabet) - 1)];
        text[length] = '\0';
        cleanup_free char *copy = strdup(text);
        if (read_job(copy, &facts, ERR) != 0)
            continue;
        believed++;
        CHECK_INT(facts.key.job, 12);
        CHECK(strstr(text, facts.account) != NULL);
    }
    CHECK(believed > 0);
}

static void check_record(const json_t *record, const char *expected)
{
    cleanup_json json_t *wanted = json_loads(expected, 0, NULL);
    CHECK(wanted && json_equal(record, wanted));
    if (!json_equal(record, wanted)) {
        cleanup_free char *text = json_dumps(record, JSON_SORT_KEYS);
        printf("%s\n", text);
    }
}

TEST(record)
{
    struct tccl_step facts = {
        .key = {.job = 12, .het_job = 11, .het_offset = 1}, .partition = "gpu", .account = "a"};
    cleanup_json json_t *claimed =
        json_loads("{\"job\": 12, \"partition\": \"free\", \"qos\": \"high\", \"array_job_id\": 3,"
                   " \"array_task_id\": 4, \"het_job\": 5}",
                   0, NULL);
    cleanup_json json_t *record = json_deep_copy(claimed);
    CHECK_INT(job_claims_mark(claimed), 0);
    CHECK_STR(json_string_value(json_object_get(claimed, "claimed")), "partition,qos,array,het");
    CHECK_INT(job_facts_put(&facts, record), 0);
    check_record(record, "{\"job\": 12, \"partition\": \"gpu\", \"account\": \"a\", \"qos\": \"\","
                         " \"array_job_id\": 0, \"array_task_id\": 0, \"het_job\": 11,"
                         " \"het_offset\": 1, \"claimed\": \"\"}");
    cleanup_json json_t *bare = json_object();
    CHECK_INT(job_claims_mark(bare), 0);
    check_record(bare, "{\"claimed\": \"\"}");
}
