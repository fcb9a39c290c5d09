/* backend-host.c: the back end "host": cores of this machine copy between its memories in place of
 * GPUs, and NICs are what TCP can do. */
#include <stdio.h>
#include <unistd.h>

#include "measure/backends/backend-ops.h"
#include "measure/peer/peer.h"

/* Bytes of each region: larger than most caches, where there is memory for all of them. */
static const size_t most_region = 64 << 20, least_region = 4 << 20;
enum { WORKERS_PER_GPU = 3, PART_OF_MEMORY = 8 };

/* The NIC is the one that leads to the peer; without a peer, the loopback. */
static int look(struct tccl_pooled *pooled, const struct tccl_backend_options *options,
                struct tccl_error *err)
{
    const struct tccl_discover_options what = {.host = true, .devices = options->devices};
    struct tccl_machine *machine = &pooled->found.site.machine;
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (tccl_discover(&what, &pooled->found, err) < 0)
        return -1;
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    int regions = machine->n_gpus * WORKERS_PER_GPU * (machine->n_memories + machine->n_gpus);
    size_t region = most_region;
    while (region > least_region && (double)region * regions > memory / PART_OF_MEMORY)
        region /= 2;
    pooled->region = region;
    /* Of what is read again and again, a cache that large gives much. */
    bool cached = cache > 0 && (size_t)cache >= pooled->region;
    snprintf(pooled->conditions, sizeof(pooled->conditions), "core copies, non-temporal%s; TCP%s",
             cached ? " (reads may come from the L3 cache)" : "",
             options->peer ? "" : " over loopback");
    if (!options->peer)
        return 0;
    machine->n_nics = 1;
    return tccl_nic_of_peer(options->peer, machine, &machine->nics[0], err);
}

static int host_open(const struct tccl_backend_options *options, struct tccl_backend *backend,
                     struct tccl_error *err)
{
    static const struct tccl_pooled_way way = {
        .look = look,
        .gpu = &tccl_mover_host,
        .nic = &tccl_mover_tcp,
        .nic_alone = &tccl_mover_tcp,
        .prepare_limit = 20,
    };
    return tccl_pooled_open(&way, options, backend, err);
}

const struct tccl_backend_ops tccl_backend_of_host = {
    .name = "host",
    .noise = 0.05,
    .open = host_open,
    .others = tccl_pooled_others,
    .measure = tccl_pooled_measure,
    .close = tccl_pooled_close,
};
