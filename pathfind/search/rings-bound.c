/* rings-bound.c: bounds of ring sets by linear programs.
 *
 * All rings together enter and leave each GPU as often as there are rings, and each group of GPUs
 * at least as often; over several nodes they pass its NICs as often. So the numbers of transfers,
 * fractions allowed, solve a linear program whose limits are the model's resources: how many
 * transfers at the rings' rate each has room for, in whole numbers. A rate at which the program has
 * no solution is out of reach. Rules count where they limit a single transfer, or both of a
 * bounce. A GPU receives through one memory in all rings: where the solution has several, each is
 * tried by itself. A memory stands for itself between who
 * writes to it and who reads from it, so who gives to whom through it is left open; groups of GPUs
 * that the program's solution enters too seldom are added as limits until there are none. */
#include "search/rings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { MAX_CUTS = 96, CUTS = 8, ROUNDS = 20, STEPS = 14, WHOLE = 40, TRIES = 16 };
/* What is to be gained at least by looking at GPUs' memories. */
#define SENSE 0.97
/* How closely the rate that is in reach is found, and how far above the known one is looked first:
 * most bounds are little more. */
#define PRECISION 1e-3
#define FIRST_STEP 0.05

/* A group of GPUs with some memories that all rings must leave (out), or enter. */
struct cut {
    uint32_t gpus, memories;
    bool out;
};

struct bound {
    const struct tccl_model *model;
    const struct tccl_machine *machine;
    uint32_t gpus;
    bool closed, reads, any;
    int rings;
    int n_transfers;
    tccl_transfer transfers[TCCL_TRANSFERS];
    double alone[TCCL_TRANSFERS]; /* the rate of each by itself, by its place in transfers */
    int n_shared;                 /* the limits that transfers share whatever else runs */
    int *shared;                  /* the place of each limit of the model among them; -1: none */
    int n_cuts;
    struct cut cuts[MAX_CUTS];
    int8_t memories[TCCL_MAX_GPUS]; /* through which alone each GPU receives; -1: through any */
    int tries;                      /* programs that may still be solved for one rate */
    /* The program: columns are the transfers, then what all rings are. */
    int n_rows, n_columns;
    double *rows, *limits, *values;
};

/* The transfers that chains over the GPUs may have. */
static bool may_use(const struct bound *bound, tccl_transfer transfer)
{
    struct tccl_device from = tccl_transfer_initiator(transfer);
    struct tccl_device to = tccl_transfer_target(transfer);
    if ((from.kind == TCCL_GPU && !(bound->gpus >> from.index & 1)) ||
        (to.kind == TCCL_GPU && !(bound->gpus >> to.index & 1)))
        return false;
    if (from.kind == TCCL_NIC)
        return !bound->closed;
    return to.kind != TCCL_GPU || bound->any || tccl_transfer_reads(transfer) == bound->reads;
}

static int list_transfers(struct bound *bound, struct tccl_error *err)
{
    for (int i = 0; i < TCCL_TRANSFERS; i++) {
        tccl_transfer transfer = (tccl_transfer)i;
        if (tccl_machine_allows(bound->machine, transfer, NULL) != 0 || !may_use(bound, transfer))
            continue;
        bound->transfers[bound->n_transfers] = transfer;
        if (tccl_model_slowest(bound->model, &transfer, 1, &bound->alone[bound->n_transfers],
                               err) != 0)
            return -1;
        bound->n_transfers++;
    }
    return 0;
}

/* Finds the limits that the transfers share. Returns 0, or -1 with err. */
static int list_shared(struct bound *bound, struct tccl_error *err)
{
    int n = tccl_model_limits(bound->model);
    bound->shared = malloc((n + 1) * sizeof(*bound->shared));
    if (!bound->shared)
        return tccl_fail(err, "out of memory");
    memset(bound->shared, -1, n * sizeof(*bound->shared));
    for (int i = 0; i < bound->n_transfers; i++) {
        const struct tccl_model_use *uses;
        int count = tccl_model_uses(bound->model, bound->transfers[i], &uses);
        for (int k = 0; k < count; k++)
            if (uses[k].always && bound->shared[uses[k].limit] < 0)
                bound->shared[uses[k].limit] = bound->n_shared++;
    }
    return 0;
}

