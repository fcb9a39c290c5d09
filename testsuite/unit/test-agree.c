/* AGREE over all nodes of a step at once, each with its own agreements: words of the shims come in
 * any order, messages take any time, get lost or hit a tccld that is silent, of older version, was
 * killed or is started again; the clock, timers, sockets and links are the test's. Whatever
 * happens: everybody who asks is answered once and in time, "all" only if all nodes have said
 * "yes"; all or none are told so where no message is lost, and where nothing fails all are told
 * "all", or all "not". */
#include <event2/event.h>

#include "base/clock.h"
#include "check.h"
#include "client/message.h"
#include "tccld/join/running.h"
#include "tccld/net/link.h"

enum {
    ROUNDS = 800,
    NODES = 40,
    MOST = 4096,
    USER = 1000,
    START = 1700000000,
    WAIT_MS = 1000,
    KINDS = 9
};

static int64_t now_ms;

int64_t tccl_now_ms(void)
{
    return now_ms;
}

/* ---- Timers ---- */

struct event {
    event_callback_fn call;
    void *argument;
    int64_t due; /* INT64_MAX: none */
};
static struct event *timers[MOST];
static int n_timers;

struct event *event_new(struct event_base *base, evutil_socket_t fd, short what,
                        event_callback_fn call, void *argument)
{
    CHECK(n_timers < MOST);
    struct event *event = malloc(sizeof(*event));
    *event = (struct event){call, argument, INT64_MAX};
    return timers[n_timers++] = event;
}

int event_add(struct event *event, const struct timeval *wait)
{
    event->due = now_ms + wait->tv_sec * 1000 + wait->tv_usec / 1000;
    return 0;
}

void event_free(struct event *event)
{
    for (int i = 0; i < n_timers; i++)
        if (timers[i] == event)
            timers[i] = timers[--n_timers];
    free(event);
}

/* ---- Nodes ---- */

static struct node {
    struct tccl_conf conf;
    struct daemon daemon;
    struct running running;
    struct running_step step;
    char names[32], parent[32];
    bool silent; /* stopped, or killed */
    bool gone;   /* killed, and soon started again */
    bool old;    /* of a version that doesn't know the message */
} nodes[NODES];
static int n_nodes;

static struct node *node_of(const struct daemon *daemon)
{
    for (int i = 0; i < n_nodes; i++)
        if (&nodes[i].daemon == daemon)
            return &nodes[i];
    abort();
}

struct running_step *running_planned(const struct running *running, const struct tccl_step_key *key)
{
    return &node_of(running->daemon)->step;
}

struct running_step *running_asked(struct daemon *daemon, const struct connection *connection,
                                   const struct tccl_lines *question, struct tccl_error *err)
{
    return &node_of(daemon)->step;
}

/* ---- Connections and links ---- */

struct connection {
    int holders, answers;
    int64_t asked_ms, answered_ms;
    char rings[8], why[400];
    struct link *link; /* of another node; NULL: of a shim */
};

struct link {
    struct daemon *to;
    void (*done)(void *context, json_t *answer, const struct tccl_error *err);
    void *context;
    json_t *message, *answer;
    int64_t at_ms, deadline; /* it, or its answer, arrives */
    bool received, lost, over;
    struct connection connection;
};
static struct link *links[MOST];
static int n_links;
static bool losses; /* messages get lost in this round */

struct connection *connection_hold(struct connection *connection)
{
    connection->holders++;
    return connection;
}

void connection_drop(struct connection *connection)
{
    CHECK(connection->holders-- > 0);
    if (connection->holders == 0 && connection->link && connection->link->over)
        free(connection->link);
}

void connection_answer_lines(struct connection *connection, struct tccl_line_writer *writer)
{
    struct tccl_lines lines;
    CHECK_INT(tccl_lines_end(writer), 0);
    CHECK_INT(tccl_lines_open(writer->text, writer->length, &lines, NULL), 0);
    tccl_line_text(&lines, "rings", connection->rings, sizeof(connection->rings));
    tccl_line_text(&lines, "why", connection->why, sizeof(connection->why));
    connection->answers++;
    connection->answered_ms = now_ms;
}

void connection_answer(struct connection *connection, json_t *message)
{
    struct link *link = connection->link;
    connection->answers++;
    if (link->over)
        return;
    link->answer = json_incref(message);
    link->at_ms = now_ms + rand() % 20;
}

