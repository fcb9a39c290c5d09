/* doctor.h: what of this machine slows transfers down, or soon may: the PCI tree above GPUs and
 * NICs, NUMA nodes, IOMMU, drivers and limits, by /sys, /proc and NVML. Nothing is changed, nothing
 * is measured. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "base/hash.h"
#include "discover/discover.h"
#include "discover/sysfs.h"
#include "machine/machine.h"
#include "ring/narrowed.h"

enum { TCCL_DOCTOR_DEVICES = 192, TCCL_DOCTOR_NODES = 64, TCCL_DOCTOR_FINDINGS = 256 };
enum { TCCL_DOCTOR_WHAT = 240, TCCL_DOCTOR_PATH = 200 };

enum tccl_doctor_kind { TCCL_DOCTOR_GPU, TCCL_DOCTOR_NIC, TCCL_DOCTOR_BRIDGE };

/* A GPU, a NIC, or a PCI bridge above one. */
struct tccl_doctor_device {
    enum tccl_doctor_kind kind;
    char busid[TCCL_BUSID];
    char name[TCCL_NAME];    /* the NIC's RDMA device or interface; "" */
    int number;              /* GPUs in the order of their bus ids, NICs likewise; -1 bridges */
    int above;               /* the bridge, an index; -1 none that is seen */
    unsigned vendor, device; /* ids */
    double gts, gts_most;    /* GT/s of its end of the link upwards; 0 unknown */
    int lanes, lanes_most;   /* 0 unknown */
    int numa;                /* as /sys has it; -1 not said */
    char iommu[16];          /* type of its group: "identity", "DMA-FQ"; "" none, or not said */
    bool lost;               /* it doesn't answer on the bus */
    bool passed_on;          /* vfio-pci has it, for a virtual machine */
    bool seen_config;        /* more than 64 bytes of its configuration could be read */
    int acs;                 /* ACS control bits; -1 unknown or none */
    int read_request;        /* MaxReadReq, bytes; 0 unknown */
    int relaxed;             /* relaxed ordering on; -1 unknown */
    /* NICs */
    bool rdma;
    enum tccl_sys_link link;
    double gbps; /* of its ports, GB/s; 0 unknown */
    char firmware[TCCL_NAME];
    /* GPUs, by NVML */
    const struct tccl_nvml_gpu *nvml; /* NULL: not listed, or NVML says nothing */
};

struct tccl_doctor_node {
    int number, socket; /* socket -1: unknown */
    bool used;          /* a GPU or NIC is next to it */
};

struct tccl_doctor_facts {
    bool pci; /* /sys has a PCI bus */
    int n_devices;
    bool crowded; /* there are more than fit */
    struct tccl_doctor_device devices[TCCL_DOCTOR_DEVICES];
    int n_nodes;
    struct tccl_doctor_node nodes[TCCL_DOCTOR_NODES];
    bool gpudirect;         /* the driver gives GPU memory to NICs */
    double shm_gb;          /* size of /dev/shm; 0 there is none, -1 no limit, or unknown */
    double memlock_gb;      /* this process may lock so much; -1 all */
    bool root;              /* read as root */
    bool nvml_known;        /* nvml holds something */
    char nvml_trouble[200]; /* why it doesn't; "" */
    char cuda_trouble[200]; /* why CUDA has said nothing, where it was asked; "" */
    struct tccl_nvml nvml;
};

/* Reads them below root ("" or NULL: the machine itself). nvml: what NVML says, and CUDA, NULL:
 * nothing (trouble says why, may be NULL; of CUDA cuda_trouble is filled in by the caller). Takes
 * some milliseconds. What can't be read is unknown. */
void tccl_doctor_read(const char *root, const struct tccl_nvml *nvml, const char *trouble,
                      struct tccl_doctor_facts *facts);

/* The index of the device with that bus id, as in /sys; -1: there is none. */
int tccl_doctor_find(const struct tccl_doctor_facts *facts, const char *busid);
/* Is the device (an index, or -1) that bridge, or below it? */
bool tccl_doctor_is_below(const struct tccl_doctor_facts *facts, int device, int bridge);

/* What so many lanes carry at that rate (GT/s), GB/s: less the line code. */
double tccl_doctor_carried(double gts, int lanes);

/* How a device's link to the bridge above it is. */
enum tccl_doctor_link {
    TCCL_DOCTOR_LINK_UNKNOWN,
    TCCL_DOCTOR_LINK_FULL,     /* both ends can no more */
    TCCL_DOCTOR_LINK_IDLE,     /* a GPU at rest, whose link is slow until it works */
    TCCL_DOCTOR_LINK_DEGRADED, /* trained at less than both ends can */
};

