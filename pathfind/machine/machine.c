/* machine.c: what determines a node's bandwidths: its GPUs, memories, NICs and PCI tree. */
#include "machine/machine.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bus.h"
#include "base/cleanup.h"
#include "base/fields.h"
#include "base/fileio.h"

enum { MAX_MACHINE_FILE = 1 << 20, MAX_NODE = 4095 };

/* Reads the member "busid" in the one way we write it. Returns 0, or -1 with err. */
static int read_busid(const json_t *json, char busid[static TCCL_BUSID], struct tccl_error *err)
{
    char text[2 * TCCL_BUSID];
    tccl_bus number;
    if (tccl_field_text(json, "busid", 1, text, sizeof(text), err) < 0)
        return -1;
    if (tccl_bus_parse(text, &number) != 0)
        return tccl_fail(err, "\"busid\" is \"%s\", which is no PCI bus id", text);
    tccl_bus_format(number, busid);
    return 0;
}

/* Reads "numa", "parent" and "slot" of a device or switch. A parent stands before its children, at
 * the same memory. Returns 0, or -1 with err. */
static int read_place(const json_t *json, const struct tccl_machine *machine, int *numa,
                      int *parent, double *slot, struct tccl_error *err)
{
    char name[TCCL_NAME];
    *parent = -1;
    if (tccl_field_number(json, "slot", 0, 0, 10000, slot, err) < 0 ||
        tccl_field_int(json, "numa", 1, 0, machine->n_memories - 1, numa, err) < 0)
        return -1;
    int missing = tccl_field_text(json, "parent", 0, name, sizeof(name), err);
    if (missing != 0)
        return missing < 0 ? -1 : 0;
    for (int i = 0; i < machine->n_switches; i++)
        if (strcmp(machine->switches[i].name, name) == 0)
            *parent = i;
    if (*parent < 0)
        return tccl_fail(err, "\"parent\": no switch \"%s\" is listed before this", name);
    if (machine->switches[*parent].numa != *numa)
        return tccl_fail(err, "\"numa\" is %d, but the switch above is at %d", *numa,
                         machine->switches[*parent].numa);
    return 0;
}

static int read_switch(const json_t *json, struct tccl_machine *machine, struct tccl_error *err)
{
    static const char *const names[] = {"name", "numa", "parent", "slot", NULL};
    struct tccl_switch *found = &machine->switches[machine->n_switches];
    if (tccl_fields_known(json, names, err) != 0 ||
        tccl_field_text(json, "name", 1, found->name, sizeof(found->name), err) < 0 ||
        read_place(json, machine, &found->numa, &found->parent, &found->slot, err) != 0)
        return -1;
    if (!found->name[0])
        return tccl_fail(err, "\"name\" is empty");
    for (int i = 0; i < machine->n_switches; i++)
        if (strcmp(machine->switches[i].name, found->name) == 0)
            return tccl_fail(err, "switch \"%s\" is listed twice", found->name);
    machine->n_switches++;
    return 0;
}

static int read_gpu(const json_t *json, struct tccl_machine *machine, struct tccl_error *err)
{
    static const char *const names[] = {"busid", "model",  "numa", "minor",
                                        "sm",    "parent", "slot", NULL};
    struct tccl_gpu *found = &machine->gpus[machine->n_gpus];
    uint64_t before, here;
    found->minor = -1;
    if (tccl_fields_known(json, names, err) != 0 || read_busid(json, found->busid, err) != 0 ||
        tccl_field_text(json, "model", 0, found->model, sizeof(found->model), err) < 0 ||
        tccl_field_int(json, "minor", 0, -1, 9999, &found->minor, err) < 0 ||
        tccl_field_int(json, "sm", 0, 0, 999, &found->sm, err) < 0 ||
        read_place(json, machine, &found->numa, &found->parent, &found->slot, err) != 0)
        return -1;
    if (machine->n_gpus > 0) {
        tccl_bus_parse(found[-1].busid, &before);
        tccl_bus_parse(found->busid, &here);
        if (here <= before)
            return tccl_fail(err, "GPUs must be listed in the order of their bus ids, each once");
    }
    machine->n_gpus++;
    return 0;
}

