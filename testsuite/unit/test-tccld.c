/* tccld, really: a munged of our own, several tccld on loopback, and the client library. */
#include <sys/un.h>

#include "client/credential.h"
#include "client/message.h"

enum { NODES = 20, ALL_GPUS = 0xf };

#include "joins.h"
#include "stores.h"

/* A table whose ring and chain are those of the baseline, as the model measures them; but the
 * baseline is said to be half as fast, so that there is something to be gained. */
static struct tccl_table *make_table(const struct tccl_model *model, uint32_t gpus)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_table *table = tccl_table_new(machine, gpus);
    struct tccl_set set;
    for (int closed = 0; closed < 2; closed++) {
        struct tccl_baseline *baseline = &table->baselines[closed][TCCL_NEWEST];
        if (tccl_baseline_find(machine, gpus, closed, TCCL_NEWEST, baseline, ERR) != 0)
            continue;
        tccl_chain_set(&baseline->set.rings[0], &set);
        if (tccl_model_measure(model, &set, &baseline->gbps, NULL, NULL, ERR) != 0)
            fprintf(stderr, "%s\n", check_err.text);
    }
    double ring_gbps = table->baselines[1][TCCL_NEWEST].gbps,
           chain_gbps = table->baselines[0][TCCL_NEWEST].gbps;
    if (table->baselines[1][TCCL_NEWEST].set.n > 0)
        *tccl_table_ring(table) =
            (struct tccl_result){.gbps = ring_gbps,
                                 .bound = ring_gbps,
                                 .chain = table->baselines[1][TCCL_NEWEST].set.rings[0]};
    const struct tccl_chain *chain = &table->baselines[0][TCCL_NEWEST].set.rings[0];
    for (int i = 0; i < tccl_table_pairs(table); i++)
        if (memcmp(&table->ports[i / table->n_ports], &chain->entry, sizeof(chain->entry)) == 0 &&
            memcmp(&table->ports[i % table->n_ports], &chain->exit, sizeof(chain->exit)) == 0)
            table->results[i] =
                (struct tccl_result){.gbps = chain_gbps, .bound = chain_gbps, .chain = *chain};
    table->baselines[1][TCCL_NEWEST].gbps /= 2;
    table->baselines[0][TCCL_NEWEST].gbps /= 2;
    for (int i = 0; i < TCCL_NEWEST; i++) {
        table->baselines[1][i] = table->baselines[1][TCCL_NEWEST];
        table->baselines[0][i] = table->baselines[0][TCCL_NEWEST];
    }
    return table;
}

static void make_profile(int node)
{
    static const uint32_t masks[] = {1, 3, ALL_GPUS};
    const char *name = node % 2 ? "amd-4gpu" : "intel-4gpu";
    struct tccl_table *tables[COUNT(masks)];
    for (size_t i = 0; i < COUNT(masks); i++)
        tables[i] = make_table(load_machine(name), masks[i]);
    put_profile(node, name, tables, COUNT(masks));
    for (size_t i = 0; i < COUNT(masks); i++)
        tccl_table_free(tables[i]);
}

static void check_record(int node, uint32_t job, const char *state, const char *reason)
{
    cleanup_json json_t *record = record_of(node, job);
    CHECK_STR(json_string_value(json_object_get(record, "state")), state);
    CHECK_HOLDS(json_string_value(json_object_get(record, "reason")), reason);
}

static void check_fallback(struct tccl_outcome *plan, const char *reason)
{
    CHECK_INT(plan->state, TCCL_STATE_FAILED);
    CHECK_HOLDS(plan->reason, reason);
    CHECK(plan->path == NULL && plan->ring == NULL);
    tccl_outcome_clear(plan);
}

static void check_applied(struct tccl_outcome plan)
{
    CHECK_INT(plan.state, TCCL_STATE_PLANNED);
    tccl_outcome_clear(&plan);
}

static void await_partial(uint32_t job, const char *reason)
{
    for (int ms = 0; ms < RIG_PATIENCE_MS; ms += 20, poll(NULL, 0, 20)) {
        cleanup_json json_t *record = record_of(0, job);
        if (*json_string_value(json_object_get(record, "reason")))
            break;
    }
    check_record(0, job, "planned", reason);
}

/* Tests */

