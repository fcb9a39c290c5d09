/* test-rings.c: the best ring sets against all sets of two rings tried, on random models. Orders,
 * edges, ports and what NCCL can build together are written again here; rates are those of
 * tccl_model_sides, which test-model.c compares with their definition. */
#include "machines.h"
#include "owned.h"
#include "random-model.h"
#include "search/rings.h"

enum { ROUNDS = 300, MOST_CHAINS = 20000, GPUS = 4, NICS = 2, ANY_EACH = 8 };

static struct tccl_device device(int kind, int index)
{
    return (struct tccl_device){(uint8_t)kind, (uint8_t)index};
}

/* A chain, and what it wants of processes and pairs of GPUs. */
struct tried {
    double alone;
    struct tccl_set set;
    int memories[GPUS]; /* of the GPU's buffers, -1: none */
    int direct[GPUS];   /* GPUDirect: 0, 1, -1: no port */
    int nics[2];
    unsigned p2p, bounces;  /* pairs of GPUs, as pair() counts them */
    unsigned near[NICS];    /* GPUs with GPUDirect to it */
    unsigned through[NICS]; /* GPUs that go to or from it through memory, but would directly */
};

struct trial {
    const struct tccl_model *model;
    const struct tccl_machine *machine;
    int n;
    bool closed;
    bool reads;                 /* P2P edges read, else they write */
    bool any;                   /* what NCCL can't build, too */
    int order[GPUS], how[GPUS]; /* of an edge: -2 read, -1 written, else the memory */
    int n_chains;
    struct tried chains[MOST_CHAINS];
    double best[3]; /* of one ring, and of two */
};

static unsigned pair(int a, int b)
{
    return 1u << (a < b ? a * GPUS + b : b * GPUS + a);
}

static void add(struct tccl_set *set, struct tccl_device who, bool reads, struct tccl_device whom)
{
    tccl_set_add(set, tccl_transfer_make(who, reads, whom));
}

static double slowest(const struct trial *trial, const struct tccl_set *a, const struct tccl_set *b)
{
    struct tccl_side side = {0};
    CHECK_INT(tccl_side_add(&side, a), 0);
    if (b)
        CHECK_INT(tccl_side_add(&side, b), 0);
    return side_gbps(trial->model, &side);
}

/* A GPU's buffers are in one memory. Returns false if they are in another one already. */
static bool want(int *place, int value)
{
    if (*place >= 0 && *place != value)
        return false;
    *place = value;
    return true;
}

/* GPUs before compute capability 8.0 send through memory, wherever the NIC is. */
static bool is_direct(const struct trial *trial, int gpu, bool out)
{
    int sm = trial->machine->gpus[gpu].sm;
    return !out || trial->n == 1 || sm == 0 || sm >= 80;
}

/* via: -1 GPUDirect, else the memory. */
static bool add_port(const struct trial *trial, struct tried *tried, int gpu, int nic, int via,
                     bool out)
{
    struct tccl_device card = device(TCCL_NIC, nic), other = device(TCCL_GPU, gpu);
    if (via < 0 &&
        (!trial->machine->gpudirect[nic][gpu] || !(trial->any || is_direct(trial, gpu, out))))
        return false;
    if (via >= 0) {
        other = device(TCCL_MEMORY, via);
        add(&tried->set, device(TCCL_GPU, gpu), !out, other);
        if (is_direct(trial, gpu, out))
            tried->through[nic] |= 1u << gpu;
    } else {
        tried->near[nic] |= 1u << gpu;
    }
    add(&tried->set, card, out, other);
    tried->nics[out] = nic;
    return (want(&tried->direct[gpu], via < 0) && (via < 0 || want(&tried->memories[gpu], via))) ||
           trial->any;
}

/* GPUs joined by pairs, directly or by others; and those near to one NIC. b: may be NULL. */
static void find_reach(const struct tried *a, const struct tried *b, unsigned reach[static GPUS])
{
    unsigned p2p = a->p2p | (b ? b->p2p : 0);
    for (int i = 0; i < GPUS; i++) {
        reach[i] = 1u << i;
        for (int k = 0; k < GPUS; k++)
            reach[i] |= k != i && (p2p & pair(i, k)) ? 1u << k : 0;
        for (int nic = 0; nic < NICS; nic++) {
            unsigned near = a->near[nic] | (b ? b->near[nic] : 0);
            reach[i] |= near >> i & 1 ? near : 0;
        }
    }
    for (int via = 0; via < GPUS; via++)
        for (int i = 0; i < GPUS; i++)
            if (reach[i] >> via & 1)
                reach[i] |= reach[via];
}

