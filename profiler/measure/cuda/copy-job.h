/* copy-job.h: what a copying kernel (copy.cu) is told, and how it is started, watched and stopped
 * through page-locked host memory while it runs. Seen by C and by CUDA. */
#pragma once

#include <stdint.h>

/* A piece is what one block copies between two looks at the control block: each of its threads has
 * 8 vectors of 16 bytes in flight. 32 blocks have 2 MiB in flight, far more than a link's bandwidth
 * times its latency (PCIe 5.0 x16: 55 GB/s times some 2 us), so that the link is what limits; and
 * 32 of the more than 100 multiprocessors of a large GPU are no more than NCCL takes. */
enum { TCCL_COPY_THREADS = 512, TCCL_COPY_VECTORS = 8, TCCL_COPY_BLOCKS = 32 };
enum { TCCL_COPY_PIECE = TCCL_COPY_THREADS * TCCL_COPY_VECTORS * 16 };

/* One block's own words, in a cache line of their own. Written by the GPU. */
struct tccl_copy_line {
    uint64_t moved; /* bytes that have arrived */
    uint32_t armed; /* = turn: the block is there and waits for the start */
    uint32_t begun; /* = turn: it has seen the start */
    uint32_t unused[12];
};

/* Written by the CPU, but for the lines. */
struct tccl_copy_control {
    uint32_t go;   /* = turn: start */
    uint32_t stop; /* >= turn: end after the piece at hand */
    uint32_t hold; /* other than the job's: end if not yet started */
    uint32_t unused[13];
    struct tccl_copy_line lines[TCCL_COPY_BLOCKS];
};

/* Addresses are the GPU's. The region is copied from its beginning to its end, again and again. */
struct tccl_copy_job {
    uint64_t source, sink;
    uint64_t control;
    uint64_t limit;  /* nanoseconds after which the kernel ends by itself, whatever happens */
    uint32_t pieces; /* of the region */
    uint32_t turn;   /* of this run: words left from earlier ones mean nothing */
    uint32_t hold;
    uint32_t unused;
};
