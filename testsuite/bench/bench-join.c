/* bench-join.c: a real tccld with the complete chains of an 8-GPU, 4-NIC node on disk, and one with
 * those of 16 GPUs that stand for others; RunDir is in memory, as sites have it: how soon it
 * answers a JOIN, how long a JOIN holds its event loop, how much memory it takes, and how often it
 * wakes up when there is nothing to do. */
#include <dirent.h>

#include "bench.h"

enum { NODES = 3, JOINS = 1000, SETS = 255, STARTS = 3, IDLE_SECONDS = 10, REST_SECONDS = 30 };

#include "joins.h"

/* The profile */

static bool is_head(struct tccl_port port, int gpu)
{
    return port.via.kind != TCCL_GPU || port.via.index == gpu;
}

/* Through the memory next to its receiver. */
static struct tccl_edge to_gpu(const struct tccl_machine *machine, int gpu)
{
    return (struct tccl_edge){.kind = TCCL_BOUNCE, .memory = (uint8_t)machine->gpus[gpu].numa};
}

/* From the entry's GPU to the exit's, the others in index order between them, all through host
 * memory. Returns false where one GPU would be both ends. */
static bool make_chain(const struct tccl_machine *machine, uint32_t gpus, struct tccl_port entry,
                       struct tccl_port exit, struct tccl_chain *chain)
{
    int head = -1, tail = -1, count = __builtin_popcount(gpus);
    for (int g = 0; g < machine->n_gpus; g++) {
        if (!(gpus >> g & 1))
            continue;
        if (head < 0 && is_head(entry, g) &&
            (count == 1 || exit.via.kind != TCCL_GPU || !is_head(exit, g)))
            head = g;
        if (is_head(exit, g) && (count == 1 || g != head))
            tail = g;
    }
    if (head < 0 || tail < 0)
        return false;
    *chain = (struct tccl_chain){.entry = entry, .exit = exit};
    chain->gpus[chain->n_gpus++] = (uint8_t)head;
    for (int g = 0; g < machine->n_gpus; g++)
        if ((gpus >> g & 1) && g != head && g != tail)
            chain->gpus[chain->n_gpus++] = (uint8_t)g;
    if (tail != head)
        chain->gpus[chain->n_gpus++] = (uint8_t)tail;
    for (int i = 0; i + 1 < chain->n_gpus; i++)
        chain->edges[i] = to_gpu(machine, chain->gpus[i + 1]);
    return true;
}

/* NCCL's own, but through host memory where that has an edge by NICs, which no table has of ours.
 */
static struct tccl_chain own_ring(const struct tccl_machine *machine,
                                  const struct tccl_baseline *baseline)
{
    struct tccl_chain ring = baseline->set.rings[0];
    for (int i = 0; i < ring.n_gpus; i++)
        if (ring.edges[i].kind == TCCL_BY_NICS)
            ring.edges[i] = to_gpu(machine, ring.gpus[(i + 1) % ring.n_gpus]);
    return ring;
}

static void set_result(const struct tccl_model *model, struct tccl_result *result)
{
    struct tccl_set set;
    tccl_chain_set(&result->chain, &set);
    MUST(tccl_model_measure(model, &set, &result->gbps, NULL, NULL, ERR));
    result->bound = result->gbps;
}

/* The baseline, made slow enough for the ring to be worth applying. */
static void set_baseline(const struct tccl_model *model, uint32_t gpus, bool closed,
                         struct tccl_baseline *baseline)
{
    struct tccl_set set;
    MUST(tccl_baseline_find(tccl_model_machine(model), gpus, closed, TCCL_NEWEST, baseline, ERR));
    MUST(tccl_baseline_set(baseline, &set, ERR));
    MUST(tccl_model_measure(model, &set, &baseline->gbps, NULL, NULL, ERR));
    baseline->gbps /= 2;
}

