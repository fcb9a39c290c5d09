/* Which ring sets on a part of a node take what steps on the other GPUs would need: against a plain
 * walk along each ring, from device to device. */

#include "machines.h"
#include "random-model.h"
#include "ring/neighbours.h"

enum { SETS = 4000, STOPS = 64 };

/* Where the data of a ring pass, one device after the other; a closed one ends where it began. */
static int walk(const struct tccl_chain *chain, struct tccl_device stops[static STOPS])
{
    int n = 0;
    if (!chain->closed) {
        stops[n++] = (struct tccl_device){TCCL_NIC, chain->entry.nic};
        if (chain->entry.via.kind == TCCL_MEMORY)
            stops[n++] = chain->entry.via;
    }
    for (int i = 0; i < chain->n_gpus; i++) {
        stops[n++] = (struct tccl_device){TCCL_GPU, chain->gpus[i]};
        if (i < tccl_chain_edges(chain) && chain->edges[i].kind == TCCL_BOUNCE)
            stops[n++] = (struct tccl_device){TCCL_MEMORY, chain->edges[i].memory};
    }
    if (chain->closed) {
        stops[n++] = stops[0];
        return n;
    }
    if (chain->exit.via.kind == TCCL_MEMORY)
        stops[n++] = chain->exit.via;
    stops[n++] = (struct tccl_device){TCCL_NIC, chain->exit.nic};
    return n;
}

static bool is_below(const struct tccl_machine *machine, struct tccl_device device, int above)
{
    int at = device.kind == TCCL_MEMORY ? -1
             : device.kind == TCCL_GPU  ? machine->gpus[device.index].parent
                                        : machine->nics[device.index].parent;
    while (at >= 0 && at != above)
        at = machine->switches[at].parent;
    return at >= 0;
}

/* How often the rings leave the part of the machine below a switch, or come into it. */
static int crossings(const struct tccl_machine *machine, const struct tccl_chain *rings, int n,
                     int above, bool out)
{
    int count = 0;
    for (int r = 0; r < n; r++) {
        struct tccl_device stops[STOPS];
        int last = walk(&rings[r], stops) - 1;
        for (int i = 0; i < last; i++) {
            bool from = is_below(machine, stops[i], above);
            bool to = is_below(machine, stops[i + 1], above);
            count += from != to && from == out;
        }
    }
    return count;
}

static int nics_of(const struct tccl_chain *rings, int n)
{
    uint32_t nics = 0;
    for (int r = 0; r < n; r++)
        if (!rings[r].closed)
            nics |= UINT32_C(1) << rings[r].entry.nic | UINT32_C(1) << rings[r].exit.nic;
    return __builtin_popcount(nics);
}

static bool has(const struct tccl_chain *chain, int gpu)
{
    for (int i = 0; i < chain->n_gpus; i++)
        if (chain->gpus[i] == gpu)
            return true;
    return false;
}

static bool crowds(const struct tccl_machine *machine, const struct tccl_ring_set *set,
                   const struct tccl_chain *single)
{
    for (int above = 0; above < machine->n_switches; above++) {
        bool others = false;
        for (int gpu = 0; gpu < machine->n_gpus; gpu++)
            others |= is_below(machine, (struct tccl_device){TCCL_GPU, (uint8_t)gpu}, above) &&
                      !has(&set->rings[0], gpu);
        for (int out = 0; out < 2 && others; out++) {
            int now = crossings(machine, set->rings, set->n, above, out);
            if (now > 1 && now > crossings(machine, single, 1, above, out))
                return true;
        }
    }
    return false;
}

/* How many rings come in by the NIC, or go out. */
static int passes(const struct tccl_chain *rings, int n, int nic, bool out)
{
    int count = 0;
    for (int r = 0; r < n; r++)
        count += !rings[r].closed && (out ? rings[r].exit.nic : rings[r].entry.nic) == nic;
    return count;
}

static bool crowds_nic(const struct tccl_machine *machine, const struct tccl_ring_set *set,
                       const struct tccl_chain *single)
{
    for (int nic = 0; nic < machine->n_nics; nic++) {
        bool others = false;
        for (int gpu = 0; gpu < machine->n_gpus; gpu++)
            others |=
                machine->gpus[gpu].numa == machine->nics[nic].numa && !has(&set->rings[0], gpu);
        for (int out = 0; out < 2 && others; out++) {
            int now = passes(set->rings, set->n, nic, out);
            if (now > 1 && now > passes(single, 1, nic, out))
                return true;
        }
    }
    return false;
}

static bool expected(const struct tccl_machine *machine, const struct tccl_ring_set *set,
                     const struct tccl_chain *single)
{
    int nics = nics_of(set->rings, set->n);
    if (set->rings[0].n_gpus == machine->n_gpus)
        return false;
    for (int r = 0; r < set->n; r++)
        if (set->rings[r].closed &&
            tccl_chain_far(machine, &set->rings[r]) > tccl_chain_far(machine, single))
            return true;
    if (nics > 1 && nics * machine->n_gpus > machine->n_nics * single->n_gpus &&
        nics > nics_of(single, 1))
        return true;
    return crowds(machine, set, single) || crowds_nic(machine, set, single);
}

static struct tccl_device random_via(const struct tccl_machine *machine, int gpu,
                                     unsigned long *state)
{
    if (random_below(state, 2))
        return (struct tccl_device){TCCL_GPU, (uint8_t)gpu};
    return (struct tccl_device){TCCL_MEMORY, (uint8_t)random_below(state, machine->n_memories)};
}

