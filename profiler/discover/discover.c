/* discover.c: the machine that this is, or that lstopo or NCCL recorded. */
#include "discover/discover.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "discover/discover-parts.h"
#include "discover/sysfs.h"

enum { MAX_NOTES = sizeof((struct tccl_found){0}.notes) / sizeof(*(struct tccl_found){0}.notes) };

void tccl_scene_note(struct tccl_scene *scene, const char *format, ...)
{
    struct tccl_found *found = scene->found;
    char text[sizeof(found->notes[0])];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (int i = 0; i < found->n_notes; i++)
        if (strcmp(found->notes[i], text) == 0)
            return;
    if (found->n_notes == MAX_NOTES)
        snprintf(found->notes[MAX_NOTES - 1], sizeof(text), "more notes than fit here");
    else
        memcpy(found->notes[found->n_notes++], text, sizeof(text));
}

void tccl_tally_add(struct tccl_tally *tally, const char *name)
{
    if (tally->count++ == 0)
        snprintf(tally->first, sizeof(tally->first), "%s", name);
}

const char *tccl_tally_others(const struct tccl_tally *tally, char text[static TCCL_TALLY_TEXT])
{
    if (tally->count < 3)
        return tally->count < 2 ? "" : " and another";
    snprintf(text, TCCL_TALLY_TEXT, " and %d others", tally->count - 1);
    return text;
}

void tccl_scene_busid(hwloc_obj_t object, char busid[static TCCL_BUSID])
{
    const struct hwloc_pcidev_attr_s *pci = object->type == HWLOC_OBJ_BRIDGE
                                                ? &object->attr->bridge.upstream.pci
                                                : &object->attr->pcidev;
    snprintf(busid, TCCL_BUSID, "%04x:%02x:%02x.%x", (unsigned)pci->domain, pci->bus,
             pci->dev & 31U, pci->func & 7U);
}

int tccl_busid_compare(const char *a, const char *b)
{
    size_t length = strlen(a), other = strlen(b);
    return length != other ? (length > other) - (length < other) : strcmp(a, b);
}

/* A fact of the topology, "" if it is not there; older files have a package's facts at the root. */
static const char *fact(hwloc_topology_t topology, const char *name)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *value = package ? hwloc_obj_get_info_by_name(package, name) : NULL;
    if (!value)
        value = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), name);
    return value ? value : "";
}

enum tccl_cpu tccl_cpu_of(const char *architecture, const char *vendor, int family, int model)
{
    if (strncmp(architecture, "ppc64", 5) == 0)
        return TCCL_CPU_POWER;
    if (strcmp(architecture, "aarch64") == 0 || strcmp(architecture, "arm64") == 0)
        return TCCL_CPU_ARM;
    if (strcmp(vendor, "AuthenticAMD") == 0)
        return family >= 26 ? TCCL_CPU_AMD_ZEN5 : family == 25 ? TCCL_CPU_AMD_ZEN3 : TCCL_CPU_AMD;
    /* NCCL's generations begin with the models Skylake-SP, Sapphire Rapids and Emerald Rapids. */
    if (strcmp(vendor, "GenuineIntel") == 0 && family > 0 && model > 0)
        return family != 6 || model < 0x55 ? TCCL_CPU_INTEL_BDW
               : model < 0x8f              ? TCCL_CPU_INTEL_SKL
               : model < 0xcf              ? TCCL_CPU_INTEL_SRP
                                           : TCCL_CPU_INTEL_ERP;
    if (strcmp(vendor, "CentaurHauls") == 0 || strstr(vendor, "Shanghai"))
        return family == 7 && model == 0x5b ? TCCL_CPU_YONGFENG : TCCL_CPU_ZHAOXIN;
    return TCCL_CPU_UNKNOWN;
}

/* "4x-NVIDIA-A100-PCIE-40GB": the same on all nodes of a kind, and easy to type. */
static void name_machine(struct tccl_machine *machine)
{
    bool mixed = false;
    for (int i = 1; i < machine->n_gpus; i++)
        mixed |= strcmp(machine->gpus[i].model, machine->gpus[0].model) != 0;
    snprintf(machine->name, sizeof(machine->name), "%dx-%.56s", machine->n_gpus,
             mixed ? "mixed" : machine->gpus[0].model);
    for (char *at = machine->name; *at; at++)
        if (strchr(" /()[]'\"\\*?", *at))
            *at = '-';
}

