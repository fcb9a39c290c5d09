/* resolve.c: finds NCCL's functions by the loader's own data. Python loads extensions RTLD_LOCAL,
 * so dlsym(RTLD_NEXT) alone would not find the NCCL that the caller uses. */
#include "base/loaded.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/base.h"

enum { MOST_NCCLS = 16 };

/* Only ever added to; count is raised last. */
static struct shim_nccl known[MOST_NCCLS];
static int n_known;
static shim_lock adding;

const struct shim_nccl *shim_nccl_at(const void *address)
{
    int n = __atomic_load_n(&n_known, __ATOMIC_ACQUIRE);
    for (int i = 0; i < n; i++)
        if ((uintptr_t)address - known[i].start < known[i].end - known[i].start)
            return &known[i];
    return NULL;
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

static void *look(const char *name, const void *caller, const void **in)
{
    struct shim_object object;
    void *found = real_one(RTLD_NEXT, name, in);
    if (!found && shim_object_of(caller, &object))
        found = real_one(loaded(object.name), name, in);
    const char *library = found ? NULL : shim_loaded("libnccl.so");
    if (library)
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

/* Which NCCL holds an address; all 0 where none does. */
static struct shim_nccl describe(const void *in)
{
    const struct shim_nccl *before = shim_nccl_at(in);
    struct shim_object object;
    if (before)
        return *before;
    if (!shim_object_of(in, &object))
        return (struct shim_nccl){0};
    struct shim_nccl nccl = {object.start, object.end, version_of(&object), object.name};
    if (shim_lock_take(&adding) != 0)
        return nccl;
    if (!shim_nccl_at((const void *)nccl.start) && n_known < MOST_NCCLS) {
        known[n_known] = nccl;
        __atomic_store_n(&n_known, n_known + 1, __ATOMIC_RELEASE);
    }
    shim_lock_release(&adding);
    return nccl;
}

void *shim_resolve(const char *name, const void *caller, struct shim_nccl *nccl)
{
    const void *in = NULL;
    void *found = shim_bound_take(&in);
    if (!found)
        found = look(name, caller, &in);
    struct shim_nccl its = found ? describe(in) : (struct shim_nccl){0};
    if (nccl)
        *nccl = its;
    return found;
}
