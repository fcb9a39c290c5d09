#include "check/check-nccl.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check/check-elf.h"
#include "check/check-run.h"

enum { PYTHON_MS = 4000, CACHE_MS = 2000, FIRST = 18, LAST = 30 };

/* What a program that says "NCCL version" at its start has in it. */
static bool read_version(const char *path, char version[static CHECK_NCCL_VERSION])
{
    struct check_elf elf;
    version[0] = '\0';
    if (check_elf_open(path, &elf, NULL) != 0)
        return false;
    bool native = check_elf_native(&elf);
    if (native)
        check_elf_word(&elf, "NCCL version ", version, CHECK_NCCL_VERSION);
    check_elf_close(&elf);
    return native;
}

static bool has(const struct check_nccls *found, const char *path)
{
    struct stat a, b;
    if (stat(path, &a) != 0)
        return true;
    for (int i = 0; i < found->count; i++)
        if (stat(found->all[i].path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
            return true;
    return false;
}

/* Adds the file if it is a library for programs such as this one. Returns whether it is there. */
static bool add(struct check_nccls *found, const char *path, const char *from)
{
    struct check_nccl *nccl = &found->all[found->count];
    if (access(path, R_OK) != 0)
        return false;
    if (found->count == CHECK_NCCL_MOST || has(found, path))
        return true;
    snprintf(nccl->path, sizeof(nccl->path), "%s", path);
    nccl->from = from;
    if (read_version(path, nccl->version))
        found->count++;
    return true;
}

static void look_in_path(struct check_nccls *found)
{
    const char *set = getenv("LD_LIBRARY_PATH");
    cleanup_free char *copy = set ? strdup(set) : NULL;
    char *rest = copy, *folder, path[PATH_MAX];
    while (rest && (folder = strsep(&rest, ":;"))) {
        snprintf(path, sizeof(path), "%s/libnccl.so.2", *folder ? folder : ".");
        add(found, path, "LD_LIBRARY_PATH");
    }
}

/* "	libnccl.so.2 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnccl.so.2" */
static void look_in_cache(int64_t deadline, struct check_nccls *found)
{
    static const char *const ask[] = {"ldconfig", "-p", NULL};
    FILE *lines;
    char line[PATH_MAX + 128];
    cleanup_free struct check_output *output = calloc(1, sizeof(*output));
    if (!output || check_run(ask, check_run_until(deadline, CACHE_MS), output) != 0 ||
        !(lines = fmemopen(output->out, strlen(output->out) + 1, "r")))
        return;
    while (fgets(line, sizeof(line), lines)) {
        char *path = strstr(line, "=> ");
        if (!strstr(line, "libnccl.so.2 ") || !path)
            continue;
        path[strcspn(path, "\n")] = '\0';
        add(found, path + 3, "ldconfig");
    }
    fclose(lines);
}

/* A folder of python's packages. */
static void look_in_packages(const char *folder, struct check_nccls *found)
{
    static const char *const places[] = {"nvidia/nccl/lib/libnccl.so.2", "torch/lib/libnccl.so.2",
                                         "cupy_backends/lib/libnccl.so.2"};
    char path[PATH_MAX];
    bool any = false;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, places[i]);
        any |= add(found, path, "python3");
    }
    snprintf(path, sizeof(path), "%s/torch/lib/libtorch_cuda.so", folder);
    if (!any && !*found->torch && access(path, F_OK) == 0)
        snprintf(found->torch, sizeof(found->torch), "%s", path);
}

/* Folders between separators, those with a whole path. */
static void look_in_each(char *folders, const char *separator, struct check_nccls *found)
{
    char *folder;
    while ((folder = strsep(&folders, separator)))
        if (*folder == '/')
            look_in_packages(folder, found);
}

/* Root does not have python run what an environment that it has inherited names (-I); the packages
 * are where they are. */
static void look_in_python(int64_t deadline, struct check_nccls *found)
{
    bool root = geteuid() == 0;
    const char *const ask[] = {"python3", root ? "-BI" : "-B", "-c",
                               "import sys; print('\\n'.join(sys.path))", NULL};
    const char *set = root ? getenv("PYTHONPATH") : NULL;
    cleanup_free char *own = strdup(set ? set : "");
    cleanup_free struct check_output *output = calloc(1, sizeof(*output));
    if (!output || !own || check_run(ask, check_run_until(deadline, PYTHON_MS), output) != 0)
        return;
    found->python = true;
    look_in_each(own, ":", found);
    look_in_each(output->out, "\n", found);
}

void check_nccls_find(int64_t deadline, struct check_nccls *found)
{
    memset(found, 0, sizeof(*found));
    look_in_path(found);
    look_in_cache(deadline, found);
    look_in_python(deadline, found);
}

bool check_nccl_supported(const char *version)
{
    int major, minor;
    return sscanf(version, "%d.%d", &major, &minor) == 2 && major == 2 && minor >= FIRST &&
           minor <= LAST;
}
