/* gres.c: slurmd's list of GPUs: read from what `slurmd -G` prints, and found on the machine. */
#include "gres/gres.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "client/hostlist.h"
#include "discover/sysfs.h"

enum { NVIDIA_MAJOR = 195, MINOR_MOST = 9999 };

#define cleanup_hosts __attribute__((cleanup(tccl_hosts_clear)))

/* ---- what slurmd prints ---- */

/* Copies the value behind " NAME=" up to the next blank. Returns whether it is there and fits. */
static bool value_of(const char *line, const char *name, char *value, size_t size)
{
    const char *at = strstr(line, name);
    if (!at)
        return false;
    at += strlen(name);
    size_t length = strcspn(at, " \r\n");
    if (length == 0 || length >= size)
        return false;
    memcpy(value, at, length);
    value[length] = '\0';
    return true;
}

static int add(struct tccl_gres *gres, const char *file, bool mig, struct tccl_error *err)
{
    if (gres->count == TCCL_GRES_MAX)
        return tccl_fail(err, "slurmd -G lists more than %d GPUs", TCCL_GRES_MAX);
    if (strlen(file) >= TCCL_GRES_FILE)
        return tccl_fail(err, "slurmd -G: a device file's name is too long: %.80s…", file);
    struct tccl_gres_device *device = &gres->devices[gres->count++];
    *device = (struct tccl_gres_device){.mig = mig, .minor = -1};
    strcpy(device->file, file);
    return 0;
}

static void swap(char *text, char from, char to)
{
    while ((text = strchr(text, from)))
        *text = to;
}

/* A line's files are a number each; several files with Count=1 (MultipleFiles=, MIG instances found
 * by AutoDetect) are one number. */
static int add_files(struct tccl_gres *gres, const char *files, long long count,
                     struct tccl_error *err)
{
    cleanup_hosts struct tccl_hosts hosts = {0};
    /* Slurm writes device files as it does names of nodes, but for the '/'. */
    cleanup_free char *names = strdup(files);
    if (!names)
        return tccl_fail(err, "out of memory");
    swap(names, '/', '|');
    if (tccl_hosts_expand(names, 4 * TCCL_GRES_MAX, &hosts, NULL) != 0)
        return tccl_fail(err, "slurmd -G: File=%.120s is not understood", files);
    for (size_t i = 0; i < hosts.count; i++)
        swap(hosts.names[i], '|', '/');
    if (count == 1 && hosts.count > 1)
        return add(gres, hosts.names[0], true, err);
    if (count != (long long)hosts.count)
        return tccl_fail(err, "slurmd -G: Count=%lld with %zu files (%.80s)", count, hosts.count,
                         files);
    for (size_t i = 0; i < hosts.count; i++)
        if (add(gres, hosts.names[i], strstr(hosts.names[i], "nvidia-cap") != NULL, err) != 0)
            return -1;
    return 0;
}

/* "" where the line has none: "(null)". */
static void take_value(const char *line, const char *name, char *value, size_t size)
{
    if (!value_of(line, name, value, size) || value[0] == '(')
        value[0] = '\0';
}

static int core_count(const char *line)
{
    char text[16], *end;
    take_value(line, " CoreCnt=", text, sizeof(text));
    long count = strtol(text, &end, 10);
    return *text && !*end && count > 0 && count <= INT_MAX ? (int)count : 0;
}