TEST(one_node)
{
    struct tccl_step_key key = new_key();
    struct tccl_step join = new_join(key, 0, 1);
    struct stat stat_;
    cleared_by(tccl_outcome_clear) struct tccl_outcome plan = join_once(&join);
    CHECK_INT(plan.state, TCCL_STATE_PLANNED);
    CHECK_STR(plan.reason, "");
    CHECK(plan.gbps > 0 && plan.ring && strncmp(plan.ring, "n1[", 3) == 0);
    cleanup_free char *file = NULL;
    size_t size = 0;
    CHECK_OK(tccl_read_file(plan.path, 65536, &file, &size, ERR));
    struct tccl_lines lines;
    struct tccl_named_chain chain;
    char text[TCCL_CHAIN_TEXT];
    CHECK_INT(tccl_lines_open(file, tccl_lines_length(file, size), &lines, ERR), 0);
    CHECK(tccl_lines_are(&lines, "tccl-plan", 1));
    CHECK(tccl_line_text(&lines, "chain", text, sizeof(text)) > 0);
    CHECK_INT(tccl_named_parse(text, &chain, ERR), 0);
    CHECK(chain.n_gpus == 4 && chain.closed && !chain.numbers);
    CHECK_INT(stat(plan.path, &stat_), 0);
    CHECK_INT(stat_.st_mode & 0777, getuid() == 0 ? 0640 : 0644);
    check_record(0, key.job, "planned", "");
    leave(0, &key);
    CHECK_INT(stat(plan.path, &stat_), -1);
    leave(0, &key); /* twice is fine */
}

/* A job script that runs again after a requeue is told from its first run by its start alone. */
TEST(second_run)
{
    struct tccl_step join = new_join(new_key(), 0, 1);
    for (uint32_t run = 0; run < 2; run++) {
        join.key.run = 1700000000000 + run;
        cleared_by(tccl_outcome_clear) struct tccl_outcome plan = join_once(&join);
        CHECK_INT(plan.state, TCCL_STATE_PLANNED);
        CHECK_INT(access(plan.path, R_OK), 0);
        leave(0, &join.key);
    }
    for (int ms = 0; ms < RIG_PATIENCE_MS; ms += 20, poll(NULL, 0, 20)) {
        cleanup_json json_t *records = records_of(0, join.key.job);
        if (json_array_size(records) == 2)
            return;
    }
    CHECK_NO(true, "not two records of two runs\n");
}

static bool is_fallback(const struct tccl_outcome *plan, const char *reason)
{
    return plan->state == TCCL_STATE_FAILED && strstr(plan->reason, reason);
}

/* Joins n nodes and returns their plans. */
static void join_within(int ms, struct tccl_step_key key, int n, int skip,
                        struct tccl_outcome *plans)
{
    int fds[NODES];
    for (int i = 0; i < n; i++) {
        struct tccl_step join = new_join(key, i, n);
        join.timeout_ms = ms;
        fds[i] = i == skip ? -1 : start_join(&join);
    }
    for (int i = 0; i < n; i++)
        if (i != skip)
            plans[i] = end_join(fds[i]);
}

static void join_all(struct tccl_step_key key, int n, int skip, struct tccl_outcome *plans)
{
    join_within(JOIN_MS, key, n, skip, plans);
}

static void test_nodes(int n)
{
    struct tccl_step_key key = new_key();
    struct tccl_outcome plans[NODES];
    join_all(key, n, -1, plans);
    for (int i = 0; i < n; i++) {
        CHECK_STR(plans[i].reason, "");
        CHECK_INT(plans[i].state, TCCL_STATE_PLANNED);
        CHECK(plans[i].gbps == plans[0].gbps && plans[i].gbps > 0);
        CHECK_INT(access(plans[i].path, R_OK), 0);
        CHECK_STR(plans[i].ring, plans[0].ring);
        leave(i, &key);
        CHECK_INT(access(plans[i].path, R_OK), -1);
    }
    for (int i = 0; i < n; i++)
        tccl_outcome_clear(&plans[i]);
    cleanup_json json_t *record = record_of(n > 1, key.job);
    CHECK_STR(json_string_value(json_object_get(record, "state")), "planned");
    CHECK_INT(json_integer_value(json_object_get(record, "n_nodes")), n);
    CHECK_INT(json_integer_value(json_object_get(record, "gpus")), 4 * n);
    CHECK(json_integer_value(json_object_get(record, "solve_us")) > 0);
}

/* The same key once more, after the step has ended on all nodes. */
static void test_again(int n)
{
    struct tccl_step_key key = new_key();
    struct tccl_outcome plans[NODES];
    for (int run = 0; run < 2; run++) {
        join_all(key, n, -1, plans);
        for (int i = 0; i < n; i++) {
            CHECK_INT(plans[i].state, TCCL_STATE_PLANNED);
            CHECK_INT(access(plans[i].path, R_OK), 0);
            tccl_outcome_clear(&plans[i]);
        }
        for (int i = 0; i < n; i++)
            leave(i, &key);
    }
    check_record(0, key.job, "planned", "");
}

