#include "command/path-extern.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The folder of the folder that holds this program, or "". */
static void find_build(char folder[static PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(folder, '/');
        if (slash)
            *slash = '\0';
    }
}

int path_extern(const char *name, char **argv, struct tccl_error *err)
{
    char folder[PATH_MAX], path[PATH_MAX + 64];
    find_build(folder);
    snprintf(path, sizeof path, "%s/spank/tccl-path-%.32s", folder, name);
    if (access(path, X_OK) != 0)
        snprintf(path, sizeof path, "%s/tccl-path-%.32s", TCCL_LIBEXECDIR, name);
    execv(path, argv);
    if (errno == ENOENT)
        return tccl_fail(err, "%.32s is not installed here (%s): it comes with the Slurm plugin",
                         name, path);
    return tccl_fail(err, "%s: %s", path, strerror(errno));
}
