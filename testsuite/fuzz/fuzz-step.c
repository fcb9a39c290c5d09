/* What other nodes, and the plugin, say to a tccld about steps, as a dialogue: a line each, whose
 * first letter says which node it is from ('@': this one's plugin), and then the message: HERE,
 * MERGE also with the JOIN of a step that mpirun has begun elsewhere, JOIN, LEAVE. Each is answered
 * once, and nothing is left in the end. Around the steps all is a fake (step-fakes.h). */
#include "client/step-fields.h"
#include "fuzz.h"
#include "step-fakes.h"

enum { LINES = 24, LINE = 4096, JOB = 7, UID = 1000, TIMEOUT_MS = 10000 };

static struct connection connections[LINES];
static struct tccl_conf conf = {.node = "n1"};
static struct daemon daemon_ = {.conf = &conf};
static char *names[] = {"n1", "n2", "n3"};

static struct tccl_step step_of(uint32_t step, int node, int n_nodes)
{
    return (struct tccl_step){.key = {.cluster = "c", .job = JOB, .step = step},
                              .node = node,
                              .n_nodes = n_nodes,
                              .nodes = names,
                              .gres = {0, 1},
                              .n_gres = 2,
                              .mode = TCCL_MODE_ON,
                              .uid = UID,
                              .timeout_ms = TIMEOUT_MS};
}

static void end(void)
{
    event_base_free(daemon_.base);
}

/* The job has a script here. */
static void begin(void)
{
    if (daemon_.base)
        return;
    daemon_.base = event_base_new();
    daemon_.running = &fake_running;
    if (!daemon_.base)
        abort();
    strcpy(conf.run_dir, "/none");
    fake_script = (struct running_step){.key = step_of(0xfffffffb, 0, 1).key,
                                        .uid = UID,
                                        .gres = {0, 1},
                                        .n_gres = 2,
                                        .launch = TCCL_LAUNCH_SCRIPT};
    fake_has_script = fake_strangers = true;
    atexit(end);
}

static void say(struct connection *from, const char *line)
{
    static const struct {
        const char *type;
        request_handler *handle;
        bool far;
    } handlers[] = {{"here", step_here, true},
                    {"merge", step_merge, true},
                    {"join", step_join, false},
                    {"leave", step_leave, false}};
    cleanup_json json_t *message = tccl_message_parse(line + 1, strlen(line + 1), NULL);
    if (!message)
        return;
    *from = (struct connection){.closed = false};
    if (*line != '@')
        snprintf(from->node, sizeof(from->node), "n%d", 1 + (*line & 31));
    for (size_t i = 0; i < COUNT(handlers); i++)
        if (strcmp(tccl_message_type(message), handlers[i].type) == 0 &&
            handlers[i].far == (*line != '@')) {
            connection_hold(from);
            handlers[i].handle(&daemon_, from, message);
            connection_drop(from);
            FUZZ_CHECK(from->holds > 0 || from->answers == 1);
            return;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = fuzz_text(data, size);
    char *rest = text, *line;
    int count = 0;
    begin();
    fake_knows = false;
    fake_solution = TCCL_STATE_PLANNED;
    daemon_.steps = steps_new(&daemon_);
    for (; count < LINES && (line = strsep(&rest, "\n")); count++) {
        fake_us += 1000;
        connections[count] = (struct connection){.answers = 0};
        if (*line && strlen(line) < LINE)
            say(&connections[count], line);
    }
    steps_stop(daemon_.steps);
    fake_answer_questions(false);
    steps_free(daemon_.steps);
    for (int i = 0; i < count; i++)
        FUZZ_CHECK(connections[i].holds == 0 && connections[i].answers <= 1);
    FUZZ_CHECK(fake_n_links == 0 && fake_class.holders == 0 && fake_bugs == 0);
    FUZZ_CHECK(check_failures == 0);
    return 0;
}

/* A line, in the place of which it points to the end. */
static void put(char **at, char from, json_t *message)
{
    cleanup_free char *text = message ? tccl_message_text(message) : NULL;
    if (!text)
        abort();
    *at += sprintf(*at, "%c%s\n", from, text);
    json_decref(message);
}

static json_t *report(const char *type, uint32_t step, int node, int n_nodes, json_t *more)
{
    struct tccl_step_key key = step_of(step, 0, 1).key;
    json_t *message = tccl_message_new(type);
    cleanup_json json_t *rest =
        json_pack("{s:o,s:i,s:i,s:i,s:i}", "key", tccl_key_to_json(&key), "node", node, "n_nodes",
                  n_nodes, "timeout_ms", TIMEOUT_MS, "wait_ms", TIMEOUT_MS - 1000);
    cleanup_json json_t *others = more;
    json_object_update(message, rest);
    json_object_update(message, others);
    return message;
}

static json_t *join(uint32_t step, int node, int n_nodes, bool below)
{
    struct tccl_step own = step_of(step, node, n_nodes);
    own.launch = below ? TCCL_LAUNCH_BELOW : 0;
    return tccl_join_to_json(&own, NULL);
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    char text[4 * LINE], *at = text;
    put(&at, '@', join(1, 0, 3, false));
    put(&at, 'a', report("merge", 1, 1, 3, json_pack("{s:s}", "claims", "x\ny\nz")));
    put(&at, 'b', report("here", 1, 0, 3, NULL));
    put(&at, 'b', report("merge", 1, 2, 3, json_object()));
    put(&at, '@', report("leave", 1, 0, 3, NULL));
    add(context, text, (size_t)(at - text));
    at = text;
    put(&at, 'a',
        report("here", 2, 0, 3, json_pack("{s:s,s:s}", "nodes", "n[1-3]", "parent", "n2")));
    put(&at, 'a', report("merge", 2, 1, 3, json_pack("{s:o}", "join", join(2, 1, 3, true))));
    put(&at, 'b', report("merge", 2, 2, 3, json_pack("{s:s}", "reason", "n3: no profile")));
    add(context, text, (size_t)(at - text));
    at = text;
    put(&at, 'b', report("merge", 3, 2, 3, json_pack("{s:b,s:s}", "required", 1, "reason", "MIG")));
    put(&at, '@', join(3, 0, 3, false));
    put(&at, 'a', report("merge", 3, 1, 3, json_pack("{s:b}", "bad", 1)));
    put(&at, 'a', report("here", 3, 1, 3, NULL));
    add(context, text, (size_t)(at - text));
}
