/* discover-virtual.c: where the devices of a virtual machine are: its bus is flat, and NCCL reads
 * their places from a file that the host provides, where NCCL_TOPO_FILE is not set. What the file
 * leaves out is as /sys has it (ncclTopoGetSystem in its src/graph/topo.cc). */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "discover/discover-parts.h"
#include "discover/sysfs.h"

#define FILE_OF_HOST "/var/run/nvidia-topologyd/virtualTopology.xml"

/* Switches above some device, each once; those of the file have those of the file above them. */
struct switches {
    int n;
    struct tccl_switch list[TCCL_MAX_SWITCHES];
    bool crowded;
};

static int add_switch(struct switches *all, const struct tccl_machine *from, int at)
{
    if (at < 0)
        return -1;
    int above = add_switch(all, from, from->switches[at].parent);
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->list[i].name, from->switches[at].name) == 0)
            return i;
    all->crowded = all->crowded || all->n == TCCL_MAX_SWITCHES;
    if (all->crowded)
        return -1;
    all->list[all->n] = from->switches[at];
    all->list[all->n].parent = above;
    return all->n++;
}

/* The file's numbers of memories are those of this machine from here on. Returns false: it has NUMA
 * nodes that this machine doesn't. */
static bool renumber(struct tccl_scene *scene, struct tccl_machine *file)
{
    int memory[TCCL_MAX_MEMORIES];
    bool known = true, nearest;
    for (int i = 0; i < file->n_memories; i++) {
        memory[i] = tccl_scene_memory_at(scene, file->nodes[i], &nearest);
        known = known && !nearest;
    }
    for (int i = 0; i < file->n_gpus; i++)
        file->gpus[i].numa = memory[file->gpus[i].numa];
    for (int i = 0; i < file->n_nics; i++)
        file->nics[i].numa = memory[file->nics[i].numa];
    for (int i = 0; i < file->n_switches; i++)
        file->switches[i].numa = memory[file->switches[i].numa];
    return known;
}

static void take_over(struct tccl_scene *scene, const struct tccl_machine *file,
                      struct switches *all)
{
    struct tccl_machine *machine = scene->machine;
    for (int i = 0; i < machine->n_gpus; i++) {
        struct tccl_gpu *gpu = &machine->gpus[i];
        int at = tccl_machine_find_gpu(file, gpu->busid);
        gpu->parent = at < 0 ? add_switch(all, machine, gpu->parent)
                             : add_switch(all, file, file->gpus[at].parent);
        gpu->numa = at < 0 ? gpu->numa : file->gpus[at].numa;
        scene->gpu_unplaced[i] &= at < 0;
        gpu->slot = at < 0 || file->gpus[at].slot <= 0 ? gpu->slot : file->gpus[at].slot;
    }
    for (int i = 0; i < machine->n_nics; i++) {
        struct tccl_nic *nic = &machine->nics[i];
        int at = tccl_nic_at(file, nic->busid);
        nic->parent = at < 0 ? add_switch(all, machine, nic->parent)
                             : add_switch(all, file, file->nics[at].parent);
        nic->numa = at < 0 ? nic->numa : file->nics[at].numa;
        scene->nic_unplaced[i] &= at < 0;
        nic->slot = at < 0 || file->nics[at].slot <= 0 ? nic->slot : file->nics[at].slot;
    }
    machine->n_switches = all->n;
    memcpy(machine->switches, all->list, sizeof(all->list));
}

/* Of an odd file nothing is taken over but what NCCL would. Returns 0, or -1 with err. */
static int read_file(struct tccl_scene *scene, const char *path, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    cleanup_free struct tccl_found *found = calloc(1, sizeof(*found));
    cleanup_free struct switches *all = calloc(1, sizeof(*all));
    size_t size;
    if (!found || !all)
        return tccl_fail(err, "out of memory");
    if (tccl_read_file(path, TCCL_MAX_TOPOLOGY, &text, &size, NULL) != 0)
        return tccl_fail(err, "%s", strerror(errno));
    struct tccl_machine *file = &found->site.machine;
    struct tccl_scene own = {
        .options = scene->options, .found = found, .machine = file, .in_part = true};
    if (!tccl_is_nccl_topology(text))
        return tccl_fail(err, "is no XML that NCCL wrote");
    if (tccl_scene_nccl(&own, text, err) != 0)
        return -1;
    if (own.says_cpu)
        scene->machine->cpu = file->cpu;
    bool has_devices = file->n_gpus + file->n_nics > 0;
    if (has_devices && !renumber(scene, file))
        return tccl_fail(err, "has devices at NUMA nodes that this machine doesn't have");
    if (has_devices)
        take_over(scene, file, all);
    return all->crowded ? tccl_fail(err, "more than %d PCIe switches", TCCL_MAX_SWITCHES) : 0;
}

void tccl_scene_virtual(struct tccl_scene *scene)
{
    char path[PATH_MAX];
    struct tccl_error err = {0};
    const char *root = scene->options->root ? scene->options->root : "";
    if (!tccl_sys_exists(root, FILE_OF_HOST))
        return;
    snprintf(path, sizeof(path), "%s" FILE_OF_HOST, root);
    if (read_file(scene, path, &err) == 0)
        return;
    scene->found->unforetold = true;
    tccl_scene_note(scene,
                    "NCCL's own choice isn't foretold from " FILE_OF_HOST ", which it reads: %.58s",
                    err.text);
}
