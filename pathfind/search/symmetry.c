/* symmetry.c: finds like parts of a model or a machine and exchanges them. */
#include "search/symmetry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/likeness.h"
#include "search/setmap.h"

enum {
    DEVICES = TCCL_MAX_GPUS + TCCL_MAX_MEMORIES + TCCL_MAX_NICS,
    MAX_PARTS = 1 + 2 * TCCL_MAX_MEMORIES + TCCL_MAX_SWITCHES + DEVICES,
    MAX_EXCHANGES = MAX_PARTS,
    MAX_CHILDREN = TCCL_MAX_SWITCHES + DEVICES,
};

/* What a part of the machine is: a device (enum tccl_device_kind), a switch, a NUMA node, a group
 * of like NUMA nodes, or the whole. */
enum { SWITCH = TCCL_NIC + 1, NUMA_NODE, GROUP, WHOLE };

struct part {
    int parent;
    int siblings;            /* siblings with the same number may be exchanged */
    struct tccl_device what; /* the index is that of a device */
    int n_children;
    int children[MAX_CHILDREN];
};

/* Siblings exactly alike, or alike but for capacities that differ a little. */
enum { EXACT, NEAR, CLOSENESSES };
static const double TOLERANCE[CLOSENESSES] = {0, 0.15};

enum { MAX_PASSES = 8 }; /* of measuring symmetries */

struct tree {
    const struct tccl_machine *machine;
    const struct tccl_model *model; /* NULL: the machine is measured, */
    struct tccl_likeness *likeness; /* by this; NULL: only its description counts, */
    const struct tree *view;        /* and sets that this tree has alike are not all asked */
    struct tccl_error *err;
    int status; /* 0, or -1 with err */
    bool nics;  /* false: only what transfers between GPUs and memories see */
    double tolerance;
    int n_parts;
    struct part parts[MAX_PARTS];
    int part_of[3][TCCL_MAX_GPUS]; /* of each device */
    int n_exchanges;
    struct tccl_exchange exchanges[MAX_EXCHANGES];
    uint16_t *class_of_limit; /* limits that exchanges turn into one another */
    uint16_t *image;          /* room for one exchange */
};

struct tccl_symmetry {
    struct tree trees[2][CLOSENESSES]; /* without and with NICs */
    double factor[2];
    bool assumed;
};

static int add_part(struct tree *tree, int parent, int kind, int device)
{
    int index = tree->n_parts++;
    tree->parts[index] =
        (struct part){.parent = parent, .siblings = index, .what = {kind, (uint8_t)device}};
    if (kind <= TCCL_NIC)
        tree->part_of[kind][device] = index;
    if (parent >= 0) {
        struct part *above = &tree->parts[parent];
        above->children[above->n_children++] = index;
    }
    return index;
}

static void add_devices(struct tree *tree, int part, int numa, int parent_switch)
{
    const struct tccl_machine *machine = tree->machine;
    for (int i = 0; i < machine->n_gpus; i++)
        if (machine->gpus[i].numa == numa && machine->gpus[i].parent == parent_switch)
            add_part(tree, part, TCCL_GPU, i);
    for (int i = 0; tree->nics && i < machine->n_nics; i++)
        if (machine->nics[i].numa == numa && machine->nics[i].parent == parent_switch)
            add_part(tree, part, TCCL_NIC, i);
    for (int i = 0; i < machine->n_switches; i++)
        if (machine->switches[i].numa == numa && machine->switches[i].parent == parent_switch)
            add_devices(tree, add_part(tree, part, SWITCH, 0), numa, i);
}

/* Pairs up the devices below two parts in order. Returns 0, or -1 if their shapes differ. */
static int pair_up(const struct tree *tree, int a, int b, struct tccl_exchange *map)
{
    const struct part *x = &tree->parts[a], *y = &tree->parts[b];
    if (x->what.kind != y->what.kind || x->n_children != y->n_children)
        return -1;
    if (x->what.kind <= TCCL_NIC) {
        map->image[x->what.kind][x->what.index] = y->what.index;
        map->image[x->what.kind][y->what.index] = x->what.index;
    }
    for (int i = 0; i < x->n_children; i++)
        if (pair_up(tree, x->children[i], y->children[i], map) != 0)
            return -1;
    return 0;
}

/* The state of one relabelling: each part's image, and which images are taken. */
struct relabel {
    const struct tree *tree;
    int16_t image[MAX_PARTS];
    bool taken[MAX_PARTS];
};

/* A part met for the first time becomes the first free child of its parent's image that is its
 * sibling's equal. */
