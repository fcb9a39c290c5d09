/* The shim's JSON reader, plan files and tccld's chains: those that tccld writes are read, all
 * others refused with a reason. */
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <sys/stat.h>

#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "check.h"
#include "plan/plan.h"

static const char plan_text[] =
    "{\"version\":1,\"key\":{\"cluster\":\"c\",\"job\":7,\"het_job\":0,\"het_offset\":0,\"step\":2,"
    "\"restart\":1,\"run\":0},\"node\":\"n1\",\"index\":0,\"n_nodes\":1,\"state\":\"applied\","
    "\"gbps\":12.375,\"baseline_gbps\":6,\"bound_gbps\":20.5,\"source\":\"model\","
    "\"socket\":\"/run/tccl/s\",\"uid\":1000,\"root\":\"n1\",\"start\":0,"
    "\"gpus\":[\"0000:01:00.0\",\"0000:41:00.0\",\"0000:C1:00.0\"],\"step_gpus\":3,"
    "\"one_fabric\":false,\"links\":{\"closed\":true,\"gpus\":[\"0000:c1:00.0\",\"0000:01:00.0\","
    "\"0000:41:00.0\"],\"edges\":[{\"kind\":\"bounce\",\"node\":3},{\"kind\":\"p2p-write\","
    "\"node\":-1},{\"kind\":\"bounce\",\"node\":0}]},\"chain\":{},\"ring\":\"x\"}";

static const char open_links[] =
    "{\"closed\":false,\"gpus\":[\"0000:01:00.0\"],\"edges\":[],"
    "\"entry\":{\"nic\":\"mlx5_0\",\"busid\":\"0000:02:00.0\",\"gpudirect\":true,\"node\":-1},"
    "\"exit\":{\"nic\":\"mlx5_1\",\"busid\":\"0000:03:00.0\",\"gpudirect\":false,\"node\":2}}";

static void test_values(void)
{
    static const char text[] =
        " {\"a\": [1, -20 ,3.5e1], \"b\":{\"a\":\"\\u00e9\\ud83d\\ude00\\n\\\"}\"},\"c\":tru"
        "e,\"\":null , \"d\":12.0625 }";
    struct shim_json all, list, item = {0};
    struct shim_why why = {""};
    char value[16];
    int64_t number;
    double real;
    bool truth = false;
    CHECK_INT(shim_json_parse(text, strlen(text), &all, &why), 0);
    list = shim_json_member(all, "a");
    item = shim_json_next(list, item);
    CHECK(shim_json_integer(item, 0, 1, &number) == 0 && number == 1);
    item = shim_json_next(list, item);
    CHECK(shim_json_integer(item, -20, 0, &number) == 0 && number == -20);
    CHECK_INT(shim_json_integer(item, -19, 0, &number), -1);
    item = shim_json_next(list, item);
    CHECK_INT(shim_json_number(item, 0, 100, &real), -1); /* with an exponent */
    CHECK(!shim_json_next(list, item).text);
    CHECK_INT(shim_json_text(shim_json_member(shim_json_member(all, "b"), "a"), value, 16), 9);
    CHECK_STR(value, "\xc3\xa9\xf0\x9f\x98\x80\n\"}");
    CHECK_INT(shim_json_text(shim_json_member(shim_json_member(all, "b"), "a"), value, 9), -1);
    CHECK_STR(value, "");
    CHECK(shim_json_bool(shim_json_member(all, "c"), &truth) == 0 && truth);
    CHECK(shim_json_number(shim_json_member(all, "d"), 0, 13, &real) == 0 && real == 12.0625);
    CHECK(shim_json_member(all, "").size == 4);
    CHECK(!shim_json_member(all, "e").text && !shim_json_member(list, "a").text);
}

