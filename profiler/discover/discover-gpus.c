/* discover-gpus.c: the GPUs: on the PCI tree, in NVML and in the driver's /proc, by bus id. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bus.h"
#include "discover/discover-parts.h"
#include "discover/sysfs.h"

enum { NVIDIA = 0x10de, CLASS_VGA = 0x0300, CLASS_3D = 0x0302 };

/* GPUs before they are in order. */
struct gpu {
    hwloc_obj_t object;
    char busid[TCCL_BUSID];
};

struct gpus {
    int count;
    struct gpu list[TCCL_MAX_GPUS];
};

/* NVML's entry of a GPU, or NULL. */
static const struct tccl_nvml_gpu *nvml_gpu(const struct tccl_scene *scene, const char *busid)
{
    for (int i = 0; i < scene->nvml.n_gpus; i++)
        if (strcmp(scene->nvml.gpus[i].busid, busid) == 0)
            return &scene->nvml.gpus[i];
    return NULL;
}

static int add(struct gpus *gpus, hwloc_obj_t object, const char *busid, struct tccl_error *err)
{
    if (gpus->count == TCCL_MAX_GPUS)
        return tccl_fail(err, "more than %d GPUs: that many are not supported", TCCL_MAX_GPUS);
    gpus->list[gpus->count].object = object;
    snprintf(gpus->list[gpus->count++].busid, TCCL_BUSID, "%s", busid);
    return 0;
}

static int compare(const void *a, const void *b)
{
    return tccl_busid_compare(((const struct gpu *)a)->busid, ((const struct gpu *)b)->busid);
}

static bool has(const struct gpus *gpus, const char *busid)
{
    for (int i = 0; i < gpus->count; i++)
        if (strcmp(gpus->list[i].busid, busid) == 0)
            return true;
    return false;
}

/* GPUs of the PCI tree. Where NVML answers, those that it doesn't list can't be used. */
static int collect_pci(struct tccl_scene *scene, struct gpus *gpus, struct tccl_error *err)
{
    hwloc_obj_t object = NULL;
    char busid[TCCL_BUSID];
    while ((object = hwloc_get_next_pcidev(scene->topology, object))) {
        const struct hwloc_pcidev_attr_s *pci = &object->attr->pcidev;
        if (pci->vendor_id != NVIDIA || (pci->class_id != CLASS_VGA && pci->class_id != CLASS_3D))
            continue;
        tccl_scene_busid(object, busid);
        if (scene->nvml.n_gpus > 0 && !nvml_gpu(scene, busid)) {
            tccl_scene_note(scene,
                            "GPU %s is left out: NVML doesn't list it (no driver for it, or "
                            "lost)",
                            busid);
            continue;
        }
        if (has(gpus, busid))
            return tccl_fail(err, "two devices with bus id %s", busid);
        if (add(gpus, object, busid, err) != 0)
            return -1;
    }
    return 0;
}

/* The model in the words of whoever knows it best. */
static void name_gpu(struct tccl_scene *scene, hwloc_obj_t object, struct tccl_gpu *gpu,
                     const struct tccl_nvml_gpu *nvml)
{
    const char *model = nvml && nvml->name[0] ? nvml->name : NULL;
    const char *root = scene->options->root;
    if (!model && scene->facts &&
        tccl_sys_member(root, "Model", gpu->model, sizeof(gpu->model),
                        "/proc/driver/nvidia/gpus/%s/information", gpu->busid))
        return;
    for (hwloc_obj_t os = object ? object->io_first_child : NULL; os && !model;
         os = os->next_sibling)
        model = hwloc_obj_get_info_by_name(os, "GPUModel");
    if (!model && object)
        model = hwloc_obj_get_info_by_name(object, "PCIDevice");
    if (!model && object)
        model = object->name;
    tccl_sys_clean(gpu->model, sizeof(gpu->model), model);
    if (!gpu->model[0] && object)
        snprintf(gpu->model, sizeof(gpu->model), "%04x:%04x", object->attr->pcidev.vendor_id,
                 object->attr->pcidev.device_id);
}

