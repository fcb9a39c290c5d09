/* test-reason.c: the classes of reasons (base/error.h), and that whoever gives a step a reason
 * names its class: texts are for people, and nothing is read out of them. */
#include <ctype.h>

#include "base/fileio.h"
#include "check.h"
#include "client/message.h"
#include "client/outcome.h"

/* Words are there once each, short, and lead to their numbers. */
TEST(words)
{
    CHECK_STR(tccl_reason_words[TCCL_REASON_NONE], "");
    CHECK_STR(tccl_reason_words[TCCL_REASON_OTHER], "other");
    CHECK(tccl_reason_words[TCCL_REASON_END] == NULL);
    CHECK_INT(TCCL_REASON_OTHER + 1, TCCL_REASON_END);
    for (int i = TCCL_REASON_NONE + 1; i < TCCL_REASON_END; i++) {
        const char *word = tccl_reason_words[i];
        CHECK(*word && strlen(word) < 20);
        CHECK(strspn(word, "abcdefghijklmnopqrstuvwxyzGPUNCL ") == strlen(word));
        CHECK_INT(tccl_reason_named(word), i);
    }
    CHECK_INT(tccl_reason_named(""), TCCL_REASON_NONE);
    CHECK_INT(tccl_reason_named(NULL), TCCL_REASON_NONE);
    CHECK_INT(tccl_reason_named("no"), TCCL_REASON_OTHER);
}

/* A summary counts against a node what is wrong there, and not what nobody there could help. */
TEST(of_node)
{
    static const enum tccl_reason of_step[] = {TCCL_REASON_NONE, TCCL_REASON_POLICY,
                                               TCCL_REASON_NO_GPU, TCCL_REASON_UNKNOWN_NCCL,
                                               TCCL_REASON_NO_GAIN};
    static const enum tccl_reason of_node[] = {TCCL_REASON_NO_PROFILE, TCCL_REASON_NO_ANSWER,
                                               TCCL_REASON_OTHER};
    for (size_t i = 0; i < COUNT(of_step); i++)
        CHECK(!tccl_reason_of_node(of_step[i]));
    for (size_t i = 0; i < COUNT(of_node); i++)
        CHECK(tccl_reason_of_node(of_node[i]));
}

static enum tccl_reason class_read(const char *member)
{
    char text[400];
    cleared_by(tccl_outcome_clear) struct tccl_outcome plan = {0};
    snprintf(
        text, sizeof(text),
        "{\"v\":1,\"type\":\"plan\",\"key\":{\"job\":1,\"step\":0,\"cluster\":\"c\","
        "\"het_job\":0,\"het_offset\":0,\"restart\":0,\"run\":0},\"state\":\"failed\","
        "\"reason\":\"why\",\"source\":\"\",\"gbps\":0,\"baseline_gbps\":0,\"bound_gbps\":0%s}",
        member);
    cleanup_json json_t *json = tccl_message_parse(text, strlen(text), NULL);
    CHECK_OK(tccl_plan_from_json(json, NULL, 0, 0, &plan, ERR));
    return plan.cause;
}

/* A class of a newer version is "other"; an older one sends none. */
TEST(versions)
{
    CHECK_INT(class_read(",\"reason_class\":\"munge\""), TCCL_REASON_MUNGE);
    CHECK_INT(class_read(",\"reason_class\":\"of next year\""), TCCL_REASON_OTHER);
    CHECK_INT(class_read(",\"reason_class\":\"\""), TCCL_REASON_OTHER);
    CHECK_INT(class_read(""), TCCL_REASON_OTHER);
    struct tccl_outcome outcome = {.state = TCCL_STATE_FAILED};
    tccl_outcome_say(&outcome, TCCL_REASON_MUNGE, "%s", "why");
    CHECK(outcome.cause == TCCL_REASON_MUNGE && strcmp(outcome.reason, "why") == 0);
    tccl_outcome_say(&outcome, TCCL_REASON_NONE, "why");
    CHECK_INT(outcome.cause, TCCL_REASON_OTHER);
    tccl_outcome_say(&outcome, TCCL_REASON_NONE, "%s", "");
    CHECK_INT(outcome.cause, TCCL_REASON_NONE);
}