static void test_wrong_json(void)
{
    static const char *const wrong[] = {"",
                                        " ",
                                        "{",
                                        "[1,]",
                                        "[1 2]",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{a:1}",
                                        "01",
                                        "1.",
                                        "-",
                                        ".5",
                                        "1e",
                                        "tru",
                                        "nul",
                                        "\"a",
                                        "\"\\x\"",
                                        "\"\\u12\"",
                                        "\"\t\"",
                                        "\"\\ud800\"",
                                        "\"\\udc00\"",
                                        "\"\\u0000\"",
                                        "[] []",
                                        "{\"a\":1,}",
                                        "]",
                                        "\"\\",
                                        "{\"a\":1,\"a\":2}",
                                        "{\"a\":1,\"\\u0061\":2}",
                                        "[[[[[[[[[]]]]]]]]]"};
    struct shim_json all;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct shim_why why = {""};
        if (shim_json_parse(wrong[i], strlen(wrong[i]), &all, &why) == 0 || !why.text[0]) {
            fprintf(stderr, "accepted: %s\n", wrong[i]);
            check_failures++;
        }
    }
    CHECK_INT(shim_json_parse("[[[[[[[[]]]]]]]]", 16, &all, NULL), 0);
}

/* A random value as Jansson writes it is read as Jansson reads it. */
static json_t *random_value(unsigned *seed, int depth)
{
    char name[16];
    int kind = rand_r(seed) % (depth < 6 ? 6 : 4);
    if (kind == 0)
        return json_integer(rand_r(seed) - RAND_MAX / 2);
    if (kind == 1)
        return rand_r(seed) % 2 ? json_true() : json_null();
    if (kind == 2)
        return json_string("a\"\\b\n\xc3\xa9]},:[");
    if (kind == 3)
        return json_real(rand_r(seed) % 100000 / 64.0);
    json_t *value = kind == 4 ? json_array() : json_object();
    for (int i = rand_r(seed) % 5; i > 0; i--) {
        snprintf(name, sizeof name, "m%d", i);
        if (kind == 4)
            json_array_append_new(value, random_value(seed, depth + 1));
        else
            json_object_set_new(value, name, random_value(seed, depth + 1));
    }
    return value;
}

static void compare(struct shim_json read, const json_t *value)
{
    char text[64];
    int64_t integer;
    double real;
    bool truth;
    size_t i = 0;
    const char *name;
    json_t *item;
    switch (json_typeof(value)) {
    case JSON_INTEGER:
        CHECK(shim_json_integer(read, INT64_MIN, INT64_MAX, &integer) == 0 &&
              integer == json_integer_value(value));
        break;
    case JSON_REAL:
        CHECK(shim_json_number(read, -1e9, 1e9, &real) == 0 && real == json_real_value(value));
        break;
    case JSON_STRING:
        CHECK(shim_json_text(read, text, sizeof text) >= 0);
        CHECK_STR(text, json_string_value(value));
        break;
    case JSON_ARRAY: {
        struct shim_json at = {0};
        for (i = 0; (at = shim_json_next(read, at)).text; i++)
            compare(at, json_array_get(value, i));
        CHECK_INT(i, json_array_size(value));
        break;
    }
    case JSON_OBJECT:
        CHECK(shim_json_is_object(read));
        json_object_foreach((json_t *)value, name, item)
            compare(shim_json_member(read, name), item);
        break;
    default:
        CHECK(shim_json_bool(read, &truth) == (json_is_boolean(value) ? 0 : -1));
    }
}

static void test_random_json(void)
{
    unsigned seed = (unsigned)check_seed();
    for (int i = 0; i < 2000; i++) {
        json_t *value = random_value(&seed, 0);
        size_t flags = JSON_ENCODE_ANY | (i % 2 ? JSON_INDENT(1) : JSON_COMPACT) |
                       (i % 3 ? 0 : JSON_ENSURE_ASCII);
        char *text = json_dumps(value, flags);
        struct shim_json read;
        CHECK_INT(shim_json_parse(text, strlen(text), &read, NULL), 0);
        compare(read, value);
        free(text);
        json_decref(value);
    }
}

