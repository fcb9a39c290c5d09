/* chain-lines.h: a chain as the runtime shim reads it, in plan files and in answers to CHAIN
 * (profiler/client/shim.md): with all that the shim, which has no description of the machine,
 * needs to know of its devices. */
#pragma once

#include "base/lines.h"
#include "chain/ring-set.h"
#include "client/outcome.h"
#include "ring/node-class.h"

/* The lines "chain" (of several rings at once "chain | chain"), "nodes" and "nic", "tree" where
 * there is one beside a single chain, and those of its bandwidth (GB/s) and of what measured it. */
void chain_lines_put(struct tccl_line_writer *writer, const struct tccl_ring_set *set,
                     const struct tccl_tree *tree, const struct tccl_machine *machine);
void chain_lines_put_rates(struct tccl_line_writer *writer, double gbps, const char *source);

/* The line "baseline" of a generation of NCCL: its first version, whether the ring is used with it
 * ("ring") or not ("own"), what it reaches on its own (GB/s), and what its search says of its ring
 * and tree on this node. closed: the communicator has this node alone. */
void chain_lines_put_baseline(struct tccl_line_writer *writer,
                              const struct tccl_outcome_baseline *baseline,
                              const struct tccl_node_class *class, bool closed);

/* Bus ids of a set of GPUs, in the order of PCI: the line "gpus". */
void chain_lines_put_gpus(struct tccl_line_writer *writer, uint32_t gpus,
                          const struct tccl_machine *machine);
enum { CHAIN_LINES_GPUS = TCCL_MAX_GPUS * TCCL_BUS_TEXT + 1 };
/* Reads such a line: 1 to TCCL_MAX_GPUS bus ids. Returns how many, or -1. */
int chain_lines_get_gpus(const struct tccl_lines *lines, tccl_bus gpus[static TCCL_MAX_GPUS]);
