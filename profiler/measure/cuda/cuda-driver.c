/* cuda-driver.c: loads NVIDIA's libcuda at run time: tccl-profile starts on nodes without
 * it, too. */
#include "measure/cuda/cuda-driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char library_name[] = "libcuda.so.1";

static const struct {
    const char *name;
    size_t offset;
} calls[] = {
#define NAME_OF(name) #name
#define CALL(name) {NAME_OF(name), offsetof(struct tccl_cuda, name)},
    TCCL_CUDA_CALLS(CALL)
#undef CALL
#undef NAME_OF
};

int tccl_cuda_load(struct tccl_cuda *cuda, struct tccl_error *err)
{
    memset(cuda, 0, sizeof(*cuda));
    cuda->library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (!cuda->library)
        return tccl_fail(err, "no NVIDIA driver: %s", dlerror());
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        void *call = dlsym(cuda->library, calls[i].name);
        if (!call) {
            tccl_cuda_unload(cuda);
            return tccl_fail(err,
                             "%s has no %s: NVIDIA's driver is older than the CUDA %d.%d that this "
                             "was built with; update it",
                             library_name, calls[i].name, CUDA_VERSION / 1000,
                             CUDA_VERSION % 1000 / 10);
        }
        memcpy((char *)cuda + calls[i].offset, &call, sizeof(call));
    }
    return 0;
}

void tccl_cuda_unload(struct tccl_cuda *cuda)
{
    if (cuda->library)
        dlclose(cuda->library);
    cuda->library = NULL;
}

int tccl_cuda_start(struct tccl_cuda *cuda, struct tccl_error *err)
{
    unsetenv("CUDA_VISIBLE_DEVICES");
    /* A launch that waits for the kernel's end would never come back to start it. */
    unsetenv("CUDA_LAUNCH_BLOCKING");
    unsetenv("CUDA_FORCE_PTX_JIT");
    /* All kernels are loaded at once, since loading later waits for those that run; and as many
     * copies as can be run at the same time get a queue of their own. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    if (tccl_cuda_load(cuda, err) != 0)
        return -1;
    CUresult result = cuda->cuInit(0);
    return result == CUDA_SUCCESS
               ? 0
               : tccl_cuda_fail(cuda, result, err, "NVIDIA's driver does not start");
}

int tccl_cuda_fail(const struct tccl_cuda *cuda, CUresult result, struct tccl_error *err,
                   const char *fmt, ...)
{
    const char *name = NULL, *text = NULL;
    char what[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    cuda->cuGetErrorName(result, &name);
    cuda->cuGetErrorString(result, &text);
    return tccl_fail(err, "%s: %s (%s)", what, text ? text : "unknown error",
                     name ? name : "no name");
}
