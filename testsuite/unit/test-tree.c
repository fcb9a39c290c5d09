/* The tree over the nodes of a step. */
#include "tccld/join/running.h"

#include "check.h"

/* Every node but the root is the child of exactly its parent; ranges of children follow on each
 * other and fill the range of their parent. */
static void check_tree(int n)
{
    int reached = 1;
    for (int node = 0; node < n; node++) {
        int next = node + 1;
        for (int c = node; (c = node_tree_next_child(node, c, n)) >= 0; reached++) {
            CHECK_INT(node_tree_parent(c), node);
            CHECK_INT(node_tree_depth(c), node_tree_depth(node) + 1);
            CHECK_INT(c, next);
            next = node_tree_end(c, n);
        }
        CHECK_INT(next, node_tree_end(node, n));
    }
    CHECK_INT(reached, n);
    CHECK_INT(node_tree_end(0, n), n);
}

static int max_depth(int n)
{
    int depth = 0;
    for (int node = 0; node < n; node++)
        if (node_tree_depth(node) > depth)
            depth = node_tree_depth(node);
    return depth;
}

TEST(tree)
{
    for (int n = 1; n <= 600; n++)
        check_tree(n);
    check_tree(4096);
    check_tree(16384);
    CHECK_INT(node_tree_parent(0), -1);
    CHECK_INT(max_depth(1), 0);
    CHECK_INT(max_depth(16), 1);
    CHECK_INT(max_depth(17), 1);
    CHECK_INT(max_depth(18), 2);
    CHECK_INT(max_depth(4096), 3);
    CHECK_INT(max_depth(16384), 4);
}
