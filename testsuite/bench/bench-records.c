/* bench-records.c: a million step records in a tccld: their summary, one job, the latest, and what
 * storing one more costs meanwhile. */
#include <limits.h>
#include <pthread.h>

#include "bench.h"
#include "client/client.h"
#include "records/records.h"

OWNED(records, struct tccl_records, tccl_records_close)

enum {
    RECORDS = 1000000,
    BATCH = 5000,
    CLUSTER_NODES = 1000,
    REPEATS = 7,
    DAY = 86400,
    PATIENCE_MS = 60000,
};

static char folder[] = "/tmp/bench-records-XXXXXX";
static uint64_t state = 88172645463325252;

/* The same store each time. */
static unsigned draw(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % below;
}

static double uniform(void)
{
    return draw(1000000) / 1e6;
}

/* Half of the steps on one node, few on many; most of them on neighbours, some on whatever is free.
 */
static void draw_nodes(char *text, size_t size, int *n_nodes)
{
    static const int counts[] = {1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 16, 32};
    int count = counts[draw(12)], at = (int)draw((unsigned)(CLUSTER_NODES - 2 * count));
    *n_nodes = count;
    if (count == 1) {
        snprintf(text, size, "gpu%04d", at);
    } else if (draw(5)) {
        at -= at % count;
        snprintf(text, size, "gpu[%04d-%04d]", at, at + count - 1);
    } else {
        int part = 1 + (int)draw((unsigned)count - 1), gap = 1 + (int)draw((unsigned)count);
        snprintf(text, size, "gpu[%04d-%04d,%04d-%04d]", at, at + part - 1, at + part + gap,
                 at + gap + count - 1);
    }
}

static const char *draw_reason(char *text, size_t size, const char *state_name)
{
    static const char *const classes[] = {"no answer in time", "late start", "no profile",
                                          "no daemon", "policy"};
    int node = (int)draw(CLUSTER_NODES), ms = 280 + (int)draw(40);
    text[0] = '\0';
    if (strcmp(state_name, "left") == 0)
        snprintf(text, size, "NCCL's own ring is as fast (%.1f GB/s)", 10 + 20 * uniform());
    if (strcmp(state_name, "failed") != 0)
        return *text ? "no gain" : "";
    unsigned which = draw(5);
    switch (which) {
    case 0:
        snprintf(text, size, "gpu%04d: no word from its tccld within %d ms", node, ms);
        break;
    case 1:
        snprintf(text, size,
                 "gpu%04d: the step has not started there within %d ms (a slow Prolog?)", node, ms);
        break;
    case 2:
        snprintf(text, size, "gpu%04d: no chains for GPUs 0,2: run tccl-profile run --gpus 0,2",
                 node);
        break;
    case 3:
        snprintf(text, size,
                 "gpu%04d: connection refused by 10.1.%d.%d:8517: is its tccld running?", node,
                 node / 256, node % 256);
        break;
    default:
        snprintf(text, size, "policy: 1 GPUs in this step, MinGpus is 4");
    }
    return classes[which];
}

static const char *draw_state(void)
{
    unsigned part = draw(100);
    return part < 72 ? "planned" : part < 84 ? "left" : part < 97 ? "failed" : "planned";
}

/* Some three steps to a job, as long as the rings of such steps are. */
static json_t *draw_record(int number, int64_t start)
{
    char nodes[64], reason[160], user[16], ring[1200] = "";
    int n_nodes, uid = 1000 + (int)draw(400);
    const char *state_name = draw_state();
    bool is_ring = !strcmp(state_name, "planned");
    int gpus = 4 << draw(2);
    draw_nodes(nodes, sizeof(nodes), &n_nodes);
    const char *class = draw_reason(reason, sizeof(reason), state_name);
    char at_node[16] = "";
    sscanf(reason, "%15[a-z0-9]:", at_node);
    snprintf(user, sizeof(user), "user%d", uid);
    for (int i = 0; is_ring && i < n_nodes; i++)
        snprintf(ring + strlen(ring), sizeof(ring) - strlen(ring), "[0 -g> 1 =2> 3 -g> 2] ");
    double baseline = 8 + 4 * uniform(), gbps = is_ring ? baseline * (1 + 1.2 * uniform()) : 0;
    return json_pack(
        "{s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:s, s:f, s:f, "
        "s:f, s:i, s:s, s:s, s:I, s:i, s:s, s:s, s:s}",
        "cluster", "bench", "job", 1 + number / 3, "step", number % 3, "uid", uid, "user", user,
        "account", draw(2) ? "physics" : "chemistry", "partition", draw(3) ? "gpu" : "gpu-long",
        "job_name", "train-llm", "nodes", nodes, "n_nodes", n_nodes, "gpus", gpus * n_nodes, "mode",
        "auto", "policy", "gpu", "state", state_name, "reason", reason, "gbps", gbps,
        "baseline_gbps", baseline, "bound_gbps", gbps * 1.02, "solve_us",
        (int)(800 / (0.01 + uniform())), "ring", ring, "source", "cuda", "start", (json_int_t)start,
        "reporter", 0, "reason_class", class, "reason_node", at_node, "node_class",
        draw(3) ? "0c91ebbc:0-3" : "5d0e17aa:0-7");
}