/* Can the transfer be in rings of this rate, where it is settled which memories GPUs have? */
static bool is_usable(const struct bound *bound, int i, double rate)
{
    struct tccl_device from = tccl_transfer_source(bound->transfers[i]);
    struct tccl_device to = tccl_transfer_sink(bound->transfers[i]);
    if (from.kind == TCCL_MEMORY && to.kind == TCCL_GPU && bound->memories[to.index] >= 0 &&
        bound->memories[to.index] != from.index)
        return false;
    return bound->alone[i] >= rate;
}

static double *add_row(struct bound *bound, double limit)
{
    bound->limits[bound->n_rows] = limit;
    return bound->rows + (size_t)bound->n_rows++ * bound->n_columns;
}

/* The most that whole numbers of these weights add up to within the room. */
static double whole_sum(const double *weights, int n, double room)
{
    double most = 0;
    if (n == 0)
        return 0;
    if (n == 1)
        return weights[0] * fmax(floor(room / weights[0] + 1e-9), 0);
    for (int i = 0; i * weights[0] <= room + 1e-9; i++)
        most = fmax(most, i * weights[0] + whole_sum(weights + 1, n - 1, room - i * weights[0]));
    return most;
}

/* What a resource has room for at this rate, in whole transfers. */
static double room_of(const double *row, int n, double room)
{
    double weights[4];
    int count = 0;
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < count && fabs(weights[k] - row[i]) > 1e-9)
            k++;
        if (row[i] <= 0 || k < count)
            continue;
        if (count == 4 || room / row[i] > WHOLE)
            return room;
        weights[count++] = row[i];
    }
    return whole_sum(weights, count, room);
}

/* Resources, and caps of rules: of these what applies to its users alone is shared by them at
 * least. */
static void add_shared(struct bound *bound, double rate)
{
    int n = bound->n_shared, first = bound->n_rows;
    bound->n_rows += n;
    for (int i = 0; i < tccl_model_limits(bound->model); i++)
        if (bound->shared[i] >= 0)
            bound->limits[first + bound->shared[i]] = tccl_model_limit(bound->model, i) / rate;
    for (int i = 0; i < bound->n_transfers; i++) {
        const struct tccl_model_use *uses;
        int count = tccl_model_uses(bound->model, bound->transfers[i], &uses);
        for (int k = 0; k < count && is_usable(bound, i, rate); k++)
            if (uses[k].always)
                bound->rows[(size_t)(first + bound->shared[uses[k].limit]) * bound->n_columns + i] =
                    uses[k].weight;
    }
    for (int i = first; i < first + n; i++)
        bound->limits[i] = room_of(bound->rows + (size_t)i * bound->n_columns, bound->n_transfers,
                                   bound->limits[i]);
}

/* Which of a transfer's ends are in the cut: 1 when it leaves, -1 when it enters, else 0. */
static int crosses(const struct cut *cut, tccl_transfer transfer)
{
    struct tccl_device ends[2] = {tccl_transfer_source(transfer), tccl_transfer_sink(transfer)};
    int inside[2];
    for (int i = 0; i < 2; i++)
        inside[i] = ends[i].kind == TCCL_GPU      ? cut->gpus >> ends[i].index & 1
                    : ends[i].kind == TCCL_MEMORY ? cut->memories >> ends[i].index & 1
                                                  : 0;
    return inside[0] - inside[1];
}

/* sign 1: what crosses the cut is no more than the rings; -1: no less. */
static void add_cut(struct bound *bound, const struct cut *cut, int sign)
{
    double *row = add_row(bound, 0);
    for (int i = 0; i < bound->n_transfers; i++)
        row[i] = sign * (crosses(cut, bound->transfers[i]) == (cut->out ? 1 : -1));
    row[bound->n_transfers] = -sign;
}

