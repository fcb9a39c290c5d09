/* site.h: where the devices of a machine are on this host. */
#ifndef TCCL_SITE_H
#define TCCL_SITE_H

#include <sched.h>

#include "machine/machine.h"

struct tccl_site {
    struct tccl_machine machine;
    cpu_set_t gpu_cpus[TCCL_MAX_GPUS]; /* where a worker of that GPU runs; empty: anywhere */
    cpu_set_t nic_cpus[TCCL_MAX_NICS];
    int gpu_device[TCCL_MAX_GPUS]; /* which physical GPU (of bus id order) it is; two may be one */
    char gpu_busid[TCCL_MAX_GPUS][TCCL_BUSID]; /* bus id of that physical GPU */
};

#endif