TEST(two_at_once)
{
    struct tccl_step_key a = new_key(), b = new_key();
    int fds[2][4];
    for (int i = 0; i < 4; i++) {
        struct tccl_step join_a = new_join(a, i, 4), join_b = new_join(b, 3 - i, 4);
        fds[0][i] = start_join(&join_a);
        fds[1][i] = start_join(&join_b);
    }
    for (int i = 0; i < 8; i++) {
        check_applied(end_join(fds[i / 4][i % 4]));
    }
}

TEST(gpus)
{
    struct tccl_step join = new_join(new_key(), 0, 1);
    join.gres[1] = 7;
    join.n_gres = 2;
    struct tccl_outcome plan = join_once(&join);
    check_fallback(&plan, "n1: GPU 7 is not in the profile's machine, which has 4 GPUs");
    check_record(0, join.key.job, "failed", "GPU 7");
    join = new_join(new_key(), 0, 1);
    join.gres[0] = 1;
    join.n_gres = 2;
    plan = join_once(&join);
    check_fallback(&plan, "n1: GPU 1 is listed twice");
    join = new_join(new_key(), 0, 1);
    join.n_gres = 0;
    plan = join_once(&join);
    check_fallback(&plan, "n1: no GPU in this step");
    join = new_join(new_key(), 0, 1);
    join.n_gres = 3;
    plan = join_once(&join);
    check_fallback(&plan, "no chains for GPUs 0-2");
    join = new_join(new_key(), 0, 1);
    join.n_gres = 1;
    plan = join_once(&join);
    CHECK_INT(plan.state, TCCL_STATE_LEFT);
    check_record(0, join.key.job, "left", "");
    tccl_outcome_clear(&plan);
}

TEST(modes)
{
    struct tccl_step_key key = new_key();
    struct tccl_step join = new_join(key, 0, 2);
    join.mode = TCCL_MODE_OFF;
    close(start_join(&join));
    check_record(0, key.job, "off", "");
    join = new_join(key = new_key(), 1, 2);
    join.mode = TCCL_MODE_AUTO;
    join.min_nodes = 3;
    struct tccl_outcome plan = join_once(&join); /* at once: the other node is not waited for */
    check_fallback(&plan, "policy: 2 nodes in this step, MinNodes is 3");
    join = new_join(key = new_key(), 0, 1);
    join.mode = TCCL_MODE_AUTO;
    join.min_gpus = 5;
    plan = join_once(&join);
    check_fallback(&plan, "policy: 4 GPUs in this step, MinGpus is 5");
    check_record(0, key.job, "failed", "MinGpus");
    join.key = new_key();
    join.min_gpus = 4;
    check_applied(join_once(&join));
}

/* A node that says it can't take part: all fall back, with its reason, at once. */
TEST(reason)
{
    struct tccl_step_key key = new_key();
    int fds[3];
    for (int i = 0; i < 3; i++) {
        struct tccl_step join = new_join(key, i, 3);
        join.timeout_ms = 600000;
        strcpy(join.reason, i == 2 ? "MIG is on" : "");
        fds[i] = start_join(&join);
    }
    for (int i = 0; i < 3; i++) {
        struct tccl_outcome plan = end_join(fds[i]);
        check_fallback(&plan, "n3: MIG is on");
    }
    check_record(0, key.job, "failed", "n3: MIG is on");
}

TEST(no_profile)
{
    const char *from = rig_at("cache", 2), *to = rig_at("cache.away", 2);
    struct tccl_outcome plans[3];
    CHECK_INT(rename(from, to), 0);
    struct tccl_step_key key = new_key();
    join_all(key, 3, -1, plans);
    for (int i = 0; i < 3; i++)
        check_fallback(&plans[i], "n2: no profile of this machine in ");
    CHECK_INT(rename(to, from), 0);
    test_nodes(3); /* and it counts again without a restart */
}

/* A node whose step does not start: all others are told its name, and it is told when it comes. */
static void test_missing_node(int n, int missing)
{
    struct tccl_step_key key = {0};
    struct tccl_outcome plans[NODES];
    bool known = false;
    char reason[32];
    snprintf(reason, sizeof(reason), "n%d: ", missing + 1);
    /* Of a short one, a busy machine may be the end before all others have come. */
    for (int ms = 3000; !known; ms *= 2) {
        key = new_key();
        join_within(ms, key, n, missing, plans);
        known = true;
        for (int i = 0; i < n; i++)
            known = known && (i == missing || is_fallback(&plans[i], reason));
        for (int i = 0; i < n; i++)
            if (i != missing && (known || ms > JOIN_MS))
                check_fallback(&plans[i], reason);
            else if (i != missing)
                tccl_outcome_clear(&plans[i]);
        known = known || ms > JOIN_MS;
    }
    struct tccl_step join = new_join(key, missing, n);
    struct tccl_outcome plan = join_once(&join);
    check_fallback(&plan, reason);
    check_record(0, key.job, "failed", reason);
}

