/* cuda-peers.c: which GPUs reach each other by CUDA's word. No header of CUDA's is needed. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "discover/discover.h"

int tccl_cuda_peers_read(struct tccl_nvml *nvml, struct tccl_error *err)
{
    int (*init)(unsigned), (*find)(int *, const char *), (*reaches)(int *, int, int);
    int devices[TCCL_NVML_GPUS], can;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return tccl_fail(err, "there is no libcuda.so.1");
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&find = dlsym(library, "cuDeviceGetByPCIBusId");
    *(void **)&reaches = dlsym(library, "cuDeviceCanAccessPeer");
    if (!init || !find || !reaches)
        return tccl_fail(err, "libcuda.so.1 lacks functions: it is too old, or of something else");
    unsetenv("CUDA_VISIBLE_DEVICES"); /* of all GPUs */
    int code = init(0);
    if (code != 0)
        return tccl_fail(err, "CUDA can't start (error %d)", code);
    for (int i = 0; i < nvml->n_gpus; i++)
        if (find(&devices[i], nvml->gpus[i].busid) != 0)
            return tccl_fail(err, "CUDA does not see GPU %s", nvml->gpus[i].busid);
    for (int a = 0; a < nvml->n_gpus; a++)
        for (int b = 0; b < nvml->n_gpus; b++) {
            if (a != b && (code = reaches(&can, devices[a], devices[b])) != 0)
                return tccl_fail(err, "CUDA can't say it of %s and %s (error %d)",
                                 nvml->gpus[a].busid, nvml->gpus[b].busid, code);
            nvml->reach[a][b] = a != b && can == 1;
        }
    nvml->knows_cuda = true;
    return 0;
}
