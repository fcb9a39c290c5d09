/* clock.c: see clock.h. */
#include "base/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t tccl_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t tccl_now_us(void)
{
    return tccl_now_ns() / 1000;
}

int64_t tccl_now_ms(void)
{
    return tccl_now_ns() / 1000000;
}

int64_t tccl_wall_us(void)
{
    return read_ns(CLOCK_REALTIME) / 1000;
}
