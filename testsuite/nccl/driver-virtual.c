/* driver-virtual.c: virtual memory management (cuMemCreate and its kin) of the stand-in driver, but
 * not with TCCL_RIG_CUMEM=0. Drivers from CUDA 12 on offer it; NCCL then takes it for device and
 * host buffers, and connects at the first collective. An allocation is a memfd, so that a handle
 * passed on as a descriptor maps the same memory in another process. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* As of GPUs today: NCCL rounds all sizes up to it. */
#define GRANULARITY ((size_t)2 << 20)
#define NAME "tccl-rig-cumem-"

/* A handle is the address of one of these. A mapping counts as one reference. */
struct physical {
    int fd, references;
    size_t size;
    CUmemAllocationProp properties;
    int place; /* the GPU, or the NUMA node, on the machine; -1: not known */
    struct physical *next;
};

struct view { /* a mapping of a physical allocation */
    char *start;
    size_t size, offset;
    struct physical *physical;
    struct view *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct physical *physicals;
static struct view *views;

bool rig_has_virtual(void)
{
    const char *wanted = getenv("TCCL_RIG_CUMEM");
    return !wanted || strcmp(wanted, "0") != 0;
}

/* ---- under the lock ---- */

static struct physical *known(CUmemGenericAllocationHandle handle)
{
    for (struct physical *physical = physicals; physical; physical = physical->next)
        if ((CUmemGenericAllocationHandle)(uintptr_t)physical == handle)
            return physical;
    return NULL;
}

static struct view *view_of(const void *address)
{
    const char *at = address;
    for (struct view *view = views; view; view = view->next)
        if (at >= view->start && at < view->start + view->size)
            return view;
    return NULL;
}

static void drop(struct physical *physical)
{
    struct physical **at = &physicals;
    if (--physical->references > 0)
        return;
    while (*at != physical)
        at = &(*at)->next;
    *at = physical->next;
    close(physical->fd);
    free(physical);
}

static CUresult add_physical(int fd, size_t size, const CUmemAllocationProp *properties, int place,
                             CUmemGenericAllocationHandle *handle)
{
    struct physical *physical = malloc(sizeof(*physical));
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *physical = (struct physical){fd, 1, size, *properties, place, physicals};
    physicals = physical;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    return CUDA_SUCCESS;
}

/* ---- physical memory ---- */

static bool sane(const CUmemAllocationProp *properties)
{
    return properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           (properties->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0 &&
           (properties->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
            (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
             rig_ordinal(properties->location.id) >= 0));
}

/* A real driver has all pages of host memory at once, which costs time; here only if that is to be
 * measured. */
static int make_room(int fd, size_t size, const CUmemAllocationProp *properties)
{
    bool at_once = properties->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA &&
                   getenv("TCCL_RIG_PINNED") != NULL;
    return at_once ? fallocate(fd, 0, 0, (off_t)size) : ftruncate(fd, (off_t)size);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    char name[32];
    int fd, place;
    if (flags != 0 || size == 0 || size % GRANULARITY != 0 || !sane(properties))
        return CUDA_ERROR_INVALID_VALUE;
    bool host = properties->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    place = host ? properties->location.id : rig_ordinal(properties->location.id);
    /* So that an importer knows where it is. */
    snprintf(name, sizeof(name), NAME "%c%d", host ? 'm' : 'g', place);
    fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return result;
    pthread_mutex_lock(&lock);
    if (make_room(fd, size, properties) == 0)
        result = add_physical(fd, size, properties, place, handle);
    pthread_mutex_unlock(&lock);
    if (result != CUDA_SUCCESS)
        close(fd);
    return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct physical *physical;
    pthread_mutex_lock(&lock);
    physical = known(handle);
    if (physical)
        drop(physical);
    pthread_mutex_unlock(&lock);
    return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    struct view *view;
    pthread_mutex_lock(&lock);
    view = view_of(address);
    if (view) {
        view->physical->references++;
        *handle = (CUmemGenericAllocationHandle)(uintptr_t)view->physical;
    }
    pthread_mutex_unlock(&lock);
    return view ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    if (!sane(properties))
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle handle)
{
    struct physical *physical;
    pthread_mutex_lock(&lock);
    physical = known(handle);
    if (physical)
        *properties = physical->properties;
    pthread_mutex_unlock(&lock);
    return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- handed on to other processes ---- */

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    struct physical *physical;
    int fd = -1;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    physical = known(handle);
    if (physical && physical->properties.requestedHandleTypes & type)
        fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&lock);
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &fd, sizeof(fd));
    return CUDA_SUCCESS;
}

