/* shim-process.c: reads the plan once, opens the registry, and keeps what this process was told. */
#include "hook/hook.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nccl/shim-nccl.h"

enum { FRESH, OFF, ARMED };

static struct shim_process self;
static struct {
    int state; /* of the process pid */
    pid_t pid;
    shim_lock arming;
    pid_t user_pid; /* what the user has set was read in this process */
    uint32_t user;
} process;

static int prepare(struct shim_process *to, struct tccl_error *why)
{
    const char *path = shim_env("TCCL_PLAN");
    char found[SHIM_PATH];
    if (!path || !path[0])
        return tccl_fail(why, "TCCL_PLAN is not set");
    bool launcher = shim_plan_of_launcher(path, found, sizeof(found));
    if (shim_plan_read(launcher ? found : path, &to->plan, why))
        return -1;
    to->plan.of_launcher = launcher;
    if (shim_plan_fits(&to->plan, why))
        return -1;
    to->registry = shim_registry_open(&to->plan, why);
    /* What NCCL takes for one host, and what the ranks must share for the registry to be one. */
    char text[256] = "";
    const char *given = shim_env("NCCL_HOSTID");
    if (given) {
        snprintf(text, sizeof(text), "%s", given);
    } else {
        gethostname(text, 128);
        text[127] = '\0';
        size_t length = strlen(text);
        shim_read_file("/proc/sys/kernel/random/boot_id", text + length, sizeof(text) - length);
    }
    uint64_t word = shim_hash(SHIM_HASH_START, text, strlen(text));
    struct stat status;
    int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && !syscall(SYS_fstat, fd, &status))
        word = shim_hash(word, &status.st_dev, sizeof(status.st_dev));
    if (fd >= 0)
        close(fd);
    to->host = word;
    if (to->registry)
        shim_registry_begin(to->registry, shim_shm_left());
    return to->registry ? 0 : -1;
}

const struct shim_process *shim_process_armed(void)
{
    pid_t pid = shim_load(&process.pid);
    return pid && pid == getpid() && shim_load(&process.state) == ARMED ? &self : NULL;
}

const struct shim_process *shim_process_arm(uint32_t version)
{
    static pid_t lock_pid;
    pid_t pid = getpid();
    if (shim_load(&process.pid) == pid)
        return shim_process_armed();
    /* A lock that was held at a fork is nobody's in the child. */
    if (__atomic_exchange_n(&lock_pid, pid, __ATOMIC_SEQ_CST) != pid)
        shim_lock_release(&process.arming);
    if (shim_lock_take(&process.arming))
        return NULL;
    if (shim_load(&process.pid) != pid) {
        struct tccl_error why = {""};
        self.version = version;
        int state = prepare(&self, &why) ? OFF : ARMED;
        if (state == OFF)
            shim_log(SHIM_LOG_WARN, "no ring for this process: %s", why.text);
        shim_store(&process.state, state);
        shim_store(&process.pid, pid);
    }
    shim_lock_release(&process.arming);
    return shim_process_armed();
}

bool shim_process_reads(void)
{
    const struct shim_process *armed = shim_process_armed();
    return armed && armed->plan.reads &&
           shim_registry_reads(armed->registry, armed->plan.gpus, armed->plan.n_gpus, true);
}

/* Threads that come at the same time all read it, with the same result. */
uint32_t shim_process_user(void)
{
    pid_t pid = getpid();
    if (shim_load(&process.user_pid) != pid) {
        shim_store(&process.user, shim_settings_user());
        shim_store(&process.user_pid, pid);
    }
    return shim_load(&process.user);
}

void shim_process_bypassed(void)
{
    static int told;
    const char *plan = shim_env("TCCL_PLAN");
    if (!plan || !plan[0] || shim_load(&process.pid) ||
        __atomic_exchange_n(&told, 1, __ATOMIC_SEQ_CST))
        return;
    shim_log(SHIM_LOG_WARN, "no ring for this process: its calls to NCCL do not pass the shim "
                            "(NCCL is a part of the program, or hides its functions)");
}
