/* Steps in tccld: the table of their phases, and one step under random events, in any order and at
 * any time (step-fakes.h). */
#include "client/step-fields.h"
#include "step-fakes.h"

enum { ROUNDS = 3000, EVENTS = 60, NODES = 20, KEYS = 2, TIMEOUT_MS = 10000, MOST = 4 * EVENTS };

/* The table */

static bool reach(enum step_phase from, bool reached[static STEP_PHASES])
{
    bool is_gone = from == STEP_GONE;
    reached[from] = true;
    for (int event = 0; event < STEP_EVENTS; event++) {
        enum step_phase next = phase_after(from, (enum step_event)event);
        if (next != STEP_REFUSED)
            is_gone = (!reached[next] && reach(next, reached)) || is_gone;
    }
    return is_gone;
}

TEST(reachable)
{
    bool reached[STEP_PHASES] = {false};
    reach(STEP_GATHERING, reached);
    for (int phase = 0; phase < STEP_PHASES; phase++) {
        bool from_here[STEP_PHASES] = {false};
        CHECK(reached[phase]);
        reach((enum step_phase)phase, from_here);
        CHECK(from_here[STEP_GONE]);
        for (int next = 0; next < STEP_PHASES; next++) /* closed is closed */
            CHECK(phase_is_open((enum step_phase)phase) || !from_here[next] ||
                  !phase_is_open((enum step_phase)next));
    }
    for (int event = 0; event < STEP_EVENTS; event++)
        CHECK_INT(phase_after(STEP_GONE, (enum step_event)event), STEP_REFUSED);
    CHECK_INT(phase_after(STEP_PHASES, STEP_JOIN), STEP_REFUSED);
    CHECK_INT(phase_after(STEP_GATHERING, STEP_EVENTS), STEP_REFUSED);
}

TEST(names)
{
    for (int i = 0; i < STEP_PHASES; i++)
        for (int k = 0; k < i; k++)
            CHECK(strcmp(phase_name((enum step_phase)i), phase_name((enum step_phase)k)) != 0);
    for (int i = 0; i < STEP_EVENTS; i++)
        for (int k = 0; k < i; k++)
            CHECK(strcmp(phase_event_name((enum step_event)i),
                         phase_event_name((enum step_event)k)) != 0);
}

/* One node */

static struct rig {
    struct tccl_conf conf;
    struct daemon daemon;
    struct steps *steps;
    char *names[NODES];
    char texts[NODES][8];
    int node, n_nodes, parent;
    int joined; /* steps that this node has joined */
    struct connection connections[MOST];
    int n_connections;
    int seen[STEP_PHASES];
} rig;

static void begin_rig(int node, int n_nodes)
{
    rig.n_connections = rig.joined = 0;
    rig.node = node;
    rig.n_nodes = n_nodes;
    rig.parent = node_tree_parent(node);
    fake_put = fake_made = fake_metrics = fake_plans = 0;
    fake_disk_full = fake_no_profile = false;
    fake_solution = TCCL_STATE_PLANNED;
    strcpy(rig.conf.node, rig.names[node]);
    strcpy(rig.conf.squeue, "squeue");
    fake_facts = (struct tccl_step){.uid = 1000, .account = "tester"};
    fake_knows = false;
    rig.daemon.steps = rig.steps = steps_new(&rig.daemon);
}

/* All that has asked has been answered once, and nothing is left. */
static void end_rig(void)
{
    steps_stop(rig.steps);
    fake_answer_questions(false);
    CHECK_INT(fake_n_questions, 0);
    CHECK_INT(fake_expected, 0);
    CHECK_INT(fake_metrics, rig.joined);
    CHECK(fake_put >= fake_made);
    /* the root has one record of each; others, where the parent has none */
    CHECK(rig.node == 0 ? fake_made == rig.joined : fake_made <= rig.joined);
    steps_free(rig.steps);
    for (int i = 0; i < rig.n_connections; i++) {
        const struct connection *connection = &rig.connections[i];
        CHECK_INT(connection->answers + connection->dropped, 1);
        CHECK_INT(connection->holds, 0);
        CHECK(!connection->dropped || connection->node[0]); /* by a child that has asked again */
    }
    CHECK_INT(fake_n_links, 0);
    CHECK_INT(fake_class.holders, 0);
    CHECK_INT(fake_bugs, 0);
}

/* Of the unix socket, or of another node. */
static struct connection *new_connection(void)
{
    struct connection *connection = &rig.connections[rig.n_connections++];
    *connection = (struct connection){.closed = rand() % 16 == 0};
    return connection;
}

static struct connection *new_peer(int node)
{
    struct connection *connection = new_connection();
    strcpy(connection->node, rig.names[node]);
    return connection;
}

