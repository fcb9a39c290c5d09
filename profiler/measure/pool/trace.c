/* trace.c: how many bytes a member of a run had moved at which time. */
#include "measure/pool/pool-run.h"

#include "measure/pool/workers.h"

void tccl_trace_begin(struct tccl_trace *trace, int64_t time)
{
    trace->count = 1;
    trace->stride = 1;
    trace->skipped = 0;
    trace->samples[0] = trace->last = (struct tccl_trace_sample){time, 0};
}

void tccl_trace_add(struct tccl_trace *trace, int64_t time, uint64_t bytes)
{
    trace->last = (struct tccl_trace_sample){time, bytes};
    if (bytes == 0) {
        trace->samples[0] = trace->last;
        return;
    }
    if (++trace->skipped < trace->stride)
        return;
    trace->skipped = 0;
    if (trace->count == TCCL_TRACE_SAMPLES) { /* thinned out */
        trace->count = TCCL_TRACE_SAMPLES / 2;
        trace->stride *= 2;
        for (uint32_t i = 1; i < trace->count; i++)
            trace->samples[i] = trace->samples[2 * i];
    }
    trace->samples[trace->count++] = trace->last;
}

double tccl_trace_bytes(const struct tccl_trace *trace, int64_t time)
{
    if (time <= trace->samples[0].time)
        return 0;
    if (time >= trace->last.time)
        return (double)trace->last.bytes;
    uint32_t low = 0, high = trace->count; /* the last sample that is not after the time */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (trace->samples[middle].time <= time)
            low = middle;
        else
            high = middle;
    }
    struct tccl_trace_sample from = trace->samples[low];
    struct tccl_trace_sample to = high < trace->count ? trace->samples[high] : trace->last;
    return (double)from.bytes + (double)(to.bytes - from.bytes) * (double)(time - from.time) /
                                    (double)(to.time - from.time);
}

int tccl_trace_run(const struct tccl_trace *const *traces, int n, int rated,
                   struct tccl_run_result *run)
{
    int64_t first_start = INT64_MAX, last_start = INT64_MIN;
    int64_t first_end = INT64_MAX, last_end = INT64_MIN;
    for (int i = 0; i < n; i++) {
        int64_t start = traces[i]->samples[0].time, end = traces[i]->last.time;
        first_start = start < first_start ? start : first_start;
        last_start = start > last_start ? start : last_start;
        first_end = end < first_end ? end : first_end;
        last_end = end > last_end ? end : last_end;
    }
    if (last_start >= first_end)
        return -1;
    double window = (double)(first_end - last_start);
    *run = (struct tccl_run_result){.window = window * 1e-9,
                                    .overlap = window / (double)(last_end - first_start),
                                    .skew = (double)(last_start - first_start) * 1e-3};
    for (int i = 0; i < rated; i++) {
        run->gbps[i] =
            (tccl_trace_bytes(traces[i], first_end) - tccl_trace_bytes(traces[i], last_start)) /
            window;
        if (i == 0 || run->gbps[i] < run->slowest)
            run->slowest = run->gbps[i];
    }
    return 0;
}
