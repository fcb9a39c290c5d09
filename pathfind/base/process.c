/* process.c: processes as /proc shows them. */
#include "base/command.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* Files of /proc have no size. */
ssize_t tccl_process_text(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = fd < 0 ? -1 : 0;
    while (fd >= 0 && used + 1 < size && (got = read(fd, text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    return got < 0 ? -1 : (ssize_t)used;
}

/* The fields of proc(5) behind the second one, a name, which may contain anything. */
int tccl_process_look(pid_t pid, struct tccl_process *process)
{
    char text[1024];
    int parent;
    if (tccl_process_text(pid, "stat", text, sizeof(text)) <= 0)
        return -1;
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest,
                        ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%*s %*s %*s %" SCNd64,
                        &process->state, &parent, &process->started) != 3)
        return -1;
    process->parent = parent;
    return 0;
}