/* Every pair of ports has a chain, measured by the model; nothing is searched. */
static struct tccl_table *make_table(const struct tccl_model *model, uint32_t gpus)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_table *table = tccl_table_new(machine, gpus);
    int n = table->n_ports;
    for (int i = 0; i < n * n; i++) {
        table->results[i] = (struct tccl_result){0};
        if (make_chain(machine, gpus, table->ports[i / n], table->ports[i % n],
                       &table->results[i].chain))
            set_result(model, &table->results[i]);
    }
    if (machine->n_nics > 0)
        set_baseline(model, gpus, false, &table->baselines[0][TCCL_NEWEST]);
    if (__builtin_popcount(gpus) > 1) {
        set_baseline(model, gpus, true, &table->baselines[1][TCCL_NEWEST]);
        tccl_table_ring(table)->chain = own_ring(machine, &table->baselines[1][TCCL_NEWEST]);
        set_result(model, tccl_table_ring(table));
    }
    return table;
}

static const char *name_of(int node)
{
    static const char *const names[NODES] = {"epyc-8gpu", "dual-8gpu", "wrx90-16gpu"};
    return names[node - 1];
}

/* All sets of 8 GPUs; of 16 as many of 65,535, drawn by multiplying. */
static uint32_t set_of(int node, int i)
{
    uint32_t drawn = ((uint32_t)i + 1) * UINT32_C(2654435761) >> 16;
    return node < NODES ? (uint32_t)i + 1 : drawn | (drawn == 0);
}

static void note_alike(int node, const struct tccl_alike *alike)
{
    cleanup_json json_t *json = tccl_read_json(machine_file(name_of(node)), 1 << 22, ERR);
    owned(profile) struct tccl_profile *profile = NULL;
    MUST(tccl_profile_create(rig_at("cache", node), machine_of(name_of(node)), "model", json,
                             &profile, ERR));
    MUST(tccl_profile_set_alike(profile, alike, ERR));
}

static void make_profile(int node)
{
    const struct tccl_model *model = load_machine(name_of(node));
    owned(symmetry) struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    struct tccl_table *tables[SETS];
    struct tccl_alike alike = {0};
    struct tccl_exchange move;
    if (node == NODES)
        tccl_symmetry_alike(symmetry, tccl_model_machine(model), &alike);
    for (int i = 0; i < SETS; i++)
        tables[i] = make_table(model, tccl_alike_first(&alike, set_of(node, i), &move));
    put_profile(node, name_of(node), tables, SETS);
    if (alike.n > 0)
        note_alike(node, &alike);
    for (int i = 0; i < SETS; i++)
        tccl_table_free(tables[i]);
}

/* JOINs */

/* Milliseconds of processor time that the event loop's thread of a tccld has had so far. */
static double loop_ms(int node)
{
    char path[64];
    double ns = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", rig.tccld[node], rig.tccld[node]);
    cleanup_file FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%lf", &ns) != 1)
        ns = 0;
    return ns / 1e6;
}

/* The same, once the loop waits for something to do. */
static double settled_loop_ms(int node)
{
    double now = loop_ms(node), before = -1;
    while (now != before) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        before = now;
        now = loop_ms(node);
    }
    return now;
}

/* Milliseconds from connecting to the plan; the step's end, which frees its plan, is not timed.
 * held, or NULL: how long the event loop was held, in milliseconds of processor time. */
