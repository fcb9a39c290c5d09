/* topology.c: hwloc's picture of this machine, or of one that lstopo recorded. */
#include "topology.h"

#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "fileio.h"

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

/* Deepest nesting of objects. Texts are not parsed further: hwloc does that, by recursion. */
static int nesting(const char *text)
{
    int depth = 0, deepest = 0;

    for (const char *at = strchr(text, '<'); at; at = strchr(at + 1, '<')) {
        if (strncmp(at, "</object", 8) == 0)
            depth--;
        if (strncmp(at, "<object", 7) != 0)
            continue;
        const char *end = strchr(at, '>');
        if (end && end[-1] != '/' && ++depth > deepest)
            deepest = depth;
    }
    return deepest;
}

/* Comments and carriage returns, which recorded files get from people and their tools; hwloc's own
 * reader of XML doesn't know them. */
static void drop_comments(char *text)
{
    char *to = text, *end;

    for (char *from = text; *from;)
        if (strncmp(from, "<!--", 4) == 0 && (end = strstr(from + 4, "-->")))
            from = end + 3;
        else if (*from == '\r')
            from++;
        else
            *to++ = *from++;
    *to = '\0';
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
        return tccl_fail(err, "is no XML that lstopo wrote");
    if (nesting(start) > TCCL_MAX_NESTING)
        return tccl_fail(err, "has more than %d objects inside each other", TCCL_MAX_NESTING);
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
    drop_comments(bare);
    int rc = convert(bare, out, err);
    if (fclose(out) != 0)
        rc = tccl_fail(err, "out of memory");
    if (rc == 0)
        return copy;
    free(copy);
    return NULL;
}

/* Everything of the PCI tree that is a device or a bridge. */
static int keep_devices(hwloc_topology_t topology)
{
    return hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL) < 0 ||
                   hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) < 0
               ? -1
               : 0;
}

/* hwloc's own messages would stand beside our one line. */
static int load(hwloc_topology_t topology, hwloc_topology_t *out, struct tccl_error *err)
{
    setenv("HWLOC_HIDE_ERRORS", "2", 0);
    if (keep_devices(topology) == 0 && hwloc_topology_load(topology) == 0) {
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
    if (hwloc_topology_init(&fresh) < 0)
        return tccl_fail(err, "hwloc: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++)
        hwloc_topology_set_components(fresh, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, without[i]);
    return load(fresh, topology, err) < 0 ? tccl_fail_in(err, "this machine") : 0;
}

static int parse(const char *text, hwloc_topology_t *topology, struct tccl_error *err)
{
    cleanup_free char *readable = tccl_topology_as_v2(text, err);
    hwloc_topology_t fresh;

    if (!readable)
        return -1;
    if (hwloc_topology_init(&fresh) < 0)
        return tccl_fail(err, "hwloc: %s", strerror(errno));
    if (hwloc_topology_set_xmlbuffer(fresh, readable, (int)strlen(readable) + 1) < 0) {
        hwloc_topology_destroy(fresh);
        return tccl_fail(err, "is no XML that lstopo wrote");
    }
    return load(fresh, topology, err);
}

int tccl_topology_recorded(const char *path, hwloc_topology_t *topology, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size;

    *topology = NULL;
    if (tccl_read_file(path, TCCL_MAX_TOPOLOGY, &text, &size, err) < 0)
        return -1;
    if (strlen(text) != size)
        return tccl_fail(err, "%s: is no XML that lstopo wrote", path);
    return parse(text, topology, err) < 0 ? tccl_fail_in(err, "%s", path) : 0;
}
