/* tuning.c: NCCL's own table of times for all-reduces, with its constants. */
#include "nccl/tuning.h"

#include <math.h>
#include <string.h>

#include "nccl/topology.h"

enum { PATTERN_TREE = 3, FAR_NVB = 2 };

/* The columns: one node, two, more. The rows: Volta, Ampere, Hopper, Blackwell; of LL between nodes
 * Intel, AMD. */
static const double ll_most[4][3] = {
    {39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}};
static const double tree_most[4][3] = {
    {26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}};
static const double ring_ll128_most[4][3] = {
    {20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}, {40.0, 40.0, 40.0}};
static const double tree_ll128_most[4][3] = {
    {20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}};

/* Trees, by powers of two from 64 bytes on. */
static const double corrections[TCCL_PROTOCOLS][23] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

void tccl_tuning_begin(struct tccl_tuning *tuning, enum tccl_nccl nccl)
{
    memset(tuning, 0, sizeof(*tuning));
    tuning->nccl = nccl;
}

/* Of all nodes, each number by itself. */
static void take_least(struct tccl_nominal *all, const struct tccl_nominal *node)
{
    tccl_nominal_least(all, node);
    all->pattern = node->pattern > all->pattern ? node->pattern : all->pattern;
}

void tccl_tuning_add_node(struct tccl_tuning *tuning, const struct tccl_nominal *ring,
                          const struct tccl_nominal *tree, int ranks, int sm, enum tccl_cpu cpu)
{
    if (tuning->nodes == 0) {
        tuning->ring = *ring;
        tuning->tree = *tree;
        tuning->sm = sm;
    }
    take_least(&tuning->ring, ring);
    take_least(&tuning->tree, tree);
    tuning->nodes++;
    tuning->ranks += ranks;
    tuning->sm = sm < tuning->sm ? sm : tuning->sm;
    *(cpu == TCCL_CPU_AMD ? &tuning->amd : &tuning->other) = true;
}

static int columns_of(const struct tccl_tuning *tuning)
{
    return tuning->nodes <= 2 ? tuning->nodes - 1 : 2;
}

static int row_of(int sm)
{
    return sm >= 100 ? 3 : sm >= 90 ? 2 : sm >= 80 ? 1 : 0;
}

/* Over PCIe only between nodes of one GPU each. */
static bool uses_ll128(const struct tccl_tuning *tuning, const struct tccl_nominal *graph)
{
    int sm = tuning->sm;
    bool known = tuning->nccl >= TCCL_NCCL_2_27 ? sm >= 70 : sm == 70 || sm == 80 || sm == 90;
    return known && graph->far_intra <= FAR_NVB &&
           graph->far_inter <= (sm >= 90 ? TCCL_FAR_RELAYED : TCCL_FAR_SWITCHES);
}

/* The communicator takes the smaller number for both. */
static int channels_of(const struct tccl_tuning *tuning)
{
    return tuning->ring.channels < tuning->tree.channels ? tuning->ring.channels
                                                         : tuning->tree.channels;
}

/* Of all channels together. */
static double bus_rate(const struct tccl_tuning *tuning, const struct tccl_nominal *graph)
{
    return channels_of(tuning) * (double)(tuning->nodes <= 2 ? graph->intra : graph->inter);
}

static double ll_limit(const struct tccl_tuning *tuning)
{
    bool as_amd = tuning->amd && (!tuning->other || tuning->nccl >= TCCL_NCCL_2_25);
    return ll_most[tuning->nodes == 1 ? row_of(tuning->sm) : as_amd][columns_of(tuning)];
}

static void set_ring_bandwidths(struct tccl_tuning *tuning)
{
    double *bandwidth = tuning->bandwidth[TCCL_RING], rate = bus_rate(tuning, &tuning->ring);
    double ratio = tuning->ranks / (2.0 * (tuning->ranks - 1));
    bool alone = tuning->ranks < 2 * tuning->nodes && tuning->nccl < TCCL_NCCL_2_23;
    bandwidth[TCCL_SIMPLE] = rate * ratio;
    bandwidth[TCCL_LL] = fmin(ll_limit(tuning), rate * 0.5) * ratio;
    if (uses_ll128(tuning, &tuning->ring))
        bandwidth[TCCL_LL128] =
            ratio *
            fmin(rate * (alone ? 0.7 : 0.92),
                 channels_of(tuning) * ring_ll128_most[row_of(tuning->sm)][columns_of(tuning)]);
}