static double join_ms(int node, uint32_t gpus, double *held)
{
    cleared_by(tccl_outcome_clear) struct tccl_outcome plan = {0};
    struct tccl_step join = new_join(new_key(), 0, 1);
    join.nodes = &node_names[node - 1];
    join.n_gres = 0;
    for (int g = 0; g < TCCL_MAX_GPUS; g++)
        if (gpus >> g & 1)
            join.gres[join.n_gres++] = g;
    double before = held ? settled_loop_ms(node) : 0;
    double start = bench_clock();
    cleanup_close int fd =
        tccl_frame_connect(rig_at("tccld.sock", node), tccl_now_ms() + WAIT_MS, ERR);
    MUST(fd < 0);
    MUST(tccl_client_join(fd, &join, WAIT_MS, ERR));
    MUST(tccl_client_wait_plan(fd, WAIT_MS, &plan, ERR));
    double ms = (bench_clock() - start) * 1e3;
    if (held)
        *held = settled_loop_ms(node) - before;
    if (plan.state != (join.n_gres > 1 ? TCCL_STATE_PLANNED : TCCL_STATE_LEFT)) {
        fprintf(stderr, "bench-join: GPUs %x: %s: %s\n", gpus, tccl_state_name(plan.state),
                plan.reason);
        exit(1);
    }
    MUST(tccl_client_leave(fd, &join.key, WAIT_MS, ERR));
    return ms;
}

/* One byte there and back between two processes: what any answer costs here. */
static void round_trips(double *ms, int count)
{
    int pair[2];
    char byte = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        while (read(pair[1], &byte, 1) == 1 && write(pair[1], &byte, 1) == 1)
            ;
        _exit(0);
    }
    close(pair[1]);
    for (int i = 0; i < count; i++) {
        double start = bench_clock();
        if (write(pair[0], &byte, 1) != 1 || read(pair[0], &byte, 1) != 1)
            exit(1);
        ms[i] = (bench_clock() - start) * 1e3;
    }
    close(pair[0]);
    waitpid(pid, NULL, 0);
}

static void report(const char *what, double *ms, int count, const char *aim)
{
    char text[80];
    double p99 = bench_quantile(ms, count, 0.99);
    bench_spread(what, ms, count, "ms", aim);
    snprintf(text, sizeof(text), "  of these, 99 %% are below");
    bench_spread(text, &p99, 1, "ms", aim);
}

static void time_joins(void)
{
    static double trip[JOINS], same[JOINS], other[JOINS], small[JOINS];
    for (int i = 0; i < 20; i++)
        join_ms(1, 0xff, NULL);
    round_trips(trip, JOINS);
    for (int i = 0; i < JOINS; i++)
        same[i] = join_ms(1, 0xff, NULL);
    for (int i = 0; i < JOINS; i++)
        small[i] = join_ms(1, 0x03, NULL);
    for (int i = 0; i < JOINS; i++)
        other[i] = join_ms(1, 1 + (uint32_t)(i * 89) % SETS, NULL);
    bench_title(
        "A JOIN of one node (epyc-8gpu: 8 GPUs, 4 NICs), from connecting to the plan, 1,000 times");
    bench_heads();
    report("one byte there and back, between two processes", trip, JOINS, "");
    report("warm: the same 8 GPUs each time", same, JOINS, "<= 1");
    report("warm: the same 2 GPUs each time", small, JOINS, "<= 1");
    report("another GPU set each time (tables come from disk)", other, JOINS, "");
    double ratio = bench_quantile(same, JOINS, 0.5) / bench_quantile(trip, JOINS, 0.5);
    bench_spread("  8 GPUs : one byte, medians", &ratio, 1, "x", "");
}

/* The event loop */

/* What NCCL's search takes for one GPU set: once, each JOIN whose node class was not at hand waited
 * for it. Milliseconds. */
static double search_ms(const struct tccl_machine *machine, uint32_t gpus)
{
    struct tccl_baseline baseline;
    double start = bench_clock();
    if (machine->n_nics > 0 || __builtin_popcount(gpus) > 1)
        MUST(tccl_baseline_find(machine, gpus, machine->n_nics == 0, TCCL_NEWEST, &baseline, ERR));
    return (bench_clock() - start) * 1e3;
}

/* Each GPU set once after a start of tccld, then all once more; the least of some starts each, for
 * other programs disturb. */