void connection_refuse(struct connection *connection, const char *text)
{
    CHECK(*text);
    connection->answers++;
    if (connection->link) {
        connection->link->answer = tccl_message_new("error");
        json_object_set_new(connection->link->answer, "text", json_string(text));
    } else
        strcpy(connection->rings, "error");
}

struct link *link_ask(struct daemon *daemon, const char *node, json_t *message, int64_t deadline,
                      void (*done)(void *context, json_t *answer, const struct tccl_error *err),
                      void *context)
{
    struct link *link = calloc(1, sizeof(*link));
    CHECK(n_links < MOST && deadline > now_ms);
    *link = (struct link){.to = &nodes[atoi(node + 1) - 1].daemon,
                          .done = done,
                          .context = context,
                          .message = json_incref(message),
                          .at_ms = now_ms + rand() % 20,
                          .deadline = deadline,
                          .lost = losses && rand() % 8 == 0};
    CHECK_INT(node_tree_parent(node_of(daemon)->step.node), node_of(link->to)->step.node);
    link->connection.link = link;
    return links[n_links++] = link;
}

void link_cancel(struct link *link)
{
    for (int i = 0; i < n_links; i++)
        if (links[i] == link)
            links[i] = links[--n_links];
    json_decref(link->message);
    json_decref(link->answer);
    if (link->connection.holders == 0)
        free(link);
    else
        link->over = true; /* the other side has it, which answers nobody then */
}

static void finish(struct link *link, json_t *answer, enum tccl_reason reason)
{
    struct tccl_error err = {"n0: no answer", reason};
    json_incref(answer);
    link->done(link->context, answer, answer ? NULL : &err);
    json_decref(answer);
    link_cancel(link);
}

/* What happens next: a message or an answer arrives, or a time is over. */
static void advance_link(struct link *link)
{
    struct node *to = node_of(link->to);
    if (link->deadline <= now_ms)
        finish(link, NULL, TCCL_REASON_NO_ANSWER);
    else if (link->answer)
        finish(link, link->answer, TCCL_REASON_NONE);
    else if (to->gone)
        finish(link, NULL, TCCL_REASON_NO_DAEMON);
    else if (to->old)
        connection_refuse(&link->connection, "unknown type");
    else if (!to->silent && !link->lost && !link->received) {
        link->received = true;
        agree_receive(link->to, &link->connection, link->message);
    }
}

static int64_t due(const struct link *link)
{
    bool waits = link->received || link->lost || node_of(link->to)->silent;
    return link->answer || !waits ? (link->at_ms < link->deadline ? link->at_ms : link->deadline)
                                  : link->deadline;
}

/* Up to end; returns false once nothing happens before. */
static bool step_until(int64_t end)
{
    struct link *link = NULL;
    struct event *timer = NULL;
    int64_t next = end;
    for (int i = 0; i < n_links; i++)
        if (due(links[i]) < next) {
            link = links[i];
            next = due(link);
        }
    for (int i = 0; i < n_timers; i++)
        if (timers[i]->due < next) {
            timer = timers[i];
            next = timer->due;
        }
    now_ms = next > now_ms ? next : now_ms;
    if (timer) {
        timer->due = INT64_MAX;
        timer->call(-1, EV_TIMEOUT, timer->argument);
    } else if (link)
        advance_link(link);
    return timer || link;
}

/* ---- Shims ---- */

static void say(int node, uint64_t comm, bool will, struct connection *connection)
{
    char text[512];
    struct tccl_line_writer writer;
    struct tccl_lines lines;
    tccl_lines_begin(&writer, text, sizeof(text), "tccl-agree", 1);
    tccl_line_put(&writer, "comm", "%016llx", (unsigned long long)comm);
    tccl_line_put_bool(&writer, "will", will);
    CHECK_INT(tccl_lines_end(&writer), 0);
    CHECK_INT(tccl_lines_open(text, writer.length, &lines, NULL), 0);
    *connection = (struct connection){.holders = 1, .asked_ms = now_ms};
    agree_hear(&nodes[node].daemon, connection, &lines);
    connection->holders--;
}

