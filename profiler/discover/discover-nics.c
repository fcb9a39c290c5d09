/* discover-nics.c: the NICs as NCCL chooses them: RDMA devices if there are any, else Ethernet
 * interfaces of PCI devices. */
#include <stdio.h>
#include <string.h>

#include "discover/discover-parts.h"
#include "discover/sysfs.h"

enum { MAX_PORTS = 8, CLASS_INFINIBAND = 0x0207, AMAZON = 0x1d0f };

/* GB/s, where a slower interface beside faster ones is taken for management. */
static const double usual_gbps = 1.25;

struct nic {
    hwloc_obj_t object;
    struct tccl_nic nic;
    const char *kind;
    char netdev[TCCL_NAME];
    bool rdma, up, is_virtual, guessed; /* guessed: nobody knows its rate */
    int ports_up;
};

static hwloc_obj_t os_child(hwloc_obj_t pci, hwloc_obj_osdev_type_t type)
{
    for (hwloc_obj_t os = pci->io_first_child; os; os = os->next_sibling)
        if (os->type == HWLOC_OBJ_OS_DEVICE && os->attr->osdev.type == type && os->name &&
            os->name[0])
            return os;
    return NULL;
}

/* What the PCIe link can carry, of the rates that NICs have. */
static double guess_rate(const struct nic *nic)
{
    static const int rates[] = {400, 200, 100, 56, 40, 25, 10, 1}; /* Gb/s */
    double link = nic->object->attr->pcidev.linkspeed * 8;
    for (size_t i = 0; link > 0 && i < sizeof(rates) / sizeof(*rates); i++)
        if (rates[i] <= link * 1.3) /* rates of old links were given before encoding */
            return rates[i] / 8.0;
    return nic->rdma ? 12.5 : usual_gbps;
}

/* A recorded "Port1State" is the number. No state known: up. */
static bool port_is_up(const struct tccl_scene *scene, hwloc_obj_t os, int port, bool *known)
{
    char name[32];
    const char *recorded;
    enum tccl_sys_link link =
        scene->facts ? tccl_sys_port_link(scene->options->root, os->name, port) : TCCL_LINK_UNKNOWN;
    *known = link != TCCL_LINK_UNKNOWN;
    if (*known)
        return link == TCCL_LINK_UP;
    snprintf(name, sizeof(name), "Port%dState", port);
    recorded = hwloc_obj_get_info_by_name(os, name);
    *known = recorded;
    return recorded && atoi(recorded) == TCCL_PORT_ACTIVE;
}

/* The first port that is up, 0 if none is. */
static int find_port(const struct tccl_scene *scene, hwloc_obj_t os, struct nic *nic)
{
    int first = 0, n_known = 0;
    bool known;
    for (int port = 1; port <= MAX_PORTS; port++) {
        bool up = port_is_up(scene, os, port, &known);
        n_known += known;
        nic->ports_up += up;
        if (up && !first)
            first = port;
    }
    return n_known == 0 ? 1 : first;
}

static const char *rdma_kind(struct tccl_scene *scene, hwloc_obj_t pci, const char *name, int port)
{
    char layer[32] = "";
    if (scene->facts)
        tccl_sys_text(scene->options->root, layer, sizeof(layer),
                      "/sys/class/infiniband/%s/ports/%d/link_layer", name, port);
    if (strcmp(layer, "InfiniBand") == 0)
        return "infiniband";
    if (strcmp(layer, "Ethernet") == 0)
        return "roce";
    if (pci->attr->pcidev.vendor_id == AMAZON)
        return "efa";
    if (layer[0])
        return "rdma";
    for (hwloc_obj_t os = pci->io_first_child; os; os = os->next_sibling)
        if (os->name && strncmp(os->name, "ib", 2) == 0)
            return "infiniband";
    return pci->attr->pcidev.class_id == CLASS_INFINIBAND ? "infiniband" : "roce";
}

