/* What steps that ended without LEAVE have left in RunDir: plans and job scripts of slurmstepds
 * that were killed go, those of living ones stay, and where nobody can tell, age does. Processes of
 * the test are the slurmstepds. */
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"
#include "client/key.h"
#include "tccld/join/planfile.h"
#include "tccld/join/running.h"
#include "tccld/join/step.h"
#include "tccld/join/stepd.h"

static struct tccl_conf conf;
static struct daemon daemon_ = {.conf = &conf};

static pid_t start_stepd(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    return pid;
}

static void kill_stepd(pid_t pid, bool reap)
{
    siginfo_t info;
    CHECK_INT(kill(pid, SIGKILL), 0);
    CHECK_INT(waitid(P_PID, (id_t)pid, &info, WEXITED | (reap ? 0 : WNOWAIT)), 0);
}

static struct tccl_step_key key_of(uint32_t job, uint32_t step)
{
    return (struct tccl_step_key){.cluster = "c", .job = job, .step = step};
}

static void path_of(const struct tccl_step_key *key, char path[static PATH_MAX])
{
    char name[TCCL_KEY_TEXT];
    tccl_key_folder(key, name);
    snprintf(path, PATH_MAX, "%s/%s/plan", check_folder(), name);
}

static bool has_plan(const struct tccl_step_key *key)
{
    char path[PATH_MAX];
    path_of(key, path);
    return access(path, F_OK) == 0;
}

/* A step that has begun, with a plan and a file in /dev/shm; stepd: "" for none that can be seen.
 */
static struct running_step *write_plan(const struct tccl_step_key *key, const char *stepd)
{
    char buffer[TCCL_LINES_SIZE], path[PATH_MAX];
    struct tccl_step join = {.key = *key, .n_nodes = 4, .node = 3, .uid = 65532};
    struct running_step *step = running_begin(daemon_.running, &join, stepd);
    cleanup_free char *record = running_text(step);
    struct tccl_line_writer plan;
    planfile_begin(&plan, buffer);
    tccl_key_put_lines(key, &plan);
    tccl_line_put(&plan, "uid", "65532");
    tccl_line_put(&plan, "index", "3");
    CHECK_OK(planfile_write(check_folder(), key, 65532, record, &plan, NULL, path, ERR));
    return step;
}

static struct running_step *write_plan_of(const struct tccl_step_key *key, pid_t pid)
{
    char stepd[STEPD_TEXT];
    stepd_name(pid, stepd);
    CHECK(*stepd);
    return write_plan(key, stepd);
}

/* What tccld knows after it was started again. */
static void start_again(void)
{
    running_free(daemon_.running);
    daemon_.running = running_new(&daemon_);
}

static bool is_shared(const struct tccl_step_key *key)
{
    char name[TCCL_KEY_TEXT];
    tccl_key_folder(key, name);
    return access(check_printf(SHARED_FOLDER "/tccl-65532%s.3", strrchr(name, '-')), F_OK) == 0;
}

static int entry_exists(uint32_t job, const char *ending)
{
    struct stat stat;
    const char *path = check_at("%u%s", job, ending);
    return lstat(path, &stat) == 0;
}

static int sweep_after(time_t seconds)
{
    return sweep_run_dir(&daemon_, time(NULL) + seconds);
}

TEST(states)
{
    char text[STEPD_TEXT], other[STEPD_TEXT];
    pid_t pid = start_stepd();
    unsigned long long start, namespace;
    stepd_name(pid, text);
    CHECK_INT(stepd_look(text), STEPD_LIVES);
    CHECK_INT(sscanf(text, "%*d %llu %llu", &start, &namespace), 2);
    snprintf(other, sizeof(other), "%d %llu %llu", pid, start + 1, namespace); /* the id again */
    CHECK_INT(stepd_look(other), STEPD_GONE);
    snprintf(other, sizeof(other), "%d %llu %llu", pid, start, namespace + 1);
    CHECK_INT(stepd_look(other), STEPD_UNKNOWN); /* a container's id */
    CHECK_INT(stepd_look(""), STEPD_UNKNOWN);
    CHECK_INT(stepd_look("0 1 2"), STEPD_UNKNOWN);
    kill_stepd(pid, false);
    CHECK_INT(stepd_look(text), STEPD_GONE);
    waitpid(pid, NULL, 0);
    CHECK_INT(stepd_look(text), STEPD_GONE);
    stepd_name(pid, other);
    CHECK_STR(other, "");
    stepd_name(0, other);
    CHECK_STR(other, "");
}

/* A slurmstepd that has sent no JOIN: its socket, as Slurm names it, while somebody listens there.
 */
