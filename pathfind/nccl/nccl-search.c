/* nccl-search.c: NCCL's search for rings on its topology of a machine.
 *
 * NCCL tries to fit channels, each a path over all GPUs with the same rate on all of its links,
 * into the nominal rates of the links: first at a high rate over short distances, then farther and
 * slower. It tries the next GPUs in an order of preference and gives up after a number of steps.
 * Its result therefore depends on the order of tries, on step limits and on rounding, all of which
 * are reproduced here exactly, also where they look arbitrary. */
#include "nccl/topo.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* No function of the recursion can fail: all sizes are bounded by those of the topology. */

enum { RING, BALANCED_TREE, TREE };
enum order { FREE, AS_NUMBERED, AS_BEFORE };
enum { CROSS_IN_PAIRS = 2 };
enum { NEVER = -1 };

/* NCCL's limits on the steps of one search, and of all searches together. */
enum { STEPS = 1 << 14, STEPS_ALIKE = 1 << 8, STEPS_NUMBERED = 1 << 10, STEPS_ALL = 1 << 19 };
enum { PERFECT = -1 }; /* in place of the remaining steps: no better graph is possible */

struct graph {
    int pattern;
    int n_channels, min_channels, max_channels;
    bool alike;                 /* all channels the same */
    int cross;                  /* 0 or CROSS_IN_PAIRS */
    int far_gpus, far_nics;     /* enum tccl_far: maximum distance */
    float gbps_gpus, gbps_nics; /* of each channel */
    int hops;
    uint8_t gpus[TCCL_SEARCH_CHANNELS][TCCL_MAX_GPUS];
    uint8_t nics[TCCL_SEARCH_CHANNELS][2];
};

struct search {
    struct tccl_topo *topo;
    bool closed;
    struct graph now, best;
    uint32_t used[TCCL_SEARCH_CHANNELS + 1]; /* GPUs of each channel */
    int64_t steps;
};

/* The position in the channel that is being extended. */
struct spot {
    int step;
    int to_nic;   /* the step at which it goes back to a NIC, or NEVER */
    int to_first; /* the step after which it closes, or NEVER */
    enum order order;
};

static void visit(struct search *search, int gpu, struct spot spot);

/* Takes the rate from a link, rounded as in NCCL. */
static void take_from(struct tccl_topo_link *link, float gbps)
{
    link->gbps = roundf((link->gbps - gbps) * 1000) / 1000;
}

/* Takes the rate from the first `count` links of a way. Returns the number of links taken: fewer if
 * one does not have enough left. As in NCCL, P2P through an Intel CPU takes a fifth more from PCIe
 * links, and data to a GPU below sm_80 take an eighth from the other direction. */
static int take_links(struct tccl_topo *topo, const struct tccl_topo_way *way, bool from_gpu,
                      int count, float gbps)
{
    float gbps_pci = gbps;
    for (int i = 0; i < way->n_links; i++)
        if (from_gpu && way->far == TCCL_FAR_NODE && topo->links[way->links[i]].to_intel)
            gbps_pci = gbps * 6 / 5;
    for (int i = 0; i < count; i++) {
        struct tccl_topo_link *link = &topo->links[way->links[i]];
        struct tccl_topo_link *back = &topo->links[link->back];
        float there = link->pci ? gbps_pci : gbps;
        float returned = link->to_old_gpu && !from_gpu ? there / 8 : 0;
        if (link->gbps < there || (returned != 0 && back->gbps < returned))
            return i;
        take_from(link, there);
        if (returned != 0)
            take_from(back, returned);
    }
    return count;
}

/* Takes the rate from all links of the way, or from none. */
static bool take(struct search *search, const struct tccl_topo_way *way, bool from_gpu, float gbps)
{
    int taken = take_links(search->topo, way, from_gpu, way->n_links, gbps);
    if (taken < way->n_links) {
        take_links(search->topo, way, from_gpu, taken, -gbps);
        return false;
    }
    search->now.hops += way->n_links;
    return true;
}

static void give_back(struct search *search, const struct tccl_topo_way *way, bool from_gpu,
                      float gbps)
{
    take_links(search->topo, way, from_gpu, way->n_links, -gbps);
    search->now.hops -= way->n_links;
}

/* Is a way within the distance? Trees are used in both directions, so both count. */
static bool near_enough(const struct graph *graph, const struct tccl_topo_way *way,
                        const struct tccl_topo_way *back, int far)
{
    if (way->far >= TCCL_FAR_UNREACHABLE || way->far > far)
        return false;
    return graph->pattern == RING || back->far <= far;
}

