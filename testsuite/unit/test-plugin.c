/* The plugin in a slurmstepd of the test's own: its descriptors under ContainSpank, and what it
 * reads for steps that can't have a ring. Usage: test-plugin spank_tccl.so */
#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <slurm/spank.h>

#include "base/clock.h"
#include "base/fileio.h"
#include "check.h"
#include "client/frame.h"
#include "client/message.h"

#define EXPORT __attribute__((visibility("default")))

enum { VARIABLES = 64, STACK = 1 << 20, SERVED_MS = 20000 };

static char *variables[VARIABLES + 1];
static int errors;
static spank_f *init_post_opt, *user_init, *task_post_fork, *end;

/* Slurm */

static int find(const char *name)
{
    size_t length = strlen(name);
    int at = 0;
    while (variables[at] &&
           (strncmp(variables[at], name, length) != 0 || variables[at][length] != '='))
        at++;
    return at;
}

EXPORT spank_err_t spank_unsetenv(spank_t spank, const char *name)
{
    int at = find(name);
    free(variables[at]);
    for (; variables[at]; at++)
        variables[at] = variables[at + 1];
    return ESPANK_SUCCESS;
}

EXPORT spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite)
{
    spank_unsetenv(spank, name);
    int at = find(name);
    CHECK(at < VARIABLES && asprintf(&variables[at], "%s=%s", name, value) > 0);
    variables[at + 1] = NULL;
    return ESPANK_SUCCESS;
}

EXPORT spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    spank_err_t rc = ESPANK_SUCCESS;
    va_list arguments;
    va_start(arguments, item);
    if (item == S_JOB_ENV)
        *va_arg(arguments, char ***) = variables;
    else if (item == S_JOB_ID)
        *va_arg(arguments, uint32_t *) = 7;
    else if (item == S_JOB_NNODES)
        *va_arg(arguments, uint32_t *) = 2;
    else if (item == S_JOB_STEPID || item == S_JOB_NODEID)
        *va_arg(arguments, uint32_t *) = 0;
    else
        rc = ESPANK_NOT_AVAIL;
    va_end(arguments);
    return rc;
}

EXPORT spank_context_t spank_context(void)
{
    return S_CTX_REMOTE;
}

EXPORT spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
    return ESPANK_SUCCESS;
}

EXPORT void slurm_error(const char *format, ...)
{
    errors++;
}

EXPORT void slurm_verbose(const char *format, ...)
{
}

EXPORT void slurm_spank_log(const char *format, ...)
{
}

/* Its arguments depend on the release. */
EXPORT int slurm_kill_job_step(void);
int slurm_kill_job_step(void)
{
    return 0;
}

/* tccld: it says that it is alive, and hangs up on all else. */
static void hear(int fd)
{
    int64_t until = tccl_now_ms() + SERVED_MS;
    for (;;) {
        cleanup_free char *text = NULL;
        size_t size;
        if (tccl_frame_read(fd, TCCL_FRAME_UNIX, until, &text, &size, NULL) != 0)
            return;
        cleanup_json json_t *message = tccl_message_parse(text, size, NULL);
        if (!message || strcmp(tccl_message_type(message), "alive") != 0)
            return;
        cleanup_json json_t *ok = tccl_message_new("ok");
        cleanup_free char *answer = tccl_message_text(ok);
        tccl_frame_write(fd, answer, strlen(answer), TCCL_FRAME_UNIX, until, NULL);
    }
}

static void serve(int listener)
{
    for (;;) {
        cleanup_close int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        hear(fd);
    }
}

