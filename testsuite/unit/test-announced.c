/* What jobs' prologs announce, and steps that begin while some of their nodes are late: the
 * matching alone, and in real tccld. */
#include "client/step-json.h"
#include "joins.h"
#include "tccld/join/announce.h"

enum {
    SHORT_MS = 4000, /* of a step that has nodes that won't come, */
    LATE_MS = 15000  /* or that come in the middle of it, or later */
};

/* The matching */

static void put(struct announces *announces, const struct tccl_step *join)
{
    struct tccl_error err = {0};
    struct tccl_step_key key;
    cleanup_json json_t *message = tccl_join_to_json(join, &err);
    CHECK_INT(announces_put(announces, message, &key, &err), 0);
    CHECK(tccl_key_equal(&key, &join->key));
}

/* The terms of a step that joins like this. */
static json_t *terms_of(const struct announces *announces, const struct tccl_step *join)
{
    struct tccl_error err = {0};
    cleanup_json json_t *json = tccl_join_to_json(join, &err);
    struct tccl_step *message = tccl_join_from_json(json, &err);
    json_t *terms = announces_terms(announces, message);
    tccl_step_free(message);
    return terms;
}

static bool fits(const struct announces *announces, const struct tccl_step *join)
{
    cleanup_json json_t *terms = terms_of(announces, join);
    return terms != NULL;
}

static struct tccl_step job_join(uint32_t job, int node, int n_nodes)
{
    struct tccl_step_key key = {.cluster = "test", .job = job, .step = TCCL_NO_STEP};
    return new_join(key, node, n_nodes);
}

static void test_fits(void)
{
    struct announces *announces = announces_new();
    struct tccl_step job = job_join(7, 1, 3);
    put(announces, &job);
    for (int change = 0; change < 9; change++) {
        static char *other_nodes[] = {"n1", "n2", "n4"};
        struct tccl_step join = job;
        join.key.step = 3;
        join.key.restart = 1;
        join.mode = TCCL_MODE_REQUIRE;
        join.key.job += change == 1;
        if (change == 2)
            strcpy(join.key.cluster, "other");
        join.uid += change == 3;
        join.n_gres -= change == 4;
        if (change == 5)
            join.gres[3] = 5;
        join.n_nodes -= change == 6;
        join.node -= change == 7;
        if (change == 8)
            join.nodes = other_nodes;
        CHECK_INT(fits(announces, &join), change == 0);
    }
    strcpy(job.reason, "no profile");
    CHECK(!fits(announces, &job));
    announces_free(announces);
}

/* The proxy of a late node has the announced GPUs, and all else of the step's. */
static void test_stand_in(void)
{
    struct announces *first = announces_new(), *second = announces_new();
    struct tccl_step a = job_join(7, 0, 2), b = job_join(7, 1, 2);
    b.n_gres = 2;
    put(first, &a);
    put(second, &b);
    a.key.step = 5;
    a.mode = TCCL_MODE_AUTO;
    a.min_gpus = 3;
    strcpy(a.job_name, "train");
    strcpy(a.account, "ann");
    a.array_job = 3;
    a.array_task = 2;
    cleanup_json json_t *terms = terms_of(first, &a);
    struct tccl_step *late = announces_join(second, &a.key, 1, 2, 1234, terms);
    CHECK(late != NULL);
    if (late) {
        const struct tccl_step *join = late;
        CHECK(tccl_key_equal(&join->key, &a.key));
        CHECK_INT(join->n_gres, 2);
        CHECK_INT(join->node, 1);
        CHECK_INT(join->timeout_ms, 1234);
        CHECK_INT(join->mode, TCCL_MODE_AUTO);
        CHECK_INT(join->min_gpus, 3);
        CHECK_STR(join->job_name, "train");
        CHECK_STR(join->account, "ann");
        CHECK_INT(join->array_job, 3);
        CHECK_INT(join->array_task, 2);
        b.key = a.key;
        CHECK(announce_differs(join, &b) == NULL);
        b.n_gres = 3;
        CHECK(strstr(announce_differs(join, &b), "other GPUs") != NULL);
        strcpy(b.reason, "why not");
        CHECK_STR(announce_differs(join, &b), "why not");
    }
    tccl_step_free(late);
    CHECK(!announces_join(second, &a.key, 0, 2, 1234, terms));
    CHECK(!announces_join(second, &a.key, 1, 3, 1234, terms));
    a.key.job++;
    CHECK(!announces_join(second, &a.key, 1, 2, 1234, terms));
    a.key.job--;
    json_object_set_new(terms, "uid", json_integer((json_int_t)a.uid + 1));
    CHECK(!announces_join(second, &a.key, 1, 2, 1234, terms));
    json_object_set_new(terms, "uid", json_integer((json_int_t)a.uid));
    json_object_set_new(terms, "mode", json_string("sometimes"));
    CHECK(!announces_join(second, &a.key, 1, 2, 1234, terms));
    CHECK(!announces_join(second, &a.key, 1, 2, 1234, NULL));
    announces_free(first);
    announces_free(second);
}