static void note_unplaced(struct tccl_scene *scene)
{
    const struct tccl_machine *machine = scene->machine;
    struct tccl_tally unplaced = {0};
    const char *kind = "NIC";
    char others[TCCL_TALLY_TEXT];
    for (int i = 0; i < machine->n_gpus; i++)
        if (scene->gpu_unplaced[i]) {
            kind = "GPU";
            tccl_tally_add(&unplaced, machine->gpus[i].busid);
        }
    for (int i = 0; i < machine->n_nics; i++)
        if (scene->nic_unplaced[i])
            tccl_tally_add(&unplaced, machine->nics[i].name);
    if (unplaced.count > 0)
        tccl_scene_note(scene,
                        "which NUMA node is next to %s %s%s isn't known: the first one is taken",
                        kind, unplaced.first, tccl_tally_others(&unplaced, others));
}

static int find_devices(struct tccl_scene *scene, struct tccl_error *err)
{
    struct tccl_site *site = &scene->found->site;
    struct tccl_error trouble = {0};
    /* Library and driver are asked before the PCI tree is read: they say which GPUs work. */
    int rc = scene->facts ? tccl_nvml_read(&scene->nvml, &trouble) : 1;
    scene->nvml_failed = rc < 0;
    if (rc > 0)
        tccl_fail(&trouble, "there is no libnvidia-ml.so.1");
    if (rc != 0)
        tccl_sys_clean(scene->nvml_trouble, sizeof(scene->nvml_trouble), trouble.text);
    tccl_sys_clean(scene->found->driver, sizeof(scene->found->driver), scene->nvml.driver);
    if (tccl_scene_gpus(scene, err) != 0 || tccl_scene_nics(scene, err) != 0 ||
        tccl_scene_switches(scene, err) != 0)
        return -1;
    if (scene->facts)
        tccl_scene_virtual(scene);
    note_unplaced(scene);
    tccl_scene_p2p(scene);
    tccl_scene_users(scene);
    name_machine(scene->machine);
    if (scene->options->devices > 0 &&
        tccl_scene_stand_ins(scene, scene->options->devices, err) < 0)
        return -1;
    tccl_scene_gpudirect(scene);
    for (int i = 0; i < site->machine.n_gpus; i++)
        tccl_scene_cpus(scene, site->machine.gpus[i].numa, &site->gpu_cpus[i]);
    for (int i = 0; i < site->machine.n_nics; i++)
        tccl_scene_cpus(scene, site->machine.nics[i].numa, &site->nic_cpus[i]);
    return 0;
}

static int open_topology(struct tccl_scene *scene, struct tccl_error *err)
{
    const struct tccl_discover_options *options = scene->options;
    if (options->xml && options->host)
        return tccl_fail(err, "a recorded machine has no cores that could stand for GPUs here");
    int rc = options->xml ? tccl_topology_recorded(options->xml, &scene->topology, err)
                          : tccl_topology_live(&scene->topology, err);
    if (rc < 0)
        return -1;
    scene->found->recorded = options->xml || !hwloc_topology_is_thissystem(scene->topology);
    scene->facts = !scene->found->recorded || options->root;
    return 0;
}

/* The machine of a file that NCCL wrote. Returns 0; 1 if that is another file, or none; -1 with
 * err. */
static int read_nccl(struct tccl_scene *scene, struct tccl_error *err)
{
    const struct tccl_discover_options *options = scene->options;
    cleanup_free char *text = NULL;
    size_t size;
    if (!options->xml || options->host)
        return 1;
    if (tccl_read_file(options->xml, TCCL_MAX_TOPOLOGY, &text, &size, err) != 0)
        return -1;
    if (!tccl_is_nccl_topology(text))
        return 1;
    scene->found->recorded = true;
    if (tccl_scene_nccl(scene, text, err) != 0)
        return tccl_fail_in(err, "%s", options->xml);
    tccl_scene_p2p(scene);
    name_machine(scene->machine);
    return 0;
}

int tccl_discover(const struct tccl_discover_options *options, struct tccl_found *found,
                  struct tccl_error *err)
{
    struct tccl_scene scene = {.options = options, .found = found, .machine = &found->site.machine};
    memset(found, 0, sizeof(*found));
    int read = read_nccl(&scene, err);
    if (read <= 0)
        return read;
    if (open_topology(&scene, err) != 0)
        return -1;
    bool amd = strncmp(fact(scene.topology, "CPUModel"), "AMD ", 4) == 0;
    scene.machine->cpu = tccl_cpu_of(fact(scene.topology, "Architecture"),
                                     amd ? "AuthenticAMD" : fact(scene.topology, "CPUVendor"),
                                     atoi(fact(scene.topology, "CPUFamilyNumber")),
                                     atoi(fact(scene.topology, "CPUModelNumber")));
    int rc = tccl_scene_memories(&scene, err);
    if (rc == 0)
        rc = options->host ? tccl_scene_host(&scene, err) : find_devices(&scene, err);
    hwloc_topology_destroy(scene.topology);
    if (rc < 0 && options->xml)
        tccl_fail_in(err, "%s", options->xml);
    return rc;
}