/* Each GPU is entered and left once by each ring, and what enters a memory leaves it. */
static void add_ends(struct bound *bound)
{
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        for (int k = 0; k < 4 && bound->gpus >> i & 1; k++)
            add_cut(bound, &(struct cut){.gpus = UINT32_C(1) << i, .out = k % 2}, k < 2 ? 1 : -1);
    for (int i = 0; i < 2 * bound->machine->n_memories; i++) {
        double *row = add_row(bound, 0);
        for (int k = 0; k < bound->n_transfers; k++)
            row[k] = (i % 2 ? 1 : -1) *
                     crosses(&(struct cut){.memories = UINT32_C(1) << i / 2}, bound->transfers[k]);
    }
}

/* The NICs: all rings come from them and go to them, once each. */
static void add_nics(struct bound *bound)
{
    for (int i = 0; i < 4 && !bound->closed; i++) {
        double *row = add_row(bound, 0);
        int sign = i < 2 ? 1 : -1;
        for (int k = 0; k < bound->n_transfers; k++)
            row[k] = sign * (tccl_transfer_initiator(bound->transfers[k]).kind == TCCL_NIC &&
                             tccl_transfer_reads(bound->transfers[k]) == (i % 2 == 1));
        row[bound->n_transfers] = -sign;
    }
}

/* What the solution has of one transfer. */
struct flow {
    struct tccl_device from, to;
    double value;
};

/* Lists what the solution has at all. Returns how many. */
static int list_flows(const struct bound *bound, struct flow flows[static TCCL_TRANSFERS])
{
    int n = 0;
    for (int i = 0; i < bound->n_transfers; i++)
        if (bound->values[i] > 0)
            flows[n++] = (struct flow){tccl_transfer_source(bound->transfers[i]),
                                       tccl_transfer_sink(bound->transfers[i]), bound->values[i]};
    return n;
}

/* The smallest cut through the solution around these GPUs: each memory stands on the side where it
 * adds less. Returns how much it has. */
static double find_cut(const struct bound *bound, const struct flow *flows, int n, uint32_t gpus,
                       bool out, struct cut *cut)
{
    *cut = (struct cut){.gpus = gpus, .out = out};
    double sums[TCCL_MAX_MEMORIES][2] = {{0}}, total = 0;
    for (int i = 0; i < n; i++) {
        struct tccl_device from = out ? flows[i].from : flows[i].to;
        struct tccl_device to = out ? flows[i].to : flows[i].from;
        bool leaves = from.kind == TCCL_GPU && gpus >> from.index & 1;
        bool arrives = to.kind == TCCL_GPU && gpus >> to.index & 1;
        if (leaves && to.kind == TCCL_MEMORY)
            sums[to.index][0] += flows[i].value;
        else if (from.kind == TCCL_MEMORY && !arrives)
            sums[from.index][1] += flows[i].value;
        else if (leaves && !arrives)
            total += flows[i].value;
    }
    for (int i = 0; i < bound->machine->n_memories; i++) {
        total += fmin(sums[i][0], sums[i][1]);
        if (sums[i][1] < sums[i][0])
            cut->memories |= UINT32_C(1) << i;
    }
    return total;
}

/* Cuts of which the solution has more than they ask for make room: the program takes the longer,
 * the more there are. */
static void drop_loose(struct bound *bound)
{
    int n = 0;
    for (int i = 0; i < bound->n_cuts; i++) {
        const struct cut *cut = &bound->cuts[i];
        double across = 0;
        for (int k = 0; k < bound->n_transfers; k++)
            if (crosses(cut, bound->transfers[k]) == (cut->out ? 1 : -1))
                across += bound->values[k];
        if (across < bound->values[bound->n_transfers] + 1e-4)
            bound->cuts[n++] = *cut;
    }
    bound->n_cuts = n;
}