static void begin(int count)
{
    n_nodes = count;
    for (int i = 0; i < count; i++) {
        struct node *node = &nodes[i];
        *node = (struct node){.step = {.uid = USER, .node = i, .start = START, .n_nodes = count},
                              .running = {.daemon = &node->daemon}};
        node->step.key = (struct tccl_step_key){.cluster = "c", .job = 7};
        node->daemon.conf = &node->conf;
        node->daemon.running = &node->running;
        TAILQ_INIT(&node->running.agreements);
        snprintf(node->conf.node, sizeof(node->conf.node), "n%d", i + 1);
        snprintf(node->names, sizeof(node->names), "n[1-%d]", count);
        snprintf(node->parent, sizeof(node->parent), "n%d", node_tree_parent(i) + 1);
        node->step.nodes = node->names;
        node->step.parent = node->parent;
    }
}

static void end(void)
{
    for (int i = 0; i < n_nodes; i++)
        agree_drop(&nodes[i].running, &nodes[i].step);
    CHECK_INT(n_timers, 0);
    while (n_links > 0)
        link_cancel(links[0]);
}

/* ---- One communicator ---- */

struct plan {
    bool will;
    int64_t at_ms; /* when its shim asks; INT64_MAX: never */
};

static bool draw(struct plan plans[static NODES], int kind)
{
    bool all = true;
    for (int i = 0; i < n_nodes; i++) {
        bool odd = rand() % n_nodes == 0;
        plans[i] = (struct plan){kind != 1 || !odd, rand() % (kind == 3 ? 2000 : 300)};
        if (kind == 7) /* nodes with others below them first, these about when it is too late */
            plans[i].at_ms = i && i % TREE_FAN == 0 ? 0 : 400 + rand() % 420;
        if (kind == 2 && odd)
            plans[i].at_ms = INT64_MAX;
        nodes[i].silent = kind == 4 && odd;
        nodes[i].old = kind == 5 && odd;
        all &= plans[i].will;
    }
    losses = kind == 6;
    return all;
}

/* All that it knows of communicators goes, and who waits for it sees that. */
static void kill_node(struct node *node)
{
    node->gone = true;
    agree_drop(&node->running, &node->step);
    for (int i = n_links - 1; i >= 0; i--)
        if (links[i]->to == &node->daemon && links[i]->received && !links[i]->answer)
            finish(links[i], NULL, TCCL_REASON_NO_DAEMON);
}

static void one_communicator(int kind)
{
    static struct connection shims[NODES];
    struct plan plans[NODES];
    const int odd = rand() % n_nodes, killed = rand() % 300, again = killed + 20 + rand() % 100;
    int said[4] = {0}; /* all, not, late; nothing */
    int answered = 0;
    bool all = draw(plans, kind), none = false;
    memset(shims, 0, sizeof(shims));
    int64_t begun = now_ms;
    for (int64_t t = 0; t < 4000; t++) {
        while (step_until(begun + t))
            ;
        now_ms = begun + t;
        if (kind == 8 && t == killed)
            kill_node(&nodes[odd]);
        nodes[odd].gone = nodes[odd].gone && t < again;
        /* Its shim tries until it is there. */
        if (nodes[odd].gone && plans[odd].at_ms <= t && !shims[odd].answers)
            plans[odd].at_ms = again + rand() % 50;
        for (int i = 0; i < n_nodes; i++)
            if (plans[i].at_ms == t && !nodes[i].silent && !nodes[i].old)
                say(i, 77, plans[i].will, &shims[i]);
    }
    for (int i = 0; i < n_nodes; i++) {
        bool asks = plans[i].at_ms != INT64_MAX && !nodes[i].silent && !nodes[i].old;
        const struct connection *shim = &shims[i];
        CHECK_INT(shim->answers, asks);
        CHECK_INT(shim->holders, 0);
        none |= !asks;
        answered += asks;
        if (!asks)
            continue;
        CHECK(shim->answered_ms - shim->asked_ms < WAIT_MS);
        said[strcmp(shim->rings, "all") == 0    ? 0
             : strcmp(shim->rings, "not") == 0  ? 1
             : strcmp(shim->rings, "late") == 0 ? 2
                                                : 3]++;
        CHECK((strcmp(shim->rings, "all") == 0) == !*shim->why);
    }
    CHECK_INT(said[3], 0);
    CHECK(said[0] == 0 || (all && !none)); /* never "all" where one has not said "yes" */
    if (!losses)                           /* "all" to everybody, or to nobody */
        CHECK(said[0] == 0 || said[0] == n_nodes);
    if (kind == 0 || kind == 8)
        CHECK_INT(said[0], n_nodes);
    if (kind == 1 && !all) {
        CHECK_INT(said[0], 0);
        CHECK_INT(said[2], 0);
    }
    if (kind == 2 && none && answered > 0)
        CHECK(said[2] > 0);
}

