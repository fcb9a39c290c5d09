/* nodestats.c: sums bandwidths by node list and expands the lists at the end, since there are far
 * fewer node lists than steps. */
#include "records/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "client/hostlist.h"
#include "records/record.h"

enum {
    SLOW_LEAST = 5, /* steps by which a node is slow, and failures for which it is named */
    FAILED_LEAST = 3
};
static const double slow_below = 0.95, failed_times = 2;

/* Steps on one node list, of one shape. */
struct group {
    double gbps, top; /* their sum, and the best of them */
    long steps;
    int shape;
};

struct node {
    double share, top; /* the sum over its steps, and the best of them */
    long steps, failed;
};

struct tccl_nodestats {
    struct tccl_texts lists; /* by node list and shape: groups */
    struct group *groups;
    size_t groups_room;
    struct tccl_texts shapes; /* by kind, number of nodes and GPUs */
    double *best;             /* of each shape, GB/s */
    size_t best_room;
    struct tccl_texts names; /* of nodes */
    struct node *nodes;
    size_t nodes_room;
};

struct tccl_nodestats *tccl_nodestats_new(void)
{
    return calloc(1, sizeof(struct tccl_nodestats));
}

void tccl_nodestats_free(struct tccl_nodestats *stats)
{
    if (!stats)
        return;
    tccl_texts_clear(&stats->lists);
    tccl_texts_clear(&stats->shapes);
    tccl_texts_clear(&stats->names);
    free(stats->groups);
    free(stats->best);
    free(stats->nodes);
    free(stats);
}

int tccl_nodestats_ring(struct tccl_nodestats *stats, const struct tccl_facts *facts)
{
    double gbps = fmax(facts->alone_gbps, facts->gbps);
    uint64_t size = (uint64_t)facts->n_nodes << 32 | (uint32_t)facts->gpus;
    int count = stats->lists.count, shapes = stats->shapes.count;
    if (TCCL_GROW(stats->best, shapes, stats->best_room) != 0 ||
        TCCL_GROW(stats->groups, count, stats->groups_room) != 0)
        return -1;
    stats->best[shapes] = 0;
    int shape =
        tccl_texts_number(&stats->shapes, facts->node_class, strlen(facts->node_class), size);
    int number = shape < 0 ? -1
                           : tccl_texts_number(&stats->lists, facts->nodes, strlen(facts->nodes),
                                               (uint64_t)shape);
    if (number < 0)
        return -1;
    struct group *group = &stats->groups[number];
    if (number == count)
        *group = (struct group){.shape = shape};
    group->gbps += gbps;
    group->top = fmax(group->top, gbps);
    group->steps++;
    stats->best[shape] = fmax(stats->best[shape], gbps);
    return 0;
}

static struct node *find_node(struct tccl_nodestats *stats, const char *name)
{
    int count = stats->names.count;
    if (TCCL_GROW(stats->nodes, count, stats->nodes_room) != 0)
        return NULL;
    int number = tccl_texts_number(&stats->names, name, strlen(name), 0);
    if (number == count)
        stats->nodes[count] = (struct node){0};
    return number < 0 ? NULL : &stats->nodes[number];
}

int tccl_nodestats_failed(struct tccl_nodestats *stats, const struct tccl_facts *facts)
{
    const char *name = facts->shown.node;
    if (!tccl_host_valid(name) || !tccl_hosts_contain(facts->nodes, name))
        return 0;
    struct node *node = find_node(stats, name);
    if (!node)
        return -1;
    node->failed++;
    return 0;
}

/* Adds a group to each of its nodes. A list that can't be parsed is ignored. */
static int share_out(struct tccl_nodestats *stats, int number)
{
    const struct group *group = &stats->groups[number];
    double best = stats->best[group->shape];
    __attribute__((cleanup(tccl_hosts_clear))) struct tccl_hosts hosts = {0};
    if (tccl_hosts_expand(tccl_texts_get(&stats->lists, number), TCCL_MAX_NODE_LIST, &hosts,
                          NULL) != 0)
        return 0;
    for (size_t i = 0; i < hosts.count; i++) {
        struct node *node = find_node(stats, hosts.names[i]);
        if (!node)
            return -1;
        node->share += group->gbps / best;
        node->top = fmax(node->top, group->top / best);
        node->steps += group->steps;
    }
    return 0;
}

struct place {
    const char *name, *stands_out;
    const struct node *node;
};

/* The other nodes' failures and steps are those of all less its own. */
static const char *stands_out(const struct node *node, const struct node *all)
{
    double steps = (double)(node->steps + node->failed),
           others = (double)(all->steps + all->failed) - steps;
    double rate = others > 0 ? (double)(all->failed - node->failed) / others : 0;
    if (node->steps >= SLOW_LEAST && node->top < slow_below)
        return "slow";
    return node->failed >= FAILED_LEAST && (double)node->failed / steps > failed_times * rate
               ? "failures"
               : "";
}

static double mean_share(const struct node *node)
{
    return node->steps ? node->share / (double)node->steps : 0;
}

static int compare(const void *a, const void *b)
{
    const struct place *one = a, *two = b;
    double share_one = mean_share(one->node), share_two = mean_share(two->node);
    if (!*one->stands_out != !*two->stands_out)
        return *one->stands_out ? -1 : 1;
    if (!one->node->steps != !two->node->steps)
        return one->node->steps ? -1 : 1;
    if (share_one != share_two)
        return share_one < share_two ? -1 : 1;
    if (one->node->failed != two->node->failed)
        return one->node->failed > two->node->failed ? -1 : 1;
    return strcmp(one->name, two->name);
}

json_t *tccl_nodestats_json(struct tccl_nodestats *stats, int most)
{
    for (int i = 0; i < stats->lists.count; i++)
        if (share_out(stats, i) != 0)
            return NULL;
    int count = stats->names.count;
    cleanup_free struct place *places = calloc((size_t)count + 1, sizeof(*places));
    cleanup_json json_t *array = json_array();
    if (!places)
        return NULL;
    struct node all = {0};
    for (int i = 0; i < count; i++) {
        all.steps += stats->nodes[i].steps;
        all.failed += stats->nodes[i].failed;
    }
    for (int i = 0; i < count; i++)
        places[i] = (struct place){tccl_texts_get(&stats->names, i),
                                   stands_out(&stats->nodes[i], &all), &stats->nodes[i]};
    qsort(places, (size_t)count, sizeof(*places), compare);
    for (int i = 0; i < count && i < most; i++) {
        const struct node *node = places[i].node;
        json_t *share = node->steps ? json_real(mean_share(node)) : json_null();
        if (json_array_append_new(array,
                                  json_pack("{s:s, s:I, s:o, s:I, s:s}", "node", places[i].name,
                                            "steps", (json_int_t)node->steps, "share", share,
                                            "failed", (json_int_t)node->failed, "stands_out",
                                            places[i].stands_out)) != 0)
            return NULL;
    }
    return tccl_steal(array);
}
