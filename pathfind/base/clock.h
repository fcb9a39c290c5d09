/* clock.h: time for durations and deadlines, by a clock that never jumps; and the time of day, only
 * for what is shown or told to others. None of these can fail. */
#pragma once

#include <stdint.h>

/* Monotonic time since some moment before this program started: nanoseconds, microseconds,
 * milliseconds. */
int64_t tccl_now_ns(void);
int64_t tccl_now_us(void);
int64_t tccl_now_ms(void);

/* The same in seconds. */
static inline double tccl_seconds(void)
{
    return (double)tccl_now_ns() / 1e9;
}

/* What is left until a deadline (tccl_now_ms); 0: it is over. */
static inline int tccl_left_ms(int64_t deadline)
{
    int64_t left = deadline - tccl_now_ms();
    return left > 0 ? (int)left : 0;
}

/* Time of day: microseconds since 1970, UTC. */
int64_t tccl_wall_us(void);
