/* driver-stream.c: streams and events of the stand-in driver: everything is done when the call
 * returns. There are no graphs. */
#include "driver.h"

#include <stdlib.h>

SAYS(cuStreamCreate, (CUstream * stream, unsigned flags), rig_token(stream));
SAYS(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority),
     rig_token(stream));
DOES(cuCtxGetStreamPriorityRange, (int *least, int *greatest), *least = *greatest = 0);
DOES(cuStreamDestroy, (CUstream stream), free(stream));
DOES(cuStreamSynchronize, (CUstream stream));
DOES(cuStreamQuery, (CUstream stream));
DOES(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags));
DOES(cuStreamGetId, (CUstream stream, unsigned long long *id),
     *id = (unsigned long long)(size_t)stream);
DOES(cuStreamGetDevice, (CUstream stream, CUdevice *device), *device = rig_current());
SAYS(cuStreamGetCtx, (CUstream stream, CUcontext *context), cuCtxGetCurrent(context));
DOES(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status),
     *status = CU_STREAM_CAPTURE_STATUS_NONE);

/* Of the versions 2 and 3 of the call, too, which differ only in what follows for a stream that
 * captures. */
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                CUgraph *graph, const CUgraphNode **nodes,
                                const CUgraphEdgeData **edges, size_t *count)
{
    return cuStreamIsCapturing(stream, status);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    static __thread CUstreamCaptureMode current;
    CUstreamCaptureMode before = current;

    current = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

SAYS(cuEventCreate, (CUevent * event, unsigned flags), rig_token(event));
DOES(cuEventDestroy, (CUevent event), free(event));
DOES(cuEventRecord, (CUevent event, CUstream stream));
SAYS(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
     cuEventRecord(event, stream));
DOES(cuEventQuery, (CUevent event));
DOES(cuEventSynchronize, (CUevent event));
DOES(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data), function(data));