static struct tccl_step_key key_of(int which)
{
    return (struct tccl_step_key){.cluster = "test", .job = 7, .step = (uint32_t)which};
}

static struct tccl_step join_of(int which, int node)
{
    return (struct tccl_step){.key = key_of(which),
                              .node = node,
                              .n_nodes = rig.n_nodes,
                              .nodes = rig.names,
                              .gres = {0, 1, 2, 3},
                              .n_gres = 4,
                              .mode = TCCL_MODE_AUTO,
                              .uid = 1000,
                              .gid = 1000,
                              .timeout_ms = TIMEOUT_MS,
                              .account = "tester"};
}

/* Events */

static void put_reason(json_t *message, const char *reason)
{
    json_object_set_new(message, "reason", json_string(reason));
    tccl_message_put_reason(message, TCCL_REASON_NO_PROFILE, NULL);
}

static void do_join(int which)
{
    struct tccl_step join = join_of(which, rig.node);
    if (rand() % 8 == 0) {
        strcpy(join.reason, "MIG is on");
        join.cause = TCCL_REASON_UNKNOWN_GPU;
    }
    if (rand() % 8 == 0)
        join.n_gres = 2;
    if (rand() % 16 == 0)
        join.min_nodes = rig.n_nodes + 1;
    join.by_claims = rand() % 4 == 0;
    if (rand() % 16 == 0)
        strcpy(join.account, "forged");
    if (rand() % 32 == 0)
        join.n_nodes--;
    if (join.n_nodes <= join.node)
        join.n_nodes = rig.n_nodes;
    if (rand() % 4 == 0)
        join.waited_ms = rand() % 5000;
    cleanup_json json_t *message = tccl_join_to_json(&join, NULL);
    int64_t now = ++fake_us;
    struct connection *connection = new_connection();
    int plans = fake_plans;
    step_join(&rig.daemon, connection, message);
    struct step *step = steps_find(rig.steps, &join.key);
    if (step && step->joined_us == now) {
        rig.joined++;
        CHECK(step->opened_us - step->waited_us <= now - join.waited_ms * INT64_C(1000));
    }
    CHECK(fake_plans - plans <= 1);
}

static json_t *new_report(const char *type, int which, int node)
{
    json_t *message = tccl_message_new(type);
    struct tccl_step_key key = key_of(which);
    cleanup_json json_t *rest =
        json_pack("{s:o,s:i,s:i,s:i,s:i}", "key", tccl_key_to_json(&key), "node", node, "n_nodes",
                  rig.n_nodes, "timeout_ms", TIMEOUT_MS, "wait_ms", rand() % TIMEOUT_MS);
    json_object_update(message, rest);
    return message;
}

static void do_merge(int which)
{
    int node = rig.node, steps = rand() % NODES;
    for (int i = 0, next; i <= steps; i++)
        node = (next = node_tree_next_child(rig.node, node, rig.n_nodes)) < 0 ? node : next;
    if (node == rig.node)
        return;
    cleanup_json json_t *message = new_report("merge", which, node);
    if (rand() % 8 == 0)
        put_reason(message, fake_reason);
    else if (rand() % 16 == 0)
        json_object_set_new(message, "bad", json_true());
    if (rand() % 8 == 0)
        json_object_set_new(message, "claims", json_string(rand() % 4 ? "\ntester\n" : "x"));
    if (rand() % 32 == 0)
        json_object_del(message, "key");
    step_merge(&rig.daemon, new_peer(rand() % 32 ? node : rig.node), message);
}

/* Of the parent, with names, or of a child. */
static void do_here(int which)
{
    int end = node_tree_end(rig.node, rig.n_nodes);
    cleanup_json json_t *message = new_report("here", which, rig.node);
    if (rand() % 2) {
        cleanup_free char *names =
            tccl_hosts_fold((const char *const *)rig.names + rig.node, (size_t)(end - rig.node));
        json_object_set_new(message, "nodes", json_string(rand() % 8 ? names : "n[1-"));
        if (rig.parent >= 0)
            json_object_set_new(message, "parent", json_string(rig.names[rig.parent]));
    }
    struct connection *peer = new_peer(rig.parent >= 0 ? rig.parent : rig.node);
    fake_stepd_ms = rand() % 4 ? -1 : rand() % 4000;
    fake_missing = rand() % 16 ? NULL : "there is no plugstack.conf";
    step_here(&rig.daemon, peer, message);
    CHECK_INT(peer->answers, 1);
}

static void do_leave(int which)
{
    struct tccl_step_key key = key_of(which);
    cleanup_json json_t *message = tccl_message_new("leave");
    json_object_set_new(message, "key", tccl_key_to_json(&key));
    step_leave(&rig.daemon, new_connection(), message);
}