static int read_line(struct tccl_gres *gres, const char *line, struct tccl_error *err)
{
    char count[24], files[4096], *end;
    if (!value_of(line, " Count=", count, sizeof(count)))
        return tccl_fail(err, "slurmd -G: no Count= in \"%.120s\"", line);
    long long number = strtoll(count, &end, 10);
    if (*end || number < 1)
        return tccl_fail(err, "slurmd -G: Count=%s", count);
    if (!value_of(line, " File=", files, sizeof(files)))
        return tccl_fail(err, "Slurm has no device files for GPUs of this node: see File= and "
                              "AutoDetect= in gres.conf(5)");
    int first = gres->count;
    if (add_files(gres, files, number, err) != 0)
        return -1;
    for (int i = first; i < gres->count; i++) {
        take_value(line, " Links=", gres->devices[i].links, TCCL_GRES_LINKS);
        take_value(line, " Cores=", gres->devices[i].cores, TCCL_GRES_CORES);
        gres->devices[i].core_count = core_count(line);
    }
    return 0;
}

/* slurmd leaves out a Links= that it can't read, and says so before the list, in the same words in
 * all its versions. */
static void find_refused(const char *text, char links[static TCCL_GRES_LINKS])
{
    static const char mark[] = "Ignoring invalid Links=", of[] = " for Name=gpu";
    links[0] = '\0';
    for (const char *at = text; !*links && (at = strstr(at, mark));) {
        at += sizeof(mark) - 1;
        const char *end = strstr(at, of), *next = at + strcspn(at, "\n");
        if (end && end < next && !isalnum((unsigned char)end[sizeof(of) - 1]))
            snprintf(links, TCCL_GRES_LINKS, "%.*s", (int)(end - at), at);
    }
}

int tccl_gres_parse(const char *text, struct tccl_gres *gres, struct tccl_error *err)
{
    static const char mark[] = "Gres Name=gpu ";
    char line[8192];
    gres->count = 0;
    find_refused(text, gres->refused);
    for (const char *at = text; (at = strstr(at, mark)); at++) {
        size_t length = strcspn(at, "\n");
        if (length >= sizeof(line))
            return tccl_fail(err, "slurmd -G: a line of more than %zu bytes", sizeof(line));
        memcpy(line, at, length);
        line[length] = '\0';
        if (read_line(gres, line, err) != 0)
            return -1;
    }
    return gres->count ? 0 : tccl_fail(err, "slurmd -G lists no GPU");
}

static bool read_core(const char **at, long *core)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    *core = strtol(*at, &end, 10);
    *at = end;
    return true;
}

bool tccl_gres_cores_exist(const char *cores, int count)
{
    for (const char *at = cores;; at++) {
        long first, last;
        if (!read_core(&at, &first))
            return false;
        last = first;
        if (*at == '-' && (at++, !read_core(&at, &last)))
            return false;
        if (first > last || last >= count || (*at && *at != ','))
            return false;
        if (!*at)
            return true;
    }
}

/* ---- which devices these are ---- */

/* Of the GPU whose information says "Device Minor: N". */
static void find_bus(struct tccl_gres_device *device, const char *root)
{
    char path[PATH_MAX], minor[16];
    snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus", root);
    cleanup_dir DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && !device->has_bus && (entry = readdir(folder)))
        device->has_bus =
            tccl_bus_parse(entry->d_name, &device->bus) == 0 &&
            tccl_sys_member(root, "Device Minor", minor, sizeof(minor),
                            "/proc/driver/nvidia/gpus/%.64s/information", entry->d_name) &&
            atoi(minor) == device->minor;
}

/* NVIDIA's driver has a folder for each instance of a GPU. */
static bool has_instances(int minor, const char *root)
{
    char path[PATH_MAX];
    bool found = false;
    snprintf(path, sizeof(path), "%s/proc/driver/nvidia/capabilities/gpu%d/mig", root, minor);
    cleanup_dir DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && !found && (entry = readdir(folder)))
        found = strncmp(entry->d_name, "gi", 2) == 0;
    return found;
}

static void locate(struct tccl_gres_device *device, const char *root)
{
    struct stat about;
    device->nvidia = stat(device->file, &about) == 0 && S_ISCHR(about.st_mode) &&
                     major(about.st_rdev) == NVIDIA_MAJOR && minor(about.st_rdev) < 255;
    device->has_bus = false;
    device->minor = device->nvidia ? (int)minor(about.st_rdev) : -1;
    if (!device->nvidia)
        return;
    device->mig |= has_instances(device->minor, root);
    find_bus(device, root);
}

