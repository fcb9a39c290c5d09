/* user-folders.c: the folders of a user, by environment and home. */
#include "client/users.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find(const char *variable, const char *below_home, char path[static PATH_MAX])
{
    const char *base = getenv(variable), *home = getenv("HOME");
    if (base && *base == '/')
        return snprintf(path, PATH_MAX, "%s/tccl", base) < PATH_MAX ? 0 : -1;
    if (!home || *home != '/') {
        const struct passwd *user = getpwuid(geteuid());
        home = user ? user->pw_dir : NULL;
    }
    if (!home || *home != '/')
        return -1;
    return snprintf(path, PATH_MAX, "%s/%s/tccl", home, below_home) < PATH_MAX ? 0 : -1;
}

int tccl_user_cache(char path[static PATH_MAX])
{
    return find("XDG_CACHE_HOME", ".cache", path);
}

int tccl_user_state(char path[static PATH_MAX])
{
    return find("XDG_STATE_HOME", ".local/state", path);
}

bool tccl_user_may_write(const char *path)
{
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof(folder), "%s", path) >= PATH_MAX)
        return false;
    for (char *slash; access(folder, F_OK) != 0 && errno == ENOENT && *folder;) {
        slash = strrchr(folder, '/');
        if (!slash)
            return false;
        slash[slash == folder] = '\0';
    }
    return access(folder, W_OK | X_OK) == 0;
}
