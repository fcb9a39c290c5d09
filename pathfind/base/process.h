/* process.h: what /proc says of a process. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

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
