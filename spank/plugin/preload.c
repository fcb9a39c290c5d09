/* preload.c: chooses the path of the shim for LD_PRELOAD. */
#include "plugin/plugin.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The length of $LIB or ${LIB} at text, 0 if there is none. */
static size_t token(const char *text)
{
    static const char *const forms[] = {"${LIB}", "$LIB"};
    for (int i = 0; i < 2; i++)
        if (strncmp(text, forms[i], strlen(forms[i])) == 0)
            return strlen(forms[i]);
    return 0;
}

char *preload_native(const char *path)
{
    char *native = NULL;
    size_t size;
    const char *folder;
    /* The expansion of ld.so's $LIB: the directory of libc, relative to / or /usr. */
    Dl_info libc;
    const char *begin = "lib/";
    if (dladdr((void *)(uintptr_t)gnu_get_libc_version, &libc) && libc.dli_fname[0] == '/')
        begin = libc.dli_fname + 1;
    if (strncmp(begin, "usr/", 4) == 0)
        begin += 4;
    const char *end = strrchr(begin, '/');
    folder = begin;
    int length = end ? (int)(end - begin) : 0;
    FILE *out = open_memstream(&native, &size);
    if (!out)
        return NULL;
    while (*path) {
        size_t skip = token(path);
        if (skip)
            fprintf(out, "%.*s", length, folder);
        else
            fputc(*path, out);
        path += skip ? skip : 1;
    }
    if (fclose(out) == 0)
        return native;
    free(native);
    return NULL;
}

void preload_simplify(struct tccl_conf *conf, const char *const *loaders)
{
    for (; *loaders; loaders++)
        if (access(*loaders, F_OK) == 0)
            return;
    cleanup_free char *native = preload_native(conf->shim);
    if (native && strlen(native) < sizeof(conf->shim))
        strcpy(conf->shim, native);
}

bool preload_readable(const char *path)
{
    cleanup_free char *native = preload_native(path);
    return native && euidaccess(native, R_OK) == 0;
}

bool preload_cut(const char *path)
{
    return strpbrk(path, " :") != NULL;
}

bool preload_pyxis(char *const *env)
{
    static const char *const options[] = {"_SLURM_SPANK_OPTION_pyxis_container_image",
                                          "_SLURM_SPANK_OPTION_pyxis_container_name"};
    for (int i = 0; i < 2; i++)
        if (job_env_get(env, options[i]))
            return true;
    return false;
}

const char *preload_choose(const struct tccl_conf *conf, char *const *env, bool pyxis,
                           const char **why)
{
    const char *bundle = job_env_get(env, "SLURM_CONTAINER");
    bool inside = pyxis || (bundle && *bundle);
    const char *shim = inside ? conf->container_shim : conf->shim;
    *why = NULL;
    if (inside && !*shim)
        *why = "the ring is not built: the step runs in a container, and ContainerShim= in "
               "tccl.conf is not set";
    else if (preload_cut(shim))
        *why = inside ? "the ring is not built: ContainerShim= in tccl.conf has a space or a "
                        "colon, which LD_PRELOAD can't have"
                      : "the ring is not built: Shim= in tccl.conf has a space or a colon, which "
                        "LD_PRELOAD can't have";
    else if (!inside && !preload_readable(shim))
        *why = "the ring is not built: this user cannot read the shim, the file named by Shim= in "
               "tccl.conf";
    return *why ? NULL : shim;
}
