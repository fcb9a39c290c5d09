/* resolve.c: finds NCCL's functions by the loader's own data. Python loads extensions RTLD_LOCAL,
 * so dlsym(RTLD_NEXT) alone would not find the NCCL that the caller uses. */
#include "base/resolve.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/bound.h"
#include "base/symbols.h"

enum { MOST_NCCLS = 16 };

/* Only ever added to; count is raised last. */
static struct shim_nccl known[MOST_NCCLS];
static int n_known;
static shim_lock adding;

static const struct shim_nccl *recall(const void *address)
{
    int n = __atomic_load_n(&n_known, __ATOMIC_ACQUIRE);
    for (int i = 0; i < n; i++)
        if ((uintptr_t)address - known[i].start < known[i].end - known[i].start)
            return &known[i];
    return NULL;
}

bool shim_is_nccl(const void *address)
{
    return recall(address) != NULL;
}

uintptr_t shim_nccl_start(const void *address)
{
    const struct shim_nccl *nccl = recall(address);
    return nccl ? nccl->start : 0;
}

uint32_t shim_nccl_version(const void *address)
{
    const struct shim_nccl *nccl = recall(address);
    return nccl ? nccl->version : 0;
}

/* A handle of a loaded object, not counted. name "": the program. */
static void *loaded(const char *name)
{
    void *handle = shim_dlopen(name[0] ? name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        shim_dlclose(handle); /* the reference that this call took; the object stays */
    return handle;
}

/* ncclX in a handle's scope; if that is ours (the program's own handle), the pncclX behind it. *in:
 * an address in the NCCL that has it: what defines ncclX may be a library in front of NCCL. */
static void *real_one(void *handle, const char *name, const void **in)
{
    char other[64];
    if (!handle)
        return NULL;
    snprintf(other, sizeof(other), "p%s", name);
    void *found = shim_dlsym(handle, name), *twin = shim_dlsym(handle, other);
    if (!found || shim_is_ours(found))
        found = twin;
    *in = twin ? twin : found;
    return found && !shim_is_ours(found) ? found : NULL;
}

/* dl_iterate_phdr: any loaded libnccl.so. */
static int is_libnccl(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    if (!object->dlpi_name || strncmp(shim_file_name(object->dlpi_name), "libnccl.so", 10))
        return 0;
    *(const char **)data = object->dlpi_name;
    return 1;
}

static void *look(const char *name, const void *caller, const void **in)
{
    struct shim_object object;
    void *found = real_one(RTLD_NEXT, name, in);
    if (!found && shim_object_of(caller, &object))
        found = real_one(loaded(object.name), name, in);
    const char *library = NULL;
    if (!found && dl_iterate_phdr(is_libnccl, &library))
        found = real_one(loaded(library), name, in);
    if (!found)
        found = real_one(shim_dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL), name, in);
    return found;
}

static uint32_t version_of(const struct shim_object *object)
{
    const void *in;
    int (*ask)(int *) = (int (*)(int *))real_one(loaded(object->name), "ncclGetVersion", &in);
    int version = 0;
    if (!ask || (uintptr_t)ask < object->start || (uintptr_t)ask >= object->end || ask(&version))
        return 0;
    return version > 0 ? (uint32_t)version : 0;
}

static void remember(const struct shim_nccl *nccl)
{
    if (shim_lock_take(&adding))
        return;
    if (!recall((const void *)nccl->start) && n_known < MOST_NCCLS) {
        known[n_known] = *nccl;
        __atomic_store_n(&n_known, n_known + 1, __ATOMIC_RELEASE);
    }
    shim_lock_release(&adding);
}

/* Which NCCL holds an address. */
static void describe(const void *in, struct shim_nccl *nccl)
{
    const struct shim_nccl *before = recall(in);
    struct shim_object object;
    *nccl = (struct shim_nccl){0};
    if (before) {
        *nccl = *before;
    } else if (shim_object_of(in, &object)) {
        *nccl = (struct shim_nccl){object.start, object.end, version_of(&object), object.name};
        remember(nccl);
    }
}

void *shim_resolve(const char *name, const void *caller, struct shim_nccl *nccl)
{
    const void *in = NULL;
    struct shim_nccl its = {0};
    void *found = shim_bound_take(&in);
    if (!found)
        found = look(name, caller, &in);
    if (found)
        describe(in, &its);
    if (nccl)
        *nccl = its;
    return found;
}
