/* A node's place in the tree follows from its index and the number of nodes alone. */
#include "tccld/join/tree.h"

/* The weight of the lowest non-zero digit; that of the highest possible one for 0. */
static long lowest(int node, int n_nodes)
{
    long weight = 1;
    while (node ? node / weight % TREE_FAN == 0 : weight < n_nodes)
        weight *= TREE_FAN;
    return weight;
}

int tree_parent(int node)
{
    if (node == 0)
        return -1;
    long above = lowest(node, 0) * TREE_FAN;
    return (int)(node / above * above);
}

int tree_depth(int node)
{
    int depth = 0;
    for (; node > 0; node /= TREE_FAN)
        depth += node % TREE_FAN != 0;
    return depth;
}

int tree_end(int node, int n_nodes)
{
    long end = node + lowest(node, n_nodes);
    return end < n_nodes ? (int)end : n_nodes;
}

int tree_next_child(int node, int child, int n_nodes)
{
    int next = child == node ? node + 1 : tree_end(child, n_nodes);
    return next < tree_end(node, n_nodes) ? next : -1;
}

int tree_children(int node, int n_nodes)
{
    int count = 0;
    for (int c = node; (c = tree_next_child(node, c, n_nodes)) >= 0;)
        count++;
    return count;
}