/* Its time has come; sometimes the callback comes late. */
static void do_timer(int which)
{
    struct tccl_step_key key = key_of(which);
    struct step *step = steps_find(rig.steps, &key);
    if (!step || !evtimer_pending(step->timer, NULL))
        return;
    int64_t due = step_is_open(step) ? deadline_report(step) : step->end;
    if (step_is_open(step) && rand() % 4)
        due = step->ask_at < due ? step->ask_at : due;
    if (step_is_open(step) && rand() % 4)
        due = fake_us / 1000 + rand() % 200;
    if (fake_us < due * 1000)
        fake_us = due * 1000;
    event_del(step->timer);
    event_get_callback(step->timer)(-1, EV_TIMEOUT, event_get_callback_arg(step->timer));
}

/* The PLAN for this node and those below. A new reference. */
static json_t *plan_of(int which, enum tccl_state state)
{
    struct tccl_node_nics choices[NODES] = {{{0}, {0}}};
    struct tccl_outcome outcome = {.state = state,
                                   .recorded = rand() % 2,
                                   .reason = "the root says so",
                                   .cause = TCCL_REASON_NO_GAIN,
                                   .first = rig.node,
                                   .choices = choices};
    struct tccl_step_key key = key_of(which);
    return tccl_plan_to_json(&outcome, &key, rig.node, node_tree_end(rig.node, rig.n_nodes));
}

static json_t *new_plan(int which)
{
    static const enum tccl_state states[] = {TCCL_STATE_PLANNED, TCCL_STATE_PLANNED,
                                             TCCL_STATE_FAILED, TCCL_STATE_LEFT};
    return plan_of(which, states[rand() % 4]);
}

/* Another node answers, or can't be reached. */
static void do_answer(int which)
{
    struct tccl_error err = {0};
    if (fake_n_links == 0)
        return;
    int chosen = rand() % fake_n_links;
    cleanup_free struct link *link = fake_links[chosen];
    fake_links[chosen] = fake_links[--fake_n_links];
    if (rand() % 4 == 0) {
        tccl_fail_as(&err, TCCL_REASON_NO_DAEMON, "n9: connection refused");
        link->here = rand() % 2;
        link->connected = rand() % 2;
        link->done(link->context, NULL, &err);
    } else {
        cleanup_json json_t *answer = new_plan(which); /* often of the other step */
        if (rand() % 16 == 0)
            json_object_set_new(answer, "choices", json_true());
        cleanup_json json_t *here = tccl_message_new("here");
        if (rand() % 8 == 0)
            put_reason(here, fake_reason);
        cleanup_json json_t *busy = tccl_message_new(rand() % 2 ? LINK_BUSY : LINK_IDLE);
        link->connected = true;
        link->done(link->context, link->probe ? here : link->busy ? busy : answer, NULL);
    }
}

static void do_anything(void)
{
    int which = rand() % KEYS;
    fake_us += rand() % 100000;
    fake_disk_full = rand() % 8 == 0;
    fake_no_profile = rand() % 16 == 0;
    fake_solution = rand() % 8 ? TCCL_STATE_PLANNED : TCCL_STATE_LEFT;
    fake_look = rand() % 4 == 0;
    switch (rand() % 17) {
    case 0:
    case 1:
        do_join(which);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
        do_merge(which);
        break;
    case 7:
        do_leave(which);
        break;
    case 8:
        do_timer(which);
        break;
    case 9:
        if (rig.n_connections > 0)
            rig.connections[rand() % rig.n_connections].closed = true;
        break;
    case 10:
        join_heard(&rig.daemon, 1);
        break;
    case 11:
        do_here(which);
        break;
    case 12:
        /* slurmctld answers, or doesn't. */
        fake_facts.uid = rand() % 8 ? 1000 : 1001;
        fake_answer_questions(rand() % 4 != 0);
        break;
    default:
        do_answer(which);
        break;
    }
}

/* What holds between any two events */

static bool is_asked(const struct probe *probe)
{
    return probe->tries[PROBE_FIRST].link || probe->tries[PROBE_AGAIN].link ||
           probe->tries[PROBE_BUSY].link;
}