/* Notes the cuts that are by far too small, a few at once: each makes others needless. */
static bool find_cuts(struct bound *bound)
{
    double least = bound->values[bound->n_transfers] - 1e-4, totals[CUTS];
    struct cut found[CUTS], cut;
    struct flow flows[TCCL_TRANSFERS];
    int n = 0, n_flows = list_flows(bound, flows);
    for (uint32_t part = bound->gpus; part; part = (part - 1) & bound->gpus)
        for (int out = 0; out < 2 && (!bound->closed || part != bound->gpus); out++) {
            double total = find_cut(bound, flows, n_flows, part, out, &cut);
            int at = n < CUTS ? n++ : CUTS;
            if (total >= least) {
                n -= at < CUTS;
                continue;
            }
            for (; at > 0 && totals[at - 1] > total; at--)
                if (at < CUTS) {
                    totals[at] = totals[at - 1];
                    found[at] = found[at - 1];
                }
            if (at < CUTS) {
                totals[at] = total;
                found[at] = cut;
            }
        }
    if (bound->n_cuts + n > MAX_CUTS)
        drop_loose(bound);
    for (int i = 0; i < n && bound->n_cuts < MAX_CUTS; i++)
        bound->cuts[bound->n_cuts++] = found[i];
    return n > 0 && bound->n_cuts < MAX_CUTS;
}

/* A GPU, and what it receives through each memory; gpu -1: none receives through several. */
struct split {
    int gpu;
    double shares[TCCL_MAX_MEMORIES];
};

/* The GPU of the solution that receives most through other memories than its first. */
static void find_split(const struct bound *bound, struct split *split)
{
    double shares[TCCL_MAX_GPUS][TCCL_MAX_MEMORIES] = {{0}}, most = 1e-3;
    *split = (struct split){.gpu = -1};
    for (int i = 0; i < bound->n_transfers; i++) {
        struct tccl_device from = tccl_transfer_source(bound->transfers[i]);
        struct tccl_device to = tccl_transfer_sink(bound->transfers[i]);
        if (from.kind == TCCL_MEMORY && to.kind == TCCL_GPU)
            shares[to.index][from.index] = bound->values[i];
    }
    for (int i = 0; i < TCCL_MAX_GPUS; i++) {
        double sum = 0, first = 0;
        for (int k = 0; k < TCCL_MAX_MEMORIES; k++) {
            sum += shares[i][k];
            first = fmax(first, shares[i][k]);
        }
        if (sum - first <= most)
            continue;
        most = sum - first;
        split->gpu = i;
        memcpy(split->shares, shares[i], sizeof(split->shares));
    }
}

/* The most rings, fractions allowed, of this rate each, and which GPU they split. Returns 0, 1
 * (unknown), or -1 with err. */
static int most_rings(struct bound *bound, double rate, double *most, struct split *split,
                      struct tccl_error *err)
{
    size_t rows = bound->n_shared + 4 * TCCL_MAX_GPUS + 2 * TCCL_MAX_MEMORIES + 2 * TCCL_MAX_NICS +
                  5 + MAX_CUTS;
    bound->n_columns = bound->n_transfers + 1;
    for (int round = 0; round < ROUNDS; round++) {
        cleanup_free double *cells = calloc(rows * bound->n_columns, sizeof(*cells));
        cleanup_free double *limits = calloc(rows, sizeof(*limits));
        cleanup_free double *values = calloc(bound->n_columns, sizeof(*values));
        if (!cells || !limits || !values)
            return tccl_fail(err, "out of memory");
        bound->rows = cells;
        bound->limits = limits;
        bound->values = values;
        bound->n_rows = 0;
        add_shared(bound, rate);
        /* Each NIC carries no more than its line, each way. */
        for (int i = 0; i < 2 * bound->machine->n_nics && !bound->closed; i++) {
            double *row = add_row(bound, floor(bound->machine->nics[i / 2].gbps / rate + 1e-9));
            for (int k = 0; k < bound->n_transfers; k++) {
                struct tccl_device nic = tccl_transfer_initiator(bound->transfers[k]);
                row[k] = nic.kind == TCCL_NIC && nic.index == i / 2 &&
                         tccl_transfer_reads(bound->transfers[k]) == (i % 2 == 1);
            }
        }
        add_ends(bound);
        add_nics(bound);
        add_row(bound, bound->rings)[bound->n_transfers] = 1;
        for (int i = 0; i < bound->n_cuts; i++)
            add_cut(bound, &bound->cuts[i], -1);
        for (int i = 0; i < bound->n_transfers; i++)
            for (int row = 0; row < bound->n_rows && !is_usable(bound, i, rate); row++)
                cells[(size_t)row * bound->n_columns + i] = 0;
        int status = tccl_simplex(cells, limits, bound->n_rows, bound->n_columns,
                                  bound->n_transfers, values, err);
        if (status != 0)
            return status;
        *most = values[bound->n_transfers];
        find_split(bound, split);
        if (*most < bound->rings - 1e-3 || !find_cuts(bound))
            break;
    }
    return 0;
}

