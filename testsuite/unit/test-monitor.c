/* The monitor: credentials are root's for a process that is another user, and only messages of
 * tccl's get in and out; files in /dev/shm; its end. With a real munged. */
#include "tccld/rights/monitor.h"

#include "base/clock.h"
#include "client/credential.h"
#include "rig.h"

enum { SOMEBODY = 65532, JOBS_USER = 65531 };
#define MESSAGE "{\"v\":1,\"type\":\"here\"}"

static int64_t soon(void)
{
    return tccl_now_ms() + 60000;
}

TEST(form)
{
    static const char *const bad[] = {"",          "{}",           "{\"v\":",   "x" MESSAGE,
                                      MESSAGE "x", "{\"v\":1,\n}", "{\"v\":\0}"};
    CHECK(monitor_is_message(MESSAGE, strlen(MESSAGE)));
    CHECK(!monitor_is_message(MESSAGE, strlen(MESSAGE) + 1)); /* a NUL */
    CHECK(!monitor_is_message("{\"v\":\1}", 7));
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!monitor_is_message(bad[i], strlen(bad[i])));
}

static int encode(struct monitor *monitor, uid_t reader, const char *text, char **cred)
{
    *cred = NULL;
    return monitor_encode(monitor, "/nowhere", reader, text, strlen(text), soon(), cred, ERR);
}

/* By somebody without any right: 0, or the number of the line that failed. */
static int use(struct monitor *monitor, const char *foreign)
{
    char *cred, *data;
    size_t size = 0;
    uid_t uid = 12345;
    if (drop_to_user(SOMEBODY, ERR) != 0 || getuid() != SOMEBODY || setuid(0) == 0)
        return __LINE__;
    if (encode(monitor, 0, MESSAGE, &cred) != 0)
        return __LINE__;
    if (tccl_cred_decode(rig.munge_socket, cred, soon(), &uid, &data, &size, ERR) == 0)
        return __LINE__; /* root's alone */
    if (monitor_decode(monitor, "/nowhere", cred, soon(), &uid, &data, &size, ERR) != 0)
        return __LINE__;
    if (uid != 0 || size != strlen(MESSAGE) || strcmp(data, MESSAGE) != 0)
        return __LINE__;
    if (encode(monitor, SOMEBODY, MESSAGE, &cred) != 0 ||
        tccl_cred_decode(rig.munge_socket, cred, soon(), &uid, &data, &size, ERR) != 0 || uid != 0)
        return __LINE__; /* an answer */
    if (encode(monitor, 0, "RPC of Slurm", &cred) == 0 ||
        encode(monitor, (uid_t)TCCL_CRED_ANYONE, MESSAGE, &cred) == 0)
        return __LINE__;
    if (monitor_decode(monitor, "/nowhere", foreign, soon(), &uid, &data, &size, ERR) == 0 ||
        strcmp(check_err.text, "munge: the credential holds no message of tccl's") != 0)
        return __LINE__;
    return 0;
}

/* Returns what use() did in a process of its own. */
static int use_as_somebody(struct monitor *monitor, const char *foreign)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(use(monitor, foreign));
    return check_exit(pid);
}

/* 1 MiB, which is more than a socket holds, in both directions. */
static void test_long(struct monitor *monitor)
{
    enum { LONG = 700 * 1024 };
    cleanup_free char *text = malloc(LONG + 1), *cred = NULL, *data = NULL;
    unsigned seed = (unsigned)getpid();
    size_t size;
    uid_t uid;
    for (int i = 0; i < LONG; i++)
        text[i] = (char)('0' + rand_r(&seed) % 64);
    memcpy(text, "{\"v\":1,", 7);
    text[LONG - 1] = '}';
    text[LONG] = '\0';
    CHECK_INT(encode(monitor, 0, text, &cred), 0);
    CHECK_INT(monitor_decode(monitor, "", cred, soon(), &uid, &data, &size, ERR), 0);
    CHECK(data && size == LONG && memcmp(data, text, LONG) == 0);
}

