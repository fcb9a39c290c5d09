/* test-comment: what tccl-comment says of a job, how it keeps other people's text, and what it
 * remembers. */
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "check.h"
#include "comment/comment-list.h"
#include "comment/comment-seen.h"
#include "comment/comment-state.h"
#include "comment/comment-text.h"

static json_t *record_of(json_int_t job, json_int_t step, const char *state, json_int_t gpus,
                         double gbps)
{
    json_t *record = json_pack("{s:s, s:I, s:I, s:s, s:I, s:i, s:f, s:f, s:i, s:s, s:s, s:i, s:i}",
                               "cluster", "c", "job", job, "step", step, "state", state, "gpus",
                               gpus, "n_nodes", 4, "gbps", gbps, "ratio", gbps / 5, "start", 1000,
                               "built", "", "reason", "", "restart", 0, "run", 0);
    CHECK(record != NULL);
    return record;
}

static void set_text(json_t *record, const char *name, const char *text)
{
    json_object_set_new(record, name, json_string(text));
}

static void set_number(json_t *record, const char *name, json_int_t number)
{
    json_object_set_new(record, name, json_integer(number));
}

/* The comment of job 7 made of these records, which are taken over. */
static void check_text(json_t *records, const char *expected)
{
    struct comment_job job = {.cluster = "c", .job = 7};
    char text[COMMENT_SIZE] = "";
    CHECK_INT(comment_of_job(records, &job, text), *expected != '\0');
    CHECK_STR(text, expected);
    json_decref(records);
}

static void check_step(const char *state, const char *built, const char *reason,
                       const char *expected)
{
    json_t *record = record_of(7, 0, state, 16, 9.84);
    set_text(record, "built", built);
    set_text(record, "reason", reason);
    check_text(json_pack("[o]", record), expected);
}

static void test_states(void)
{
    check_step("applied", "", "", "tccl: ring 4 nodes 16 GPUs 9.8 GB/s 1.97x");
    check_step("applied", "applied", "", "tccl: ring 4 nodes 16 GPUs 9.8 GB/s 1.97x");
    check_step("applied", "not used", "", "tccl: ring 4 nodes 16 GPUs 9.8 GB/s 1.97x, not used");
    check_step("partial", "", "n2: no answer",
               "tccl: ring 4 nodes 16 GPUs 9.8 GB/s 1.97x, partial: n2: no answer");
    check_step("differs", "differs", "", "tccl: ring 4 nodes 16 GPUs 9.8 GB/s 1.97x, differs");
    check_step("fallback", "", "n2: connection refused", "tccl: no ring: n2: connection refused");
    check_step("nothing-to-do", "", "NCCL's own ring is as fast (5.1 GB/s)",
               "tccl: no ring: NCCL's own ring is as fast (5.1 GB/s)");
    check_step("nothing-to-do", "", "", "");
    check_step("off", "", "", "");
    json_t *one = record_of(7, 0, "applied", 0, 3);
    set_number(one, "n_nodes", 1);
    set_number(one, "ratio", 0);
    check_text(json_pack("[o]", one), "tccl: ring 3.0 GB/s");
}

/* The same whatever the order of the records. */
static void check_both_ways(json_t *a, json_t *b, const char *expected)
{
    check_text(json_pack("[OO]", a, b), expected);
    check_text(json_pack("[oo]", b, a), expected);
}

static json_t *with(json_t *record, const char *name, const char *text)
{
    set_text(record, name, text);
    return record;
}

static void test_steps(void)
{
    check_both_ways(record_of(7, 0, "applied", 16, 9), record_of(7, 1, "applied", 8, 12),
                    "tccl: ring 4 nodes 16 GPUs 9.0 GB/s 1.80x (2 steps)");
    check_both_ways(record_of(7, 0, "applied", 16, 9), record_of(7, 1, "applied", 16, 12),
                    "tccl: ring 4 nodes 16 GPUs 12.0 GB/s 2.40x (2 steps)");
    check_both_ways(record_of(7, 0, "applied", 16, 9),
                    with(record_of(7, 1, "fallback", 0, 0), "reason", "no profile"),
                    "tccl: ring 4 nodes 16 GPUs 9.0 GB/s 1.80x (2 steps, 1 without a ring)");
    check_both_ways(with(record_of(7, 0, "applied", 16, 9), "built", "not used"),
                    with(record_of(7, 1, "fallback", 0, 0), "reason", "no profile"),
                    "tccl: no ring: no profile (2 steps, 1 without a ring)");
    check_both_ways(with(record_of(7, 0, "applied", 4, 9), "built", "applied"),
                    with(record_of(7, 1, "differs", 16, 9), "reason", "n1"),
                    "tccl: ring 4 nodes 4 GPUs 9.0 GB/s 1.80x (2 steps)");
    check_both_ways(record_of(7, 0, "off", 0, 0), record_of(7, 1, "applied", 16, 9),
                    "tccl: ring 4 nodes 16 GPUs 9.0 GB/s 1.80x");
    check_both_ways(record_of(8, 0, "applied", 32, 99),
                    with(record_of(7, 1, "applied", 32, 99), "cluster", "other"), "");
}

