/* Frames and messages: what is written is read again; what is malformed is refused with its place.
 */
#include "client/frame.h"
#include "client/key.h"
#include "client/message.h"
#include "client/outcome.h"
#include "client/step-fields.h"

#include <sys/socket.h>

#include "base/clock.h"
#include "check.h"

static char *node_names[] = {"n1", "n2", "node-3.cluster"};

static struct tccl_step sample(void)
{
    return (struct tccl_step){.key = {"c1", 1234, 1233, 1, 0xfffffffb, 2, 0},
                              .node = 1,
                              .n_nodes = 3,
                              .nodes = node_names,
                              .gres = {0, 2, 3},
                              .n_gres = 3,
                              .mode = TCCL_MODE_REQUIRE,
                              .uid = 1000,
                              .gid = 4294967294u,
                              .timeout_ms = 10000,
                              .min_nodes = 2,
                              .min_gpus = 8,
                              .array_job = 1230,
                              .array_task = 4,
                              .account = "alice",
                              .job_name = "caf\xc3\xa9 \xff \"x\"\n"};
}

TEST(join)
{
    struct tccl_step join = sample();
    cleanup_json json_t *json = tccl_join_to_json(&join, ERR);
    cleanup_free char *text = tccl_message_text(json);
    CHECK(text != NULL);
    cleanup_json json_t *again = tccl_message_parse(text, strlen(text), ERR);
    CHECK_STR(tccl_message_type(again), "join");
    struct tccl_step *message = tccl_join_from_json(again, ERR);
    CHECK_STR(check_err.text, "");
    if (!message)
        return;
    const struct tccl_step *read = message;
    CHECK(tccl_key_equal(&read->key, &join.key));
    CHECK_INT(read->n_nodes, 3);
    CHECK_STR(read->nodes[2], "node-3.cluster");
    CHECK_INT(read->n_gres, 3);
    CHECK_INT(read->gres[1], 2);
    CHECK_INT(read->mode, TCCL_MODE_REQUIRE);
    CHECK_INT(read->gid, 4294967294u);
    CHECK_INT(read->min_gpus, 8);
    CHECK_INT(read->array_job, 1230);
    CHECK_INT(read->array_task, 4);
    CHECK_STR(read->account, "alice");
    CHECK(!read->partition[0] && !read->reason[0]);
    CHECK(strncmp(read->job_name, "caf", 3) == 0 && strchr(read->job_name, '\n') != NULL);
    tccl_step_free(message);
}

/* The largest step: as many nodes as there may be, with names of 40 characters. share: they have
 * all but a number in common; otherwise nothing can be drawn together. */
static void check_largest(bool share)
{
    static char text[TCCL_MAX_NODES][41];
    static const char *names[TCCL_MAX_NODES];
    cleared_by(tccl_step_clear) struct tccl_step join = sample();
    for (int i = 0; i < TCCL_MAX_NODES; i++) {
        snprintf(text[i], sizeof(text[i]),
                 share ? "gpu-partition-of-the-large-system-%06d" : "%06d", i);
        for (size_t at = strlen(text[i]); at < 40; at++)
            text[i][at] = share ? 'z' : (char)('a' + i % 2);
        names[i] = text[i];
    }
    join.nodes = NULL;
    CHECK_INT(tccl_step_set_nodes(&join, names, TCCL_MAX_NODES), 0);
    cleanup_json json_t *json = tccl_join_to_json(&join, ERR);
    cleanup_free char *message = tccl_message_text(json);
    CHECK(message && strlen(message) < (share ? 1000 : TCCL_FRAME_UNIX));
    CHECK(share || (message && strlen(message) > (size_t)TCCL_MAX_NODES * 41));
    struct tccl_step *read = tccl_join_from_json(json, ERR);
    CHECK_STR(check_err.text, "");
    CHECK(read && read->n_nodes == TCCL_MAX_NODES);
    for (int i = 0; read && i < TCCL_MAX_NODES; i++)
        if (strcmp(read->nodes[i], names[i]) != 0) {
            CHECK_STR(read->nodes[i], names[i]);
            break;
        }
    tccl_step_free(read);
}

/* A text is cut between characters, and no further than it must. */
TEST(put_text)
{
    static const struct {
        const char *text, *kept;
        size_t max;
    } cuts[] = {{"abc", "abc", 3},
                {"abcd", "abc", 3},
                {"\u8a13\u7df4", "\u8a13\u7df4", 6},
                {"\u8a13\u7df4", "\u8a13", 5},
                {"\u8a13\u7df4", "\u8a13", 3},
                {"\u8a13\u7df4", "", 2},
                {"a\u00e9\u00e9x", "a\u00e9\u00e9", 5},
                {"a\xff\xffx", "a??", 3}};
    for (size_t i = 0; i < COUNT(cuts); i++) {
        cleanup_json json_t *json = json_object();
        CHECK_INT(tccl_put_text(json, "x", cuts[i].text, cuts[i].max), 0);
        CHECK_STR(json_string_value(json_object_get(json, "x")), cuts[i].kept);
    }
}

