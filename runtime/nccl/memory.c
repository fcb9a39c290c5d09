/* memory.c: set_mempolicy around an init, and how much memory the cgroups leave: NCCL takes much
 * of it to read a graph file, and a job must not be killed for that. */
#include "nccl/shim-nccl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NODES = 1024, WORD = 8 * sizeof(unsigned long) };
/* linux/mempolicy.h: MPOL_PREFERRED | MPOL_F_STATIC_NODES. The flag is for cpusets that change
 * meanwhile; programs hardly ever give it, so it tells our policies from theirs. */
enum { PREFERRED = 1 | 1 << 15 };
#define MOST (UINT64_MAX / 64) /* numbers beyond are no limits */

/* By the kernel's own word: /sys may show another machine's. What can't be read: yes. */
static bool node_exists(int node)
{
    char text[16384], name[32];
    if (shim_read_file("/proc/buddyinfo", text, sizeof(text)) < 0)
        return true;
    snprintf(name, sizeof(name), "Node %d,", node);
    return strstr(text, name);
}

static bool any_set;

int shim_policy_prefer(int node, struct shim_policy *saved, struct tccl_error *why)
{
    unsigned long nodes[NODES / WORD] = {0};
    saved->changed = false;
    if (node < 0)
        return 0;
    if (node >= NODES)
        return tccl_fail(why, "NUMA node %d", node);
    memset(saved->nodes, 0, sizeof(saved->nodes));
    if (syscall(SYS_get_mempolicy, &saved->mode, saved->nodes, (unsigned long)NODES + 1, NULL, 0UL))
        return errno == ENOSYS ? 0 : tccl_fail(why, "get_mempolicy: %s", strerror(errno));
    nodes[node / WORD] = 1UL << node % WORD;
    if (syscall(SYS_set_mempolicy, PREFERRED, nodes, (unsigned long)NODES + 1)) {
        tccl_fail(why, "set_mempolicy to node %d: %s", node, strerror(errno));
        return node_exists(node) ? -1 : 1;
    }
    saved->changed = true;
    shim_store(&any_set, true);
    return 0;
}

bool shim_policy_can(void)
{
    return syscall(SYS_get_mempolicy, NULL, NULL, 0UL, NULL, 0UL) == 0;
}

int shim_policy_node(void)
{
    unsigned long nodes[NODES / WORD] = {0};
    int mode = 0, node = -1;
    if (!shim_load(&any_set) ||
        syscall(SYS_get_mempolicy, &mode, nodes, (unsigned long)NODES + 1, NULL, 0UL) ||
        mode != PREFERRED)
        return -1;
    for (int i = 0; i < NODES && node < 0; i++)
        node = nodes[i / WORD] >> i % WORD & 1 ? i : -1;
    return node;
}

uint64_t shim_shm_left(void)
{
    struct statvfs status;
    if (statvfs("/dev/shm", &status))
        return UINT64_MAX;
    return (uint64_t)status.f_bavail * status.f_frsize;
}

void shim_policy_restore(struct shim_policy *saved)
{
    if (saved->changed)
        syscall(SYS_set_mempolicy, saved->mode, saved->nodes, (unsigned long)NODES + 1);
    saved->changed = false;
}

/* The number behind a name that begins a line, or else the text; UINT64_MAX: none ("max"), or too
 * large. */
static uint64_t number_behind(const char *name, const char *text)
{
    size_t length = strlen(name);
    uint64_t number = 0;
    while (strncmp(text, name, length) != 0) {
        text = strchr(text, '\n');
        if (!text++)
            return UINT64_MAX;
    }
    text += length;
    text += strspn(text, " \t");
    const char *digits = text;
    for (; *text >= '0' && *text <= '9' && number < MOST; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    return text > digits && strchr(" \n", *text) ? number : UINT64_MAX;
}

/* The same in a file of a cgroup. */
static uint64_t number_in(const char *folder, const char *file, const char *name)
{
    char path[SHIM_PATH + 64], text[8192];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    return shim_read_file(path, text, sizeof(text)) < 0 ? UINT64_MAX : number_behind(name, text);
}

/* What one cgroup leaves: files in the page cache that nobody uses can be dropped. */
static uint64_t left_in(const char *folder, const char *limit_file, const char *used_file,
                        const char *cache)
{
    uint64_t limit = number_in(folder, limit_file, ""), used = number_in(folder, used_file, "");
    if (limit == UINT64_MAX || used == UINT64_MAX)
        return UINT64_MAX;
    uint64_t droppable = number_in(folder, "memory.stat", cache);
    if (droppable != UINT64_MAX)
        used = used > droppable ? used - droppable : 0;
    return limit > used ? limit - used : 0;
}

/* The least that is left from a cgroup up to the root. */
static uint64_t left_above(const char *mount, const char *group, bool unified)
{
    char folder[SHIM_PATH];
    uint64_t least = UINT64_MAX;
    int length = snprintf(folder, sizeof(folder), "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof(folder))
        return UINT64_MAX;
    size_t end = strlen(mount);
    for (;;) {
        uint64_t left = unified ? left_in(folder, "memory.max", "memory.current", "inactive_file ")
                                : left_in(folder, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                          "total_inactive_file ");
        least = left < least ? left : least;
        char *slash = strrchr(folder, '/');
        if (!slash || slash < folder + end)
            return least;
        *slash = '\0';
    }
}

/* A line of /proc/self/cgroup: "0::/a/b", or "5:cpu,memory:/a/b". */
static uint64_t left_by_line(char *line)
{
    char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
    if (!group)
        return UINT64_MAX;
    *group++ = '\0';
    names++;
    if (!names[0])
        return left_above("/sys/fs/cgroup", group, true);
    for (char *name = names; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL)
        if (!strncmp(name, "memory", 6) && (name[6] == ',' || name[6] == '\0'))
            return left_above("/sys/fs/cgroup/memory", group, false);
    return UINT64_MAX;
}

uint64_t shim_memory_limits_left(void)
{
    static const struct {
        int limit;
        const char *used;
    } limits[] = {{RLIMIT_AS, "VmSize:"}, {RLIMIT_DATA, "VmData:"}};
    char text[8192] = "";
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].limit, &limit) || limit.rlim_cur == RLIM_INFINITY)
            continue;
        if (!text[0] && shim_read_file("/proc/self/status", text, sizeof(text)) < 0)
            return 0;
        uint64_t used = number_behind(limits[i].used, text);
        used = used > UINT64_MAX >> 10 ? 0 : used << 10;
        uint64_t left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
        least = left < least ? left : least;
    }
    return least;
}

uint64_t shim_memory_left(void)
{
    char text[8192];
    uint64_t least = UINT64_MAX;
    if (shim_read_file("/proc/meminfo", text, sizeof(text)) >= 0)
        least = number_behind("MemAvailable:", text);
    least = least > UINT64_MAX >> 10 ? UINT64_MAX : least << 10;
    if (shim_read_file("/proc/self/cgroup", text, sizeof(text)) < 0)
        return least;
    for (char *line = text; line && *line;) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        uint64_t left = left_by_line(line);
        least = left < least ? left : least;
        line = next;
    }
    return least;
}