/* Of a job that was requeued only the last run counts. A batch step has no restart count. */
static void test_requeued(void)
{
    json_t *old = record_of(7, 0, "applied", 16, 99), *new = record_of(7, 0, "applied", 16, 9);
    set_number(new, "restart", 1);
    check_both_ways(old, new, "tccl: ring 4 nodes 16 GPUs 9.0 GB/s 1.80x");
    old = record_of(7, 4294967291, "applied", 16, 99);
    new = record_of(7, 4294967291, "applied", 16, 9);
    set_number(old, "run", 1000000);
    set_number(new, "run", 2000000);
    check_both_ways(old, new, "tccl: ring 4 nodes 16 GPUs 9.0 GB/s 1.80x");
}

/* Where a text is cut, too, our part ends with what it begins with: it does not grow by being
 * written again. */
static void check_comma_at_cut(void)
{
    char reason[2 * COMMENT_SIZE];
    for (size_t comma = COMMENT_SIZE - 40; comma < COMMENT_SIZE; comma++) {
        char text[COMMENT_SIZE];
        cleanup_free char *merged = NULL, *again = NULL;
        struct comment_job job = {.cluster = "c", .job = 7};
        json_t *record = record_of(7, 0, "fallback", 16, 9);
        memset(reason, 'x', sizeof(reason) - 1);
        reason[sizeof(reason) - 1] = '\0';
        memcpy(reason + comma, ", ", 2);
        set_text(record, "reason", reason);
        cleanup_json json_t *records = json_pack("[o]", record);
        CHECK(comment_of_job(records, &job, text));
        CHECK_INT(comment_merge("tccl: no ring: y; yours", text, &merged), 1);
        CHECK_INT(comment_merge(merged, text, &again), 0);
    }
}

static void test_hostile_text(void)
{
    check_step("fallback", "", "a\x1b[31mb\n; c\x7f\xc2\x9b", "tccl: no ring: a?[31mb?, c???");
    check_step("fallback", "", "d\xe2\x80\xae\xf0\x9f\x98\x80 é…", "tccl: no ring: d??????? é…");
    check_step("fallback", "", "n1,n2, n3;n4|n5,", "tccl: no ring: n1, n2, n3, n4/n5");
    check_comma_at_cut();
    json_t *record = record_of(7, 0, "fallback", 16, 9);
    char longest[600];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    set_text(record, "reason", longest);
    cleanup_json json_t *records = json_pack("[oo]", record, record_of(7, 1, "fallback", 16, 9));
    struct comment_job job = {.cluster = "c", .job = 7};
    char text[COMMENT_SIZE];
    set_text(record, "start", "none");
    CHECK(comment_of_job(records, &job, text));
    CHECK(strlen(text) < COMMENT_SIZE);
    set_text(json_array_get(records, 1), "reason", longest);
    CHECK(comment_of_job(records, &job, text));
    CHECK_INT(strlen(text), COMMENT_SIZE - 1);
    CHECK(strstr(text, "xxx… (2 steps)") != NULL);
}

static void check_merge(const char *existing, const char *own, const char *expected)
{
    cleanup_free char *merged = NULL;
    CHECK_INT(comment_merge(existing, own, &merged), 1);
    CHECK_STR(merged, expected);
    cleanup_free char *again = NULL;
    CHECK_INT(comment_merge(merged, own, &again), 0);
    CHECK(again == NULL);
}