/* What a PCI device is as a NIC. Returns false if it is none. */
static bool look_at(struct tccl_scene *scene, hwloc_obj_t pci, struct nic *nic)
{
    hwloc_obj_t rdma = os_child(pci, HWLOC_OBJ_OSDEV_OPENFABRICS);
    hwloc_obj_t os = rdma ? rdma : os_child(pci, HWLOC_OBJ_OSDEV_NETWORK);
    if (!os)
        return false;
    *nic = (struct nic){.object = pci, .rdma = rdma};
    nic->nic.parent = -1;
    tccl_scene_busid(pci, nic->nic.busid);
    nic->is_virtual =
        scene->facts &&
        tccl_sys_exists(scene->options->root, "/sys/bus/pci/devices/%s/physfn", nic->nic.busid);
    if (rdma) {
        hwloc_obj_t net = os_child(nic->object, HWLOC_OBJ_OSDEV_NETWORK);
        char text[64] = "";
        int port = find_port(scene, os, nic);
        nic->up = port > 0;
        nic->kind = rdma_kind(scene, nic->object, os->name, port > 0 ? port : 1);
        tccl_sys_clean(nic->netdev, sizeof(nic->netdev), net ? net->name : "");
        if (scene->facts)
            tccl_sys_text(scene->options->root, text, sizeof(text),
                          "/sys/class/infiniband/%s/ports/%d/rate", os->name, port);
        nic->nic.gbps = strtod(text, NULL) / 8;
    } else {
        long speed = 0;
        nic->kind = pci->attr->pcidev.class_id == CLASS_INFINIBAND ? "infiniband" : "ethernet";
        tccl_sys_clean(nic->netdev, sizeof(nic->netdev), os->name);
        nic->up =
            !scene->facts || tccl_sys_net_link(scene->options->root, os->name) != TCCL_LINK_DOWN;
        if (scene->facts &&
            tccl_sys_number(scene->options->root, &speed, "/sys/class/net/%s/speed", os->name))
            nic->nic.gbps = (double)speed / 8000;
    }
    nic->guessed = !(nic->nic.gbps >= 0.001 && nic->nic.gbps <= 10000);
    if (nic->guessed)
        nic->nic.gbps = guess_rate(nic);
    snprintf(nic->nic.fabric, sizeof(nic->nic.fabric), "%s",
             strcmp(nic->kind, "roce") == 0 ? "ethernet" : nic->kind);
    tccl_sys_clean(nic->nic.name, sizeof(nic->nic.name), os->name);
    return true;
}

/* What isn't taken, by reason; one note each. */
struct left_out {
    struct tccl_tally is_virtual, down, beside_rdma, slow;
};

static void say_left_out(struct tccl_scene *scene, const struct tccl_tally *tally, const char *why)
{
    char others[TCCL_TALLY_TEXT];
    if (tally->count > 0)
        tccl_scene_note(scene, "NIC %s%s left out: %s", tally->first,
                        tccl_tally_others(tally, others), why);
}

static int compare(const void *a, const void *b)
{
    return tccl_busid_compare(((const struct nic *)a)->nic.busid,
                              ((const struct nic *)b)->nic.busid);
}

static int collect(struct tccl_scene *scene, struct nic nics[static TCCL_MAX_NICS],
                   struct tccl_error *err)
{
    bool any_rdma = false, any_fast = false;
    struct left_out left_out = {0};
    hwloc_obj_t pci = NULL;
    struct nic nic;
    int count = 0;
    while ((pci = hwloc_get_next_pcidev(scene->topology, pci)))
        if (look_at(scene, pci, &nic) && nic.up && !nic.is_virtual) {
            any_rdma |= nic.rdma;
            any_fast |= !nic.guessed && nic.nic.gbps >= usual_gbps;
        }
    while ((pci = hwloc_get_next_pcidev(scene->topology, pci))) {
        if (!look_at(scene, pci, &nic))
            continue;
        struct tccl_tally *why =
            nic.is_virtual          ? &left_out.is_virtual
            : !nic.up               ? &left_out.down
            : any_rdma && !nic.rdma ? &left_out.beside_rdma
            : !nic.rdma && any_fast && !nic.guessed && nic.nic.gbps < usual_gbps ? &left_out.slow
                                                                                 : NULL;
        char name[TCCL_NAME + TCCL_BUSID + 4];
        snprintf(name, sizeof(name), "%.40s (%s)", nic.nic.name, nic.nic.busid);
        if (why) {
            tccl_tally_add(why, name);
            continue;
        }
        if (count == TCCL_MAX_NICS)
            return tccl_fail(err, "more than %d NICs: that many are not supported", TCCL_MAX_NICS);
        nics[count++] = nic;
    }
    say_left_out(scene, &left_out.is_virtual, "virtual functions");
    say_left_out(scene, &left_out.down, "the link is down");
    say_left_out(scene, &left_out.beside_rdma, "NCCL takes the RDMA devices");
    say_left_out(scene, &left_out.slow, "slow beside the other ones");
    qsort(nics, (size_t)count, sizeof(*nics), compare);
    return count;
}

