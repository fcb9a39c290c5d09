/* machine-text.c: a machine as tables for people, and what discovery found as JSON. */
#include "discover/machine-text.h"

#include <string.h>

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

/* Columns fit the longest text. */
static int model_width(const struct tccl_machine *machine)
{
    int width = 5;

    for (int i = 0; i < machine->n_gpus; i++)
        if ((int)strlen(machine->gpus[i].model) > width)
            width = (int)strlen(machine->gpus[i].model);
    return width;
}

static void print_gpu(FILE *out, const struct tccl_machine *machine, const struct tccl_found *found,
                      int i)
{
    const struct tccl_gpu *gpu = &machine->gpus[i];
    char minor[NUMBER], index[NUMBER], sm[NUMBER];

    fprintf(out, "%-4d %-13s %-*s %4d %5s %3s", i, gpu->busid, model_width(machine), gpu->model,
            machine->nodes[gpu->numa], known(gpu->minor, minor),
            known(gpu->sm > 0 ? gpu->sm : -1, sm));
    if (found)
        fprintf(out, " %4s %4d", known(found->gpu_index[i], index), found->gpu_gres[i]);
    fprintf(out, "  %-13s", place_name(machine, gpu->parent));
    if (found && found->n_users[i] > 1)
        fprintf(out, " %s and %d more", found->user[i], found->n_users[i] - 1);
    else if (found)
        fprintf(out, " %s", found->n_users[i] ? found->user[i] : "-");
    fputc('\n', out);
}

static void print_gpus(FILE *out, const struct tccl_machine *machine,
                       const struct tccl_found *found)
{
    fprintf(out, "\n%-4s %-13s %-*s %4s %5s %3s", "GPU", "BUS ID", model_width(machine), "MODEL",
            "NUMA", "MINOR", "SM");
    fprintf(out, found ? " NVML GRES  %-13s %s\n" : "  %s\n", "BELOW", "IN USE BY");
    for (int i = 0; i < machine->n_gpus; i++)
        print_gpu(out, machine, found, i);
}

static void print_nics(FILE *out, const struct tccl_machine *machine,
                       const struct tccl_found *found)
{
    char direct[GPUS_TEXT];

    if (machine->n_nics == 0)
        return;
    fprintf(out, "\n%-12s %-13s %4s %8s %-12s %-9s  %-13s", "NIC", "BUS ID", "NUMA", "GB/S",
            "FABRIC", "GPUDIRECT", "BELOW");
    fprintf(out, found ? " %-10s %-10s %s\n" : "\n", "KIND", "INTERFACE", "STATE");
    for (int i = 0; i < machine->n_nics; i++) {
        const struct tccl_nic *nic = &machine->nics[i];
        uint32_t mask = 0;
        for (int gpu = 0; gpu < machine->n_gpus; gpu++)
            mask |= (uint32_t)machine->gpudirect[i][gpu] << gpu;
        tccl_numberset_format(mask, direct, sizeof(direct));
        fprintf(out, "%-12s %-13s %4d %8.2f %-12s %-9s  %-13s", nic->name, nic->busid,
                machine->nodes[nic->numa], nic->gbps, nic->fabric, direct[0] ? direct : "-",
                place_name(machine, nic->parent));
        if (found)
            fprintf(out, " %-10s %-10s %s", found->nic_kind[i],
                    found->nic_netdev[i][0] ? found->nic_netdev[i] : "-",
                    found->nic_up[i] ? "up" : "down");
        fputc('\n', out);
    }
}

const char *tccl_path_name(const struct tccl_machine *machine, struct tccl_device a,
                           struct tccl_device b)
{
    if (a.kind == b.kind && a.index == b.index)
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
            snprintf(entry, sizeof(entry), "%s%s", tccl_path_name(machine, from, to),
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

void tccl_print_machine(FILE *out, const struct tccl_machine *machine,
                        const struct tccl_found *found)
{
    print_gpus(out, machine, found);
    print_nics(out, machine, found);
    print_paths(out, machine, found);
    fputc('\n', out);
    tccl_sketch(out, machine, found ? found->package_of : NULL);
}

void tccl_print_notes(FILE *out, const struct tccl_found *found)
{
    for (int i = 0; i < found->n_notes; i++)
        fprintf(out, "%s%s\n", i == 0 ? "\nNotes\n  " : "  ", found->notes[i]);
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

static json_t *gpus_json(const struct tccl_found *found)
{
    json_t *list = json_array();

    for (int i = 0; i < found->site.machine.n_gpus; i++)
        json_array_append_new(list, json_pack("{s:s, s:o, s:i, s:i, s:s}", "busid",
                                              found->site.machine.gpus[i].busid, "nvml",
                                              unless_negative(found->gpu_index[i]), "gres",
                                              found->gpu_gres[i], "users", found->n_users[i],
                                              "user", found->user[i]));
    return list;
}

static json_t *nics_json(const struct tccl_found *found)
{
    json_t *list = json_array();

    for (int i = 0; i < found->site.machine.n_nics; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b}", "name",
                                              found->site.machine.nics[i].name, "kind",
                                              found->nic_kind[i], "netdev", found->nic_netdev[i],
                                              "up", found->nic_up[i]));
    return list;
}

static json_t *paths_json(const struct tccl_machine *machine)
{
    int count = machine->n_gpus + machine->n_nics;
    json_t *rows = json_array();

    for (int a = 0; a < count; a++) {
        json_t *row = json_array();
        for (int b = 0; b < count; b++)
            json_array_append_new(row, json_string(tccl_path_name(machine, device_at(machine, a),
                                                                  device_at(machine, b))));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *tccl_found_to_json(const struct tccl_found *found)
{
    const struct tccl_machine *machine = &found->site.machine;
    char id[TCCL_HASH_HEX], marks[TCCL_MARKS_TEXT];
    json_t *sockets = json_array(), *notes = json_array();

    for (int i = 0; i < machine->n_memories; i++)
        json_array_append_new(sockets, unless_negative(found->package_of[i]));
    for (int i = 0; i < found->n_notes; i++)
        json_array_append_new(notes, json_string(found->notes[i]));

    tccl_machine_id(machine, id);
    tccl_format_marks(found->marks, marks);
    return json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "id", id,
                     "name", machine->name, "recorded", found->recorded, "driver", found->driver,
                     "p2p_source", found->p2p_source, "marks", marks, "machine",
                     tccl_machine_to_json(machine), "gpus", gpus_json(found), "nics",
                     nics_json(found), "sockets", sockets, "paths", paths_json(machine), "notes",
                     notes);
}