static void enter(struct search *search, int gpu, struct spot spot)
{
    uint32_t *used = &search->used[search->now.n_channels];
    *used ^= UINT32_C(1) << gpu;
    visit(search, gpu, spot);
    *used ^= UINT32_C(1) << gpu;
}

/* Goes on at the GPU by a way to it, if that is near enough and has so much left. */
static void enter_by(struct search *search, const struct tccl_topo_way *way,
                     const struct tccl_topo_way *back, bool from_gpu, int gpu, struct spot spot)
{
    const struct graph *now = &search->now;
    float gbps = from_gpu ? now->gbps_gpus : now->gbps_nics;
    if (!near_enough(now, way, back, from_gpu ? now->far_gpus : now->far_nics) ||
        !take(search, way, from_gpu, gbps))
        return;
    enter(search, gpu, spot);
    give_back(search, way, from_gpu, gbps);
}

static void enter_from_nic(struct search *search, int nic, int gpu, struct spot spot)
{
    const struct tccl_topo *topo = search->topo;
    enter_by(search, &topo->nics[nic].to_gpu[gpu], &topo->gpus[gpu].to_nic[nic], false, gpu, spot);
}

/* Is the graph that was just completed better than the best one? */
static bool is_better(const struct graph *graph, const struct graph *best)
{
    float gbps = (float)graph->n_channels * graph->gbps_gpus;
    float best_gbps = (float)best->n_channels * best->gbps_gpus;
    if (graph->n_channels < graph->min_channels)
        return false;
    if (gbps != best_gbps)
        return gbps > best_gbps;
    return graph->pattern == best->pattern && graph->cross == best->cross &&
           graph->hops < best->hops;
}

struct score {
    int gpu, distance;
    int hops, gbps;
    int nic_hops, nic_gbps, slot;
};

static int compare_scores(const void *a, const void *b)
{
    const struct score *one = a, *two = b;
    if (one->nic_gbps != two->nic_gbps)
        return two->nic_gbps - one->nic_gbps;
    if (one->slot != two->slot)
        return two->slot - one->slot;
    if (one->nic_hops != two->nic_hops)
        return one->nic_hops - two->nic_hops;
    if (one->gbps != two->gbps)
        return two->gbps - one->gbps;
    if (one->hops != two->hops)
        return one->hops - two->hops;
    return one->distance - two->distance;
}

/* The score of a GPU as the successor of `from`. nic: the one it should be near to, or NEVER. */
static struct score score_of(const struct tccl_topo *topo, int from, int distance, int nic)
{
    int gpu = (from + distance) % topo->n_gpus;
    const struct tccl_topo_way *way = &topo->gpus[from].to_gpu[gpu];
    struct score score = {
        .gpu = gpu, .distance = distance, .hops = way->n_links, .gbps = (int)way->gbps};
    if (nic != NEVER) {
        score.nic_hops = topo->nics[nic].to_gpu[gpu].n_links;
        score.nic_gbps = (int)topo->nics[nic].to_gpu[gpu].gbps;
        const struct tccl_topo_link *up = &topo->links[topo->gpus[gpu].up];
        score.slot = (int)fminf(up->gbps, topo->links[up->back].gbps); /* left of its own link */
    }
    return score;
}

/* The GPUs to try next, in order of preference. In a channel that ends at a NIC, the last GPU is
 * one near to it; before that, equal GPUs are tried in reverse order. Returns how many. */
static int next_gpus(const struct search *search, int from, struct spot spot,
                     uint8_t next[static TCCL_MAX_GPUS])
{
    const struct tccl_topo *topo = search->topo;
    const struct graph *now = &search->now;
    struct score scores[TCCL_MAX_GPUS] = {0};
    bool last = spot.to_nic == spot.step + 1;
    int nic = spot.to_nic == NEVER ? NEVER : now->nics[now->n_channels][0], count = 0;
    for (int distance = 1; distance < topo->n_gpus; distance++)
        if (!(search->used[now->n_channels] & UINT32_C(1) << (from + distance) % topo->n_gpus))
            scores[count++] = score_of(topo, from, distance, nic);
    qsort(scores, (size_t)count, sizeof(*scores), compare_scores);
    bool reverse = nic != NEVER && !last;
    for (int i = 1; i < count; i++) /* all are alike */
        reverse = reverse && scores[i].gbps == scores[0].gbps && scores[i].hops == scores[0].hops;
    for (int i = 0; i < count; i++)
        next[i] = (uint8_t)scores[reverse ? count - 1 - i : i].gpu;
    return count;
}