static int image_of(struct relabel *state, int part)
{
    const struct part *parts = state->tree->parts;
    if (state->image[part] >= 0)
        return state->image[part];
    const struct part *own = &parts[parts[part].parent];
    const struct part *above = &parts[image_of(state, parts[part].parent)];
    int rank = 0;
    while (own->children[rank] != part)
        rank++;
    int siblings = parts[above->children[rank]].siblings;
    for (int i = 0; i < above->n_children; i++) {
        int child = above->children[i];
        if (parts[child].siblings == siblings && !state->taken[child]) {
            state->taken[child] = true;
            state->image[part] = child;
            return child;
        }
    }
    return part; /* not reached: a parent's image has as many children of each class */
}

static struct tccl_device image_of_device(struct relabel *state, struct tccl_device device)
{
    return state->tree->parts[image_of(state, state->tree->part_of[device.kind][device.index])]
        .what;
}

/* tree: a struct tree. */
static void relabel(const void *tree, const tccl_transfer *walk, int count, tccl_transfer *out)
{
    struct relabel state = {.tree = tree};
    memset(state.image, -1, sizeof(state.image));
    state.image[0] = 0;
    for (int i = 0; i < count; i++) {
        struct tccl_device source = image_of_device(&state, tccl_transfer_source(walk[i]));
        struct tccl_device sink = image_of_device(&state, tccl_transfer_sink(walk[i]));
        bool reads = tccl_transfer_reads(walk[i]);
        out[i] = tccl_transfer_make(reads ? sink : source, reads, reads ? source : sink);
    }
}

/* Are the same of the one's children alike as of the other's? */
static bool same_shapes(const struct tree *tree, int a, int b)
{
    const struct part *x = &tree->parts[a], *y = &tree->parts[b];
    for (int i = 0; i < x->n_children; i++) {
        for (int j = 0; j < i; j++)
            if ((tree->parts[x->children[i]].siblings == tree->parts[x->children[j]].siblings) !=
                (tree->parts[y->children[i]].siblings == tree->parts[y->children[j]].siblings))
                return false;
        if (!same_shapes(tree, x->children[i], y->children[i]))
            return false;
    }
    return true;
}

/* Does exchanging two parts leave everything as it is? map gets the exchange. */
static bool exchangeable(struct tree *tree, int a, int b, struct tccl_exchange *map)
{
    *map = tccl_exchange_none();
    if (pair_up(tree, a, b, map) != 0)
        return false;
    if (tree->model)
        return tccl_model_alike(tree->model, map, tree->nics, tree->tolerance, tree->image);
    if (tree->status < 0 || !same_shapes(tree, a, b) ||
        !tccl_likeness_described(tree->machine, map, tree->nics))
        return false;
    struct tccl_likeness_view view = {relabel, tree->view};
    int alike = tree->likeness
                    ? tccl_likeness_measured(tree->likeness, map, tree->nics, view, tree->err)
                    : 1;
    tree->status = alike < 0 ? -1 : 0;
    return alike > 0;
}

/* Limits that the last exchange turns into one another come into one class. */
static void join_limits(struct tree *tree)
{
    int limits = tree->model ? tccl_model_limits(tree->model) : 0;
    for (int i = 0; i < limits; i++) {
        uint16_t from = tree->class_of_limit[i], to = tree->class_of_limit[tree->image[i]];
        for (int j = 0; j < limits && from != to; j++)
            if (tree->class_of_limit[j] == from)
                tree->class_of_limit[j] = to;
    }
}

/* Siblings that may be exchanged get one number, and the exchange of each with the one before it is
 * kept. Being exchangeable is transitive. */
static void find_siblings(struct tree *tree, int part)
{
    struct tccl_exchange map;
    const struct part *above = &tree->parts[part];
    for (int i = 1; i < above->n_children; i++) {
        for (int j = i - 1; j >= 0; j--) {
            if (!exchangeable(tree, above->children[j], above->children[i], &map))
                continue;
            tree->parts[above->children[i]].siblings = tree->parts[above->children[j]].siblings;
            tree->exchanges[tree->n_exchanges++] = map;
            join_limits(tree);
            break;
        }
    }
}

static void move_child(struct tree *tree, int child, int to)
{
    struct part *above = &tree->parts[to];
    above->children[above->n_children++] = child;
    tree->parts[child].parent = to;
}

