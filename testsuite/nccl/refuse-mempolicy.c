/* refuse-mempolicy [--cpuset] COMMAND...: runs a command that can't set memory policies, as in a
 * container of Docker: get_mempolicy, mbind and set_mempolicy fail with EPERM. With --cpuset, as
 * where cpuset.mems has none of the nodes: set_mempolicy to MPOL_PREFERRED fails with EINVAL. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REFUSE(number)                                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),                                             \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))

static struct sock_filter of_docker[] = {
    LOAD(nr),
    REFUSE(SYS_get_mempolicy),
    REFUSE(SYS_mbind),
    REFUSE(SYS_set_mempolicy),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

enum { PREFERRED = 1 | 1 << 15 }; /* linux/mempolicy.h; with MPOL_F_STATIC_NODES */

static struct sock_filter of_cpuset[] = {
    LOAD(nr),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_set_mempolicy, 0, 3),
    LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PREFERRED, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int main(int argc, char **argv)
{
    bool cpuset = argc > 1 && strcmp(argv[1], "--cpuset") == 0;
    struct sock_fprog program = {cpuset ? sizeof(of_cpuset) / sizeof(*of_cpuset)
                                        : sizeof(of_docker) / sizeof(*of_docker),
                                 cpuset ? of_cpuset : of_docker};
    argv += 1 + cpuset;
    if (!*argv || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fprintf(stderr, "refuse-mempolicy: %s\n", !*argv ? "no command" : strerror(errno));
        return 77;
    }
    execvp(*argv, argv);
    fprintf(stderr, "refuse-mempolicy: %s: %s\n", *argv, strerror(errno));
    return 127;
}