static void check_step(const struct step *step, bool open)
{
    bool under_way = step->phase == STEP_REPORTED || step->phase == STEP_REPORTING ||
                     step->phase == STEP_LEAVING;
    bool timed = step->end != INT64_MAX;
    rig.seen[step->phase]++;
    CHECK_INT(step_is_open(step), open);
    CHECK_INT(step->up != NULL, under_way);
    CHECK_INT(evtimer_pending(step->timer, NULL) != 0, timed);
    CHECK(open || step->n_waiters == 0);
    CHECK(!open || !step->path);
    CHECK(!step->path || (step_has_joined(step) && step->outcome.state == TCCL_STATE_PLANNED));
    CHECK(step->phase != STEP_FAILED || (!step->join && !step->parent));
    CHECK(!is_asked(&step->above) || step->phase == STEP_REPORTED);
    CHECK(step->phase != STEP_REPORTED || (step->join && step->n_arrived == step->n_children));
    CHECK(step->phase != STEP_SETTLED || step->recorded || !step_has_joined(step));
    CHECK(!open || step->outcome.state != TCCL_STATE_PLANNED);
    CHECK(rig.node != 0 || !under_way);
    int arrived = 0;
    for (int i = 0; i < step->n_children; i++) {
        const struct child *child = &step->children[i];
        arrived += child->merge != NULL;
        CHECK(open || (!child->merge && !child->connection && !is_asked(&child->probe)));
        CHECK((child->merge != NULL) == (child->connection != NULL));
    }
    CHECK(!open || arrived == step->n_arrived);
}

static void check_steps(void)
{
    const struct step *step;
    int count = 0;
    TAILQ_FOREACH(step, &rig.steps->open, link)
    {
        check_step(step, true);
        count++;
    }
    TAILQ_FOREACH(step, &rig.steps->closed, link)
    {
        check_step(step, false);
        count++;
    }
    CHECK_INT(count, rig.steps->count);
}

/* The step that these tests are about. */
static struct step *the_step(void)
{
    struct tccl_step_key key = key_of(0);
    return steps_find(rig.steps, &key);
}

/* A JOIN of a plugin that waits for the answer. */
static struct connection *send_join(const struct tccl_step *join)
{
    cleanup_json json_t *message = tccl_join_to_json(join, NULL);
    struct connection *connection = new_connection();
    connection->closed = false;
    step_join(&rig.daemon, connection, message);
    rig.joined++;
    return connection;
}

static const struct step *join_alone(void)
{
    struct tccl_step join = join_of(0, rig.node);
    send_join(&join);
    return the_step();
}

static void merge_with(int node, bool required, const char *claims, const char *reason)
{
    cleanup_json json_t *merge = new_report("merge", 0, node);
    json_object_set_new(merge, "wait_ms", json_integer(TIMEOUT_MS));
    if (required)
        json_object_set_new(merge, "required", json_true());
    if (claims)
        json_object_set_new(merge, "claims", json_string(claims));
    if (*reason)
        put_reason(merge, reason);
    struct connection *peer = new_peer(node);
    peer->closed = false;
    step_merge(&rig.daemon, peer, merge);
}

/* It has failed and ended here before a node below comes or asks: that hears why, at once. Later,
 * the step is another run. */
TEST(failed_and_ended)
{
    for (int i = 0; i < 4; i++) {
        bool late = i % 2, patient = i / 2;
        begin_rig(0, 2);
        fake_no_profile = true;
        struct tccl_step join = join_of(0, 0);
        join.timeout_ms = patient ? 60000 : TIMEOUT_MS;
        send_join(&join);
        do_leave(0);
        CHECK_INT(the_step()->phase, STEP_ENDED);
        fake_us += late * INT64_C(10000) * 1000;
        cleanup_json json_t *message = new_report("here", 0, 0);
        json_object_del(message, "reason");
        struct connection *peer = new_peer(1);
        step_here(&rig.daemon, peer, message);
        CHECK_INT(peer->told, !late);
        merge_with(1, false, NULL, "");
        CHECK_INT(the_step()->phase, late ? STEP_GATHERING : STEP_ENDED);
        end_rig();
    }
}

/* All of a range is there and reported; then a node of it fails: its parent hears the reason in
 * place of the MERGE, as it must not give the ring out any more. */
TEST(taken_back)
{
    begin_rig(16, NODES);
    const struct step *step = join_alone();
    for (int node = 17; node < NODES; node++)
        merge_with(node, false, NULL, "");
    CHECK_INT(step->phase, STEP_REPORTED);
    CHECK_INT(fake_n_links, 1);
    CHECK_STR(fake_links[0]->reason, "");
    cleanup_json json_t *failure = new_report("merge", 0, 18);
    put_reason(failure, fake_reason);
    step_merge(&rig.daemon, new_peer(18), failure);
    CHECK_INT(step->phase, STEP_REPORTING);
    CHECK_INT(fake_n_links, 1);
    CHECK_STR(fake_links[0]->reason, fake_reason);
    end_rig();
}

