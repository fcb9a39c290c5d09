/* firstsets.c: the transfers that a report shows: each alone, two out of a switch, both ways at
 * once, and two at one memory. */
#include "fill/fill.h"

#include <stdlib.h>

struct list {
    const struct tccl_machine *machine;
    struct tccl_set *sets;
    int count;
};

static struct tccl_device device(enum tccl_device_kind kind, int index)
{
    return (struct tccl_device){(uint8_t)kind, (uint8_t)index};
}

/* GPUs first, then NICs. */
static struct tccl_device device_at(const struct tccl_machine *machine, int i)
{
    return i < machine->n_gpus ? device(TCCL_GPU, i) : device(TCCL_NIC, i - machine->n_gpus);
}

/* Transfers that the machine doesn't allow, and what is there already, are left out. */
static void add(struct list *list, int count, const tccl_transfer *transfers)
{
    struct tccl_set set = {0};
    if (list->count == TCCL_FIRST_SETS)
        return;
    for (int i = 0; i < count; i++)
        if (tccl_machine_allows(list->machine, transfers[i], NULL) != 0 ||
            tccl_set_add(&set, transfers[i]) != 0)
            return;
    for (int i = 0; i < list->count; i++)
        if (tccl_set_equal(&list->sets[i], &set))
            return;
    list->sets[list->count++] = set;
}

/* Both directions: each alone first, or at once. */
static void add_both(struct list *list, struct tccl_device a, struct tccl_device b, bool at_once)
{
    tccl_transfer both[] = {tccl_transfer_make(a, false, b), tccl_transfer_make(a, true, b)};
    add(list, at_once ? 2 : 1, &both[0]);
    if (!at_once)
        add(list, 1, &both[1]);
}

/* The memory that stands at a place when the device's own comes first. */
static struct tccl_device memory_at(const struct tccl_machine *machine, struct tccl_device from,
                                    int place)
{
    int own = tccl_machine_numa(machine, from);
    return device(TCCL_MEMORY, place == 0 ? own : place <= own ? place - 1 : place);
}

/* Each device and the memory at that place, one direction after the other or both at once. */
static void add_memories(struct list *list, int place, bool at_once)
{
    const struct tccl_machine *machine = list->machine;
    for (int i = 0; i < machine->n_gpus + machine->n_nics; i++) {
        struct tccl_device own = device_at(machine, i);
        add_both(list, own, memory_at(machine, own, place), at_once);
    }
}

static void add_peers(struct list *list)
{
    const struct tccl_machine *machine = list->machine;
    for (int i = 0; i < machine->n_gpus + machine->n_nics; i++)
        for (int j = 0; j < machine->n_gpus; j++)
            if (i != j)
                add_both(list, device_at(machine, i), device(TCCL_GPU, j), false);
}

/* A device in both directions at once. */
static void add_duplex(struct list *list)
{
    const struct tccl_machine *machine = list->machine;
    add_memories(list, 0, true);
    for (int i = 0; i < machine->n_gpus; i++)
        for (int j = i + 1; j < machine->n_gpus; j++) {
            struct tccl_device a = device(TCCL_GPU, i), b = device(TCCL_GPU, j);
            add(list, 2,
                (tccl_transfer[]){tccl_transfer_make(a, false, b),
                                  tccl_transfer_make(b, false, a)});
        }
}

/* The GPU at a place when those of the memory's NUMA node come first; -1: there are not so many. */
static int gpu_at(const struct tccl_machine *machine, int memory, int place)
{
    for (int near = 1; near >= 0; near--)
        for (int i = 0; i < machine->n_gpus; i++)
            if ((machine->gpus[i].numa == memory) == near && place-- == 0)
                return i;
    return -1;
}

/* The n-th GPU below a switch; -1: there are not so many. */
static int gpu_below(const struct tccl_machine *machine, int above, int n)
{
    for (int i = 0; i < machine->n_gpus; i++)
        if (machine->gpus[i].parent == above && n-- == 0)
            return i;
    return -1;
}

/* Of two GPUs below a switch one writes to a GPU below another one, and one to memory: partitions
 * of one chip reach each other without the link above (ring/narrowed.h). */
static void add_switches(struct list *list)
{
    const struct tccl_machine *machine = list->machine;
    for (int a = 0; a < machine->n_switches; a++)
        for (int b = 0; b < machine->n_switches; b++) {
            int from = gpu_below(machine, a, 0), beside = gpu_below(machine, a, 1),
                to = gpu_below(machine, b, 0);
            if (a == b || beside < 0 || to < 0)
                continue;
            add(list, 2,
                (tccl_transfer[]){
                    tccl_transfer_make(device(TCCL_GPU, from), false, device(TCCL_GPU, to)),
                    tccl_transfer_make(device(TCCL_GPU, beside), false,
                                       device(TCCL_MEMORY, machine->gpus[beside].numa))});
        }
}

int tccl_first_sets(const struct tccl_machine *machine, struct tccl_set **sets,
                    struct tccl_error *err)
{
    struct list list = {machine, calloc(TCCL_FIRST_SETS, sizeof(*list.sets)), 0};
    if (!list.sets)
        return tccl_fail(err, "out of memory");
    add_memories(&list, 0, false);
    add_switches(&list);
    add_peers(&list);
    add_duplex(&list);
    /* Two writers, or two readers, of one memory. */
    for (int memory = 0; memory < list.machine->n_memories; memory++) {
        int first = gpu_at(list.machine, memory, 0), second = gpu_at(list.machine, memory, 1);
        for (int reads = 0; reads < 2 && second >= 0; reads++)
            add(&list, 2,
                (tccl_transfer[]){
                    tccl_transfer_make(device(TCCL_GPU, first), reads, device(TCCL_MEMORY, memory)),
                    tccl_transfer_make(device(TCCL_GPU, second), reads,
                                       device(TCCL_MEMORY, memory))});
    }
    for (int place = 1; place < machine->n_memories; place++)
        add_memories(&list, place, false);
    *sets = list.sets;
    return list.count;
}