static bool good_nic_name(const char *name)
{
    if (!isalpha((unsigned char)name[0]))
        return false;
    for (const char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '_' && *at != '.')
            return false;
    return true;
}

static int read_nic(const json_t *json, struct tccl_machine *machine, struct tccl_error *err)
{
    static const char *const names[] = {"name",   "busid",  "numa", "gbps",
                                        "fabric", "parent", "slot", NULL};
    struct tccl_nic *found = &machine->nics[machine->n_nics];
    if (tccl_fields_known(json, names, err) != 0 ||
        tccl_field_text(json, "name", 1, found->name, sizeof(found->name), err) < 0 ||
        read_busid(json, found->busid, err) != 0 ||
        tccl_field_text(json, "fabric", 0, found->fabric, sizeof(found->fabric), err) < 0 ||
        tccl_field_number(json, "gbps", 1, 0.001, 10000, &found->gbps, err) < 0 ||
        read_place(json, machine, &found->numa, &found->parent, &found->slot, err) != 0)
        return -1;
    if (!good_nic_name(found->name))
        return tccl_fail(err, "\"name\" is \"%s\"; wanted: a letter, then letters, digits, _ and .",
                         found->name);
    if (tccl_machine_find_nic(machine, found->name) >= 0)
        return tccl_fail(err, "NIC \"%s\" is listed twice", found->name);
    machine->n_nics++;
    return 0;
}

typedef int (*read_entry)(const json_t *json, struct tccl_machine *machine, struct tccl_error *err);

/* Reads each entry of a list; errors name the entry. Returns 0, or -1 with err. */
static int read_list(const json_t *json, const char *name, int needed, size_t max, read_entry each,
                     struct tccl_machine *machine, struct tccl_error *err)
{
    json_t *list = NULL, *entry;
    size_t index;
    if (tccl_field_list(json, name, needed, max, &list, err) < 0)
        return -1;
    json_array_foreach(list, index, entry) if (each(entry, machine, err) <
                                               0) return tccl_fail_in(err, "%s[%zu]", name, index);
    return 0;
}

/* The GPU index at a place of a list, or -1. */
static int gpu_at(const struct tccl_machine *machine, const json_t *list, size_t place)
{
    const json_t *number = json_array_get(list, place);
    if (!json_is_integer(number) || json_integer_value(number) < 0 ||
        json_integer_value(number) >= machine->n_gpus)
        return -1;
    return (int)json_integer_value(number);
}

/* Reads "p2p" or "gpudirect": true, false, or a list of pairs of GPUs, or of a NIC's name and a
 * GPU. Returns 0, or -1 with err. */
static int read_pairs(const json_t *json, bool nics, struct tccl_machine *machine,
                      struct tccl_error *err)
{
    const char *name = nics ? "gpudirect" : "p2p";
    const json_t *value = json_object_get(json, name);
    bool(*reach)[TCCL_MAX_GPUS] = nics ? machine->gpudirect : machine->p2p;
    json_t *list, *pair;
    size_t index;
    for (int a = 0; a < (nics ? machine->n_nics : machine->n_gpus); a++)
        for (int b = 0; b < machine->n_gpus; b++)
            reach[a][b] = json_is_true(value) && (nics || a != b);
    if (json_is_boolean(value))
        return 0;
    if (tccl_field_list(json, name, 1, TCCL_MAX_NICS * TCCL_MAX_GPUS, &list, err) < 0)
        return -1;
    json_array_foreach(list, index, pair)
    {
        const char *nic = json_string_value(json_array_get(pair, 0));
        int a = !nics ? gpu_at(machine, pair, 0) : nic ? tccl_machine_find_nic(machine, nic) : -1;
        int b = gpu_at(machine, pair, 1);
        if (json_array_size(pair) != 2 || a < 0 || b < 0 || (!nics && a == b))
            return tccl_fail(err, "%s[%zu]: not a pair of %s of this machine", name, index,
                             nics ? "a NIC and a GPU" : "two GPUs");
        reach[a][b] = true;
        if (!nics)
            reach[b][a] = true;
    }
    return 0;
}