/* A bounce between GPUs that are joined; or one of these to a NIC that is near them all. */
static bool bounces_inside(const struct tried *a, const struct tried *b)
{
    unsigned reach[GPUS], bounces = a->bounces | (b ? b->bounces : 0);
    find_reach(a, b, reach);
    for (int i = 0; i < GPUS; i++) {
        for (int k = 0; k < i; k++)
            if ((bounces & pair(i, k)) && (reach[i] >> k & 1))
                return true;
        for (int nic = 0; nic < NICS; nic++) {
            unsigned near = a->near[nic] | (b ? b->near[nic] : 0);
            unsigned through = a->through[nic] | (b ? b->through[nic] : 0);
            if ((through >> i & 1) && (reach[i] & near))
                return true;
        }
    }
    return false;
}

static void try_chain(struct trial *trial, int in, int in_via, int out, int out_via)
{
    struct tried tried = {.memories = {-1, -1, -1, -1}, .direct = {-1, -1, -1, -1}};
    int last = trial->order[trial->n - 1];
    for (int i = 0; i < trial->n - !trial->closed; i++) {
        int from = trial->order[i], to = trial->order[(i + 1) % trial->n], how = trial->how[i];
        struct tccl_device memory = device(TCCL_MEMORY, how < 0 ? 0 : how);
        if (how < 0) {
            tried.p2p |= pair(from, to);
            add(&tried.set, device(TCCL_GPU, how == -1 ? from : to), how != -1,
                device(TCCL_GPU, how == -1 ? to : from));
            continue;
        }
        tried.bounces |= pair(from, to);
        add(&tried.set, device(TCCL_GPU, from), false, memory);
        add(&tried.set, device(TCCL_GPU, to), true, memory);
        if (!want(&tried.memories[to], how) && !trial->any)
            return;
    }
    if (!trial->closed && (!add_port(trial, &tried, trial->order[0], in, in_via, false) ||
                           !add_port(trial, &tried, last, out, out_via, true)))
        return;
    if (!trial->closed && trial->n == 1 && in != out && !trial->any)
        return; /* NCCL takes one NIC for both */
    if (!trial->any && bounces_inside(&tried, NULL))
        return;
    tried.alone = slowest(trial, &tried.set, NULL);
    if (!trial->closed)
        tried.alone =
            fmin(tried.alone, fmin(trial->machine->nics[in].gbps, trial->machine->nics[out].gbps));
    trial->best[1] = fmax(trial->best[1], tried.alone);
    if (trial->n_chains == MOST_CHAINS) {
        fprintf(stderr, "too many chains\n");
        exit(1);
    }
    trial->chains[trial->n_chains++] = tried;
}

static void try_edges(struct trial *trial, int edge)
{
    if (edge == GPUS || edge == trial->n - !trial->closed) {
        int nics = trial->closed ? 1 : trial->machine->n_nics;
        int vias = trial->closed ? 0 : trial->machine->n_memories;
        for (int in = 0; in < nics; in++)
            for (int out = 0; out < nics; out++)
                for (int in_via = -1; in_via < vias; in_via++)
                    for (int out_via = -1; out_via < vias; out_via++)
                        try_chain(trial, in, in_via, out, out_via);
        return;
    }
    int from = trial->order[edge], to = trial->order[(edge + 1) % trial->n];
    int first = !trial->machine->p2p[from][to] ? 0 : trial->any || trial->reads ? -2 : -1;
    for (trial->how[edge] = first; trial->how[edge] < trial->machine->n_memories;
         trial->how[edge]++)
        if (trial->how[edge] != -1 || trial->any || !trial->reads)
            try_edges(trial, edge + 1);
}

static void try_orders(struct trial *trial, int depth, unsigned used)
{
    if (depth == GPUS || depth == trial->n) {
        try_edges(trial, 0);
        return;
    }
    for (int i = 0; i < trial->n; i++) {
        if ((used >> i & 1) || (trial->closed && depth == 0 && i > 0))
            continue;
        trial->order[depth] = i;
        try_orders(trial, depth + 1, used | 1u << i);
    }
}

static bool fit(const struct tried *a, const struct tried *b)
{
    for (int i = 0; i < GPUS; i++)
        if ((a->memories[i] >= 0 && b->memories[i] >= 0 && a->memories[i] != b->memories[i]) ||
            (a->direct[i] >= 0 && b->direct[i] >= 0 && a->direct[i] != b->direct[i]))
            return false;
    return !bounces_inside(a, b);
}