static void test_merge(void)
{
    check_merge(NULL, "tccl: ring 4 GPUs", "tccl: ring 4 GPUs");
    check_merge("", "tccl: ring 4 GPUs", "tccl: ring 4 GPUs");
    check_merge("mine", "tccl: ring 4 GPUs", "mine; tccl: ring 4 GPUs");
    check_merge("mine; tccl: no ring: x", "tccl: ring 4 GPUs", "mine; tccl: ring 4 GPUs");
    check_merge("tccl: ring 2 GPUs; yours", "tccl: no ring: y", "tccl: no ring: y; yours");
    check_merge("a; b; tccl: ring 2 GPUs; c; d", "tccl: ring 4 GPUs",
                "a; b; tccl: ring 4 GPUs; c; d");
    check_merge("tccl: ring 2 GPUs, not used,yours, too", "tccl: ring 4 GPUs",
                "tccl: ring 4 GPUs,yours, too");
    check_merge("a; tccl: ring 2 GPUs|b", "tccl: ring 4 GPUs", "a; tccl: ring 4 GPUs|b");
    check_merge("a; tccl: ring 2 GPUs;b", "tccl: ring 4 GPUs", "a; tccl: ring 4 GPUs;b");
    check_merge("tccl: ring 2 GPUs\nb", "tccl: ring 4 GPUs", "tccl: ring 4 GPUs\nb");
    check_merge("tccl: please look at this", "tccl: ring 4 GPUs",
                "tccl: please look at this; tccl: ring 4 GPUs");
    check_merge("see tccl: ring 2 GPUs", "tccl: ring 4 GPUs",
                "see tccl: ring 2 GPUs; tccl: ring 4 GPUs");
    check_merge("it's \"so\" \\ `x` $(y)\n%s;", "tccl: ring 4 GPUs",
                "it's \"so\" \\ `x` $(y)\n%s;; tccl: ring 4 GPUs");
    cleanup_free char *big = malloc(COMMENT_WHOLE + 1), *merged = NULL;
    memset(big, 'b', COMMENT_WHOLE);
    big[COMMENT_WHOLE] = '\0';
    CHECK_INT(comment_merge(big, "tccl: ring 4 GPUs", &merged), -1);
    CHECK(merged == NULL);
}

/* Other people's parts, in random texts, are all there afterwards, in their order. */
static void test_merge_keeps(void)
{
    static const char *const parts[] = {"a", "b c", "", ";", "tccl:", "x;y", "tccl: rings", " "};
    srand((unsigned)check_seed());
    for (int round = 0; round < 2000; round++) {
        char existing[256] = "", others[256] = "", expected[300];
        int count = rand() % 5, own_at = rand() % 6;
        for (int i = 0; i < count; i++) {
            const char *part = parts[rand() % (int)(sizeof(parts) / sizeof(*parts))];
            if (i == own_at)
                strcat(existing, i ? "; tccl: ring 1 GPUs" : "tccl: ring 1 GPUs");
            if (*existing)
                strcat(existing, "; ");
            strcat(existing, part);
            strcat(strcat(others, "|"), part);
        }
        cleanup_free char *merged = NULL;
        CHECK_INT(comment_merge(existing, "tccl: ring 9 GPUs", &merged), 1);
        const char *own = merged ? strstr(merged, "tccl: ring 9 GPUs") : NULL;
        CHECK(own != NULL);
        if (!own)
            continue;
        /* With our part put back as it was, or taken away, the text is the one before. */
        bool replaced = strstr(existing, "tccl: ring 1 GPUs") != NULL;
        const char *behind = own + strlen("tccl: ring 9 GPUs");
        if (replaced)
            snprintf(expected, sizeof(expected), "%.*stccl: ring 1 GPUs%s", (int)(own - merged),
                     merged, behind);
        else
            snprintf(expected, sizeof(expected), "%.*s", (int)(own - merged) - (*existing ? 2 : 0),
                     merged);
        CHECK_STR(expected, existing);
    }
}

static struct comment_job job_of(uint32_t number, int64_t started)
{
    return (struct comment_job){.cluster = "c", .job = number, .started = started};
}

static void test_list(void)
{
    struct comment_list list;
    int64_t next;
    comment_list_init(&list);
    CHECK(comment_list_due(&list, 100, &next) == NULL);
    CHECK_INT(next, -1);
    for (uint32_t i = 1; i <= COMMENT_LIST_MOST; i++) {
        struct comment_job job = job_of(i, i);
        if (comment_list_add(&list, &job, 50) != 0)
            CHECK(!"room");
    }
    struct comment_job again = job_of(1, 999), more = job_of(0x80000000, 1);
    CHECK_INT(comment_list_add(&list, &again, 500), 0);
    CHECK_INT(list.count, COMMENT_LIST_MOST);
    CHECK(comment_list_due(&list, 49, &next) == NULL);
    CHECK_INT(next, 50);
    struct comment_todo *first = comment_list_due(&list, 50, &next);
    CHECK(first && first->job.job == 1 && first->job.started == 999);
    comment_list_later(&list, first, 60);
    CHECK_INT(comment_list_due(&list, 50, &next)->job.job, 2);
    CHECK_INT(comment_list_add(&list, &more, 50), 1);
    CHECK_INT(list.count, COMMENT_LIST_MOST);
    CHECK_INT(comment_list_due(&list, 50, &next)->job.job, 3);
    comment_list_clear(&list);
    CHECK_INT(list.count, 0);
}