static void build(struct tree *tree)
{
    const struct tccl_machine *machine = tree->machine;
    const int counts[] = {machine->n_gpus, machine->n_memories, tree->nics ? machine->n_nics : 0};
    memset(tree->part_of, -1, sizeof(tree->part_of));
    add_part(tree, -1, WHOLE, 0);
    for (int numa = 0; numa < machine->n_memories; numa++) {
        int node = add_part(tree, 0, NUMA_NODE, 0);
        add_part(tree, node, TCCL_MEMORY, numa);
        add_devices(tree, node, numa, -1);
    }
    for (int kind = TCCL_GPU; kind <= TCCL_NIC; kind++)
        for (int i = 0; i < counts[kind]; i++)
            if (tree->part_of[kind][i] < 0) /* its switch belongs to another NUMA node */
                add_part(tree, 0, kind, i);
    for (int part = tree->n_parts - 1; part >= 0; part--)
        find_siblings(tree, part);
    /* NUMA nodes that may be exchanged (those of one socket) become children of a group; groups may
     * then be exchanged as a whole (sockets). */
    struct part *root = &tree->parts[0];
    int children[MAX_CHILDREN], count = root->n_children, group_of[MAX_PARTS];
    memcpy(children, root->children, sizeof(children));
    memset(group_of, -1, sizeof(group_of));
    root->n_children = 0;
    for (int i = 0; i < count; i++) {
        struct part *child = &tree->parts[children[i]];
        if (child->what.kind != NUMA_NODE) {
            move_child(tree, children[i], 0);
            continue;
        }
        if (group_of[child->siblings] < 0)
            group_of[child->siblings] = add_part(tree, 0, GROUP, 0);
        move_child(tree, children[i], group_of[child->siblings]);
    }
    find_siblings(tree, 0);
}

static int build_of_model(struct tree *tree, const struct tccl_model *model, bool nics,
                          double tolerance)
{
    int limits = tccl_model_limits(model);
    *tree = (struct tree){
        .machine = tccl_model_machine(model), .model = model, .nics = nics, .tolerance = tolerance};
    tree->class_of_limit = calloc(limits + 1, sizeof(*tree->class_of_limit));
    tree->image = calloc(limits + 1, sizeof(*tree->image));
    if (!tree->class_of_limit || !tree->image)
        return -1;
    for (int i = 0; i < limits; i++)
        tree->class_of_limit[i] = i;
    build(tree);
    return 0;
}

/* By the description, then by measurements until no exchange is refuted any more: what looks alike
 * at first may be asked about apart later. Returns 0, or -1 with err. */
static int build_of_machine(struct tree *tree, const struct tccl_machine *machine,
                            struct tccl_likeness *likeness, bool nics, struct tccl_error *err)
{
    struct tree *view = malloc(sizeof(*view));
    if (!view)
        return tccl_fail(err, "out of memory");
    *tree = (struct tree){.machine = machine, .nics = nics, .err = err};
    build(tree);
    for (int pass = 0, before = -1;
         likeness && pass < MAX_PASSES && before != tree->n_exchanges && tree->status == 0;
         pass++) {
        *view = *tree;
        before = view->n_exchanges;
        *tree = (struct tree){
            .machine = machine, .likeness = likeness, .view = view, .nics = nics, .err = err};
        build(tree);
    }
    free(view);
    return tree->status;
}

struct tccl_symmetry *tccl_symmetry_of_model(const struct tccl_model *model)
{
    struct tccl_symmetry *symmetry = calloc(1, sizeof(*symmetry));
    if (!symmetry)
        return NULL;
    for (int nics = 0; nics < 2; nics++) {
        for (int closeness = EXACT; closeness < CLOSENESSES; closeness++) {
            if (build_of_model(&symmetry->trees[nics][closeness], model, nics,
                               TOLERANCE[closeness]) != 0) {
                tccl_symmetry_free(symmetry);
                return NULL;
            }
        }
        /* With each limit raised to the largest of its class the exchanges are exact, and no
         * bandwidth is raised by more than the largest ratio in a class: rates grow at most as
         * capacities do. */
        const struct tree *tree = &symmetry->trees[nics][NEAR];
        int limits = tccl_model_limits(tree->model);
        double ratio = 1;
        for (int i = 0; i < limits; i++)
            for (int j = 0; j < limits; j++)
                if (tree->class_of_limit[i] == tree->class_of_limit[j])
                    ratio = fmax(ratio, tccl_model_limit(tree->model, i) /
                                            tccl_model_limit(tree->model, j));
        symmetry->factor[nics] = ratio;
    }
    return symmetry;
}

/* Both trees, without near exchanges. */
static int build_all(struct tccl_symmetry *symmetry, const struct tccl_machine *machine,
                     struct tccl_likeness *likeness, struct tccl_error *err)
{
    int status = 0;
    for (int nics = 0; nics < 2 && status == 0; nics++) {
        struct tree *trees = symmetry->trees[nics];
        status = build_of_machine(&trees[EXACT], machine, likeness, nics, err);
        trees[NEAR] = (struct tree){.machine = machine, .nics = nics};
        symmetry->factor[nics] = 1;
    }
    return status;
}