static void add_once(uint8_t nic, uint8_t nics[static TCCL_MAX_NICS], int *count)
{
    if (!memchr(nics, nic, (size_t)*count))
        nics[(*count)++] = nic;
}

/* The NICs to try from a GPU (NEVER: from all): first those that the GPUs prefer, then others up to
 * the distance `far`. Returns how many. */
static int select_nics(const struct tccl_topo *topo, int gpu, int far,
                       uint8_t nics[static TCCL_MAX_NICS])
{
    int first = gpu == NEVER ? 0 : gpu, end = gpu == NEVER ? topo->n_gpus : gpu + 1, count = 0;
    int own[TCCL_MAX_NICS];
    for (int g = first; g < end; g++) {
        int n_own = tccl_topo_own_nics(topo, g, own);
        for (int i = 0; i < n_own; i++)
            add_once((uint8_t)own[i], nics, &count);
    }
    for (int at = 0; at <= far; at++)
        for (int g = first; g < end; g++)
            for (int nic = 0; nic < topo->n_nics; nic++)
                if (topo->gpus[g].to_nic[nic].far == at)
                    add_once((uint8_t)nic, nics, &count);
    return count;
}

/* Do channels cross in pairs, the second one the other way round? Up to 2.22 those of trees as
 * well. */
static bool in_pairs(const struct graph *now, enum tccl_nccl nccl)
{
    return now->cross == CROSS_IN_PAIRS && (nccl < TCCL_NCCL_2_23 || now->pattern == RING);
}

/* May the channel leave by the NIC, given the one by which it entered? */
static bool may_leave_by(const struct graph *now, enum tccl_nccl nccl, int nic, int step)
{
    const uint8_t *ends = now->nics[now->n_channels];
    if (now->pattern == TREE && nic != ends[0])
        return false;
    if (in_pairs(now, nccl)) {
        if (now->n_channels % 2 == 1 && nic != now->nics[now->n_channels - 1][0])
            return false;
    } else if (now->cross == 0 && nic != ends[0]) {
        return false;
    }
    return now->pattern != BALANCED_TREE || step == 0 || nic == ends[1];
}

static void leave(struct search *search, int gpu, struct spot spot)
{
    struct graph *now = &search->now;
    struct tccl_topo *topo = search->topo;
    uint8_t nics[TCCL_MAX_NICS];
    int count = select_nics(topo, gpu, now->far_nics, nics);
    float gbps = now->pattern == BALANCED_TREE ? now->gbps_nics / 2 : now->gbps_nics;
    struct spot after = spot;
    /* A balanced tree uses the NIC from its first two GPUs, at half of the rate each. */
    after.to_nic = now->pattern == BALANCED_TREE && spot.step == 0 ? 1 : NEVER;
    for (int i = 0; i < count; i++) {
        const struct tccl_topo_way *way = &topo->gpus[gpu].to_nic[nics[i]];
        if (!may_leave_by(now, topo->nccl, nics[i], spot.step) ||
            !near_enough(now, way, &topo->nics[nics[i]].to_gpu[gpu], now->far_nics) ||
            !take(search, way, true, gbps))
            continue;
        now->nics[now->n_channels][1] = nics[i];
        visit(search, gpu, after);
        give_back(search, way, true, gbps);
    }
}

static void go_on(struct search *search, int gpu, struct spot spot)
{
    struct graph *now = &search->now;
    uint8_t next[TCCL_MAX_GPUS];
    int count = 1;
    if (spot.order == AS_NUMBERED)
        next[0] = (uint8_t)(spot.step + 1);
    else if (spot.order == AS_BEFORE)
        next[0] = now->gpus[now->n_channels - 1][spot.step + 1];
    else
        count = next_gpus(search, gpu, spot, next);
    spot.step++;
    for (int i = 0; i < count; i++)
        enter_by(search, &search->topo->gpus[gpu].to_gpu[next[i]],
                 &search->topo->gpus[next[i]].to_gpu[gpu], true, next[i], spot);
}

static void close_ring(struct search *search, int gpu, struct spot spot)
{
    struct tccl_topo *topo = search->topo;
    int first = search->now.gpus[search->now.n_channels][0];
    const struct tccl_topo_way *way = &topo->gpus[gpu].to_gpu[first];
    float gbps = search->now.gbps_gpus;
    if (way->far > search->now.far_gpus || !take(search, way, true, gbps))
        return;
    spot.step++;
    spot.to_first = NEVER;
    visit(search, first, spot);
    give_back(search, way, true, gbps);
}

