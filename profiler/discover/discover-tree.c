/* discover-tree.c: the PCIe switches above GPUs and NICs, and the rates of their links. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discover/discover-parts.h"
#include "discover/sysfs.h"

static bool is_pci_bridge(hwloc_obj_t object)
{
    return object && object->type == HWLOC_OBJ_BRIDGE &&
           object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

/* Is there a bridge on the bus behind this one; with a device number other than 0? */
static bool has_bridge_below(hwloc_obj_t bridge, bool numbered)
{
    for (hwloc_obj_t child = bridge->io_first_child; child; child = child->next_sibling)
        if (is_pci_bridge(child) && (!numbered || child->attr->bridge.upstream.pci.dev != 0))
            return true;
    return false;
}

/* A PCIe switch shows as one bridge on its way up (the upstream port) and behind that one bridge
 * for each way down. The link behind a root port or a port down has one device, number 0: so a
 * bridge behind one that has bridges itself is a switch, and so is one at the top whose bus has
 * others. */
static bool is_switch(hwloc_obj_t bridge)
{
    hwloc_obj_t above = bridge->parent;
    if (!is_pci_bridge(above))
        return has_bridge_below(bridge, true);
    return !is_switch(above) && has_bridge_below(bridge, false);
}

/* The switch above a device or switch, entered with those above it; numa is for new ones. Returns
 * 0, or -1 with err. */
static int enter_above(struct tccl_scene *scene, hwloc_obj_t object, int numa, int *parent,
                       struct tccl_error *err)
{
    struct tccl_machine *machine = scene->machine;
    hwloc_obj_t bridge = object->parent;
    char name[TCCL_BUSID];
    int above;
    while (is_pci_bridge(bridge) && !is_switch(bridge))
        bridge = bridge->parent;
    *parent = -1;
    if (!is_pci_bridge(bridge))
        return 0;
    tccl_scene_busid(bridge, name);
    for (int i = 0; i < machine->n_switches; i++)
        if (strcmp(machine->switches[i].name, name) == 0) {
            *parent = i;
            return 0;
        }
    if (enter_above(scene, bridge, numa, &above, err) != 0)
        return -1;
    if (machine->n_switches == TCCL_MAX_SWITCHES)
        return tccl_fail(err,
                         "more than %d PCIe switches above GPUs and NICs: that many are not "
                         "supported",
                         TCCL_MAX_SWITCHES);
    struct tccl_switch *entry = &machine->switches[machine->n_switches];
    *entry = (struct tccl_switch){.numa = above >= 0 ? machine->switches[above].numa : numa,
                                  .parent = above};
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    *parent = machine->n_switches++;
    return 0;
}

/* What is below one switch is next to one memory. */
static int place(struct tccl_scene *scene, hwloc_obj_t object, int *numa, int *parent,
                 struct tccl_error *err)
{
    if (!object)
        return 0;
    if (enter_above(scene, object, *numa, parent, err) != 0)
        return -1;
    if (*parent >= 0)
        *numa = scene->machine->switches[*parent].numa;
    return 0;
}

double tccl_slot_gbps(double gts, int lanes)
{
    bool known = gts >= 2.5 && gts <= 64;
    /* 15, 30, 60, 120, 240 and 480 for 2.5 to 64 GT/s, of which up to 5 GT/s a fifth is coding. */
    return (known ? gts * (gts <= 5 ? 6 : 7.5) : 60) / 80 * (lanes > 0 && lanes <= 32 ? lanes : 16);
}

/* Of a device that /sys has: the slower of it and the port above, as NCCL has it
 * (ncclTopoGetXmlFromSys). 0: it is not there. */
static double slot_of(const struct tccl_scene *scene, const char *busid)
{
    static const char *const ends[] = {"", "/.."};
    const char *root = scene->options->root;
    double gts = 0;
    long lanes = -1;
    if (!scene->facts || !tccl_sys_exists(root, "/sys/bus/pci/devices/%s", busid))
        return 0;
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        char text[32];
        long width = 0;
        tccl_sys_text(root, text, sizeof(text), "/sys/bus/pci/devices/%s%s/max_link_speed", busid,
                      ends[i]);
        tccl_sys_number(root, &width, "/sys/bus/pci/devices/%s%s/max_link_width", busid, ends[i]);
        double here = strtod(text, NULL);
        gts = here > 0 && (gts <= 0 || here < gts) ? here : gts;
        lanes = lanes < 0 || width < lanes ? width : lanes;
    }
    return tccl_slot_gbps(gts, lanes > 32 ? 0 : (int)lanes);
}

int tccl_scene_switches(struct tccl_scene *scene, struct tccl_error *err)
{
    struct tccl_machine *machine = scene->machine;
    for (int i = 0; i < machine->n_gpus; i++) {
        struct tccl_gpu *gpu = &machine->gpus[i];
        if (place(scene, scene->gpu_object[i], &gpu->numa, &gpu->parent, err) != 0)
            return -1;
        gpu->slot = slot_of(scene, gpu->busid);
    }
    for (int i = 0; i < machine->n_nics; i++) {
        struct tccl_nic *nic = &machine->nics[i];
        if (place(scene, scene->nic_object[i], &nic->numa, &nic->parent, err) != 0)
            return -1;
        nic->slot = slot_of(scene, nic->busid);
    }
    for (int i = 0; i < machine->n_switches; i++)
        machine->switches[i].slot = slot_of(scene, machine->switches[i].name);
    return 0;
}
