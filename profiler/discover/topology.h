/* topology.h: hwloc's picture of this machine, or of one that lstopo recorded. */
#ifndef TCCL_TOPOLOGY_H
#define TCCL_TOPOLOGY_H

/* In this order. */
#include <hwloc.h>

#include <hwloc/distances.h>

#include "base/error.h"

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

#endif