/* What large collectives achieved: of rings, and of half of the steps without one. */
static void draw_figures(const json_t *record, json_t *built)
{
    bool rings = strcmp(json_string_value(json_object_get(record, "state")), "planned") == 0;
    const char *foretold = rings ? "gbps" : "baseline_gbps";
    double gbps = json_real_value(json_object_get(record, foretold)) * (0.9 + 0.2 * uniform());
    json_object_update_new(built,
                           json_pack("{s:f, s:s, s:i, s:i, s:I, s:f, s:f}", "achieved_gbps", gbps,
                                     "achieved_with", rings ? "rings" : "own", "achieved_from",
                                     64 << 20, "samples", 1 + (int)draw(100), "sent_bytes",
                                     (json_int_t)draw(1 << 30) << 10, "sent_share",
                                     0.01 + 0.9 * uniform(), "nccl_gbps", 0.0));
}

static json_t *draw_confirmation(const json_t *record)
{
    return json_pack("{s:s, s:O, s:O, s:O, s:s, s:s}", "cluster", "bench", "job",
                     json_object_get(record, "job"), "step", json_object_get(record, "step"),
                     "start", json_object_get(record, "start"), "built",
                     draw(50) ? "applied" : "differs", "built_reason", "");
}

/* A store of records spread evenly over so many days before now. */
static double make_store(const char *path, int64_t now, int days, bool measured)
{
    owned(records) struct tccl_records *records = NULL;
    double begun = bench_clock();
    MUST(tccl_records_open(path, NULL, &records, ERR));
    for (int i = 0; i < RECORDS; i += BATCH) {
        MUST(tccl_records_begin(records, ERR));
        for (int j = i; j < i + BATCH; j++) {
            int64_t start = now - (int64_t)days * DAY * (RECORDS - j) / RECORDS;
            cleanup_json json_t *record = draw_record(j, start);
            MUST(tccl_records_put(records, record, ERR));
            cleanup_json json_t *built = draw_confirmation(record);
            if (measured)
                draw_figures(record, built);
            if (measured ||
                strcmp(json_string_value(json_object_get(record, "state")), "planned") == 0)
                MUST(tccl_records_put(records, built, ERR));
        }
        MUST(tccl_records_commit(records, ERR));
    }
    return bench_clock() - begun;
}

/* A tccld over the store */

static pid_t start_tccld(const struct tccl_conf *conf)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (freopen("/dev/null", "w", stderr))
            execl(getenv("TCCL_TCCLD"), "tccld", "--config", conf->path, "--node", "n1", NULL);
        _exit(127);
    }
    for (int i = 0; i < 1000 && access(conf->socket, F_OK) != 0; i++)
        usleep(20000);
    return pid;
}

static void write_conf(struct tccl_conf *conf)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/tccl.conf", folder);
    cleanup_file FILE *file = fopen(path, "w");
    fprintf(file,
            "[tccl]\nSocket=%s/run/tccld.sock\nRunDir=%s/run\nCacheDir=%s/cache\nStateDir=%s\n"
            "BindAddr=127.0.0.1\nPort=%d\nSlurmUser=root\nAccountingHost=n1\n",
            folder, folder, folder, folder, 20000 + getpid() % 10000);
    fclose(tccl_steal(file));
    MUST(tccl_conf_read(path, "n1", conf, ERR));
}

static double time_summary(const struct tccl_conf *conf, json_t *filter, json_int_t *steps)
{
    int complete;
    double begun = bench_clock();
    cleanup_json json_t *summary = tccl_client_summary(conf, filter, PATIENCE_MS, &complete, ERR);
    MUST(!summary);
    *steps = json_integer_value(json_object_get(summary, "steps"));
    return bench_clock() - begun;
}

static double time_query(const struct tccl_conf *conf, json_t *filter, size_t *count)
{
    int complete;
    double begun = bench_clock();
    cleanup_json json_t *records =
        tccl_client_query(conf, filter, PATIENCE_MS, true, &complete, NULL, ERR);
    MUST(!records);
    *count = json_array_size(records);
    return bench_clock() - begun;
}

static void bench_summary(const struct tccl_conf *conf, const char *what, json_t *filter,
                          const char *aim)
{
    double seconds[REPEATS];
    json_int_t steps;
    char text[96];
    for (int i = 0; i < REPEATS; i++)
        seconds[i] = time_summary(conf, filter, &steps);
    snprintf(text, sizeof(text), "%s: %" JSON_INTEGER_FORMAT " records", what, steps);
    bench_spread(text, seconds, REPEATS, "s", aim);
    json_decref(filter);
}

