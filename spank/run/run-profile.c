/* run-profile.c: finds the profile of this machine by its GPUs. */
#include "run/run.h"

#include <stdio.h>
#include <string.h>

#include "discover/sysfs.h"
#include "profile/cache.h"

struct search {
    const char *cache;
    const struct run_gpus *gpus;
    struct run_profile *profile;
    bool found;
};

static bool has_gpus(const struct tccl_machine *machine, const struct run_gpus *gpus,
                     int numbers[TCCL_MAX_GPUS])
{
    for (int i = 0; i < gpus->n; i++) {
        int gpu = numbers[i] = tccl_machine_find_gpu(machine, gpus->busids[i]);
        long node = -1;
        if (gpu < 0 || strcmp(machine->gpus[gpu].model, gpus->models[i]) != 0)
            return false;
        /* A BIOS setting may have cut the sockets into other NUMA nodes since. */
        tccl_sys_number(NULL, &node, "/sys/bus/pci/devices/%s/numa_node", machine->gpus[gpu].busid);
        if (node >= 0 && node != machine->nodes[machine->gpus[gpu].numa])
            return false;
    }
    return true;
}

static int consider(void *context, const char *id)
{
    struct search *search = context;
    struct run_profile *best = search->profile;
    struct tccl_profile *profile;
    int numbers[TCCL_MAX_GPUS];
    if (tccl_profile_open(search->cache, id, &profile, NULL) != 0)
        return 0;
    long long time = tccl_profile_time(profile);
    if (has_gpus(tccl_profile_machine(profile), search->gpus, numbers) &&
        (!search->found || time > best->time) &&
        snprintf(best->machine, PATH_MAX, "%s/machine.json", tccl_profile_folder(profile)) <
            PATH_MAX &&
        snprintf(best->cache, PATH_MAX, "%s", search->cache) < PATH_MAX) {
        memcpy(best->numbers, numbers, sizeof(numbers));
        best->time = time;
        search->found = true;
    }
    tccl_profile_close(profile);
    return 0;
}

int run_profile_find(const char *const *caches, const struct run_gpus *gpus,
                     struct run_profile *profile)
{
    struct search search = {.gpus = gpus, .profile = profile};
    for (; *caches && !search.found; caches++) {
        search.cache = *caches;
        tccl_cache_list(*caches, consider, &search, NULL);
    }
    return search.found ? 0 : -1;
}