/* The question that was put last ends: with an answer, of that type, or without one. */
static void end_question(const char *type, bool here, bool connected)
{
    struct tccl_error err = {0};
    CHECK(fake_n_links > 0);
    cleanup_free struct link *link = fake_links[--fake_n_links];
    cleanup_json json_t *answer = type ? tccl_message_new(type) : NULL;
    link->here = here;
    link->connected = connected;
    tccl_fail_as(&err, TCCL_REASON_NO_ANSWER, "n2: no answer");
    link->done(link->context, answer, type ? NULL : &err);
}

static bool last_is_busy(void)
{
    return fake_n_links > 0 && fake_links[fake_n_links - 1]->busy;
}

/* Until the next question is due. */
static void wait_until(const struct step *step, int64_t due)
{
    fake_us = due * 1000;
    event_del(step->timer);
    event_get_callback(step->timer)(-1, EV_TIMEOUT, event_get_callback_arg(step->timer));
}

/* A step that has its plan is joined again, by the same slurmstepd, by another one, or by one that
 * can't be seen, as the first could not. But for the same, that is a new run, and the plan of
 * before, which has gone with that, is not for it. */
TEST(joined_again)
{
    for (int way = 0; way < 3; way++) {
        begin_rig(2, 3);
        fake_unseen = way == 2;
        const struct step *step = join_alone();
        stepd_name(fake_unseen ? 0 : getpid(), fake_record.stepd);
        CHECK_INT(fake_n_links, 1);
        cleanup_free struct link *link = fake_links[--fake_n_links];
        cleanup_json json_t *plan = plan_of(0, TCCL_STATE_PLANNED);
        link->done(link->context, plan, NULL);
        CHECK_INT(step->phase, STEP_SETTLED);
        CHECK(step->path);
        if (way == 1)
            strcpy(fake_record.stepd, "1 2 3");
        step = join_alone();
        rig.joined -= way == 0;
        CHECK_INT(step->phase, way == 0 ? STEP_SETTLED : STEP_REPORTED);
        CHECK_INT(rig.connections[1].answers, way == 0);
        fake_unseen = false;
        fake_record.stepd[0] = '\0';
        end_rig();
    }
}

/* The first question of a step whose child is missing, at the time at which it is asked more. */
static const struct step *ask_first(void)
{
    begin_rig(0, 2);
    const struct step *step = join_alone();
    wait_until(step, step->ask_at);
    CHECK_INT(fake_n_links, 1);
    CHECK(fake_links[0]->probe && fake_links[0]->wait_ms > 0);
    wait_until(step, step->children[0].probe.more_at);
    CHECK(fake_n_links == 2 && last_is_busy());
    return step;
}

/* A child is late. That this node could not ask, or hear, says nothing of the child, and it is not
 * asked whether it is busy; once the question was put twice, no answer does. */
TEST(unasked)
{
    for (int tries = 0; tries < 2; tries++) {
        begin_rig(0, 2);
        const struct step *step = join_alone();
        for (int i = 0; i < (tries ? 3 : 1); i++) {
            wait_until(step, step->ask_at);
            fake_links[0]->here = true;
            wait_until(step, step->children[0].probe.more_at);
            CHECK_INT(fake_n_links, 1);
            end_question(NULL, true, false);
            CHECK(step_is_open(step));
        }
        wait_until(step, step->ask_at);
        end_question(NULL, tries == 1, false);
        if (tries == 0) {
            CHECK(step_is_open(step)); /* it is asked once more */
            end_question(NULL, false, false);
        }
        CHECK(!step_is_open(step) && strstr(step->outcome.reason, "n2: no answer"));
        end_rig();
    }
}

/* No answer comes soon: it is asked whether it is busy. Who is not is asked once more, on a new
 * connection, and one answer is enough; so is who hangs up, as an older tccld does. Who can't be
 * reached for that either is dead when all questions have failed. */
TEST(repeated)
{
    for (int way = 0; way < 8; way++) {
        const struct step *step = ask_first();
        bool speaks = way & 1, idle = way & 2, answers = way & 4;
        end_question(idle ? LINK_IDLE : NULL, false, speaks || idle);
        CHECK_INT(fake_n_links, speaks || idle ? 2 : 1);
        CHECK(!last_is_busy());
        if (answers) {
            end_question("here", false, true);
            CHECK(step_is_open(step) && step->children[0].listens && fake_n_links == 0);
        } else {
            fake_us += rig.conf.alive_timeout_ms * 1000;
            while (step_is_open(step) && fake_n_links > 0)
                end_question(NULL, false, true);
            CHECK(!step_is_open(step));
        }
        end_rig();
    }
}