/* A tccld that does not run is not waited for. */
static void test_dead_tccld(int n, int dead)
{
    struct tccl_step_key key = new_key();
    struct tccl_outcome plans[NODES];
    char reason[64];
    rig_stop_tccld(dead + 1, SIGTERM);
    join_all(key, n, dead, plans);
    snprintf(reason, sizeof(reason), "n%d: connection refused by 127.0.0.1:%u", dead + 1,
             rig.port[dead + 1]);
    for (int i = 0; i < n; i++)
        if (i != dead)
            check_fallback(&plans[i], reason);
    rig_start_tccld(dead + 1);
    check_record(1, key.job, "failed", reason);
}

/* A node that can't write its plan is alone without a ring, and the record says so. */
static void test_partial(int n, int broken)
{
    struct tccl_step_key key = new_key();
    struct tccl_outcome plans[NODES];
    const char *path = rig_at("run", broken + 1), *away = rig_at("run.away", broken + 1);
    CHECK_INT(rename(path, away), 0);
    rig_write(path, "x", 1, 0644);
    join_all(key, n, -1, plans);
    for (int i = 0; i < n; i++) {
        if (i == broken) {
            check_fallback(&plans[i], "the plan can't be written");
            continue;
        }
        CHECK_INT(plans[i].state, TCCL_STATE_PLANNED);
        tccl_outcome_clear(&plans[i]);
        leave(i, &key);
    }
    unlink(path);
    CHECK_INT(rename(away, path), 0);
    await_partial(key.job, "the plan can't be written");
}

/* Node late joins head_ms before its tccld is stopped, and then all others. Returns how many of
 * them get a ring; *waiting: the late node's connection. */
static int join_without(struct tccl_step *join, int late, int head_ms, int *waiting)
{
    int applied = 0, fds[NODES];
    join->node = late;
    *waiting = start_join(join);
    poll(NULL, 0, head_ms);
    kill(rig.tccld[late + 1], SIGSTOP);
    for (int i = 0; i < join->n_nodes; i++) {
        join->node = i;
        fds[i] = i == late ? -1 : start_join(join);
    }
    for (int i = 0; i < join->n_nodes; i++)
        if (i != late) {
            cleared_by(tccl_outcome_clear) struct tccl_outcome plan = end_join(fds[i]);
            applied += plan.state == TCCL_STATE_PLANNED;
        }
    return applied;
}

/* A plan that does not come in time: that node is alone without, and the record says so. Its tccld
 * is stopped when its MERGE has gone up (tried with longer head starts until it has), and goes on
 * when its step has given up. */
static void test_late_plan(int n, int late)
{
    struct tccl_step join = {.n_nodes = 0};
    int applied = 0, waiting = -1;
    for (int head_ms = 200; applied == 0 && head_ms < RIG_PATIENCE_MS; head_ms *= 2) {
        close(waiting);
        kill(rig.tccld[late + 1], SIGCONT);
        join = new_join(new_key(), late, n);
        join.timeout_ms = head_ms + 1500;
        applied = join_without(&join, late, head_ms, &waiting);
    }
    CHECK_INT(applied, n - 1);
    poll(NULL, 0, join.timeout_ms);
    kill(rig.tccld[late + 1], SIGCONT);
    struct tccl_outcome plan = end_join(waiting);
    check_fallback(&plan, ": no answer within");
    await_partial(join.key.job, check_printf("n%d: no plan came from n", late + 1));
}

/* A tccld that dies after it has sent its MERGE can't take a plan: nobody gets a ring. */
TEST(dying_tccld)
{
    struct tccl_step_key key = new_key();
    struct tccl_step join = new_join(key, 1, 3);
    int fds[3] = {-1, start_join(&join), -1};
    poll(NULL, 0, 300);
    rig_stop_tccld(2, SIGKILL);
    close(fds[1]);
    for (int i = 0; i < 3; i += 2) {
        join.node = i;
        fds[i] = start_join(&join);
    }
    for (int i = 0; i < 3; i += 2) {
        struct tccl_outcome plan = end_join(fds[i]);
        check_fallback(&plan, "n2: ");
    }
    rig_start_tccld(2);
    check_record(0, key.job, "failed", "n2: ");
}

