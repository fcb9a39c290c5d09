/* optimum-sets.c: the best ring sets, built transfer by transfer. What NCCL decides once for a
 * process or a pair of GPUs is noted on the way (chain/ring-set.h says what that is); adding a
 * transfer never makes a set faster, so what is slower than wanted is given up at once. */
#include "optimum-sets.h"

#include "bench.h"
#include "machine/sides.h"

/* PATIENCE: sets looked at until a try to put rings back is given up; START: the same where all are
 * built anew. */
enum { MOST_WAYS = 1024, PATIENCE = 400, START = 4000 };

struct ring {
    int8_t order[TCCL_MAX_GPUS];
    int8_t how[TCCL_MAX_GPUS]; /* data come in: -1 P2P, -2 by reads among writes, else the memory */
    int8_t nics[2], vias[2];   /* -1 GPUDirect, else the memory */
};

/* What is built so far, and what it has decided. */
struct part {
    int count;
    tccl_transfer transfers[TCCL_MAX_SIDE];
    int8_t memories[TCCL_MAX_GPUS], direct[TCCL_MAX_GPUS];   /* -1: not decided */
    uint32_t islands[TCCL_MAX_GPUS], bounced[TCCL_MAX_GPUS]; /* of GPUs */
    uint32_t near[TCCL_MAX_NICS], through[TCCL_MAX_NICS];
    uint8_t lines[TCCL_MAX_NICS][2];
};

struct builder {
    struct optimum_kind kind;
    const struct tccl_machine *machine;
    bool by_chance;
    int n, wanted, ring; /* ring: which one is built */
    int ways;            /* of data into a GPU: P2P, and the memories */
    double least;        /* GB/s that sets must reach */
    double reached;      /* by the set found last */
    long left, looked;   /* sets that may still be looked at, by chance only; that were */
    double until;        /* processor time */
    bool late;           /* it is over */
    uint64_t state;
    struct part part;
    struct ring rings[TCCL_CHAIN_RINGS], found[TCCL_CHAIN_RINGS];
};

static int below(struct builder *builder, int n)
{
    builder->state = builder->state * 6364136223846793005U + 1442695040888963407U;
    return (int)((builder->state >> 33) % (uint64_t)n);
}

static struct tccl_device device(int kind, int index)
{
    return (struct tccl_device){(uint8_t)kind, (uint8_t)index};
}

static bool goes_on(struct builder *builder)
{
    builder->looked++;
    if (--builder->left % 64 == 0 && bench_cpu() > builder->until)
        builder->late = true;
    return !builder->late && (!builder->by_chance || builder->left > 0);
}

static void add(struct part *part, struct tccl_device who, bool reads, struct tccl_device whom)
{
    part->transfers[part->count++] = tccl_transfer_make(who, reads, whom);
}

/* What all rings reach together with what there is so far, GB/s. */
static double reached(const struct builder *builder)
{
    const struct part *part = &builder->part;
    const struct tccl_set *without = builder->kind.without;
    struct tccl_set set = {0};
    double gbps = INFINITY;
    for (int i = 0; i < part->count && without; i++)
        if (tccl_set_has(without, part->transfers[i]))
            return -1;
    for (int i = 0; i < part->count && builder->kind.rate; i++)
        tccl_set_add(&set, part->transfers[i]);
    if (builder->kind.rate)
        return builder->ring < builder->wanted ? INFINITY
                                               : builder->kind.rate(builder->kind.context, &set);
    if (tccl_model_slowest(builder->kind.model, part->transfers, part->count, &gbps, NULL) != 0)
        return 0;
    for (int i = 0; i < builder->machine->n_nics && !builder->kind.ports[0]; i++)
        for (int end = 0; end < 2; end++)
            if (part->lines[i][end])
                gbps = fmin(gbps, builder->machine->nics[i].gbps / part->lines[i][end]);
    return builder->wanted * gbps;
}

/* ---- what NCCL can be made to build ---- */

static bool decide(int8_t *place, int value)
{
    bool same = *place < 0 || *place == value;
    *place = (int8_t)value;
    return same;
}

/* GPUs with P2P between them, or near one NIC: no ring goes through memory among them. */
static bool join(struct part *part, int a, int b)
{
    uint32_t both = part->islands[a] | part->islands[b];
    for (int i = 0; i < TCCL_MAX_GPUS; i++) {
        if (!(both >> i & 1))
            continue;
        part->islands[i] = both;
        if (part->bounced[i] & both)
            return false;
    }
    return true;
}

