/* The worker pool: real concurrency and real congestion of copying cores; members that start late,
 * fail, die and hang; what is left of a pool whose leader is killed. */
#include <dirent.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "ahead.h"
#include "machines.h"
#include "puppet.h"

static const struct tccl_workspace_settings settings = {.region = 8 << 20};
static struct tccl_mover mover;
static const double PATIENCE = 90; /* seconds: what others may keep from its time is tried again */
static bool too_busy;

struct pool {
    struct tccl_workspace *workspace;
    struct tccl_workers *workers;
};

static struct pool make_pool(const struct tccl_site *site, const struct tccl_mover *gpu)
{
    const struct tccl_workers_options options = {.gpu = gpu, .prepare_limit = 60, .run_limit = 60};
    struct pool pool = {.workspace = tccl_workspace_new(site, &settings, ERR)};
    if (pool.workspace)
        pool.workers = tccl_workers_new(pool.workspace, &options, ERR);
    if (!pool.workers) {
        fprintf(stderr, "%s\n", check_err.text);
        exit(1);
    }
    return pool;
}

/* Beside what is measured each of these GPUs copies to its own memory and from it. */
static void set_copies(struct pool *pool, int gpus)
{
    struct tccl_side copies = {0};
    for (uint8_t i = 0; i < 2 * gpus; i++)
        copies.transfers[copies.count++] = tccl_transfer_make(
            (struct tccl_device){TCCL_GPU, i / 2}, i % 2, (struct tccl_device){TCCL_MEMORY, 0});
    tccl_workers_others(pool->workers, &copies);
}

static void free_pool(struct pool *pool)
{
    tccl_workers_free(pool->workers);
    tccl_workspace_free(pool->workspace);
}

static int two_cpus(int cpus[2])
{
    cpu_set_t usable;
    int count = 0;
    sched_getaffinity(0, sizeof(usable), &usable);
    for (int cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++)
        if (CPU_ISSET(cpu, &usable))
            cpus[count++] = cpu;
    return count;
}

/* Does nobody take this CPU away for long while it looks at the clock for 20 ms? */
static bool is_let_run(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    double begin = tccl_seconds(), last = begin, gap = 0;
    for (double now; last < begin + 0.02; last = now) {
        now = tccl_seconds();
        gap = fmax(gap, now - last);
    }
    return gap < 0.0005;
}

/* What this machine gives to two processes without a pool: both run for 20 ms at once, in one of
 * many tries. */
static bool are_two_let_run(const int cpus[2])
{
    bool both = false;
    for (int i = 0; i < 100 && !both; i++) {
        pid_t pids[2];
        both = true;
        fflush(stdout);
        for (int k = 0; k < 2; k++)
            if ((pids[k] = fork()) == 0)
                _exit(!is_let_run(cpus[k]));
        for (int k = 0; k < 2; k++)
            both = check_exit(pids[k]) == 0 && both;
    }
    return both;
}

static bool are_together(const struct tccl_run_result *run)
{
    return run->overlap >= 0.95 && run->skew < 100;
}

/* Two cores copy: both are at it nearly all the time, and start within microseconds. Others may use
 * the cores meanwhile, so it is tried again; skew and overlap of a pool that does not synchronise
 * would never do. */
static void check_concurrency(const int cpus[2])
{
    struct tccl_site *site = puppet_site(2);
    CPU_SET(cpus[0], &site->gpu_cpus[0]);
    CPU_SET(cpus[1], &site->gpu_cpus[1]);
    cleared_by(free_pool) struct pool pool = make_pool(site, &tccl_mover_host);
    struct tccl_set set = parse_set("g0>m0 g1<m0");
    struct tccl_run_result run, best = {0};
    double until = tccl_seconds() + PATIENCE;
    do {
        CHECK_INT(tccl_workers_run(pool.workers, &set, 64 << 20, &run, NULL), 0);
        CHECK(run.window == 0 || run.slowest > 0);
        CHECK(fmin(run.gbps[0], run.gbps[1]) == run.slowest);
        if (are_together(&run) || run.overlap > best.overlap)
            best = run;
    } while (!are_together(&best) && tccl_seconds() < until);
    printf("concurrency: skew %.3f us, overlap %.4f\n", best.skew, best.overlap);
    too_busy = !are_together(&best) && !are_two_let_run(cpus);
    CHECK(too_busy || are_together(&best));
    CHECK_INT(tccl_workers_count(pool.workers), 2);
}

