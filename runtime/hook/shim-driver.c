/* shim-driver.c: cuGetProcAddress and cuDeviceGetAttribute in front of CUDA's driver. Both call on
 * first, and return what that returns. */
#include "hook/hook.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "base/loaded.h"
#include "chain/nccl-version.h"
#include "nccl/shim-nccl.h"

/* Numbers of the driver's, in cuda.h. */
enum { HAS_CUMEM = 102, HOST_NUMA_ID = 134, KNOWS_STATUS = 12000, NCCLS = 16 };

typedef int (*get_attribute)(int *value, int attribute, int device);
typedef int (*get_address)(const char *name, void **function, int version, uint64_t flags);
typedef int (*get_address_v2)(const char *name, void **function, int version, uint64_t flags,
                              int *status);

/* The driver's own. A process has one driver: what another one would say is left alone. */
static void *its_attribute, *its_address, *its_address_v2;

/* What the driver has said of virtual memory management. */
static bool lacks_cumem;
/* And of its function: somebody has got it, or has asked in vain (which others do, too). */
static bool has_create, lacks_create;

/* Where an NCCL has called from; an address in each. */
static const void *callers[NCCLS];

bool shim_driver_reached(const struct shim_nccl *nccl)
{
    for (int i = 0; i < NCCLS; i++) {
        uintptr_t at = (uintptr_t)shim_load(&callers[i]);
        if (at >= nccl->start && at < nccl->end)
            return true;
    }
    return false;
}

bool shim_driver_lacks_cumem(void)
{
    return shim_load(&lacks_cumem) || (shim_load(&lacks_create) && !shim_load(&has_create));
}

static void note(const void *caller)
{
    for (int i = 0; i < NCCLS; i++) {
        const void *before = NULL;
        if (shim_swap(&callers[i], &before, caller) || before == caller)
            return;
    }
}

/* NCCL asks for the first one of these when it starts, if it asks for the other one at all. */
static int attribute(int *value, int which, int device)
{
    int result = ((get_attribute)its_attribute)(value, which, device);
    if (which == HAS_CUMEM && shim_nccl_at(__builtin_return_address(0)))
        note(__builtin_return_address(0));
    if (which == HAS_CUMEM && result == 0 && !*value)
        shim_store(&lacks_cumem, true);
    if (which == HOST_NUMA_ID && result == 0 && *value >= 0) {
        int node = shim_policy_node();
        *value = node >= 0 ? node : *value;
    }
    return result;
}

/* Keeps what was found, once. Returns ours, or what was found if that is another one. */
static void *stand_in_front(void **kept, void *found, void *ours)
{
    void *before = NULL;
    shim_swap(kept, &before, found);
    return !before || before == found ? ours : found;
}

static int address(const char *name, void **function, int version, uint64_t flags);
static int address_v2(const char *name, void **function, int version, uint64_t flags, int *status);

/* Has this process a plan, for an NCCL that is known? */
static bool is_steered(void)
{
    const struct shim_process *process = shim_process_armed();
    return process && !process->plan.untouched && tccl_nccl_known(process->version);
}

/* version: of CUDA, by which cuGetProcAddress is one or the other. */
static void *instead_of(const char *name, void *found, int version)
{
    if (!strcmp(name, "cuDeviceGetAttribute"))
        return is_steered() ? stand_in_front(&its_attribute, found, (void *)attribute) : found;
    if (!strcmp(name, "cuGetProcAddress_v2") ||
        (!strcmp(name, "cuGetProcAddress") && version >= KNOWS_STATUS))
        return stand_in_front(&its_address_v2, found, (void *)address_v2);
    if (!strcmp(name, "cuGetProcAddress"))
        return stand_in_front(&its_address, found, (void *)address);
    return found;
}

static void replace(int result, const char *name, void **function, int version)
{
    bool found = result == 0 && function && *function;
    if (name && !strcmp(name, "cuMemCreate"))
        shim_store(found ? &has_create : &lacks_create, true);
    if (name && found)
        *function = instead_of(name, *function, version);
}

static int address(const char *name, void **function, int version, uint64_t flags)
{
    int result = ((get_address)its_address)(name, function, version, flags);
    replace(result, name, function, version);
    return result;
}

static int address_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    int result = ((get_address_v2)its_address_v2)(name, function, version, flags, status);
    replace(result, name, function, version);
    return result;
}

/* An NCCL, which may have the runtime inside; or the runtime ("libcudart.so.12"). */
static bool is_asked_by(const void *caller)
{
    struct shim_object object;
    return shim_defines(caller, "ncclCommInitRank") ||
           (shim_object_of(caller, &object) &&
            strncmp(shim_file_name(object.name), "libcudart", 9) == 0);
}

void *shim_driver_lookup(void *handle, const char *name, const void *caller)
{
    bool asks = !strcmp(name, "cuGetProcAddress_v2") || !strcmp(name, "cuGetProcAddress");
    const char *plan = asks ? shim_env("TCCL_PLAN") : NULL;
    if (!plan || !*plan || handle == RTLD_DEFAULT || handle == RTLD_NEXT || !is_asked_by(caller))
        return NULL;
    void *found = shim_dlsym(handle, name);
    return found ? instead_of(name, found, 0) : NULL;
}