static void describe(struct tccl_scene *scene, const struct gpu *from, int i)
{
    struct tccl_found *found = scene->found;
    struct tccl_gpu *gpu = &found->site.machine.gpus[i];
    const struct tccl_nvml_gpu *nvml = nvml_gpu(scene, from->busid);
    char what[TCCL_BUSID + 8], minor[16], *end;
    *gpu = (struct tccl_gpu){.parent = -1, .sm = nvml ? nvml->sm : 0};
    memcpy(gpu->busid, from->busid, TCCL_BUSID);
    name_gpu(scene, from->object, gpu, nvml);
    gpu->minor = nvml ? nvml->minor : -1;
    if (gpu->minor < 0 && scene->facts &&
        tccl_sys_member(scene->options->root, "Device Minor", minor, sizeof(minor),
                        "/proc/driver/nvidia/gpus/%s/information", gpu->busid)) {
        long number = strtol(minor, &end, 10);
        gpu->minor = end != minor && number >= 0 && number <= 9999 ? (int)number : -1;
    }
    snprintf(what, sizeof(what), "GPU %s", gpu->busid);
    gpu->numa =
        tccl_scene_memory_of(scene, from->object, gpu->busid, what, &scene->gpu_unplaced[i]);
    scene->gpu_object[i] = from->object;
    memcpy(found->site.gpu_busid[i], gpu->busid, TCCL_BUSID);
    found->gpu_index[i] = nvml ? nvml->index : -1;
}

int tccl_scene_gpus(struct tccl_scene *scene, struct tccl_error *err)
{
    struct tccl_machine *machine = scene->machine;
    struct gpus gpus = {0};
    if (collect_pci(scene, &gpus, err) != 0)
        return -1;
    for (int i = 0; i < scene->nvml.n_gpus; i++) {
        const char *busid = scene->nvml.gpus[i].busid;
        if (has(&gpus, busid))
            continue;
        tccl_scene_note(scene, "GPU %s is not on the PCI tree that the kernel shows", busid);
        if (add(&gpus, NULL, busid, err) != 0)
            return -1;
    }
    if (gpus.count == 0 && scene->found->recorded)
        return tccl_fail(err, "no GPU of NVIDIA in it (or recorded without I/O devices)");
    if (gpus.count == 0)
        return tccl_fail(err, "no GPU found (%s): name a model with --model, or use --backend host",
                         scene->nvml_trouble[0] ? scene->nvml_trouble : "NVML lists none");
    if (scene->nvml_failed)
        return tccl_fail(err, "%s", scene->nvml_trouble);
    if (scene->nvml_trouble[0] && scene->facts)
        tccl_scene_note(scene, "%s: what only NVML knows is missing", scene->nvml_trouble);
    machine->n_gpus = gpus.count;
    qsort(gpus.list, (size_t)gpus.count, sizeof(*gpus.list), compare);
    for (int i = 0; i < gpus.count; i++)
        describe(scene, &gpus.list[i], i);
    return 0;
}

static int gpu_of(const struct tccl_scene *scene, int n_gpus, hwloc_obj_t object)
{
    while (object && object->type == HWLOC_OBJ_OS_DEVICE)
        object = object->parent;
    for (int i = 0; object && i < n_gpus; i++)
        if (scene->gpu_object[i] == object)
            return i;
    return -1;
}

static bool is_linked(const struct hwloc_distances_s *table, unsigned a, unsigned b)
{
    return a != b && table->values[a * table->nbobjs + b] > 0;
}

static bool is_on_nvswitch(const struct hwloc_distances_s *table, unsigned gpu)
{
    for (unsigned i = 0; i < table->nbobjs; i++) {
        hwloc_obj_t object = table->objs[i];
        if (object && object->subtype && strcmp(object->subtype, "NVSwitch") == 0 &&
            is_linked(table, gpu, i))
            return true;
    }
    return false;
}

