/* discover-topology.c: hwloc's picture of this machine, or of one that lstopo recorded. */
#include "discover/discover-topology.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/fileio.h"

enum { TRIAL_SECONDS = 10, REFUSED = 3, MAX_NUMBER = 65535 };

/* How hwloc 3 and hwloc 2 write what an OS device is (hwloc 3: a set of bits). */
static int kind_as_v2(long bits)
{
    static const struct {
        long bits;
        int kind;
    } kinds[] = {{32, 3 /* RDMA, also with network */},
                 {16, 2 /* network */},
                 {8, 5 /* coprocessor, also with GPU */},
                 {4, 1 /* GPU */},
                 {64, 4 /* DMA engine */}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (bits & kinds[i].bits)
            return kinds[i].kind;
    return 0; /* storage */
}

/* Is it an object of which hwloc keeps one bit for each number up to its own, without a number or
 * with one that no machine has? */
static bool is_far(const char *tag, size_t size)
{
    static const char pu[] = " type=\"PU\"", node[] = " type=\"NUMANode\"", name[] = " os_index=\"";
    const char *number = memmem(tag, size, name, sizeof(name) - 1);
    bool counts =
        memmem(tag, size, pu, sizeof(pu) - 1) || memmem(tag, size, node, sizeof(node) - 1);
    return counts && (!number || strtoul(number + sizeof(name) - 1, NULL, 10) > MAX_NUMBER);
}

/* Texts are not parsed further: hwloc does that, by recursion. */
static int check_objects(const char *text, struct tccl_error *err)
{
    int depth = 0;
    for (const char *at = strchr(text, '<'); at; at = strchr(at + 1, '<')) {
        if (strncmp(at, "</object", 8) == 0)
            depth--;
        const char *end = strncmp(at, "<object", 7) == 0 ? strchr(at, '>') : NULL;
        if (end && is_far(at, (size_t)(end - at)))
            return tccl_fail(err, "has CPUs or NUMA nodes without a number from 0 to %d",
                             MAX_NUMBER);
        if (end && end[-1] != '/' && ++depth > TCCL_MAX_NESTING)
            return tccl_fail(err, "has more than %d objects inside each other", TCCL_MAX_NESTING);
    }
    return 0;
}

static void replace_kinds(const char *text, FILE *out)
{
    static const char name[] = "osdev_type=\"";
    for (const char *at; (at = strstr(text, name));) {
        char *end;
        at += sizeof(name) - 1;
        long bits = strtol(at, &end, 10);
        fprintf(out, "%.*s%d", (int)(at - text), text, kind_as_v2(bits));
        text = end;
    }
    fputs(text, out);
}

static int convert(const char *text, FILE *out, struct tccl_error *err)
{
    static const char root[] = "<topology", v3[] = " version=\"3.";
    const char *start = strstr(text, root);
    const char *version = start ? strstr(start, v3) : NULL;
    const char *end = start ? strchr(start, '>') : NULL;
    if (!start || !end)
        return tccl_fail(err, "is no XML that lstopo or NCCL wrote");
    if (check_objects(start, err) != 0)
        return -1;
    if (version && version < end && hwloc_get_api_version() < 0x30000) {
        const char *minor = version + sizeof(v3) - 1;
        fprintf(out, "%.*s version=\"2.0", (int)(version - start), start);
        replace_kinds(minor + strspn(minor, "0123456789"), out);
    } else {
        fputs(start, out);
    }
    return 0;
}

char *tccl_topology_as_v2(const char *text, struct tccl_error *err)
{
    cleanup_free char *bare = strdup(text);
    char *copy = NULL;
    size_t size;
    FILE *out = bare ? open_memstream(&copy, &size) : NULL;
    if (!out)
        return tccl_fail(err, "out of memory"), NULL;
    /* Comments and carriage returns, which recorded files get from people and their tools; hwloc's
     * own reader of XML doesn't know them. */
    char *to = bare, *end;
    for (char *from = bare; *from;)
        if (strncmp(from, "<!--", 4) == 0 && (end = strstr(from + 4, "-->")))
            from = end + 3;
        else if (*from == '\r')
            from++;
        else
            *to++ = *from++;
    *to = '\0';
    int rc = convert(bare, out, err);
    if (fclose(out) != 0)
        rc = tccl_fail(err, "out of memory");
    if (rc == 0)
        return copy;
    free(copy);
    return NULL;
}

/* hwloc's own messages would stand beside our one line. */
static int load(hwloc_topology_t topology, hwloc_topology_t *out, struct tccl_error *err)
{
    setenv("HWLOC_HIDE_ERRORS", "2", 0);
    /* Everything of the PCI tree that is a device or a bridge. */
    if (hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL) >= 0 &&
        hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) >= 0 &&
        hwloc_topology_load(topology) == 0) {
        *out = topology;
        return 0;
    }
    tccl_fail(err, "hwloc can't read it: %s", strerror(errno));
    hwloc_topology_destroy(topology);
    return -1;
}