static void bench_query(const struct tccl_conf *conf, const char *what, json_t *filter,
                        const char *aim)
{
    double ms[REPEATS];
    size_t count;
    char text[96];
    for (int i = 0; i < REPEATS; i++)
        ms[i] = 1000 * time_query(conf, filter, &count);
    snprintf(text, sizeof(text), "%s: %zu records", what, count);
    bench_spread(text, ms, REPEATS, "ms", aim);
    json_decref(filter);
}

/* `tcclacct -j N`, the whole program. */
static void bench_tcclacct(const struct tccl_conf *conf)
{
    const char *tcclacct = getenv("TCCL_TCCLACCT");
    char command[2 * PATH_MAX];
    double ms[REPEATS];
    if (!tcclacct || access(tcclacct, X_OK) != 0)
        return;
    snprintf(command, sizeof(command), "'%s' --config='%s' --node=n1 -j 170000 >/dev/null 2>&1",
             tcclacct, conf->path);
    for (int i = 0; i < REPEATS; i++) {
        double begun = bench_clock();
        if (system(command) != 0)
            exit(1);
        ms[i] = 1000 * (bench_clock() - begun);
    }
    bench_spread("tcclacct -j N, from start to end", ms, REPEATS, "ms", "<= 100");
}

struct crowd {
    const struct tccl_conf *conf;
    int summaries;
    volatile bool end;
};

static void *ask_for_summaries(void *argument)
{
    struct crowd *crowd = argument;
    json_int_t steps;
    while (!crowd->end) {
        time_summary(crowd->conf, NULL, &steps);
        crowd->summaries++;
    }
    return NULL;
}

/* One job asked for while summaries are made all the time. */
static void bench_crowd(const struct tccl_conf *conf)
{
    struct crowd crowd = {.conf = conf};
    pthread_t thread;
    double ms[200];
    size_t count;
    cleanup_json json_t *filter = json_pack("{s:[{s:i}]}", "jobs", "job", 200000);
    pthread_create(&thread, NULL, ask_for_summaries, &crowd);
    for (int i = 0; i < 200; i++) {
        usleep(10000);
        ms[i] = 1000 * time_query(conf, filter, &count);
    }
    crowd.end = true;
    pthread_join(thread, NULL);
    bench_spread("one job, while others ask for summaries", ms, 200, "ms", "");
}

static void bench_store(int days, bool measured)
{
    char text[96], path[64];
    cleared_by(tccl_conf_clear) struct tccl_conf conf = {0};
    struct stat status;
    int64_t now = (int64_t)time(NULL);
    snprintf(path, sizeof(path), "%s/records.db", folder);
    double seconds = make_store(path, now, days, measured);
    write_conf(&conf);
    pid_t tccld = start_tccld(&conf);
    snprintf(text, sizeof(text), "%d records over %d days%s", RECORDS, days,
             measured ? ", each with figures" : "");
    bench_title(text);
    bench_heads();
    stat(path, &status);
    double each = (double)status.st_size / RECORDS, made = seconds * 1e6 / RECORDS;
    bench_spread("a record in the store", &each, 1, "bytes", "");
    bench_spread("storing one of many", &made, 1, "us", "");
    bench_summary(&conf, "summary of the last 30 days",
                  json_pack("{s:I}", "start", (json_int_t)(now - 30 * DAY)), "<= 1");
    bench_summary(&conf, "summary of all", json_object(), days <= 30 ? "<= 1" : "");
    bench_summary(&conf, "summary of one user", json_pack("{s:[i]}", "users", 1100), "");
    bench_query(&conf, "one job", json_pack("{s:[{s:i}]}", "jobs", "job", 100000), "<= 100");
    bench_tcclacct(&conf);
    bench_query(&conf, "the latest 50", json_pack("{s:s, s:i}", "order", "newest", "limit", 50),
                "");
    bench_query(
        &conf, "the latest 50 fallbacks of a class",
        json_pack("{s:s, s:i, s:[s]}", "order", "newest", "limit", 50, "classes", "no daemon"), "");
    bench_query(&conf, "a user's latest 50",
                json_pack("{s:s, s:i, s:[i]}", "order", "newest", "limit", 50, "users", 1200), "");
    bench_crowd(&conf);
    kill(tccld, SIGTERM);
    waitpid(tccld, NULL, 0);
}

int main(int argc, char **argv)
{
    static const struct {
        int days;
        bool measured;
    } stores[] = {{30, false}, {30, true}, {365, false}};
    char command[96];
    bench_begin(argc, argv);
    if (!getenv("TCCL_TCCLD") || !mkdtemp(folder)) {
        fputs("tccl: bench-records: TCCL_TCCLD is not set: use testsuite/bench/run\n", stderr);
        return 1;
    }
    snprintf(command, sizeof(command), "rm -rf %s/*", folder);
    for (int i = 0; i < 3; i++) {
        bench_store(stores[i].days, stores[i].measured);
        if (system(command) != 0)
            return 1;
    }
    rmdir(folder);
    return bench_end();
}
