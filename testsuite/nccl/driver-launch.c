/* driver-launch.c: kernels of the stand-in driver. Whatever a program brings is loaded, unread, and
 * has every kernel that is asked for. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

/* ---- what holds kernels ---- */

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    (void)image;
    return rig_token(module);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module)
{
    free(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options,
                           void **values, unsigned count, CUlibraryOption *library_options,
                           void **library_values, unsigned library_count)
{
    (void)image, (void)options, (void)values, (void)count;
    (void)library_options, (void)library_values, (void)library_count;
    return rig_token(library);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    free(library);
    return CUDA_SUCCESS;
}

/* Its module is the library itself, and a kernel's function the kernel. */
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    *module = (CUmodule)(void *)library;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    (void)library, (void)name;
    return rig_token(kernel);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module, (void)name;
    return rig_token(function);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    *function = (CUfunction)(void *)kernel;
    return CUDA_SUCCESS;
}

/* ---- what a kernel needs ---- */

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)function;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device)
{
    (void)device;
    return cuFuncGetAttribute(value, attribute, (CUfunction)(void *)kernel);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device)
{
    (void)attribute, (void)value, (void)kernel, (void)device;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                              int size, size_t shared,
                                                              unsigned flags)
{
    (void)function, (void)size, (void)shared, (void)flags;
    *blocks = 1;
    return CUDA_SUCCESS;
}

/* ---- launches ---- */

/* With TCCL_RIG_LAUNCH=nothing a launch is accepted and nothing runs: no byte is copied, and nobody
 * may look at the data. What the host does after a collective goes on. */
static CUresult launch(void)
{
    const char *wanted = getenv("TCCL_RIG_LAUNCH");

    return wanted && strcmp(wanted, "nothing") == 0 ? CUDA_SUCCESS : rig_refused("a kernel launch");
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **arguments, void **extra)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared, (void)stream, (void)arguments, (void)extra;
    return launch();
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *configuration, CUfunction function,
                          void **arguments, void **extra)
{
    (void)configuration, (void)function, (void)arguments, (void)extra;
    return launch();
}
