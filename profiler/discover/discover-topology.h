/* discover-topology.h: hwloc's picture of this machine, or of one that lstopo recorded. */
#pragma once

/* In this order. */
#include <hwloc.h>

#include <hwloc/distances.h>

#include "machine/machine.h"

enum { TCCL_MAX_TOPOLOGY = 8 << 20, TCCL_MAX_NESTING = 256 };

/* This machine; with all that the kernel shows, whatever this process may use. Returns 0 with
 * *topology, which the caller destroys, or -1 with err. */
int tccl_topology_live(hwloc_topology_t *topology, struct tccl_error *err);

/* What lstopo wrote (lstopo --of xml), by hwloc 1.x, 2.x or 3.x. Files that are too large or
 * nested too deeply, or on which hwloc breaks (a child process tries), are refused. Returns as
 * above; err names the file. */
int tccl_topology_recorded(const char *path, hwloc_topology_t *topology, struct tccl_error *err);

/* The text of an XML without comments and what stands before its root, and that of hwloc 3 as hwloc
 * 2 reads it: version, and kinds of OS devices. To be freed; NULL with err (not XML of hwloc,
 * nested too deeply, no memory). */
char *tccl_topology_as_v2(const char *text, struct tccl_error *err);

enum { TCCL_CORES_TEXT = 512 };

/* gpu-cores.c: the cores of the NUMA node of a GPU of this machine, for Cores= of gres.conf:
 * "0-15,32-47", counted from 0 socket by socket, as hwloc and slurmd do. Returns 0, or -1 with err:
 * the topology has no such GPU, NUMA node or cores. */
int tccl_gpu_cores(hwloc_topology_t topology, const struct tccl_machine *machine, int gpu,
                   char text[static TCCL_CORES_TEXT], struct tccl_error *err);

/* Are these other cores than those, however they are written? Both as above; what can't be read is
 * nobody's. */
bool tccl_cores_differ(const char *a, const char *b);