/* Bandwidths of NVLinks, which an lstopo with NVML records: those GPUs reach each other. */
static bool add_nvlinks(struct tccl_scene *scene)
{
    struct tccl_machine *machine = scene->machine;
    struct hwloc_distances_s *table;
    unsigned count = 1;
    bool any = false;
    if (!scene->topology ||
        hwloc_distances_get_by_name(scene->topology, "NVLinkBandwidth", &count, &table, 0) < 0 ||
        count == 0)
        return false;
    for (unsigned i = 0; i < table->nbobjs; i++)
        for (unsigned j = 0; j < table->nbobjs; j++) {
            int a = gpu_of(scene, machine->n_gpus, table->objs[i]);
            int b = gpu_of(scene, machine->n_gpus, table->objs[j]);
            /* By an NVLink between the two, or both to NVSwitches, which are joined among
             * themselves. */
            if (a < 0 || b < 0 || a == b ||
                !(is_linked(table, i, j) || (is_on_nvswitch(table, i) && is_on_nvswitch(table, j))))
                continue;
            machine->p2p[a][b] = machine->p2p[b][a] = true;
            any = true;
        }
    hwloc_distances_release(scene->topology, table);
    return any;
}

/* Nobody knows: what usual GPUs of data centres can. */
static void p2p_from_tree(struct tccl_scene *scene)
{
    struct tccl_machine *machine = scene->machine;
    for (int a = 0; a < machine->n_gpus; a++)
        for (int b = 0; b < machine->n_gpus; b++)
            machine->p2p[a][b] =
                a != b &&
                tccl_machine_path(machine, (struct tccl_device){TCCL_GPU, (uint8_t)a},
                                  (struct tccl_device){TCCL_GPU, (uint8_t)b}) != TCCL_PATH_SYSTEM;
    bool nvlinks = add_nvlinks(scene);
    snprintf(scene->found->p2p_source, sizeof(scene->found->p2p_source), "PCI tree%s",
             nvlinks ? ", NVLinks" : "");
    if (machine->n_gpus > 1)
        tccl_scene_note(scene, "P2P is assumed between GPUs at one NUMA node%s, and not elsewhere",
                        nvlinks ? " or with NVLinks" : "");
}

void tccl_scene_p2p(struct tccl_scene *scene)
{
    struct tccl_machine *machine = scene->machine;
    const struct tccl_nvml *nvml = &scene->nvml;
    if (!nvml->knows_p2p || nvml->n_gpus != machine->n_gpus) {
        p2p_from_tree(scene);
        return;
    }
    /* The machine's GPUs are NVML's, in the same order. */
    for (int a = 0; a < machine->n_gpus; a++)
        for (int b = 0; b < machine->n_gpus; b++)
            machine->p2p[a][b] = a != b && nvml->read[a][b] && nvml->read[b][a] &&
                                 nvml->write[a][b] && nvml->write[b][a];
    snprintf(scene->found->p2p_source, sizeof(scene->found->p2p_source), "NVML");
}

int tccl_scene_stand_ins(struct tccl_scene *scene, int count, struct tccl_error *err)
{
    struct tccl_found *found = scene->found;
    struct tccl_machine *machine = &found->site.machine;
    const struct tccl_gpu real = machine->gpus[0];
    tccl_bus bus = 0;
    if (machine->n_gpus != 1)
        return tccl_fail(err,
                         "--devices: this machine has %d GPUs; one that stands for several "
                         "must be the only one",
                         machine->n_gpus);
    if (count > TCCL_MAX_GPUS)
        return tccl_fail(err, "--devices %d: at most %d", count, TCCL_MAX_GPUS);
    tccl_bus_parse(real.busid, &bus);
    for (int i = 0; count > 1 && i < count; i++) {
        struct tccl_gpu *gpu = &machine->gpus[i];
        *gpu = real;
        tccl_bus_format(bus + (tccl_bus)i, gpu->busid); /* which no other device has here */
        snprintf(gpu->model, sizeof(gpu->model), "%.40s (%d of %d stand-ins)", real.model, i + 1,
                 count);
        memcpy(found->site.gpu_busid[i], real.busid, TCCL_BUSID);
        found->gpu_index[i] = found->gpu_index[0];
        found->n_users[i] = found->n_users[0];
        memcpy(found->user[i], found->user[0], sizeof(found->user[0]));
        for (int other = 0; other < count; other++)
            machine->p2p[i][other] = i != other;
    }
    if (count == 1)
        return 0;
    machine->n_gpus = count;
    found->marks |= TCCL_MARK_STAND_IN;
    snprintf(machine->name, sizeof(machine->name), "%d-stand-ins", count);
    tccl_scene_note(scene, "GPU %s stands for %d GPUs: nothing measured so is served to jobs",
                    real.busid, count);
    return 0;
}