/* Nor does any word come of whether it is busy: it is asked on a third connection. */
TEST(third)
{
    const struct step *step = ask_first();
    wait_until(step, step->children[0].probe.more_at);
    CHECK(fake_n_links == 3 && fake_links[2]->probe);
    wait_until(step, step->children[0].probe.more_at);
    CHECK_INT(fake_n_links, 3);
    end_question("here", false, true);
    CHECK(step_is_open(step) && fake_n_links == 0 && step->children[0].listens);
    end_rig();
}

/* Nobody listens: it is asked once more at once, and then dead. Who hangs up is asked until A. */
TEST(refused_question)
{
    for (int connected = 0; connected < 2; connected++) {
        begin_rig(0, 2);
        const struct step *step = join_alone();
        int64_t begun = fake_us / 1000;
        wait_until(step, step->ask_at);
        end_question(NULL, false, connected);
        CHECK(step_is_open(step) && fake_n_links == 1);
        end_question(NULL, false, connected);
        CHECK_INT(step_is_open(step), connected);
        while (step_is_open(step)) {
            wait_until(step, step->ask_at);
            end_question(NULL, false, true);
            end_question(NULL, false, true);
        }
        int64_t took = fake_us / 1000 - begun;
        CHECK(connected ? took >= rig.conf.alive_timeout_ms
                        : took <= rig.conf.alive_timeout_ms / 4);
        CHECK(took <= 2 * rig.conf.alive_timeout_ms);
        end_rig();
    }
}

/* Who is busy is asked again, for four times as long, with an answer or without one in the end; and
 * who has said so once, and hangs then, is not waited for longer than that. */
TEST(busy)
{
    for (int answers = 0; answers < 2; answers++) {
        const struct step *step = ask_first();
        int64_t begun = step->children[0].probe.since, alive = rig.conf.alive_timeout_ms;
        end_question(LINK_BUSY, false, true);
        CHECK(fake_n_links == 1 && !last_is_busy());
        fake_us = (begun + alive) * 1000;
        end_question(NULL, false, true);
        CHECK(step_is_open(step) && fake_n_links == 0);
        wait_until(step, step->ask_at);
        CHECK_INT(fake_n_links, 1);
        if (answers) {
            end_question("here", false, true);
            CHECK(step_is_open(step) && step->children[0].probe.since == 0);
        }
        for (int i = 0; !answers && step_is_open(step); i++) {
            CHECK(i < 8);
            fake_us += alive * 1000;
            end_question(NULL, false, true);
            if (step_is_open(step) && fake_n_links == 0)
                wait_until(step, step->ask_at);
        }
        int64_t took = fake_us / 1000 - begun;
        CHECK(answers || (took > 3 * alive && took <= 6 * alive));
        end_rig();
    }
}

/* How many rings at once: what the plugin's policy says, else what tccld's own tccl.conf does. */
TEST(most_rings)
{
    for (int asked = 0; asked <= TCCL_NODE_RINGS; asked++) {
        begin_rig(0, 1);
        struct tccl_step join = join_of(0, 0);
        join.max_rings = asked;
        send_join(&join);
        CHECK_INT(fake_most_rings, asked ? asked : rig.conf.max_rings);
        end_rig();
    }
}

static struct step *join_with(enum tccl_mode mode, const char *reason)
{
    struct tccl_step join = join_of(0, rig.node);
    join.mode = mode;
    strcpy(join.reason, reason);
    join.cause = *reason ? TCCL_REASON_UNKNOWN_GPU : TCCL_REASON_NONE;
    send_join(&join);
    return the_step();
}

/* Node 0's plugin ends a step without a ring where a node requires one, and if it has nothing to
 * say against it itself; so it does where it comes after the failure. A record is kept for what
 * comes later where there is a ring. */
TEST(required)
{
    static const enum tccl_mode modes[] = {TCCL_MODE_AUTO, TCCL_MODE_ON, TCCL_MODE_REQUIRE};
    static const enum tccl_state states[] = {TCCL_STATE_PLANNED, TCCL_STATE_LEFT,
                                             TCCL_STATE_FAILED};
    for (int i = 0; i < 3 * 3 * 2 * 2; i++) {
        enum tccl_mode mode = modes[i % 3];
        enum tccl_state state = states[i / 3 % 3];
        bool child = i / 9 % 2, late = i / 18 % 2;
        if (late && state != TCCL_STATE_FAILED)
            continue;
        begin_rig(0, 2);
        fake_solution = state == TCCL_STATE_FAILED ? TCCL_STATE_PLANNED : state;
        fake_no_profile = state == TCCL_STATE_FAILED && !late;
        merge_with(1, child, NULL, late ? fake_reason : "");
        const struct step *step = join_with(mode, "");
        CHECK_INT(step->outcome.state, state);
        CHECK_INT(step->outcome.required,
                  state == TCCL_STATE_FAILED && (mode == TCCL_MODE_REQUIRE || child));
        CHECK_INT(step->record != NULL, state == TCCL_STATE_PLANNED);
        end_rig();
    }
    begin_rig(0, 1);
    CHECK(!join_with(TCCL_MODE_REQUIRE, "MIG is on")->outcome.required);
    end_rig();
    begin_rig(1, 2); /* it says so to node 0, and hears of it */
    fake_no_profile = true;
    const struct step *step = join_with(TCCL_MODE_REQUIRE, "");
    CHECK_INT(step->outcome.state, TCCL_STATE_FAILED);
    CHECK(step->required && !step->outcome.required && !step->record);
    end_rig();
}

