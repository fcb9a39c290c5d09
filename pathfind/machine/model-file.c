/* model-file.c: finds models by name, so that trying one needs no path: amd-4gpu. */
#include "machine/model.h"

#include <dirent.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { SHOWN = 16 };

static const char installed[] = TCCL_DATADIR "/tccl/machines";

/* Of the checkout that this program was built in, if it is in BUILD/ROOM of it; "" otherwise. */
static void folder_of_build(char folder[static PATH_MAX])
{
    char program[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
    folder[0] = '\0';
    if (size <= 0)
        return;
    program[size] = '\0';
    for (int up = 0; up < 3; up++)
        dirname(program);
    if (snprintf(folder, PATH_MAX, "%s/testsuite/machines", program) >= PATH_MAX)
        folder[0] = '\0';
}

static bool is_in(const char *folder, const char *name, char path[static PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%s.json", folder, name) < PATH_MAX &&
           access(path, F_OK) == 0;
}

static int is_model(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && end != entry->d_name && strcmp(end, ".json") == 0;
}

static void list(const char *folder, char text[static 300])
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, is_model, alphasort);
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < n; i++) {
        int stem = (int)strlen(entries[i]->d_name) - 5;
        if (i < SHOWN && used < 300)
            used += (size_t)snprintf(text + used, 300 - used, " %.*s", stem, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

int tccl_model_file(const char *name, char path[static PATH_MAX], struct tccl_error *err)
{
    char build[PATH_MAX], known[300];
    folder_of_build(build);
    bool is_name = *name && !strchr(name, '/') && access(name, F_OK) != 0;
    if (is_name && (is_in(installed, name, path) || is_in(build, name, path)))
        return 0;
    if (!is_name || strchr(name, '.')) /* a file, which is read or is missing */
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX
                   ? 0
                   : tccl_fail(err, "%.60s…: the path is too long", name);
    list(installed, known);
    if (!*known)
        list(build, known);
    return tccl_fail(err, "%.60s: no such file, and no model of that name in %s%s%s", name,
                     installed, *known ? "; known:" : "", known);
}
