/* machine-text.c: a machine as tables and as a drawing for people, and what discovery found as
 * JSON. */
#include "discover/discover.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numberset.h"
#include "machine/meter.h"

enum { GPUS_TEXT = 64, NUMBER = 12 };

static const char *place_name(const struct tccl_machine *machine, int parent)
{
    return parent >= 0 ? machine->switches[parent].name : "root complex";
}

/* A number, or "-" where it isn't known. */
static const char *known(int value, char text[static NUMBER])
{
    if (value < 0)
        return "-";
    snprintf(text, NUMBER, "%d", value);
    return text;
}

/* Slurm's GRES index with AutoDetect: PCI order. */
static int gres_of(const struct tccl_found *found, int gpu)
{
    return found->marks & TCCL_MARK_STAND_IN ? 0 : gpu;
}

/* Columns fit the longest text. */
static int model_width(const struct tccl_machine *machine)
{
    int width = 5;
    for (int i = 0; i < machine->n_gpus; i++)
        if ((int)strlen(machine->gpus[i].model) > width)
            width = (int)strlen(machine->gpus[i].model);
    return width;
}

static void print_nics(FILE *out, const struct tccl_machine *machine,
                       const struct tccl_found *found)
{
    char direct[GPUS_TEXT];
    if (machine->n_nics == 0)
        return;
    int width = 12;
    for (int i = 0; i < machine->n_nics; i++)
        width = (int)fmax(width, (double)strlen(machine->nics[i].name));
    fprintf(out, "\n%-*s %-13s %4s %8s %-12s %-9s  %-13s", width, "NIC", "BUS ID", "NUMA", "GB/S",
            "FABRIC", "GPUDIRECT", "BELOW");
    fprintf(out, found ? " %-10s %-10s %s\n" : "\n", "KIND", "INTERFACE", "STATE");
    for (int i = 0; i < machine->n_nics; i++) {
        const struct tccl_nic *nic = &machine->nics[i];
        uint32_t mask = 0;
        for (int gpu = 0; gpu < machine->n_gpus; gpu++)
            mask |= (uint32_t)machine->gpudirect[i][gpu] << gpu;
        tccl_numberset_format(mask, direct, sizeof(direct));
        fprintf(out, "%-*s %-13s %4d %8.2f %-12s %-9s  %-13s", width, nic->name, nic->busid,
                machine->nodes[nic->numa], nic->gbps, nic->fabric, direct[0] ? direct : "-",
                place_name(machine, nic->parent));
        if (found)
            fprintf(out, " %-10s %-10s %s", found->nic_kind[i],
                    found->nic_netdev[i][0] ? found->nic_netdev[i] : "-",
                    found->nic_up[i] ? "up" : "down");
        fputc('\n', out);
    }
}

/* As nvidia-smi calls it: "X" itself, "PIX" below one switch, "PXB" below several, "PHB" at one
 * NUMA node, "SYS". */
static const char *path_name(const struct tccl_machine *machine, struct tccl_device a,
                             struct tccl_device b)
{
    if (tccl_device_equal(a, b))
        return "X";
    int above_a =
        a.kind == TCCL_GPU ? machine->gpus[a.index].parent : machine->nics[a.index].parent;
    int above_b =
        b.kind == TCCL_GPU ? machine->gpus[b.index].parent : machine->nics[b.index].parent;
    enum tccl_path path = tccl_machine_path(machine, a, b);
    return path == TCCL_PATH_SWITCH ? above_a == above_b ? "PIX" : "PXB"
           : path == TCCL_PATH_NODE ? "PHB"
                                    : "SYS";
}

/* GPUs first, then NICs. */
static struct tccl_device device_at(const struct tccl_machine *machine, int i)
{
    return i < machine->n_gpus ? (struct tccl_device){TCCL_GPU, (uint8_t)i}
                               : (struct tccl_device){TCCL_NIC, (uint8_t)(i - machine->n_gpus)};
}

