// copy.cu: the kernel by which a GPU copies with loads and stores, as NCCL's do: between its own
// memory and a peer's (IPC mapping) or the host's (mapped, page-locked).
//
// Loads are volatile: by PTX's memory model those are relaxed loads of system scope, which must see
// what another processor wrote meanwhile, so neither L1 nor L2 may answer for memory that lies
// behind a link, however often the same region is read. Stores are plain; what has been stored
// counts only after a fence of system scope, that is, when it has crossed the link.
#include "measure/cuda/copy-job.h"

struct vector {
    uint32_t x, y, z, w;
};

static __device__ __forceinline__ vector load(uint64_t address)
{
    vector v;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(address)
                 : "memory");
    return v;
}

static __device__ __forceinline__ void store(uint64_t address, vector v)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
}

static __device__ __forceinline__ uint64_t now(void)
{
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

static __device__ __forceinline__ tccl_copy_control *control_of(const tccl_copy_job &job)
{
    return reinterpret_cast<tccl_copy_control *>(job.control);
}

// go, stop and hold, all in one read over the link.
static __device__ __forceinline__ vector words(const tccl_copy_job &job)
{
    return load(job.control);
}

static __device__ __forceinline__ bool stopped(const tccl_copy_job &job, uint32_t stop)
{
    return static_cast<int32_t>(stop - job.turn) >= 0;
}

// One thread of each block. False: the run is not to be.
static __device__ bool wait_for_go(const tccl_copy_job &job, uint64_t end)
{
    volatile tccl_copy_line *line = &control_of(job)->lines[blockIdx.x];
    vector seen;

    line->armed = job.turn;
    do {
        seen = words(job);
        if (stopped(job, seen.y) || seen.z != job.hold || now() > end)
            return false;
    } while (seen.x != job.turn);
    line->begun = job.turn;
    return true;
}

static __device__ __forceinline__ void copy_piece(uint64_t sink, uint64_t source)
{
    vector v[TCCL_COPY_VECTORS];

#pragma unroll
    for (int i = 0; i < TCCL_COPY_VECTORS; i++)
        v[i] = load(source + (i * TCCL_COPY_THREADS + threadIdx.x) * sizeof(vector));
#pragma unroll
    for (int i = 0; i < TCCL_COPY_VECTORS; i++)
        store(sink + (i * TCCL_COPY_THREADS + threadIdx.x) * sizeof(vector), v[i]);
}

// The barrier before it makes the whole block's stores those that the fence is about.
static __device__ __forceinline__ void report(const tccl_copy_job &job, uint64_t moved)
{
    volatile tccl_copy_line *line = &control_of(job)->lines[blockIdx.x];

    __threadfence_system();
    line->moved = moved;
}

static __device__ void copy_until_stopped(const tccl_copy_job &job, uint64_t end)
{
    __shared__ bool over[2]; // in turn, so that one barrier for each piece is enough
    uint32_t piece = blockIdx.x % job.pieces;
    uint64_t moved = 0;

    for (uint32_t round = 0;; round ^= 1) {
        vector seen = {};
        if (threadIdx.x == 0)
            seen = words(job); // asked for first, looked at last: costs no waiting
        copy_piece(job.sink + static_cast<uint64_t>(piece) * TCCL_COPY_PIECE,
                   job.source + static_cast<uint64_t>(piece) * TCCL_COPY_PIECE);
        if (threadIdx.x == 0)
            over[round] = stopped(job, seen.y) || now() > end;
        __syncthreads();
        moved += TCCL_COPY_PIECE;
        if (threadIdx.x == 0)
            report(job, moved);
        if (over[round])
            return;
        piece = (piece + gridDim.x) % job.pieces;
    }
}

extern "C" __global__ void __launch_bounds__(TCCL_COPY_THREADS) tccl_copy(const tccl_copy_job job)
{
    __shared__ bool starts;
    uint64_t end = now() + job.limit;

    if (threadIdx.x == 0)
        starts = wait_for_go(job, end);
    __syncthreads();
    if (starts)
        copy_until_stopped(job, end);
}
