/* driver-launch.c: kernels of the stand-in driver. Whatever a program brings is loaded, unread, and
 * has every kernel that is asked for. NCCL's own can run, on the CPU: kernels.cc. */
#include "driver.h"
#include "kernels.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what holds kernels ---- */

SAYS(cuModuleLoadData, (CUmodule * module, const void *image), rig_token(module));
SAYS(cuModuleLoadFatBinary, (CUmodule * module, const void *image),
     cuModuleLoadData(module, image));
DOES(cuModuleUnload, (CUmodule module), free(module));
DOES(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode), *mode = CU_MODULE_LAZY_LOADING);

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options,
                           void **values, unsigned count, CUlibraryOption *library_options,
                           void **library_values, unsigned library_count)
{
    return rig_token(library);
}

DOES(cuLibraryUnload, (CUlibrary library), free(library));

/* Its module is the library itself, a kernel is its name, and a kernel's function the kernel. */
static CUresult name_kernel(void *out, const char *name)
{
    *(char **)out = strdup(name);
    return *(char **)out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DOES(cuLibraryGetModule, (CUmodule * module, CUlibrary library),
     *module = (CUmodule)(void *)library);
SAYS(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name),
     name_kernel(kernel, name));
SAYS(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),
     name_kernel(function, name));
DOES(cuKernelGetFunction, (CUfunction * function, CUkernel kernel),
     *function = (CUfunction)(void *)kernel);

/* ---- what a kernel needs ---- */

DOES(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function),
     *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0);
SAYS(cuKernelGetAttribute,
     (int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device),
     cuFuncGetAttribute(value, attribute, (CUfunction)(void *)kernel));
DOES(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value));
DOES(cuKernelSetAttribute,
     (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device));
DOES(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
     (int *blocks, CUfunction function, int size, size_t shared, unsigned flags), *blocks = 1);

/* ---- launches ---- */

struct launch {
    unsigned blocks;
    int gpu; /* on the machine */
    _Alignas(16) char arguments[];
};

struct block {
    struct launch *launch;
    unsigned number;
    pthread_t thread;
};

static const struct rig_kernels *kernels;

static void load_kernels(void)
{
    void *library = dlopen("libnccl-kernels.so", RTLD_NOW | RTLD_LOCAL);
    kernels = library ? dlsym(library, "rig_kernels") : NULL;
    if (!kernels)
        fprintf(stderr, "tccl rig: no kernels for this NCCL: %s\n", dlerror());
}

static void *run_block(void *data)
{
    const struct block *block = data;
    kernels->run(block->launch->arguments, block->number, block->launch->gpu, rig_paced());
    return NULL;
}

/* All at once, as on a GPU: each waits for others. */
static void run_launch(void *data)
{
    struct launch *launch = data;
    struct block blocks[RIG_BLOCKS];
    for (unsigned i = 0; i < launch->blocks; i++) {
        struct block *block = &blocks[i];
        *block = (struct block){.launch = launch, .number = i};
        if (i > 0 && pthread_create(&block->thread, NULL, run_block, block) != 0) {
            fprintf(stderr, "tccl rig: a kernel can't have %u threads\n", launch->blocks);
            abort();
        }
    }
    run_block(&blocks[0]);
    for (unsigned i = 1; i < launch->blocks; i++)
        pthread_join(blocks[i].thread, NULL);
}

/* NCCL that launches, by where its function returns to, is of the version of the kernels. */
static bool same_version(const void *caller)
{
    Dl_info info;
    void *library = dladdr(caller, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    int (*get_version)(int *version) = NULL, version = 0;
    if (library)
        *(void **)&get_version = dlsym(library, "ncclGetVersion");
    if (get_version)
        get_version(&version);
    return version == kernels->version;
}

/* Why it can't run, or NULL. */
static const char *why_not(const char *name, unsigned blocks, const void *arguments,
                           const void *caller)
{
    if (!kernels)
        return "a kernel without libnccl-kernels.so";
    if (!strstr(name, "ncclDevKernel_") || !arguments || blocks > RIG_BLOCKS)
        return name;
    return same_version(caller) ? kernels->refused(arguments) : "a kernel of another NCCL's";
}

/* Its arguments are one piece of memory: {CU_LAUNCH_PARAM_BUFFER_POINTER, start,
 * CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END}. */
static CUresult run(CUfunction function, unsigned blocks, CUstream stream, void **extra,
                    const void *caller)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const void *start = NULL;
    size_t size = 0;
    struct launch *launch;
    const char *reason;
    CUresult result;
    pthread_once(&once, load_kernels);
    for (void **at = extra; at && *at != CU_LAUNCH_PARAM_END; at += 2) {
        if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER)
            start = at[1];
        if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *(const size_t *)at[1];
    }
    reason = why_not((const char *)function, blocks, start, caller);
    if (reason)
        return rig_refused(reason);
    launch = aligned_alloc(16, sizeof(*launch) + (size + 15) / 16 * 16);
    if (!launch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    launch->blocks = blocks;
    launch->gpu = rig_ordinal(rig_current());
    memcpy(launch->arguments, start, size);
    result = rig_submit(stream, run_launch, free, launch);
    if (result != CUDA_SUCCESS)
        free(launch);
    return result;
}

/* TCCL_RIG_LAUNCH=run: the kernel runs. With nothing a launch is accepted and nothing runs: no byte
 * is copied, and nobody may look at the data; what the host does after a collective goes on. */
static CUresult launch(CUfunction function, unsigned blocks, CUstream stream, void **extra,
                       const void *caller)
{
    const char *wanted = getenv("TCCL_RIG_LAUNCH");
    if (wanted && strcmp(wanted, "run") == 0)
        return run(function, blocks, stream, extra, caller);
    return wanted && strcmp(wanted, "nothing") == 0 ? CUDA_SUCCESS : rig_refused("a kernel launch");
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **arguments, void **extra)
{
    return launch(function, grid_x, stream, extra, __builtin_return_address(0));
}

SAYS(cuLaunchKernelEx,
     (const CUlaunchConfig *configuration, CUfunction function, void **arguments, void **extra),
     launch(function, configuration->gridDimX, configuration->hStream, extra,
            __builtin_return_address(0)));