static bool is_direct(const struct tccl_machine *machine, struct tccl_device a,
                      struct tccl_device b)
{
    if (a.kind == TCCL_GPU && b.kind == TCCL_GPU)
        return machine->p2p[a.index][b.index];
    if (a.kind == TCCL_NIC && b.kind == TCCL_GPU)
        return machine->gpudirect[a.index][b.index];
    return a.kind == TCCL_GPU && machine->gpudirect[b.index][a.index];
}

static void print_device_name(FILE *out, const struct tccl_machine *machine, int i, int width)
{
    char name[TCCL_NAME];
    if (i < machine->n_gpus)
        snprintf(name, sizeof(name), "GPU%d", i);
    else
        snprintf(name, sizeof(name), "%s", machine->nics[i - machine->n_gpus].name);
    fprintf(out, "%-*s", width, name);
}

static void print_paths(FILE *out, const struct tccl_machine *machine,
                        const struct tccl_found *found)
{
    int count = machine->n_gpus + machine->n_nics, width = 6;
    char entry[8];
    if (count < 2)
        return;
    for (int i = 0; i < machine->n_nics; i++)
        if ((int)strlen(machine->nics[i].name) >= width)
            width = (int)strlen(machine->nics[i].name) + 1;
    fprintf(out, "\n%-*s", width, "PATHS");
    for (int i = 0; i < count; i++)
        print_device_name(out, machine, i, width);
    for (int a = 0; a < count; a++) {
        fputc('\n', out);
        print_device_name(out, machine, a, width);
        for (int b = 0; b < count; b++) {
            struct tccl_device from = device_at(machine, a), to = device_at(machine, b);
            snprintf(entry, sizeof(entry), "%s%s", path_name(machine, from, to),
                     is_direct(machine, from, to) ? "*" : "");
            fprintf(out, "%-*s", width, entry);
        }
    }
    fprintf(out, "\nPIX one PCIe switch, PXB several, PHB one NUMA node, SYS two;\n* the two reach "
                 "each other: P2P");
    if (found)
        fprintf(out, " (from: %s)", found->p2p_source);
    fprintf(out, ", GPUDirect\n");
}

/* ---- the drawing ---- */

enum { PREFIX = 512, MOST_PARTS = TCCL_MAX_SWITCHES + TCCL_MAX_GPUS + TCCL_MAX_NICS };

enum part_kind { PACKAGE, MEMORY, SWITCH, GPU, NIC };

struct part {
    enum part_kind kind;
    int index;
};

struct sketch {
    FILE *out;
    const struct tccl_machine *machine;
    const int *package_of;
    bool lines;  /* box-drawing characters; else ASCII */
    bool colour; /* of a terminal */
    char prefix[PREFIX];
};

struct parts {
    int count;
    struct part list[MOST_PARTS];
};

static void add(struct parts *parts, enum part_kind kind, int index)
{
    parts->list[parts->count++] = (struct part){kind, index};
}

/* Devices and switches right below a switch, or, with parent -1, at the root complex of a memory.
 */
static void find_devices(const struct sketch *sketch, int parent, int numa, struct parts *parts)
{
    const struct tccl_machine *machine = sketch->machine;
    for (int i = 0; i < machine->n_switches; i++)
        if (machine->switches[i].parent == parent &&
            (parent >= 0 || machine->switches[i].numa == numa))
            add(parts, SWITCH, i);
    for (int i = 0; i < machine->n_gpus; i++)
        if (machine->gpus[i].parent == parent && (parent >= 0 || machine->gpus[i].numa == numa))
            add(parts, GPU, i);
    for (int i = 0; i < machine->n_nics; i++)
        if (machine->nics[i].parent == parent && (parent >= 0 || machine->nics[i].numa == numa))
            add(parts, NIC, i);
}

