/* What workers share: regions of their own at the same address in all processes, bound to their
 * NUMA node; and what is said where that can't be. */
#include <glob.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <numa.h>
#include <numaif.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"
#include "measure/pool/workspace.h"

static struct tccl_site site = {.machine = {.n_gpus = 2, .n_memories = 2}};

/* A NUMA node that has memory which this process may use. */
static int first_node(void)
{
    static int found = -1;
    struct bitmask *allowed = found < 0 ? numa_get_mems_allowed() : NULL;
    for (int node = 0; allowed && found < 0 && node <= numa_max_node(); node++)
        if (numa_bitmask_isbitset(allowed, (unsigned)node) && numa_node_size64(node, NULL) > 0)
            found = node;
    if (allowed)
        numa_free_nodemask(allowed);
    return found;
}

static struct tccl_workspace *make_workspace(size_t region, bool bind)
{
    const struct tccl_workspace_settings settings = {.region = region, .bind = bind};
    struct tccl_workspace *workspace = tccl_workspace_new(&site, &settings, ERR);
    if (!workspace) {
        fprintf(stderr, "%s\n", check_err.text);
        exit(1);
    }
    return workspace;
}

/* Each region is its own: written by one process, read by another at the same address. */
TEST(shared)
{
    enum { PLACES = 5, BYTES = 300000 };
    struct tccl_workspace *workspace = make_workspace(BYTES, false);
    size_t region = workspace->settings.region;
    long page = sysconf(_SC_PAGESIZE);
    CHECK(region >= BYTES && region % (size_t)page == 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid > 0)
        waitpid(pid, NULL, 0);
    for (int i = 0; i < 4 * PLACES; i++) {
        int device = i / PLACES % 2, place = i % PLACES;
        struct tccl_device where = {i < 2 * PLACES ? TCCL_MEMORY : TCCL_GPU, (uint8_t)device};
        unsigned char *memory = tccl_workspace_region(workspace, where, place, NULL);
        CHECK(memory && (uintptr_t)memory % (uintptr_t)page == 0);
        if (pid == 0) {
            memset(memory, i + 1, region);
            continue;
        }
        bool all = true;
        for (size_t at = 0; at < region; at++)
            all &= memory[at] == i + 1;
        CHECK(all);
    }
    if (pid == 0)
        _exit(0);
    tccl_workspace_free(workspace);
}

/* The kernel is asked page by page. */
TEST(bound)
{
    site.machine.nodes[0] = site.machine.nodes[1] = first_node();
    struct tccl_workspace *workspace = make_workspace(1 << 20, true);
    unsigned char *memory =
        tccl_workspace_region(workspace, (struct tccl_device){TCCL_MEMORY, 1}, 63, ERR);
    CHECK_STR(check_err.text, "");
    for (size_t at = 0; memory && at < 1 << 20; at += 4096) {
        int node = -1, policy = -1;
        CHECK_INT(get_mempolicy(&node, NULL, 0, memory + at, MPOL_F_NODE | MPOL_F_ADDR), 0);
        CHECK_INT(node, site.machine.nodes[1]);
        CHECK_INT(get_mempolicy(&policy, NULL, 0, memory + at, MPOL_F_ADDR), 0);
        CHECK_INT(policy, MPOL_BIND);
    }
    tccl_workspace_free(workspace);
}

static void check_refused(int node, size_t region, bool bind, const char *begins)
{
    site.machine.nodes[0] = site.machine.nodes[1] = node;
    struct tccl_workspace *workspace = make_workspace(region, bind);
    CHECK(!tccl_workspace_region(workspace, (struct tccl_device){TCCL_MEMORY, 0}, 0, ERR));
    if (strncmp(check_err.text, begins, strlen(begins)) != 0)
        CHECK_STR(check_err.text, begins);
    CHECK(!strchr(check_err.text, '\n'));
    tccl_workspace_free(workspace);
}

TEST(bad_nodes)
{
    char full[64];
    check_refused(57, 1 << 20, true, "host memory can't be bound to NUMA node 57: ");
    check_refused(100000, 1 << 20, true, "no NUMA node 100000");
    const struct tccl_machine two = site.machine;
    size_t all = (size_t)numa_node_size64(first_node(), NULL);
    site.machine = (struct tccl_machine){.n_memories = 1};
    snprintf(full, sizeof(full), "NUMA node %d is full: ", first_node());
    check_refused(first_node(), all, false, full);
    check_refused(first_node(), all, true, full);
    site.machine = two;
    site.machine.nodes[0] = site.machine.nodes[1] = 0;
    const struct tccl_workspace_settings none = {.region = 0};
    const struct tccl_workspace_settings huge = {.region = SIZE_MAX / 2};
    CHECK(!tccl_workspace_new(&site, &none, ERR) && check_err.text[0]);
    CHECK(!tccl_workspace_new(&site, &huge, ERR) && check_err.text[0]);
}

static bool is_only_node(void)
{
    glob_t nodes = {0};
    bool only =
        glob("/sys/devices/system/node/node[0-9]*", 0, NULL, &nodes) != 0 || nodes.gl_pathc == 1;
    globfree(&nodes);
    return only;
}

static void check_only_node(void)
{
    site.machine.n_memories = 1;
    site.machine.nodes[0] = first_node();
    struct tccl_workspace *workspace = make_workspace(1 << 20, true);
    const unsigned char *memory =
        tccl_workspace_region(workspace, (struct tccl_device){TCCL_MEMORY, 0}, 0, ERR);
    CHECK(memory && memory[0] == 0x5a && memory[(1 << 20) - 1] == 0x5a);
    CHECK_STR(check_err.text, "");
    tccl_workspace_free(workspace);
}

/* In a child, where the call is forbidden; begins NULL: with one node only that does no harm. */
static void check_forbidden(unsigned call, const char *begins)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        check_failures = 0;
        /* As in a container that may not: that call fails with EPERM. */
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {COUNT(filter), filter};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
            _exit(77);
        if (begins)
            check_refused(first_node(), 1 << 20, true, begins);
        else if (is_only_node())
            check_only_node();
        _exit(check_failures > 0);
    }
    int status = check_exit(pid);
    CHECK(status == 0 || status == 77);
}

SETUP
{
    if (numa_available() < 0)
        check_skip("this kernel has no NUMA calls, or they are not allowed here");
}

TEST(forbidden)
{
    static const struct {
        const char *name;
        int call;
    } calls[] = {{"mbind", SYS_mbind}, {"move_pages", SYS_move_pages}};
    for (size_t i = 0; i < COUNT(calls); i++) {
        check_forbidden(
            calls[i].call,
            check_printf(
                "host memory can't be bound to NUMA node %d: %s: Operation not permitted; in a "
                "container, allow %s",
                first_node(), calls[i].name, calls[i].name));
        check_forbidden(calls[i].call, NULL);
    }
}