/* Each change of a good JOIN must be refused, naming the member. */
TEST(bad_joins)
{
    static const struct {
        const char *name, *value;
    } bad[] = {
        {"key", "{}"},
        {"key", "{\"cluster\":\"c\",\"job\":-1,\"het_job\":0,\"het_offset\":0,\"step\":0,"
                "\"restart\":0,\"run\":0}"},
        {"key", "{\"cluster\":7,\"job\":1,\"het_job\":0,\"het_offset\":0,\"step\":0,"
                "\"restart\":0,\"run\":0}"},
        {"node", "3"},
        {"node", "-1"},
        {"node", "\"1\""},
        {"nodes", "[\"n1\",\"n2\"]"},
        {"nodes", "\"\""},
        {"nodes", "\"n1,../etc\""},
        {"nodes", "\"n1,7,,\""},
        {"nodes", "\"n[1-\""},
        {"nodes", "\"n[1-16385]\""},
        {"gres", "[4096]"},
        {"gres", "[-1]"},
        {"gres", "[1.5]"},
        {"gres", "{}"},
        {"mode", "\"maybe\""},
        {"uid", "4294967296"},
        {"timeout_ms", "0"},
        {"timeout_ms", "3600001"},
        {"min_gpus", "-1"},
        {"account", "7"},
    };
    struct tccl_step join = sample();
    for (size_t i = 0; i < COUNT(bad); i++) {
        cleanup_json json_t *json = tccl_join_to_json(&join, NULL);
        json_object_set_new(json, bad[i].name, json_loads(bad[i].value, JSON_DECODE_ANY, NULL));
        struct tccl_step *message = tccl_join_from_json(json, ERR);
        CHECK(message == NULL && strstr(check_err.text, bad[i].name) != NULL);
        tccl_step_free(message);
    }
}

TEST(missing_members)
{
    static const char *const names[] = {"key",  "node", "nodes",     "gres",
                                        "mode", "uid",  "timeout_ms"};
    struct tccl_step join = sample();
    for (size_t i = 0; i < COUNT(names); i++) {
        cleanup_json json_t *json = tccl_join_to_json(&join, NULL);
        json_object_del(json, names[i]);
        CHECK(tccl_join_from_json(json, ERR) == NULL);
        CHECK(*check_err.text != '\0');
    }
}

TEST(plan)
{
    static const struct tccl_step_key key = {.cluster = "c", .job = 7};
    struct tccl_outcome plan = {.state = TCCL_STATE_PLANNED,
                                .reason = "",
                                .gbps = 10.25,
                                .baseline_gbps = 4.5,
                                .path = (char *)"/run/tccl/x/plan",
                                .ring = (char *)"n1[0 -w> 1 -w> 0]"},
                        read;
    cleanup_json json_t *json = tccl_plan_to_json(&plan, &key, 0, 0);
    CHECK_INT(tccl_plan_from_json(json, &key, 0, 0, &read, ERR), 0);
    CHECK_INT(read.state, TCCL_STATE_PLANNED);
    CHECK(read.gbps == 10.25 && read.baseline_gbps == 4.5);
    CHECK_STR(read.path, plan.path);
    CHECK_STR(read.ring, plan.ring);
    tccl_outcome_clear(&read);
    json_object_set_new(json, "gbps", json_real(-1));
    CHECK_INT(tccl_plan_from_json(json, &key, 0, 0, &read, ERR), -1);
    json_object_set_new(json, "gbps", json_real(1));
    json_object_set_new(json, "state", json_string("great"));
    CHECK_INT(tccl_plan_from_json(json, &key, 0, 0, &read, ERR), -1);
}

TEST(parse)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "{\"v\":1}",
                                      "{\"type\":\"join\"}",
                                      "{\"v\":2,\"type\":\"join\"}",
                                      "{\"v\":1,\"type\":7}",
                                      "{\"v\":1,\"v\":1,\"type\":\"a\"}",
                                      "{\"v\":1,\"type\":\"a\"} x",
                                      "null"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK(tccl_message_parse(bad[i], strlen(bad[i]), ERR) == NULL);
        CHECK(*check_err.text != '\0');
    }
}

