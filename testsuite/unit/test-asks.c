/* What the processes of a step ask and tell their tccld: CHAIN and CONFIRM, really, with a munged
 * of our own and three tccld on loopback, the third of which keeps the records. */
#include <sys/un.h>

#include "chain/chain.h"
#include "client/message.h"

enum { NODES = 3, HOME = 3, MACHINE_GPUS = 4 };

#include "joins.h"

static const uint32_t masks[] = {1, 3, 5, 7, 0xf};
enum { MASKS = COUNT(masks) };
/* As searched: what answers are compared with; and of GPUs 2 and 3, for those of other steps. */
static struct tccl_table *tables[MASKS + 1];
static struct tccl_machine machine;

/* Profiles and daemons */

/* The ring of all GPUs twice, said to be much faster: steps over them get it, groups never. */
static void add_set(struct tccl_table *table)
{
    const struct tccl_chain *ring = &tccl_table_ring(table)->chain;
    const struct tccl_ring_set set = {.n = 2, .rings = {*ring, *ring}};
    tccl_table_keep_set(table, &set, 1.5 * tccl_table_ring(table)->gbps,
                        2 * tccl_table_ring(table)->gbps);
    CHECK(tccl_table_next(table, NULL, TCCL_SETS) != NULL);
}

static void search_tables(void)
{
    const struct tccl_model *model = load_machine("amd-4gpu");
    machine = *tccl_model_machine(model);
    for (int i = 0; i < MASKS; i++)
        tables[i] = table_of(model, masks[i], false, &(struct tccl_search_options){.gap = 0});
    for (int i = 0; i < TCCL_GENERATIONS; i++) { /* of three GPUs NCCL's own rings are faster, */
        for (int k = 0; k < MASKS; k++) { /* else so slow that ours are worth it (ring/decision) */
            tables[k]->baselines[1][i].gbps /= 4;
            tables[k]->baselines[0][i].gbps /= 4;
        }
        tables[3]->baselines[1][i].gbps = 99;
    }
    add_set(tables[MASKS - 1]);
    tables[MASKS] = table_of(model, 0xc, false, &(struct tccl_search_options){.gap = 0});
}

static void make_profile(int node)
{
    put_profile(node, "amd-4gpu", tables, MASKS);
}

/* Steps */

static uid_t job_uid(void)
{
    const struct passwd *nobody = getuid() == 0 ? getpwnam("nobody") : NULL;
    return nobody ? nobody->pw_uid : getuid();
}

static char path[4096]; /* of the latest step on its first node */

/* JOINs of all its n nodes. */
static void start_joins(const struct tccl_step_key *key, int n, int n_gres, int trial, int *fds)
{
    for (int i = 0; i < n; i++) {
        struct tccl_step join = new_join(*key, i, n);
        join.uid = job_uid();
        join.trial = trial;
        join.n_gres = n_gres;
        fds[i] = start_join(&join);
    }
}

/* The step begins on n nodes. */
static struct tccl_step_key begin_step(int n, int n_gres)
{
    struct tccl_step_key key = new_key();
    int fds[NODES];
    start_joins(&key, n, n_gres, 0, fds);
    for (int i = 0; i < n; i++) {
        cleared_by(tccl_outcome_clear) struct tccl_outcome plan = end_join(fds[i]);
        CHECK_INT(plan.state, n == 1 && n_gres == 3 ? TCCL_STATE_LEFT : TCCL_STATE_PLANNED);
        if (i == 0)
            snprintf(path, sizeof(path), "%s", plan.path ? plan.path : "");
    }
    return key;
}

static void leave_all(const struct tccl_step_key *key, int n)
{
    for (int i = n - 1; i >= 0; i--)
        leave(i, key);
}

/* Questions. Where this is root, they are asked by a child that is the job's user. */

/* A question of the shim's: texts and whole numbers, by name; those of the step first. */
static json_t *question(const char *type, const struct tccl_step_key *key, json_t *rest)
{
    json_t *message = tccl_key_to_json(key);
    json_object_update_new(message, rest);
    json_object_set_new(message, "type", json_string(type));
    return message;
}

/* As it is asked. */
static char *to_lines(const json_t *message)
{
    char *text = NULL;
    size_t size;
    const char *name;
    json_t *value;
    FILE *stream = open_memstream(&text, &size);
    fprintf(stream, "tccl-%s 1\n", json_string_value(json_object_get(message, "type")));
    json_object_foreach((json_t *)message, name, value)
    {
        if (json_is_integer(value))
            fprintf(stream, "%s %lld\n", name, (long long)json_integer_value(value));
        else if (strcmp(name, "type") != 0)
            fprintf(stream, "%s %s\n", name, json_string_value(value));
    }
    fputs("end\n", stream);
    fclose(stream);
    return text;
}

/* Lines as texts; their name without "tccl-" is the type. NULL: no lines, or cut. */
static json_t *from_lines(char *text)
{
    char *rest, *line = strtok_r(text, "\n", &rest);
    json_t *json = json_object();
    if (!line || strncmp(line, "tccl-", 5) != 0)
        return NULL;
    json_object_set_new(json, "type", json_stringn(line + 5, strcspn(line + 5, " ")));
    while ((line = strtok_r(NULL, "\n", &rest)) && strcmp(line, "end") != 0) {
        size_t length = strcspn(line, " ");
        line[length] = '\0';
        json_object_set_new(json, line, json_string(line + length + 1));
    }
    return line && !*rest ? json : NULL;
}

static json_t *exchange(int fd, const json_t *message)
{
    cleanup_free char *text = to_lines(message), *data = NULL;
    size_t size;
    int64_t deadline = tccl_now_ms() + WAIT_MS;
    if (tccl_frame_write(fd, text, strlen(text), TCCL_FRAME_UNIX, deadline, ERR) != 0 ||
        tccl_frame_read(fd, TCCL_FRAME_UNIX, deadline, &data, &size, ERR) != 0)
        return NULL;
    cleanup_free char *answer = strndup(data, size);
    return from_lines(answer);
}

