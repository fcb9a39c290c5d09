/* make-comms.c: a program that makes communicators of all GPUs it sees, and says nothing. Ends with
 * 0 if all could be made. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

enum { GPUS = 16 };

int main(void)
{
    ncclComm_t comms[GPUS];
    int n = 0;

    if (cudaGetDeviceCount(&n) != cudaSuccess || n > GPUS)
        return 1;
    for (int round = 0; round < 2; round++) {
        if (ncclCommInitAll(comms, n, NULL) != ncclSuccess)
            return 2;
        for (int i = 0; i < n; i++)
            ncclCommDestroy(comms[i]);
    }
    return 0;
}
