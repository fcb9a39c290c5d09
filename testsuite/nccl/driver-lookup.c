/* driver-lookup.c: by which name, and in which version of CUDA, programs find the functions of the
 * stand-in driver. With TCCL_RIG_MISSING=1 a line on stderr for each that is asked for and isn't
 * here, which a newer NCCL or runtime may need. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUresult graph(void)
{
    return rig_refused("what is done with a CUDA graph");
}

static CUresult batch(void)
{
    return rig_refused("a batch of copies");
}

/* Functions that are here to be refused: by the beginnings of their names. */
static const struct {
    const char *start;
    CUresult (*function)(void);
} refused[] = {
    {"cuGraph", graph},
    {"cuStreamUpdateCapture", graph},
    {"cuStreamBeginCaptureToGraph", graph},
    {"cuMemcpyBatchAsync", batch},
};

/* Those of cuMem, which not every driver has. */
static const char *const virtual[] = {
    "cuMemCreate",
    "cuMemRelease",
    "cuMemRetainAllocationHandle",
    "cuMemGetAllocationGranularity",
    "cuMemGetAllocationPropertiesFromHandle",
    "cuMemExportToShareableHandle",
    "cuMemImportFromShareableHandle",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemSetAccess",
};

static void *refused_function(const char *name)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        if (strncmp(name, refused[i].start, strlen(refused[i].start)) == 0)
            return (void *)refused[i].function;
    return NULL;
}

static bool hidden(const char *name)
{
    for (size_t i = 0; !rig_has_virtual() && i < sizeof(virtual) / sizeof(*virtual); i++)
        if (strcmp(name, virtual[i]) == 0)
            return true;
    return false;
}

/* Of the versions of a function, this library exports one: that of CUDA 13. */
static void *exported(const char *name)
{
    static const char *const endings[] = {"", "_v2", "_v3", "_v4"};
    static void *self;
    char versioned[128];
    void *found = NULL;
    Dl_info info;
    if (!self && dladdr((void *)cuInit, &info))
        self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; self && !found && i < sizeof(endings) / sizeof(*endings); i++) {
        snprintf(versioned, sizeof(versioned), "%s%s", name, endings[i]);
        found = dlsym(self, versioned);
    }
    return found;
}

/* Up to CUDA 12.2 these had no edges. */
static CUresult capture_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                             CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
    return cuStreamGetCaptureInfo(stream, status, id, graph, nodes, NULL, count);
}

static void *older(const char *name, int version)
{
    if (version >= 12030)
        return NULL;
    if (strcmp(name, "cuStreamGetCaptureInfo") == 0)
        return (void *)capture_info;
    return strcmp(name, "cuStreamUpdateCaptureDependencies") == 0 ||
                   strcmp(name, "cuGraphAddDependencies") == 0
               ? (void *)graph
               : NULL;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status)
{
    *function = hidden(name) ? NULL : older(name, version);
    if (!*function && !hidden(name))
        *function = exported(name);
    if (!*function)
        *function = refused_function(name);
    if (!*function && getenv("TCCL_RIG_MISSING"))
        fprintf(stderr, "tccl rig: %s of CUDA %d is not here\n", name, version);
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