/* The answer to a message of uid; NULL: the connection was closed. Takes the message. */
static json_t *ask_as(uid_t uid, int node, json_t *message)
{
    char buffer[65536];
    int pipe_[2];
    CHECK_INT(pipe(pipe_), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (uid != getuid() && setresuid(uid, uid, uid) != 0)
            _exit(1);
        json_t *answer = exchange(connect_to(node), message);
        char *text = answer ? json_dumps(answer, JSON_COMPACT) : strdup("");
        _exit(write(pipe_[1], text, strlen(text)) < 0);
    }
    close(pipe_[1]);
    ssize_t size, all = 0;
    while ((size = read(pipe_[0], buffer + all, sizeof(buffer) - (size_t)all)) > 0)
        all += size;
    close(pipe_[0]);
    waitpid(pid, NULL, 0);
    json_decref(message);
    return all > 0 ? json_loadb(buffer, (size_t)all, 0, NULL) : NULL;
}

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text ? text : "";
}

/* busids: as in the machine; mask: which of its GPUs. */
static json_t *chain_question(const struct tccl_step_key *key, uint32_t mask, bool closed)
{
    char gpus[TCCL_BUSID * MACHINE_GPUS] = "";
    for (int i = MACHINE_GPUS - 1; i >= 0; i--)
        if (mask & 1u << i)
            sprintf(gpus + strlen(gpus), "%s%s", *gpus ? " " : "", machine.gpus[i].busid);
    return question("chain", key,
                    json_pack("{s:s,s:s}", "gpus", gpus, "closed", closed ? "yes" : "no"));
}

static json_t *verdict(const struct tccl_step_key *key, const char *word, const char *text,
                       bool whole)
{
    return question("confirm", key,
                    json_pack("{s:s,s:s,s:i,s:s,s:i}", "verdict", word, "text", text, "ranks", 8,
                              "whole", whole ? "yes" : "no", "gpus", 4));
}

static void check_refused(uid_t uid, int node, json_t *message, const char *said)
{
    cleanup_json json_t *answer = ask_as(uid, node, message);
    CHECK_STR(text_of(answer, "type"), "error");
    CHECK_HOLDS(text_of(answer, "text"), said);
}

static void confirm(const struct tccl_step_key *key, int node, const char *word, const char *text,
                    bool whole)
{
    cleanup_json json_t *answer = ask_as(job_uid(), node, verdict(key, word, text, whole));
    CHECK_STR(text_of(answer, "type"), "ok");
}

/* Records */

/* Waits until a step's record has that member, as node sees it. A new reference to it, or to the
 * one that it has at last. */
static json_t *await_record(int node, const struct tccl_step_key *key, const char *name,
                            const json_t *value)
{
    json_t *record = NULL;
    for (int ms = 0; ms < RIG_PATIENCE_MS; ms += 20, poll(NULL, 0, 20)) {
        cleanup_json json_t *records = records_of(node - 1, key->job);
        CHECK(json_array_size(records) <= 1);
        json_decref(record);
        record = json_incref(json_array_get(records, 0));
        if (json_equal(json_object_get(record, name), value))
            break;
    }
    return record;
}

/* Waits until what was built is on record. */
static void await_built(int node, const struct tccl_step_key *key, const char *state,
                        const char *built, const char *reason)
{
    cleanup_json json_t *value = json_string(built);
    cleanup_json json_t *record = await_record(node, key, "built", value);
    CHECK_STR(text_of(record, "built"), built);
    CHECK_STR(text_of(record, "state"), state);
    CHECK_STR(text_of(record, "built_reason"), reason);
    CHECK_STR(text_of(record, "built_class"), strcmp(built, "no call") == 0 ? built : "");
    const char *of = text_of(record, "built_node");
    bool named = strncmp(reason, "n1", 2) == 0 || strncmp(reason, "n2", 2) == 0;
    CHECK((*of != '\0') == (*reason != '\0') && (!named || strncmp(reason, of, 2) == 0));
}

/* CHAIN */

/* The best of a table, by looking at all of it. */
static double best_of(const struct tccl_table *table, bool closed)
{
    double best = 0;
    for (int i = 0; i < tccl_table_pairs(table); i++)
        best = table->results[i].gbps > best ? table->results[i].gbps : best;
    return closed ? tccl_table_ring(table)->gbps : best;
}

static void check_path(const json_t *answer, uint32_t mask, bool closed)
{
    struct tccl_chain chain;
    uint32_t found = 0;
    CHECK(strstr(text_of(answer, "chain"), machine.gpus[0].busid) != NULL);
    CHECK_OK(tccl_chain_parse(text_of(answer, "chain"), &machine, &chain, ERR));
    CHECK_INT(chain.closed, closed);
    for (int i = 0; i < chain.n_gpus; i++)
        found |= 1u << chain.gpus[i];
    CHECK_INT(found, mask);
    CHECK_STR(text_of(answer, "nodes"), "0 1 2 3");
    CHECK((text_of(answer, "nic")[0] == '\0') == closed);
    if (!closed)
        CHECK(strstr(text_of(answer, "nic"), machine.nics[0].busid) != NULL);
}

/* Of one of the generations of NCCL: the table has the same for all of them. */
static double baseline_of(const json_t *answer)
{
    double gbps = -1;
    CHECK_INT(sscanf(text_of(answer, "baseline"), "%*d %*s %lf 4 ", &gbps), 1);
    return gbps;
}

