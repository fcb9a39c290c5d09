#include "cuda-driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

static int find_calls(struct tccl_cuda *cuda, struct tccl_error *err)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        void *call = dlsym(cuda->library, calls[i].name);
        if (!call)
            return tccl_fail(err,
                             "%s has no %s: NVIDIA's driver is older than the CUDA %d.%d that this "
                             "was built with; update it",
                             library_name, calls[i].name, CUDA_VERSION / 1000,
                             CUDA_VERSION % 1000 / 10);
        memcpy((char *)cuda + calls[i].offset, &call, sizeof(call));
    }
    return 0;
}

int tccl_cuda_load(struct tccl_cuda *cuda, struct tccl_error *err)
{
    memset(cuda, 0, sizeof(*cuda));
    cuda->library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (!cuda->library)
        return tccl_fail(err, "no NVIDIA driver: %s", dlerror());
    if (find_calls(cuda, err) == 0)
        return 0;
    tccl_cuda_unload(cuda);
    return -1;
}

void tccl_cuda_unload(struct tccl_cuda *cuda)
{
    if (cuda->library)
        dlclose(cuda->library);
    cuda->library = NULL;
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