void tccl_gres_locate(struct tccl_gres *gres, const char *root)
{
    for (int i = 0; i < gres->count; i++)
        locate(&gres->devices[i], root ? root : "");
}

void tccl_gres_copy(struct tccl_gres *to, const struct tccl_gres *from)
{
    memcpy(to, from,
           offsetof(struct tccl_gres, devices) + (size_t)from->count * sizeof(*from->devices));
}

bool tccl_gres_equal(const struct tccl_gres *a, const struct tccl_gres *b)
{
    bool equal = a->count == b->count;
    for (int i = 0; equal && i < a->count; i++) {
        const struct tccl_gres_device *x = &a->devices[i], *y = &b->devices[i];
        equal = strcmp(x->file, y->file) == 0 && x->mig == y->mig && x->minor == y->minor;
    }
    return equal;
}

static int find_minor(const struct tccl_machine *machine, int minor)
{
    bool any = false;
    for (int i = 0; i < machine->n_gpus; i++) {
        if (machine->gpus[i].minor == minor)
            return i;
        any |= machine->gpus[i].minor >= 0;
    }
    return !any && minor < machine->n_gpus ? minor : -1;
}

int tccl_gres_find(const struct tccl_gres *gres, const struct tccl_machine *machine, bool real,
                   int number, struct tccl_error *err)
{
    char busid[TCCL_BUS_TEXT];
    if (number < 0 || number >= gres->count)
        return tccl_fail(err, "GPU %d is not in slurmd's list, which has %d (slurmd -G)", number,
                         gres->count);
    const struct tccl_gres_device *device = &gres->devices[number];
    if (!device->nvidia)
        return tccl_fail(err, "GPU %d is %s, which is no device of NVIDIA's driver", number,
                         device->file);
    if (device->mig)
        return tccl_fail(err, "GPU %d (%s) has MIG instances: rings are over whole GPUs", number,
                         device->file);
    if (real && !device->has_bus)
        return tccl_fail(err,
                         "GPU %d is %s, and the driver has no bus id for it: did it fall off the "
                         "bus (dmesg: Xid 79)?",
                         number, device->file);
    tccl_bus_format(device->bus, busid);
    int gpu = device->has_bus ? tccl_machine_find_gpu(machine, busid) : -1;
    if (gpu < 0 && !real)
        gpu = find_minor(machine, device->minor);
    if (gpu < 0)
        return tccl_fail(err, "GPU %d (%s%s%s) is not in the profile's machine, which has %d GPUs",
                         number, device->file, device->has_bus ? ", " : "",
                         device->has_bus ? busid : "", machine->n_gpus);
    return gpu;
}

/* ---- as a text ---- */

int tccl_gres_text(const struct tccl_gres *gres, int pid, int64_t started,
                   char text[static TCCL_LINES_SIZE])
{
    struct tccl_line_writer lines;
    tccl_lines_begin(&lines, text, TCCL_LINES_SIZE, "tccl-slurm-gpus", 1);
    tccl_line_put(&lines, "slurmd", "%d", pid);
    tccl_line_put(&lines, "started", "%lld", (long long)started);
    for (int i = 0; i < gres->count; i++) {
        /* Of an instance nobody asks what it is next to. */
        const struct tccl_gres_device *device = &gres->devices[i];
        char busid[TCCL_BUS_TEXT] = "-";
        if (device->has_bus)
            tccl_bus_format(device->bus, busid);
        tccl_line_put(&lines, "gpu", "%d %s %d %s %s", i,
                      device->mig      ? "mig"
                      : device->nvidia ? "whole"
                                       : "other",
                      device->minor, busid, device->file);
        if (!device->mig && *device->links)
            tccl_line_put(&lines, "links", "%d %s", i, device->links);
        if (!device->mig && *device->cores)
            tccl_line_put(&lines, "cores", "%d %d %s", i, device->core_count, device->cores);
    }
    if (*gres->refused)
        tccl_line_put(&lines, "refused", "%s", gres->refused);
    return tccl_lines_end(&lines) != 0 ? -1 : (int)lines.length;
}

