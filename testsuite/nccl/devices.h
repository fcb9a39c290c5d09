/* devices.h: the machine that the stand-in libraries pretend to be on, as describe-machine wrote it
 * into the file that $TCCL_RIG_DEVICES names. */
#pragma once

#include <stdbool.h>

enum { RIG_GPUS = 16, RIG_NICS = 16, RIG_NAME = 64, RIG_NVLINKS = 18, RIG_SWITCH = -1 };

struct rig_gpu {
    unsigned domain, bus, slot;
    int minor;
    int sm; /* compute capability times 10 */
    char uuid[RIG_NAME];
    char name[RIG_NAME];
    bool mig;
    int n_nvlinks;
    int nvlinks[RIG_NVLINKS]; /* indices of GPUs; RIG_SWITCH */
};

struct rig_nic {
    char name[RIG_NAME];
    int rate; /* Gb/s */
};

struct rig_devices {
    int driver; /* as cudaDriverGetVersion has it: 13000 */
    int n_gpus, n_nics;
    struct rig_gpu gpus[RIG_GPUS];
    struct rig_nic nics[RIG_NICS];
    bool p2p[RIG_GPUS][RIG_GPUS];
    bool gpudirect;
};

/* Read at the first call. Without a file, or with one that makes no sense: no devices, and a line
 * on stderr. */
const struct rig_devices *rig_devices(void);

/* Index of the GPU with that bus id, in any of the ways in which CUDA and NVML write it; or -1. */
int rig_find_gpu(const char *busid);

/* Says on stderr that a program asked for what only real devices can do. */
void rig_refuse(const char *what);