/* Bandwidth of g0's write alone and beside g1's, both on one core; the best of some runs, since
 * others can only take away. */
static double best_of(struct tccl_workers *workers, const char *text)
{
    struct tccl_set set = parse_set(text);
    struct tccl_run_result run;
    double best = 0;
    for (int i = 0; i < 7; i++) {
        CHECK_INT(tccl_workers_run(workers, &set, 64 << 20, &run, NULL), 0);
        best = fmax(best, run.slowest);
    }
    return best;
}

static void check_congestion(const int cpus[2])
{
    struct tccl_site *site = puppet_site(2);
    CPU_SET(cpus[0], &site->gpu_cpus[0]);
    CPU_SET(cpus[0], &site->gpu_cpus[1]);
    cleared_by(free_pool) struct pool pool = make_pool(site, &tccl_mover_host);
    double ratio = 1;
    double until = tccl_seconds() + PATIENCE;
    while (ratio >= 0.65 && tccl_seconds() < until) {
        double alone = best_of(pool.workers, "g0>m0"), both = best_of(pool.workers, "g0>m0 g1>m0");
        ratio = both / alone;
    }
    printf("congestion: two on one core reach %.3f of one alone, each\n", ratio);
    CHECK(ratio < 0.65);
}

static bool rates_fit(const struct tccl_run_result *run)
{
    return fabs(run->gbps[0] / 2 - 1) < 0.1 && fabs(run->gbps[1] / 0.5 - 1) < 0.1 &&
           fabs(run->gbps[2] / 1 - 1) < 0.1 && run->slowest == run->gbps[1] && run->skew > 25000 &&
           run->overlap < 0.9 && run->window > 0.03;
}

/* Members with rates known by the clock, one of them late: only what all did together counts. They
 * may not be let run when the clock says so: tried again, until they are. */
TEST(rates)
{
    cleared_by(free_pool) struct pool pool = make_pool(puppet_site(3), &puppet_mover);
    struct tccl_set set = parse_set("g0>m0 g1>m0 g2>m0");
    struct tccl_run_result run = {0};
    puppet->gbps[0] = 2;
    puppet->gbps[1] = 0.5;
    puppet->gbps[2] = 1;
    puppet->late[2] = 0.03;
    double until = tccl_seconds() + PATIENCE;
    do
        CHECK_INT(tccl_workers_run(pool.workers, &set, 50000000, &run, NULL), 0);
    while (!rates_fit(&run) && tccl_seconds() < until);
    printf("rates: %.3f %.3f %.3f GB/s, skew %.0f us, overlap %.3f, %.4f s\n", run.gbps[0],
           run.gbps[1], run.gbps[2], run.skew, run.overlap, run.window);
    CHECK(rates_fit(&run));
    puppet->late[2] = 0;
    puppet->gbps[0] = puppet->gbps[1] = puppet->gbps[2] = 1;
}

struct mishap {
    enum puppet_act act;
    const char *says;
    bool replaced;
};

static const struct mishap mishaps[] = {
    {PUPPET_DIES, "g1>m0: its worker was killed by signal 9", true},
    {PUPPET_EXITS, "g1>m0: its worker ended with status 3", true},
    {PUPPET_FAILS, "g1>m0: a string broke", false},
    {PUPPET_FAILS_TO_PREPARE, "g1>m0: the workspace is not set", false},
    {PUPPET_HANGS, "g1>m0: its worker hangs: not ready within 8 s", true},
    {PUPPET_HANGS_MOVING, "g1>m0: its worker hangs: not done within 8 s", true},
    {PUPPET_NEVER_BEGINS, "g1>m0: its worker ended before it began", false},
    {PUPPET_IS_STUCK, "g1>m0: moved ", false},
};

/* Each mishap fails its set, with words; the next run works, with a new worker where one was lost.
 */
