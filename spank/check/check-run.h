/* check-run.h: runs another program, with bounds on its output and its time. */
#ifndef TCCL_CHECK_RUN_H
#define TCCL_CHECK_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHECK_RUN_NONE = -1, /* there is no such program, or it could not be started */
    CHECK_RUN_LATE = -2, /* it was killed at the deadline */
};

/* What a program printed; longer output is cut. */
struct check_output {
    char out[65536], err[4096];
};

/* Runs argv without standard input until deadline (tccl_now_ms). argv[0] without '/' is searched
 * in PATH (except for relative or world-writable directories) and in the system's own directories,
 * since root may run this with a user's PATH. Returns its exit status (128 + signal), or one of the
 * above. */
int check_run(const char *const argv[], int64_t deadline, struct check_output *output);

/* The end of a wait (tccl_now_ms) that normally takes ms at most. If the overall deadline is later
 * than by default, the wait is longer in proportion; it never ends after deadline. */
int64_t check_run_until(int64_t deadline, int ms);

/* Is there such a program? */
bool check_program(const char *name);

#endif
