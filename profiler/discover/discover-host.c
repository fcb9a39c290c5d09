/* discover-host.c: cores and the loopback interface in place of GPUs and NICs, for machines that
 * have none. */
#include <stdio.h>
#include <string.h>

#include "discover/discover-parts.h"
#include "discover/sysfs.h"

enum { USUAL_DEVICES = 8, MAX_CORES = 1024 };

/* GB/s each way: nominal. Loopback has no line rate; this is a 10 GbE interface's. */
static const double loopback_gbps = 1.25;

struct cores {
    int count;
    int cpu[MAX_CORES]; /* one CPU of each core, cores of one NUMA node together */
    hwloc_obj_t object[MAX_CORES];
};

static void find_cores(struct tccl_scene *scene, hwloc_obj_type_t type, struct cores *cores)
{
    hwloc_obj_t object = NULL;
    cpu_set_t usable;
    cores->count = 0;
    CPU_ZERO(&usable);
    sched_getaffinity(0, sizeof(usable), &usable);
    while (cores->count < MAX_CORES &&
           (object = hwloc_get_next_obj_by_type(scene->topology, type, object))) {
        int cpu = hwloc_bitmap_first(object->cpuset);
        while (cpu >= 0 && !(cpu < CPU_SETSIZE && CPU_ISSET(cpu, &usable)))
            cpu = hwloc_bitmap_next(object->cpuset, cpu);
        if (cpu < 0)
            continue;
        cores->cpu[cores->count] = cpu;
        cores->object[cores->count++] = object;
    }
}

static int memory_of_core(struct tccl_scene *scene, hwloc_obj_t core, int cpu)
{
    bool nearest;
    for (int i = 0; i < scene->machine->n_memories; i++)
        if (hwloc_bitmap_isset(core->nodeset, (unsigned)scene->machine->nodes[i]))
            return i;
    int node = hwloc_bitmap_first(core->nodeset);
    int memory = tccl_scene_memory_at(scene, node, &nearest);
    tccl_scene_note(scene,
                    "core of CPU %d is at NUMA node %d, which has no memory; node %d is near", cpu,
                    node, scene->machine->nodes[memory]);
    return memory;
}

static void add_core(struct tccl_scene *scene, const struct cores *cores, int core)
{
    struct tccl_site *site = &scene->found->site;
    struct tccl_machine *machine = &site->machine;
    hwloc_obj_t package = hwloc_get_obj_by_type(scene->topology, HWLOC_OBJ_PACKAGE, 0);
    const char *cpu = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    int i = machine->n_gpus++;
    struct tccl_gpu *gpu = &machine->gpus[i];
    *gpu = (struct tccl_gpu){.minor = i, .parent = -1};
    gpu->numa = memory_of_core(scene, cores->object[core], cores->cpu[core]);
    snprintf(gpu->busid, sizeof(gpu->busid), "00f0:00:%02x.0", i);
    snprintf(gpu->model, sizeof(gpu->model), "host core");
    if (cpu) {
        char model[TCCL_NAME - 12];
        tccl_sys_clean(model, sizeof(model), cpu);
        snprintf(gpu->model, sizeof(gpu->model), "host core, %s", model);
    }
    CPU_ZERO(&site->gpu_cpus[i]);
    CPU_SET(cores->cpu[core], &site->gpu_cpus[i]);
    memcpy(site->gpu_busid[i], gpu->busid, TCCL_BUSID);
    scene->found->gpu_index[i] = -1;
}

int tccl_scene_host(struct tccl_scene *scene, struct tccl_error *err)
{
    struct tccl_machine *machine = scene->machine;
    int count = scene->options->devices;
    struct cores cores;
    find_cores(scene, HWLOC_OBJ_CORE, &cores);
    if (cores.count < 2) /* threads of one core, or no cores known */
        find_cores(scene, HWLOC_OBJ_PU, &cores);
    if (cores.count == 0)
        return tccl_fail(err, "no core of this machine may be used");
    if (count == 0)
        count = cores.count < USUAL_DEVICES ? cores.count : USUAL_DEVICES;
    if (count > TCCL_MAX_GPUS)
        return tccl_fail(err, "%d devices: at most %d are supported", count, TCCL_MAX_GPUS);
    /* Spread evenly, so that all NUMA nodes have some; several to a core where there are too few.
     */
    for (int i = 0; i < count; i++)
        add_core(scene, &cores, count <= cores.count ? i * cores.count / count : i % cores.count);
    struct tccl_found *found = scene->found;
    machine->n_nics = 1;
    machine->nics[0] = (struct tccl_nic){.name = "lo",
                                         .busid = "00f1:00:00.0",
                                         .fabric = "loopback",
                                         .gbps = loopback_gbps,
                                         .parent = -1};
    snprintf(found->nic_kind[0], sizeof(found->nic_kind[0]), "loopback");
    snprintf(found->nic_netdev[0], sizeof(found->nic_netdev[0]), "lo");
    found->nic_up[0] = true;
    tccl_scene_cpus(scene, 0, &found->site.nic_cpus[0]);
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++)
            machine->p2p[a][b] = a != b;
    snprintf(machine->name, sizeof(machine->name), "host-%dcore", count);
    snprintf(scene->found->p2p_source, sizeof(scene->found->p2p_source), "one address space");
    if (count > cores.count)
        tccl_scene_note(scene, "%d devices share %d cores", count, cores.count);
    tccl_scene_note(scene,
                    "cores stand for GPUs, and the loopback for a network: %.4g GB/s is a "
                    "nominal rate",
                    loopback_gbps);
    return 0;
}