/* The plan with one part of its text replaced. */
static int parse_with(const char *from, const char *to, struct shim_plan *plan,
                      struct shim_why *why)
{
    static char text[8192];
    const char *at = strstr(plan_text, from);
    why->text[0] = '\0';
    if (!at) {
        CHECK(!"the text to be replaced is there");
        return 1;
    }
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - plan_text), plan_text, to,
             at + strlen(from));
    return shim_plan_parse(text, strlen(text), plan, why);
}

static void test_plan(void)
{
    struct shim_plan plan;
    struct shim_why why = {""};
    char line[256];
    struct shim_text text = {line, sizeof line, 0, false};
    CHECK_INT(shim_plan_parse(plan_text, strlen(plan_text), &plan, &why), 0);
    CHECK_STR(why.text, "");
    CHECK(plan.job == 7 && plan.step == 2 && plan.restart == 1 && plan.uid == 1000);
    CHECK_STR(plan.socket, "/run/tccl/s");
    CHECK(plan.n_gpus == 3 && plan.gpus[2] == 0xc100 && plan.step_gpus == 3 && !plan.one_fabric);
    CHECK(strncmp(plan.key, "{\"cluster\":\"c\"", 14) == 0);
    CHECK_INT(plan.key[strlen(plan.key) - 1], '}');
    CHECK(plan.chain.closed && plan.chain.n == 3 && plan.chain.gpus[0] == 0xc100);
    CHECK(plan.chain.edges[0].kind == SHIM_BOUNCE && plan.chain.edges[0].node == 3);
    CHECK(plan.chain.gbps == 12.375 && plan.chain.baseline_gbps == 6);
    shim_chain_format(&plan.chain, &text);
    CHECK_STR(line, "c1 -m3> 01 -w> 41 -m0> c1");
}

static void test_wrong_plans(void)
{
    static const char *const wrong[][2] = {
        {"\"version\":1", "\"version\":2"},
        {"\"version\":1,", ""},
        {"applied", "fallback"},
        {"\"job\":7", "\"job\":-7"},
        {"\"job\":7", "\"job\":4294967296"},
        {"\"step\":2", "\"step\":2,\"step\":2"},
        {"\"run\":0", "\"run\":\"0\""},
        {"\"index\":0", "\"index\":1"},
        {"\"n_nodes\":1", "\"n_nodes\":2"},
        {"\"n_nodes\":1", "\"n_nodes\":0"},
        {"12.375", "0"},
        {"12.375", "-1"},
        {"12.375", "1e3"},
        {"12.375", "99999999"},
        {"\"model\"", "\"mo\\ndel\""},
        {"\"model\"", "\"\""},
        {"/run/tccl/s", "run/tccl/s"},
        {"\"uid\":1000", "\"uid\":4294967296"},
        {"\"uid\":1000,", ""},
        {"\"0000:41:00.0\",\"0000:C1:00.0\"]", "\"0000:41:00.0\"]"},
        {"\"0000:41:00.0\",\"0000:C1:00.0\"]", "\"0000:C1:00.0\",\"0000:41:00.0\"]"},
        {"\"0000:41:00.0\",\"0000:C1:00.0\"]", "\"0000:41:00.0\",\"0000:41:00.0\"]"},
        {"\"step_gpus\":3", "\"step_gpus\":2"},
        {"\"closed\":true", "\"closed\":1"},
        {"\"closed\":true", "\"closed\":false"},
        {"\"0000:c1:00.0\",\"0000:01:00.0\"", "\"0000:01:00.0\",\"0000:01:00.0\""},
        {"\"0000:c1:00.0\",\"0000:01:00.0\"", "\"0000:c2:00.0\",\"0000:01:00.0\""},
        {"\"0000:c1:00.0\",\"0000:01:00.0\"", "\"GPU-1\",\"0000:01:00.0\""},
        {"\"kind\":\"bounce\",\"node\":3", "\"kind\":\"bounce\",\"node\":1024"},
        {"\"kind\":\"bounce\",\"node\":3", "\"kind\":\"jump\",\"node\":3"},
        {"\"node\":-1},", "\"node\":1},"},
        {",{\"kind\":\"bounce\",\"node\":0}", ""},
        {"\"node\":0}]", "\"node\":0},{\"kind\":\"bounce\",\"node\":0}]"},
        {"\"links\":{", "\"links\":1,\"linka\":{"},
        {"\"one_fabric\":false", "\"one_fabric\":0"},
    };
    struct shim_plan plan;
    struct shim_why why;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (parse_with(wrong[i][0], wrong[i][1], &plan, &why) != -1 || !why.text[0]) {
            fprintf(stderr, "accepted, or without a reason: %s\n", wrong[i][1]);
            check_failures++;
        }
    }
    for (size_t size = 0; size < strlen(plan_text); size++)
        CHECK_INT(shim_plan_parse(plan_text, size, &plan, NULL), -1);
}