static const char *const cpu_words[] = {
    [TCCL_CPU_AMD] = "amd",
    [TCCL_CPU_AMD_ZEN3] = "amd-zen3",
    [TCCL_CPU_AMD_ZEN5] = "amd-zen5",
    [TCCL_CPU_INTEL_BDW] = "intel-bdw",
    [TCCL_CPU_INTEL_SKL] = "intel-skl",
    [TCCL_CPU_INTEL_SRP] = "intel-srp",
    [TCCL_CPU_INTEL_ERP] = "intel-erp",
    [TCCL_CPU_ARM] = "arm",
    [TCCL_CPU_POWER] = "power",
    [TCCL_CPU_ZHAOXIN] = "zhaoxin",
    [TCCL_CPU_YONGFENG] = "zhaoxin-yongfeng",
};
enum { N_CPUS = sizeof(cpu_words) / sizeof(*cpu_words) };

const char *tccl_cpu_word(enum tccl_cpu cpu)
{
    return (unsigned)cpu < N_CPUS ? cpu_words[cpu] : NULL;
}

enum tccl_cpu tccl_cpu_parse(const char *word)
{
    for (int i = TCCL_CPU_UNKNOWN + 1; i < N_CPUS; i++)
        if (strcmp(word, cpu_words[i]) == 0)
            return (enum tccl_cpu)i;
    return TCCL_CPU_UNKNOWN;
}

/* Reads "cpu", which need not be there. Returns 0, or -1 with err. */
static int read_cpu(const json_t *json, struct tccl_machine *machine, struct tccl_error *err)
{
    char word[TCCL_NAME];
    int missing = tccl_field_text(json, "cpu", 0, word, sizeof(word), err);
    if (missing != 0)
        return missing < 0 ? -1 : 0;
    machine->cpu = tccl_cpu_parse(word);
    if (machine->cpu == TCCL_CPU_UNKNOWN)
        return tccl_fail(err,
                         "\"cpu\" is \"%s\"; wanted: amd, amd-zen3, amd-zen5, intel-bdw, "
                         "intel-skl, intel-srp, intel-erp, arm, power, zhaoxin or zhaoxin-yongfeng",
                         word);
    return 0;
}

/* Reads "nodes": the kernel's NUMA node of each memory; 0, 1, 2... if it isn't there. Returns 0, or
 * -1 with err. */
static int read_nodes(const json_t *json, struct tccl_machine *machine, struct tccl_error *err)
{
    json_t *list = NULL;
    for (int i = 0; i < machine->n_memories; i++)
        machine->nodes[i] = i;
    int missing = tccl_field_list(json, "nodes", 0, TCCL_MAX_MEMORIES, &list, err);
    if (missing != 0)
        return missing < 0 ? -1 : 0;
    if (json_array_size(list) != (size_t)machine->n_memories)
        return tccl_fail(err, "\"nodes\" has %zu entries; there are %d memories",
                         json_array_size(list), machine->n_memories);
    for (int i = 0; i < machine->n_memories; i++) {
        const json_t *node = json_array_get(list, (size_t)i);
        json_int_t least = i > 0 ? machine->nodes[i - 1] + 1 : 0;
        if (!json_is_integer(node) || json_integer_value(node) < least ||
            json_integer_value(node) > MAX_NODE)
            return tccl_fail(err, "nodes[%d]: wanted: NUMA nodes from 0 to %d, rising", i,
                             MAX_NODE);
        machine->nodes[i] = (int)json_integer_value(node);
    }
    return 0;
}

