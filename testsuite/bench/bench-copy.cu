// bench-copy.cu: what a plain copy tool reports: cudaMemcpyAsync between page-locked host memory
// and each GPU, timed by events, one way and both ways at once. For contrib/gpu-check, to compare
// with. Host memory lies where the process runs: start it with numactl --membind to choose.
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

static const size_t bytes = 64 << 20;
static const int copies = 32, repeats = 5;

static void check(cudaError_t result, const char *what)
{
    if (result == cudaSuccess)
        return;
    std::fprintf(stderr, "tccl: bench-copy: %s: %s\n", what, cudaGetErrorString(result));
    std::exit(1);
}

struct lane {
    cudaStream_t stream;
    cudaEvent_t start, end;
    void *host, *device;
};

static lane make_lane()
{
    lane made;
    check(cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreate(&made.start), "cudaEventCreate");
    check(cudaEventCreate(&made.end), "cudaEventCreate");
    check(cudaMallocHost(&made.host, bytes), "cudaMallocHost");
    check(cudaMalloc(&made.device, bytes), "cudaMalloc");
    return made;
}

static void free_lane(lane &made)
{
    cudaFree(made.device);
    cudaFreeHost(made.host);
    cudaEventDestroy(made.start);
    cudaEventDestroy(made.end);
    cudaStreamDestroy(made.stream);
}

// Turn by turn, so that both directions are busy from the beginning.
static void enqueue(lane *to_gpu, lane *to_host)
{
    for (lane *each : {to_gpu, to_host})
        if (each)
            check(cudaEventRecord(each->start, each->stream), "cudaEventRecord");
    for (int i = 0; i < copies; i++) {
        if (to_gpu)
            check(cudaMemcpyAsync(to_gpu->device, to_gpu->host, bytes, cudaMemcpyHostToDevice,
                                  to_gpu->stream),
                  "cudaMemcpyAsync");
        if (to_host)
            check(cudaMemcpyAsync(to_host->host, to_host->device, bytes, cudaMemcpyDeviceToHost,
                                  to_host->stream),
                  "cudaMemcpyAsync");
    }
    for (lane *each : {to_gpu, to_host})
        if (each)
            check(cudaEventRecord(each->end, each->stream), "cudaEventRecord");
}

// GB/s of the slower direction.
static double run_once(lane *to_gpu, lane *to_host)
{
    double slowest = 0;

    enqueue(to_gpu, to_host);
    for (lane *each : {to_gpu, to_host}) {
        float ms;
        if (!each)
            continue;
        check(cudaStreamSynchronize(each->stream), "cudaStreamSynchronize");
        check(cudaEventElapsedTime(&ms, each->start, each->end), "cudaEventElapsedTime");
        double gbps = static_cast<double>(bytes) * copies / (ms * 1e6);
        slowest = slowest == 0 || gbps < slowest ? gbps : slowest;
    }
    return slowest;
}

static int compare(const void *a, const void *b)
{
    double x = *static_cast<const double *>(a), y = *static_cast<const double *>(b);
    return (x > y) - (x < y);
}

static void report(int gpu, const char *what, lane *to_gpu, lane *to_host, bool last)
{
    double gbps[repeats];

    run_once(to_gpu, to_host);
    for (double &value : gbps)
        value = run_once(to_gpu, to_host);
    std::qsort(gbps, repeats, sizeof(*gbps), compare);
    std::printf("  {\"gpu\": %d, \"way\": \"%s\", \"gbps\": %.3f, \"spread\": %.4f}%s\n", gpu, what,
                gbps[repeats / 2], (gbps[repeats - 1] - gbps[0]) / gbps[repeats / 2],
                last ? "" : ",");
}

int main()
{
    int gpus = 0;

    check(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
    std::printf("[\n");
    for (int gpu = 0; gpu < gpus; gpu++) {
        check(cudaSetDevice(gpu), "cudaSetDevice");
        lane to_gpu = make_lane(), to_host = make_lane();
        report(gpu, "host to GPU", &to_gpu, nullptr, false);
        report(gpu, "GPU to host", nullptr, &to_host, false);
        report(gpu, "both", &to_gpu, &to_host, gpu == gpus - 1);
        free_lane(to_gpu);
        free_lane(to_host);
    }
    std::printf("]\n");
    return 0;
}
