/* gpu-cores.c: the CPU cores next to a GPU, as Slurm counts cores. */
#include "discover/discover-topology.h"

/* Slurm's numbers are hwloc's logical ones, not those of the kernel. */
static int list_cores(hwloc_topology_t topology, hwloc_obj_t node,
                      char text[static TCCL_CORES_TEXT])
{
    hwloc_bitmap_t cores = hwloc_bitmap_alloc();
    hwloc_obj_t core = NULL;
    if (!cores)
        return -1;
    while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)))
        if (hwloc_bitmap_intersects(core->cpuset, node->cpuset))
            hwloc_bitmap_set(cores, core->logical_index);
    int length = hwloc_bitmap_list_snprintf(text, TCCL_CORES_TEXT, cores);
    hwloc_bitmap_free(cores);
    return length > 0 && length < TCCL_CORES_TEXT ? 0 : -1;
}

int tccl_gpu_cores(hwloc_topology_t topology, const struct tccl_machine *machine, int gpu,
                   char text[static TCCL_CORES_TEXT], struct tccl_error *err)
{
    const struct tccl_gpu *own = &machine->gpus[gpu];
    int number = machine->nodes[own->numa];
    if (!hwloc_get_pcidev_by_busidstring(topology, own->busid))
        return tccl_fail(err, "GPU %d (%s) is not in this machine", gpu, own->busid);
    hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(topology, (unsigned)number);
    if (!node || list_cores(topology, node, text) < 0)
        return tccl_fail(err, "GPU %d: the cores of NUMA node %d are not known", gpu, number);
    return 0;
}

bool tccl_cores_differ(const char *a, const char *b)
{
    hwloc_bitmap_t one = hwloc_bitmap_alloc(), other = hwloc_bitmap_alloc();
    bool differ = one && other && hwloc_bitmap_list_sscanf(one, a) == 0 &&
                  hwloc_bitmap_list_sscanf(other, b) == 0 && !hwloc_bitmap_isequal(one, other);
    hwloc_bitmap_free(one);
    hwloc_bitmap_free(other);
    return differ;
}