/* Memories of a package; with package -1 those of none. */
static void find_memories(const struct sketch *sketch, int package, struct parts *parts)
{
    for (int i = 0; i < sketch->machine->n_memories; i++)
        if ((sketch->package_of ? sketch->package_of[i] : -1) == package)
            add(parts, MEMORY, i);
}

static void print_part(const struct sketch *sketch, struct part part)
{
    static const char *const colours[] = {
        [PACKAGE] = "1", [MEMORY] = "34", [SWITCH] = "33", [GPU] = "32", [NIC] = "36"};
    const struct tccl_machine *machine = sketch->machine;
    FILE *out = sketch->out;
    if (sketch->colour)
        fprintf(out, "\033[%sm", colours[part.kind]);
    if (part.kind == PACKAGE)
        fprintf(out, "socket %d", part.index);
    else if (part.kind == MEMORY)
        fprintf(out, "memory %d (NUMA node %d)", part.index, machine->nodes[part.index]);
    else if (part.kind == SWITCH)
        fprintf(out, "switch %s", machine->switches[part.index].name);
    else if (part.kind == GPU)
        fprintf(out, "GPU %d  %s  %s", part.index, machine->gpus[part.index].busid,
                machine->gpus[part.index].model);
    else
        fprintf(out, "NIC %s  %s  %.4g GB/s  %s", machine->nics[part.index].name,
                machine->nics[part.index].busid, machine->nics[part.index].gbps,
                machine->nics[part.index].fabric);
    fputs(sketch->colour ? "\033[0m\n" : "\n", out);
}

static void draw(struct sketch *sketch, const struct parts *parts)
{
    static const char *const marks[2][4] = {{"|- ", "`- ", "|  ", "   "},
                                            {"├─ ", "└─ ", "│  ", "   "}};
    const char *const *mark = marks[sketch->lines];
    size_t length = strlen(sketch->prefix);
    for (int i = 0; i < parts->count; i++) {
        struct part part = parts->list[i];
        struct parts below = {0};
        bool last = i == parts->count - 1;
        fprintf(sketch->out, "%s%s", sketch->prefix, mark[last]);
        print_part(sketch, part);
        if (part.kind == PACKAGE)
            find_memories(sketch, part.index, &below);
        else if (part.kind == MEMORY || part.kind == SWITCH)
            find_devices(sketch, part.kind == SWITCH ? part.index : -1, part.index, &below);
        snprintf(sketch->prefix + length, sizeof(sketch->prefix) - length, "%s", mark[2 + last]);
        draw(sketch, &below);
        sketch->prefix[length] = '\0';
    }
}

void tccl_print_machine(FILE *out, const struct tccl_machine *machine,
                        const struct tccl_found *found)
{
    fprintf(out, "\n%-4s %-13s %-*s %4s %5s %3s", "GPU", "BUS ID", model_width(machine), "MODEL",
            "NUMA", "MINOR", "SM");
    fprintf(out, found ? " NVML GRES  %-13s %s\n" : "  %s\n", "BELOW", "IN USE BY");
    for (int i = 0; i < machine->n_gpus; i++) {
        const struct tccl_gpu *gpu = &machine->gpus[i];
        char minor[NUMBER], index[NUMBER], sm[NUMBER];
        fprintf(out, "%-4d %-13s %-*s %4d %5s %3s", i, gpu->busid, model_width(machine), gpu->model,
                machine->nodes[gpu->numa], known(gpu->minor, minor),
                known(gpu->sm > 0 ? gpu->sm : -1, sm));
        if (found)
            fprintf(out, " %4s %4d", known(found->gpu_index[i], index), gres_of(found, i));
        fprintf(out, "  %-13s", place_name(machine, gpu->parent));
        if (found && found->n_users[i] > 1)
            fprintf(out, " %s and %d more", found->user[i], found->n_users[i] - 1);
        else if (found)
            fprintf(out, " %s", found->n_users[i] ? found->user[i] : "-");
        fputc('\n', out);
    }
    print_nics(out, machine, found);
    print_paths(out, machine, found);
    fputc('\n', out);
    /* A tree of text, with the characters that the stream's locale has; colours on terminals,
     * unless NO_COLOR is set. package_of: the socket of each memory, -1 unknown; NULL: sockets
     * aren't drawn. */
    const int *package_of = found ? found->package_of : NULL;
    const char *terminal = getenv("TERM"), *plain = getenv("NO_COLOR");
    struct sketch sketch = {.out = out, .machine = machine, .package_of = package_of};
    struct parts top = {0};
    setlocale(LC_CTYPE, "");
    sketch.lines = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    sketch.colour =
        isatty(fileno(out)) && !(plain && *plain) && terminal && strcmp(terminal, "dumb") != 0;
    for (int i = 0; package_of && i < machine->n_memories; i++) {
        bool first = package_of[i] >= 0;
        for (int k = 0; k < i; k++)
            first = first && package_of[k] != package_of[i];
        if (first)
            add(&top, PACKAGE, package_of[i]);
    }
    find_memories(&sketch, -1, &top);
    fprintf(out, "%s\n", machine->name);
    draw(&sketch, &top);
}

