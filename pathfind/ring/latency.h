/* latency.h: how long an all-reduce of some size takes along rings. Small ones take as long as
 * their data need from GPU to GPU, 2 (n - 1) times for n GPUs; large ones as the bandwidth says.
 * Within a node NCCL has rings for all sizes, and for all other collectives everywhere.
 *
 * The times of a step are the constants of NCCL's own table (src/graph/tuning.cc: baseLat, hwLat).
 * They are the same for P2P and for a way through host memory. A bounce takes longer: the receiver
 * waits for the data by reading host memory over PCIe, in place of its own. TCCL_BOUNCE_US is what
 * that takes on an H200 (PCIe 5, a virtual machine): a load from host memory 1.29 us, from its own
 * 0.13. What NCCL itself takes more has not been measured. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "chain/nccl-version.h"
#include "chain/ring-set.h"

#define TCCL_BOUNCE_US 1.2

enum tccl_protocol { TCCL_LL, TCCL_LL128, TCCL_SIMPLE, TCCL_PROTOCOLS };

/* What counts for the time of rings. */
struct tccl_pace {
    int nodes, gpus; /* of all nodes */
    double gbps;     /* of all rings at once, GB/s */
    int bounces;     /* of the ring that has most, on all nodes */
};

/* The sizes that are compared: 8 KiB to 1 GiB. */
enum { TCCL_LATENCY_SIZES = 18 };
uint64_t tccl_latency_size(int i);
/* "8 KiB": of powers of two. */
void tccl_latency_format_size(uint64_t bytes, char text[static 16]);

/* Ways through host memory, between GPUs or between GPU and NIC, of the ring that has most. */
int tccl_bounces(const struct tccl_chain *rings, int n);

/* Of an all-reduce of so many bytes, us; with LL128 as with LL: over PCIe NCCL has none. With two
 * GPUs at least. */
double tccl_latency_time(const struct tccl_pace *pace, enum tccl_protocol protocol, uint64_t bytes);
/* LL or Simple: the one by which these rings take less time. */
enum tccl_protocol tccl_latency_protocol(const struct tccl_pace *pace, uint64_t bytes);