int tccl_machine_from_json(const json_t *json, struct tccl_machine *machine, struct tccl_error *err)
{
    static const char *const names[] = {"format",    "version",  "name", "about", "memories",
                                        "nodes",     "switches", "gpus", "nics",  "p2p",
                                        "gpudirect", "cpu",      NULL};
    memset(machine, 0, sizeof(*machine));
    if (tccl_fields_known(json, names, err) != 0)
        return -1;
    if (json_object_get(json, "format") && tccl_fields_format(json, "tccl-machine", 1, err) != 0)
        return -1;
    if (tccl_field_text(json, "name", 0, machine->name, sizeof(machine->name), err) < 0 ||
        tccl_field_int(json, "memories", 1, 1, TCCL_MAX_MEMORIES, &machine->n_memories, err) < 0 ||
        read_nodes(json, machine, err) < 0 || read_cpu(json, machine, err) < 0 ||
        read_list(json, "switches", 0, TCCL_MAX_SWITCHES, read_switch, machine, err) != 0 ||
        read_list(json, "gpus", 1, TCCL_MAX_GPUS, read_gpu, machine, err) != 0 ||
        read_list(json, "nics", 0, TCCL_MAX_NICS, read_nic, machine, err) != 0 ||
        read_pairs(json, false, machine, err) != 0)
        return -1;
    if (machine->n_gpus == 0)
        return tccl_fail(err, "\"gpus\" is empty");
    return machine->n_nics > 0 ? read_pairs(json, true, machine, err) : 0;
}

int tccl_machine_read(const char *path, struct tccl_machine *machine, struct tccl_error *err)
{
    cleanup_json json_t *json = tccl_read_json(path, MAX_MACHINE_FILE, err);
    if (!json)
        return -1;
    if (tccl_machine_from_json(json, machine, err) != 0)
        return tccl_fail_in(err, "%s", path);
    return 0;
}

/* The name of a switch, or JSON null. A new reference. */
static json_t *parent_json(const struct tccl_machine *machine, int parent)
{
    return parent < 0 ? json_null() : json_string(machine->switches[parent].name);
}

/* Adds an entry to a list of devices. */
static void add_entry(json_t *list, json_t *entry, double slot)
{
    if (entry && slot > 0)
        json_object_set_new(entry, "slot", json_real(slot));
    json_array_append_new(list, entry);
}

static json_t *switches_json(const struct tccl_machine *machine)
{
    json_t *list = json_array();
    for (int i = 0; i < machine->n_switches; i++) {
        const struct tccl_switch *from = &machine->switches[i];
        add_entry(list,
                  json_pack("{s:s, s:i, s:o}", "name", from->name, "numa", from->numa, "parent",
                            parent_json(machine, from->parent)),
                  from->slot);
    }
    return list;
}

static json_t *gpus_json(const struct tccl_machine *machine)
{
    json_t *list = json_array();
    for (int i = 0; i < machine->n_gpus; i++) {
        const struct tccl_gpu *from = &machine->gpus[i];
        add_entry(list,
                  json_pack("{s:s, s:s, s:i, s:i, s:i, s:o}", "busid", from->busid, "model",
                            from->model, "numa", from->numa, "minor", from->minor, "sm", from->sm,
                            "parent", parent_json(machine, from->parent)),
                  from->slot);
    }
    return list;
}

static json_t *nics_json(const struct tccl_machine *machine)
{
    json_t *list = json_array();
    for (int i = 0; i < machine->n_nics; i++) {
        const struct tccl_nic *from = &machine->nics[i];
        add_entry(list,
                  json_pack("{s:s, s:s, s:i, s:f, s:s, s:o}", "name", from->name, "busid",
                            from->busid, "numa", from->numa, "gbps", from->gbps, "fabric",
                            from->fabric, "parent", parent_json(machine, from->parent)),
                  from->slot);
    }
    return list;
}