/* The start of a channel, and the steps at which it goes to a NIC or closes. */
static struct spot first_spot(const struct search *search, enum order order)
{
    int last = search->topo->n_gpus - 1, pattern = search->now.pattern;
    struct spot spot = {.step = 0, .to_nic = NEVER, .to_first = NEVER, .order = order};
    if (!search->closed)
        spot.to_nic = pattern == RING ? last : 0;
    else if (pattern == RING)
        spot.to_first = last;
    return spot;
}

/* Up to 2.26: each of the GPUs with the highest rate, of these those with the fewest links. */
static void start_at_fast_gpus(struct search *search, int nic)
{
    const struct tccl_topo *topo = search->topo;
    const struct tccl_topo_way *ways = topo->nics[nic].to_gpu;
    int hops = TCCL_TOPO_WAY + 1;
    float gbps = 0;
    for (int i = 0; i < topo->n_gpus; i++) {
        if (ways[i].gbps > gbps || (ways[i].gbps == gbps && ways[i].n_links < hops))
            hops = ways[i].n_links;
        gbps = fmaxf(gbps, ways[i].gbps);
    }
    if (gbps < (float)(int)search->now.gbps_nics)
        return;
    for (int i = 0; i < topo->n_gpus; i++) {
        int gpu = (search->now.n_channels + i) % topo->n_gpus;
        if (ways[gpu].gbps == gbps && ways[gpu].n_links == hops)
            enter_from_nic(search, nic, gpu, first_spot(search, FREE));
    }
}

/* Up to 2.26 channels that need not be alike are tried as the one before, too. */
static void start_at_nic(struct search *search, int nic)
{
    const struct tccl_topo *topo = search->topo;
    struct graph *now = &search->now;
    int gpus[TCCL_MAX_GPUS], nearest = topo->nics[nic].nearest;
    bool old = topo->nccl < TCCL_NCCL_2_27;
    if (now->n_channels > 0 && (now->alike || old))
        enter_from_nic(search, nic, now->gpus[now->n_channels - 1][0],
                       first_spot(search, AS_BEFORE));
    if (now->n_channels > 0 && now->alike)
        return;
    if (now->n_channels == 0) { /* The first channel in numerical order has its own step limit. */
        int64_t steps = search->steps;
        search->steps = STEPS_NUMBERED;
        enter_from_nic(search, nic, 0, first_spot(search, AS_NUMBERED));
        search->steps = search->steps == PERFECT ? PERFECT : steps;
    }
    if (old) {
        start_at_fast_gpus(search, nic);
        return;
    }
    if (nearest >= 0)
        enter_from_nic(search, nic, nearest, first_spot(search, FREE));
    int count = tccl_topo_near_gpus(topo, nic, gpus);
    for (int i = 0; i < count; i++)
        if (gpus[i] != nearest)
            enter_from_nic(search, nic, gpus[i], first_spot(search, FREE));
}

static void start_at_gpus(struct search *search)
{
    const struct graph *now = &search->now;
    if (now->n_channels == 0)
        enter(search, 0, first_spot(search, AS_NUMBERED));
    else
        enter(search, now->gpus[now->n_channels - 1][0], first_spot(search, AS_BEFORE));
    if (now->alike && now->n_channels > 0)
        return;
    for (int gpu = 0; gpu < search->topo->n_gpus; gpu++)
        enter(search, gpu, first_spot(search, FREE));
}

static void add_channel(struct search *search)
{
    if (search->closed)
        start_at_gpus(search);
    else {
        struct graph *now = &search->now;
        int gbps = (int)now->gbps_nics; /* truncated, as in NCCL */
        uint8_t nics[TCCL_MAX_NICS];
        int count = select_nics(search->topo, NEVER, now->far_nics, nics);
        for (int i = 0; i < count; i++) {
            int nic = nics[(now->n_channels + i) % count];
            float *left = &search->topo->nics[nic].gbps;
            if (*left < (float)gbps)
                continue;
            if (in_pairs(now, search->topo->nccl) && now->n_channels % 2 == 1 &&
                nic != now->nics[now->n_channels - 1][1])
                continue;
            now->nics[now->n_channels][0] = (uint8_t)nic;
            *left -= (float)gbps;
            start_at_nic(search, nic);
            *left += (float)gbps;
        }
    }
}

