/* latency.c: how long an all-reduce of some size takes along rings. */
#include "ring/latency.h"

#include <math.h>
#include <stdio.h>

enum { SMALLEST = 13 };

uint64_t tccl_latency_size(int i)
{
    return UINT64_C(1) << (SMALLEST + i);
}

void tccl_latency_format_size(uint64_t bytes, char text[static 16])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 3; bytes >>= 10)
        unit++;
    snprintf(text, 16, "%d %s", (int)bytes, units[unit]);
}

static bool in_memory(struct tccl_port port)
{
    return port.via.kind == TCCL_MEMORY;
}

static int count(const struct tccl_chain *chain)
{
    int bounces = 0;
    for (int i = 0; i < tccl_chain_edges(chain); i++)
        if (chain->edges[i].kind == TCCL_BOUNCE)
            bounces++;
        else if (chain->edges[i].kind == TCCL_BY_NICS)
            bounces += in_memory(chain->edges[i].from) + in_memory(chain->edges[i].to);
    if (chain->closed)
        return bounces;
    return bounces + in_memory(chain->entry) + in_memory(chain->exit);
}

int tccl_bounces(const struct tccl_chain *rings, int n)
{
    int most = 0;
    for (int i = 0; i < n; i++)
        most = count(&rings[i]) > most ? count(&rings[i]) : most;
    return most;
}

/* NCCL's own figure for a ring, us, of the newest one. Ranks of a node take turns over PCIe;
 * between nodes the network adds to each step. */
static double nccl_latency(int nodes, int gpus, enum tccl_protocol protocol)
{
    static const double base[] = {6.6, 14.0, 8.4}, pci[] = {1.0, 2.5, 5.7};
    static const double net[] = {2.7, 4.0, 14.0}, net_alone[] = {5.0, 8.5, 14.0};
    int steps = 2 * (gpus - 1), between = 2 * (nodes - 1);
    double overhead = (nodes > 1) * (protocol == TCCL_SIMPLE ? 3 : 1);
    double inside = fmax(pci[protocol], overhead);
    double outside = gpus == nodes ? net_alone[protocol] : net[protocol];
    return base[protocol] + (steps - between) * inside + between * outside;
}

double tccl_latency_time(const struct tccl_pace *pace, enum tccl_protocol protocol, uint64_t bytes)
{
    double rounds = 2.0 * (pace->gpus - 1) / pace->gpus;
    /* Each 4 bytes of LL are sent with as many that say that they are there. */
    double gbps = pace->gbps * (protocol == TCCL_SIMPLE ? 1 : 0.5);
    return nccl_latency(pace->nodes, pace->gpus, protocol) +
           rounds * pace->bounces * TCCL_BOUNCE_US + rounds * (double)bytes / (1000 * gbps);
}

enum tccl_protocol tccl_latency_protocol(const struct tccl_pace *pace, uint64_t bytes)
{
    return tccl_latency_time(pace, TCCL_LL, bytes) < tccl_latency_time(pace, TCCL_SIMPLE, bytes)
               ? TCCL_LL
               : TCCL_SIMPLE;
}