int tccl_topology_live(hwloc_topology_t *topology, struct tccl_error *err)
{
    /* These would start GPU drivers in this process, which forks later. */
    static const char *const without[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl"};
    hwloc_topology_t fresh;
    *topology = NULL;
    if (hwloc_topology_init(&fresh) != 0)
        return tccl_fail(err, "hwloc: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++)
        hwloc_topology_set_components(fresh, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, without[i]);
    return load(fresh, topology, err) != 0 ? tccl_fail_in(err, "this machine") : 0;
}

static int load_text(const char *text, hwloc_topology_t *topology, struct tccl_error *err)
{
    hwloc_topology_t fresh;
    if (hwloc_topology_init(&fresh) != 0)
        return tccl_fail(err, "hwloc: %s", strerror(errno));
    if (hwloc_topology_set_xmlbuffer(fresh, text, (int)strlen(text) + 1) < 0) {
        hwloc_topology_destroy(fresh);
        return tccl_fail(err, "is no XML that lstopo or NCCL wrote");
    }
    return load(fresh, topology, err);
}

/* In the child: silent, and bounded in time. */
__attribute__((noreturn)) static void load_and_exit(const char *text)
{
    const struct rlimit no_core = {0, 0}, cpu = {TRIAL_SECONDS, TRIAL_SECONDS};
    struct tccl_error ignored = {0};
    hwloc_topology_t topology;
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_CPU, &cpu);
    signal(SIGALRM, SIG_DFL);
    alarm(2 * TRIAL_SECONDS);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    _exit(load_text(text, &topology, &ignored) == 0 ? 0 : REFUSED);
}

/* hwloc trusts what lstopo wrote: some altered files crash it. So it reads the text in a process of
 * its own first. Returns 0, or -1 with err. */
static int try_text(const char *text, struct tccl_error *err)
{
    int status = 0;
    pid_t child = fork();
    if (child < 0)
        return tccl_fail(err, "fork: %s", strerror(errno));
    if (child == 0)
        load_and_exit(text);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return tccl_fail(err, "waitpid: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
        return tccl_fail(err, "hwloc can't read it: it isn't whole, or not what lstopo wrote");
    return tccl_fail(err, "hwloc breaks on it: it was altered since lstopo wrote it");
}

int tccl_topology_recorded(const char *path, hwloc_topology_t *topology, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size;
    *topology = NULL;
    if (tccl_read_file(path, TCCL_MAX_TOPOLOGY, &text, &size, err) != 0)
        return -1;
    if (strlen(text) != size)
        return tccl_fail(err, "%s: is no XML that lstopo or NCCL wrote", path);
    cleanup_free char *readable = tccl_topology_as_v2(text, err);
    if (!readable || try_text(readable, err) != 0 || load_text(readable, topology, err) != 0)
        return tccl_fail_in(err, "%s", path);
    return 0;
}
