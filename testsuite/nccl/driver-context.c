/* driver-context.c: contexts of the stand-in driver: the primary one of each device, and no others.
 */
#include "driver.h"

#include <stdlib.h>

/* A handle is the address of one of these. */
static struct context {
    unsigned flags;
    bool active;
} contexts[RIG_GPUS];

static __thread struct context *stack[16]; /* the last is the current one */
static __thread int depth;

static CUcontext handle(struct context *context)
{
    return (CUcontext)(void *)context;
}

static struct context *current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

int rig_current(void)
{
    return current() ? (int)(current() - contexts) : 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (rig_ordinal(device) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    contexts[device].active = true;
    *context = handle(&contexts[device]);
    return CUDA_SUCCESS;
}

SAYS(cuDevicePrimaryCtxRelease, (CUdevice device),
     rig_ordinal(device) < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS);

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    if (rig_ordinal(device) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = contexts[device].flags;
    *active = contexts[device].active;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
    if (rig_ordinal(device) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    contexts[device].flags = flags;
    return CUDA_SUCCESS;
}

DOES(cuCtxGetCurrent, (CUcontext * context), *context = handle(current()));

CUresult cuCtxSetCurrent(CUcontext context)
{
    depth = depth > 0 ? depth - 1 : 0;
    return context ? cuCtxPushCurrent(context) : CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    struct context *pushed = (struct context *)(void *)context;
    if (pushed < contexts || pushed >= contexts + RIG_GPUS || depth == 16)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = pushed;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
        *context = handle(current());
    depth--;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = rig_current();
    return current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

DOES(cuCtxGetFlags, (unsigned *flags), *flags = current() ? current()->flags : 0);
DOES(cuCtxGetApiVersion, (CUcontext context, unsigned *version), *version = 3020);
DOES(cuCtxSetLimit, (CUlimit limit, size_t value));
DOES(cuCtxGetLimit, (size_t * value, CUlimit limit), *value = 1024);

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    int can = 0;
    if (cuDeviceCanAccessPeer(&can, rig_current(),
                              (int)((struct context *)(void *)peer - contexts)) != CUDA_SUCCESS ||
        !can)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    return CUDA_SUCCESS;
}
