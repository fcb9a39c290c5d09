/* cudart-memory.c: memory of the stand-in CUDA runtime. What programs take for a GPU's memory is a
 * part of one sparse file without a name, so that other processes can open it by an IPC handle. */
#include "cudart.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA ((size_t)64 << 30)
#define PAGE ((size_t)4096)

struct block {
    char *start;
    size_t size; /* as asked for */
    int device;
    bool host;
    struct block *next;
};

struct mapping {
    void *start;
    size_t size;
    struct mapping *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *arena;
static int arena_fd = -1;
static size_t arena_used;
static struct block *blocks;
static struct mapping *mappings;

static size_t whole_pages(size_t size)
{
    return (size + PAGE - 1) & ~(PAGE - 1);
}

static bool make_arena(void)
{
    void *start;

    if (arena)
        return true;
    arena_fd = memfd_create("tccl-rig", MFD_CLOEXEC);
    if (arena_fd < 0 || ftruncate(arena_fd, ARENA) < 0)
        return false;
    start = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, arena_fd, 0);
    if (start == MAP_FAILED)
        return false;
    arena = start;
    return true;
}

/* Addresses are not used again: 64 GiB are enough for a test. */
static struct block *take(size_t size, bool host)
{
    struct block *block = calloc(1, sizeof(*block));

    if (!block || !make_arena() || size > ARENA - arena_used) {
        free(block);
        return NULL;
    }
    *block = (struct block){arena + arena_used, size, rig_current(), host, blocks};
    arena_used += whole_pages(size);
    blocks = block;
    return block;
}

static cudaError_t allocate(void **address, size_t size, bool host)
{
    struct block *block = NULL;

    *address = NULL;
    if (size == 0)
        return cudaSuccess;
    if (size <= ARENA) {
        pthread_mutex_lock(&lock);
        block = take(size, host);
        pthread_mutex_unlock(&lock);
    }
    if (!block)
        return rig_error(cudaErrorMemoryAllocation);
    *address = block->start;
    return cudaSuccess;
}

static struct block *find(const void *address)
{
    const char *at = address;

    for (struct block *block = blocks; block; block = block->next)
        if (at >= block->start && at < block->start + block->size)
            return block;
    return NULL;
}

/* Makes the whole pages in a part of the arena zero by giving them back: writing zeros into them
 * would take memory. Returns false where that can't be done. */
static bool give_back(char *start, char *end)
{
    if (!arena || start < arena || end > arena + ARENA || start >= end)
        return false;
    return fallocate(arena_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start - arena,
                     end - start) == 0;
}

static cudaError_t release(void *address)
{
    cudaError_t error = cudaErrorInvalidValue;

    if (!address)
        return cudaSuccess;
    pthread_mutex_lock(&lock);
    for (struct block **at = &blocks; *at; at = &(*at)->next) {
        struct block *block = *at;
        if (block->start != address)
            continue;
        give_back(block->start, block->start + whole_pages(block->size));
        *at = block->next;
        free(block);
        error = cudaSuccess;
        break;
    }
    pthread_mutex_unlock(&lock);
    return rig_error(error);
}

bool rig_allocation(const void *address, void **base, size_t *size)
{
    struct block *block;
    int device;
    bool host;

    pthread_mutex_lock(&lock);
    block = find(address);
    if (block) {
        *base = block->start;
        *size = block->size;
    }
    pthread_mutex_unlock(&lock);
    return block || rig_virtual_allocation(address, base, size, &device, &host);
}

cudaError_t cudaMalloc(void **address, size_t size)
{
    return allocate(address, size, false);
}

cudaError_t cudaFree(void *address)
{
    return release(address);
}

cudaError_t cudaMallocAsync(void **address, size_t size, cudaStream_t stream)
{
    (void)stream;
    return allocate(address, size, false);
}

cudaError_t cudaMallocFromPoolAsync(void **address, size_t size, cudaMemPool_t pool,
                                    cudaStream_t stream)
{
    (void)pool, (void)stream;
    return allocate(address, size, false);
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
    (void)stream;
    return release(address);
}

cudaError_t cudaHostAlloc(void **address, size_t size, unsigned flags)
{
    (void)flags;
    return allocate(address, size, true);
}

cudaError_t cudaMallocHost(void **address, size_t size)
{
    return allocate(address, size, true);
}

