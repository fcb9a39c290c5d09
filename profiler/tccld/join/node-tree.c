/* A node's place in the tree follows from its index and the number of nodes alone. */

#include "base/cleanup.h"
#include "client/message.h"
#include "tccld/join/running.h"

/* The weight of the lowest non-zero digit; that of the highest possible one for 0. */
static long lowest(int node, int n_nodes)
{
    long weight = 1;
    while (node ? node / weight % TREE_FAN == 0 : weight < n_nodes)
        weight *= TREE_FAN;
    return weight;
}

int node_tree_parent(int node)
{
    if (node == 0)
        return -1;
    long above = lowest(node, 0) * TREE_FAN;
    return (int)(node / above * above);
}

int node_tree_depth(int node)
{
    int depth = 0;
    for (; node > 0; node /= TREE_FAN)
        depth += node % TREE_FAN != 0;
    return depth;
}

int node_tree_end(int node, int n_nodes)
{
    long end = node + lowest(node, n_nodes);
    return end < n_nodes ? (int)end : n_nodes;
}

int node_tree_next_child(int node, int child, int n_nodes)
{
    int next = child == node ? node + 1 : node_tree_end(child, n_nodes);
    return next < node_tree_end(node, n_nodes) ? next : -1;
}

int node_tree_children(int node, int n_nodes)
{
    int count = 0;
    for (int c = node; (c = node_tree_next_child(node, c, n_nodes)) >= 0;)
        count++;
    return count;
}

json_t *node_tree_message(const struct running_step *step, const char *type)
{
    cleanup_json json_t *message = tccl_message_new(type);
    cleanup_json json_t *rest =
        json_pack("{s:o, s:i, s:i, s:I}", "key", tccl_key_to_json(&step->key), "node", step->node,
                  "n_nodes", step->n_nodes, "start", (json_int_t)step->start);
    return json_object_update(message, rest) == 0 ? tccl_steal(message) : NULL;
}

struct running_step *node_tree_told(const struct running *running, const json_t *json, bool past,
                                    int *node, struct tccl_error *err)
{
    struct tccl_step_key key;
    json_int_t start, n_nodes, below;
    if (tccl_key_from_json(json_object_get(json, "key"), &key, err) != 0 ||
        tccl_get_int(json, "start", 0, INT64_MAX, &start, err) != 0 ||
        tccl_get_int(json, "n_nodes", 2, TCCL_MAX_NODES, &n_nodes, err) != 0 ||
        tccl_get_int(json, "node", 1, TCCL_MAX_NODES - 1, &below, err) != 0)
        return NULL;
    *node = (int)below;
    struct running_step *step = running_planned(running, &key), *ended;
    if (step && step->start != start)
        step = NULL;
    if (!step && past) {
        TAILQ_FOREACH(ended, &running->past, link)
        if (ended->verdict && ended->start == start && tccl_key_equal(&ended->key, &key))
            step = ended;
    }
    if (step && step->n_nodes == n_nodes && below < n_nodes &&
        node_tree_parent(*node) == step->node)
        return step;
    return tccl_fail_null(err, "no such step has a plan here, above node %d of %d", *node,
                          (int)n_nodes);
}