/* What the NICs' lines leave to both rings together. */
static double lines(const struct trial *trial, const struct tried *a, const struct tried *b)
{
    double gbps = INFINITY;
    for (int end = 0; end < 2 && !trial->closed; end++) {
        bool same = a->nics[end] == b->nics[end];
        gbps = fmin(gbps, trial->machine->nics[a->nics[end]].gbps * (same ? 1 : 2));
        gbps = fmin(gbps, trial->machine->nics[b->nics[end]].gbps * (same ? 1 : 2));
    }
    return gbps;
}

static int by_rate(const void *a, const void *b)
{
    double x = ((const struct tried *)a)->alone, y = ((const struct tried *)b)->alone;
    return x > y ? -1 : x < y;
}

/* Faster ones first: two rings are never more than twice as fast as the slower one of them. */
static void try_pairs(struct trial *trial)
{
    qsort(trial->chains, trial->n_chains, sizeof(*trial->chains), by_rate);
    for (int i = 0; i < trial->n_chains; i++)
        for (int k = 0; k <= i && 2 * trial->chains[i].alone > trial->best[2]; k++) {
            const struct tried *a = &trial->chains[i], *b = &trial->chains[k];
            if (trial->any || fit(a, b))
                trial->best[2] = fmax(trial->best[2],
                                      fmin(slowest(trial, &a->set, &b->set), lines(trial, a, b)));
        }
}

/* What is said of a set is true of it. */
static void check_set(const struct trial *trial, const struct tccl_rings_result *result)
{
    struct tccl_side side;
    CHECK_OK(tccl_ring_set_check(&result->set, trial->machine, ERR));
    CHECK_OK(tccl_expressible(trial->machine, result->set.rings, result->set.n, ERR));
    tccl_ring_set_side(&result->set, &side);
    CHECK(side_gbps(trial->model, &side) > result->gbps * (1 - 1e-9));
}

/* Of some of the set's rings together, told by a mask. */
static double some_of(const struct tccl_model *model, const struct tccl_ring_set *set,
                      uint32_t mask)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_ring_set some = {0};
    struct tccl_side side;
    for (int i = 0; i < set->n; i++)
        if (mask >> i & 1)
            some.rings[some.n++] = set->rings[i];
    tccl_ring_set_side(&some, &side);
    double gbps = side_gbps(model, &side);
    for (int i = 0; i < some.n && !some.rings[0].closed; i++) {
        int in = 0, out = 0;
        for (int j = 0; j < some.n; j++) {
            in += some.rings[j].entry.nic == some.rings[i].entry.nic;
            out += some.rings[j].exit.nic == some.rings[i].exit.nic;
        }
        gbps = fmin(gbps, some.n * machine->nics[some.rings[i].entry.nic].gbps / in);
        gbps = fmin(gbps, some.n * machine->nics[some.rings[i].exit.nic].gbps / out);
    }
    return gbps;
}

/* No ring after the first k would be better in the place of the last of these; and, where any
 * number will do, none of them are as fast without the others. */
static void check_order(const struct tccl_model *model, const struct tccl_ring_set *set, bool any)
{
    double all = some_of(model, set, (1u << set->n) - 1);
    for (int k = 1; k <= set->n; k++) {
        uint32_t before = (1u << (k - 1)) - 1;
        double first = some_of(model, set, before | 1u << (k - 1));
        for (int i = k; i < set->n; i++)
            CHECK(first >= some_of(model, set, before | 1u << i) * (1 - 1e-8));
        CHECK(!any || k == set->n || first < all);
    }
}

static void check_rings(const struct trial *trial, int rings)
{
    struct tccl_rings_options options = {.rings = rings, .reads = trial->reads, .seed = 1};
    struct tccl_rings_result result;
    double bounds[3] = {0}, best = trial->best[rings];
    uint32_t gpus = (1u << trial->n) - 1;
    CHECK_OK(tccl_rings_bounds(trial->model, gpus, trial->closed, trial->reads, false, rings, rings,
                               0, bounds, ERR));
    double bound = bounds[rings];
    CHECK_OK(tccl_rings_find(trial->model, gpus, trial->closed, &options, NULL, 0, &result, ERR));
    if (best > bound * (1 + 1e-6) || fabs(result.gbps - best) > 1e-6 * best ||
        result.bound < best * (1 - 1e-9)) {
        fprintf(stderr,
                "%d GPUs, %d NICs, %s, %d rings: found %g, proven %g, bound %g; the best has %g\n",
                trial->n, trial->machine->n_nics, trial->closed ? "closed" : "open", rings,
                result.gbps, result.bound, bound, best);
        CHECK(false);
    }
    if (best > 0)
        check_order(trial->model, &result.set, false);
    if (best > 0)
        check_set(trial, &result);
    else
        CHECK(result.set.n == 0);
}

