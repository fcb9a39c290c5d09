/* Verdicts of nodes, added up over the tree. */
#include "tccld/join/built-sum.h"

#include "check.h"
#include "tccld/join/running.h"

enum { MOST = 700 };
static int lowest_ranks[MOST]; /* of each node; -1: not known */
static bool slowed[MOST];      /* by a step beside it */
static bool later[MOST];       /* one began beside it */
static int words[MOST];        /* of each node; TCCL_BUILT_NOTHING: silent */

static void say(int node, char text[static 32])
{
    snprintf(text, 32, "n%d: %s", node + 1, tccl_built_word(words[node]));
}

/* As tccld does it: its own word, then what came from the nodes below, by messages. */
static void add_up(int node, int n, struct built_sum *sum)
{
    char text[32];
    built_sum_begin(sum, node);
    say(node, text);
    built_sum_put(sum, 1, words[node], text);
    built_sum_put_rank(sum, lowest_ranks[node]);
    sum->later = later[node];
    if (slowed[node])
        snprintf(sum->slowed, sizeof(sum->slowed), "n%d is slowed down", node + 1);
    for (int c = node; (c = node_tree_next_child(node, c, n)) >= 0;) {
        struct built_sum below, read;
        add_up(c, n, &below);
        cleanup_json json_t *json = built_sum_to_json(&below);
        if (below.later == 1 && *below.slowed) /* an older tccld says no more */
            json_object_del(json, "later");
        CHECK_OK(built_sum_from_json(json, c, node_tree_end(c, n), &read, ERR));
        built_sum_append(sum, &read);
    }
}

static void check_sum(const struct built_sum *sum, int n)
{
    int held = 0, joined = 0;
    CHECK(sum->first == 0 && sum->end == n);
    for (int i = 0; i < n; i++)
        held += slowed[i], joined += later[i];
    CHECK_INT(sum->later, joined);
    CHECK(!*sum->slowed == !held); /* the word of one of them */
    CHECK(!held || slowed[atoi(sum->slowed + 1) - 1]);
    for (int rank = 0; rank < BUILT_RANKS; rank++) {
        int nodes = 0, lowest = -1;
        char text[32] = "";
        for (int i = n - 1; i >= 0; i--)
            if (words[i] == rank) {
                nodes++;
                lowest = i;
            }
        if (lowest >= 0)
            say(lowest, text);
        CHECK_INT(sum->nodes[rank], nodes);
        CHECK_INT(sum->lowest[rank], lowest);
        CHECK_STR(sum->text[rank], text);
    }
}

/* What the words of all nodes mean, written down another way than built_sum_judge has it. */
static int meaning(int n)
{
    bool all_applied = true, all_left = true, some_left = false, some_steered = false,
         some_differ = false, some_fewer = false;
    for (int i = 0; i < n; i++) {
        all_applied &= words[i] == TCCL_BUILT_YES;
        all_left &= words[i] == TCCL_BUILT_NOT_USED;
        some_left |= words[i] == TCCL_BUILT_NOT_USED;
        some_steered |= words[i] == TCCL_BUILT_YES || words[i] == TCCL_BUILT_UNKNOWN;
        some_fewer |= words[i] == TCCL_BUILT_PARTLY;
        some_differ |= words[i] == TCCL_BUILT_DIFFERS;
    }
    if (some_differ || (some_left && some_steered && !some_fewer))
        return TCCL_BUILT_DIFFERS;
    if (some_fewer)
        return TCCL_BUILT_PARTLY;
    return all_applied ? TCCL_BUILT_YES : all_left ? TCCL_BUILT_NOT_USED : TCCL_BUILT_UNKNOWN;
}

TEST(random)
{
    char reason[TCCL_OUTCOME_REASON + 1];
    memset(lowest_ranks, 0xff, sizeof(lowest_ranks));
    for (int round = 0; round < 2000; round++) {
        struct built_sum sum;
        int n = 1 + rand() % (round % 10 ? 40 : MOST), common = rand() % BUILT_RANKS;
        int others = rand() % 4;
        for (int i = 0; i < n; i++)
            words[i] = common;
        for (int i = 0; i < others; i++)
            words[rand() % n] = rand() % BUILT_RANKS;
        for (int i = 0; i < n; i++) {
            slowed[i] = rand() % (2 * n) == 0;
            later[i] = slowed[i] || rand() % 2;
        }
        add_up(0, n, &sum);
        check_sum(&sum, n);
        int node, rank = built_sum_judge(&sum, "", reason, &node);
        CHECK_INT(rank, meaning(n));
        CHECK(node < n && (node < 0 || words[node] != TCCL_BUILT_YES));
        CHECK((rank == TCCL_BUILT_YES) == !*reason);
    }
}

/* Is the order of nodes a rotation of that of their ranks? Every rotation is tried. */
static bool in_order(int n)
{
    bool found = false;
    for (int start = 0; start < n && !found; start++) {
        found = true;
        for (int i = 1; i < n; i++)
            found &= lowest_ranks[(start + i - 1) % n] < lowest_ranks[(start + i) % n];
    }
    return found;
}