int tccl_gres_save(const struct tccl_gres *gres, const char *path, int pid, int64_t started,
                   struct tccl_error *err)
{
    char text[TCCL_LINES_SIZE];
    int length = tccl_gres_text(gres, pid, started, text);
    if (length < 0)
        return tccl_fail(err, "%s: slurmd's list of GPUs is too long to be kept", path);
    return tccl_write_file(path, 0644, text, (size_t)length, err);
}

static int get_device(struct tccl_gres *gres, const char *text)
{
    struct tccl_gres_device *device = &gres->devices[gres->count];
    char kind[8], busid[TCCL_BUS_TEXT];
    int number;
    if (gres->count == TCCL_GRES_MAX)
        return -1;
    *device = (struct tccl_gres_device){0};
    if (sscanf(text, "%d %7s %d %19s %159s", &number, kind, &device->minor, busid, device->file) !=
            5 ||
        number != gres->count || device->minor < -1 || device->minor > MINOR_MOST)
        return -1;
    device->mig = strcmp(kind, "mig") == 0;
    device->nvidia = device->minor >= 0;
    device->has_bus = tccl_bus_parse(busid, &device->bus) == 0;
    gres->count++;
    return 0;
}

int tccl_gres_from_text(struct tccl_gres *gres, const char *data, size_t size, int *pid,
                        int64_t *started, struct tccl_error *err)
{
    struct tccl_lines lines;
    const char *at = NULL;
    char text[TCCL_GRES_CORES + 64], value[TCCL_GRES_CORES];
    int64_t slurmd;
    int number, count;
    gres->count = 0;
    if (tccl_lines_open(data, size, &lines, err) != 0)
        return -1;
    if (!tccl_lines_are(&lines, "tccl-slurm-gpus", 1) ||
        tccl_line_integer(&lines, "slurmd", 0, INT_MAX, &slurmd) != 0 ||
        tccl_line_integer(&lines, "started", 0, INT64_MAX, started) != 0)
        return tccl_fail(err, "no list of Slurm's GPUs");
    *pid = (int)slurmd;
    while (tccl_line_next(&lines, "gpu", &at, text, sizeof(text)) >= 0)
        if (get_device(gres, text) != 0)
            return tccl_fail(err, "gpu %.80s", text);
    for (at = NULL; tccl_line_next(&lines, "links", &at, text, sizeof(text)) >= 0;)
        if (sscanf(text, "%d %63s", &number, value) == 2 && number >= 0 && number < gres->count)
            strcpy(gres->devices[number].links, value);
    for (at = NULL; tccl_line_next(&lines, "cores", &at, text, sizeof(text)) >= 0;)
        if (sscanf(text, "%d %d %511s", &number, &count, value) == 3 && number >= 0 &&
            number < gres->count) {
            gres->devices[number].core_count = count;
            strcpy(gres->devices[number].cores, value);
        }
    tccl_line_text(&lines, "refused", gres->refused, sizeof(gres->refused));
    return 0;
}

int tccl_gres_load(struct tccl_gres *gres, const char *path, int *pid, int64_t *started,
                   struct tccl_error *err)
{
    cleanup_free char *data = NULL;
    size_t size;
    gres->count = 0;
    if (tccl_read_file(path, TCCL_LINES_SIZE, &data, &size, err) != 0)
        return -1;
    if (tccl_gres_from_text(gres, data, size, pid, started, err) != 0)
        return tccl_fail_in(err, "%s", path);
    return 0;
}