static void check_chain(const struct tccl_step_key *key, int table, bool closed, int *applied)
{
    uint32_t mask = masks[table];
    cleanup_json json_t *answer = ask_as(job_uid(), 1, chain_question(key, mask, closed));
    const char *state = text_of(answer, "state");
    CHECK_STR(text_of(answer, "type"), "chain");
    if (closed && mask == 1) {
        CHECK_STR(state, "left");
        return;
    }
    double best = best_of(tables[table], closed);
    double gbps = atof(text_of(answer, "gbps"));
    double baseline = baseline_of(answer);
    /* As all-reduces reach it, over two such nodes, or this one (unit/reach). */
    double steps = 2 * __builtin_popcount(mask) * (closed ? 1 : 2) - 2;
    CHECK(gbps < best + 1e-3 && gbps > best * steps / (steps + 1) - 1e-3);
    CHECK_STR(text_of(answer, "source"), "model");
    CHECK_STR(state, gbps > baseline ? "planned" : "left");
    if (strcmp(state, "planned") != 0)
        return;
    ++*applied;
    CHECK_STR(text_of(answer, "reason"), "");
    check_path(answer, mask, closed);
}

static json_t *read_plan(const char *path)
{
    cleanup_free char *text = NULL;
    size_t size;
    CHECK_OK(tccl_read_file(path, 65536, &text, &size, ERR));
    char *end = text ? strstr(text, "\nend\n") : NULL;
    if (!end)
        return NULL;
    end[5] = '\0'; /* the record follows */
    return from_lines(text);
}

TEST(chains)
{
    int applied = 0;
    struct tccl_step_key key = begin_step(1, 4);
    cleanup_json json_t *plan = read_plan(path);
    CHECK(strstr(text_of(plan, "chain"), " | ") != NULL); /* groups have single chains, though */
    for (int i = 0; i < MASKS; i++)
        for (int closed = 0; closed < 2; closed++)
            check_chain(&key, i, closed, &applied);
    CHECK(applied >= 2); /* else this shows little */
    cleanup_json json_t *none = ask_as(job_uid(), 1, chain_question(&key, 6, true));
    CHECK_STR(text_of(none, "state"), "failed");
    CHECK(strstr(text_of(none, "reason"), "no chains for GPUs 1-2") != NULL);
    leave_all(&key, 1);
    check_refused(job_uid(), 1, chain_question(&key, 3, true), "has no step test:");
}

/* Behind the plan. */
static json_t *read_record(const char *path)
{
    cleanup_free char *text = NULL;
    size_t size;
    CHECK_OK(tccl_read_file(path, 65536, &text, &size, ERR));
    const char *end = text ? strstr(text, "\nend\n") : NULL;
    return end ? json_loads(end + 5, 0, NULL) : NULL;
}

/* Of two rings NCCL has built one: so many count for steps that begin beside this one. */
TEST(fewer)
{
    char text[32] = "";
    struct tccl_step_key key = begin_step(1, 4);
    confirm(&key, 1, "fewer", "1 of 2 rings: NCCL has no channels for more", true);
    int64_t end = tccl_now_ms() + WAIT_MS;
    while (strcmp(text, "1") != 0 && tccl_now_ms() < end) { /* what runs is written down soon */
        cleanup_json json_t *record = read_record(path);
        const json_t *built = json_object_get(record, "built");
        snprintf(text, sizeof(text), "%d", (int)json_integer_value(built));
        usleep(10000);
    }
    CHECK_STR(text, "1");
    leave_all(&key, 1);
}

/* The plan file, in the words that the shim knows. */
TEST(plan_file)
{
    struct tccl_step_key key = begin_step(2, 3);
    cleanup_json json_t *plan = read_plan(path);
    CHECK_STR(text_of(plan, "type"), "plan");
    CHECK_STR(text_of(plan, "socket"), rig_at("tccld.sock", 1));
    CHECK_INT(atoi(text_of(plan, "uid")), job_uid());
    CHECK_STR(text_of(plan, "step_gpus"), "6");
    CHECK_STR(text_of(plan, "index"), "0");
    char gpus[128];
    snprintf(gpus, sizeof(gpus), "%s %s %s", machine.gpus[0].busid, machine.gpus[1].busid,
             machine.gpus[2].busid);
    CHECK_STR(text_of(plan, "gpus"), gpus);
    check_path(plan, 7, false);
    char second[4096];
    snprintf(second, sizeof(second), "%s", path);
    *strstr(second, "/n1/") = '\0';
    strcat(second, "/n2/run");
    strcat(second, strstr(path, "/run/") + 4);
    cleanup_json json_t *other = read_plan(second);
    CHECK_STR(text_of(other, "step_gpus"), "6");
    CHECK_STR(text_of(other, "start"), text_of(plan, "start"));
    CHECK_STR(text_of(other, "index"), "1");
    leave_all(&key, 2);
}

/* A step without a ring has a plan for its groups: they get the same chains as they would with one.
 * Nothing is said of what was built, whatever its processes tell. */
TEST(without_ring)
{
    int applied = 0;
    struct tccl_step_key key = begin_step(1, 3);
    cleanup_json json_t *plan = read_plan(path);
    await_built(1, &key, "left", "", "");
    CHECK_STR(text_of(plan, "ring"), "no");
    CHECK_STR(text_of(plan, "step_gpus"), "3");
    CHECK(!json_object_get(plan, "chain"));
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < MASKS - 1; i++)
            for (int closed = 0; closed < 2; closed++)
                check_chain(&key, i, closed, &applied);
        rig_stop_tccld(1, SIGKILL);
        rig_start_tccld(1);
    }
    CHECK(applied >= 4);
    confirm(&key, 1, "not used", "no ring", true);
    leave_all(&key, 1);
    await_built(1, &key, "left", "", "");
    CHECK(access(path, F_OK) != 0);
}