/* Where any set counts the search proves none, so some are missed: returns whether the best one of
 * two rings was found. */
static bool check_any(const struct trial *trial, double built)
{
    struct tccl_rings_options options = {.rings = 2, .any = true, .seed = 1};
    struct tccl_rings_result result;
    uint32_t gpus = (1u << trial->n) - 1;
    double best = trial->best[2];
    CHECK_OK(tccl_rings_find(trial->model, gpus, trial->closed, &options, NULL, 0, &result, ERR));
    CHECK(tccl_ring_set_check(&result.set, trial->machine, ERR) == 0);
    CHECK(result.gbps <= best * (1 + 1e-9) && result.gbps >= built * (1 - 1e-9));
    CHECK(result.bound >= best * (1 - 1e-9));
    return result.gbps >= best * (1 - 1e-6);
}

static int any_tried, any_found;

static void try_any(struct trial *trial)
{
    double built = trial->best[2];
    trial->any = true;
    trial->n_chains = 0;
    try_orders(trial, 0, 0);
    try_pairs(trial);
    any_tried++;
    any_found += check_any(trial, built);
}

static void check_random(unsigned long *state, int gpus, int nics)
{
    owned(model) struct tccl_model *model =
        random_model(state, gpus, 1 + random_below(state, 2), nics);
    cleanup_free struct trial *trial = calloc(1, sizeof(*trial));
    trial->model = model;
    trial->machine = tccl_model_machine(model);
    trial->n = gpus;
    trial->closed = nics == 0;
    trial->reads = random_below(state, 2);
    try_orders(trial, 0, 0);
    try_pairs(trial);
    check_rings(trial, 1);
    check_rings(trial, 2);
    if (random_below(state, ANY_EACH) == 0)
        try_any(trial);
}

/* On a machine: close to the bound in few sets, and better than one ring by this much at least. */
static void check_machine(const char *name, bool closed, double better)
{
    const struct tccl_model *model = load_machine(name);
    uint32_t gpus = (1u << tccl_model_machine(model)->n_gpus) - 1;
    struct tccl_rings_options options = {.gap = 0.05, .seed = 1}, one = options;
    struct tccl_rings_result best, single, again;
    struct trial trial = {.model = model, .machine = tccl_model_machine(model), .closed = closed};
    one.rings = 1;
    CHECK_INT(tccl_rings_find(model, gpus, closed, &options, NULL, 0, &best, NULL), 0);
    CHECK_INT(tccl_rings_find(model, gpus, closed, &one, NULL, 0, &single, NULL), 0);
    if (best.gbps <= better * single.gbps)
        fprintf(stderr, "%s: %g GB/s by one ring, %g by %d\n", name, single.gbps, best.gbps,
                best.set.n);
    CHECK(single.set.n == 1 && best.set.n > 1 && best.gbps > better * single.gbps);
    CHECK(best.gbps >= 0.95 * best.bound && best.rated <= 10000 && single.gbps <= single.bound);
    check_set(&trial, &best);
    check_order(model, &best.set, true);
    /* What is found is a beginning for the same again. */
    CHECK_INT(tccl_rings_find(model, gpus, closed, &options, &best.set, 1, &again, NULL), 0);
    CHECK(again.gbps >= best.gbps && again.rated < best.rated);
}

TEST(random)
{
    unsigned long state = check_seed();
    int rounds = getenv("ROUNDS") ? atoi(getenv("ROUNDS")) : ROUNDS;
    for (int i = 0; i < rounds && !check_failures; i++) {
        int nics = random_below(&state, 3);
        check_random(&state, nics ? 1 + random_below(&state, 3) : 2 + random_below(&state, 3),
                     nics);
    }
    if (any_found < 0.9 * any_tried)
        fprintf(stderr, "any: the best of %d of %d\n", any_found, any_tried);
    CHECK(any_found >= 0.9 * any_tried);
    check_machine("amd-4gpu", false, 1.08);
    check_machine("intel-4gpu", false, 1.08);
    check_machine("dual-8gpu", false, 1.2);
    check_machine("dual-8gpu", true, 1.2);
    check_machine("h100-8gpu", false, 1.2);
    check_machine("h100-8gpu", true, 1.15);
    check_machine("lopsided-8gpu", false, 1.15);
    check_machine("quad-8gpu", true, 1.1);
}
