/* chain-lines.h: a chain as the runtime shim reads it, in plan files and in answers to CHAIN
 * (profiler/client/README.md): with all that the shim, which has no description of the machine,
 * needs to know of its devices. */
#ifndef TCCL_CHAIN_LINES_H
#define TCCL_CHAIN_LINES_H

#include "base/lines.h"
#include "chain/chain.h"

/* The lines "chain", "nodes" and "nic", and those of its bandwidths (GB/s) and of what measured
 * them. */
void chain_lines_put(struct tccl_line_writer *writer, const struct tccl_chain *chain,
                     const struct tccl_machine *machine);
void chain_lines_put_rates(struct tccl_line_writer *writer, double gbps, double baseline_gbps,
                           const char *source);

/* Bus ids of a set of GPUs, in the order of PCI: the line "gpus". */
void chain_lines_put_gpus(struct tccl_line_writer *writer, uint32_t gpus,
                          const struct tccl_machine *machine);
enum { CHAIN_LINES_GPUS = TCCL_MAX_GPUS * TCCL_BUS_TEXT };
/* Reads such a line: 1 to TCCL_MAX_GPUS bus ids. Returns how many, or -1. */
int chain_lines_get_gpus(const struct tccl_lines *lines, tccl_bus gpus[static TCCL_MAX_GPUS]);

/* Do all NICs of the machine reach each other? False without a NIC. */
bool chain_lines_one_fabric(const struct tccl_machine *machine);

#endif