/* An error keeps the class of the first text, and may be given one later. */
TEST(errors)
{
    struct tccl_error err = {0}, other = {0};
    tccl_fail_as(&err, TCCL_REASON_MUNGE, "first");
    tccl_fail_as(&err, TCCL_REASON_VERSION, "second");
    tccl_fail_because(&err, TCCL_REASON_VERSION);
    tccl_fail_in(&err, "where");
    CHECK(err.reason == TCCL_REASON_MUNGE && strcmp(err.text, "where: first") == 0);
    tccl_fail(&other, "first");
    CHECK_INT(other.reason, TCCL_REASON_NONE);
    tccl_fail_because(&other, TCCL_REASON_VERSION);
    CHECK_INT(other.reason, TCCL_REASON_VERSION);
    other = (struct tccl_error){0};
    tccl_fail_with(&other, &err);
    CHECK(other.reason == TCCL_REASON_MUNGE && strcmp(other.text, err.text) == 0);
}

/* Who gives reasons, the place of the class among the arguments, and how many calls there are at
 * least. What is computed there comes from an error, a message or another outcome. */
static const struct {
    const char *file, *call;
    int least;
} sources[] = {
    {"profiler/tccld/join/step.c", " step_fail(step, ", 1},
    {"profiler/tccld/join/step.c", " step_fail_at(step, ", 2},
    {"profiler/tccld/join/join.c", " step_fail_at(step, ", 3},
    {"profiler/tccld/join/probe.c", " step_fail(step, ", 2},
    {"profiler/tccld/join/probe.c", " step_fail_at(step, ", 10},
    {"profiler/tccld/join/children.c", " step_fail(step, ", 2},
    {"profiler/tccld/join/step-report.c", " step_fail_at(step, ", 1},
    {"profiler/tccld/join/answer.c", " answer_without(step, ", 2},
    {"profiler/tccld/join/step-outcome.c", "tccl_outcome_say(outcome, ", 4},
    {"profiler/tccld/net/link.c", " fail(link, ", 12},
    {"spank/plugin/spank-remote.c", " fall_back(", 9},
};

/* Is the class named, or computed by something that has one? "other" is nobody's choice. */
static bool has_class(const char *argument)
{
    static const char *const computed[] = {
        "err.reason", "err->reason",       "report->cause",       "cause",
        "reason, ",   "*join->foreseen ?", "tccl_message_reason("};
    static const char named[] = "TCCL_REASON_";
    if (strncmp(argument, named, strlen(named)) == 0)
        return strncmp(argument + strlen(named), "OTHER", 5) != 0 &&
               strncmp(argument + strlen(named), "NONE", 4) != 0;
    for (size_t i = 0; i < COUNT(computed); i++)
        if (strncmp(argument, computed[i], strlen(computed[i])) == 0)
            return true;
    return strstr(argument, "early.reason") == argument + strlen("link->");
}

static void test_sources(const char *root)
{
    for (size_t i = 0; i < COUNT(sources); i++) {
        char path[512];
        cleanup_free char *source = NULL;
        size_t size;
        int found = 0;
        snprintf(path, sizeof(path), "%s/%s", root, sources[i].file);
        CHECK_INT(tccl_read_file(path, 1 << 20, &source, &size, NULL), 0);
        for (const char *at = source; at && (at = strstr(at, sources[i].call));) {
            at += strlen(sources[i].call);
            at += strspn(at, " \n");
            if (strncmp(at, "enum ", 5) == 0)
                continue; /* its definition */
            found++;
            if (has_class(at))
                continue;
            CHECK_NO(true, "%s: a reason without a class: %.60s\n", path, at);
        }
        if (found < sources[i].least)
            fprintf(stderr, "%s: only %d calls of \"%s\"\n", path, found, sources[i].call);
        CHECK(found >= sources[i].least);
    }
}

TEST(texts)
{
    const char *root = getenv("TCCL_SOURCES");
    CHECK(root != NULL);
    if (root)
        test_sources(root);
}