static void visit(struct search *search, int gpu, struct spot spot)
{
    int n_gpus = search->topo->n_gpus;
    if (search->steps <= 0)
        return;
    search->steps--;
    if (spot.step == n_gpus) {
        /* A channel is complete: keeps the graph if it is better, and tries to add another channel.
         */
        struct graph *now = &search->now;
        now->n_channels++;
        if (is_better(now, &search->best)) {
            search->best = *now;
            if (now->n_channels == now->max_channels)
                search->steps = PERFECT;
        }
        if (now->n_channels < now->max_channels)
            add_channel(search);
        now->n_channels--;
        return;
    }
    search->now.gpus[search->now.n_channels][spot.step] = (uint8_t)gpu;
    if (spot.step == spot.to_nic) {
        leave(search, gpu, spot);
    } else if (spot.step < n_gpus - 1) {
        go_on(search, gpu, spot);
    } else if (spot.step == spot.to_first) {
        close_ring(search, gpu, spot);
    } else {
        spot.step = n_gpus;
        spot.to_nic = spot.to_first = NEVER;
        visit(search, gpu, spot);
    }
}

/* The rates that NCCL tries, GB/s, descending: within a node and between nodes, by the oldest GPU.
 */
struct rates {
    int count;
    float gbps[20];
};

static const struct rates *rates_to_try(bool closed, int least_sm, enum tccl_nccl nccl)
{
    static const struct rates within = {13, {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3}};
    static const struct rates within_90 = {11, {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3}};
    static const struct rates within_100 = {12, {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18}};
    static const struct rates within_100_old = {11, {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18}};
    static const struct rates within_100_oldest = {10, {90, 80, 70, 60, 50, 40, 30, 24, 20, 19}};
    static const struct rates between = {
        19, {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4F, 1.2F, 0.24F, 0.12F}};
    static const struct rates between_90 = {
        17, {48, 45, 42, 40, 30, 24, 22, 20, 17.5F, 15, 12, 6, 3, 2.4F, 1.2F, 0.24F, 0.12F}};
    static const struct rates between_100 = {
        19,
        {96, 80, 48, 45.1F, 42, 40, 30, 24, 22, 20, 17.5F, 15, 12, 6, 3, 2.4F, 1.2F, 0.24F, 0.12F}};
    static const struct rates between_100_old = {
        18, {96, 48, 45.1F, 42, 40, 30, 24, 22, 20, 17.5F, 15, 12, 6, 3, 2.4F, 1.2F, 0.24F, 0.12F}};
    static const struct rates between_100_new = {20, {96, 86, 80,   48,   45.1F, 42,   40,
                                                      30, 24, 22,   20,   17.5F, 15,   12,
                                                      6,  3,  2.4F, 1.2F, 0.24F, 0.12F}};
    if (least_sm >= 100 && nccl >= TCCL_NCCL_2_25 && closed)
        return nccl >= TCCL_NCCL_2_29   ? &within_100
               : nccl >= TCCL_NCCL_2_27 ? &within_100_old
                                        : &within_100_oldest;
    if (least_sm >= 100 && nccl >= TCCL_NCCL_2_27)
        return nccl >= TCCL_NCCL_2_30   ? &between_100_new
               : nccl >= TCCL_NCCL_2_29 ? &between_100
                                        : &between_100_old;
    if (least_sm >= 90 && closed)
        return &within_90;
    if (least_sm >= 90)
        return &between_90;
    return closed ? &within : &between;
}

float tccl_nccl_rate(bool closed, int least_sm, enum tccl_nccl nccl, double gbps)
{
    const struct rates *rates = rates_to_try(closed, least_sm, nccl);
    int at = 0;
    while (at < rates->count - 1 && (double)rates->gbps[at] > gbps)
        at++;
    return rates->gbps[at];
}

/* The parameters of the search for one graph. */
struct limits {
    const struct rates *rates;
    int rate; /* index of the one that is tried */
    int least_sm;
    bool crossing;           /* channels may cross NICs in pairs */
    int near_gpus, far_gpus; /* range of distances to try, enum tccl_far */
    int near_nics, far_nics;
    float most, total; /* GB/s: of the best way, and of a GPU's slot */
    int64_t steps;     /* left of all searches */
};