TEST(bad_questions)
{
    struct tccl_step_key key = begin_step(1, 2), other = key;
    uid_t uid = job_uid();
    const struct {
        const char *name, *value, *said;
        int more; /* times that it is said */
    } bad[] = {
        {"closed", "1", "closed: yes or no"},
        {"gpus", "", "gpus: a list of 1 to 16"},
        {"gpus", NULL, "gpus: a list of 1 to 16"},
        {"gpus", "1", "gpus: a list of 1 to 16 bus ids"},
        {"gpus", "0000:ff:1f.0", "entry 0 is not a GPU of this step"},
        {"gpus", "../../etc", "gpus: a list of 1 to 16 bus ids"},
        {"gpus", machine.gpus[1].busid, "is there twice", 1},
        {"gpus", machine.gpus[0].busid, "gpus: a list of 1 to 16", 16},
        {"cluster", NULL, "cluster: a text"},
        {"job", "-1", "job: a number from 0"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        json_t *message = chain_question(&key, 3, true);
        char list[17 * TCCL_BUSID] = "";
        for (int k = 0; bad[i].value && k <= bad[i].more; k++)
            sprintf(list + strlen(list), "%s%s", k ? " " : "", bad[i].value);
        json_object_del(message, bad[i].name);
        if (bad[i].value)
            json_object_set_new(message, bad[i].name, json_string(list));
        check_refused(uid, 1, message, bad[i].said);
    }
    check_refused(uid, 1, chain_question(&key, 4, true), "entry 0 is not a GPU of this step");
    other.job += 1000;
    check_refused(uid, 1, chain_question(&other, 3, true), "has no step test:");
    check_refused(uid, 1, verdict(&other, "applied", "", true), "has no step test:");
    check_refused(uid, 1, verdict(&key, "splendid", "", true), "verdict: \"splendid\" is unknown");
    check_refused(uid, 1, verdict(&key, "", "", true), "verdict: \"\" is unknown");
    char text[300];
    memset(text, 'x', sizeof(text) - 1);
    text[256] = '\0';
    check_refused(uid, 1, verdict(&key, "unknown", text, true),
                  "text: a text of at most 255 bytes");
    json_t *strange = verdict(&key, "applied", "", true);
    json_object_set_new(strange, "whole", json_string("true"));
    check_refused(uid, 1, strange, "whole: yes or no");
    if (getuid() == 0) {
        check_refused(uid - 1, 1, chain_question(&key, 3, true), "has no step test:");
        check_refused(uid - 1, 1, verdict(&key, "differs", "a lie", true), "has no step test:");
        cleanup_json json_t *root = ask_as(0, 1, chain_question(&key, 3, true));
        CHECK_STR(text_of(root, "type"), "chain");
        /* Beyond what a user may send at all. */
        json_t *large = verdict(&key, "unknown", "", true);
        char more[70000];
        memset(more, 'x', sizeof(more));
        json_object_set_new(large, "more", json_stringn(more, sizeof(more)));
        cleanup_json json_t *closed = ask_as(uid, 1, large);
        CHECK(closed == NULL);
    }
    leave_all(&key, 1);
    await_built(1, &key, "planned", "no call",
                "no communicator over the step's GPUs was made with this plan");
}

/* CONFIRM */

TEST(verdicts)
{
    struct tccl_step_key key = begin_step(1, 4);
    confirm(&key, 1, "differs", "of a subset", false);
    confirm(&key, 1, "not used", "a file of the user's", true);
    await_built(1, &key, "planned", "no", "a file of the user's");
    confirm(&key, 1, "unknown", "no log", true);
    await_built(1, &key, "planned", "unknown", "no log");
    confirm(&key, 1, "applied", "", true);
    await_built(1, &key, "planned", "yes", "");
    confirm(&key, 1, "unknown", "later", true);
    leave_all(&key, 1);
    await_built(1, &key, "planned", "yes", "");
}

/* An NCCL that is not known is one by its class. */
TEST(unknown_nccl)
{
    struct tccl_step_key key = begin_step(1, 4);
    json_t *said = verdict(&key, "not used", "none of ours", true);
    json_object_set_new(said, "known", json_string("no"));
    cleanup_json json_t *answer = ask_as(job_uid(), 1, said), *failed = json_string("failed");
    CHECK_STR(text_of(answer, "type"), "ok");
    cleanup_json json_t *record = await_record(1, &key, "state", failed);
    CHECK_STR(text_of(record, "reason"), "none of ours");
    CHECK_STR(text_of(record, "reason_class"), "unknown NCCL");
    leave_all(&key, 1);
}

/* What ranks of node 0 measure; the first one's is on record. */
static json_t *figures(const struct tccl_step_key *key, int rank, int samples, double best)
{
    /* With each sample more was sent. */
    char best_text[32], median[32];
    snprintf(best_text, sizeof(best_text), "%g", best);
    snprintf(median, sizeof(median), "%g", best / 2);
    return question("achieved", key,
                    json_pack("{s:i,s:s,s:s,s:i,s:i,s:i,s:i,s:s,s:s,s:I,s:s}", "captured", 7,
                              "algorithm", "ring", "steered", "yes", "nccl", 22907, "rank", rank,
                              "from", 64 << 20, "samples", samples, "best", best_text, "median",
                              median, "bytes", (json_int_t)samples << 30, "share", "0.25"));
}

static void achieved(const struct tccl_step_key *key, int node, int rank, int samples, double best)
{
    cleanup_json json_t *answer = ask_as(job_uid(), node, figures(key, rank, samples, best));
    CHECK_STR(text_of(answer, "type"), "ok");
}

/* Nothing was measured: there is only what it has sent. */
static void sent(const struct tccl_step_key *key, int rank, int bytes)
{
    json_t *message = figures(key, rank, 0, 0);
    json_object_set_new(message, "from", json_integer(0));
    json_object_set_new(message, "bytes", json_integer(bytes));
    cleanup_json json_t *answer = ask_as(job_uid(), 1, message);
    CHECK_STR(text_of(answer, "type"), "ok");
}

static void await_achieved(const struct tccl_step_key *key, int samples, double best,
                           const char *with)
{
    cleanup_json json_t *value = json_integer(samples);
    cleanup_json json_t *record = await_record(1, key, "samples", value);
    CHECK_INT(json_integer_value(json_object_get(record, "samples")), samples);
    CHECK(json_real_value(json_object_get(record, "achieved_gbps")) == best);
    CHECK(json_real_value(json_object_get(record, "achieved_median")) == best / 2);
    CHECK(json_real_value(json_object_get(record, "sent_share")) == 0.25);
    CHECK_INT(json_integer_value(json_object_get(record, "sent_bytes")), (json_int_t)samples << 30);
    CHECK_INT(json_integer_value(json_object_get(record, "achieved_from")), 64 << 20);
    CHECK_STR(text_of(record, "achieved_with"), with);
    CHECK_INT(json_integer_value(json_object_get(record, "captured")), 7);
    CHECK_STR(text_of(record, "achieved_algorithm"), "ring");
    CHECK_STR(text_of(record, "nccl"), "2.29.7");
}

/* A sample of a node's metrics; -1: there is no file, or it is not in it. */
static double metric(int node, const char *sample)
{
    char line[512];
    double value = -1;
    FILE *file = fopen(check_printf("%s/n%d/metrics.prom", rig.folder, node), "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, sample, strlen(sample)) == 0)
            value = atof(line + strlen(sample));
    if (file)
        fclose(file);
    return value;
}

/* As many of the steps so far were measured so, by what the node of their first rank counts. */
static void await_measured(const char *kind, int steps)
{
    char sample[96];
    snprintf(sample, sizeof(sample), "tccl_measured_steps_total{kind=\"%s\"} ", kind);
    for (int i = 0; i < 600 && metric(1, sample) != steps; i++)
        usleep(50000);
    CHECK(metric(1, sample) == steps);
}

TEST(measured)
{
    struct tccl_step_key key = begin_step(2, 4);
    sent(&key, 0, 100); /* what was measured is before it */
    achieved(&key, 1, -1, 12, 20);
    achieved(&key, 1, 2, 32, 9.5); /* before it is known what was built */
    confirm(&key, 2, "applied", "", true);
    confirm(&key, 1, "applied", "", true);
    await_achieved(&key, 32, 9.5, "rings");
    achieved(&key, 2, 0, 99, 1);   /* of another node: nobody keeps it */
    achieved(&key, 1, 3, 98, 2);   /* not the first rank here */
    achieved(&key, 1, 2, 8, 3);    /* a second communicator of it has sent less */
    achieved(&key, 1, -1, 200, 4); /* of a rank that is not known */
    /* Soon after another it waits, for the step's end here. */
    for (int i = 0; i < 50; i++)
        achieved(&key, 1, 1, 40 + i, 11.25);
    cleanup_json json_t *record = record_of(0, key.job);
    CHECK_INT(json_integer_value(json_object_get(record, "samples")), 32);
    leave_all(&key, 2);
    await_achieved(&key, 89, 11.25, "rings");
    await_measured("ring", 1);
    cleanup_json json_t *last = record_of(1, key.job);
    double share = 11.25 / json_number_value(json_object_get(last, "gbps"));
    CHECK(fabs(metric(1, "tccl_achieved_ratio_sum ") - share) < 1e-5);
    CHECK(metric(1, "tccl_achieved_ratio_count ") == 1);
}

/* A step without a ring: its figures are those of NCCL's own, whatever they say. */
TEST(measured_without_ring)
{
    struct tccl_step_key key = begin_step(1, 3);
    achieved(&key, 1, 0, 32, 9.5);
    await_achieved(&key, 32, 9.5, "own");
    achieved(&key, 1, 0, 40, 11.25);
    leave_all(&key, 1);
    await_achieved(&key, 40, 11.25, "own");
    await_built(1, &key, "left", "", "");
    await_measured("own", 1);
    CHECK(metric(1, "tccl_achieved_ratio_count ") <= 1);
}

/* Nothing was measured; perhaps all was captured. */
TEST(sent_and_not_measured)
{
    for (int bytes = 0; bytes <= 100; bytes += 100) {
        struct tccl_step_key key = begin_step(1, 4);
        sent(&key, 1, 4096);
        sent(&key, 0, bytes); /* the first rank's */
        sent(&key, 2, 9999);
        confirm(&key, 1, "applied", "", true);
        leave_all(&key, 1);
        cleanup_json json_t *captured = json_integer(7);
        cleanup_json json_t *record = await_record(1, &key, "captured", captured);
        CHECK_INT(json_integer_value(json_object_get(record, "sent_bytes")), bytes);
        CHECK_INT(json_integer_value(json_object_get(record, "captured")), 7);
        CHECK_INT(json_integer_value(json_object_get(record, "samples")), 0);
        CHECK_STR(text_of(record, "achieved_with"), "");
        await_built(1, &key, "planned", "yes", "");
    }
}

/* A job of which the steps are trials; the share is half. */
static struct tccl_step_key begin_trial(int n, int n_gres)
{
    for (int tries = 0; tries < 64; tries++) {
        struct tccl_step_key key = new_key();
        int fds[NODES];
        bool trial = false;
        start_joins(&key, n, n_gres, 50000, fds);
        for (int i = 0; i < n; i++) {
            cleared_by(tccl_outcome_clear) struct tccl_outcome plan = end_join(fds[i]);
            CHECK(i == 0 || trial == (plan.cause == TCCL_REASON_TRIAL)); /* all nodes alike */
            trial = plan.cause == TCCL_REASON_TRIAL;
            CHECK_INT(plan.state, trial ? TCCL_STATE_LEFT : TCCL_STATE_PLANNED);
            CHECK(trial == plan.measure);
            if (i == 0)
                snprintf(path, sizeof(path), "%s", plan.path ? plan.path : "");
        }
        if (trial)
            return key;
        leave_all(&key, n);
    }
    CHECK(false);
    return new_key();
}

/* What tccld of node 1 knows by steps, of the latest subject first. A new reference. */
static json_t *evidence(void)
{
    cleanup_json json_t *question =
        json_pack("{s:i, s:s, s:b}", "v", 1, "type", "node", "evidence", 1);
    cleanup_free char *text = json_dumps(question, JSON_COMPACT), *data = NULL;
    cleanup_close int fd = connect_to(1);
    int64_t deadline = tccl_now_ms() + WAIT_MS;
    size_t size = 0;
    CHECK_OK(tccl_frame_write(fd, text, strlen(text), TCCL_FRAME_UNIX, deadline, ERR));
    CHECK_OK(tccl_frame_read(fd, TCCL_FRAME_UNIX, deadline, &data, &size, ERR));
    cleanup_json json_t *answer = json_loadb(data, size, 0, NULL);
    return json_incref(json_object_get(answer, "evidence"));
}

/* A new reference, or NULL. */
static json_t *latest_evidence(void)
{
    cleanup_json json_t *all = evidence();
    return json_incref(json_array_get(all, 0));
}

/* A trial: nothing for groups either; its figures are evidence once it has ended, those of
 * other users, and of more than can be, are none. */
TEST(trial)
{
    cleanup_json json_t *before = latest_evidence();
    struct tccl_step_key key = begin_trial(2, 4);
    cleanup_json json_t *plan = read_plan(path);
    CHECK_STR(text_of(plan, "ring"), "no");
    CHECK_STR(text_of(plan, "groups"), "no");
    CHECK(!json_object_get(plan, "chain"));
    cleanup_json json_t *chain = ask_as(job_uid(), 1, chain_question(&key, 3, true));
    CHECK_STR(text_of(chain, "state"), "left");
    if (getuid() == 0)
        check_refused(job_uid() - 1, 1, figures(&key, 0, 64, 9), "has no step test:");
    achieved(&key, 1, 0, 32, 5.5);
    await_achieved(&key, 32, 5.5, "own");
    cleanup_json json_t *running = latest_evidence();
    CHECK(json_equal(before, running));
    leave_all(&key, 2);
    cleanup_json json_t *after = latest_evidence();
    CHECK_INT(json_integer_value(json_object_get(after, "without")),
              json_integer_value(json_object_get(before, "without")) + 1);
    CHECK_INT(json_integer_value(json_object_get(after, "n_nodes")), 2);
    CHECK(json_number_value(json_object_get(after, "promised_gbps")) > 0);
    CHECK(json_is_false(json_object_get(after, "off")));
    struct tccl_step_key absurd = begin_trial(1, 4);
    achieved(&absurd, 1, 0, 32, 9999);
    await_achieved(&absurd, 32, 9999, "own");
    leave_all(&absurd, 1);
    cleanup_json json_t *same = latest_evidence();
    CHECK(json_equal(after, same));
}

/* Figures that can't be are refused, and stay out of the record. */
TEST(forged_figures)
{
    static const char *const forged[][2] = {
        {"best", "nan"},       {"best", "inf"},        {"best", "0"},       {"best", "-1"},
        {"best", "10001"},     {"best", "1e300"},      {"median", "11"},    {"samples", "0"},
        {"samples", "-5"},     {"from", "0"},          {"bytes", "1e3"},    {"bytes", "-1"},
        {"rank", "-2"},        {"steered", "perhaps"}, {"from", "4194303"}, {"bytes", "67108863"},
        {"median", "nan"},     {"median", "0"},        {"samples", "1e9"},  {"best", "0x1p3"},
        {"algorithm", "nvls"},
    };
    struct tccl_step_key key = begin_step(1, 4);
    confirm(&key, 1, "applied", "", true);
    for (size_t i = 0; i < COUNT(forged); i++) {
        json_t *message = figures(&key, 0, 8, 10);
        json_object_set_new(message, forged[i][0], json_string(forged[i][1]));
        check_refused(job_uid(), 1, message, "expected");
    }
    await_built(1, &key, "planned", "yes", "");
    cleanup_json json_t *record = record_of(0, key.job);
    CHECK_INT(json_integer_value(json_object_get(record, "samples")), 0);
    leave_all(&key, 1);
}

/* Two nodes: "applied" is what both say; that of one that something differs counts most. */
TEST(nodes)
{
    struct tccl_step_key key = begin_step(2, 4);
    confirm(&key, 2, "unknown", "not sent", true);
    confirm(&key, 2, "differs", "edge 1 went through memory 0", true);
    await_built(2, &key, "planned", "no", "n2: edge 1 went through memory 0 (1 of 2 nodes)");
    confirm(&key, 1, "applied", "", true);
    leave_all(&key, 2);
    await_built(1, &key, "planned", "no", "n2: edge 1 went through memory 0 (1 of 2 nodes)");
    key = begin_step(2, 4);
    confirm(&key, 2, "applied", "", true);
    confirm(&key, 1, "applied", "", true);
    await_built(1, &key, "planned", "yes", "");
    leave_all(&key, 2);
    key = begin_step(2, 4);
    confirm(&key, 2, "applied", "", true);
    confirm(&key, 1, "begun", "", true);
    leave_all(&key, 2);
    await_built(1, &key, "planned", "unknown",
                "n1: its processes ended before it was known what NCCL has built (1 of 2 nodes)");
    key = begin_step(2, 4);
    confirm(&key, 2, "applied", "", true);
    leave_all(&key, 2);
    await_built(1, &key, "planned", "no",
                "n1: no communicator over the step's GPUs was made with this plan (1 of 2 nodes "
                "left the plan alone)");
}

/* A node that says nothing to the end, since its tccld has gone; and one whose tccld was started
 * again in between. */
TEST(silent_node)
{
    struct tccl_step_key key = begin_step(2, 4);
    confirm(&key, 1, "applied", "", true);
    rig_stop_tccld(2, SIGKILL);
    leave_all(&key, 1);
    await_built(1, &key, "planned", "unknown", "n2 has not said what was built (1 of 2 nodes)");
    rig_start_tccld(2);
    leave(1, &key);
    key = begin_step(2, 4);
    confirm(&key, 2, "applied", "", true);
    await_built(1, &key, "planned", "", ""); /* on record: who is killed before that loses it */
    rig_stop_tccld(1, SIGKILL);              /* it knows of node 2's word */
    rig_start_tccld(1);
    confirm(&key, 1, "applied", "", true);
    await_built(1, &key, "planned", "yes", "");
    leave_all(&key, 2);
}

/* Many at once change nothing but the strongest word, and tccld still answers others. */
TEST(flood)
{
    struct tccl_step_key key = begin_step(1, 4);
    int refused = 0, answered = 0, fd = connect_to(1);
    int64_t begin = tccl_now_ms();
    for (int i = 0; i < 3000; i++) {
        cleanup_json json_t *message = verdict(&key, i % 2 ? "unknown" : "applied", "x", true);
        cleanup_json json_t *answer = exchange(fd, message);
        answered += answer != NULL;
        refused += strstr(text_of(answer, "text"), "more than 1024 questions") != NULL;
    }
    CHECK_INT(answered, 3000);
    if (tccl_now_ms() - begin < 1000) /* they were in two seconds at most */
        CHECK(refused >= 3000 - 2 * 1024);
    close(fd);
    await_built(1, &key, "planned", "yes", "");
    leave_all(&key, 1);
}

/* A tccld that is started again knows its steps, and what it has told of them. */
TEST(restart)
{
    struct tccl_step_key key = begin_step(1, 4), silent = begin_step(1, 2);
    confirm(&key, 1, "applied", "", true);
    await_built(1, &key, "planned", "yes", "");
    rig_stop_tccld(1, SIGKILL);
    rig_start_tccld(1);
    int applied = 0;
    check_chain(&key, MASKS - 1, true, &applied);
    check_refused(job_uid(), 1, chain_question(&silent, 8, true), "entry 0 is not a GPU");
    confirm(&silent, 1, "differs", "it is so", true);
    leave_all(&silent, 1);
    await_built(1, &silent, "planned", "no", "n1: it is so");
    leave_all(&key, 1);
    await_built(1, &key, "planned", "yes", "");
}

/* While the records' home is away, what was built waits as records do. */
TEST(away)
{
    rig_stop_tccld(HOME, SIGTERM);
    struct tccl_step_key key = begin_step(2, 4);
    confirm(&key, 1, "applied", "", true);
    confirm(&key, 2, "differs", "after all", true);
    leave_all(&key, 2);
    rig_start_tccld(HOME);
    await_built(1, &key, "planned", "no", "n2: after all (1 of 2 nodes)");
}

/* Connections to the records' home, from the first one until none comes for a while; all are hung
 * up on. */
static int count_calls(int listener)
{
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    int calls = 0;
    while (poll(&wait, 1, calls > 0 ? 300 : RIG_PATIENCE_MS) > 0 && calls < 10000) {
        close(accept(listener, NULL, NULL));
        calls++;
    }
    return calls;
}

/* However much the step's user says, little of it leaves the node. */
TEST(traffic)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    rig_stop_tccld(HOME, SIGTERM);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    address.sin_port = htons(rig.port[HOME]);
    CHECK_INT(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(listen(listener, 1024), 0);
    struct tccl_step_key key = begin_step(1, 4);
    int fd = connect_to(1);
    for (int i = 0; i < 400; i++) {
        cleanup_json json_t *message = verdict(&key, i % 2 ? "unknown" : "differs", "x", true);
        cleanup_json json_t *answer = exchange(fd, message);
        CHECK_STR(text_of(answer, "type"), "ok");
    }
    close(fd);
    int calls = count_calls(listener);
    CHECK(calls >= 1 && calls < 100); /* a record, four words at most, and what is tried again */
    close(listener);
    leave_all(&key, 1);
    rig_start_tccld(HOME);
    await_built(1, &key, "planned", "no", "n1: x");
}

/* Without AccountingHost the word of another node comes to the first node, which has the record. */
TEST(no_home)
{
    for (int i = 1; i <= NODES; i++)
        rig_stop_tccld(i, SIGTERM);
    rig_write_conf(NODES, "");
    for (int i = 1; i <= NODES; i++)
        rig_start_tccld(i);
    struct tccl_step_key key = begin_step(2, 4);
    confirm(&key, 1, "applied", "", true);
    confirm(&key, 2, "differs", "here", true);
    await_built(1, &key, "planned", "no", "n2: here (1 of 2 nodes)");
    leave_all(&key, 2);
}

/* The shim's file is there, the user's own; at the step's end it goes, and nothing that a link in
 * its place leads to. */
TEST(shared_file)
{
    char shared[2][128], target[256];
    struct stat stat_;
    if (getuid() != 0) {
        printf("not as root: the shim's file is left alone\n");
        return;
    }
    strcpy(target, rig_at("target", 0));
    rig_write(target, "x", 1, 0644);
    for (int link = 0; link < 2; link++) {
        struct tccl_step_key key = begin_step(1, 4);
        char folder[TCCL_KEY_TEXT];
        tccl_key_folder(&key, folder);
        for (int i = 0; i < 2; i++) /* the step's, and one of another user */
            snprintf(shared[i], sizeof(shared[i]), "/dev/shm/tccl-%u%s.0", job_uid() + i,
                     strrchr(folder, '-'));
        CHECK_INT(lstat(shared[0], &stat_), 0);
        CHECK(S_ISREG(stat_.st_mode) && stat_.st_uid == job_uid() && stat_.st_size == 0);
        if (link)
            CHECK_INT(unlink(shared[0]) | symlink(target, shared[0]), 0);
        rig_write(shared[1], "x", 1, 0600);
        leave_all(&key, 1);
        CHECK_INT(lstat(shared[0], &stat_), -1);
        CHECK_INT(lstat(shared[1], &stat_), 0);
        unlink(shared[1]);
        CHECK_INT(stat(target, &stat_), 0);
    }
}

/* Strangers who say nothing */

enum { CROWD = 140, CLOSED = 12, CROWD_MS = 400, SILENT_MS = 1000 /* that tccld gives them */ };

static int count_closed(const int *fds)
{
    int closed = 0;
    char byte;
    for (int i = 0; i < CROWD; i++)
        closed += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
    return closed;
}

/* A child that is uid holds as many connections as it gets until the returned pipe is closed, and
 * ends with how many of them tccld had closed by then. */
static pid_t begin_crowd(uid_t uid, int *stop)
{
    int fds[CROWD], told[2], ends[2];
    char byte;
    CHECK_INT(pipe(told) | pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        if (setresuid(uid, uid, uid) != 0)
            _exit(255);
        for (int i = 0; i < CROWD; i++)
            fds[i] = connect_to(1);
        for (int ms = 0; ms < CROWD_MS && count_closed(fds) < CLOSED; ms += 2)
            poll(NULL, 0, 2);
        bool failed = write(told[1], "x", 1) != 1 || read(ends[0], &byte, 1) != 0;
        _exit(failed ? 255 : count_closed(fds));
    }
    close(told[1]);
    close(ends[0]);
    CHECK_INT(read(told[0], &byte, 1), 1);
    close(told[0]);
    *stop = ends[1];
    return pid;
}

/* Does one of root's, who is slow to begin, outlive them? */
static bool outlives(uid_t first, int users, int *closed)
{
    struct tccl_step_key key = new_key();
    cleanup_close int fd = connect_to(1);
    int stop[4];
    pid_t pids[4];
    for (int i = 0; i < users; i++)
        pids[i] = begin_crowd(first + (uid_t)i, &stop[i]);
    cleanup_json json_t *question = chain_question(&key, 3, true);
    cleanup_json json_t *answer = exchange(fd, question);
    for (int i = 0; i < users; i++)
        close(stop[i]);
    for (int i = 0; i < users; i++)
        closed[i] = check_exit(pids[i]);
    return answer != NULL;
}

/* In one of twenty tries it has to. After a second tccld closes all that are silent: where no try
 * takes less, none shows anything. */
static void check_crowds(uid_t first, int users)
{
    bool good = false, in_time = false;
    for (uid_t tries = 0; tries < 20 && !good; tries++) {
        int closed[4];
        int64_t began = tccl_now_ms();
        good = outlives(first + (uid_t)users * tries, users, closed);
        in_time |= tccl_now_ms() - began < SILENT_MS;
        good = good && (users > 1 || closed[0] == CLOSED);
    }
    if (!good && !in_time)
        check_skip("this machine is too busy: %d crowds take longer than tccld bears them", users);
    else
        CHECK(good);
}

TEST(shared_memories)
{
    if (getuid() != 0) {
        printf("not as root: there are no strangers\n");
        return;
    }
    check_crowds(60001, 1);
    check_crowds(61000, 4);
}

/* That count, with the ring or without. */
static json_int_t counted(const char *arm)
{
    cleanup_json json_t *all = evidence();
    json_int_t steps = 0;
    EACH_OF(one, all)
        steps += json_integer_value(json_object_get(one, arm));
    return steps;
}

/* Another step begins on GPUs 2 and 3 of a node. */
static struct tccl_step_key begin_beside(int node)
{
    struct tccl_step join = new_join(new_key(), 0, 1);
    join.nodes = &node_names[node - 1];
    join.n_gres = 2;
    join.gres[0] = 2, join.gres[1] = 3;
    cleared_by(tccl_outcome_clear) struct tccl_outcome plan = end_join(join_by(node, &join));
    CHECK(plan.start > 0);
    return join.key;
}

/* What a step achieves, with a ring or as a trial, is no evidence where another one began beside it
 * on one of its nodes. */
TEST(later)
{
    static const char *const arms[] = {"with_ring", "without"};
    cleanup_json json_t *yes = json_integer(1);
    for (int node = 1; node <= 2; node++)
        put_profile(node, "amd-4gpu", tables, MASKS + 1);
    for (int trial = 0; trial < 2; trial++) {
        const json_int_t before = counted(arms[trial]);
        for (int node = 2; node >= 0; node--) {
            struct tccl_step_key other, key = trial ? begin_trial(2, 2) : begin_step(2, 2);
            for (int i = 2; i > 0 && !trial; i--)
                confirm(&key, i, "applied", "", true);
            achieved(&key, 1, 0, 32, 5);
            if (node) {
                other = begin_beside(node);
                cleanup_json json_t *record = await_record(1, &key, "later", yes);
                CHECK(json_equal(json_object_get(record, "later"), yes));
            }
            leave_all(&key, 2);
            if (node)
                leave(node - 1, &other);
        }
        for (int i = 0; i < 600 && counted(arms[trial]) == before; i++)
            usleep(50000);
        CHECK_INT(counted(arms[trial]), before + 1);
    }
}

/* It is on record of a step that was left to NCCL, too, whose last figures came before. */
TEST(later_without_ring)
{
    cleanup_json json_t *yes = json_integer(1);
    const struct tccl_step_key key = new_key();
    bool told = false;
    int fds[2];
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        tables[1]->baselines[0][i].gbps *= 12; /* faster than ours */
    for (int i = 0; i < 2; i++)
        put_profile(i + 1, "amd-4gpu", tables, MASKS + 1);
    start_joins(&key, 2, 2, 0, fds);
    for (int i = 1; i >= 0; i--) {
        cleared_by(tccl_outcome_clear) struct tccl_outcome plan = end_join(fds[i]);
        CHECK_INT(plan.state, TCCL_STATE_LEFT);
        snprintf(path, sizeof(path), "%s", plan.path ? plan.path : "");
    }
    achieved(&key, 1, 0, 32, 9.5);
    await_achieved(&key, 32, 9.5, "own");
    struct tccl_step_key other = begin_beside(1);
    for (int i = 0; i < 600 && !told; i++) { /* what runs is written down soon */
        cleanup_json json_t *record = read_record(path);
        told = json_is_true(json_object_get(record, "later"));
        usleep(50000);
    }
    leave_all(&key, 2);
    cleanup_json json_t *record = await_record(1, &key, "later", yes);
    CHECK(told && json_equal(json_object_get(record, "later"), yes));
    leave(0, &other);
}

SETUP
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    rig_begin();
    search_tables();
    make_nodes(make_profile, "n3");
}
TEARDOWN
{
    for (int i = 0; i <= MASKS; i++)
        tccl_table_free(tables[i]);
}
