/* workspace.c: memory on every NUMA node, shared by the worker processes of a pool. */
#include "measure/pool/workspace.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { REGIONS = TCCL_MAX_MEMORIES + TCCL_MAX_GPUS, SAMPLED_PAGES = 64 };

/* What all processes see of it. */
struct tccl_board {
    struct tccl_loan loans[TCCL_MAX_GPUS];
    _Atomic bool touched[REGIONS][TCCL_WORKSPACE_PLACES];
};

/* A file without a name takes no memory until it is touched, however strict the kernel is. */
static void *map_memory(size_t bytes, struct tccl_error *err)
{
    cleanup_close int fd = memfd_create("tccl-workspace", MFD_CLOEXEC);
    void *memory = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return tccl_fail_null(err, "%zu MB of address space for transfers: %s%s", bytes >> 20,
                              strerror(errno), errno == EFBIG ? " (raise ulimit -f)" : "");
    return memory;
}

static int map_workspace(struct tccl_workspace *workspace, struct tccl_error *err)
{
    const struct tccl_machine *machine = &workspace->site.machine;
    size_t regions = (size_t)(machine->n_memories + machine->n_gpus) * TCCL_WORKSPACE_PLACES;
    if (workspace->settings.region == 0 || workspace->settings.region > SIZE_MAX / 4 / regions)
        return tccl_fail(err, "regions of %zu bytes can't be had", workspace->settings.region);
    workspace->board = mmap(NULL, sizeof(*workspace->board), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (workspace->board == MAP_FAILED) {
        workspace->board = NULL;
        return tccl_fail(err, "out of memory");
    }
    workspace->bytes = regions * workspace->settings.region;
    workspace->memory = map_memory(workspace->bytes, err);
    return workspace->memory ? 0 : -1;
}

struct tccl_workspace *tccl_workspace_new(const struct tccl_site *site,
                                          const struct tccl_workspace_settings *settings,
                                          struct tccl_error *err)
{
    struct tccl_workspace *workspace = calloc(1, sizeof(*workspace));
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!workspace)
        return tccl_fail_null(err, "out of memory");
    workspace->site = *site;
    workspace->settings = *settings;
    workspace->settings.region = (settings->region + page - 1) / page * page;
    if (map_workspace(workspace, err) != 0) {
        tccl_workspace_free(workspace);
        return NULL;
    }
    return workspace;
}

void tccl_workspace_free(struct tccl_workspace *workspace)
{
    if (!workspace)
        return;
    if (workspace->memory)
        munmap(workspace->memory, workspace->bytes);
    if (workspace->board)
        munmap(workspace->board, sizeof(*workspace->board));
    free(workspace);
}

struct tccl_loan *tccl_workspace_loan(struct tccl_workspace *workspace, int gpu)
{
    return &workspace->board->loans[gpu];
}

/* Bytes of the node that may be had: free ones, and what only caches files. Returns -1 where the
 * kernel doesn't tell. */
static long long node_room(int node, long long *total)
{
    char path[64], line[128];
    long long room = -1, kb;
    int of;
    snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
    cleanup_file FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "Node %d MemTotal: %lld", &of, &kb) == 2)
            *total = kb << 10;
        else if (sscanf(line, "Node %d MemFree: %lld", &of, &kb) == 2)
            room = kb << 10;
        else if (sscanf(line, "Node %d Active(file): %lld", &of, &kb) == 2 ||
                 sscanf(line, "Node %d Inactive(file): %lld", &of, &kb) == 2)
            room += kb << 10;
    }
    return room;
}

/* The kernel would kill the worker that touches more than there is. */
static int check_room(int node, size_t bytes, struct tccl_error *err)
{
    long long total = -1, room = node_room(node, &total);
    if (total == 0)
        return tccl_fail(err, "NUMA node %d has no memory", node);
    if (room >= 0 && (unsigned long long)room < bytes)
        return tccl_fail(err, "NUMA node %d is full: %lld MB free, %zu MB needed", node, room >> 20,
                         bytes >> 20);
    return 0;
}