TEST(keys)
{
    struct tccl_step_key a = {.cluster = "c", .job = 7, .step = 1}, b = a;
    char one[TCCL_KEY_TEXT], two[TCCL_KEY_TEXT];
    CHECK(tccl_key_equal(&a, &b));
    b.restart = 1;
    CHECK(!tccl_key_equal(&a, &b));
    tccl_key_format(&a, one);
    CHECK_STR(one, "c:7.1");
    tccl_key_format(&b, one);
    CHECK_STR(one, "c:7.1 restart 1");
    b = a;
    b.run = TCCL_MAX_RUN;
    CHECK(!tccl_key_equal(&a, &b));
    tccl_key_folder(&a, one);
    tccl_key_folder(&b, two);
    CHECK(strcmp(one, two) != 0);
    struct tccl_step_key read;
    cleanup_json json_t *json = tccl_key_to_json(&b);
    CHECK_INT(tccl_key_from_json(json, &read, NULL), 0);
    CHECK(tccl_key_equal(&b, &read));
    b = (struct tccl_step_key){
        .cluster = "c", .job = 9, .het_job = 7, .het_offset = 2, .step = 0xfffffffb};
    tccl_key_format(&b, one);
    CHECK_STR(one, "c:7+2.batch");
    tccl_key_folder(&a, one);
    tccl_key_folder(&b, two);
    CHECK(strcmp(one, two) != 0);
    strcpy(b.cluster, "../../etc");
    tccl_key_folder(&b, two);
    CHECK(strchr(two, '/') == NULL && two[0] != '.');
    memset(b.cluster, 'x', sizeof(b.cluster) - 1);
    b = (struct tccl_step_key){"",         UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX - 20,
                               UINT32_MAX, UINT32_MAX};
    memset(b.cluster, 'x', sizeof(b.cluster) - 1);
    tccl_key_format(&b, one); /* fits */
    CHECK(strstr(one, "restart 4294967295") != NULL);
}

TEST(frames)
{
    int fds[2];
    cleanup_free char *data = NULL;
    size_t size;
    int64_t soon = tccl_now_ms() + 60000;
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    CHECK_OK(tccl_frame_write(fds[0], "hello", 5, 10, soon, ERR));
    CHECK_OK(tccl_frame_read(fds[1], 10, soon, &data, &size, ERR));
    CHECK_INT(size, 5);
    CHECK_STR(data, "hello");
    CHECK_INT(tccl_frame_read(fds[1], 10, tccl_now_ms(), &data, &size, ERR), 1);
    for (size_t limit = 5; limit >= 4; limit--) { /* the longest that is allowed, and one more */
        cleanup_free char *longest = NULL;
        CHECK_OK(tccl_frame_write(fds[0], "hello", 5, 5, soon, ERR));
        CHECK_INT(tccl_frame_read(fds[1], limit, soon, &longest, &size, NULL), limit < 5 ? -1 : 0);
    }
    char rest[5];
    CHECK_INT(read(fds[1], rest, sizeof(rest)), 5);
    CHECK_INT(tccl_frame_write(fds[0], "hello", 5, 4, soon, ERR), -1);
    CHECK_INT(write(fds[0], "\377\377\377\377", 4), 4);
    CHECK_SAYS(tccl_frame_read(fds[1], 10, soon, &data, &size, ERR) == -1, "4294967295");
    CHECK_INT(write(fds[0], "\0\0\0\0", 4), 4);
    CHECK_INT(tccl_frame_read(fds[1], 10, soon, &data, &size, ERR), -1);
    close(fds[0]);
    CHECK_SAYS(tccl_frame_read(fds[1], 10, soon, &data, &size, ERR) == -1, "closed");
    close(fds[1]);
}

/* Nobody reads: the writer's deadline ends it. */
TEST(deaf_reader)
{
    int fds[2];
    size_t size = 8 << 20;
    cleanup_free char *data = calloc(1, size);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    CHECK_INT(tccl_frame_write(fds[0], data, size, size, tccl_now_ms() + 50, ERR), 1);
    close(fds[0]);
    close(fds[1]);
}

TEST(envelope)
{
    struct tccl_envelope first = {.to = "n1", .from = "n2", .epoch = 5}, second = first, read;
    cleanup_json json_t *message = tccl_message_new("merge");
    CHECK_INT(tccl_envelope_put(message, &first, ERR), 0);
    CHECK_INT(tccl_envelope_put(message, &second, ERR), 0);
    CHECK(strcmp(first.nonce, second.nonce) != 0);
    CHECK_INT(tccl_envelope_get(message, &read, ERR), 0);
    CHECK_STR(read.to, "n1");
    CHECK_STR(read.nonce, second.nonce);
    CHECK_INT(read.epoch, 5);
    json_object_set_new(message, "nonce", json_string("short"));
    CHECK_INT(tccl_envelope_get(message, &read, ERR), -1);
}

TEST(largest)
{
    check_largest(true);
    check_largest(false);
}