/* Is a NIC that is near some GPU of an island near all of its GPUs that use it? */
static bool nics_fit(const struct part *part)
{
    for (int nic = 0; nic < TCCL_MAX_NICS; nic++)
        for (int gpu = 0; gpu < TCCL_MAX_GPUS; gpu++)
            if ((part->through[nic] >> gpu & 1) && (part->islands[gpu] & part->near[nic]))
                return false;
    return true;
}

static bool add_edge(struct builder *builder, int from, int to, int memory)
{
    struct part *part = &builder->part;
    struct tccl_device giver = device(TCCL_GPU, from), taker = device(TCCL_GPU, to);
    bool any = builder->kind.any;
    if (memory < 0) {
        bool reads = builder->kind.reads || memory == -2;
        add(part, reads ? taker : giver, reads, reads ? giver : taker);
        return builder->machine->p2p[from][to] && (any || join(part, from, to));
    }
    add(part, giver, false, device(TCCL_MEMORY, memory));
    add(part, taker, true, device(TCCL_MEMORY, memory));
    part->bounced[from] |= 1u << to;
    part->bounced[to] |= 1u << from;
    return any || (!(part->islands[from] >> to & 1) && decide(&part->memories[to], memory));
}

/* GPUs before compute capability 8.0 send through memory, wherever the NIC is. */
static bool add_port(struct builder *builder, int gpu, int nic, int via, int out)
{
    struct part *part = &builder->part;
    struct tccl_device card = device(TCCL_NIC, nic), own = device(TCCL_GPU, gpu);
    int sm = builder->machine->gpus[gpu].sm;
    bool any = builder->kind.any, is_direct = !out || builder->n == 1 || sm == 0 || sm >= 80;
    const struct tccl_port *port = builder->kind.ports[out];
    struct tccl_device itself = via < 0 ? own : device(TCCL_MEMORY, via);
    if (port && (port->nic != nic ||
                 (port->via.kind != TCCL_NIC && memcmp(&port->via, &itself, sizeof(itself)) != 0)))
        return false;
    part->lines[nic][out]++;
    if (!decide(&part->direct[gpu], via < 0) && !any)
        return false;
    if (via >= 0) {
        add(part, card, out, device(TCCL_MEMORY, via));
        add(part, own, !out, device(TCCL_MEMORY, via));
        part->through[nic] |= is_direct << gpu;
        return decide(&part->memories[gpu], via) || any;
    }
    if (!builder->machine->gpudirect[nic][gpu] || !(is_direct || any))
        return false;
    add(part, card, out, own);
    if (any)
        return true;
    int first = part->near[nic] ? __builtin_ctz(part->near[nic]) : gpu;
    part->near[nic] |= 1u << gpu;
    return join(part, first, gpu);
}

/* Is the ring that was built last possible, with the others? Of sets that differ by the order of
 * their rings one is enough. */
static bool ring_fits(const struct builder *builder)
{
    const struct ring *ring = &builder->rings[builder->ring];
    bool one_nic = builder->kind.closed || builder->n > 1 || ring->nics[0] == ring->nics[1];
    if (!builder->by_chance && builder->ring > 0 && memcmp(ring - 1, ring, sizeof(*ring)) > 0)
        return false;
    return builder->kind.any || (one_nic && nics_fit(&builder->part));
}

/* ---- building ---- */

/* Ways to go on, in order or by chance. Returns how many. */
static int list_ways(struct builder *builder, int n, int16_t ways[static MOST_WAYS])
{
    for (int i = 0; i < n; i++) {
        int k = builder->by_chance ? below(builder, i + 1) : i;
        ways[i] = (int16_t)i;
        ways[i] = ways[k];
        ways[k] = (int16_t)i;
    }
    return n;
}

static bool next_ring(struct builder *builder);
static bool next_gpu(struct builder *builder, int place, uint32_t used);

static bool is_fast(const struct builder *builder)
{
    return reached(builder) >= builder->least;
}

/* All rings are there. Returns whether that is enough. */
static bool finish(struct builder *builder)
{
    double gbps = reached(builder);
    if (gbps < builder->least)
        return false;
    builder->reached = gbps;
    memcpy(builder->found, builder->rings, sizeof(builder->found));
    builder->least = builder->reached * (1 + 1e-9);
    return builder->by_chance;
}

/* The ring is there: the next one. */
static bool end_ring(struct builder *builder)
{
    if (!ring_fits(builder))
        return false;
    builder->ring++;
    bool done = next_ring(builder);
    builder->ring--;
    return done;
}