/* tccld hangs for longer than the step waits: nothing is left behind, and the record is true. */
TEST(given_up)
{
    struct tccl_step join = new_join(new_key(), 0, 1);
    kill(rig.tccld[1], SIGSTOP);
    close(start_join(&join));
    kill(rig.tccld[1], SIGCONT);
    check_record(0, join.key.job, "failed", "n1: the step no longer waited for its plan");
    char path[TCCL_KEY_TEXT + 16] = "run/";
    tccl_key_folder(&join.key, path + 4);
    strcat(path, "/plan");
    cleanup_free char *file = NULL;
    size_t size = 0;
    CHECK(tccl_read_file(rig_at(path, 1), 65536, &file, &size, NULL) != 0 ||
          *file == '{'); /* its record may be there, alone */
}

TEST(mismatch)
{
    struct tccl_step_key key = new_key();
    struct tccl_step join = new_join(key, 1, 3), other = new_join(key, 1, 4);
    struct tccl_outcome plan;
    join.timeout_ms = 60000;
    int first = start_join(&join);
    cleanup_close int second = start_join(&other);
    CHECK_SAYS(tccl_client_wait_plan(second, WAIT_MS, &plan, ERR) == -1,
               "different lists of this step");
    close(first);
}

/* The first node has another second node in its list than the one that comes: no ring, whichever
 * comes first. */
static void test_other_second(bool early)
{
    struct tccl_step_key key = new_key();
    char *others[] = {"n1", "n3"};
    struct tccl_step join = new_join(key, 0, 2), other = new_join(key, 1, 2);
    other.nodes = others;
    join.timeout_ms = 1500;
    int waiting = early ? -1 : start_join(&join), fd = join_by(3, &other);
    if (early) {
        poll(NULL, 0, 300);
        waiting = start_join(&join);
    }
    struct tccl_outcome plan = end_join(waiting);
    check_fallback(&plan,
                   early ? "different lists of this step's nodes: number 1 is n2 here, n3 there"
                         : "n2: the step has not started there");
    plan = end_join(fd);
    check_fallback(&plan, "different lists of this step's nodes: number 1 is n2 here, n3 there");
}

/* A node whose name nobody knows: said at once, and not looked up again for every step. */
TEST(unknown_name)
{
    char *nodes[] = {"no-such-node.invalid", "n2"};
    for (int i = 0; i < 2; i++) {
        struct tccl_step join = new_join(new_key(), 1, 2);
        join.nodes = nodes;
        join.timeout_ms = 60000;
        struct tccl_outcome plan = join_once(&join);
        check_fallback(&plan, "no-such-node.invalid: its name no-such-node.invalid has no address");
    }
}

/* The accounting host is away: the record waits on disk and comes once. */
TEST(outbox)
{
    struct tccl_step_key key = new_key();
    struct tccl_step join = new_join(key, 0, 1);
    char *name = "n3";
    rig_stop_tccld(1, SIGTERM);
    join.nodes = &name;
    check_applied(end_join(join_by(3, &join)));
    rig_stop_tccld(3, SIGTERM); /* what is under way is in the outbox */
    rig_start_tccld(1);
    rig_start_tccld(3);
    check_record(0, key.job, "planned", "");
}

/* A record that neither AccountingHost nor the outbox took is put on disk when tccld ends: another
 * process has the file meanwhile. */
TEST(memory)
{
    struct tccl_step join = new_join(new_key(), 0, 1);
    char *name = "n3";
    sqlite3 *db = NULL;
    rig_stop_tccld(1, SIGTERM);
    CHECK_INT(sqlite3_open(rig_at("state/outbox.db", 3), &db), SQLITE_OK);
    CHECK_INT(sqlite3_busy_timeout(db, 30000), SQLITE_OK); /* tccld may be writing to it */
    CHECK_INT(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    join.nodes = &name;
    check_applied(end_join(join_by(3, &join)));
    poll(NULL, 0, 900); /* until both have been tried */
    sqlite3_close(db);
    rig_stop_tccld(3, SIGTERM);
    rig_start_tccld(1);
    rig_start_tccld(3);
    check_record(0, join.key.job, "planned", "");
}

/* A damaged outbox is moved aside, which is said, and a new one does its work. */
TEST(damaged_outbox)
{
    const char *outbox = rig_at("state/outbox.db", 3), *bad = rig_at("state/outbox.db.bad", 3);
    char ledger[256];
    rig_stop_tccld(3, SIGTERM);
    strcpy(ledger, rig_at("run/records", 3));
    long long before = 0, after = 0;
    CHECK_INT(sscanf(strstr(check_read_file(ledger), " lost "), " lost %lld", &before), 1);
    char noise[2000];
    memset(noise, 'x', sizeof(noise) - 1);
    noise[sizeof(noise) - 1] = '\0';
    check_write_file(outbox, noise);
    rig_start_tccld(3);
    for (int i = 0; i < 100 && (access(bad, F_OK) != 0 || after <= before); i++) {
        poll(NULL, 0, 50);
        sscanf(strstr(check_read_file(ledger), " lost "), " lost %lld", &after);
    }
    CHECK(access(bad, F_OK) == 0);
    CHECK_INT(after, before + 1);
    CHECK_INT(store_sql(outbox, "SELECT count(*) FROM waiting"), 0);
}

/* Strangers */

static int dial(int node)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)},
                                  .sin_port = htons(rig.port[node])};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* The other side hangs up without a word. */
