/* node-tree.h: the tree over the nodes of a step, by index: node 0 is the root; the parent of a
 * node is its index with the lowest non-zero digit, in base TREE_FAN, set to 0. So each node heads
 * a contiguous range, and the depth is log N in that base. */
#pragma once

enum { TREE_FAN = 16 };

/* How many children a node has. */
int node_tree_children(int node, int n_nodes);
/* The parent's index; -1 for the root. */
int node_tree_parent(int node);
/* 0 for the root. */
int node_tree_depth(int node);
/* The node behind the last one of the range that node heads: [node, end). */
int node_tree_end(int node, int n_nodes);
/* The child of node after child (give node itself for the first), ascending; -1 after the last. The
 * ranges of the children follow on each other. */
int node_tree_next_child(int node, int child, int n_nodes);
