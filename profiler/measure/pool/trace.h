/* trace.h: how many bytes a member of a run had moved at which time, and what the traces of all
 * members say of the window in which all of them ran. */
#ifndef TCCL_TRACE_H
#define TCCL_TRACE_H

#include <stdint.h>

enum { TCCL_TRACE_SAMPLES = 1024 }; /* even */

struct tccl_sample {
    int64_t time;   /* nanoseconds of CLOCK_MONOTONIC */
    uint64_t bytes; /* moved since the start */
};

/* samples[0] is the start, last the end; what was said in between is thinned out evenly. */
struct tccl_trace {
    uint32_t count, stride, skipped;
    struct tccl_sample last;
    struct tccl_sample samples[TCCL_TRACE_SAMPLES];
};

void tccl_trace_begin(struct tccl_trace *trace, int64_t time);
/* Times rise, bytes don't fall. As long as bytes is 0 the start is put off to that time. */
void tccl_trace_add(struct tccl_trace *trace, int64_t time, uint64_t bytes);

/* Bytes moved by a time, between samples in proportion; 0 before the start, all after the end. */
double tccl_trace_bytes(const struct tccl_trace *trace, int64_t time);

struct tccl_run_result;
/* Fills the run from the traces of its n > 0 members, of which the first `rated` (TCCL_MAX_SET at
 * most) have a bandwidth; the others must only have run, too. Returns 0, or -1: there is no time in
 * which all of them ran. */
int tccl_trace_run(const struct tccl_trace *const *traces, int n, int rated,
                   struct tccl_run_result *run);

#endif
