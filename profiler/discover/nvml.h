/* nvml.h: what NVIDIA's management library says of the GPUs, and CUDA of ways between them. Loaded
 * at run time; no headers of these are needed to build. */
#pragma once

#include "machine/machine.h"

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