TEST(mishaps)
{
    const struct tccl_workers_options options = {
        .gpu = &puppet_mover, .prepare_limit = 8, .run_limit = 8};
    struct tccl_workspace *workspace = tccl_workspace_new(puppet_site(2), &settings, NULL);
    struct tccl_workers *workers = tccl_workers_new(workspace, &options, NULL);
    struct tccl_set set = parse_set("g0>m0 g1>m0");
    struct tccl_run_result run;
    long replaced = 0;
    for (size_t i = 0; i < COUNT(mishaps); i++) {
        CHECK_OK(tccl_workers_run(workers, &set, 1000000, &run, ERR));
        int other = puppet->pid[0];
        puppet->act[1] = mishaps[i].act;
        CHECK_INT(tccl_workers_run(workers, &set, 2000000, &run, ERR), 1);
        if (strncmp(check_err.text, mishaps[i].says, strlen(mishaps[i].says)) != 0)
            CHECK_STR(check_err.text, mishaps[i].says);
        puppet->act[1] = PUPPET_MOVES;
        replaced += mishaps[i].replaced;
        CHECK_INT(tccl_workers_replaced(workers), replaced);
        CHECK_INT(tccl_workers_run(workers, &set, 1000000, &run, NULL), 0);
        CHECK_INT(tccl_workers_count(workers), 2);
        CHECK_INT(puppet->pid[0], other);
    }
    tccl_workers_free(workers);
    tccl_workspace_free(workspace);
}

/* Between runs, too; and one that can't be opened at first. */
TEST(idle_death)
{
    cleared_by(free_pool) struct pool pool = make_pool(puppet_site(2), &puppet_mover);
    struct tccl_set set = parse_set("g0>m0");
    struct tccl_run_result run;
    puppet->act[0] = PUPPET_FAILS_TO_OPEN;
    CHECK_INT(tccl_workers_run(pool.workers, &set, 1000000, &run, ERR), 1);
    CHECK_STR(check_err.text, "g0>m0: the strings are tangled");
    puppet->act[0] = PUPPET_MOVES;
    CHECK_INT(tccl_workers_run(pool.workers, &set, 1000000, &run, NULL), 0);
    kill(puppet->pid[0], SIGKILL);
    waitid(P_PID, (id_t)puppet->pid[0], &(siginfo_t){0}, WEXITED | WNOWAIT);
    CHECK_INT(tccl_workers_run(pool.workers, &set, 1000000, &run, NULL), 0);
    CHECK_INT(tccl_workers_replaced(pool.workers), 1);
}

/* Workers are kept, one for each transfer that a device starts; they have only their own files
 * open, and don't mind the terminal's interrupt. */
TEST(workers_are_kept)
{
    int own[2];
    CHECK_INT(pipe(own), 0);
    struct pool pool = make_pool(puppet_site(2), &puppet_mover);
    struct tccl_set one = parse_set("g0>m0"), two = parse_set("g0>m0 g0<m0"),
                    other = parse_set("g1>m0");
    struct tccl_run_result run;
    puppet->opened[0] = puppet->opened[1] = 0;
    for (int i = 0; i < 5; i++) {
        CHECK_INT(tccl_workers_run(pool.workers, &one, 100000, &run, NULL), 0);
        CHECK_INT(tccl_workers_run(pool.workers, &two, 100000, &run, NULL), 0);
        CHECK_INT(tccl_workers_run(pool.workers, &other, 100000, &run, NULL), 0);
    }
    CHECK_INT(puppet->opened[0], 2);
    CHECK_INT(puppet->opened[1], 1);
    CHECK_INT(tccl_workers_count(pool.workers), 3);
    CHECK_INT(puppet->fds[0], 4);
    CHECK_INT(puppet->fds[1], 4);
    puppet->act[0] = PUPPET_INTERRUPTED;
    CHECK_INT(tccl_workers_run(pool.workers, &one, 100000, &run, NULL), 0);
    puppet->act[0] = PUPPET_MOVES;
    struct tccl_set none = {0}, nic = parse_set("n0>m0");
    CHECK_INT(tccl_workers_run(pool.workers, &none, 100000, &run, NULL), 1);
    CHECK_INT(tccl_workers_run(pool.workers, &nic, 100000, &run, ERR), 1);
    CHECK_STR(check_err.text, "n0: there are no NICs here");
    free_pool(&pool);
    close(own[0]);
    close(own[1]);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}

/* The largest set beside copies of all GPUs, and then another: places are taken from workers that
 * are not needed. */