/* A node below one that [peers] excludes has nobody to tell: it keeps the record itself, at once.
 */
TEST(parent_down)
{
    struct tccl_peer down = {.node = "n1", .down = 1};
    begin_rig(1, 2);
    rig.conf.peers = &down;
    rig.conf.n_peers = rig.conf.n_down = 1;
    const struct step *step = join_alone();
    CHECK_INT(step->phase, STEP_SETTLED);
    CHECK(strstr(step->outcome.reason, "n1: excluded from rings"));
    CHECK(fake_n_links == 0 && fake_made == 1);
    rig.conf.n_peers = rig.conf.n_down = 0;
    rig.conf.peers = NULL;
    end_rig();
}

/* What a step does whose policy depends on what it claims: the answer of its JOIN. */
static const struct connection *join_by_claims(const char *account)
{
    struct tccl_step join = join_of(0, 0);
    join.by_claims = true;
    snprintf(join.account, sizeof(join.account), "%s", account);
    const struct connection *connection = send_join(&join);
    CHECK(the_step() != NULL);
    return connection;
}

/* A node above or below asks, after_ms from now, when the slurmstepd here has been there for
 * stepd_ms. Returns whether the step still waits. */
static bool ask_here(int after_ms, int64_t stepd_ms)
{
    cleanup_json json_t *message = new_report("here", 0, rig.node);
    fake_us += after_ms * 1000;
    fake_stepd_ms = stepd_ms;
    json_object_del(message, "reason");
    json_object_set_new(message, "wait_ms", json_integer(TIMEOUT_MS));
    step_here(&rig.daemon, new_peer(rig.parent), message);
    return step_is_open(the_step());
}

/* The parent's port is flooded, so it hears no question; one of its own says that it is alive. */
TEST(flooded_parent)
{
    begin_rig(1, 2);
    const struct step *step = join_alone();
    CHECK_INT(step->phase, STEP_REPORTED);
    wait_until(step, step->ask_at);
    CHECK(fake_n_links == 2 && step->above.since > 0);
    CHECK(ask_here(100, -1));
    CHECK(fake_n_links == 1 && !fake_links[0]->probe && step->above.since == 0);
    end_rig();
}

/* A slurmstepd that has been there for 3 s without a JOIN will send none; one that has sent it, or
 * came later, is waited for, as is one that can't be seen. */
TEST(silent)
{
    begin_rig(1, 2);
    CHECK(ask_here(0, 60000)); /* so is a JOIN that is on its way */
    CHECK(ask_here(2999, 60000) && ask_here(1, 2999) && ask_here(0, 0) && ask_here(9000, -1));
    CHECK(!ask_here(0, 3000));
    CHECK(strstr(the_step()->outcome.reason,
                 "n2: the step has started there, but its plugin has not spoken"));
    end_rig();
    begin_rig(1, 2); /* one that has begun and ended here without a plugin, or is to come */
    fake_missing = "there is no plugstack.conf";
    CHECK(ask_here(0, -1) && ask_here(2999, -1));
    CHECK(!ask_here(1, -1));
    CHECK(strstr(the_step()->outcome.reason,
                 "n2: Slurm has no plugin there: there is no plugstack.conf"));
    end_rig();
    begin_rig(1, 2);
    join_alone();
    CHECK(ask_here(4000, 4000));
    fake_missing = NULL;
    end_rig();
    fake_stepd_ms = -1;
}

/* The parent can't be reached with the MERGE: it is sent once more. */
TEST(resent)
{
    struct tccl_error err = {0};
    tccl_fail_as(&err, TCCL_REASON_NO_DAEMON, "n1: connection refused");
    for (int connected = 0; connected < 2; connected++) {
        begin_rig(1, 2);
        const struct step *step = join_alone();
        for (int i = connected; i < 2; i++) {
            CHECK_INT(step->phase, STEP_REPORTED);
            CHECK_INT(fake_n_links, 1);
            CHECK(!fake_links[0]->probe);
            cleanup_free struct link *link = fake_links[--fake_n_links];
            link->connected = connected;
            link->done(link->context, NULL, &err);
        }
        CHECK(!step_is_open(step) && strstr(step->outcome.reason, "n1: connection refused"));
        end_rig();
    }
}

