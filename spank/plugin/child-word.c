/* child-word.c: one child, one word. */
#include "plugin/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { END_MS = 100 };

int child_hear(int fd, int64_t deadline, void *word, size_t size)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    for (int64_t left; (left = deadline - tccl_now_ms()) > 0;)
        if (poll(&pollfd, 1, (int)left) > 0)
            return read(fd, word, size) == (ssize_t)size ? 0 : 1;
    return 1;
}

int child_word(void (*find)(const void *what, void *word), const void *what, void *word,
               size_t size, int ms, struct tccl_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return tccl_fail(err, "pipe: %s", strerror(errno));
    cleanup_close int mine = ends[0];
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        find(what, word);
        _exit(write(ends[1], word, size) == (ssize_t)size ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0)
        return tccl_fail(err, "fork: %s", strerror(errno));
    int heard = child_hear(mine, tccl_now_ms() + ms, word, size);
    /* One that hangs in the kernel can't be killed: it is left to whoever inherits it. One that has
     * given its word may be stopped by its user. */
    int64_t end = tccl_now_ms() + END_MS;
    kill(child, SIGKILL);
    while (waitpid(child, NULL, WNOHANG) == 0 && tccl_now_ms() < end)
        poll(NULL, 0, 1);
    return heard;
}