static pid_t start_tccld(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    cleanup_close int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/tccld.sock", check_folder());
    CHECK_INT(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(listen(listener, 16), 0);
    pid_t pid = fork();
    if (pid == 0)
        serve(listener);
    return pid;
}

/* Steps */

static void begin_env(const char *gpus)
{
    while (variables[0]) {
        char *equals = strchr(variables[0], '=');
        *equals = '\0';
        cleanup_free char *name = strdup(variables[0]);
        *equals = '=';
        spank_unsetenv(NULL, name);
    }
    errors = 0;
    spank_setenv(NULL, "SLURM_STEP_NODELIST", "n[1-2]", 1);
    spank_setenv(NULL, "TCCL_STATE", "planned", 1); /* of an outer step */
    if (*gpus)
        spank_setenv(NULL, "SLURM_STEP_GPUS", gpus, 1);
}

static void begin_step(const char *conf)
{
    char argument[300], *argv[] = {argument, NULL};
    snprintf(argument, sizeof(argument), "config=%s/%s", check_folder(), conf);
    CHECK_INT(init_post_opt(NULL, 1, argv), 0);
}

static bool has(const char *name)
{
    return variables[find(name)] != NULL;
}

static int count_descriptors(void)
{
    cleanup_dir DIR *open = opendir("/proc/self/fd");
    int count = 0;
    while (open && readdir(open))
        count++;
    return count;
}

static int run_user_init(void *unused)
{
    return user_init(NULL, 0, NULL);
}

/* Calls slurm_spank_user_init as slurmstepd does: in itself, or under ContainSpank in a process
 * with its memory, but with descriptors of its own. */
static void call_user_init(bool contained)
{
    static char stack[STACK] __attribute__((aligned(16)));
    if (!contained) {
        CHECK_INT(user_init(NULL, 0, NULL), 0);
        return;
    }
    pid_t pid = clone(run_user_init, stack + STACK, CLONE_VM | SIGCHLD, NULL);
    CHECK_INT(check_exit(pid), 0);
}

/* The connection to tccld is closed when the tasks run, and nothing else with it. */
static void test_descriptors(bool contained)
{
    int before = count_descriptors();
    begin_env("0,1");
    spank_setenv(NULL, "TCCL", "on", 1);
    begin_step("good.conf");
    CHECK_INT(count_descriptors(), before + 2); /* the file of what was printed stays open */
    call_user_init(contained);
    CHECK(strcmp(variables[find("TCCL_STATE")], "TCCL_STATE=failed") == 0);
    int other = dup(1); /* it may have got the number that is free now */
    if (task_post_fork) {
        CHECK_INT(task_post_fork(NULL, 0, NULL), 0);
        CHECK_INT(task_post_fork(NULL, 0, NULL), 0);
    }
    CHECK_INT(count_descriptors(), before + 2);
    CHECK_INT(close(other), 0);
    CHECK_INT(end(NULL, 0, NULL), 0);
    CHECK_INT(count_descriptors(), before);
    CHECK_INT(errors, 0);
}

/* A step without GPUs that nobody wants a ring for: neither tccl.conf nor its nodes are looked at.
 */
static void test_no_gpus(void)
{
    begin_env("");
    begin_step("missing.conf");
    CHECK_INT(errors, 0);
    CHECK(!has("TCCL_STATE"));
    CHECK_INT(end(NULL, 0, NULL), 0);
    static const char *const asking[] = {"TCCL", "SLURM_TCCL_MODE", "SLURM_STEP_GPUS"};
    for (size_t i = 0; i < COUNT(asking); i++) {
        begin_env("");
        spank_setenv(NULL, asking[i], i < 2 ? "on" : "0", 1);
        begin_step("missing.conf");
        CHECK_INT(errors, 1);
        CHECK_INT(end(NULL, 0, NULL), 0);
    }
}

static void write_conf(const char *name, const char *more)
{
    char text[1024];
    const char *path = check_at("%s", name);
    int size =
        snprintf(text, sizeof(text),
                 "[tccl]\nSocket=%s/tccld.sock\nRunDir=%s\nTimeout=20s\nAliveTimeout=10s\n%s",
                 check_folder(), check_folder(), more);
    CHECK_INT(tccl_write_file(path, 0644, text, (size_t)size, NULL), 0);
}

static void remove_folder(void)
{
    static const char *const names[] = {"good.conf", "peers.conf", "tccld.sock", "printed"};
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *path = check_at("%s", names[i]);
        CHECK_INT(unlink(path), 0);
    }
    check_nothing_left();
}

SETUP
{
    void *plugin = check_args[1] ? dlopen(check_args[1], RTLD_LAZY) : NULL;
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    init_post_opt = (spank_f *)dlsym(plugin, "slurm_spank_init_post_opt");
    user_init = (spank_f *)dlsym(plugin, "slurm_spank_user_init");
    task_post_fork = (spank_f *)dlsym(plugin, "slurm_spank_task_post_fork");
    end = (spank_f *)dlsym(plugin, "slurm_spank_exit");
}

TEST(plugin)
{
    write_conf("good.conf", "");
    write_conf("peers.conf", "[peers]\nn[1-=nowhere\n");
    pid_t tccld = start_tccld();
    test_descriptors(false);
    test_descriptors(true);
    test_no_gpus();
    /* It talks to the tccld of its own node alone. */
    begin_env("0,1");
    begin_step("peers.conf");
    CHECK_INT(errors, 0);
    CHECK_INT(end(NULL, 0, NULL), 0);
    kill(tccld, SIGKILL);
    waitpid(tccld, NULL, 0);
    remove_folder();
    begin_env("");
}
