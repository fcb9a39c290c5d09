/* discover.h: the machine that this is, or that an lstopo recorded: hwloc's topology, NVML, /sys
 * and /proc/driver/nvidia, put together. */
#pragma once

#include <sched.h>
#include <stdio.h>

#include "machine/machine.h"

/* Where the devices of a machine are on this host. */
struct tccl_site {
    struct tccl_machine machine;
    cpu_set_t gpu_cpus[TCCL_MAX_GPUS]; /* where a worker of that GPU runs; empty: anywhere */
    cpu_set_t nic_cpus[TCCL_MAX_NICS];
    char gpu_busid[TCCL_MAX_GPUS]
                  [TCCL_BUSID]; /* of the physical GPU that it is; of two it may be one */
};

struct tccl_discover_options {
    const char *xml;  /* recorded by lstopo (--of xml) or NCCL (NCCL_TOPO_DUMP_FILE); NULL: this
                         machine, live */
    const char *root; /* in front of /sys and /proc, for tests; NULL: none */
    bool host;        /* cores stand for GPUs */
    int devices;      /* host: how many (0: one for each core, at most 8); else: how many stand-ins
                         the one GPU has (0: GPUs are what they are) */
};

/* What is found besides the machine; for people, and for what is refused. */
struct tccl_found {
    struct tccl_site site;
    bool recorded;                             /* from an XML: nothing of it can be measured here */
    int gpu_index[TCCL_MAX_GPUS];              /* NVML's index, -1 unknown */
    int n_users[TCCL_MAX_GPUS];                /* processes that compute on it */
    char user[TCCL_MAX_GPUS][TCCL_NAME];       /* one of them: "python (pid 4711)" */
    char nic_kind[TCCL_MAX_NICS][16];          /* "infiniband", "roce", "ethernet", "loopback" */
    char nic_netdev[TCCL_MAX_NICS][TCCL_NAME]; /* its network interface, "" none */
    bool nic_up[TCCL_MAX_NICS];
    int package_of[TCCL_MAX_MEMORIES]; /* the socket that each memory belongs to, -1 unknown */
    char driver[TCCL_NAME];            /* NVIDIA's, "" none */
    char p2p_source[TCCL_NAME];        /* where P2P ability comes from: "NVML", "PCI tree" */
    unsigned marks;                    /* TCCL_MARK_MIG, TCCL_MARK_MPS */
    bool unforetold;                   /* what NCCL does by itself is not: see the notes */
    int n_notes;
    char notes[16][160]; /* what a person should know: "NUMA node 2 has no memory" */
};

/* Returns 0 with *found, or -1 with err (the XML is bad, no GPU, too many devices). */
int tccl_discover(const struct tccl_discover_options *options, struct tccl_found *found,
                  struct tccl_error *err);

/* ---- as text (machine-text.c) ---- */

/* Tables of GPUs and NICs, how far each is from each other, and the drawing. found: what else was
 * found with this machine; NULL: only the description is known. */
void tccl_print_machine(FILE *out, const struct tccl_machine *machine,
                        const struct tccl_found *found);

/* All that was found, with the machine and its id. A new reference; NULL without memory. */
json_t *tccl_found_to_json(const struct tccl_found *found);

/* "MIG, MPS"; "" for none. */
enum { TCCL_MARKS_TEXT = 48 };
void tccl_format_marks(unsigned marks, char text[static TCCL_MARKS_TEXT]);

/* ---- nvml: what NVIDIA's management library says of the GPUs, and CUDA of ways between them.
 * Loaded at run time; no headers of these are needed to build. */

enum { TCCL_NVML_GPUS = 64, TCCL_NVML_USERS = 64 };

struct tccl_nvml_gpu {
    char busid[TCCL_BUSID];
    char name[TCCL_NAME];
    char uuid[TCCL_NAME];       /* "GPU-…"; "" unknown */
    int index;                  /* NVML's own */
    int minor;                  /* N of /dev/nvidiaN; -1 unknown */
    int sm;                     /* compute capability times 10; 0 unknown */
    bool mig;                   /* cut into instances */
    int persistence;            /* persistence mode: 0, 1; -1 unknown */
    int pstate;                 /* performance state: 0 at full clocks to 15; -1 unknown */
    int n_users;                /* processes that compute on it now, as far as NVML shows them */
    int users[TCCL_NVML_USERS]; /* their process ids */
    char users_of[TCCL_NAME];   /* name of the first one; "" unknown */
};

struct tccl_nvml {
    char driver[TCCL_NAME];
    int n_gpus;
    struct tccl_nvml_gpu gpus[TCCL_NVML_GPUS]; /* in the order of their bus ids */
    bool knows_p2p;                            /* else read and write say nothing */
    bool read[TCCL_NVML_GPUS][TCCL_NVML_GPUS]; /* the pair can read, write each other directly */
    bool write[TCCL_NVML_GPUS][TCCL_NVML_GPUS];
    bool knows_cuda;                            /* else reach says nothing */
    bool reach[TCCL_NVML_GPUS][TCCL_NVML_GPUS]; /* CUDA lets the first map the other's memory */
};

/* Asks the library and lets go of it again. Returns 0; 1 if there is no library (*nvml is empty);
 * -1 with err: the library is there but can't say (no permission, driver and library of different
 * versions, no driver loaded). */
int tccl_nvml_read(struct tccl_nvml *nvml, struct tccl_error *err);

/* Asks CUDA for reach of the GPUs that NVML has listed, all of them, whatever CUDA_VISIBLE_DEVICES
 * says. It starts CUDA in this process, which takes up to seconds and may hang: for a child that
 * ends soon. Returns 0; or -1 with err: reach is not known. */
int tccl_cuda_peers_read(struct tccl_nvml *nvml, struct tccl_error *err);
