#include "tccld/main/exec-check.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tccld/main/log.h"

enum { NO_PROGRAM = 1 };

bool wants_check(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--check") == 0)
            return true;
    return false;
}

/* A place beside this program's file. */
static void exec_beside(const char *place, char **argv)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length <= 0)
        return;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash || strlen(place) >= (size_t)(path + sizeof(path) - slash - 1))
        return;
    strcpy(slash + 1, place);
    execv(path, argv);
}

int exec_check(int argc, char **argv)
{
    static char name[] = "tccl-check";
    char **rest = calloc((size_t)argc + 1, sizeof(*rest));
    int count = 0;
    if (!rest) {
        log_line("out of memory");
        return NO_PROGRAM;
    }
    rest[count++] = name;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--check") != 0 && strcmp(argv[i], "--foreground") != 0)
            rest[count++] = argv[i];
    exec_beside("tccl-check", rest);
    exec_beside("../spank/tccl-check", rest);
    execvp(name, rest);
    log_line("tccl-check: %s: install it beside tccld", strerror(errno));
    free(rest);
    return NO_PROGRAM;
}
