/* gpu-cores.h: the CPU cores next to a GPU, as Slurm counts cores. */
#ifndef TCCL_GPU_CORES_H
#define TCCL_GPU_CORES_H

#include "discover/topology.h"
#include "machine/machine.h"

enum { TCCL_CORES_TEXT = 512 };

/* The cores of the NUMA node of a GPU of this machine, for Cores= of gres.conf: "0-15,32-47",
 * counted from 0 socket by socket, as hwloc and slurmd do. Returns 0, or -1 with err: the topology
 * has no such GPU, NUMA node or cores. */
int tccl_gpu_cores(hwloc_topology_t topology, const struct tccl_machine *machine, int gpu,
                   char text[static TCCL_CORES_TEXT], struct tccl_error *err);

/* Are these other cores than those, however they are written? Both as above; what can't be read is
 * nobody's. */
bool tccl_cores_differ(const char *a, const char *b);

#endif