static void keep(struct tccl_scene *scene, const struct nic *nic)
{
    struct tccl_found *found = scene->found;
    int i = found->site.machine.n_nics++;
    char what[TCCL_NAME + 8];
    found->site.machine.nics[i] = nic->nic;
    snprintf(what, sizeof(what), "NIC %s", nic->nic.name);
    found->site.machine.nics[i].numa =
        tccl_scene_memory_of(scene, nic->object, nic->nic.busid, what, &scene->nic_unplaced[i]);
    snprintf(found->nic_kind[i], sizeof(found->nic_kind[i]), "%s", nic->kind);
    snprintf(found->nic_netdev[i], sizeof(found->nic_netdev[i]), "%s", nic->netdev);
    found->nic_up[i] = nic->up;
    scene->nic_object[i] = nic->object;
    if (nic->ports_up > 1)
        tccl_scene_note(scene, "NIC %s has %d ports that are up; the first one counts",
                        nic->nic.name, nic->ports_up);
}

int tccl_scene_nics(struct tccl_scene *scene, struct tccl_error *err)
{
    struct tccl_machine *machine = scene->machine;
    struct nic nics[TCCL_MAX_NICS];
    int count = collect(scene, nics, err);
    if (count < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        char real[TCCL_NAME];
        memcpy(real, nics[i].nic.name, sizeof(real));
        tccl_nic_rename(nics[i].nic.name);
        if (strcmp(nics[i].nic.name, real) != 0)
            tccl_scene_note(scene, "NIC %s is called so here; its real name has other characters",
                            nics[i].nic.name);
        if (tccl_machine_find_nic(machine, nics[i].nic.name) >= 0)
            return tccl_fail(err, "two NICs are called %s", nics[i].nic.name);
        keep(scene, &nics[i]);
    }
    /* Rates that nobody knows: one note for those that are alike. */
    char others[TCCL_TALLY_TEXT];
    for (int i = 0; i < count; i++) {
        struct tccl_tally alike = {0};
        bool said = false;
        for (int j = 0; j < count; j++)
            if (nics[j].guessed && nics[j].nic.gbps == nics[i].nic.gbps) {
                tccl_tally_add(&alike, nics[j].nic.name);
                said |= j < i;
            }
        if (nics[i].guessed && !said)
            tccl_scene_note(scene, "the rate of NIC %s%s isn't known: %.4g GB/s is taken%s",
                            alike.first, tccl_tally_others(&alike, others), nics[i].nic.gbps,
                            nics[i].object->attr->pcidev.linkspeed > 0 ? ", by its PCIe link" : "");
    }
    if (count == 0)
        tccl_scene_note(scene, "no NIC that is up: only rings inside this node can be profiled");
    return 0;
}

void tccl_scene_gpudirect(struct tccl_scene *scene)
{
    struct tccl_machine *machine = scene->machine;
    bool able = !scene->facts || tccl_sys_gpudirect(scene->options->root), any_near = false;
    for (int nic = 0; nic < machine->n_nics; nic++)
        for (int gpu = 0; gpu < machine->n_gpus; gpu++) {
            bool rdma = strcmp(scene->found->nic_kind[nic], "ethernet") != 0;
            bool near =
                tccl_machine_path(machine, (struct tccl_device){TCCL_NIC, (uint8_t)nic},
                                  (struct tccl_device){TCCL_GPU, (uint8_t)gpu}) == TCCL_PATH_SWITCH;
            machine->gpudirect[nic][gpu] = rdma && near && able;
            any_near |= rdma && near;
        }
    if (any_near && !scene->facts)
        tccl_scene_note(scene, "GPUDirect is assumed between NICs and GPUs below a common switch");
    if (any_near && !able)
        tccl_scene_note(scene, "no GPUDirect: neither nvidia_peermem nor the driver's open modules "
                               "are loaded");
}
