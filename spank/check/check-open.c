/* check-open.c: may every user read a file? All directories of its path must allow it, too. */
#include "check/check-items.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool lets_all(const char *path, mode_t bit)
{
    struct stat about;
    return stat(path, &about) != 0 || (about.st_mode & bit);
}

bool check_open_to_all(const char *path, char closed[static PATH_MAX])
{
    char real[PATH_MAX];
    if (!realpath(path, real))
        return true;
    for (char *slash = strchr(real + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        strcpy(closed, real);
        *slash = '/';
        if (!lets_all(closed, S_IXOTH))
            return false;
    }
    strcpy(closed, real);
    return lets_all(real, S_IROTH);
}
