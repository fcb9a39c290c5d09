/* driver-memory.c: memory of the stand-in driver. What programs take for a GPU's memory is a
 * part of one sparse file without a name, so that other processes can open it by an IPC handle. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARENA ((size_t)64 << 30)
#define PAGE ((size_t)4096)

struct block {
    char *start;
    size_t size; /* as asked for */
    int device;
    bool host;
    int node; /* of host memory: where its pages would be */
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

/* Where the thread's memory policy has pages, or else next to its GPU, where NCCL has its threads.
 * As the shim's, the call goes by syscall: numa-nodes.c answers it. */
static int policy_node(void)
{
    unsigned long nodes[4] = {0};
    int mode = 0;
    if (syscall(SYS_get_mempolicy, &mode, nodes, (unsigned long)(8 * sizeof(nodes)), NULL, 0UL) ==
            0 &&
        mode != 0)
        for (int i = 0; i < (int)(8 * sizeof(nodes)); i++)
            if (nodes[i / 64] >> i % 64 & 1)
                return i;
    return rig_numa_node(rig_ordinal(rig_current()));
}

/* Addresses are not used again: 64 GiB are enough for a test. */
static struct block *take(size_t size, bool host)
{
    struct block *block = calloc(1, sizeof(*block));
    if (!block || !make_arena() || size > ARENA - arena_used) {
        free(block);
        return NULL;
    }
    *block = (struct block){arena + arena_used,        size,  rig_current(), host,
                            host ? policy_node() : -1, blocks};
    arena_used += whole_pages(size);
    blocks = block;
    return block;
}