cudaError_t cudaFreeHost(void *address)
{
    return release(address);
}

cudaError_t cudaHostRegister(void *address, size_t size, unsigned flags)
{
    (void)flags;
    return rig_error(address && size ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostUnregister(void *address)
{
    return rig_error(address ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    (void)flags;
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    (void)kind;
    memmove(to, from, size);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)stream;
    return cudaMemcpy(to, from, size, kind);
}

cudaError_t cudaMemset(void *address, int value, size_t size)
{
    char *start = address, *end = start + size;
    char *first = (char *)whole_pages((uintptr_t)start);
    char *last = (char *)((uintptr_t)end & ~(PAGE - 1));

    if (value != 0 || (!give_back(first, last) && !rig_virtual_zero(first, last))) {
        memset(start, value, size);
        return cudaSuccess;
    }
    memset(start, 0, (size_t)(first - start));
    memset(last, 0, (size_t)(end - last));
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t size, cudaStream_t stream)
{
    (void)stream;
    return cudaMemset(address, value, size);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
    struct block *block;
    void *base;
    size_t size;
    int device;
    bool host;

    memset(attributes, 0, sizeof(*attributes));
    attributes->type = cudaMemoryTypeUnregistered;
    pthread_mutex_lock(&lock);
    block = find(address);
    if (block) {
        attributes->type = block->host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
        attributes->device = block->device;
        attributes->devicePointer = attributes->hostPointer = (void *)address;
    }
    pthread_mutex_unlock(&lock);
    if (!block && rig_virtual_allocation(address, &base, &size, &device, &host)) {
        attributes->type = host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
        attributes->device = device;
        attributes->devicePointer = attributes->hostPointer = (void *)address;
    }
    return cudaSuccess;
}

/* ---- memory of other processes ---- */

struct handle {
    int magic, pid, fd;
    size_t offset, size;
};
enum { MAGIC = 0x5443434c };
_Static_assert(sizeof(struct handle) <= sizeof(cudaIpcMemHandle_t), "too large for a handle");

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *address)
{
    struct handle handle = {0};
    void *base;
    size_t size;

    memset(out, 0, sizeof(*out));
    if (!rig_allocation(address, &base, &size))
        return rig_error(cudaErrorInvalidValue);
    handle = (struct handle){MAGIC, getpid(), arena_fd, (size_t)((char *)base - arena),
                             whole_pages(size)};
    memcpy(out, &handle, sizeof(handle));
    return cudaSuccess;
}

static bool remember(void *start, size_t size)
{
    struct mapping *mapping = malloc(sizeof(*mapping));

    if (!mapping)
        return false;
    pthread_mutex_lock(&lock);
    *mapping = (struct mapping){start, size, mappings};
    mappings = mapping;
    pthread_mutex_unlock(&lock);
    return true;
}

cudaError_t cudaIpcOpenMemHandle(void **address, cudaIpcMemHandle_t in, unsigned flags)
{
    struct handle handle;
    char path[64];
    int fd;

    (void)flags;
    memcpy(&handle, &in, sizeof(handle));
    if (handle.magic != MAGIC)
        return rig_error(cudaErrorInvalidResourceHandle);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.pid, handle.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        fprintf(stderr, "tccl rig: %s: %s\n", path, strerror(errno));
        return rig_error(cudaErrorMapBufferObjectFailed);
    }
    *address =
        mmap(NULL, handle.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)handle.offset);
    close(fd);
    if (*address == MAP_FAILED || !remember(*address, handle.size))
        return rig_error(cudaErrorMapBufferObjectFailed);
    return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void *address)
{
    cudaError_t error = cudaErrorInvalidValue;

    pthread_mutex_lock(&lock);
    for (struct mapping **at = &mappings; *at; at = &(*at)->next) {
        struct mapping *mapping = *at;
        if (mapping->start != address)
            continue;
        munmap(mapping->start, mapping->size);
        *at = mapping->next;
        free(mapping);
        error = cudaSuccess;
        break;
    }
    pthread_mutex_unlock(&lock);
    return rig_error(error);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    (void)properties;
    *pool = malloc(1);
    return rig_error(*pool ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    free(pool);
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    (void)pool, (void)attribute, (void)value;
    return cudaSuccess;
}