/* Are the rings at this rate in reach, as far as the program knows? A GPU receives through one
 * memory in all rings: each is tried for the GPU that the solution splits, the likeliest one first.
 * Returns 1 if so, or if there were too many programs to solve, 0 if not, -1 with err. */
static int in_reach(struct bound *bound, double rate, struct tccl_error *err)
{
    struct split split = {.gpu = -1};
    double most = bound->rings;
    int status = bound->tries-- > 0 ? most_rings(bound, rate, &most, &split, err) : 1;
    if (status != 0)
        return status;
    if (most < bound->rings - 1e-3 || split.gpu < 0 || bound->tries <= 0)
        return most >= bound->rings - 1e-3;
    for (int i = 0; i < bound->machine->n_memories && status == 0; i++) {
        int likeliest = 0;
        for (int k = 1; k < bound->machine->n_memories; k++)
            if (split.shares[k] > split.shares[likeliest])
                likeliest = k;
        split.shares[likeliest] = -1;
        bound->memories[split.gpu] = (int8_t)likeliest;
        status = in_reach(bound, rate, err);
    }
    bound->memories[split.gpu] = -1;
    return status;
}

/* Narrows what is in reach (low) and what is not (high), GB/s of each ring, with so many programs
 * for a rate. Returns 0, or -1 with err. */
static int narrow(struct bound *bound, int tries, double low, double *high, struct tccl_error *err)
{
    double most = *high, step = 1 + FIRST_STEP;
    for (int i = 0; i < STEPS && most > low * (1 + PRECISION); i++, step *= step) {
        double rate = fmin(sqrt(low * most), low * step);
        bound->tries = tries;
        int status = in_reach(bound, rate, err);
        if (status < 0)
            return -1;
        if (status > 0)
            low = rate;
        else
            most = rate;
    }
    *high = most;
    return 0;
}

/* The bound for bound->rings. That GPUs have one memory each is looked at only where it brings the
 * bound down by SENSE at least: it takes many programs. */
static int find_bound(struct bound *bound, double least, double *gbps, struct tccl_error *err)
{
    double low = fmax(least / bound->rings, 1e-3), high = low;
    for (int i = 0; i < bound->n_transfers; i++)
        high = fmax(high, bound->alone[i]);
    high *= 1 + 1e-6;
    int status = narrow(bound, 1, low, &high, err);
    if (status == 0 && !bound->any && high > low / SENSE) {
        bound->tries = TRIES;
        status = in_reach(bound, high * SENSE, err);
        if (status == 0) {
            high *= SENSE;
            status = narrow(bound, TRIES, low, &high, err);
        }
    }
    *gbps = high * bound->rings;
    return status < 0 ? -1 : 0;
}

int tccl_rings_bounds(const struct tccl_model *model, uint32_t gpus, bool closed, bool reads,
                      bool any, int from, int to, double least, double *bounds,
                      struct tccl_error *err)
{
    cleanup_free struct bound *bound = calloc(1, sizeof(*bound));
    if (!bound)
        return tccl_fail(err, "out of memory");
    bound->model = model;
    bound->machine = tccl_model_machine(model);
    bound->gpus = gpus;
    bound->closed = closed;
    bound->reads = reads;
    bound->any = any;
    memset(bound->memories, -1, sizeof(bound->memories));
    int status = list_transfers(bound, err) == 0 ? list_shared(bound, err) : -1;
    for (bound->rings = from; bound->rings <= to && status == 0; bound->rings++)
        status = find_bound(bound, least, &bounds[bound->rings], err);
    free(bound->shared);
    return status;
}