TEST(order)
{
    char reason[TCCL_OUTCOME_REASON + 1];
    for (int round = 0; round < 2000; round++) {
        struct built_sum sum;
        int n = 1 + rand() % (round % 10 ? 5 : 60), turn = rand() % n;
        for (int i = 0; i < n; i++) {
            slowed[i] = later[i] = false;
            words[i] = TCCL_BUILT_YES;
            lowest_ranks[i] = 8 * ((i + turn) % n);
        }
        for (int swaps = rand() % 3; swaps > 0; swaps--) {
            int a = rand() % n, b = rand() % n, rank = lowest_ranks[a];
            lowest_ranks[a] = lowest_ranks[b];
            lowest_ranks[b] = rank;
        }
        bool expected = in_order(n);
        if (round % 7 == 0) {
            lowest_ranks[rand() % n] = -1; /* then nobody knows */
            expected = true;
        }
        add_up(0, n, &sum);
        int node = 0;
        CHECK_INT(built_sum_judge(&sum, "", reason, &node),
                  expected ? TCCL_BUILT_YES : TCCL_BUILT_DIFFERS);
        CHECK(expected == !*reason && node == -1);
    }
    memset(lowest_ranks, 0xff, sizeof(lowest_ranks));
}

static void judged(const char *said, int rank, const char *reason)
{
    struct built_sum sum;
    char text[TCCL_OUTCOME_REASON + 1];
    int n = (int)strlen(said), node, first = 0;
    for (int i = 0; i < n; i++)
        words[i] = (int)(strchr(".nuafd", said[i]) - ".nuafd");
    add_up(0, n, &sum);
    CHECK_INT(built_sum_judge(&sum, "n[1-40]", text, &node), rank);
    CHECK_STR(text, reason);
    sscanf(reason, "n%d", &first);
    CHECK_INT(node, first - 1);
}

TEST(reasons)
{
    judged("a", TCCL_BUILT_YES, "");
    judged("aaaa", TCCL_BUILT_YES, "");
    judged("aada", TCCL_BUILT_DIFFERS, "n3: differs (1 of 4 nodes)");
    judged("add.", TCCL_BUILT_DIFFERS, "n2: differs (2 of 4 nodes)");
    judged("ddd", TCCL_BUILT_DIFFERS, "n1: differs");
    judged("aaan", TCCL_BUILT_DIFFERS, "n4: not used (1 of 4 nodes left the plan alone)");
    judged("un", TCCL_BUILT_DIFFERS, "n2: not used (1 of 2 nodes left the plan alone)");
    judged("afna", TCCL_BUILT_PARTLY,
           "n3: not used (1 of 4 nodes left the plan alone); n2: fewer (1 of 4 nodes)");
    judged("fff", TCCL_BUILT_PARTLY, "n1: fewer");
    judged("fd", TCCL_BUILT_DIFFERS, "n2: differs (1 of 2 nodes)");
    judged("f.", TCCL_BUILT_PARTLY, "n1: fewer (1 of 2 nodes)");
    judged("nn", TCCL_BUILT_NOT_USED, "n1: not used");
    judged("n.", TCCL_BUILT_UNKNOWN, "n2 has not said what was built (1 of 2 nodes)");
    judged("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..a", TCCL_BUILT_UNKNOWN,
           "n34 has not said what was built (2 of 36 nodes)");
    judged("auau", TCCL_BUILT_UNKNOWN, "n2: unknown (2 of 4 nodes)");
    judged("u", TCCL_BUILT_UNKNOWN, "n1: unknown");
}

TEST(names)
{
    struct built_sum sum;
    char text[TCCL_OUTCOME_REASON + 1];
    int node;
    built_sum_begin(&sum, 0);
    built_sum_put(&sum, 3, TCCL_BUILT_NOTHING, "");
    built_sum_judge(&sum, "", text, &node);
    CHECK_STR(text, "node 0 (the first is 0) has not said what was built (3 of 3 nodes)");
    built_sum_judge(&sum, "n[1-", text, &node);
    CHECK_HOLDS(text, "node 0 (the first is 0)");
}

/* "nodes lowest" of each rank. */
static void refused(const char *numbers, const char *said)
{
    struct built_sum sum;
    cleanup_json json_t *list = json_array(), *json = NULL;
    int nodes, lowest, used;
    for (; sscanf(numbers, "%d %d%n", &nodes, &lowest, &used) == 2; numbers += used)
        json_array_append_new(
            list, json_pack("{s:i, s:i, s:s}", "nodes", nodes, "lowest", lowest, "text", "x"));
    json = json_pack("{s:O, s:[i,i,i]}", "said", list, "order", -1, -1, 0);
    CHECK_INT(built_sum_from_json(json, 16, 32, &sum, ERR), *said ? -1 : 0);
    CHECK_HOLDS(check_err.text, said);
}

TEST(refused)
{
    refused("0 -1 0 -1 0 -1 0 -1 16 16 0 -1", "");
    refused("0 -1 1 31 0 -1 0 -1 15 16 0 -1", "");
    refused("0 -1 0 -1 0 -1 0 -1 16 16", "6 verdicts are expected");
    refused("0 -1 0 -1 0 -1 0 -1 15 16 0 -1", "of 15 nodes in place of 16");
    refused("0 -1 1 16 0 -1 0 -1 16 16 0 -1", "of 17 nodes in place of 16");
    refused("0 -1 0 -1 0 -1 0 -1 16 17 0 -1", "lowest: 17 does not fit");
    refused("0 -1 0 16 0 -1 0 -1 16 16 0 -1", "lowest: 16 does not fit");
    refused("0 -1 0 -1 0 -1 1 15 15 16 0 -1", "lowest: 15 does not fit");
    refused("0 -1 0 -1 0 -1 1 32 15 16 0 -1", "lowest");
    refused("0 -1 -1 -1 1 16 0 -1 16 16 0 -1", "nodes");
    refused("0 -1 0 -1 0 -1 0 -1 99 16 0 -1", "nodes");
}
