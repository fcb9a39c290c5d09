/* rdma.h: one connection between two RDMA devices (a reliable queue pair), over which one side
 * reads and writes memory of the other's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

enum { TCCL_RDMA_NAME = 64, TCCL_RDMA_DEPTH = 16 /* pieces under way, at most */ };

/* What each side tells the other. */
struct tccl_rdma_end {
    char device[TCCL_RDMA_NAME];
    bool ethernet; /* RoCE; else InfiniBand */
    uint8_t mtu;   /* enum ibv_mtu */
    uint8_t reads; /* that it serves at a time */
    uint16_t lid;
    uint32_t number; /* of the queue pair, 24 bits */
    unsigned char gid[16];
    /* Memory that the other side may read and write; bytes 0: none. */
    uint32_t key;
    uint64_t address, bytes;
};

/* A new reference, NULL only without memory; and back, all bounded: 0, or -1 with err. */
json_t *tccl_rdma_to_json(const struct tccl_rdma_end *end);
int tccl_rdma_from_json(const json_t *json, struct tccl_rdma_end *end, struct tccl_error *err);

struct tccl_rdma;

/* Is this the name of an RDMA device of this machine, and are verbs built in? */
bool tccl_rdma_is_here(const char *name);

/* Lets a guest, who told us that end, reach memory of ours, through the device of the same name as
 * its own where there is one: nodes of one kind are cabled alike; else the first one with an active
 * port. *ours is what to tell it. Returns NULL with err. */
struct tccl_rdma *tccl_rdma_lend(const struct tccl_rdma_end *guest, void *memory, size_t bytes,
                                 struct tccl_rdma_end *ours, struct tccl_error *err);
void tccl_rdma_close(struct tccl_rdma *rdma); /* NULL is fine */

/* ---- only in a build with verbs ---- */

/* Opens that device. Returns NULL with err. */
struct tccl_rdma *tccl_rdma_open(const char *name, struct tccl_error *err);

/* Makes memory known to the device, so that it moves data from and to it. dmabuf: the memory of a
 * GPU, as a file descriptor of it; -1: what the address says. Returns its number, or -1 with err.
 */
int tccl_rdma_register(struct tccl_rdma *rdma, void *address, size_t bytes, int dmabuf,
                       struct tccl_error *err);

void tccl_rdma_describe(const struct tccl_rdma *rdma, struct tccl_rdma_end *end);
/* Connects to what the other side has told; both do. Returns 0, or -1 with err. */
int tccl_rdma_join(struct tccl_rdma *rdma, const struct tccl_rdma_end *there,
                   struct tccl_error *err);

/* Starts a piece between a registered memory and the other side's, at these offsets (both within
 * their memories): from there to here (reads) or from here to there. No more than TCCL_RDMA_DEPTH
 * may be under way. Returns 0, or -1 with err. */
int tccl_rdma_start(struct tccl_rdma *rdma, bool reads, int memory, uint64_t here, uint64_t there,
                    uint32_t bytes, struct tccl_error *err);
/* How many pieces have ended since the last call: all their bytes have arrived. Does not wait.
 * Returns the number, or -1 with err: the connection is lost. */
int tccl_rdma_ended(struct tccl_rdma *rdma, struct tccl_error *err);

/* ---- memory of a GPU that a NIC of this process reaches directly (GPUDirect; gpu-memory.c) ----
 */

struct tccl_gpu_memory {
    void *address; /* the GPU's, not to be touched from here */
    int dmabuf;    /* the same as a file descriptor; -1: the driver has none (nvidia_peermem) */
};

/* Allocates it on the GPU of that bus id, in a context of this process that runs nothing; it stays
 * until the process ends. Returns 0, or -1 with err. */
int tccl_gpu_memory_get(const char *busid, size_t bytes, struct tccl_gpu_memory *memory,
                        struct tccl_error *err);
