/* make-comms.c: a program that makes communicators of all GPUs it sees, uses them once, and says
 * nothing. Ends with 0 if all could be made. */
#include "comms.h"

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
        if (use_comms(comms, n) != ncclSuccess)
            return 3;
        for (int i = 0; i < n; i++)
            ncclCommDestroy(comms[i]);
    }
    return 0;
}