TEST(claims_of_root)
{
    static const struct {
        bool knows;
        const char *account;
        uid_t uid;
        const char *reason; /* NULL: the ring is given */
    } cases[] = {
        {true, "tester", 1000, NULL},
        {true, "forged", 1000,
         "n1: the step's environment says account forged, the job's is tester"},
        {true, "", 1000, "n1: the step's environment says account (none), the job's is tester"},
        {true, "tester", 1001, "slurmctld does not say them"},
        {false, "tester", 1000, "slurmctld does not say them"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        begin_rig(0, 1);
        fake_facts.uid = cases[i].uid;
        const struct connection *connection = join_by_claims(cases[i].account);
        CHECK_INT(connection->answers, 0);
        fake_answer_questions(cases[i].knows);
        CHECK_INT(connection->answers, 1);
        CHECK_INT(connection->applied, !cases[i].reason);
        CHECK(!cases[i].reason || strstr(the_step()->outcome.reason, cases[i].reason));
        end_rig();
    }
}

/* No answer in time; and where nobody is asked. */
TEST(claims_unanswered)
{
    begin_rig(0, 1);
    const struct connection *connection = join_by_claims("tester");
    for (int i = 0; i < 100 && !connection->answers; i++)
        do_timer(0);
    CHECK_INT(connection->answers, 1);
    CHECK(!connection->applied &&
          strstr(the_step()->outcome.reason, "slurmctld has not said them within"));
    end_rig();
    begin_rig(0, 1);
    rig.conf.squeue[0] = '\0';
    connection = join_by_claims("forged");
    CHECK(connection->applied);
    end_rig();
}

/* Node 1 was told something else than node 0, or than slurmctld says. */
TEST(claims_of_child)
{
    for (int by_claims = 0; by_claims < 2; by_claims++) {
        begin_rig(0, 2);
        merge_with(1, false, "\nforged\n", "");
        if (by_claims) {
            CHECK_INT(join_by_claims("tester")->answers, 1);
            CHECK(strstr(the_step()->outcome.reason, "than on other nodes"));
        } else {
            CHECK_INT(join_alone()->phase, STEP_GATHERING);
            fake_answer_questions(true);
            CHECK(strstr(the_step()->outcome.reason, "of one node names another partition"));
        }
        end_rig();
    }
}

/* What the table doesn't have is refused, changes nothing, and is logged once. */
TEST(refused)
{
    for (int phase = 0; phase < STEP_PHASES; phase++)
        for (int event = 0; event < STEP_EVENTS; event++) {
            struct tccl_step_key key = key_of(0);
            enum step_phase next = phase_after((enum step_phase)phase, (enum step_event)event);
            begin_rig(0, 1);
            struct step *step = steps_get(rig.steps, &key, 0, 1, TIMEOUT_MS, NULL);
            for (int i = 0; i < 2; i++) {
                step->phase = (enum step_phase)phase;
                CHECK_INT(step_enter(step, (enum step_event)event), next != STEP_REFUSED);
                CHECK_INT(step->phase, next == STEP_REFUSED ? phase : (int)next);
                CHECK_INT(fake_bugs, next == STEP_REFUSED);
            }
            fake_bugs = 0;
            step->phase = STEP_GATHERING;
            end_rig();
        }
}

SETUP
{
    for (int i = 0; i < NODES; i++) {
        snprintf(rig.texts[i], sizeof(rig.texts[i]), "n%d", i + 1);
        rig.names[i] = rig.texts[i];
    }
    strcpy(rig.conf.run_dir, "/nowhere");
    rig.conf.alive_timeout_ms = 300;
    rig.conf.max_rings = 5;
    rig.daemon.conf = &rig.conf;
    rig.daemon.base = event_base_new();
    rig.daemon.running = &fake_running;
}

TEARDOWN
{
    event_base_free(rig.daemon.base);
}

TEST(random)
{
    static const struct {
        int node, n_nodes;
    } places[] = {{0, 1}, {0, 3}, {1, 3}, {16, NODES}, {0, NODES}};
    for (int round = 0; round < ROUNDS && check_failures == 0; round++) {
        int place = rand() % 5, events = rand() % EVENTS;
        begin_rig(places[place].node, places[place].n_nodes);
        for (int i = 0; i < events && check_failures == 0; i++) {
            do_anything();
            check_steps();
        }
        end_rig();
    }
    for (int phase = 0; phase < STEP_GONE; phase++) {
        CHECK(rig.seen[phase] > 0);
        printf("%d times %s\n", rig.seen[phase], phase_name((enum step_phase)phase));
    }
}
