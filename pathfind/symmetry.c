/* symmetry.c: finds like parts of a model and exchanges them. */
#include "symmetry.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEVICES = TCCL_MAX_GPUS + TCCL_MAX_MEMORIES + TCCL_MAX_NICS,
    MAX_PARTS = 1 + 2 * TCCL_MAX_MEMORIES + TCCL_MAX_SWITCHES + DEVICES,
    MAX_EXCHANGES = MAX_PARTS,
};

/* A part of the machine: the whole, a group of like NUMA nodes, a NUMA node, a switch or a device. */
struct part {
    int parent;
    int brothers;    /* brothers with the same number may be exchanged */
    int device;      /* index in the table of devices, -1 for an inner part */
    char kind;       /* 'r'oot, 'c' group, 'u' NUMA node, 's'witch, 'g', 'm', 'n' */
    int n_children;
    int children[DEVICES];
};

struct permutation {
    uint8_t device[DEVICES];
};

struct tccl_symmetry {
    const struct tccl_model *model;
    int n_parts;
    struct part parts[MAX_PARTS];
    int part_of[DEVICES];
    int n_exchanges;
    struct permutation exchanges[MAX_EXCHANGES];
};

static int device_number(struct tccl_device device)
{
    static const int first[] = {
        [TCCL_GPU] = 0,
        [TCCL_MEMORY] = TCCL_MAX_GPUS,
        [TCCL_NIC] = TCCL_MAX_GPUS + TCCL_MAX_MEMORIES,
    };
    return first[device.kind] + device.index;
}

static struct tccl_device device_of_number(int number)
{
    if (number < TCCL_MAX_GPUS)
        return (struct tccl_device){TCCL_GPU, number};
    if (number < TCCL_MAX_GPUS + TCCL_MAX_MEMORIES)
        return (struct tccl_device){TCCL_MEMORY, number - TCCL_MAX_GPUS};
    return (struct tccl_device){TCCL_NIC, number - TCCL_MAX_GPUS - TCCL_MAX_MEMORIES};
}

static int add_part(struct tccl_symmetry *symmetry, int parent, char kind, int device)
{
    int index = symmetry->n_parts++;
    struct part *part = &symmetry->parts[index];
    *part = (struct part){.parent = parent, .brothers = index, .device = device, .kind = kind};
    if (device >= 0)
        symmetry->part_of[device] = index;
    if (parent >= 0) {
        struct part *above = &symmetry->parts[parent];
        above->children[above->n_children++] = index;
    }
    return index;
}

static void add_devices(struct tccl_symmetry *symmetry, int part, int numa, int parent_switch)
{
    const struct tccl_machine *machine = tccl_model_machine(symmetry->model);
    for (int i = 0; i < machine->n_gpus; i++)
        if (machine->gpus[i].numa == numa && machine->gpus[i].parent == parent_switch)
            add_part(symmetry, part, 'g', device_number((struct tccl_device){TCCL_GPU, i}));
    for (int i = 0; i < machine->n_nics; i++)
        if (machine->nics[i].numa == numa && machine->nics[i].parent == parent_switch)
            add_part(symmetry, part, 'n', device_number((struct tccl_device){TCCL_NIC, i}));
    for (int i = 0; i < machine->n_switches; i++)
        if (machine->switches[i].numa == numa && machine->switches[i].parent == parent_switch)
            add_devices(symmetry, add_part(symmetry, part, 's', -1), numa, i);
}

static int add_numa(struct tccl_symmetry *symmetry, int parent, int numa)
{
    int part = add_part(symmetry, parent, 'u', -1);
    add_part(symmetry, part, 'm', device_number((struct tccl_device){TCCL_MEMORY, numa}));
    add_devices(symmetry, part, numa, -1);
    return part;
}

/* Devices whose switch belongs to another NUMA node hang from the root. */
static void add_strays(struct tccl_symmetry *symmetry)
{
    const struct tccl_machine *machine = tccl_model_machine(symmetry->model);
    int counts[] = {machine->n_gpus, machine->n_memories, machine->n_nics};
    for (int kind = TCCL_GPU; kind <= TCCL_NIC; kind++) {
        for (int i = 0; i < counts[kind]; i++) {
            int number = device_number((struct tccl_device){kind, i});
            if (symmetry->part_of[number] < 0)
                add_part(symmetry, 0, "gmn"[kind], number);
        }
    }
}

/* Pairs up the devices below two parts in order. Returns 0, or -1 if their shapes differ. */
static int pair_up(const struct tccl_symmetry *symmetry, int a, int b, struct permutation *map)
{
    const struct part *x = &symmetry->parts[a], *y = &symmetry->parts[b];
    if (x->kind != y->kind || x->n_children != y->n_children)
        return -1;
    if (x->device >= 0) {
        map->device[x->device] = y->device;
        map->device[y->device] = x->device;
    }
    for (int i = 0; i < x->n_children; i++)
        if (pair_up(symmetry, x->children[i], y->children[i], map) < 0)
            return -1;
    return 0;
}

static void identity(struct permutation *map)
{
    for (int i = 0; i < DEVICES; i++)
        map->device[i] = i;
}

/* Does exchanging two parts leave the model as it is? map gets the exchange. */
static bool exchangeable(const struct tccl_symmetry *symmetry, int a, int b,
                         struct permutation *map)
{
    uint8_t image[3][TCCL_MAX_GPUS];
    _Static_assert(TCCL_MAX_GPUS == TCCL_MAX_MEMORIES && TCCL_MAX_GPUS == TCCL_MAX_NICS,
                   "one width for all images");
    identity(map);
    if (pair_up(symmetry, a, b, map) < 0)
        return false;
    for (int number = 0; number < DEVICES; number++) {
        struct tccl_device device = device_of_number(number);
        image[device.kind][device.index] = device_of_number(map->device[number]).index;
    }
    return tccl_model_invariant(symmetry->model, image[TCCL_GPU], image[TCCL_MEMORY],
                                image[TCCL_NIC]);
}