static void test_files(struct monitor *monitor)
{
    struct shared_file file = {JOBS_USER, SOMEBODY, ((uint64_t)getpid() << 32) + 7, 3};
    struct stat stat_;
    char path[128];
    snprintf(path, sizeof(path), SHARED_FOLDER "/tccl-%u-%016llx.3", file.uid,
             (unsigned long long)file.hash);
    close(open(path, O_CREAT | O_WRONLY, 0666)); /* somebody else's takes its place */
    CHECK_INT(chown(path, SOMEBODY, SOMEBODY), 0);
    monitor_make(monitor, &file);
    CHECK_INT(lstat(path, &stat_), 0);
    CHECK(S_ISREG(stat_.st_mode) && (stat_.st_mode & 07777) == 0600);
    CHECK(stat_.st_uid == JOBS_USER && stat_.st_gid == SOMEBODY);
    monitor_remove(monitor, &file);
    CHECK_INT(lstat(path, &stat_), -1);
}

static pid_t child_of_ours(void)
{
    char text[64] = "";
    cleanup_close int fd =
        open(check_printf("/proc/self/task/%d/children", getpid()), O_RDONLY | O_CLOEXEC);
    ssize_t size = read(fd, text, sizeof(text) - 1);
    const char *last = size > 1 ? memrchr(text, ' ', (size_t)size - 2) : NULL;
    return atoi(last ? last + 1 : text);
}

static void count_lost(void *context)
{
    ++*(int *)context;
}

/* Files wait for it no longer than they may, late answers are no confusion, and its end is heard.
 */
static void test_end(struct monitor *monitor, pid_t pid)
{
    struct shared_file file = {JOBS_USER, SOMEBODY, ((uint64_t)getpid() << 32) + 8, 0};
    struct event_base *base = event_base_new();
    cleanup_free char *cred = NULL;
    int lost = 0;
    CHECK_INT(monitor_watch(monitor, base, count_lost, &lost, ERR), 0);
    CHECK_INT(kill(pid, SIGTERM) | kill(pid, SIGHUP), 0); /* not its business */
    CHECK_INT(kill(pid, SIGSTOP), 0);
    monitor_make(monitor, &file);
    monitor_remove(monitor, &file);
    CHECK_INT(kill(pid, SIGCONT), 0);
    test_files(monitor);
    event_base_loop(base, EVLOOP_NONBLOCK);
    CHECK_INT(lost, 0);
    CHECK_INT(kill(pid, SIGKILL), 0);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
    monitor_make(monitor, &file);
    CHECK_INT(encode(monitor, 0, MESSAGE, &cred), -1);
    event_base_loop(base, EVLOOP_NONBLOCK);
    CHECK_INT(lost, 1);
    monitor_free(monitor);
    event_base_free(base);
}

SETUP
{
    if (geteuid() == 0)
        rig_begin();
    else
        check_skip("only root has a monitor");
}

TEST(monitor)
{
    struct monitor *monitor = monitor_start(rig.munge_socket, ERR);
    CHECK_STR(check_err.text, "");
    pid_t pid = child_of_ours();
    cleanup_free char *foreign = NULL;
    CHECK_INT(tccl_cred_encode(rig.munge_socket, 0, "RPC", 3, soon(), &foreign, ERR), 0);
    CHECK_INT(use_as_somebody(monitor, foreign), 0);
    test_long(monitor);
    test_files(monitor);
    test_end(monitor, pid);
}

/* It ends with its tccld. */
TEST(orphan)
{
    struct monitor *monitor = monitor_start(rig.munge_socket, ERR);
    pid_t pid = child_of_ours();
    CHECK(monitor && pid > 0);
    monitor_free(monitor);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
}

/* Without a monitor root does it itself, with the socket that is given. */
TEST(without)
{
    cleanup_free char *cred = NULL, *data = NULL;
    size_t size;
    uid_t uid = 12345;
    CHECK_INT(monitor_encode(NULL, rig.munge_socket, 0, "any", 3, soon(), &cred, ERR), 0);
    CHECK_INT(monitor_decode(NULL, rig.munge_socket, cred, soon(), &uid, &data, &size, ERR), 0);
    CHECK(uid == 0 && size == 3);
    test_files(NULL);
}