struct tccl_doctor_rate {
    enum tccl_doctor_link state;
    double gts, gts_most; /* now, and what both ends can */
    int lanes, lanes_most;
    double gbps, gbps_most; /* of data at most, GB/s (tccl_doctor_carried) */
    bool rests;             /* gts is that of a GPU that has nothing to do */
};
struct tccl_doctor_rate tccl_doctor_link(const struct tccl_doctor_facts *facts, int device);
/* Does it lead down: a root port, and each second bridge below one? Its files in /sys say how the
 * link below it is, which is that of the device there. */
bool tccl_doctor_leads_down(const struct tccl_doctor_facts *facts, int device);
const char *tccl_doctor_link_name(enum tccl_doctor_link state);

/* "0000:40:01.1 > 0000:41:00.0": from the root port to the device. */
void tccl_doctor_path(const struct tccl_doctor_facts *facts, int device,
                      char text[static TCCL_DOCTOR_PATH]);
/* "GPU 3", "NIC mlx5_0", "bridge". */
void tccl_doctor_name(const struct tccl_doctor_device *device, char text[static TCCL_NAME + 8]);

/* ---- rules (doctor-rules.c) ---- */

/* A note is worth knowing; a warning costs bandwidth; a failure keeps a device from working. */
enum tccl_doctor_level { TCCL_DOCTOR_NOTE, TCCL_DOCTOR_WARN, TCCL_DOCTOR_FAIL, TCCL_DOCTOR_LEVELS };
const char *tccl_doctor_level_name(enum tccl_doctor_level level); /* "note", "warn", "fail" */

struct tccl_doctor_finding {
    enum tccl_doctor_level level;
    const char *rule; /* "acs" */
    int device;       /* an index; -1: of the whole machine */
    char what[TCCL_DOCTOR_WHAT];
    const char *cost, *source; /* what it costs, and where that is from */
    char mend[TCCL_DOCTOR_WHAT];
    const char *risk;
};

struct tccl_doctor_findings {
    int count, more;                                       /* more: that had no room */
    struct tccl_doctor_finding list[TCCL_DOCTOR_FINDINGS]; /* the worst first */
    int n_unknown;
    char unknown[8][TCCL_DOCTOR_WHAT]; /* what could not be seen, and how it can be */
};

/* Applies all rules to the facts. */
void tccl_doctor_examine(const struct tccl_doctor_facts *facts,
                         struct tccl_doctor_findings *findings);

/* ---- shown (doctor-show.c) ---- */

/* One line of what was looked at, the findings with cost, mend and risk, and what is unknown. */
void tccl_doctor_print(FILE *out, const struct tccl_doctor_facts *facts,
                       const struct tccl_doctor_findings *findings);
/* {"level","root","devices","nodes","findings","unknown",…}; NULL only without memory. */
json_t *tccl_doctor_to_json(const struct tccl_doctor_facts *facts,
                            const struct tccl_doctor_findings *findings);

/* ---- doctor-config.c ---- */

/* Reads ACS, MaxReadReq and relaxed ordering of a configuration space of so many bytes (64: what
 * users see; 256; 4096), as the PCI Express base specification lays it out, and whether the device
 * answers at all. */
enum { TCCL_DOCTOR_CONFIG = 4096 };
void tccl_doctor_config(const unsigned char *config, size_t size,
                        struct tccl_doctor_device *device);

/* ---- since: what of a machine has become worse since its profile was made: links that carry less,
 * GPUs and NICs that are gone. */

struct tccl_since {
    char machine[TCCL_HASH_HEX]; /* whose; "": nothing is known */
    uint32_t gone, gone_nics;    /* GPUs and NICs that are on the PCI bus no more, as masks */
    struct tccl_narrowed narrowed;
};

/* Compares the machine of a description, whose profile is in that cache, with the machine as it is
 * (/sys below root, NULL: /): a link that is trained at less than while that was measured, or,
 * where nobody knows, than both ends can. Of a GPU only lanes count, since its link is slow while
 * it has nothing to do. How much a link carried follows from what was measured over it. Nothing is
 * worse where nothing can be seen: no description or profile, none of the GPUs in /sys, ends of a
 * link that contradict each other. Reads some hundred files, and the profile's sets where there is
 * something. */
void tccl_since_look(const char *root, const char *machine_path, const char *cache_dir,
                     struct tccl_since *since);

/* Do both say the same? And is a no worse than b: nothing of it is new? */
bool tccl_since_equal(const struct tccl_since *a, const struct tccl_since *b);
bool tccl_since_no_worse(const struct tccl_since *a, const struct tccl_since *b);
