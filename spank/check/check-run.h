/* check-run.h: another program's output, within a bound and a time. */
#ifndef TCCL_CHECK_RUN_H
#define TCCL_CHECK_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHECK_RUN_NONE = -1, /* there is no such program, or it can't be started */
    CHECK_RUN_LATE = -2, /* it was ended, because the time was over */
};

/* What a program printed; longer output is cut. */
struct check_output {
    char out[65536], err[4096];
};

/* Runs argv without standard input until deadline (tccl_now_ms). argv[0] without '/' is looked for
 * in PATH, but for its folders that have no whole path or that all can write to, and where the
 * system's own programs are. Returns its exit status (128 + signal), or one of the above. */
int check_run(const char *const argv[], int64_t deadline, struct check_output *output);

/* When a wait for one thing that takes ms at most should end: later than that where deadline (of
 * all, tccl_now_ms) leaves more time than usual, in proportion; at deadline at the latest. */
int64_t check_run_until(int64_t deadline, int ms);

/* Is there such a program? */
bool check_program(const char *name);

#endif