/* These GPUs in a random order, with random edges and ports. */
static void random_chain(const struct tccl_machine *machine, const uint8_t *gpus, int n,
                         bool closed, unsigned long *state, struct tccl_chain *chain)
{
    *chain = (struct tccl_chain){.n_gpus = (uint8_t)n, .closed = closed};
    memcpy(chain->gpus, gpus, (size_t)n);
    for (int i = n - 1; i > 0; i--) {
        int k = random_below(state, i + 1);
        uint8_t gpu = chain->gpus[i];
        chain->gpus[i] = chain->gpus[k];
        chain->gpus[k] = gpu;
    }
    for (int i = 0; i < n; i++) {
        bool bounce = random_below(state, 2);
        chain->edges[i].kind = bounce ? TCCL_BOUNCE : TCCL_P2P_WRITE;
        chain->edges[i].memory = bounce ? (uint8_t)random_below(state, machine->n_memories) : 0;
    }
    if (closed)
        return;
    chain->entry.nic = (uint8_t)random_below(state, machine->n_nics);
    chain->entry.via = random_via(machine, chain->gpus[0], state);
    chain->exit.nic = (uint8_t)random_below(state, machine->n_nics);
    chain->exit.via = random_via(machine, chain->gpus[n - 1], state);
}

static int random_gpus(const struct tccl_machine *machine, unsigned long *state,
                       uint8_t gpus[static TCCL_MAX_GPUS], bool closed)
{
    int n = 0;
    while (n < 1 + closed) {
        n = 0;
        for (int i = 0; i < machine->n_gpus; i++)
            if (random_below(state, 3))
                gpus[n++] = (uint8_t)i;
    }
    return n;
}

static void test_random(const char *name, unsigned long *state)
{
    const struct tccl_machine *machine = machine_of(name);
    int kept = 0, left = 0;
    for (int i = 0; i < SETS; i++) {
        struct tccl_ring_set set = {.n = 2 + (i & 1)};
        struct tccl_chain single;
        uint8_t gpus[TCCL_MAX_GPUS];
        bool closed = random_below(state, 2);
        int n = random_gpus(machine, state, gpus, closed);
        for (int r = 0; r < set.n; r++)
            random_chain(machine, gpus, n, closed, state, &set.rings[r]);
        random_chain(machine, gpus, n, closed, state, &single);
        bool takes = tccl_set_takes_room(machine, &set, &single);
        CHECK_INT(takes, expected(machine, &set, &single));
        left += takes;
        kept += !takes;
    }
    printf("%s: %d take room, %d don't\n", name, left, kept);
    CHECK(left > 0 && kept > 0);
}

static bool takes(const struct tccl_machine *machine, const char *text, const char *single)
{
    struct tccl_ring_set set, one;
    CHECK_OK(tccl_ring_set_parse(text, machine, &set, ERR));
    CHECK_OK(tccl_ring_set_parse(single, machine, &one, ERR));
    return tccl_set_takes_room(machine, &set, &one.rings[0]);
}

/* What the words of room.c mean, on a machine with two NICs and four switches of two GPUs. */
TEST(examples)
{
    const struct tccl_machine *machine = machine_of("dual-8gpu");
    const char *alone = "0 -w> 1 -w> 0";
    /* Both GPUs of a switch, and within it; one of two switches each, over their links. */
    CHECK(!takes(machine, "0 -w> 1 -w> 0 | 1 -w> 0 -w> 1", alone));
    CHECK(takes(machine, "0 -w> 2 -w> 0 | 2 -w> 0 -w> 2", "0 -w> 2 -w> 0"));
    /* All GPUs of both switches. */
    CHECK(!takes(machine, "0 -w> 1 -w> 2 -w> 3 -w> 0 | 3 -w> 2 -w> 1 -w> 0 -w> 3",
                 "0 -w> 1 -w> 2 -w> 3 -w> 0"));
    /* Half of the GPUs have a part of one NIC: two are more, unless the single one has them, too.
     */
    const char *by_both = "mlx5_0 -g> 0 -w> 1 -w> 2 -w> 3 -m0> mlx5_0 | "
                          "mlx5_1 -m0> 3 -w> 2 -w> 1 -w> 0 -m0> mlx5_1";
    CHECK(takes(machine, by_both, "mlx5_0 -g> 0 -w> 1 -w> 2 -w> 3 -m0> mlx5_0"));
    CHECK(!takes(machine, by_both, "mlx5_0 -g> 0 -w> 1 -w> 2 -w> 3 -m0> mlx5_1"));
    /* All GPUs next to a NIC may use it twice, some of them only as often as the single one. */
    CHECK(!takes(machine,
                 "mlx5_0 -m0> 0 -w> 1 -w> 2 -w> 3 -m0> mlx5_0 | "
                 "mlx5_0 -m0> 3 -w> 2 -w> 1 -w> 0 -m0> mlx5_0",
                 "mlx5_0 -m0> 0 -w> 1 -w> 2 -w> 3 -m0> mlx5_0"));
    CHECK(takes(machine, "mlx5_0 -m0> 0 -w> 1 -m0> mlx5_0 | mlx5_0 -m0> 1 -w> 0 -m0> mlx5_0",
                "mlx5_0 -m0> 0 -w> 1 -m0> mlx5_0"));
}

TEST(rounds)
{
    unsigned long state = check_seed();
    for (int i = 0; i < MACHINE_NAMES; i++)
        test_random(machine_names[i], &state);
}