static int fail_bind(int node, const char *call, struct tccl_error *err)
{
    if (errno == EPERM || errno == ENOSYS)
        return tccl_fail(
            err,
            "host memory can't be bound to NUMA node %d: %s: %s; in a container, allow "
            "%s (CAP_SYS_NICE)",
            node, call, strerror(errno), call);
    return tccl_fail(err, "host memory can't be bound to NUMA node %d: %s: %s", node, call,
                     errno == EINVAL ? "no such node, or not allowed here" : strerror(errno));
}

/* Memory lies on the only node there is, bound or not; containers, and kernels without NUMA, often
 * have no call that says so. */
static bool is_excused(const struct tccl_workspace *workspace, int failed)
{
    return workspace->site.machine.n_memories == 1 && (failed == EPERM || failed == ENOSYS);
}

static int bind_region(const struct tccl_workspace *workspace, void *region, int node,
                       struct tccl_error *err)
{
    if (numa_available() < 0 && is_excused(workspace, ENOSYS))
        return 0;
    struct bitmask *nodes = numa_allocate_nodemask();
    if (!nodes || node < 0 || (unsigned long)node >= nodes->size) {
        if (nodes)
            numa_free_nodemask(nodes);
        return tccl_fail(err, "no NUMA node %d", node);
    }
    numa_bitmask_setbit(nodes, (unsigned)node);
    long rc = mbind(region, workspace->settings.region, MPOL_BIND, nodes->maskp, nodes->size + 1,
                    MPOL_MF_STRICT);
    int failed = errno;
    numa_free_nodemask(nodes);
    errno = failed;
    return rc == 0 || is_excused(workspace, failed) ? 0 : fail_bind(node, "mbind", err);
}

static int check_placement(const struct tccl_workspace *workspace, unsigned char *region, int node,
                           struct tccl_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = workspace->settings.region / page;
    int count = pages < SAMPLED_PAGES ? (int)pages : SAMPLED_PAGES;
    void *sampled[SAMPLED_PAGES];
    int status[SAMPLED_PAGES] = {0};
    for (int i = 0; i < count; i++)
        sampled[i] = region + pages * (size_t)i / (size_t)count * page;
    if (move_pages(0, (unsigned long)count, sampled, NULL, status, 0) < 0)
        return is_excused(workspace, errno) ? 0 : fail_bind(node, "move_pages", err);
    for (int i = 0; i < count; i++)
        if (status[i] != node && status[i] < 0)
            return tccl_fail(err,
                             "memory bound to NUMA node %d: the kernel does not tell its node: %s",
                             node, strerror(-status[i]));
        else if (status[i] != node)
            return tccl_fail(err, "memory bound to NUMA node %d is on node %d", node, status[i]);
    return 0;
}

static int touch(const struct tccl_workspace *workspace, unsigned char *region, int node,
                 struct tccl_error *err)
{
    size_t bytes = workspace->settings.region;
    if (check_room(node, bytes, err) != 0 ||
        (workspace->settings.bind && bind_region(workspace, region, node, err) < 0))
        return -1;
    memset(region, 0x5a, bytes);
    return workspace->settings.bind ? check_placement(workspace, region, node, err) : 0;
}

void *tccl_workspace_region(struct tccl_workspace *workspace, struct tccl_device where, int place,
                            struct tccl_error *err)
{
    const struct tccl_machine *machine = &workspace->site.machine;
    bool gpu = where.kind == TCCL_GPU;
    if (where.index >= (gpu ? machine->n_gpus : machine->n_memories))
        return tccl_fail_null(err, "no %s %d", gpu ? "GPU" : "memory", where.index);
    int index = gpu ? machine->n_memories + where.index : where.index;
    int node = machine->nodes[gpu ? machine->gpus[where.index].numa : where.index];
    size_t number = (size_t)index * TCCL_WORKSPACE_PLACES + (size_t)place;
    unsigned char *region = workspace->memory + number * workspace->settings.region;
    _Atomic bool *touched = &workspace->board->touched[index][place];
    if (!atomic_load(touched)) {
        if (touch(workspace, region, node, err) < 0)
            return NULL;
        atomic_store(touched, true);
    }
    return region;
}