static void test_seen(void)
{
    struct comment_seen seen = {0};
    cleanup_json json_t *record = record_of(7, 0, "applied", 16, 9.8);
    CHECK_INT(comment_seen_add(&seen, record), 1);
    CHECK_INT(comment_seen_add(&seen, record), 0);
    set_text(record, "built", "applied");
    CHECK_INT(comment_seen_add(&seen, record), 1);
    CHECK_INT(comment_seen_add(&seen, record), 0);
    for (int i = 0; i < 5000; i++) {
        set_number(record, "step", i + 1);
        set_number(record, "start", 2000 + i);
        CHECK_INT(comment_seen_add(&seen, record), 1);
    }
    CHECK_INT(seen.count, 5001);
    CHECK_INT(comment_seen_forget(&seen, 4500), 0);
    CHECK_INT(seen.count, 2500);
    CHECK_INT(comment_seen_add(&seen, record), 0);
    comment_seen_clear(&seen);
}

static void test_seen_is_bounded(void)
{
    struct comment_seen seen = {0};
    cleanup_json json_t *record = record_of(7, 0, "applied", 16, 9.8);
    for (int i = 0; i < COMMENT_SEEN_MOST + 10; i++) {
        set_number(record, "step", i);
        set_number(record, "start", i);
        if (comment_seen_add(&seen, record) != 1)
            CHECK(!"new");
    }
    CHECK(seen.count <= COMMENT_SEEN_MOST);
    CHECK(seen.count >= COMMENT_SEEN_MOST / 2);
    CHECK_INT(comment_seen_add(&seen, record), 0);
    comment_seen_clear(&seen);
}

static char folder[] = "/tmp/tccl-test-comment-XXXXXX";

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs(text, file);
    fclose(file);
}

static void test_state(void)
{
    struct comment_state state, back;
    struct tccl_error err = {0};
    struct comment_job a = job_of(12, 1000), b = job_of(13, 2000);
    struct stat status;
    char path[64];
    int64_t next;
    cleanup_json json_t *record = record_of(7, 0, "applied", 16, 9.8);
    snprintf(path, sizeof(path), "%s/comment.json", folder);
    comment_state_init(&state);
    CHECK_INT(comment_state_read(&state, path, &err), 1);
    CHECK_STR(err.text, "");
    state.cursor = 123456;
    comment_list_add(&state.list, &a, 10);
    comment_list_add(&state.list, &b, 10);
    comment_seen_add(&state.seen, record);
    CHECK_INT(comment_state_write(&state, path, &err), 0);
    CHECK_INT(stat(path, &status), 0);
    CHECK_INT(status.st_mode & 0777, 0600);
    comment_state_init(&back);
    CHECK_INT(comment_state_read(&back, path, &err), 0);
    CHECK_STR(err.text, "");
    CHECK_INT(back.cursor, 123456);
    CHECK_INT(back.list.count, 2);
    struct comment_todo *first = comment_list_due(&back.list, 1, &next);
    CHECK(first && first->job.job == 12 && first->job.started == 1000 &&
          strcmp(first->job.cluster, "c") == 0);
    CHECK_INT(comment_seen_add(&back.seen, record), 0);
    comment_state_clear(&state);
    comment_state_clear(&back);
    unlink(path);
}

static void test_bad_state(void)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"version\":2,\"cursor\":1,\"jobs\":[],\"seen\":[]}",
        "{\"version\":1,\"cursor\":-1,\"jobs\":[],\"seen\":[]}",
        "{\"version\":1,\"cursor\":1,\"seen\":[]}",
        "{\"version\":1,\"cursor\":1,\"jobs\":[{\"job\":0}],\"seen\":[]}",
        "{\"version\":1,\"cursor\":1,\"jobs\":[7],\"seen\":[]}",
        "{\"version\":1,\"cursor\":1,\"jobs\":[{\"job\":1}],\"seen\":[\"1 2\"]}",
        "{\"version\":1,\"cursor\":1,\"jobs\":[],\"seen\":[\"1 0 5\"]}",
        "{\"version\":1,\"cursor\":1,\"jobs\":[],\"seen\":[1]}",
    };
    char path[64];
    snprintf(path, sizeof(path), "%s/comment.json", folder);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct comment_state state;
        struct tccl_error err = {0};
        write_text(path, bad[i]);
        comment_state_init(&state);
        CHECK_INT(comment_state_read(&state, path, &err), -1);
        CHECK(strstr(err.text, path) != NULL);
        CHECK(state.cursor == 0 && state.list.count == 0 && state.seen.count == 0);
        comment_state_clear(&state);
    }
    unlink(path);
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    test_states();
    test_steps();
    test_requeued();
    test_hostile_text();
    test_merge();
    test_merge_keeps();
    test_list();
    test_seen();
    test_seen_is_bounded();
    test_state();
    test_bad_state();
    rmdir(folder);
    return check_result();
}