/* Brothers that may be exchanged get one number, and the exchange of each with the one before it is
 * kept. Being exchangeable is transitive. */
static void find_brothers(struct tccl_symmetry *symmetry, int part)
{
    struct permutation map;
    const struct part *above = &symmetry->parts[part];
    for (int i = 1; i < above->n_children; i++) {
        for (int j = i - 1; j >= 0; j--) {
            if (!exchangeable(symmetry, above->children[j], above->children[i], &map))
                continue;
            symmetry->parts[above->children[i]].brothers =
                symmetry->parts[above->children[j]].brothers;
            symmetry->exchanges[symmetry->n_exchanges++] = map;
            break;
        }
    }
}

static void move_child(struct tccl_symmetry *symmetry, int child, int to)
{
    struct part *above = &symmetry->parts[to];
    above->children[above->n_children++] = child;
    symmetry->parts[child].parent = to;
}

/* NUMA nodes that may be exchanged (those of one socket) become children of a group; groups may then be
 * exchanged as a whole (sockets). */
static void group_numa_nodes(struct tccl_symmetry *symmetry)
{
    struct part *root = &symmetry->parts[0];
    int children[DEVICES], count = root->n_children, group_of[MAX_PARTS];
    memcpy(children, root->children, sizeof(children));
    memset(group_of, -1, sizeof(group_of));
    root->n_children = 0;
    for (int i = 0; i < count; i++) {
        struct part *child = &symmetry->parts[children[i]];
        if (child->kind != 'u') {
            move_child(symmetry, children[i], 0);
            continue;
        }
        if (group_of[child->brothers] < 0)
            group_of[child->brothers] = add_part(symmetry, 0, 'c', -1);
        move_child(symmetry, children[i], group_of[child->brothers]);
    }
}

struct tccl_symmetry *tccl_symmetry_of_model(const struct tccl_model *model)
{
    struct tccl_symmetry *symmetry = calloc(1, sizeof(*symmetry));
    if (!symmetry)
        return NULL;
    symmetry->model = model;
    memset(symmetry->part_of, -1, sizeof(symmetry->part_of));
    add_part(symmetry, -1, 'r', -1);
    for (int numa = 0; numa < tccl_model_machine(model)->n_memories; numa++)
        add_numa(symmetry, 0, numa);
    add_strays(symmetry);
    for (int part = symmetry->n_parts - 1; part >= 0; part--)
        find_brothers(symmetry, part);
    group_numa_nodes(symmetry);
    find_brothers(symmetry, 0);
    return symmetry;
}

void tccl_symmetry_free(struct tccl_symmetry *symmetry)
{
    free(symmetry);
}

/* The state of one relabelling: each part's image, and which images are taken. */
struct relabel {
    const struct tccl_symmetry *symmetry;
    int16_t image[MAX_PARTS];
    bool taken[MAX_PARTS];
};

/* A part met for the first time becomes the first free child of its parent's image that is its
 * brother's equal. */
static int image_of(struct relabel *state, int part)
{
    const struct part *parts = state->symmetry->parts;
    if (state->image[part] >= 0)
        return state->image[part];
    const struct part *own = &parts[parts[part].parent];
    const struct part *above = &parts[image_of(state, parts[part].parent)];
    int rank = 0;
    while (own->children[rank] != part)
        rank++;
    int brothers = parts[above->children[rank]].brothers;
    for (int i = 0; i < above->n_children; i++) {
        int child = above->children[i];
        if (parts[child].brothers == brothers && !state->taken[child]) {
            state->taken[child] = true;
            state->image[part] = child;
            return child;
        }
    }
    return part; /* not reached: a parent's image has as many children of each class */
}

static struct tccl_device image_of_device(struct relabel *state, struct tccl_device device)
{
    int part = state->symmetry->part_of[device_number(device)];
    return device_of_number(state->symmetry->parts[image_of(state, part)].device);
}

void tccl_symmetry_relabel(const struct tccl_symmetry *symmetry, const tccl_transfer *walk,
                           int count, tccl_transfer *out)
{
    struct relabel state = {.symmetry = symmetry};
    memset(state.image, -1, sizeof(state.image));
    state.image[0] = 0;
    for (int i = 0; i < count; i++) {
        struct tccl_device source = image_of_device(&state, tccl_transfer_source(walk[i]));
        struct tccl_device sink = image_of_device(&state, tccl_transfer_sink(walk[i]));
        bool reads = tccl_transfer_reads(walk[i]);
        out[i] = tccl_transfer_make(reads ? sink : source, reads, reads ? source : sink);
    }
}

int tccl_symmetry_exchanges(const struct tccl_symmetry *symmetry)
{
    return symmetry ? symmetry->n_exchanges : 0;
}

tccl_transfer tccl_symmetry_exchange(const struct tccl_symmetry *symmetry, int exchange,
                                     tccl_transfer transfer)
{
    const uint8_t *map = symmetry->exchanges[exchange].device;
    struct tccl_device initiator = tccl_transfer_initiator(transfer);
    struct tccl_device target = tccl_transfer_target(transfer);
    return tccl_transfer_make(device_of_number(map[device_number(initiator)]),
                              tccl_transfer_reads(transfer),
                              device_of_number(map[device_number(target)]));
}
