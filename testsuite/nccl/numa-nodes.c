/* numa-nodes.c: preloaded, it shows a program as many NUMA nodes as it asks for in its memory
 * policy: set_mempolicy and get_mempolicy by syscall() succeed for any node, and nothing is done. A
 * policy is kept where the kernel hands it on to new threads as it does a real one: in the timer
 * slack. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NONE = 50000, MODES = 8, STATIC = 1 << 15, NODES = 64, WORD = 8 * sizeof(unsigned long) };

static void tell(const char *mode, int node)
{
    const char *path = getenv("TCCL_RIG_POLICIES");
    char line[64];
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd < 0)
        return;
    int length = snprintf(line, sizeof(line), "%d %s %d\n", (int)gettid(), mode, node);
    if (write(fd, line, (size_t)length) < 0)
        perror(path);
    close(fd);
}

/* The usual slack, and nanoseconds more. */
static long set_policy(int mode, const unsigned long *nodes)
{
    int node = 0;
    if ((mode & ~STATIC) == 0) {
        tell("default", -1);
        return prctl(PR_SET_TIMERSLACK, (unsigned long)NONE);
    }
    while (node < NODES && (!nodes || !(nodes[node / WORD] >> node % WORD & 1)))
        node++;
    if (node == NODES || (mode & ~STATIC) >= MODES) {
        errno = EINVAL;
        return -1;
    }
    tell("preferred", node);
    int code = (mode & ~STATIC) | (mode & STATIC ? MODES : 0);
    return prctl(PR_SET_TIMERSLACK, (unsigned long)(NONE + code * NODES + node));
}

static long get_policy(int *mode, unsigned long *nodes, unsigned long n)
{
    int code = prctl(PR_GET_TIMERSLACK) - NONE;
    if (code < 0)
        code = 0;
    if (nodes)
        memset(nodes, 0, n / 8);
    if (nodes && code > 0)
        nodes[code % NODES / WORD] = 1UL << code % NODES % WORD;
    if (mode)
        *mode = code / NODES % MODES | (code / NODES >= MODES ? STATIC : 0);
    return 0;
}

__attribute__((visibility("default"))) long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    const char *wanted = getenv("TCCL_RIG_NUMA");
    bool shown = !wanted || strcmp(wanted, "0") != 0;
    if (shown && number == SYS_set_mempolicy)
        return set_policy((int)a[0], (const unsigned long *)a[1]);
    if (shown && number == SYS_get_mempolicy && a[4] == 0)
        return get_policy((int *)a[0], (unsigned long *)a[1], (unsigned long)a[2]);
    if (!next)
        next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
