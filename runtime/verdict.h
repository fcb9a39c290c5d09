/* verdict.h: is what NCCL built the chain? */
#ifndef SHIM_VERDICT_H
#define SHIM_VERDICT_H

#include "nccllog.h"
#include "registry.h"

/* From good to bad. */
enum shim_verdict { SHIM_APPLIED, SHIM_UNKNOWN, SHIM_DIFFERS };

/* Compares one rank's part with the chain: its neighbour, and the way of the edge from it. members:
 * the local ranks, by GPU. text: how it differs, or why it can't be known. */
enum shim_verdict shim_verdict_of(const struct shim_chain *chain, const struct shim_member *members,
                                  int n, shim_bus gpu, const struct shim_built *built,
                                  char text[static 256]);

#endif
