/* discover-tree.c: the PCIe switches above GPUs and NICs. */
#include <stdio.h>
#include <string.h>

#include "discover/discover-parts.h"

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

int tccl_scene_switches(struct tccl_scene *scene, struct tccl_error *err)
{
    struct tccl_machine *machine = scene->machine;

    for (int i = 0; i < machine->n_gpus; i++)
        if (place(scene, scene->gpu_object[i], &machine->gpus[i].numa, &machine->gpus[i].parent,
                  err) != 0)
            return -1;
    for (int i = 0; i < machine->n_nics; i++)
        if (place(scene, scene->nic_object[i], &machine->nics[i].numa, &machine->nics[i].parent,
                  err) != 0)
            return -1;
    return 0;
}