static int least_sm(const struct tccl_topo *topo)
{
    int least = topo->gpus[0].sm;
    for (int i = 1; i < topo->n_gpus; i++)
        least = topo->gpus[i].sm < least ? topo->gpus[i].sm : least;
    return least;
}

static void widen(const struct tccl_topo_way *way, int *near, int *far)
{
    *near = way->far < *near ? way->far : *near;
    *far = way->far > *far ? way->far : *far;
}

static void set_distances(const struct tccl_topo *topo, bool closed, struct limits *limits)
{
    if (topo->nccl < TCCL_NCCL_2_25) {
        /* Up to 2.24 all distances are tried, whatever the machine has. */
        limits->near_gpus = topo->n_gpus == 1 ? TCCL_FAR_SAME : TCCL_FAR_NVLINK;
        limits->near_nics = TCCL_FAR_SWITCH;
        limits->far_gpus = limits->far_nics = TCCL_FAR_SYSTEM;
        return;
    }
    limits->near_gpus = limits->near_nics = TCCL_FAR_SYSTEM;
    limits->far_gpus = limits->far_nics = TCCL_FAR_SAME;
    for (int a = 0; a < topo->n_gpus; a++) {
        for (int b = 0; b < topo->n_gpus; b++)
            if (a != b)
                widen(&topo->gpus[a].to_gpu[b], &limits->near_gpus, &limits->far_gpus);
        for (int nic = 0; nic < topo->n_nics; nic++)
            widen(&topo->gpus[a].to_nic[nic], &limits->near_nics, &limits->far_nics);
    }
    if (topo->n_gpus == 1)
        limits->near_gpus = TCCL_FAR_SAME;
    if (closed || (limits->least_sm < 90 && topo->nccl >= TCCL_NCCL_2_29))
        limits->far_nics = TCCL_FAR_SYSTEM;
    if (closed)
        limits->near_nics = TCCL_FAR_SWITCH;
}

static bool is_slowest(const struct limits *limits)
{
    return limits->rate == limits->rates->count - 1;
}

static void set_rate(struct graph *graph, const struct limits *limits)
{
    graph->gbps_gpus = graph->gbps_nics = limits->rates->gbps[limits->rate];
}

/* Begins at the highest rate that one way, and all channels together, can carry. */
static void choose_first_rate(const struct search *search, struct limits *limits)
{
    int n_gpus = search->topo->n_gpus;
    float total = limits->total;
    const float *gbps = limits->rates->gbps;
    bool at_once = search->best.pattern != RING && n_gpus > 1;
    if (at_once)
        total = (float)(total * (n_gpus * 1.0 / (n_gpus - 1)));
    limits->rate = 0;
    while (!is_slowest(limits) && (gbps[limits->rate] > limits->most ||
                                   gbps[limits->rate] * (float)search->best.min_channels > total))
        limits->rate++;
}

static void attempt(struct search *search, struct limits *limits)
{
    search->steps = search->now.alike ? STEPS_ALIKE : STEPS;
    search->now.n_channels = 0;
    limits->steps -= search->steps;
    add_channel(search);
}

/* The next distance, of those that this NCCL distinguishes. */
static int next_far(int far, enum tccl_nccl nccl)
{
    if (nccl < TCCL_NCCL_2_25 && far == TCCL_FAR_SWITCH - 2)
        return TCCL_FAR_SWITCH;
    if (nccl < TCCL_NCCL_2_27 && far == TCCL_FAR_SWITCHES)
        return TCCL_FAR_RELAYED;
    return far + 1;
}

/* Increases the distance allowed between GPUs, then to NICs, unless a graph at that distance is
 * known. At the maximum, resets both and returns false. */
static bool look_farther(struct search *search, const struct limits *limits)
{
    struct graph *now = &search->now;
    const struct graph *best = &search->best;
    bool nothing = best->n_channels == 0;
    int far_gpus = search->closed ? limits->far_gpus : now->far_nics;
    if (now->far_gpus < far_gpus && (nothing || now->far_gpus < best->far_gpus)) {
        now->far_gpus = next_far(now->far_gpus, search->topo->nccl);
        return true;
    }
    now->far_gpus = limits->near_gpus;
    if (!search->closed && now->far_nics < limits->far_nics &&
        (nothing || now->far_nics < best->far_nics || now->far_nics < TCCL_FAR_RELAYED)) {
        now->far_nics = next_far(now->far_nics, search->topo->nccl);
        return true;
    }
    now->far_nics = limits->near_nics;
    return false;
}

