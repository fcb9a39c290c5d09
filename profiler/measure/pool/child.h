/* child.h: a process that works for this one and never outlives it: forked, pinned, with nothing
 * of its parent's open but one socket to it. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct tccl_child {
    pid_t pid; /* 0: none */
    int fd;    /* the parent's end of the socket (packets); readable with nothing when it ended */
};

enum { TCCL_CHILD_HOW = 48 };

/* Runs body in a child, with the child's end of the socket; the child ends when body returns, and
 * at the latest when the parent does. cpus: where it runs, empty: anywhere (also where none of them
 * may be used). name: as ps shows it. Returns 0, or -1 with err. The parent has one thread. */
int tccl_child_start(struct tccl_child *child, const char *name, const cpu_set_t *cpus,
                     void (*body)(int fd, void *context), void *context, struct tccl_error *err);

/* Waits until the child has ended, seconds at most (0: only looks). Returns true if it has; it is
 * gone then, its socket closed, and how (if not NULL) says "was killed by signal 9". */
bool tccl_child_ended(struct tccl_child *child, double seconds, char how[TCCL_CHILD_HOW]);

void tccl_child_kill(const struct tccl_child *child); /* does not wait */
