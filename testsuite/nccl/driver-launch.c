/* driver-launch.c: kernels of the stand-in driver. Whatever a program brings is loaded, unread, and
 * has every kernel that is asked for. */
#include "driver.h"

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

/* Its module is the library itself, and a kernel's function the kernel. */
DOES(cuLibraryGetModule, (CUmodule * module, CUlibrary library),
     *module = (CUmodule)(void *)library);
SAYS(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name),
     rig_token(kernel));
SAYS(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),
     rig_token(function));
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
    return launch();
}

SAYS(cuLaunchKernelEx,
     (const CUlaunchConfig *configuration, CUfunction function, void **arguments, void **extra),
     launch());
