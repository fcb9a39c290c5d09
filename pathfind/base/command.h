/* command.h: runs another program, with bounds on its output and its time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    TCCL_COMMAND_NONE = -1, /* there is no such program, or it could not be started */
    TCCL_COMMAND_LATE = -2, /* it was killed at the deadline */
};

/* What a program printed; longer output is cut. */
struct tccl_command_output {
    char out[65536], err[65536];
};

/* Runs argv without standard input until deadline (tccl_now_ms). argv[0] without '/' is searched
 * in PATH (except for relative or world-writable directories) and in the system's own directories,
 * since root may run this with a user's PATH. without: of the environment, variables that begin
 * with one of these are left out; ends with NULL, or is NULL. Returns its exit status
 * (128 + signal), or one of the above. May be called in any thread. */
int tccl_command_run(const char *const argv[], const char *const *without, int64_t deadline,
                     struct tccl_command_output *output);

/* Is there such a program? */
bool tccl_command_exists(const char *name);

/* ---- process: what /proc says of a process. */

struct tccl_process {
    char state; /* of proc(5): 'Z', 'X': it has ended */
    pid_t parent;
    int64_t started; /* clock ticks after boot: with the id, which process this is */
};

/* Returns 0, or -1: there is none, or it can't be seen. */
int tccl_process_look(pid_t pid, struct tccl_process *process);

/* Reads its file of this name, such as "comm", as far as size, with a NUL behind. Returns the
 * length, or -1 with errno. */
ssize_t tccl_process_text(pid_t pid, const char *name, char *text, size_t size);