TEST(all_places)
{
    cleared_by(free_pool) struct pool pool = make_pool(puppet_site(16), &puppet_mover);
    struct tccl_set set = {0};
    struct tccl_run_result run;
    set_copies(&pool, 16);
    for (int gpu = 0; gpu < 16; gpu++)
        for (int i = 0; i < TCCL_MAX_SET / 16; i++) /* some of them repeats */
            tccl_set_add_again(
                &set, tccl_transfer_make((struct tccl_device){TCCL_GPU, (uint8_t)gpu}, i % 2,
                                         (struct tccl_device){TCCL_MEMORY, (uint8_t)(i / 2 % 2)}));
    CHECK_INT(set.count, TCCL_MAX_SET);
    CHECK_INT(tccl_workers_run(pool.workers, &set, 1000, &run, NULL), 0);
    CHECK_INT(tccl_workers_count(pool.workers), TCCL_WORKSPACE_PLACES);
    set = parse_set("g3>m0 g3>m1 g3<m0 g3<m1 g3>g1 g3>g2 g3<g1");
    CHECK_INT(tccl_workers_run(pool.workers, &set, 1000, &run, NULL), 0);
    CHECK_INT(tccl_workers_count(pool.workers), TCCL_WORKSPACE_PLACES);
    CHECK_INT(tccl_workers_replaced(pool.workers), 0);
}

/* A transfer that rings of a set have in common is there as often as they make it. */
TEST(repeats)
{
    cleared_by(free_pool) struct pool pool = make_pool(puppet_site(4), &puppet_mover);
    struct tccl_set set = {0};
    struct tccl_run_result run;
    CHECK_INT(tccl_set_parse_repeats("g0>m0 g0>m0 g0>m0 g1<m0", &set, NULL), 0);
    CHECK_INT(tccl_workers_run(pool.workers, &set, 1000, &run, NULL), 0);
    CHECK_INT(tccl_workers_count(pool.workers), 4);
}

TEST(keepers)
{
    struct pool pool = make_pool(puppet_site(2), &mover);
    struct tccl_set set = parse_set("g0>m0");
    struct tccl_run_result run;
    CHECK_INT(tccl_workers_count(pool.workers), 2);
    CHECK_INT(tccl_workspace_loan(pool.workspace, 1)->turn, 1);
    CHECK_INT(tccl_workspace_loan(pool.workspace, 1)->bytes, 42);
    CHECK_INT(tccl_workers_run(pool.workers, &set, 1000, &run, NULL), 0);
    kill(puppet->keeper[1], SIGKILL);
    for (int i = 0; i < 1000 && tccl_workspace_loan(pool.workspace, 1)->turn == 1; i++) {
        tccl_workers_run(pool.workers, &set, 1000, &run, ERR);
        puppet_nap();
    }
    CHECK_INT(tccl_workspace_loan(pool.workspace, 1)->turn, 2);
    CHECK_INT(tccl_workspace_loan(pool.workspace, 0)->turn, 1);
    CHECK_INT(tccl_workers_replaced(pool.workers), 1);
    free_pool(&pool);
    struct tccl_workspace *workspace = tccl_workspace_new(puppet_site(2), &settings, NULL);
    const struct tccl_workers_options options = {
        .gpu = &mover, .prepare_limit = 60, .run_limit = 60};
    puppet->keep_fails = 1;
    CHECK(!tccl_workers_new(workspace, &options, ERR));
    CHECK_INT(strncmp(check_err.text, "g", 1), 0);
    CHECK_STR(check_err.text + 2, ": nothing to lend");
    puppet->keep_fails = 0;
    tccl_workspace_free(workspace);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}

/* A GPU is free again when the pool is gone: its driver clears up for a second after a process. */
TEST(slow_leaving)
{
    struct pool pool = make_pool(puppet_site(2), &puppet_mover);
    struct tccl_set set = parse_set("g0>m0 g1>m0");
    struct tccl_run_result run;
    CHECK_INT(tccl_workers_run(pool.workers, &set, 1000, &run, NULL), 0);
    puppet->closed = 0;
    puppet->leaves = 1.5;
    free_pool(&pool);
    puppet->leaves = 0;
    CHECK_INT(puppet->closed, 2);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}

/* Others run with the set, and are not rated: they may be slower than any member, and never move a
 * share. If one fails, so does the set. */
