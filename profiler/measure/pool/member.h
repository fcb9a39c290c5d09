/* member.h: one run of a transfer set in shared memory: all members start at one moment, and each
 * one goes on until all have moved their share. How much each had moved at which time is
 * written down; only the window in which all of them ran counts. */
#ifndef TCCL_MEMBER_H
#define TCCL_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Seconds of CLOCK_MONOTONIC, which never jumps. */
double tccl_seconds(void);

/* The side of the worker: its member in the run. Every wait has the run's deadline. */
struct tccl_member;

/* Says that this member is ready, and waits for the common start. Returns the time at which it may
 * begin (now, nanoseconds of CLOCK_MONOTONIC), or -1: the run was called off; return 0 then. */
int64_t tccl_member_wait(struct tccl_member *member);

/* Says that so many bytes in all have been moved since the start. Returns true: go on; false: all
 * have moved their share, or the run was called off, or its deadline is over: stop. Cheap; to be
 * called after each piece, at least every millisecond or so. A member that says 0 has not begun:
 * its start is put off to that moment. */
bool tccl_member_moved(struct tccl_member *member, uint64_t total);

/* When the run ends at the latest (nanoseconds of CLOCK_MONOTONIC), for hardware that needs a limit
 * of its own. */
int64_t tccl_member_deadline(const struct tccl_member *member);

#endif