static void test_open(void)
{
    char text[4096], line[128];
    struct shim_text words = {line, sizeof line, 0, false};
    struct shim_chain chain;
    struct shim_why why = {""};
    shim_bus gpu = 0x100, other = 0x200;
    snprintf(text, sizeof text,
             "{\"v\":1,\"type\":\"chain\",\"state\":\"applied\",\"reason\":\"\",\"gbps\":3,"
             "\"baseline_gbps\":2,\"source\":\"host\",\"links\":%s}",
             open_links);
    size_t size = strlen(text);
    CHECK_INT(shim_chain_parse(text, size, &gpu, 1, false, &chain, &why), 0);
    CHECK(chain.entry.gpudirect && chain.entry.bus == 0x200 && !chain.exit.gpudirect);
    CHECK_INT(chain.exit.node, 2);
    shim_chain_format(&chain, &words);
    CHECK_STR(line, "mlx5_0 -g> 01 -m2> mlx5_1");
    CHECK_INT(shim_chain_parse(text, size, &gpu, 1, true, &chain, &why), -1);
    CHECK_INT(shim_chain_parse(text, size, &other, 1, false, &chain, &why), -1);
    const shim_bus both[] = {gpu, other};
    CHECK_INT(shim_chain_parse(text, size, both, 2, false, &chain, &why), -1);
}

static void test_answers(void)
{
    static const struct {
        const char *text;
        int wanted;
        const char *why;
    } answers[] = {
        {"{\"v\":1,\"type\":\"chain\",\"state\":\"fallback\",\"reason\":\"no pro\\nfile\"}", -1,
         "no pro file"},
        {"{\"v\":1,\"type\":\"chain\",\"state\":\"nothing-to-do\",\"reason\":\"\"}", 1,
         "tccld has no chain for these GPUs"},
        {"{\"v\":1,\"type\":\"error\",\"text\":\"go away\"}", -1, "tccld refused to tell a chain"},
        {"{\"v\":2,\"type\":\"chain\",\"state\":\"applied\"}", -1,
         "tccld's answer is of another version"},
        {"{\"v\":1,\"type\":\"chain\",\"state\":\"applied\"}", -1,
         "the plan's gpus is wrong or missing"},
        {"garbage", -1, "not JSON: a wrong value"},
    };
    shim_bus gpu = 0x100;
    struct shim_chain chain;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct shim_why why = {""};
        CHECK_INT(
            shim_chain_parse(answers[i].text, strlen(answers[i].text), &gpu, 1, true, &chain, &why),
            answers[i].wanted);
        CHECK_STR(why.text, answers[i].why);
    }
}

static const char *file(const char *folder, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mkdir(path, 0700);
    strcat(path, "/plan.json");
    FILE *stream = fopen(path, "w");
    fwrite(plan_text, 1, strlen(plan_text), stream);
    fclose(stream);
    return path;
}