/* All ways out of the node. */
static bool leave(struct builder *builder)
{
    const struct part before = builder->part;
    struct ring *ring = &builder->rings[builder->ring];
    int16_t ways[MOST_WAYS];
    int vias = 1 + builder->machine->n_memories, gpu = ring->order[builder->n - 1];
    int n = list_ways(builder, builder->machine->n_nics * vias, ways);
    bool done = false;
    for (int i = 0; i < n && !done && goes_on(builder); i++) {
        ring->nics[1] = (int8_t)(ways[i] / vias);
        ring->vias[1] = (int8_t)(ways[i] % vias - 1);
        done = add_port(builder, gpu, ring->nics[1], ring->vias[1], 1) && is_fast(builder) &&
               end_ring(builder);
        builder->part = before;
    }
    return done;
}

/* The edge to the GPU at a place; in a closed ring the first one comes once more. */
static bool next_gpu(struct builder *builder, int place, uint32_t used)
{
    const struct part before = builder->part;
    struct ring *ring = &builder->rings[builder->ring];
    int16_t ways[MOST_WAYS];
    int from = ring->order[place - 1], p2p = builder->ways - builder->machine->n_memories;
    bool back = place == builder->n, done = false;
    if (back && !builder->kind.closed)
        return leave(builder);
    int n = list_ways(builder, builder->machine->n_gpus * builder->ways, ways);
    for (int i = 0; i < n && !done; i++) {
        int to = ways[i] / builder->ways, how = ways[i] % builder->ways - p2p;
        if (back ? to != ring->order[0] : used >> to & 1)
            continue;
        if (!goes_on(builder))
            break;
        ring->order[place % builder->n] = (int8_t)to;
        ring->how[to] = (int8_t)how;
        done = add_edge(builder, from, to, how) && is_fast(builder) &&
               (back ? end_ring(builder) : next_gpu(builder, place + 1, used | 1u << to));
        builder->part = before;
    }
    return done;
}

/* Returns whether a set was found that is enough: by chance the first one. */
static bool next_ring(struct builder *builder)
{
    if (builder->ring == builder->wanted)
        return finish(builder);
    const struct part before = builder->part;
    struct ring *ring = &builder->rings[builder->ring];
    int16_t ways[MOST_WAYS];
    int vias = 1 + builder->machine->n_memories, nics = builder->machine->n_nics;
    int all = builder->machine->n_gpus;
    int n = list_ways(builder, builder->kind.closed ? 1 : all * nics * vias, ways);
    bool done = false;
    for (int i = 0; i < n && !done && goes_on(builder); i++) {
        *ring = (struct ring){.order = {(int8_t)__builtin_ctz(builder->kind.gpus)}};
        bool fits = true;
        if (!builder->kind.closed) {
            ring->order[0] = (int8_t)(ways[i] / (nics * vias));
            ring->nics[0] = (int8_t)(ways[i] / vias % nics);
            ring->vias[0] = (int8_t)(ways[i] % vias - 1);
            fits = (builder->kind.gpus >> ring->order[0] & 1) &&
                   add_port(builder, ring->order[0], ring->nics[0], ring->vias[0], 0) &&
                   is_fast(builder);
        }
        done = fits && next_gpu(builder, 1, ~builder->kind.gpus | 1u << ring->order[0]);
        builder->part = before;
    }
    return done;
}

static void clear_part(struct builder *builder)
{
    builder->part = (struct part){.count = 0};
    builder->ring = 0;
    memset(builder->part.memories, -1, sizeof(builder->part.memories));
    memset(builder->part.direct, -1, sizeof(builder->part.direct));
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        builder->part.islands[i] = 1u << i;
}

/* A ring of the set found last, as it was. */
static void put_back(struct builder *builder, const struct ring *ring)
{
    builder->rings[builder->ring++] = *ring;
    if (!builder->kind.closed)
        add_port(builder, ring->order[0], ring->nics[0], ring->vias[0], 0);
    for (int i = 1; i < builder->n + builder->kind.closed; i++) {
        int to = ring->order[i % builder->n];
        add_edge(builder, ring->order[i - 1], to, ring->how[to]);
    }
    if (!builder->kind.closed)
        add_port(builder, ring->order[builder->n - 1], ring->nics[1], ring->vias[1], 1);
}

/* ---- the search ---- */

static void write_port(const struct ring *ring, int end, int gpu, struct tccl_port *port)
{
    int via = ring->vias[end];
    port->nic = (uint8_t)ring->nics[end];
    port->via = via < 0 ? device(TCCL_GPU, gpu) : device(TCCL_MEMORY, via);
}

