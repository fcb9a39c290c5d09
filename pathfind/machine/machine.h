/* machine.h: what determines a node's bandwidths: its GPUs, memories, NICs and PCI tree. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/bus.h"
#include "base/error.h"
#include "base/hash.h"
#include "machine/transfer.h"

enum { TCCL_MAX_SWITCHES = 32, TCCL_NAME = 64, TCCL_BUSID = TCCL_BUS_TEXT };

/* Makers of CPUs, and generations, as far as NCCL tells them apart; NCCL has a rate for the way
 * from socket to socket for each. In JSON: "amd" (Zen 2 and older, or which one is unknown),
 * "amd-zen3" (Zen 3 and 4), "amd-zen5", "intel-bdw" (Broadwell and older), "intel-skl" (Skylake to
 * Cooper Lake), "intel-srp" (Sapphire Rapids, and Granite Rapids, whose model number is below
 * Emerald Rapids'), "intel-erp" (Emerald Rapids), "arm" (Grace, too), "power", "zhaoxin",
 * "zhaoxin-yongfeng". */
enum tccl_cpu {
    TCCL_CPU_UNKNOWN,
    TCCL_CPU_AMD,
    TCCL_CPU_AMD_ZEN3,
    TCCL_CPU_AMD_ZEN5,
    TCCL_CPU_INTEL_BDW,
    TCCL_CPU_INTEL_SKL,
    TCCL_CPU_INTEL_SRP,
    TCCL_CPU_INTEL_ERP,
    TCCL_CPU_ARM,
    TCCL_CPU_POWER,
    TCCL_CPU_ZHAOXIN,
    TCCL_CPU_YONGFENG,
};

struct tccl_gpu {
    char busid[TCCL_BUSID]; /* "0000:21:00.0", lower case */
    char model[TCCL_NAME];
    int numa;    /* index of the memory it is next to */
    int minor;   /* N of /dev/nvidiaN; -1 if unknown */
    int sm;      /* compute capability times 10: 70, 80, 86, 90; 0 if unknown */
    int parent;  /* index of the PCI switch above it, -1: the root complex */
    double slot; /* GB/s of its PCIe link as NCCL counts: 12 for 16 lanes of 8 GT/s; 0 unknown */
};

struct tccl_nic {
    char name[TCCL_NAME]; /* "mlx5_0": letters, digits, '_' and '.', a letter first */
    char busid[TCCL_BUSID];
    char fabric[TCCL_NAME]; /* NICs reach each other if and only if their fabrics are equal */
    double gbps;            /* line rate each way, GB/s */
    int numa;
    int parent;
    double slot; /* as that of a GPU */
};

struct tccl_switch {
    char name[TCCL_NAME];
    int numa;
    int parent;
    double slot; /* of its link upwards */
};

/* GPUs stand in PCI bus id order, as NVML has them; "GPU i" is a position in that order. */
struct tccl_machine {
    char name[TCCL_NAME];
    int n_gpus, n_memories, n_nics, n_switches;
    int nodes[TCCL_MAX_MEMORIES]; /* NUMA node of each memory, the kernel's number, rising */
    enum tccl_cpu cpu;
    struct tccl_gpu gpus[TCCL_MAX_GPUS];
    struct tccl_nic nics[TCCL_MAX_NICS];
    struct tccl_switch switches[TCCL_MAX_SWITCHES];
    bool p2p[TCCL_MAX_GPUS][TCCL_MAX_GPUS];       /* may the GPUs reach each other directly */
    bool gpudirect[TCCL_MAX_NICS][TCCL_MAX_GPUS]; /* may the NIC reach the GPU directly */
};

/* Reads the object "machine" of a model file, or a machine.json (see pathfind/machine/README.md).
 * Everything is bounded and checked. Returns 0, or -1 with err. */
int tccl_machine_from_json(const json_t *json, struct tccl_machine *machine,
                           struct tccl_error *err);
/* Reads a machine.json. Returns 0, or -1 with err that names the file. */
int tccl_machine_read(const char *path, struct tccl_machine *machine, struct tccl_error *err);
/* A new reference; NULL only without memory. */
json_t *tccl_machine_to_json(const struct tccl_machine *machine);

/* The word for a maker of CPUs; NULL for TCCL_CPU_UNKNOWN. And back: TCCL_CPU_UNKNOWN if there is
 * no such word. */
const char *tccl_cpu_word(enum tccl_cpu cpu);
enum tccl_cpu tccl_cpu_parse(const char *word);
static inline bool tccl_cpu_is_amd(enum tccl_cpu cpu)
{
    return cpu >= TCCL_CPU_AMD && cpu <= TCCL_CPU_AMD_ZEN5;
}

/* Hash of what determines the bandwidths (GPU models, PCI tree, NUMA, NICs), not of names of the
 * machine, minors or fabrics. Bus ids and NIC names count, since plans name devices by them. Not of
 * the CPU's maker and slots: they change what NCCL chooses, but nothing that is measured, and the
 * rest tells machines apart; profiles made before they were noted stay good. */
void tccl_machine_id(const struct tccl_machine *machine, char id[static TCCL_HASH_HEX]);

/* How far two devices are apart on the PCI tree, as NCCL's path types. */
enum tccl_path { TCCL_PATH_SWITCH /* PIX, PXB */, TCCL_PATH_NODE /* PHB */, TCCL_PATH_SYSTEM };
enum tccl_path tccl_machine_path(const struct tccl_machine *machine, struct tccl_device a,
                                 struct tccl_device b);
/* The switch above a GPU or NIC; -1: none, or it is a memory. */
int tccl_machine_parent(const struct tccl_machine *machine, struct tccl_device device);
/* The memory a GPU or NIC is next to; a memory's own index. */
int tccl_machine_numa(const struct tccl_machine *machine, struct tccl_device device);

/* Index of the GPU with that bus id (any case, domain optional), of the NIC of that name; or -1. */
int tccl_machine_find_gpu(const struct tccl_machine *machine, const char *busid);
int tccl_machine_find_nic(const struct tccl_machine *machine, const char *name);
/* The NICs on the fabric of this one, itself included, as a mask. */
uint32_t tccl_machine_fabric(const struct tccl_machine *machine, int nic);

/* Does the machine have both ends of the transfer, and may they meet (p2p, gpudirect)? Returns 0,
 * or -1 with err. */
int tccl_machine_allows(const struct tccl_machine *machine, tccl_transfer transfer,
                        struct tccl_error *err);

/* Permutations of devices that leave the machine's description unchanged are found with a tree of
 * like parts: see symmetry.h. */