TEST(copies)
{
    cleared_by(free_pool) struct pool pool = make_pool(puppet_site(3), &puppet_mover);
    struct tccl_set set = parse_set("g0>g1"), memory = parse_set("g0>m0");
    struct tccl_run_result run;
    for (int i = 0; i < 3; i++)
        puppet->runs[i] = 0;
    set_copies(&pool, 2);
    puppet->gbps[1] = 0.001;
    CHECK_OK(tccl_workers_run(pool.workers, &set, 2000000, &run, ERR));
    CHECK_INT(puppet->runs[0], 3);
    CHECK_INT(puppet->runs[1], 2);
    CHECK_INT(puppet->runs[2], 0);
    CHECK_INT(tccl_workers_count(pool.workers), 5);
    CHECK(run.slowest > 0.1 && run.gbps[0] == run.slowest && run.gbps[1] == 0);
    CHECK_INT(tccl_workers_run(pool.workers, &memory, 2000000, &run, ERR),
              0); /* the same copy twice */
    CHECK_INT(puppet->runs[0], 6);
    CHECK_INT(puppet->runs[1], 4);
    puppet->gbps[1] = 100;
    puppet->act[1] = PUPPET_FAILS;
    CHECK_INT(tccl_workers_run(pool.workers, &set, 2000000, &run, ERR), 1);
    CHECK_INT(strncmp(check_err.text, "g1", 2), 0);
    puppet->act[1] = PUPPET_MOVES;
    puppet->gbps[1] = 1;
    CHECK_INT(tccl_workers_run(pool.workers, &set, 2000000, &run, NULL), 0);
}

/* No more processes: the pool can't go on, and says so. In a child, whose limits are its own. */
TEST(no_processes)
{
    cleared_by(free_pool) struct pool pool = make_pool(puppet_site(1), &puppet_mover);
    struct tccl_set set = parse_set("g0>m0");
    const struct rlimit none = {0, 0};
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct tccl_run_result run;
        setrlimit(RLIMIT_NPROC, &none);
        if (getuid() == 0 && setuid(65534) < 0)
            _exit(2);
        int rc = tccl_workers_run(pool.workers, &set, 1000, &run, ERR);
        bool said = strstr(check_err.text, "g0.0: its process can't be started: ");
        if (!said)
            fprintf(stderr, "%d: %s\n", rc, check_err.text);
        _exit(rc == -1 && said ? 0 : 1);
    }
    CHECK_INT(check_exit(pid), 0);
}

static bool own_shared_memory;

/* A /dev/shm that no other program puts files into. Returns whether we may have one. */
static bool get_shared_memory(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tccl-test", "/dev/shm", "tmpfs", 0, NULL) == 0;
}

static int shared_memory_files(void)
{
    DIR *folder = opendir("/dev/shm");
    int count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* In a run that does not end. */
static void lead_until_killed(int ready)
{
    struct pool pool = make_pool(puppet_site(2), &mover);
    struct tccl_set set = parse_set("g0>m0 g1>m0");
    struct tccl_run_result run;
    CHECK_INT(tccl_workers_run(pool.workers, &set, 1000, &run, NULL), 0);
    puppet->act[1] = PUPPET_HANGS_MOVING;
    puppet->act[0] = PUPPET_IS_STUCK;
    puppet->acted[0] = puppet->acted[1] = 0;
    if (write(ready, "", 1) == 1)
        tccl_workers_run(pool.workers, &set, 1000, &run, NULL);
    _exit(1);
}

/* kill -9 of the leader: all its processes end, and are inherited by us; its pipe is closed by all,
 * and nothing stays in /dev/shm. */
TEST(killed_leader)
{
    int ready[2], status, inherited = 0, killed = 0, before = shared_memory_files();
    char byte;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    puppet->acted[0] = 0;
    CHECK_INT(pipe(ready), 0);
    fflush(stdout);
    pid_t leader = fork();
    if (leader == 0)
        lead_until_killed(ready[1]);
    close(ready[1]);
    CHECK_INT(read(ready[0], &byte, 1), 1);
    while (puppet->acted[0] == 0 || puppet->acted[1] == 0)
        puppet_nap();
    kill(leader, SIGKILL);
    CHECK_INT(read(ready[0], &byte, 1), 0);
    for (pid_t pid; (pid = wait(&status)) > 0;) {
        killed += pid != leader && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        inherited += pid != leader;
    }
    CHECK_INT(inherited, 4);
    CHECK(killed >= 2); /* the keepers, who wait, may see their socket's end first */
    CHECK(!own_shared_memory || shared_memory_files() == before);
    puppet->act[0] = puppet->act[1] = PUPPET_MOVES;
    close(ready[0]);
}

SETUP
{
    alarm(900);
    own_shared_memory = get_shared_memory();
    puppet_make();
    mover = puppet_mover;
    mover.keep = puppet_keep;
}

TEST(together)
{
    int cpus[2], n_cpus = two_cpus(cpus);
    go_ahead();
    check_congestion(cpus);
    if (n_cpus == 2)
        check_concurrency(cpus);
    if (too_busy)
        check_skip("too busy: two processes are not let run at once here, be they ours or not");
    else if (n_cpus < 2)
        check_skip("one CPU: nothing can run at the same time");
}