/* A job announces anew after a requeue; the oldest of too many go; the job's end. */
static void test_kept(void)
{
    struct announces *announces = announces_new();
    struct tccl_step join = job_join(1, 0, 2);
    put(announces, &join);
    join.n_gres = 2;
    put(announces, &join);
    CHECK(fits(announces, &join));
    join.n_gres = 4;
    CHECK(!fits(announces, &join));
    for (uint32_t job = 2; job <= ANNOUNCES_MOST + 1; job++) {
        join = job_join(job, 0, 2);
        put(announces, &join);
    }
    for (uint32_t job = 1; job <= ANNOUNCES_MOST + 1; job++) {
        join = job_join(job, 0, 2);
        CHECK_INT(fits(announces, &join), job > 1);
        announces_end(announces, &join.key);
        CHECK(!fits(announces, &join));
    }
    announces_free(announces);
}

/* Real tccld */

static void announce(const struct tccl_step *join)
{
    char path[256];
    struct tccl_error err = {0};
    struct tccl_step job = *join;
    job.key.step = TCCL_NO_STEP;
    rig_path(path, "tccld.sock", join->node + 1);
    int fd = tccl_client_connect(path, WAIT_MS, &err);
    CHECK_INT(tccl_client_announce(fd, &job, WAIT_MS, &err), 0);
    char byte; /* its answer: it has been heard */
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    CHECK(poll(&pollfd, 1, WAIT_MS) == 1 && recv(fd, &byte, 1, 0) == 1);
    close(fd);
}

static void announce_all(struct tccl_step_key key, int n)
{
    for (int i = 0; i < n; i++) {
        struct tccl_step join = new_join(key, i, n);
        announce(&join);
    }
}

/* The nodes that are not late join, and have the ring (or a fallback for that reason) without the
 * others. */
static void join_early(struct tccl_step_key key, int n, const bool *late, const char *reason)
{
    int fds[NODES];
    for (int i = 0; i < n; i++) {
        struct tccl_step join = new_join(key, i, n);
        join.timeout_ms = reason ? SHORT_MS : LATE_MS;
        fds[i] = late[i] ? -1 : start_join(&join);
    }
    for (int i = 0; i < n; i++) {
        if (late[i])
            continue;
        struct tccl_outcome plan = end_join(fds[i]);
        if (reason) {
            check_fallback(&plan, reason);
            continue;
        }
        CHECK_STR(plan.reason, "");
        CHECK_INT(plan.state, TCCL_STATE_APPLIED);
        CHECK_INT(access(plan.path, R_OK), 0);
        tccl_outcome_clear(&plan);
    }
}

/* The late ones come, one after the other, and find the ring solved. */
static void join_late(struct tccl_step_key key, int n, const bool *late)
{
    for (int i = 0; i < n; i++) {
        struct tccl_step join = new_join(key, i, n);
        if (!late[i])
            continue;
        struct tccl_outcome plan = join_once(&join);
        CHECK_STR(plan.reason, "");
        CHECK_INT(plan.state, TCCL_STATE_APPLIED);
        CHECK_INT(access(plan.path, R_OK), 0);
        leave(i, &key);
        CHECK_INT(access(plan.path, R_OK), -1);
        tccl_outcome_clear(&plan);
    }
}

static void test_late(int n, int from, int to)
{
    struct tccl_step_key key = new_key();
    bool late[NODES] = {false};
    for (int i = from; i <= to; i++)
        late[i] = true;
    announce_all(key, n);
    join_early(key, n, late, NULL);
    check_record(0, key.job, "applied", "");
    join_late(key, n, late);
    check_record(0, key.job, "applied", "");
}

/* The step has fewer GPUs on the late node than were announced. */
static void test_other_gpus(int n, int late_node)
{
    struct tccl_step_key key = new_key();
    bool late[NODES] = {false};
    late[late_node] = true;
    announce_all(key, n);
    join_early(key, n, late, NULL);
    struct tccl_step join = new_join(key, late_node, n);
    join.n_gres = 2;
    struct tccl_outcome plan = join_once(&join);
    check_fallback(&plan, "other GPUs here than the job's prolog announced");
    await_partial(key.job, "other GPUs here than the job's prolog announced");
}