TEST(nodes)
{
    for (int round = 0; round < ROUNDS && check_failures == 0; round++) {
        begin(2 + rand() % (NODES - 1));
        one_communicator(round % KINDS);
        end();
        if (check_failures)
            fprintf(stderr, "round %d, kind %d, %d nodes\n", round, round % KINDS, n_nodes);
    }
}

/* Who comes later gets the answer that the others got; a minute later it is forgotten. */
TEST(later)
{
    struct connection shims[3];
    begin(2);
    nodes[1].silent = nodes[1].old = false;
    say(0, 1, true, &shims[0]);
    for (int64_t until = now_ms + 700; step_until(until);)
        ;
    CHECK_STR(shims[0].rings, "late");
    CHECK_STR(shims[0].why,
              "n2 has not said in time that it builds the rings: run tccl-check there");
    say(1, 1, true, &shims[1]);
    for (int64_t until = now_ms + 700; step_until(until);)
        ;
    CHECK_STR(shims[1].rings, "late");
    for (int64_t until = now_ms + AGREE_KEEP_MS + 1000; step_until(until);)
        ;
    CHECK_INT(n_timers, 0);
    say(0, 1, false, &shims[2]);
    CHECK_STR(shims[2].rings, "not");
    CHECK_STR(shims[2].why, "n1 uses NCCL's own choice");
    end();
}

/* Node 0 knows from the launch that a node has no plan: nobody waits for that one. */
TEST(partial)
{
    struct connection shims[2];
    begin(3);
    nodes[0].step.partial = true;
    say(0, 1, true, &shims[0]);
    CHECK_STR(shims[0].rings, "not");
    CHECK_STR(shims[0].why, "a node has no plan");
    say(1, 1, true, &shims[1]);
    for (int64_t until = now_ms + 100; step_until(until);)
        ;
    CHECK_STR(shims[1].rings, "not");
    end();
}

/* More communicators than a user may begin are answered at once; those of before are remembered up
 * to a number, and nobody is left without an answer. */
TEST(bounds)
{
    static struct connection shims[MOST];
    int refused = 0, n = 0;
    begin(2);
    for (int second = 0; second < 6; second++, now_ms += 500)
        for (int i = 0; i < AGREE_SECOND + 4; i++, n++) {
            say(0, 1000 + (uint64_t)n, true, &shims[n]);
            refused += strcmp(shims[n].rings, "error") == 0;
        }
    CHECK(refused >= 6 * 4);
    CHECK(n_timers <= AGREE_USER);
    nodes[0].step.uid++; /* another user has his own room */
    say(0, 5, true, &shims[n]);
    CHECK_STR(shims[n].rings, "");
    for (int64_t until = now_ms + 700; step_until(until);)
        ;
    for (int i = 0; i <= n; i++)
        CHECK_INT(shims[i].answers, 1);
    end();
}

/* What is no message: refused, and nothing is remembered of it. */
TEST(bad)
{
    static const char *const bad[] = {"comm 123\nwill yes\n",
                                      "will yes\n",
                                      "comm 00000000000000zz\nwill yes\n",
                                      "comm 00000000000000011\nwill yes\n",
                                      "comm 0000000000000001\nwill maybe\n",
                                      "comm 0000000000000001\n",
                                      "comm 0000000000000001\ncomm 0000000000000002\nwill yes\n"};
    begin(2);
    for (size_t i = 0; i < COUNT(bad); i++) {
        char text[256];
        struct tccl_lines lines;
        struct connection shim = {.holders = 1};
        snprintf(text, sizeof(text), "tccl-agree 1\n%send\n", bad[i]);
        CHECK_INT(tccl_lines_open(text, strlen(text), &lines, NULL), 0);
        agree_hear(&nodes[0].daemon, &shim, &lines);
        CHECK_STR(shim.rings, "error");
        CHECK_INT(n_timers, 0);
    }
    end();
}

SETUP
{
    now_ms = 1000000;
}