static const struct {
    unsigned mark;
    const char *name;
} mark_names[] = {{TCCL_MARK_MIG, "MIG"},
                  {TCCL_MARK_MPS, "MPS"},
                  {TCCL_MARK_BUSY, "in use"},
                  {TCCL_MARK_STAND_IN, "stand-ins"}};

void tccl_format_marks(unsigned marks, char text[static TCCL_MARKS_TEXT])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(mark_names) / sizeof(*mark_names); i++)
        if (marks & mark_names[i].mark)
            used += (size_t)snprintf(text + used, TCCL_MARKS_TEXT - used, "%s%s", used ? ", " : "",
                                     mark_names[i].name);
}

static json_t *unless_negative(int value)
{
    return value < 0 ? json_null() : json_integer(value);
}

static json_t *paths_json(const struct tccl_machine *machine)
{
    int count = machine->n_gpus + machine->n_nics;
    json_t *rows = json_array();
    for (int a = 0; a < count; a++) {
        json_t *row = json_array();
        for (int b = 0; b < count; b++)
            json_array_append_new(
                row, json_string(path_name(machine, device_at(machine, a), device_at(machine, b))));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *tccl_found_to_json(const struct tccl_found *found)
{
    const struct tccl_machine *machine = &found->site.machine;
    char id[TCCL_HASH_HEX], marks[TCCL_MARKS_TEXT];
    json_t *sockets = json_array(), *notes = json_array();
    json_t *gpus = json_array(), *nics = json_array();
    for (int i = 0; i < machine->n_gpus; i++)
        json_array_append_new(
            gpus, json_pack("{s:s, s:o, s:i, s:i, s:s}", "busid", machine->gpus[i].busid, "nvml",
                            unless_negative(found->gpu_index[i]), "gres", gres_of(found, i),
                            "users", found->n_users[i], "user", found->user[i]));
    for (int i = 0; i < machine->n_nics; i++)
        json_array_append_new(nics, json_pack("{s:s, s:s, s:s, s:b}", "name", machine->nics[i].name,
                                              "kind", found->nic_kind[i], "netdev",
                                              found->nic_netdev[i], "up", found->nic_up[i]));
    for (int i = 0; i < machine->n_memories; i++)
        json_array_append_new(sockets, unless_negative(found->package_of[i]));
    for (int i = 0; i < found->n_notes; i++)
        json_array_append_new(notes, json_string(found->notes[i]));
    tccl_machine_id(machine, id);
    tccl_format_marks(found->marks, marks);
    return json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "id", id,
                     "name", machine->name, "recorded", found->recorded, "driver", found->driver,
                     "p2p_source", found->p2p_source, "marks", marks, "machine",
                     tccl_machine_to_json(machine), "gpus", gpus, "nics", nics, "sockets", sockets,
                     "paths", paths_json(machine), "notes", notes);
}