static void check_hung_up(int fd)
{
    char byte;
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    CHECK_INT(poll(&pollfd, 1, WAIT_MS), 1);
    CHECK(read(fd, &byte, 1) <= 0);
    close(fd);
}

static void send_frame(int fd, const char *data)
{
    CHECK_INT(
        tccl_frame_write(fd, data, strlen(data), TCCL_FRAME_TCP, tccl_now_ms() + WAIT_MS, ERR), 0);
}

TEST(bad_frames)
{
    int fd = dial(1);
    CHECK_INT(write(fd, "\377\377\377\377xx", 6), 6);
    check_hung_up(fd);
    fd = dial(1);
    CHECK_INT(write(fd, "\0\0\0\0", 4), 4);
    check_hung_up(fd);
    send_frame(fd = dial(1), "hello, this is no credential");
    check_hung_up(fd);
    check_hung_up(dial(1)); /* says nothing */
    fd = connect_to(1);
    CHECK_INT(write(fd, "\377\377\377\377xx", 6), 6);
    check_hung_up(fd);
    struct tccl_outcome plan;
    fd = connect_to(1);
    send_frame(fd, "{\"v\":1,\"type\":\"reboot\"}");
    CHECK_FAILS(tccl_client_wait_plan(fd, WAIT_MS, &plan, ERR), "a message of type \"reboot\"");
    close(fd);
}

static char *seal(json_t *message, const char *to, const char *from)
{
    struct tccl_envelope envelope = {.to = to, .from = from, .epoch = 1};
    char *cred = NULL;
    CHECK_INT(tccl_envelope_put(message, &envelope, ERR), 0);
    cleanup_free char *text = tccl_message_text(message);
    CHECK_INT(tccl_cred_encode(rig.munge_socket, getuid(), text, strlen(text),
                               tccl_now_ms() + WAIT_MS, &cred, ERR),
              0);
    return cred;
}

TEST(bad_credentials)
{
    cleanup_json json_t *message = tccl_message_new("query");
    cleanup_free char *for_other = seal(message, "n2", "n3");
    int fd = dial(1);
    send_frame(fd, for_other);
    check_hung_up(fd);
    cleanup_free char *good = seal(message, "n1", "tool");
    cleanup_free char *answer = NULL;
    size_t size;
    send_frame(fd = dial(1), good);
    CHECK_INT(tccl_frame_read(fd, TCCL_FRAME_TCP, tccl_now_ms() + WAIT_MS, &answer, &size, ERR), 0);
    close(fd);
    send_frame(fd = dial(1), good); /* again */
    check_hung_up(fd);
    /* The same message in a fresh credential is a replay too. */
    cleanup_free char *text = tccl_message_text(message), *fresh = NULL;
    CHECK_INT(tccl_cred_encode(rig.munge_socket, getuid(), text, strlen(text),
                               tccl_now_ms() + WAIT_MS, &fresh, ERR),
              0);
    send_frame(fd = dial(1), fresh);
    check_hung_up(fd);
}

/* A MERGE of nonsense gets a fallback as its answer, and its step one too. */
TEST(bad_merge)
{
    struct tccl_step_key key = new_key();
    char *nodes[] = {"n1", "stranger"};
    struct tccl_step join = new_join(key, 0, 2);
    join.nodes = nodes;
    join.timeout_ms = 60000;
    int waiting = start_join(&join);
    cleanup_json json_t *message = tccl_message_new("merge");
    cleanup_json json_t *rest =
        json_pack("{s:o,s:i,s:i,s:i,s:i,s:[{}],s:[[ii]]}", "key", tccl_key_to_json(&key), "node", 1,
                  "n_nodes", 2, "timeout_ms", 60000, "wait_ms", 60000, "classes", "runs", 0, 1);
    json_object_update(message, rest);
    cleanup_free char *cred = seal(message, "n1", "stranger");
    cleanup_close int fd = dial(1);
    send_frame(fd, cred);
    struct tccl_outcome plan = end_join(waiting);
    check_fallback(&plan, "stranger: classes: entry 0");
}

static int send_as_n2(json_t *message)
{
    struct tccl_envelope envelope = {.to = "n1", .from = "n2", .epoch = INT64_MAX};
    cleanup_free char *cred = NULL;
    CHECK_INT(tccl_envelope_put(message, &envelope, ERR), 0);
    cleanup_free char *text = tccl_message_text(message);
    tccl_cred_encode(rig.munge_socket, 0, text, strlen(text), tccl_now_ms() + WAIT_MS, &cred, ERR);
    int fd = dial(1);
    send_frame(fd, cred);
    return fd;
}