static void test_folder(void)
{
    char folder[] = "/tmp/tccl-plan-XXXXXX", command[64];
    struct shim_plan plan;
    struct shim_why why = {""};
    CHECK(mkdtemp(folder) != NULL);
    CHECK_INT(shim_plan_read(file(folder, "7.2.1-0123456789abcdef"), &plan, &why), 0);
    CHECK_STR(plan.folder, "0123456789abcdef");
    CHECK_INT(shim_plan_read(file(folder, "7.2.0-0123456789abcdef"), &plan, NULL), -1);
    CHECK_INT(shim_plan_read(file(folder, "17.2.1-0123456789abcdef"), &plan, NULL), -1);
    CHECK_INT(shim_plan_read(file(folder, "7.2.1-0123456789abcdeF"), &plan, NULL), -1);
    CHECK_INT(shim_plan_read(file(folder, "7.2.1-123456789abcdef"), &plan, NULL), -1);
    CHECK_INT(shim_plan_read(file(folder, "x"), &plan, NULL), -1);
    CHECK_INT(shim_plan_read(folder, &plan, NULL), -1);
    CHECK_INT(shim_plan_read("plan.json", &plan, &why), -1);
    CHECK(strstr(why.text, "can't be read: plan.json"));
    const char *path = file(folder, "7.2.1-0123456789abcdef");
    CHECK_INT(truncate(path, SHIM_PLAN_SIZE + 1), 0);
    CHECK_INT(shim_plan_read(path, &plan, NULL), -1);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

static int fits(struct shim_plan *plan, const char *job, const char *step, const char *restart)
{
    const char *const names[] = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"};
    const char *values[] = {job, step, restart};
    struct shim_why why = {""};
    for (int i = 0; i < 3; i++)
        values[i] ? setenv(names[i], values[i], 1) : unsetenv(names[i]);
    int answer = shim_plan_fits(plan, &why);
    CHECK(!answer == !why.text[0]);
    return answer;
}

static void test_fits(void)
{
    struct shim_plan plan;
    CHECK_INT(shim_plan_parse(plan_text, strlen(plan_text), &plan, NULL), 0);
    plan.uid = geteuid() + 1;
    CHECK_INT(fits(&plan, "7", "2", "1"), -1);
    plan.uid = geteuid();
    CHECK_INT(fits(&plan, "7", "2", "1"), 0);
    CHECK_INT(fits(&plan, NULL, NULL, NULL), 0);
    CHECK_INT(fits(&plan, "8", NULL, NULL), -1);
    CHECK_INT(fits(&plan, "7", "3", NULL), -1);
    CHECK_INT(fits(&plan, "7", "2", "0"), -1);
    CHECK_INT(fits(&plan, "", "2", NULL), -1);
    CHECK_INT(fits(&plan, "7", "batch", NULL), -1);
    plan.het_job = 5;
    CHECK_INT(fits(&plan, "5", "2", "1"), 0);
    plan.step = 0xfffffffb; /* of a job script, which is told its restart count later */
    plan.batch = true;
    CHECK_INT(fits(&plan, "7", NULL, "3"), 0);
    CHECK_INT(fits(&plan, "7", "4294967291", NULL), 0);
    CHECK_INT(fits(&plan, "7", "-5", NULL), 0);
    CHECK_INT(fits(&plan, "7", "batch", NULL), 0);
    CHECK_INT(fits(&plan, "7", "interactive", NULL), -1);
}

/* A process of root's that works for the user for a while, and one that gave up its rights. */
static void test_rights(void)
{
    enum { UID = 65534 };
    struct shim_plan plan = {.uid = UID, .job = 7};
    if (geteuid() != 0)
        return;
    for (int kept = 0; kept < 4; kept++) { /* 1: the real uid, 2: the saved one */
        pid_t pid = fork();
        if (pid == 0) {
            if (setresuid(kept & 1 ? 0 : UID, UID, kept & 2 ? 0 : UID))
                _exit(2);
            _exit(fits(&plan, NULL, NULL, NULL) != 0);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        CHECK_INT(WEXITSTATUS(status), kept != 0);
    }
}

int main(void)
{
    test_values();
    test_wrong_json();
    test_random_json();
    test_plan();
    test_wrong_plans();
    test_open();
    test_answers();
    test_folder();
    test_fits();
    test_rights();
    return check_result();
}
