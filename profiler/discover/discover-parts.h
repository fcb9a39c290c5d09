/* discover-parts.h: what the parts of discovery share while the machine is put together. */
#pragma once

#include "discover/discover-topology.h"
#include "discover/discover.h"
#include "machine/meter.h"

/* Devices of which one note speaks. */
struct tccl_tally {
    int count;
    char first[TCCL_NAME + 8];
};

struct tccl_scene {
    const struct tccl_discover_options *options;
    hwloc_topology_t topology;
    struct tccl_found *found;
    struct tccl_machine *machine; /* of it */
    bool facts;             /* /sys, /proc and NVML are of the machine that the topology shows */
    bool in_part, says_cpu; /* of a file that says a part only: its NICs may be PCI devices alone */
    struct tccl_nvml nvml;
    char nvml_trouble[200];           /* why NVML says nothing, "" if it does */
    bool nvml_failed;                 /* it is there, and can't say */
    bool gpu_unplaced[TCCL_MAX_GPUS]; /* nobody knows the NUMA node */
    bool nic_unplaced[TCCL_MAX_NICS];
    hwloc_obj_t gpu_object[TCCL_MAX_GPUS]; /* on the PCI tree; NULL if hwloc doesn't see it */
    hwloc_obj_t nic_object[TCCL_MAX_NICS];
};

/* Adds a note, each once; the last of too many says so. */
void tccl_scene_note(struct tccl_scene *scene, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void tccl_tally_add(struct tccl_tally *tally, const char *name);
/* "", " and another", " and 3 others": what follows the first name. */
enum { TCCL_TALLY_TEXT = 32 };
const char *tccl_tally_others(const struct tccl_tally *tally, char text[static TCCL_TALLY_TEXT]);

/* "0000:21:00.0" of a PCI device or bridge. */
void tccl_scene_busid(hwloc_obj_t object, char busid[static TCCL_BUSID]);
/* For qsort: bus ids of one length order as their texts do; longer domains come last. */
int tccl_busid_compare(const char *a, const char *b);

/* discover-memory.c: the NUMA nodes that have memory. Returns 0, or -1 with err. */
int tccl_scene_memories(struct tccl_scene *scene, struct tccl_error *err);
/* Index of the memory next to a PCI device; object may be NULL. what is for notes: "GPU 0000:…".
 * *unplaced: it isn't known, and the first one is taken. */
int tccl_scene_memory_of(struct tccl_scene *scene, hwloc_obj_t object, const char *busid,
                         const char *what, bool *unplaced);
/* Index of the memory of a NUMA node (the kernel's number), or of the nearest one that has memory
 * (*nearest is then true). */
int tccl_scene_memory_at(struct tccl_scene *scene, int node, bool *nearest);
/* CPUs of a memory's NUMA node; of its neighbourhood where the node has none of its own. */
void tccl_scene_cpus(struct tccl_scene *scene, int memory, cpu_set_t *cpus);

/* discover-nccl.c: is the text a topology that NCCL wrote? Its devices, CPU and what it says of
 * GPUDirect. Returns 0, or -1 with err. */
bool tccl_is_nccl_topology(const char *text);
int tccl_scene_nccl(struct tccl_scene *scene, const char *text, struct tccl_error *err);
/* The first port of the NIC with that bus id; -1: there is none. */
int tccl_nic_at(const struct tccl_machine *machine, const char *busid);

/* discover-virtual.c: what NCCL takes from the file that hosts of virtual machines provide: CPU,
 * NUMA nodes, switches and slots. After GPUs, NICs and switches, while the topology is there. */
void tccl_scene_virtual(struct tccl_scene *scene);

/* discover.c: who made the CPUs, as far as NCCL tells them apart. architecture: "x86_64", "arm64"
 * or "aarch64", "ppc64"; vendor: as CPUs say it; "" and 0 where that is not known. */
enum tccl_cpu tccl_cpu_of(const char *architecture, const char *vendor, int family, int model);

/* discover-gpus.c: GPUs, what NVML and the driver know of them, and which reach each other. Returns
 * 0, or -1 with err. */
int tccl_scene_gpus(struct tccl_scene *scene, struct tccl_error *err);
void tccl_scene_p2p(struct tccl_scene *scene);
/* One GPU becomes several. Returns 0, or -1 with err (there are more already). */
int tccl_scene_stand_ins(struct tccl_scene *scene, int count, struct tccl_error *err);

/* discover-nics.c: RDMA devices, else Ethernet interfaces. Returns 0, or -1 with err. */
int tccl_scene_nics(struct tccl_scene *scene, struct tccl_error *err);
void tccl_scene_gpudirect(struct tccl_scene *scene);

/* discover-tree.c: the PCIe switches above GPUs and NICs, and all slots. Returns 0, or -1 with err.
 */
int tccl_scene_switches(struct tccl_scene *scene, struct tccl_error *err);
/* GB/s of a PCIe link of so many GT/s and lanes as NCCL counts it: 12 for 16 lanes of 8 GT/s, which
 * it also takes for what it doesn't know (kvDictPciGen, ncclTopoAddPci in its src/graph/topo.cc).
 */
double tccl_slot_gbps(double gts, int lanes);

/* discover-host.c: cores and the loopback in place of GPUs and NICs. Returns 0, or -1 with err. */
int tccl_scene_host(struct tccl_scene *scene, struct tccl_error *err);

/* discover-users.c: who uses the GPUs now; MIG and MPS. */
void tccl_scene_users(struct tccl_scene *scene);