/* "p2p" or "gpudirect", as read_pairs reads it. A new reference. */
static json_t *pairs_json(const struct tccl_machine *machine, bool nics)
{
    const bool(*reach)[TCCL_MAX_GPUS] = nics ? machine->gpudirect : machine->p2p;
    json_t *list = json_array();
    size_t all = 0;
    for (int a = 0; a < (nics ? machine->n_nics : machine->n_gpus); a++)
        for (int b = nics ? 0 : a + 1; b < machine->n_gpus; b++, all++)
            if (reach[a][b])
                json_array_append_new(list, nics ? json_pack("[s, i]", machine->nics[a].name, b)
                                                 : json_pack("[i, i]", a, b));
    bool every = json_array_size(list) != 0;
    if (every && json_array_size(list) != all)
        return list;
    json_decref(list);
    return json_boolean(every);
}

/* A machine made by hand, as in tests, has all nodes 0: as good as none. */
static bool has_usual_nodes(const struct tccl_machine *machine)
{
    bool usual = true, none = true;
    for (int i = 0; i < machine->n_memories; i++) {
        usual &= machine->nodes[i] == i;
        none &= machine->nodes[i] == 0;
    }
    return usual || (none && machine->n_memories > 1);
}

static json_t *nodes_json(const struct tccl_machine *machine)
{
    json_t *list = json_array();
    for (int i = 0; i < machine->n_memories; i++)
        json_array_append_new(list, json_integer(machine->nodes[i]));
    return list;
}

json_t *tccl_machine_to_json(const struct tccl_machine *machine)
{
    json_t *json =
        json_pack("{s:s, s:i, s:s, s:i, s:o, s:o, s:o, s:o, s:o}", "format", "tccl-machine",
                  "version", 1, "name", machine->name, "memories", machine->n_memories, "switches",
                  switches_json(machine), "gpus", gpus_json(machine), "nics", nics_json(machine),
                  "p2p", pairs_json(machine, false), "gpudirect", pairs_json(machine, true));
    if (json && tccl_cpu_word(machine->cpu))
        json_object_set_new(json, "cpu", json_string(tccl_cpu_word(machine->cpu)));
    if (json && !has_usual_nodes(machine))
        json_object_set_new(json, "nodes", nodes_json(machine));
    return json;
}

void tccl_machine_id(const struct tccl_machine *machine, char id[static TCCL_HASH_HEX])
{
    /* Bounds of the machine keep the text far below this. */
    char text[16384] = "";
    cleanup_file FILE *out = fmemopen(text, sizeof(text), "w");
    if (!out) {
        tccl_hash128_hex(machine, sizeof(*machine), id); /* no memory: an id that no profile has */
        return;
    }
    fprintf(out, "machine 1 %d\n", machine->n_memories);
    for (int i = 0; i < machine->n_memories && !has_usual_nodes(machine); i++)
        fprintf(out, "node %d\n", machine->nodes[i]);
    for (int i = 0; i < machine->n_switches; i++)
        fprintf(out, "switch %d %d\n", machine->switches[i].numa, machine->switches[i].parent);
    for (int i = 0; i < machine->n_gpus; i++) {
        const struct tccl_gpu *gpu = &machine->gpus[i];
        fprintf(out, "gpu %s %d %d %d %s\n", gpu->busid, gpu->numa, gpu->sm, gpu->parent,
                gpu->model);
    }
    for (int i = 0; i < machine->n_nics; i++) {
        const struct tccl_nic *nic = &machine->nics[i];
        fprintf(out, "nic %s %s %d %.3f %d\n", nic->name, nic->busid, nic->numa, nic->gbps,
                nic->parent);
    }
    for (int a = 0; a < machine->n_gpus; a++)
        for (int b = 0; b < machine->n_gpus; b++)
            fputc(machine->p2p[a][b] ? '1' : '0', out);
    fputc('\n', out);
    for (int nic = 0; nic < machine->n_nics; nic++)
        for (int gpu = 0; gpu < machine->n_gpus; gpu++)
            fputc(machine->gpudirect[nic][gpu] ? '1' : '0', out);
    fflush(out);
    tccl_hash128_hex(text, strlen(text), id);
}