static void time_loop(int node, const char *name)
{
    static double cold[SETS], warm[SETS], before[SETS];
    double held;
    char title[160];
    for (int i = 0; i < SETS; i++)
        cold[i] = warm[i] = WAIT_MS;
    for (int start = 0; start < STARTS; start++) {
        rig_stop_tccld(node, SIGTERM);
        rig_start_tccld(node);
        for (int i = 0; i < SETS; i++) {
            join_ms(node, set_of(node, i), &held);
            cold[i] = held < cold[i] ? held : cold[i];
            join_ms(node, set_of(node, i), &held);
            warm[i] = held < warm[i] ? held : warm[i];
        }
    }
    for (int i = 0; i < SETS; i++)
        before[i] = search_ms(machine_of(name), set_of(node, i));
    snprintf(title, sizeof(title), "How long a JOIN holds the event loop (%s, %s%d GPU sets)", name,
             node < NODES ? "all " : "", SETS);
    bench_title(title);
    bench_heads();
    bench_spread("cold: the first JOIN with each GPU set", cold, SETS, "ms", "<= 2");
    bench_spread("warm: the second JOIN with it", warm, SETS, "ms", "<= 2");
    bench_spread("NCCL's search, which a cold JOIN ran once", before, SETS, "ms", "");
}

/* tccld from outside */

/* The number behind "name:" in a status file; 0 if it is not there. */
static double status_number(const char *path, const char *name)
{
    char line[256];
    cleanup_file FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            return strtod(line + strlen(name) + 1, NULL);
    return 0;
}

/* How often its threads have gone to sleep of their own accord, so far. */
static double sleeps(int *threads)
{
    char path[512];
    double sum = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", rig.tccld[1]);
    DIR *folder = opendir(path);
    *threads = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%s/status", rig.tccld[1], entry->d_name);
        sum += status_number(path, "voluntary_ctxt_switches");
        ++*threads;
    }
    if (folder)
        closedir(folder);
    return sum;
}

static double resident_mib(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", rig.tccld[1]);
    return status_number(path, "VmRSS") / 1024;
}

static double folder_mib(void)
{
    char command[320];
    double kib = 0;
    snprintf(command, sizeof(command), "du -sk %s", rig_at("cache", 1));
    FILE *pipe = popen(command, "r");
    if (!pipe || fscanf(pipe, "%lf", &kib) != 1)
        kib = 0;
    if (pipe)
        pclose(pipe);
    return kib / 1024;
}

/* Waits until its threads sleep for a second: the last records have been written. Returns how long
 * that took, or what it was given. */
static double settle(void)
{
    int threads;
    double before = -1, now = sleeps(&threads);
    int seconds = 0;
    for (; now != before && seconds < REST_SECONDS; seconds++) {
        sleep(1);
        before = now;
        now = sleeps(&threads);
    }
    return seconds;
}

static void watch(double started, double touched)
{
    int threads;
    double busy = resident_mib(), disk = folder_mib();
    double rest = settle();
    double before = sleeps(&threads);
    sleep(IDLE_SECONDS);
    double wakes = sleeps(&threads) - before, count = threads;
    bench_title("tccld itself");
    bench_heads();
    bench_spread("tables of 255 GPU sets, on disk", &disk, 1, "MiB", "");
    bench_spread("resident when started", &started, 1, "MiB", "");
    bench_spread("resident after JOINs with all 255 sets", &touched, 1, "MiB", "<= 20");
    bench_spread("resident after 3,000 more steps, kept for a minute", &busy, 1, "MiB", "");
    bench_spread("its threads", &count, 1, "", "");
    bench_spread("until they slept, after the last JOIN", &rest, 1, "s", "");
    bench_spread("wake-ups of all of them in 10 s without work", &wakes, 1, "", "");
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    rig_begin();
    rig_run_in_memory();
    make_nodes(make_profile, "");
    double started = resident_mib();
    for (uint32_t gpus = 1; gpus <= SETS; gpus++)
        join_ms(1, gpus, NULL);
    double touched = resident_mib();
    time_joins();
    time_loop(1, name_of(1));
    time_loop(2, name_of(2));
    time_loop(3, name_of(3));
    watch(started, touched);
    return bench_end();
}