/* All the same as if nothing had been announced. */
static void test_ordinary(void)
{
    static const bool late[NODES] = {[2] = true};
    struct tccl_step_key key = new_key();
    for (int i = 0; i < 2; i++) { /* not by the late node */
        struct tccl_step join = new_join(key, i, 3);
        announce(&join);
    }
    join_early(key, 3, late, "n3: no word from its tccld");

    key = new_key();
    for (int i = 1; i < 3; i++) { /* not by one that is there */
        struct tccl_step join = new_join(key, i, 3);
        announce(&join);
    }
    join_early(key, 3, late, "n3: no word from its tccld");

    key = new_key(); /* one that is there has other GPUs */
    announce_all(key, 3);
    struct tccl_step join = new_join(key, 1, 3);
    join.n_gres = 2;
    announce(&join);
    join_early(key, 3, late, "n3: no word from its tccld");

    key = new_key(); /* the step of some of the nodes */
    announce_all(key, 4);
    join_early(key, 3, late, "n3: no word from its tccld");

    key = new_key(); /* the job has ended */
    announce_all(key, 3);
    key.step = TCCL_NO_STEP;
    leave(2, &key);
    key.step = 0;
    join_early(key, 3, late, "n3: no word from its tccld");
}

/* The proxy of a node that never came is not left for the next run under the same key. */
static void test_requeue(void)
{
    static const bool late[NODES] = {[2] = true};
    struct tccl_step_key key = new_key();
    struct tccl_outcome plans[3];
    int fds[3];
    announce_all(key, 3);
    join_early(key, 3, late, NULL);
    leave(0, &key);
    leave(1, &key);
    announce_all(key, 3);
    for (int i = 0; i < 3; i++) {
        struct tccl_step join = new_join(key, i, 3);
        join.n_gres = 2;
        fds[i] = start_join(&join);
    }
    for (int i = 0; i < 3; i++) {
        plans[i] = end_join(fds[i]);
        CHECK_STR(plans[i].reason, "");
        CHECK_STR(plans[i].ring, plans[0].ring);
    }
    for (int i = 0; i < 3; i++)
        tccl_outcome_clear(&plans[i]);
}

/* A node joins while a proxy stands for it, before the ring can be solved: with the
 * same GPUs, or with others, and then no node has a ring. */
static void test_meanwhile(bool same)
{
    struct tccl_step_key key = new_key();
    int fds[3];
    for (int i = 0; i < 3; i += 2) {
        struct tccl_step join = new_join(key, i, 3);
        announce(&join);
    }
    for (int i = 0; i < 3; i++) {
        struct tccl_step join = new_join(key, (i * 2) % 3, 3); /* 0, 2, 1 */
        join.timeout_ms = LATE_MS;
        if (i == 1) {
            join.n_gres -= same ? 0 : 2;
            poll(NULL, 0, LATE_MS * 30 / 100); /* the first calls at 0.24 */
        }
        fds[join.node] = i < 2 || same ? start_join(&join) : -1;
    }
    for (int i = 0; i < 3; i++) {
        if (fds[i] < 0)
            continue;
        struct tccl_outcome plan = end_join(fds[i]);
        if (!same) {
            check_fallback(&plan, "n");
            continue;
        }
        CHECK_STR(plan.reason, "");
        CHECK_INT(plan.state, TCCL_STATE_APPLIED);
        CHECK_INT(access(plan.path, R_OK), 0);
        tccl_outcome_clear(&plan);
    }
}

/* A tccld that is started again knows nothing of what was announced. */
static void test_restart(int node)
{
    static const bool late[NODES] = {[2] = true};
    struct tccl_step_key key = new_key();
    announce_all(key, 3);
    rig_stop_tccld(node + 1, SIGTERM);
    rig_start_tccld(node + 1);
    join_early(key, 3, late, "n3: no word from its tccld");
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < NODES; i++) {
        snprintf(node_text[i], sizeof(node_text[i]), "n%d", i + 1);
        node_names[i] = node_text[i];
    }
    test_fits();
    test_stand_in();
    test_kept();
    rig_begin();
    make_nodes();
    for (int i = 1; i <= NODES; i++)
        rig_start_tccld(i);
    test_late(3, 2, 2);
    test_late(3, 1, 2);
    test_late(3, 0, 0);
    test_late(3, 0, 1);
    test_late(NODES, 17, 17);
    test_late(NODES, 16, 16);
    test_late(NODES, 15, 19);
    test_other_gpus(3, 2);
    test_other_gpus(3, 0);
    test_other_gpus(NODES, 18);
    test_ordinary();
    test_requeue();
    test_meanwhile(true);
    test_meanwhile(false);
    test_restart(1);
    test_restart(2);
    return check_result();
}