static void write_chain(const struct builder *builder, const struct ring *ring,
                        struct tccl_chain *chain)
{
    int n = builder->n;
    chain->n_gpus = (uint8_t)n;
    chain->closed = builder->kind.closed;
    for (int i = 0; i < n; i++) {
        int how = ring->how[ring->order[(i + 1) % n]];
        chain->gpus[i] = (uint8_t)ring->order[i];
        if (i + 1 < n || builder->kind.closed)
            chain->edges[i] = how < 0 ? (struct tccl_edge){TCCL_P2P_WRITE, 0} /* sets don't read */
                                      : (struct tccl_edge){TCCL_BOUNCE, (uint8_t)how};
    }
    if (builder->kind.closed)
        return;
    write_port(ring, 0, ring->order[0], &chain->entry);
    write_port(ring, 1, ring->order[n - 1], &chain->exit);
}

/* Keeps the set found last if it is the best one. */
static void keep(const struct builder *builder, double gbps, struct optimum *optimum)
{
    int rings = builder->wanted;
    if (gbps <= optimum->gbps[rings])
        return;
    optimum->gbps[rings] = gbps;
    optimum->sets[rings].n = rings;
    for (int i = 0; i < rings; i++)
        write_chain(builder, &builder->found[i], &optimum->sets[rings].rings[i]);
}

/* All sets that are faster than that: reached is what the best one has, or 0. Returns whether there
 * was time. */
static bool try_all(struct builder *builder, double floor)
{
    builder->by_chance = false;
    builder->left = 0;
    builder->least = floor;
    builder->reached = 0;
    clear_part(builder);
    next_ring(builder);
    return !builder->late;
}

/* A set by chance: of the one found last (reached: what it has) one ring or two are built anew, if
 * it is there. */
static void try_one(struct builder *builder, double *now, bool anew)
{
    struct ring kept[TCCL_CHAIN_RINGS];
    int n = builder->wanted;
    memcpy(kept, builder->found, sizeof(kept));
    for (int i = n - 1; i > 0; i--) {
        int k = below(builder, i + 1);
        struct ring other = kept[i];
        kept[i] = kept[k];
        kept[k] = other;
    }
    clear_part(builder);
    for (int i = 1 + below(builder, 2); i < n && !anew; i++)
        put_back(builder, &kept[i]);
    builder->left = anew ? START : PATIENCE;
    builder->least = anew ? 1e-3 : *now * (1 - 1e-9);
    if (next_ring(builder))
        *now = builder->reached;
}

static struct builder new_builder(const struct optimum_kind *kind)
{
    const struct tccl_machine *machine = tccl_model_machine(kind->model);
    struct builder builder = {
        .kind = *kind, .machine = machine, .ways = 1 + kind->any + machine->n_memories, .state = 1};
    if (!kind->gpus)
        builder.kind.gpus = (1u << machine->n_gpus) - 1;
    builder.n = __builtin_popcount(builder.kind.gpus);
    return builder;
}

static void begin(struct builder *builder, double seconds)
{
    builder->until = bench_cpu() + seconds;
    builder->late = false;
}

void optimum_sets(const struct tccl_model *model, bool closed,
                  const double bounds[static TCCL_CHAIN_RINGS + 1], double seconds,
                  struct optimum *optimum)
{
    const struct optimum_kind kind = {.model = model, .closed = closed};
    struct builder builder = new_builder(&kind);
    *optimum = (struct optimum){.gbps = {0}};
    for (int rings = 1; rings <= TCCL_CHAIN_RINGS; rings++) {
        builder.wanted = rings;
        begin(&builder, seconds / TCCL_CHAIN_RINGS / 2);
        /* Until no more is gained for long, then from anywhere again. */
        double now = 0;
        int idle = 0;
        builder.by_chance = true;
        while (!builder.late && optimum->gbps[builder.wanted] < bounds[rings] * (1 - 1e-6)) {
            double before = now;
            bool anew = now <= 0 || idle > 300;
            try_one(&builder, &now, anew);
            idle = now > before * (1 + 1e-9) || anew ? 0 : idle + 1;
            keep(&builder, now, optimum);
        }
        begin(&builder, seconds / TCCL_CHAIN_RINGS / 2);
        optimum->all[rings] = try_all(&builder, optimum->gbps[rings] * (1 + 1e-6));
        keep(&builder, builder.reached, optimum);
    }
}

double optimum_of(const struct optimum_kind *kind, int rings, double floor, double until,
                  long *looked, bool *late)
{
    struct builder builder = new_builder(kind);
    builder.wanted = rings;
    builder.until = until;
    *late = !try_all(&builder, floor);
    *looked += builder.looked;
    return builder.reached;
}
