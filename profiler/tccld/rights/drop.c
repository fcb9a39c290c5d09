/* drop.c: rights given up for good. */
#include "tccld/rights/monitor.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int set_capabilities(uint32_t set)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{.effective = set, .permitted = set}};
    return (int)syscall(SYS_capset, &head, data);
}

static int fail(struct tccl_error *err, const char *what)
{
    return tccl_fail(err, "%s: %s", what, strerror(errno));
}

/* A uid that has no name has no other groups either. */
static int set_groups(uid_t uid, gid_t *gid)
{
    const struct passwd *user = getpwuid(uid);
    *gid = user ? user->pw_gid : (gid_t)uid;
    return user ? initgroups(user->pw_name, *gid) : setgroups(1, gid);
}

int drop_to_user(uid_t uid, struct tccl_error *err)
{
    gid_t gid;
    int signal = 0; /* what the end of its parent means to it, forgotten with the uid (prctl.2) */
    prctl(PR_GET_PDEATHSIG, &signal);
    if (set_groups(uid, &gid) != 0 || setresgid(gid, gid, gid) != 0 ||
        setresuid(uid, uid, uid) != 0)
        return tccl_fail(err, "tccld can't become uid %u: %s", uid, strerror(errno));
    if (set_capabilities(0) != 0 || prctl(PR_SET_PDEATHSIG, signal) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return fail(err, "capabilities can't be given up");
    if (setuid(0) == 0 || geteuid() != uid || getegid() != gid)
        return tccl_fail(err, "tccld is still root after it became uid %u", uid);
    return 0;
}

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

/* socket() for unix sockets alone, and no execve. A kernel without filters has none; the unit's are
 * there all the same. */
static void filter_calls(void)
{
#ifdef NATIVE
    enum { DENY = SECCOMP_RET_ERRNO | EPERM };
#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))
#define IF_NOT(value, to) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, to)
#define IF(value, to) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, to, 0)
    struct sock_filter calls[] = {
        LOAD(arch),
        IF_NOT(NATIVE, 8),
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 6, 0), /* x32 */
        IF(SYS_execve, 5),
        IF(SYS_execveat, 4),
        IF_NOT(SYS_socket, 2),
        LOAD(args[0]), /* its low half: little endian */
        IF_NOT(AF_UNIX, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, DENY),
    };
    struct sock_fprog program = {.len = sizeof(calls) / sizeof(*calls), .filter = calls};
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
#endif
}

int drop_to_monitor(struct tccl_error *err)
{
    if (setgroups(0, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return fail(err, "rights can't be given up");
    if (set_capabilities(1U << CAP_CHOWN | 1U << CAP_FOWNER) != 0)
        return fail(err, "the capabilities CHOWN and FOWNER are needed");
    filter_calls();
    return 0;
}
