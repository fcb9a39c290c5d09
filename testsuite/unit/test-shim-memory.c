/* The memory policy of a thread, and what memory is left. */
#include "nccl/shim-nccl.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#include "check.h"

static int policy(unsigned long *nodes)
{
    int mode = -1;
    unsigned long all[1024 / 8 / sizeof(long)] = {0};
    CHECK(syscall(SYS_get_mempolicy, &mode, all, 1025UL, NULL, 0UL) == 0);
    *nodes = all[0];
    return mode;
}

static void preferred(void)
{
    struct shim_policy saved = {0}, again = {0};
    unsigned long before, nodes;
    int mode = policy(&before);
    CHECK_OK(shim_policy_prefer(-1, &saved, ERR));
    CHECK(!saved.changed);
    CHECK_OK(shim_policy_prefer(0, &saved, ERR));
    CHECK_INT(policy(&nodes), 1 | 1 << 15); /* MPOL_PREFERRED */
    CHECK_INT(nodes, 1);
    CHECK_OK(shim_policy_prefer(0, &again, ERR));
    shim_policy_restore(&again);
    CHECK_INT(policy(&nodes), 1 | 1 << 15);
    shim_policy_restore(&saved);
    CHECK_INT(policy(&nodes), mode);
    CHECK_INT(nodes, before);
    CHECK_INT(shim_policy_prefer(1000, &saved, ERR), 1); /* there is none */
    CHECK(check_err.text[0] && !saved.changed);
    CHECK_INT(policy(&nodes), mode);
}

TEST(left)
{
    uint64_t bytes = shim_memory_left();
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    CHECK(bytes > 0 && bytes <= all);
}

/* Each limit by itself, in a process of its own. */
static void limited(int which, rlim_t most)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {most, most};
        _exit(setrlimit(which, &limit) != 0 || shim_memory_limits_left() >= most);
    }
    CHECK_INT(check_exit(pid), 0);
}

TEST(limits)
{
    struct rlimit data, space;
    if (getrlimit(RLIMIT_DATA, &data) || getrlimit(RLIMIT_AS, &space))
        return;
    if (data.rlim_cur == RLIM_INFINITY && space.rlim_cur == RLIM_INFINITY)
        CHECK(shim_memory_limits_left() == UINT64_MAX);
    limited(RLIMIT_DATA, (rlim_t)1 << 32);
    limited(RLIMIT_AS, (rlim_t)1 << 46);
}

TEST(policies)
{
    int mode;
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL) == 0)
        preferred();
    else
        printf("no memory policies here: %s\n", strerror(errno));
}