int tccl_machine_parent(const struct tccl_machine *machine, struct tccl_device device)
{
    return device.kind == TCCL_GPU   ? machine->gpus[device.index].parent
           : device.kind == TCCL_NIC ? machine->nics[device.index].parent
                                     : -1;
}

int tccl_machine_numa(const struct tccl_machine *machine, struct tccl_device device)
{
    return device.kind == TCCL_GPU   ? machine->gpus[device.index].numa
           : device.kind == TCCL_NIC ? machine->nics[device.index].numa
                                     : device.index;
}

enum tccl_path tccl_machine_path(const struct tccl_machine *machine, struct tccl_device a,
                                 struct tccl_device b)
{
    for (int i = tccl_machine_parent(machine, a); i >= 0; i = machine->switches[i].parent)
        for (int j = tccl_machine_parent(machine, b); j >= 0; j = machine->switches[j].parent)
            if (i == j)
                return TCCL_PATH_SWITCH;
    return tccl_machine_numa(machine, a) == tccl_machine_numa(machine, b) ? TCCL_PATH_NODE
                                                                          : TCCL_PATH_SYSTEM;
}

int tccl_machine_find_gpu(const struct tccl_machine *machine, const char *busid)
{
    tccl_bus wanted, here;
    if (tccl_bus_parse(busid, &wanted) != 0)
        return -1;
    for (int i = 0; i < machine->n_gpus; i++)
        if (tccl_bus_parse(machine->gpus[i].busid, &here) == 0 && here == wanted)
            return i;
    return -1;
}

int tccl_machine_find_nic(const struct tccl_machine *machine, const char *name)
{
    for (int i = 0; i < machine->n_nics; i++)
        if (strcmp(machine->nics[i].name, name) == 0)
            return i;
    return -1;
}

uint32_t tccl_machine_fabric(const struct tccl_machine *machine, int nic)
{
    uint32_t nics = 0;
    for (int i = 0; i < machine->n_nics; i++)
        if (strcmp(machine->nics[i].fabric, machine->nics[nic].fabric) == 0)
            nics |= UINT32_C(1) << i;
    return nics;
}

static bool has_device(const struct tccl_machine *machine, struct tccl_device device)
{
    const int counts[] = {machine->n_gpus, machine->n_memories, machine->n_nics};
    return device.kind <= TCCL_NIC && device.index < counts[device.kind];
}

int tccl_machine_allows(const struct tccl_machine *machine, tccl_transfer transfer,
                        struct tccl_error *err)
{
    struct tccl_device from = tccl_transfer_initiator(transfer);
    struct tccl_device to = tccl_transfer_target(transfer);
    char text[12];
    if (tccl_transfer_valid(transfer) && has_device(machine, from) && has_device(machine, to)) {
        if (to.kind != TCCL_GPU)
            return 0;
        if (from.kind == TCCL_GPU ? machine->p2p[from.index][to.index]
                                  : machine->gpudirect[from.index][to.index])
            return 0;
        tccl_transfer_format(transfer, text);
        return tccl_fail(err, "%s: the machine has no %s between the two", text,
                         from.kind == TCCL_GPU ? "P2P" : "GPUDirect");
    }
    tccl_transfer_format(transfer, text);
    return tccl_fail(err, "%s: no such transfer: the machine has %d GPUs, %d memories, %d NICs",
                     text, machine->n_gpus, machine->n_memories, machine->n_nics);
}