/* Another user may neither join nor see what is not theirs. */
static void in_child_as_nobody(int *failures)
{
    int complete;
    struct tccl_outcome plan;
    const struct passwd *nobody = getpwnam("nobody");
    uid_t uid = nobody->pw_uid;
    check_failures = 0;
    if (setgid(nobody->pw_gid) != 0 || setuid(uid) != 0)
        _exit(1);
    struct tccl_step join = new_join(new_key(), 0, 1);
    int fd = start_join(&join);
    CHECK_SAYS(tccl_client_wait_plan(fd, WAIT_MS, &plan, ERR) == -1, "may not send \"join\"");
    for (int node = 0; node < 2; node++) { /* by socket, and by munge */
        cleanup_json json_t *records = ask(node, json_object(), &complete);
        CHECK(records != NULL);
        CHECK_INT(json_array_size(records), 1);
        CHECK_INT(json_integer_value(json_object_get(json_array_get(records, 0), "uid")), uid);
    }
    cleanup_json json_t *message = tccl_message_new("record");
    json_object_set_new(message, "records", json_pack("[{}]"));
    check_hung_up(send_as_n2(message));
    /* A question in the name of another's tccld, as if that had been started far in the future. */
    cleanup_json json_t *question = tccl_message_new("query");
    cleanup_free char *answer = NULL;
    size_t size;
    fd = send_as_n2(question);
    CHECK_INT(tccl_frame_read(fd, TCCL_FRAME_TCP, tccl_now_ms() + WAIT_MS, &answer, &size, ERR), 0);
    close(fd);
    *failures = check_failures;
}

TEST(other_user)
{
    int failures = 0;
    if (getuid() != 0) {
        printf("not as root: what other users may do is not tested\n");
        return;
    }
    struct tccl_step join = new_join(new_key(), 0, 1);
    join.uid = getpwnam("nobody")->pw_uid;
    check_applied(join_once(&join));
    json_decref(record_of(0, join.key.job));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        in_child_as_nobody(&failures);
        _exit(failures ? 1 : 0);
    }
    CHECK_INT(check_exit(pid), 0);
    test_nodes(2); /* n1 still listens to n2 */
}

/* Life */

TEST(second_tccld)
{
    const char *log = rig_at("second.log", 0);
    CHECK_INT(check_exit(rig_spawn_tccld(1, log)), 1);
    char expected[64];
    snprintf(expected, sizeof(expected), "tccl: tccld is already running (pid %d", rig.tccld[1]);
    CHECK(strncmp(check_read_file(log), expected, strlen(expected)) == 0);
    struct tccl_step join = new_join(new_key(), 0, 1);
    check_applied(join_once(&join)); /* the first one is unharmed */
}

/* Joins on n1 until the answer has that state, which a signal is about to bring. */
static void await_state(enum tccl_state state)
{
    struct tccl_outcome plan = {0};
    for (int ms = 0; ms < RIG_PATIENCE_MS; ms += 20, poll(NULL, 0, 20)) {
        struct tccl_step join = new_join(new_key(), 0, 1);
        plan = join_once(&join);
        enum tccl_state found = plan.state;
        tccl_outcome_clear(&plan);
        if (found == state)
            return;
    }
    CHECK(!"the state has come");
}

/* SIGHUP brings a good configuration, and keeps the old one in place of a bad one. */
TEST(reload)
{
    char path[256], away[256];
    strcpy(path, rig_at("tccl.conf", 0));
    strcpy(away, rig_at("tccl.conf.away", 0));
    CHECK_INT(rename(path, away), 0);
    cleanup_free char *text = NULL;
    size_t size;
    CHECK_INT(tccl_read_file(away, 65536, &text, &size, ERR), 0);
    char *cache = strstr(text, "/cache\n");
    memcpy(cache, "/catch", 6);
    rig_write(path, text, size, 0644);
    kill(rig.tccld[1], SIGHUP);
    await_state(TCCL_STATE_FAILED);
    rig_write(path, "[tccl]\nPrt=1\n", 13, 0644);
    kill(rig.tccld[1], SIGHUP);
    CHECK_INT(rename(away, path), 0);
    kill(rig.tccld[1], SIGHUP);
    await_state(TCCL_STATE_PLANNED);
}