/* By the name that its creator has given it. A GPU that this process does not see is taken for the
 * current one, but for its place. */
static int find_place(int fd, CUmemAllocationProp *properties)
{
    char link[64], name[64] = "";
    int place = -1;
    char kind = 'g';
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (readlink(link, name, sizeof(name) - 1) < 0 ||
        sscanf(name, "/memfd:" NAME "%c%d", &kind, &place) != 2)
        return -1;
    properties->location.type =
        kind == 'm' ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;
    properties->location.id = kind == 'm' ? place : rig_current();
    for (int i = 0; kind == 'g' && i < rig_visible(); i++)
        if (rig_ordinal(i) == place)
            properties->location.id = i;
    return place;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared,
                                        CUmemAllocationHandleType type)
{
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = rig_current()},
    };
    CUresult result;
    off_t size;
    int fd;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    fd = fcntl((int)(intptr_t)shared, F_DUPFD_CLOEXEC, 0);
    size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (size <= 0) {
        close(fd);
        return CUDA_ERROR_INVALID_VALUE;
    }
    int place = find_place(fd, &properties);
    pthread_mutex_lock(&lock);
    result = add_physical(fd, (size_t)size, &properties, place, handle);
    pthread_mutex_unlock(&lock);
    if (result != CUDA_SUCCESS)
        close(fd);
    return result;
}

/* ---- addresses ---- */

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags)
{
    size_t more = size + GRANULARITY, before;
    char *start;
    if (flags != 0 || size == 0 || size % GRANULARITY != 0 || alignment > GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    start = mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    before = (GRANULARITY - (uintptr_t)start % GRANULARITY) % GRANULARITY;
    if (before > 0)
        munmap(start, before);
    munmap(start + before + size, GRANULARITY - before);
    *address = (CUdeviceptr)(start + before);
    return CUDA_SUCCESS;
}

SAYS(cuMemAddressFree, (CUdeviceptr address, size_t size),
     munmap((void *)address, size) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);

/* Until access is set, whoever touches it gets a signal, as on a GPU an error. */
CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct view *view = malloc(sizeof(*view));
    struct physical *physical;
    bool done = false;
    pthread_mutex_lock(&lock);
    physical = known(handle);
    if (view && physical && flags == 0 && offset <= physical->size &&
        size <= physical->size - offset &&
        mmap((void *)address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->fd,
             (off_t)offset) != MAP_FAILED) {
        *view = (struct view){(char *)address, size, offset, physical, views};
        views = view;
        physical->references++;
        done = true;
    }
    pthread_mutex_unlock(&lock);
    if (!done)
        free(view);
    return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (struct view **at = &views; *at; at = &(*at)->next) {
        struct view *view = *at;
        if (view->start != (char *)address || view->size != size)
            continue;
        mmap(view->start, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
             -1, 0);
        *at = view->next;
        drop(view->physical);
        free(view);
        result = CUDA_SUCCESS;
        break;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
                        size_t count)
{
    int protection = PROT_NONE;
    for (size_t i = 0; i < count; i++)
        if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            protection = PROT_READ | PROT_WRITE;
    if (mprotect((void *)address, size, protection) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* ---- for the other parts of the stand-in ---- */

bool rig_virtual_allocation(const void *address, struct rig_allocation *found)
{
    struct view *view;
    pthread_mutex_lock(&lock);
    view = view_of(address);
    if (view) {
        const CUmemLocation *location = &view->physical->properties.location;
        bool host = location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
        *found = (struct rig_allocation){.base = view->start,
                                         .size = view->size,
                                         .device = host ? 0 : location->id,
                                         .host = host,
                                         .place = view->physical->place};
    }
    pthread_mutex_unlock(&lock);
    return view;
}

bool rig_virtual_zero(char *start, char *end)
{
    struct view *view;
    bool done;
    pthread_mutex_lock(&lock);
    view = start < end ? view_of(start) : NULL;
    done = view && end <= view->start + view->size &&
           fallocate(view->physical->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     start - view->start + (off_t)view->offset, end - start) == 0;
    pthread_mutex_unlock(&lock);
    return done;
}