static void set_tree_bandwidths(struct tccl_tuning *tuning)
{
    double *bandwidth = tuning->bandwidth[TCCL_TREE];
    int row = row_of(tuning->sm), column = columns_of(tuning), channels = channels_of(tuning);
    double rate = fmin(bus_rate(tuning, &tuning->tree) * .92, channels * tree_most[row][column]);
    double ratio = .5 * (tuning->tree.pattern == PATTERN_TREE ? .85 : 1);
    bandwidth[TCCL_SIMPLE] = rate * ratio;
    bandwidth[TCCL_LL] = fmin(rate / 3.8, ll_limit(tuning)) * ratio;
    if (uses_ll128(tuning, &tuning->tree))
        bandwidth[TCCL_LL128] = ratio * fmin(rate * (tuning->nodes == 1 ? 7 / 9. : 120 / 128.),
                                             channels * tree_ll128_most[row][column]);
}

static void set_ring_latencies(struct tccl_tuning *tuning)
{
    for (int p = 0; p < TCCL_PROTOCOLS; p++)
        tuning->latency[TCCL_RING][p] =
            tccl_latency_nccl(tuning->nccl, tuning->nodes, tuning->ranks,
                              tuning->amd && !tuning->other, (enum tccl_protocol)p);
}

static void set_tree_latencies(struct tccl_tuning *tuning)
{
    bool old = tuning->nccl < TCCL_NCCL_2_23;
    double base[] = {6.8, 14.0, old ? 0 : 8.4};
    double pci[] = {1.0, 1.9, old ? 28 : 4};
    double net[] = {5.0, 8.5, old ? 28 : 14};
    for (int p = 0; p < TCCL_PROTOCOLS; p++)
        tuning->latency[TCCL_TREE][p] =
            base[p] +
            2 * ((tuning->ranks / tuning->nodes - 1) * pci[p] + (int)log2(tuning->nodes) * net[p]);
}

void tccl_tuning_end(struct tccl_tuning *tuning)
{
    if (tuning->ranks < 2)
        return;
    set_ring_bandwidths(tuning);
    set_tree_bandwidths(tuning);
    set_ring_latencies(tuning);
    set_tree_latencies(tuning);
}

/* Twice the channels of the search; for some fast ones four times. */
static bool is_on_plateau(const struct tccl_tuning *tuning, uint64_t bytes)
{
    int channels = 2 * channels_of(tuning);
    if (tuning->sm >= 90 && tuning->ring.intra > 45 && channels < 16)
        channels *= 2;
    return tuning->nodes > 1 && bytes / ((uint64_t)channels * (uint64_t)tuning->ranks) >= 64;
}

/* Microseconds. */
static double time_of(const struct tccl_tuning *tuning, struct tccl_pick pick, uint64_t bytes)
{
    double latency = tuning->latency[pick.algorithm][pick.protocol];
    double bandwidth = tuning->bandwidth[pick.algorithm][pick.protocol];
    int power = bytes >> 6 ? 63 - __builtin_clzll(bytes >> 6) : -1;
    if (!(bandwidth > 0))
        return INFINITY;
    if (pick.algorithm == TCCL_TREE && power >= 0 && power < 23)
        bandwidth *= corrections[pick.protocol][power];
    if (pick.algorithm == TCCL_RING && pick.protocol == TCCL_SIMPLE && is_on_plateau(tuning, bytes))
        latency *= tuning->sm < 80 ? 1.9 : 1.4;
    return latency + (double)bytes / (1000 * bandwidth);
}

struct tccl_pick tccl_tuning_pick(const struct tccl_tuning *tuning, uint64_t bytes)
{
    struct tccl_pick best = {TCCL_RING, TCCL_SIMPLE};
    double least = INFINITY;
    for (int a = 0; a < TCCL_ALGORITHMS; a++)
        for (int p = 0; p < TCCL_PROTOCOLS; p++) {
            struct tccl_pick pick = {a, p};
            double time = time_of(tuning, pick, bytes);
            if (time < least) {
                best = pick;
                least = time;
            }
        }
    return best;
}