/* Relaxes one constraint after an unsuccessful attempt. Returns false if none is left. */
static bool ask_less(struct search *search, struct limits *limits)
{
    struct graph *now = &search->now;
    const struct graph *best = &search->best;
    bool across_amd = tccl_cpu_is_amd(search->topo->cpu) && now->far_gpus == TCCL_FAR_SYSTEM;
    if (now->alike && !across_amd) {
        now->alike = false;
        return true;
    }
    now->alike = true;
    limits->steps += search->steps;
    if (limits->steps < 0 && best->n_channels > 0)
        return false;
    if (limits->least_sm >= 90 && now->pattern == BALANCED_TREE) {
        now->pattern = TREE;
        return true;
    }
    now->pattern = best->pattern;
    if (look_farther(search, limits))
        return true;
    bool may_cross = best->pattern != TREE || search->topo->nccl < TCCL_NCCL_2_23;
    if (limits->crossing && now->cross == 0 && may_cross) {
        now->cross = CROSS_IN_PAIRS;
        return true;
    }
    now->cross = 0;
    const float *gbps = limits->rates->gbps;
    if (is_slowest(limits) ||
        (best->n_channels > 0 && gbps[limits->rate + 1] / best->gbps_nics <= .49))
        return false;
    limits->rate++;
    set_rate(now, limits);
    return true;
}

/* Splits fast channels into two, each with half of the rate. */
static void double_channels(struct graph *graph, int least_sm)
{
    int before = graph->n_channels;
    int count = before * 2 < graph->max_channels ? before * 2 : graph->max_channels;
    if (before == 0 || graph->gbps_gpus < 25 ||
        (least_sm > 80 && graph->gbps_gpus < 50 && before > 4))
        return;
    memcpy(graph->gpus[before], graph->gpus[0], sizeof(graph->gpus[0]) * (size_t)(count - before));
    memcpy(graph->nics[before], graph->nics[0], sizeof(graph->nics[0]) * (size_t)(count - before));
    graph->gbps_gpus /= (float)((count + before - 1) / before);
    graph->gbps_nics /= (float)((count + before - 1) / before);
    graph->n_channels = count;
}

/* Second pass: tries higher rates with at least the same number of channels. */
static void ask_more(struct search *search, struct limits *limits)
{
    struct graph *now = &search->now;
    const struct graph *best = &search->best;
    *now = *best;
    limits->rate = 0;
    while (!is_slowest(limits) && limits->rates->gbps[limits->rate] > best->gbps_nics)
        limits->rate++;
    set_rate(now, limits);
    now->min_channels = best->n_channels;
    search->steps = PERFECT;
    while (search->steps != 0 && limits->rate > 0) {
        bool ring = best->pattern == RING;
        if (!ring && (now->gbps_gpus != best->gbps_gpus || now->gbps_gpus >= now->gbps_nics * 2))
            break;
        now->gbps_gpus = limits->rates->gbps[--limits->rate];
        if (ring)
            now->gbps_nics = now->gbps_gpus;
        attempt(search, limits);
    }
}

/* If nothing fits: one channel in numerical order. */
static void fall_back(struct search *search)
{
    struct graph *best = &search->best;
    const struct tccl_topo *topo = search->topo;
    uint8_t nics[TCCL_MAX_NICS] = {0};
    best->n_channels = 1;
    best->gbps_gpus = best->gbps_nics = 0.1F;
    best->far_gpus = best->far_nics = TCCL_FAR_SYSTEM;
    for (int i = 0; i < topo->n_gpus; i++)
        best->gpus[0][i] = (uint8_t)i;
    for (int i = 0; topo->nccl < TCCL_NCCL_2_29 && i < topo->n_nics; i++)
        if (topo->nics[i].index == 0)
            best->nics[0][0] = best->nics[0][1] = (uint8_t)i;
    if (topo->nccl < TCCL_NCCL_2_29)
        return;
    for (int end = 0; end < 2; end++) {
        select_nics(topo, end == 0 ? 0 : topo->n_gpus - 1, NEVER, nics);
        best->nics[0][end] = nics[0];
    }
}