static CUresult allocate(void **address, size_t size, bool host)
{
    CUresult safe = rig_unsafe();
    struct block *block = NULL;
    *address = NULL;
    if (size == 0 || safe != CUDA_SUCCESS)
        return safe;
    if (size <= ARENA) {
        pthread_mutex_lock(&lock);
        block = take(size, host);
        pthread_mutex_unlock(&lock);
    }
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = block->start;
    return CUDA_SUCCESS;
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

static CUresult release(void *address)
{
    CUresult error = CUDA_ERROR_INVALID_VALUE;
    if (!address)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (struct block **at = &blocks; *at; at = &(*at)->next) {
        struct block *block = *at;
        if (block->start != address)
            continue;
        give_back(block->start, block->start + whole_pages(block->size));
        *at = block->next;
        free(block);
        error = CUDA_SUCCESS;
        break;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

static void release_later(void *address)
{
    release(address);
}

bool rig_allocation(const void *address, struct rig_allocation *found)
{
    struct block *block;
    pthread_mutex_lock(&lock);
    block = find(address);
    if (block)
        *found = (struct rig_allocation){
            block->start, block->size,  block->device,
            block->host,  !block->host, block->host ? block->node : rig_ordinal(block->device)};
    pthread_mutex_unlock(&lock);
    return block || rig_virtual_allocation(address, found);
}

SAYS(cuMemAlloc, (CUdeviceptr * address, size_t size), allocate((void **)address, size, false));
SAYS(cuMemFree, (CUdeviceptr address),
     rig_unsafe() != CUDA_SUCCESS ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                  : release((void *)address));
SAYS(cuMemAllocAsync, (CUdeviceptr * address, size_t size, CUstream stream),
     rig_state(stream) == RIG_CAPTURED ? rig_refused("memory taken in a CUDA graph")
                                       : allocate((void **)address, size, false));
SAYS(cuMemAllocFromPoolAsync,
     (CUdeviceptr * address, size_t size, CUmemoryPool pool, CUstream stream),
     cuMemAllocAsync(address, size, stream));
SAYS(cuMemFreeAsync, (CUdeviceptr address, CUstream stream),
     rig_state(stream) == RIG_CAPTURED ? rig_refused("memory given back in a CUDA graph")
                                       : rig_submit(stream, release_later, NULL, (void *)address));
SAYS(cuMemHostAlloc, (void **address, size_t size, unsigned flags), allocate(address, size, true));
SAYS(cuMemFreeHost, (void *address), release(address));
SAYS(cuMemHostRegister, (void *address, size_t size, unsigned flags),
     address &&size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
SAYS(cuMemHostUnregister, (void *address), address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
DOES(cuMemHostGetDevicePointer, (CUdeviceptr * device, void *host, unsigned flags),
     *device = (CUdeviceptr)host);
DOES(cuMemGetInfo, (size_t * unused, size_t *all), *unused = *all = (size_t)16 << 30);

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    struct rig_allocation found;
    if (!rig_allocation((void *)address, &found))
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = (CUdeviceptr)found.base;
    if (size)
        *size = found.size;
    return CUDA_SUCCESS;
}

/* ---- contents ---- */

struct change {
    CUdeviceptr to, from; /* 0: bytes of that value */
    size_t size;
    unsigned char value;
};

static void set_bytes(const struct change *change)
{
    char *start = (char *)change->to, *end = start + change->size;
    char *first = (char *)whole_pages((uintptr_t)start);
    char *last = (char *)((uintptr_t)end & ~(PAGE - 1));
    if (change->value != 0 || (!give_back(first, last) && !rig_virtual_zero(first, last))) {
        memset(start, change->value, change->size);
        return;
    }
    memset(start, 0, (size_t)(first - start));
    memset(last, 0, (size_t)(end - last));
}

static void apply(const struct change *change)
{
    if (change->from)
        memmove((void *)change->to, (void *)change->from, change->size);
    else
        set_bytes(change);
}

static void apply_later(void *data)
{
    apply(data);
}

static bool is_known(CUdeviceptr address)
{
    struct rig_allocation found;
    return !address || rig_allocation((void *)address, &found);
}

/* Memory that CUDA does not know may be gone when the call has returned, so it waits, but in a
 * graph, which takes it as it is then. */
static CUresult change(CUstream stream, struct change wanted)
{
    enum rig_state state = rig_state(stream);
    bool later = state == RIG_CAPTURED ||
                 (state == RIG_BUSY && is_known(wanted.to) && is_known(wanted.from));
    struct change *copy = later ? malloc(sizeof(*copy)) : NULL;
    CUresult result;
    if (copy) {
        *copy = wanted;
        result = rig_submit(stream, apply_later, free, copy);
        if (result != CUDA_SUCCESS)
            free(copy);
        return result;
    }
    result = rig_await(stream);
    if (result == CUDA_SUCCESS)
        apply(&wanted);
    return result;
}

SAYS(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream),
     change(stream, (struct change){to, from, size, 0}));

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    CUresult result = rig_unsafe();
    if (result == CUDA_SUCCESS)
        result = cuMemcpyAsync(to, from, size, NULL);
    return result == CUDA_SUCCESS ? rig_await(NULL) : result;
}

SAYS(cuMemcpyHtoD, (CUdeviceptr to, const void *from, size_t size),
     cuMemcpy(to, (CUdeviceptr)from, size));
SAYS(cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t size, CUstream stream),
     cuMemcpyAsync(to, (CUdeviceptr)from, size, stream));
SAYS(cuMemcpyDtoH, (void *to, CUdeviceptr from, size_t size),
     cuMemcpy((CUdeviceptr)to, from, size));
SAYS(cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t size, CUstream stream),
     cuMemcpyAsync((CUdeviceptr)to, from, size, stream));
SAYS(cuMemcpyDtoD, (CUdeviceptr to, CUdeviceptr from, size_t size), cuMemcpy(to, from, size));
SAYS(cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream),
     cuMemcpyAsync(to, from, size, stream));
SAYS(cuMemsetD8Async, (CUdeviceptr address, unsigned char value, size_t size, CUstream stream),
     change(stream, (struct change){address, 0, size, value}));
SAYS(cuMemsetD8, (CUdeviceptr address, unsigned char value, size_t size),
     cuMemsetD8Async(address, value, size, NULL));

