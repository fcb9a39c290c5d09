/* discover-memory.c: the NUMA nodes that have memory, and which one a device is next to. */
#include <stdlib.h>
#include <string.h>

#include "discover/discover-parts.h"
#include "discover/sysfs.h"

enum { MAX_NODE = 4095 };

static hwloc_obj_t node_object(struct tccl_scene *scene, int node)
{
    return hwloc_get_numanode_obj_by_os_index(scene->topology, (unsigned)node);
}

static int compare_numbers(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int add_memory(struct tccl_scene *scene, hwloc_obj_t node, struct tccl_error *err)
{
    struct tccl_machine *machine = scene->machine;
    /* Memory of a GPU that the kernel shows as a node (Grace, POWER9) holds no bounce buffers. */
    if (node->attr->numanode.local_memory == 0 ||
        (node->subtype && strcmp(node->subtype, "GPUMemory") == 0)) {
        if (!node->subtype)
            tccl_scene_note(scene, "NUMA node %u has no memory; it is left out", node->os_index);
        return 0;
    }
    if (node->os_index > MAX_NODE)
        return tccl_fail(err, "a NUMA node without a number: not a whole topology");
    if (machine->n_memories == TCCL_MAX_MEMORIES)
        return tccl_fail(err, "more than %d NUMA nodes with memory: that many are not supported",
                         TCCL_MAX_MEMORIES);
    machine->nodes[machine->n_memories++] = (int)node->os_index;
    return 0;
}

int tccl_scene_memories(struct tccl_scene *scene, struct tccl_error *err)
{
    struct tccl_machine *machine = scene->machine;
    int *nodes = machine->nodes;
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(scene->topology, HWLOC_OBJ_NUMANODE, node)))
        if (add_memory(scene, node, err) != 0)
            return -1;
    if (machine->n_memories == 0)
        return tccl_fail(err, "no NUMA node with memory: not a whole topology");
    qsort(nodes, (size_t)machine->n_memories, sizeof(*nodes), compare_numbers);
    for (int i = 0; i < machine->n_memories; i++) {
        if (i > 0 && nodes[i] == nodes[i - 1])
            return tccl_fail(err, "two NUMA nodes %d: not a sound topology", nodes[i]);
        scene->found->package_of[i] = -1;
        for (hwloc_obj_t at = node_object(scene, nodes[i]); at && scene->found->package_of[i] < 0;
             at = at->parent)
            if (at->type == HWLOC_OBJ_PACKAGE)
                scene->found->package_of[i] = (int)at->logical_index;
    }
    return 0;
}

static int memory_index(struct tccl_scene *scene, int node)
{
    for (int i = 0; i < scene->machine->n_memories; i++)
        if (scene->machine->nodes[i] == node)
            return i;
    return -1;
}

/* Of all memories the one that the firmware calls nearest to a node; the first if it says nothing.
 */
static int nearest_memory(struct tccl_scene *scene, int node)
{
    struct hwloc_distances_s *table;
    unsigned count = 1;
    int best = 0;
    if (hwloc_distances_get_by_name(scene->topology, "NUMALatency", &count, &table, 0) < 0 ||
        count == 0)
        return 0;
    hwloc_obj_t from = node_object(scene, node);
    int row = from ? hwloc_distances_obj_index(table, from) : -1;
    hwloc_uint64_t least = UINT64_MAX;
    for (unsigned i = 0; row >= 0 && i < table->nbobjs; i++) {
        hwloc_uint64_t distance = table->values[(unsigned)row * table->nbobjs + i];
        int memory = table->objs[i] ? memory_index(scene, (int)table->objs[i]->os_index) : -1;
        if (memory >= 0 && distance < least) {
            least = distance;
            best = memory;
        }
    }
    hwloc_distances_release(scene->topology, table);
    return best;
}

int tccl_scene_memory_at(struct tccl_scene *scene, int node, bool *nearest)
{
    int memory = memory_index(scene, node);
    *nearest = memory < 0;
    return memory < 0 ? nearest_memory(scene, node) : memory;
}

/* The node that the kernel knows, or that hwloc knows where there is only one. -1: none. */
static int node_of(struct tccl_scene *scene, hwloc_obj_t place, const char *busid)
{
    long node;
    if (scene->facts &&
        tccl_sys_number(scene->options->root, &node, "/sys/bus/pci/devices/%s/numa_node", busid) &&
        node >= 0 && node <= MAX_NODE)
        return (int)node;
    return place && hwloc_bitmap_weight(place->nodeset) == 1 ? hwloc_bitmap_first(place->nodeset)
                                                             : -1;
}

int tccl_scene_memory_of(struct tccl_scene *scene, hwloc_obj_t object, const char *busid,
                         const char *what, bool *unplaced)
{
    hwloc_obj_t place = object ? hwloc_get_non_io_ancestor_obj(scene->topology, object) : NULL;
    const int *nodes = scene->machine->nodes;
    int memory = 0;
    bool nearest;
    int count = 0; /* memories that the place has */
    for (int i = scene->machine->n_memories - 1; place && i >= 0; i--)
        if (hwloc_bitmap_isset(place->nodeset, (unsigned)nodes[i])) {
            memory = i;
            count++;
        }
    if (count == 1)
        return memory;
    int node = node_of(scene, place, busid);
    if (node >= 0) {
        memory = tccl_scene_memory_at(scene, node, &nearest);
        if (nearest)
            tccl_scene_note(scene, "%s is at NUMA node %d, which has no memory; node %d is near",
                            what, node, nodes[memory]);
    }
    *unplaced = node < 0 && scene->machine->n_memories > 1;
    return memory;
}

void tccl_scene_cpus(struct tccl_scene *scene, int memory, cpu_set_t *cpus)
{
    hwloc_obj_t node = node_object(scene, scene->machine->nodes[memory]);
    unsigned cpu;
    CPU_ZERO(cpus);
    if (scene->found->recorded || !node)
        return;
    hwloc_bitmap_foreach_begin(cpu, node->cpuset) if (cpu < CPU_SETSIZE) CPU_SET(cpu, cpus);
    hwloc_bitmap_foreach_end();
}