struct tccl_symmetry *tccl_symmetry_of_machine(const struct tccl_machine *machine,
                                               const struct tccl_meter *meter, double noise,
                                               struct tccl_error *err)
{
    struct tccl_symmetry *symmetry = calloc(1, sizeof(*symmetry));
    struct tccl_likeness *likeness = meter ? tccl_likeness_new(machine, meter, noise) : NULL;
    int status = !symmetry || (meter && !likeness) ? tccl_fail(err, "out of memory")
                                                   : build_all(symmetry, machine, likeness, err);
    if (symmetry)
        symmetry->assumed = true;
    tccl_likeness_free(likeness);
    if (status == 0)
        return symmetry;
    tccl_symmetry_free(symmetry);
    return NULL;
}

static int look_up(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *err UNUSED)
{
    const struct tccl_setmap_entry *entry = tccl_setmap_find(context, set);
    *out = entry ? entry->best : (struct tccl_measurement){.failed = true};
    return 0;
}

struct tccl_symmetry *tccl_symmetry_of_sets(const struct tccl_machine *machine,
                                            const struct tccl_setmap *sets, double noise,
                                            double deviation, struct tccl_error *err)
{
    const struct tccl_meter meter = {.measure = look_up, .context = (void *)sets};
    return tccl_symmetry_of_machine(machine, &meter, fmax(noise, TCCL_ALIKE * deviation), err);
}

bool tccl_symmetry_assumed(const struct tccl_symmetry *symmetry)
{
    return symmetry->assumed;
}

void tccl_symmetry_free(struct tccl_symmetry *symmetry)
{
    if (!symmetry)
        return;
    for (int nics = 0; nics < 2; nics++) {
        for (int closeness = EXACT; closeness < CLOSENESSES; closeness++) {
            free(symmetry->trees[nics][closeness].class_of_limit);
            free(symmetry->trees[nics][closeness].image);
        }
    }
    free(symmetry);
}

static bool has_nic(const tccl_transfer *walk, int count)
{
    for (int i = 0; i < count; i++)
        if (tccl_transfer_initiator(walk[i]).kind == TCCL_NIC)
            return true;
    return false;
}

void tccl_symmetry_relabel(const struct tccl_symmetry *symmetry, const tccl_transfer *walk,
                           int count, tccl_transfer *out)
{
    relabel(&symmetry->trees[has_nic(walk, count)][EXACT], walk, count, out);
}

static const struct tree *tree_for(const struct tccl_symmetry *symmetry, const struct tccl_set *set,
                                   bool near)
{
    return &symmetry->trees[has_nic(set->transfers, set->count)][near ? NEAR : EXACT];
}

int tccl_symmetry_exchanges(const struct tccl_symmetry *symmetry, const struct tccl_set *set,
                            bool near)
{
    return symmetry ? tree_for(symmetry, set, near)->n_exchanges : 0;
}

void tccl_symmetry_exchange(const struct tccl_symmetry *symmetry, const struct tccl_set *set,
                            bool near, int which, struct tccl_set *image)
{
    tccl_exchange_set(&tree_for(symmetry, set, near)->exchanges[which], set, image);
}

/* ---- GPU sets that are alike ---- */

/* What is visited. */
struct images {
    const struct tree *tree; /* NULL: there are no symmetries */
    uint32_t gpus;
    bool (*visit)(void *context, uint32_t image, const struct tccl_exchange *move);
    void *context;
};

void tccl_symmetry_alike(const struct tccl_symmetry *symmetry, const struct tccl_machine *machine,
                         struct tccl_alike *alike)
{
    const struct tree *tree = symmetry ? &symmetry->trees[true][EXACT] : NULL;
    *alike = (struct tccl_alike){0};
    for (int i = 0; tree && i < tree->n_exchanges && alike->n < TCCL_MAX_ALIKE; i++)
        if (tccl_likeness_to_nccl(machine, &tree->exchanges[i]))
            alike->exchanges[alike->n++] = tree->exchanges[i];
}

static void visit_from(const struct images *images, const struct tccl_exchange *move)
{
    if (!images->visit(images->context, tccl_exchange_gpus(move, images->gpus), move))
        return;
    for (int i = 0; images->tree && i < images->tree->n_exchanges; i++) {
        struct tccl_exchange next = tccl_exchange_then(move, &images->tree->exchanges[i]);
        visit_from(images, &next);
    }
}

void tccl_symmetry_images(const struct tccl_symmetry *symmetry, uint32_t gpus,
                          bool (*visit)(void *context, uint32_t image,
                                        const struct tccl_exchange *move),
                          void *context)
{
    const struct images images = {symmetry ? &symmetry->trees[false][EXACT] : NULL, gpus, visit,
                                  context};
    const struct tccl_exchange none = tccl_exchange_none();
    visit_from(&images, &none);
}

double tccl_symmetry_factor(const struct tccl_symmetry *symmetry, const struct tccl_set *set)
{
    return symmetry ? symmetry->factor[has_nic(set->transfers, set->count)] : 1;
}