/* The runtime sets whole words so. */
CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream stream)
{
    if (value == 0)
        return cuMemsetD8Async(address, 0, count * sizeof(value), stream);
    if (rig_state(stream) == RIG_CAPTURED)
        return rig_refused("words set in a CUDA graph");
    rig_await(stream);
    for (size_t i = 0; i < count; i++)
        ((unsigned *)address)[i] = value;
    return CUDA_SUCCESS;
}

SAYS(cuMemsetD32, (CUdeviceptr address, unsigned value, size_t count),
     cuMemsetD32Async(address, value, count, NULL));

/* ---- what an address is ---- */

static bool put(void *out, const void *value, size_t size)
{
    memcpy(out, value, size);
    return true;
}

/* False: this attribute is not known here. Of memory that is not CUDA's all are zero. */
static bool tell(CUpointer_attribute attribute, CUdeviceptr address,
                 const struct rig_allocation *found, void *out)
{
    bool known = found->base;
    unsigned type = !known ? 0 : found->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    CUcontext context = NULL;
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        if (known)
            cuDevicePrimaryCtxRetain(&context, found->device);
        return put(out, &context, sizeof(context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return put(out, &type, sizeof(type));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        address = known ? address : 0;
        return put(out, &address, sizeof(address));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return put(out, &found->base, sizeof(found->base));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return put(out, &found->size, sizeof(found->size));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return put(out, &found->device, sizeof(found->device));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return put(out, &(int){found->shared}, sizeof(int));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return put(out, &(bool){false}, sizeof(bool));
    default:
        return false;
    }
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct rig_allocation found = {0};
    if (!rig_allocation((void *)address, &found) || !tell(attribute, address, &found, out))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **out,
                                CUdeviceptr address)
{
    struct rig_allocation found = {0};
    rig_allocation((void *)address, &found);
    for (unsigned i = 0; i < count; i++)
        if (!tell(attributes[i], address, &found, out[i]))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

DOES(cuPointerSetAttribute,
     (const void *value, CUpointer_attribute attribute, CUdeviceptr address));

/* ---- memory of other processes ---- */

struct handle {
    int magic, pid, fd;
    size_t offset, size;
};
enum { MAGIC = 0x5443434c };
_Static_assert(sizeof(struct handle) <= sizeof(CUipcMemHandle), "too large for a handle");

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
    struct handle handle = {0};
    struct rig_allocation found;
    memset(out, 0, sizeof(*out));
    if (!rig_allocation((void *)address, &found))
        return CUDA_ERROR_INVALID_VALUE;
    handle = (struct handle){MAGIC, getpid(), arena_fd, (size_t)((char *)found.base - arena),
                             whole_pages(found.size)};
    memcpy(out, &handle, sizeof(handle));
    return CUDA_SUCCESS;
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

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle in, unsigned flags)
{
    struct handle handle;
    char path[64];
    void *start;
    int fd;
    memcpy(&handle, &in, sizeof(handle));
    if (handle.magic != MAGIC)
        return CUDA_ERROR_INVALID_HANDLE;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.pid, handle.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        fprintf(stderr, "tccl rig: %s: %s\n", path, strerror(errno));
        return CUDA_ERROR_MAP_FAILED;
    }
    start = mmap(NULL, handle.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)handle.offset);
    close(fd);
    if (start == MAP_FAILED || !remember(start, handle.size))
        return CUDA_ERROR_MAP_FAILED;
    *address = (CUdeviceptr)start;
    return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    CUresult error = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (struct mapping **at = &mappings; *at; at = &(*at)->next) {
        struct mapping *mapping = *at;
        if (mapping->start != (void *)address)
            continue;
        munmap(mapping->start, mapping->size);
        *at = mapping->next;
        free(mapping);
        error = CUDA_SUCCESS;
        break;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* ---- pools ---- */

SAYS(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *properties), rig_token(pool));
DOES(cuMemPoolDestroy, (CUmemoryPool pool), free(pool));
DOES(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value));