static int listen_at(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", check_folder(), name);
    unlink(address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(listen(fd, 1), 0);
    return fd;
}

/* By what the kernel says at this moment. */
static bool has_socket(const char *node, uint32_t job, uint32_t number)
{
    struct tccl_step_key key = key_of(job, number);
    struct stepd_sockets *sockets = stepd_sockets_new();
    int64_t age = stepd_sockets_age(sockets, node, &key);
    CHECK_INT(stepd_sockets_age(sockets, node, &key) >= 0, age >= 0);
    stepd_sockets_free(sockets);
    return age >= 0;
}

TEST(sockets)
{
    static const char *const names[] = {"n_2_7.3", "n_2_8.0.1", "n_2_7.4294967291"};
    int fds[3];
    for (int i = 0; i < 3; i++)
        fds[i] = listen_at(names[i]);
    CHECK(has_socket("n_2", 7, 3) && has_socket("n_2", 8, 0) && has_socket("n_2", 7, 0xfffffffb));
    CHECK(!has_socket("n_2", 7, 0) && !has_socket("n_2", 7, 33) && !has_socket("n_2", 77, 3));
    CHECK(!has_socket("2", 7, 3) && !has_socket("n_", 7, 3) && !has_socket("n", 7, 3));
    CHECK_INT(chmod(check_folder(), 0777), 0); /* now it may be anybody's */
    CHECK(!has_socket("n_2", 7, 3));
    CHECK_INT(chmod(check_folder(), 0755), 0);
    CHECK(has_socket("n_2", 7, 3));
    close(fds[0]); /* killed: the file stays */
    CHECK(!has_socket("n_2", 7, 3));
    for (int i = 0; i < 3; i++) {
        const char *path = check_at("%s", names[i]);
        if (i == 1 && geteuid() == 0) {
            CHECK(has_socket("n_2", 8, 0));
            CHECK_INT(chown(path, 65534, 65534), 0);
            CHECK(!has_socket("n_2", 8, 0));
        }
        CHECK_INT(unlink(path), 0);
        if (i > 0)
            close(fds[i]);
    }
}

/* Another step of the same job, and the job's next step, go on. */
TEST(plans)
{
    struct tccl_step_key dead = key_of(7, 0), alive = key_of(7, 1), nobodys = key_of(8, 0);
    pid_t pid = start_stepd();
    write_plan_of(&dead, pid);
    write_plan_of(&alive, getpid());
    write_plan(&nobodys, "");
    planfile_link(check_folder(), &dead);
    CHECK_INT(sweep_after(0), 0);
    CHECK(has_plan(&dead) && entry_exists(7, ".launcher"));
    CHECK(geteuid() != 0 || is_shared(&dead));
    kill_stepd(pid, true);
    CHECK_INT(sweep_after(0), 1);
    CHECK(!has_plan(&dead) && !is_shared(&dead) && !entry_exists(7, ".launcher"));
    CHECK(has_plan(&alive) && has_plan(&nobodys));
    CHECK_INT(sweep_after(SWEEP_KEEP_S + 60), 0); /* this tccld has written it */
    start_again();
    CHECK(running_find(daemon_.running, &alive) && running_find(daemon_.running, &nobodys));
    CHECK_INT(sweep_after(SWEEP_KEEP_S - 60), 0);
    CHECK_INT(sweep_after(SWEEP_KEEP_S + 60), 1);
    CHECK(has_plan(&alive) && !has_plan(&nobodys));
    leave_end(daemon_.steps, &alive, false);
    CHECK(!has_plan(&alive) && !running_find(daemon_.running, &alive));
}

/* A step without a plan, and one whose folder could not be removed when it ended, or be written. */
TEST(records)
{
    struct tccl_step_key silent = key_of(12, 0), ended = key_of(12, 1), unwritten = key_of(12, 2);
    struct tccl_step join = {.key = silent, .n_nodes = 1, .n_gres = 1};
    char stepd[STEPD_TEXT], folder[TCCL_KEY_TEXT];
    pid_t pid = start_stepd();
    stepd_name(pid, stepd);
    running_save(daemon_.running, running_begin(daemon_.running, &join, stepd));
    running_end(daemon_.running, write_plan(&ended, stepd));
    join.key = unwritten;
    running_begin(daemon_.running, &join, stepd);
    CHECK_INT(sweep_after(0), 1);
    CHECK(!has_plan(&ended) && running_find(daemon_.running, &silent));
    start_again();
    CHECK(running_find(daemon_.running, &silent) && running_find(daemon_.running, &unwritten));
    tccl_key_folder(&unwritten, folder);
    CHECK_INT(planfile_record(check_folder(), folder, "{", ERR), 0); /* nothing that can be read */
    start_again();
    CHECK(!running_find(daemon_.running, &unwritten));
    CHECK_INT(sweep_after(0), 1);
    kill_stepd(pid, true);
    CHECK_INT(sweep_after(0), 1);
    CHECK(!running_find(daemon_.running, &silent));
}

/* A tccld was killed while it made a plan, or removed it. */
TEST(unfinished)
{
    struct tccl_step_key key = key_of(11, 0);
    char path[PATH_MAX], part[PATH_MAX + 8];
    path_of(&key, path);
    snprintf(part, sizeof(part), "%s.new", path);
    *strrchr(path, '/') = '\0';
    for (int written = 0; written < 2; written++) {
        CHECK_INT(mkdir(path, 0711), 0);
        if (written)
            close(open(part, O_CREAT | O_WRONLY, 0600));
        CHECK_INT(sweep_after(0), 1);
        CHECK_INT(access(path, F_OK), -1);
    }
}

/* A tccld was killed while it wrote a file; what is somebody else's, and whole ones, stay. */
TEST(temporaries)
{
    static const char *const names[] = {"slurm-gpus.abc012", "12.launcher.new",  "slurm-gpus",
                                        "12.launcher",       "slurm-gpus.abc01", "others.abcdef",
                                        "slurm-gpus.ABCDEF"};
    enum { NAMES = COUNT(names), UNFINISHED = 2 };
    const char *path;
    for (int i = 0; i < NAMES; i++) {
        path = check_at("%s", names[i]);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    sweep_unfinished(check_folder());
    for (int i = 0; i < NAMES; i++) {
        path = check_at("%s", names[i]);
        CHECK_INT(unlink(path), i < UNFINISHED ? -1 : 0);
    }
}

/* A job script, the plans of steps that it takes part in, and a link to one. */
TEST(scripts)
{
    struct tccl_step_key below = key_of(9, 0), own = key_of(9, 0xfffffffb);
    struct tccl_step join = {
        .key = own, .n_nodes = 1, .launch = TCCL_LAUNCH_SCRIPT_ONLY, .n_gres = 1};
    char stepd[STEPD_TEXT];
    pid_t pid = start_stepd();
    stepd_name(pid, stepd);
    running_save(daemon_.running, running_begin(daemon_.running, &join, stepd));
    write_plan(&below, stepd)->by_script = true;
    planfile_link(check_folder(), &below);
    CHECK_INT(sweep_after(SWEEP_KEEP_S + 60), 0);
    CHECK(running_script(daemon_.running, &below) && has_plan(&below));
    kill_stepd(pid, true);
    CHECK(sweep_after(0) > 0 && !running_script(daemon_.running, &below) && !has_plan(&below));
    CHECK_INT(sweep_after(0), 0);
    CHECK(!entry_exists(9, ".launcher"));
}

/* Its LEAVE says so, and nothing of another job goes. */
TEST(script_ends)
{
    struct tccl_step_key below = key_of(9, 0), own = key_of(9, 0xfffffffb), other = key_of(10, 0);
    struct tccl_step join = {.key = own, .n_nodes = 1, .launch = TCCL_LAUNCH_SCRIPT};
    running_begin(daemon_.running, &join, "");
    write_plan(&below, "")->by_script = true;
    write_plan(&other, "")->by_script = true;
    leave_end(daemon_.steps, &own, false);
    CHECK(!has_plan(&below) && has_plan(&other) && !running_script(daemon_.running, &below));
    leave_end(daemon_.steps, &other, false);
}

/* What is not ours stays. */
TEST(others)
{
    const char *path = check_at("not-ours");
    CHECK_INT(mkdir(path, 0755), 0);
    CHECK_INT(sweep_after(10 * SWEEP_KEEP_S), 0);
    CHECK_INT(rmdir(path), 0);
}

/* At the start, and then again. */
TEST(period)
{
    struct tccl_step_key first = key_of(10, 0), second = key_of(10, 1);
    pid_t dead = start_stepd(), pid = start_stepd();
    write_plan_of(&first, dead);
    write_plan_of(&second, pid);
    kill_stepd(dead, true);
    daemon_.sweep = sweep_new(&daemon_, 20);
    event_base_loop(daemon_.base, EVLOOP_ONCE);
    CHECK(!has_plan(&first) && has_plan(&second));
    kill_stepd(pid, true);
    for (int turn = 0; has_plan(&second) && turn < 3; turn++)
        event_base_loop(daemon_.base, EVLOOP_ONCE);
    CHECK(!has_plan(&second));
    sweep_free(daemon_.sweep);
}

SETUP
{
    snprintf(conf.run_dir, sizeof(conf.run_dir), "%s", check_folder());
    daemon_.base = event_base_new();
    daemon_.steps = steps_new(&daemon_);
    daemon_.running = running_new(&daemon_);
}

TEARDOWN
{
    steps_free(daemon_.steps);
    running_free(daemon_.running);
    event_base_free(daemon_.base);
    check_nothing_left();
}
