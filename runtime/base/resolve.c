/* resolve.c: finds NCCL's functions by the loader's own data. Python loads extensions RTLD_LOCAL,
 * so dlsym(RTLD_NEXT) alone would not find the NCCL that the caller uses. */
#include "base/resolve.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

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

uint32_t shim_nccl_version(const void *address)
{
    const struct shim_nccl *nccl = recall(address);
    return nccl ? nccl->version : 0;
}

struct search {
    uintptr_t address;
    struct shim_nccl found;
};

/* dl_iterate_phdr: the object that holds an address. */
static int holds(struct dl_phdr_info *object, size_t size, void *data)
{
    struct search *search = data;
    uintptr_t start = UINTPTR_MAX, end = 0;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        uintptr_t at = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        start = at < start ? at : start;
        end = at + object->dlpi_phdr[i].p_memsz > end ? at + object->dlpi_phdr[i].p_memsz : end;
    }
    if (search->address < start || search->address >= end)
        return 0;
    search->found.start = start;
    search->found.end = end;
    search->found.name = object->dlpi_name ? object->dlpi_name : "";
    return 1;
}

static bool find_object(const void *address, struct shim_nccl *object)
{
    struct search search = {.address = (uintptr_t)address};
    if (!address || !dl_iterate_phdr(holds, &search))
        return false;
    *object = search.found;
    return true;
}

static bool ours(const void *address)
{
    static const char here;
    struct shim_nccl self;
    return find_object(&here, &self) && (uintptr_t)address >= self.start &&
           (uintptr_t)address < self.end;
}

/* A handle of a loaded object, not counted. name "": the program. */
static void *loaded(const char *name)
{
    void *handle = dlopen(name[0] ? name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        dlclose(handle); /* the reference that this call took; the object stays */
    return handle;
}

/* pncclX in a handle's scope, else ncclX that is not ours. */
static void *twin(void *handle, const char *name)
{
    char other[64];
    if (!handle)
        return NULL;
    snprintf(other, sizeof(other), "p%s", name);
    void *found = dlsym(handle, other);
    if (!found)
        found = dlsym(handle, name);
    return found && !ours(found) ? found : NULL;
}

/* dl_iterate_phdr: any loaded libnccl.so. */
static int is_libnccl(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    const char *file = object->dlpi_name ? strrchr(object->dlpi_name, '/') : NULL;
    file = file ? file + 1 : object->dlpi_name;
    if (!file || strncmp(file, "libnccl.so", 10))
        return 0;
    *(const char **)data = object->dlpi_name;
    return 1;
}

static void *look(const char *name, const void *caller)
{
    struct shim_nccl object;
    void *found = twin(RTLD_NEXT, name);
    if (!found && find_object(caller, &object))
        found = twin(loaded(object.name), name);
    const char *library = NULL;
    if (!found && dl_iterate_phdr(is_libnccl, &library))
        found = twin(loaded(library), name);
    if (!found)
        found = twin(dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL), name);
    return found;
}

static uint32_t version_of(const struct shim_nccl *nccl)
{
    int (*ask)(int *) = (int (*)(int *))twin(loaded(nccl->name), "ncclGetVersion");
    int version = 0;
    if (!ask || (uintptr_t)ask < nccl->start || (uintptr_t)ask >= nccl->end || ask(&version))
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

void *shim_resolve(const char *name, const void *caller, struct shim_nccl *nccl)
{
    void *found = look(name, caller);
    struct shim_nccl object = {0};
    if (nccl)
        *nccl = object;
    if (!found)
        return NULL;
    const struct shim_nccl *before = recall(found);
    if (!before && find_object(found, &object)) {
        object.version = version_of(&object);
        remember(&object);
    } else if (before) {
        object = *before;
    }
    if (nccl)
        *nccl = object;
    return found;
}
