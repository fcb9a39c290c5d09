/* links.h: a chain as the runtime shim reads it: bus ids, NIC names and the kernel's NUMA nodes, so
 * that it needs no description of the machine. */
#ifndef TCCL_LINKS_H
#define TCCL_LINKS_H

#include <jansson.h>

#include "chain/chain.h"

/* {"closed":…,"gpus":[bus ids],"edges":[{"kind":…,"node":…}],"entry":{…},"exit":{…}}, see
 * profiler/client/README.md. A new reference; NULL only without memory. */
json_t *links_to_json(const struct tccl_chain *chain, const struct tccl_machine *machine);

/* Bus ids of a set of GPUs, in the order of PCI. A new reference; NULL only without memory. */
json_t *links_busids(uint32_t gpus, const struct tccl_machine *machine);

/* Rounded so that its decimal form never has an exponent: the shim reads plain digits. GB/s. */
double links_gbps(double gbps);

/* Do all NICs of the machine reach each other? False without a NIC. */
bool links_one_fabric(const struct tccl_machine *machine);

#endif
