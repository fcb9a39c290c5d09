/* stand-in-driver.c: libcuda.so for NCCL up to 2.20, which loads the driver by that name and has
 * its functions from it, not from the CUDA runtime. They are those of the stand-in runtime. */
#include <cuda_runtime_api.h>

/* With the numbers and parameters that these NCCLs know; the header of CUDA 13 has newer ones. */
int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags);

enum { NOT_FOUND = 500 };

int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}

int cuDriverGetVersion(int *version)
{
    return cudaDriverGetVersion(version);
}

int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags)
{
    enum cudaDriverEntryPointQueryResult result;

    cudaGetDriverEntryPointByVersion(name, function, (unsigned)version, flags, &result);
    return result == cudaDriverEntryPointSuccess ? 0 : NOT_FOUND;
}