/* Searches for one graph, into search->best. */
static void find_graph(struct search *search, int pattern, int least, int most)
{
    const struct tccl_topo *topo = search->topo;
    struct limits limits = {.least_sm = least_sm(topo), .steps = STEPS_ALL};
    limits.crossing = topo->n_nics > 1;
    set_distances(topo, search->closed, &limits);
    bool closed = search->closed;
    limits.most = limits.total = 0;
    for (int a = 0; a < topo->n_gpus; a++) {
        const struct tccl_topo_gpu *gpu = &topo->gpus[a];
        const struct tccl_topo_way *ways = closed ? gpu->to_gpu : gpu->to_nic;
        for (int i = 0; i < (closed ? topo->n_gpus : topo->n_nics); i++)
            if (ways[i].n_links > 0)
                limits.most = fmaxf(limits.most, ways[i].gbps);
        limits.total = fmaxf(limits.total, gpu->slot);
    }
    limits.rates = rates_to_try(closed, limits.least_sm, topo->nccl);
    search->best = (struct graph){
        .pattern = topo->n_gpus == 1 && pattern != RING ? TREE : pattern,
        .min_channels = least,
        .max_channels = most,
        .alike = true,
        .far_gpus = limits.near_gpus,
        .far_nics = limits.near_nics,
    };
    choose_first_rate(search, &limits);
    search->now = search->best;
    set_rate(&search->now, &limits);
    do
        attempt(search, &limits);
    while (search->steps != PERFECT &&
           (float)search->best.n_channels * search->best.gbps_nics < limits.total &&
           ask_less(search, &limits));
    double_channels(&search->best, limits.least_sm);
    ask_more(search, &limits);
    if (search->best.n_channels == 0)
        fall_back(search);
}

/* What NCCL says of the graph. */
static struct tccl_nominal nominal_of(const struct graph *graph)
{
    static const uint8_t patterns[] = {[RING] = 4, [BALANCED_TREE] = 1, [TREE] = 3};
    return (struct tccl_nominal){
        .pattern = patterns[graph->pattern],
        .channels = (uint8_t)graph->n_channels,
        .intra = graph->gbps_gpus,
        .inter = graph->gbps_nics,
        .far_intra = (uint8_t)graph->far_gpus,
        .far_inter = (uint8_t)graph->far_nics,
        .alike = graph->alike,
    };
}

int tccl_nccl_search(struct tccl_topo *topo, bool closed, struct tccl_rings *rings,
                     struct tccl_error *err)
{
    cleanup_free struct search *search = calloc(1, sizeof(*search));
    if (!search)
        return tccl_fail(err, "out of memory");
    search->topo = topo;
    search->closed = closed;
    find_graph(search, RING, 1,
               topo->nccl < TCCL_NCCL_2_25 ? TCCL_SEARCH_CHANNELS / 2 : TCCL_SEARCH_CHANNELS);
    memset(rings, 0, sizeof(*rings));
    rings->n_channels = search->best.n_channels;
    rings->crosses = in_pairs(&search->best, topo->nccl);
    memcpy(rings->gpus, search->best.gpus, sizeof(rings->gpus));
    memcpy(rings->nics, search->best.nics, sizeof(rings->nics));
    rings->ring = nominal_of(&search->best);
    /* NCCL uses the same number of channels for rings and trees, the smaller one. */
    find_graph(search, BALANCED_TREE, rings->n_channels, rings->n_channels);
    rings->tree = nominal_of(&search->best);
    if (search->best.n_channels < rings->n_channels)
        rings->n_channels = search->best.n_channels;
    return 0;
}

/* Does the search of this NCCL differ from that of the one before? */
static bool changed(enum tccl_nccl nccl, const struct tccl_topo *topo, bool closed)
{
    switch (nccl) {
    case TCCL_NCCL_2_23:
        return topo->n_nics > 1;
    case TCCL_NCCL_2_22:
    case TCCL_NCCL_2_26:
    case TCCL_NCCL_2_28:
        return false;
    case TCCL_NCCL_2_29:
        return !closed || least_sm(topo) >= 100;
    case TCCL_NCCL_2_30:
        return !closed;
    case TCCL_NCCL_2_31:
        return topo->cpu == TCCL_CPU_AMD_ZEN3 || topo->cpu == TCCL_CPU_AMD_ZEN5;
    default:
        return true;
    }
}

bool tccl_nccl_search_alike(const struct tccl_topo *older, const struct tccl_topo *newer,
                            bool closed)
{
    for (int nccl = (int)older->nccl + 1; nccl <= (int)newer->nccl; nccl++)
        if (changed((enum tccl_nccl)nccl, newer, closed))
            return false;
    size_t behind = offsetof(struct tccl_topo, nccl) + sizeof(newer->nccl);
    return memcmp((const char *)older + behind, (const char *)newer + behind,
                  sizeof(*newer) - behind) == 0;
}