/* Killed, it leaves its socket behind; the next one takes the place. SIGTERM removes the socket. */
TEST(stale_socket)
{
    const char *path = rig_at("tccld.sock", 1);
    rig_stop_tccld(1, SIGKILL);
    CHECK_INT(access(path, F_OK), 0);
    rig.tccld[1] = rig_spawn_tccld(1, rig_at("tccld.log", 1));
    int fd = -1;
    for (int ms = 0; fd < 0 && ms < RIG_PATIENCE_MS; ms += 20, poll(NULL, 0, 20))
        fd = tccl_frame_connect(path, tccl_now_ms() + WAIT_MS, ERR);
    CHECK(fd >= 0);
    close(fd);
    int status = rig_stop_tccld(1, SIGTERM);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_INT(access(path, F_OK), -1);
    rig_start_tccld(1);
    test_nodes(2);
}

/* munged stops answering: steps over several nodes fall back, those on one node don't notice. */
TEST(stuck_munged)
{
    struct tccl_step_key key = new_key();
    int fds[2];
    kill(rig.munged, SIGSTOP);
    for (int i = 0; i < 2; i++) {
        struct tccl_step join = new_join(key, i, 2);
        join.timeout_ms = 500;
        fds[i] = start_join(&join);
    }
    struct tccl_step alone = new_join(new_key(), 1, 2);
    alone.node = 0;
    alone.n_nodes = 1;
    check_applied(join_once(&alone));
    for (int i = 0; i < 2; i++) {
        struct tccl_outcome plan = end_join(fds[i]);
        check_fallback(&plan, "");
    }
    kill(rig.munged, SIGCONT);
    check_record(0, key.job, "failed", "");
}

/* Reads a frame and hangs up. Returns the text. */
static const char *hear_frame(int fd)
{
    static char text[16];
    cleanup_free char *answer = NULL;
    size_t size = 0;
    CHECK_INT(tccl_frame_read(fd, TCCL_FRAME_TCP, tccl_now_ms() + WAIT_MS, &answer, &size, ERR), 0);
    close(fd);
    snprintf(text, sizeof(text), "%s", answer ? answer : "");
    return text;
}

static bool says(const char *expected)
{
    int fd = dial(1);
    send_frame(fd, "busy?");
    const char *said = hear_frame(fd);
    CHECK(strcmp(said, "busy") == 0 || strcmp(said, "idle") == 0);
    return strcmp(said, expected) == 0;
}

/* A question that tccld and munge work on; the connection. */
static int query_far(void)
{
    cleanup_json json_t *message = tccl_message_new("query");
    cleanup_free char *cred = seal(message, "n1", "tool");
    int fd = dial(1);
    send_frame(fd, cred);
    return fd;
}

/* Who has more for munge than munge has done says so at once; a munge that hangs makes nobody busy.
 * What is asked between has 3 s, so it may take several tries. */
TEST(busy)
{
    bool busy = false;
    for (int i = 0; i < 20 && !busy; i++) {
        cleanup_json json_t *message = tccl_message_new("query");
        cleanup_free char *cred = seal(message, "n1", "tool");
        CHECK(strncmp(hear_frame(query_far()), "MUNGE:", 6) == 0);
        kill(rig.munged, SIGSTOP);
        int fd = dial(1);
        send_frame(fd, cred);
        for (int k = 0; k < 20 && !busy; k++)
            busy = says("busy");
        bool idle = false;
        for (int64_t until = tccl_now_ms() + WAIT_MS; !idle && tccl_now_ms() < until;)
            idle = says("idle");
        CHECK(idle);
        kill(rig.munged, SIGCONT);
        hear_frame(fd);
    }
    CHECK(busy);
}

SETUP
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    rig_begin();
    make_nodes(make_profile, "n1");
}

TEST(numbers)
{
    static const int nodes[] = {2, 4, 16, NODES}, again[] = {1, 4, NODES};
    static const int missing[][2] = {{3, 1}, {3, 0}, {NODES, 17}, {NODES, 16}},
                     dead[][2] = {{4, 2}, {4, 0}, {NODES, 16}},
                     partial[][2] = {{3, 0}, {3, 1}, {NODES, 18}},
                     late[][2] = {{3, 1}, {NODES, 18}};
    for (size_t i = 0; i < COUNT(nodes); i++)
        test_nodes(nodes[i]);
    for (size_t i = 0; i < COUNT(again); i++)
        test_again(again[i]);
    for (size_t i = 0; i < COUNT(missing); i++)
        test_missing_node(missing[i][0], missing[i][1]);
    for (size_t i = 0; i < COUNT(dead); i++)
        test_dead_tccld(dead[i][0], dead[i][1]);
    for (size_t i = 0; i < COUNT(partial); i++)
        test_partial(partial[i][0], partial[i][1]);
    for (size_t i = 0; i < COUNT(late); i++)
        test_late_plan(late[i][0], late[i][1]);
    test_other_second(true);
    test_other_second(false);
}
