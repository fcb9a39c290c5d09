/* process.c: reads the plan once, opens the registry, and keeps what this process was told. */
#include "hook/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/device.h"
#include "base/log.h"
#include "nccl/islands.h"
#include "nccl/settings.h"

enum { FRESH, OFF, ARMED };

static struct shim_process self;
static struct {
    int state; /* of the process pid */
    pid_t pid;
    shim_lock arming, giving;
    int early;
    pid_t given_pid; /* the settings below are those of this process */
    uint32_t given, user;
} process;

static uint64_t hash_shm(uint64_t word)
{
    struct stat status;
    int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && !syscall(SYS_fstat, fd, &status))
        word = shim_hash(word, &status.st_dev, sizeof(status.st_dev));
    if (fd >= 0)
        close(fd);
    return word;
}

/* What NCCL takes for one host, and what the ranks must share for the registry to be one. */
static uint64_t host_word(void)
{
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
    return hash_shm(shim_hash(SHIM_HASH_START, text, strlen(text)));
}

static int prepare(struct shim_process *to, struct shim_why *why)
{
    const char *path = shim_env("TCCL_PLAN");
    char found[SHIM_PATH];
    if (!path || !path[0])
        return shim_fail(why, "TCCL_PLAN is not set");
    bool launcher = shim_plan_of_launcher(path, found, sizeof(found));
    if (shim_plan_read(launcher ? found : path, &to->plan, why))
        return -1;
    to->plan.of_launcher = launcher;
    if (shim_plan_fits(&to->plan, why))
        return -1;
    to->registry = shim_registry_open(&to->plan, why);
    to->host = host_word();
    return to->registry ? 0 : -1;
}

static void arm(pid_t pid, uint32_t version)
{
    struct shim_why why = {""};
    self.version = version;
    int state = prepare(&self, &why) ? OFF : ARMED;
    if (state == OFF)
        shim_log(SHIM_LOG_WARN, "no ring for this process: %s", why.text);
    __atomic_store_n(&process.state, state, __ATOMIC_SEQ_CST);
    __atomic_store_n(&process.pid, pid, __ATOMIC_SEQ_CST);
}

const struct shim_process *shim_process_armed(void)
{
    pid_t pid = __atomic_load_n(&process.pid, __ATOMIC_SEQ_CST);
    return pid && pid == getpid() && __atomic_load_n(&process.state, __ATOMIC_SEQ_CST) == ARMED
               ? &self
               : NULL;
}

const struct shim_process *shim_process_arm(uint32_t version)
{
    static pid_t lock_pid;
    pid_t pid = getpid();
    if (__atomic_load_n(&process.pid, __ATOMIC_SEQ_CST) == pid)
        return shim_process_armed();
    /* A lock that was held at a fork is nobody's in the child. */
    if (__atomic_exchange_n(&lock_pid, pid, __ATOMIC_SEQ_CST) != pid) {
        shim_lock_release(&process.arming);
        shim_lock_release(&process.giving);
    }
    if (shim_lock_take(&process.arming))
        return NULL;
    if (__atomic_load_n(&process.pid, __ATOMIC_SEQ_CST) != pid)
        arm(pid, version);
    shim_lock_release(&process.arming);
    return shim_process_armed();
}

static uint32_t work_out_given(uint32_t user)
{
    struct shim_why why = {""};
    struct shim_pci pci;
    uint32_t given = 0;
    if (process.early)
        shim_fail(&why, "NCCL was started before the shim saw it");
    else if (self.plan.chain.n_rings == 0)
        shim_fail(&why, "the plan has no ring for all GPUs of the step");
    else if (!shim_islands_read(&self.plan.chain, &pci, &why) &&
             !shim_settings_for(&self.plan, &pci, self.version, user, &given, &why))
        return given;
    /* Its communicators say why they are left alone. */
    shim_log(SHIM_LOG_INFO, "no settings for this process: %s", why.text);
    return given;
}

uint32_t shim_process_given(uint32_t *user)
{
    pid_t pid = getpid();
    if (__atomic_load_n(&process.given_pid, __ATOMIC_SEQ_CST) != pid) {
        if (shim_lock_take(&process.giving))
            return 0;
        if (process.given_pid != pid) {
            process.user = shim_settings_user();
            process.given = work_out_given(process.user);
            __atomic_store_n(&process.given_pid, pid, __ATOMIC_SEQ_CST);
        }
        shim_lock_release(&process.giving);
    }
    if (user)
        *user = process.user;
    return process.given;
}

void shim_process_asked_early(void)
{
    process.early = 1;
}

void shim_process_bypassed(void)
{
    static int told;
    const char *plan = shim_env("TCCL_PLAN");
    if (!plan || !plan[0] || __atomic_load_n(&process.pid, __ATOMIC_SEQ_CST) ||
        __atomic_exchange_n(&told, 1, __ATOMIC_SEQ_CST))
        return;
    shim_log(SHIM_LOG_WARN, "no ring for this process: its calls to NCCL do not pass the shim "
                            "(NCCL is a part of the program, or hides its functions)");
}
